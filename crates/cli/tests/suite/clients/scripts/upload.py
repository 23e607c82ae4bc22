"""Uploads in every way that Python's libraries know, over kept connections, and
prints what arrived."""
import http.client, io, sys
import requests

URL = "http://v4.example.org:8006/upload"
BODY = b"some words, \n" * 50_000


def pieces():
    yield b"some "
    yield BODY[5:]


session = requests.Session()
session.trust_env = "proxied" in sys.argv
said = [
    session.request(method, URL, **words()).json()["body_bytes"]
    for method in ["POST", "PUT"]
    for words in [
        lambda: {"data": BODY},
        lambda: {"data": pieces()},
        lambda: {"data": io.BytesIO(BODY)},
        lambda: {"data": {"a": "b" * 59_998}},
        lambda: {"json": ["b" * 59_996]},
        lambda: {"files": {"a": ("a", BODY)}},
    ]
]
print(*(size // 1000 for size in said))
if not session.trust_env:
    kept = http.client.HTTPConnection("v4.example.org", 8006)
    for body in [b"hello", b"[1]", BODY, b""]:
        kept.putrequest("POST", "/upload")
        kept.putheader("Content-Length", str(len(body)))
        kept.endheaders()
        # A packet of its own.
        kept.send(body)
        print(kept.getresponse().read())
