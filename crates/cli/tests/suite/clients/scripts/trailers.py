"""Sends a request with each of these trailers, and prints what the server and
the client got: the trailers of the request, then those of the answer."""
import socket, sys

PLACE = ("v4.example.org", 8008)
ways = {"direct": (PLACE, ""), "proxy": (("127.0.0.1", 3128), "http://v4.example.org:8008")}
way, *names = sys.argv[1:]
place, url = ways[way]
for announced in [True, False]:
    for name in names:
        head = f"POST {url}/ HTTP/1.1\r\nHost: v4.example.org:8008\r\nTransfer-Encoding: chunked\r\n"
        head += f"Trailer: {name}\r\n" if announced else ""
        stream = socket.create_connection(place, 60)
        stream.sendall(f"{head}Connection: close\r\n\r\n5\r\nhello\r\n0\r\n{name}: of the request\r\n\r\n".encode())
        said = b""
        while more := stream.recv(4096):
            said += more
        status = said.split()[1].decode()
        body, _, end = said.partition(b"\r\n\r\n")[2].decode().partition("\r\n0\r\n")
        print(status, *body.split("\r\n")[1:2] if status == "200" else [], end.strip())
