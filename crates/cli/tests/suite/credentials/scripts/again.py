"""again.py HOW URL: asks twice over one connection.

After the first answer it makes the file `asked` and waits for `changed`.
Prints both answers.
"""
import os
import sys
import time

how, url = sys.argv[1:]


def wait():
    open("asked", "w").close()
    while not os.path.exists("changed"):
        time.sleep(0.01)


if how == "requests":
    import requests

    client = requests.Session()
else:
    import httpx

    client = httpx.Client(http2=how == "httpx-h2", timeout=60)
print(client.get(url).status_code, flush=True)
wait()
print(client.get(url).status_code, flush=True)
