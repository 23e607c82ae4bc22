"""fetch.py HOW URL: prints a page; fails unless it came."""
import socket
import ssl
import sys
import urllib.parse
import urllib.request

how, url = sys.argv[1:]
if how == "urllib":
    print(urllib.request.urlopen(url).read().decode())
elif how == "requests":
    import requests

    answer = requests.get(url)
    answer.raise_for_status()
    print(answer.text)
else:
    parts = urllib.parse.urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    stream = socket.create_connection((parts.hostname, port))
    if parts.scheme == "https":
        context = ssl.create_default_context()
        stream = context.wrap_socket(stream, server_hostname=parts.hostname)
    request = f"GET / HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
    stream.sendall(request.encode())
    answer = stream.makefile("rb").read().decode()
    print(answer)
    sys.exit(not answer.startswith("HTTP/1.1 200 "))
