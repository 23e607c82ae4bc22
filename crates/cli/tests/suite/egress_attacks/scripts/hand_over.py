"""Runs a program whose standard input is a socket of this machine."""
import socket, subprocess, sys

way, *program = sys.argv[1:]
kind = socket.SOCK_DGRAM if way == "datagram" else socket.SOCK_STREAM
stream = socket.socket(socket.AF_INET, kind)
if way == "connected":
    listener = socket.create_server(("127.0.0.1", 0))
    stream.connect(listener.getsockname())
sys.exit(subprocess.run(program, stdin=stream).returncode)
