"""A gRPC server that answers with what it was told, and writes that down.

Messages are plain bytes, so that nothing has to be generated. The trailing
metadata tells what came as `authorization`.
"""

import sys
from concurrent import futures

import grpc

LOG = open("grpc.log", "a", encoding="utf-8", errors="replace")


def note(text):
    print(text, file=LOG, flush=True)


def greet(context, method):
    metadata = dict(context.invocation_metadata())
    note(f"{method} {metadata}")
    context.set_trailing_metadata((("came", metadata.get("authorization", "-")),))


def say(message, context):
    greet(context, "Say")
    note(message)
    return message


def stream(messages, context):
    greet(context, "Stream")
    for message in messages:
        note(message)
        yield message


def who(message, context):
    greet(context, "Who")
    # Only if the client takes it.
    context.set_compression(grpc.Compression.Gzip)
    metadata = dict(context.invocation_metadata())
    return (metadata.get("authorization", "-") + " ").encode() * 50


def fail(message, context):
    greet(context, "Fail")
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not like this")


METHODS = {
    "Say": grpc.unary_unary_rpc_method_handler(say),
    "Stream": grpc.stream_stream_rpc_method_handler(stream),
    "Who": grpc.unary_unary_rpc_method_handler(who),
    "Fail": grpc.unary_unary_rpc_method_handler(fail),
}


def main():
    with open("grpc.key", "rb") as key, open("grpc.pem", "rb") as certificate:
        credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo.Echo", METHODS),))
    server.add_secure_port(f"[::]:{sys.argv[1]}", credentials)
    server.start()
    note("ready")
    server.wait_for_termination()


main()
