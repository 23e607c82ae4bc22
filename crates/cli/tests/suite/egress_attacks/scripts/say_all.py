"""Says what said.json lists to a port, each over a connection of its own; over
TLS if that is the second word."""
import json, socket, ssl, sys
from concurrent.futures import ThreadPoolExecutor

port = int(sys.argv[1])
context = ssl.create_default_context() if "tls" in sys.argv else None


def say(text):
    try:
        stream = socket.create_connection(("v4.example.org", port), 60)
        if context:
            stream = context.wrap_socket(stream, server_hostname="v4.example.org")
        stream.sendall(text.encode())
        stream.shutdown(socket.SHUT_WR)
        while stream.recv(4096):
            pass
    except OSError:
        pass


with ThreadPoolExecutor(32) as pool:
    list(pool.map(say, json.load(open("said.json"))))
