"""Turns the socket that is its standard input to somewhere else."""
import ctypes, socket, sys

way, host, port = sys.argv[1:]
stream = socket.socket(fileno=0)
if way == "datagram":
    stream.sendto(b"inherited", (host, int(port)))
else:
    ctypes.CDLL(None).connect(0, bytes(16), 16)
    stream.connect((host, int(port)))
    stream.sendall(b"inherited\n")
    assert stream.recv(100).startswith(b"inherited")
