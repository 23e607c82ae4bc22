"""Says something that others know over a plain connection, whole and in
pieces, and prints what comes back. Each time it waits for the answer."""

import socket
import sys

host, port, first, second = sys.argv[1:]
server = socket.create_connection((host, int(port)), timeout=60)
heard = b""


def wait_for(length):
    global heard
    while len(heard) < length:
        heard += server.recv(65536)


if port == "25":
    wait_for(len(b"220 mail.test ESMTP\r\n"))
for said in ["begin\n", first + second, " s3cr3 or not ", first, second + "."]:
    before = len(heard)
    server.sendall(said.encode())
    # Of what may be a secret nothing has to come before the rest.
    if said != first:
        wait_for(before + len(said.encode()))
server.shutdown(socket.SHUT_WR)
while more := server.recv(65536):
    heard += more
print(heard.decode())
