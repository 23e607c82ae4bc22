"""socket_talk.py URL [MESSAGE ...]: talks over a WebSocket.

Prints the greeting and what came back for each message.
"""
import asyncio
import os
import sys

import websockets


async def main(url, *messages):
    token = os.environ.get("API_TOKEN", "none")
    headers = {"Authorization": f"Bearer {token}"}
    async with websockets.connect(url, extra_headers=headers) as connection:
        print(await connection.recv())
        for message in messages:
            await connection.send(os.path.expandvars(message))
            print(await connection.recv())


asyncio.run(main(*sys.argv[1:]))
