"""Talks to the proxies that the environment names, byte by byte."""
import base64
import os
import re
import socket
import sys
from urllib.parse import unquote, urlsplit

PROXY = urlsplit(os.environ["HTTP_PROXY"])
USER, PASSWORD = unquote(PROXY.username or ""), unquote(PROXY.password or "")


def exchange(head):
    with socket.create_connection(("localhost", PROXY.port), 20) as stream:
        stream.sendall(head.encode("latin-1") + b"Connection: close\r\n\r\n")
        return stream.makefile("rb").read().decode("latin-1")


def authorization():
    token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    return f"Proxy-Authorization: Basic {token}\r\n"


def request(method, target, more):
    host = re.sub("^http://([^/]*).*", r"\1", target)
    return exchange(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}")


def status(answer):
    return answer.split("\r\n")[0].split(" ", 1)[1]


def header(answer, name):
    found = re.search(f"(?im)^{name}: (.*)\r$", answer)
    return found.group(1) if found else "-"


def get(target):
    print(status(request("GET", target, authorization())).split()[0])


def connect(target):
    print(status(request("CONNECT", target, authorization())))


def answer(target):
    """Prints all that is said about a tunnel."""
    whole = request("CONNECT", target, authorization())
    print(status(whole))
    for name in ["X-Proxy-Error", "Content-Type"]:
        print(name, header(whole, name), sep=": ")
    print(repr(whole.split("\r\n\r\n", 1)[1]))


def without_token(target):
    answer = request("GET", target, "")
    print(status(answer), header(answer, "Proxy-Authenticate"), sep="; ")


def wrong_token(target):
    wrong = base64.b64encode(b"srt:wrong").decode()
    print(status(request("GET", target, f"Proxy-Authorization: Basic {wrong}\r\n")))


def socks(command, name, port):
    """Prints the reply's code, or `closed`."""
    name = name.encode().decode("unicode_escape").encode("latin-1")
    with socket.create_connection(("localhost", 1080), 20) as stream:
        stream.sendall(b"\x05\x01\x02")
        stream.recv(2)
        user, password = USER.encode(), PASSWORD.encode()
        stream.sendall(b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password)
        stream.recv(2)
        where = b"\x03" + bytes([len(name)]) + name + int(port).to_bytes(2, "big")
        stream.sendall(b"\x05" + bytes([int(command)]) + b"\x00" + where)
        reply = stream.recv(16)
        print(reply[1] if len(reply) > 1 else "closed")


globals()[sys.argv[1]](*sys.argv[2:])
