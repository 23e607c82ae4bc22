"""Says what said.json lists to a port, each over a connection of its own."""
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor

port = int(sys.argv[1])


def say(text):
    try:
        stream = socket.create_connection(("v4.example.org", port), 60)
        stream.sendall(text.encode())
        stream.shutdown(socket.SHUT_WR)
        while stream.recv(4096):
            pass
    except OSError:
        pass


with ThreadPoolExecutor(32) as pool:
    list(pool.map(say, json.load(open("said.json"))))
