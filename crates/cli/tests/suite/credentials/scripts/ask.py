"""ask.py HOW METHOD URL [NAME=VALUE ...] [BODY]

Asks with a library that people use and prints what came: the version of HTTP
and the status, the headers, an empty line, the body. $API_TOKEN in an argument
is replaced here, as a program would that takes its key from a variable.
"""
import os
import sys

how, method, url, *rest = [os.path.expandvars(word) for word in sys.argv[1:]]
headers = dict(word.split("=", 1) for word in rest if word[:1].isupper())
body = "".join(word for word in rest if not word[:1].isupper()).encode() or None

if how == "requests":
    import requests

    answer = requests.request(method, url, headers=headers, data=body)
    version = {11: "HTTP/1.1", 20: "HTTP/2"}[answer.raw.version]
elif how.startswith("httpx"):
    import httpx

    with httpx.Client(http2=how == "httpx-h2", timeout=60) as client:
        answer = client.request(method, url, headers=headers, content=body)
    version = answer.http_version
else:
    sys.exit(f"ask how? {how}")
print(version, answer.status_code)
for name, value in answer.headers.items():
    print(f"{name}: {value}")
print()
print(answer.text)
