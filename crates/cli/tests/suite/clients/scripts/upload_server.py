"""Counts uploads and its connections; repositories by git below /git."""
import asyncio, os, sys
from aiohttp import web

folder, connections = sys.argv[1], set()


async def count(asked):
    connections.add(asked.transport)
    body = await asked.read()
    return web.json_response({"body_bytes": len(body)})


async def tell(asked):
    number = len(connections)
    connections.clear()
    return web.Response(text=str(number))


async def git(asked):
    body = await asked.read()
    told = {
        "GIT_PROJECT_ROOT": folder,
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH": os.environ["PATH"],
        "PATH_INFO": asked.path.removeprefix("/git"),
        "QUERY_STRING": asked.query_string,
        "REQUEST_METHOD": asked.method,
        "CONTENT_TYPE": asked.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": asked.headers.get("Content-Encoding", ""),
        "GIT_PROTOCOL": asked.headers.get("Git-Protocol", ""),
        "REMOTE_USER": "test",
    }
    pipe = asyncio.subprocess.PIPE
    backend = await asyncio.create_subprocess_exec("git", "http-backend", stdin=pipe, stdout=pipe, env=told)
    said, _ = await backend.communicate(body)
    head, _, content = said.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    status = int(fields.pop("Status", "200").split()[0])
    coding = asked.headers.get("Transfer-Encoding", "")
    with open(f"{folder}/codings", "a") as codings:
        codings.write(coding + "\n")
    return web.Response(status=status, headers=fields, body=content)


application = web.Application(client_max_size=1 << 30)
application.router.add_route("GET", "/connections", tell)
application.router.add_route("*", "/git/{path:.*}", git)
application.router.add_route("*", "/{path:.*}", count)
web.run_app(application, host="0.0.0.0", port=8006, print=None, access_log=None)
