"""call.py METHOD HOST:PORT [MESSAGE ...]: calls a gRPC server with grpcio.

Prints the messages that came back, then the status and the trailing metadata.
Talk is Stream with each message sent after the answer to the one before it, and
without authorization.
"""
import os
import queue
import sys

import grpc

method, target, *messages = sys.argv[1:]
messages = [os.path.expandvars(message).encode() for message in messages]
metadata = (("authorization", "Bearer " + os.environ.get("API_TOKEN", "none")),)
roots = os.environ.get("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "/etc/ssl/certs/ca-certificates.crt")
with open(roots, "rb") as file:
    credentials = grpc.ssl_channel_credentials(file.read())
answered = queue.Queue()


def in_turn():
    for message in messages:
        yield message
        answered.get(timeout=60)


with grpc.secure_channel(target, credentials) as channel:
    path = f"/echo.Echo/{method}"
    if method == "Talk":
        call = channel.stream_stream("/echo.Echo/Stream")(in_turn(), timeout=60)
    elif method == "Stream":
        call = channel.stream_stream(path)(iter(messages), metadata=metadata, timeout=60)
    else:
        call = channel.unary_unary(path).future(messages[0], metadata=metadata, timeout=60)
    try:
        for answer in call if method in ["Stream", "Talk"] else [call.result()]:
            print(answer.decode())
            answered.put(answer)
    except grpc.RpcError:
        pass
    print(call.code().name, call.details(), dict(call.trailing_metadata()))
