"""talk.py WAY HOST PORT: connects, says something or nothing, and tells what came."""
import socket
import sys

way, host, port = sys.argv[1:]
stream = socket.create_connection((host, int(port)))
try:
    if way != "silent":
        stream.sendall(b"hello")
    if way == "done":
        stream.shutdown(socket.SHUT_WR)
    print(stream.recv(100) or "end")
except ConnectionResetError:
    print("reset")
