"""Connects, says nothing for a while, and then asks for a page."""

import socket
import ssl
import sys
import time

host, port, speaks = sys.argv[1:]
server = socket.create_connection((host, int(port)), timeout=60)
time.sleep(0.6)
if speaks == "https":
    server = ssl.create_default_context().wrap_socket(server, server_hostname=host)
ask = f"GET /slow HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
server.sendall(ask.encode())
while more := server.recv(65536):
    print(more.decode(), end="")
