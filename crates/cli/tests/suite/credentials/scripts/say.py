"""say.py FILE: carries out what FILE, a list in JSON, says; prints a line each.

An entry has "dial" [name or address, port], "sni" (null for none), "alpn", and
either "raw", the parts of an HTTP/1.1 request that are sent one by one, or
"headers", the fields of an HTTP/2 request in their order, with "body", parts
in the same way. $API_TOKEN is replaced in all of them, and so are base64:…:
and percent:…: around a text by its form. The line is JSON: the status and the
whole answer, or the error.
"""
import base64
import json
import os
import re
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events

FORMS = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "hex": lambda text: text.encode().hex(),
    "first": lambda text: text[: len(text) // 2],
    "second": lambda text: text[len(text) // 2 :],
}


def expand(text):
    text = os.path.expandvars(text)
    form = re.compile(r"(base64|percent|hex|first|second):([^:]*):")
    while form.search(text):
        text = form.sub(lambda found: FORMS[found[1]](found[2]), text)
    return text


def connect(entry):
    stream = socket.create_connection(tuple(entry["dial"]), 60)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if "sni" not in entry:
        return stream
    context = ssl.create_default_context()
    context.check_hostname = False
    if entry.get("distrust"):
        context.load_verify_locations(entry["distrust"])
    else:
        context.verify_mode = ssl.CERT_NONE
    if entry.get("alpn"):
        context.set_alpn_protocols([entry["alpn"]])
    return context.wrap_socket(stream, server_hostname=entry["sni"])


def send_part(stream, part, later):
    stream.sendall(part)
    if later and isinstance(stream, socket.socket):
        # The other side has taken it when nothing waits to be acknowledged.
        import fcntl, struct, termios

        descriptor = stream.fileno()
        while struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0" * 4))[0]:
            pass


def talk1(stream, parts):
    for at, part in enumerate(parts):
        send_part(stream, expand(part).encode("latin-1"), at + 1 < len(parts))
    answer = b""
    while more := stream.recv(65536):
        answer += more
    words = answer.split(b" ", 2)
    status = int(words[1]) if answer.startswith(b"HTTP/") else 0
    return {"status": status, "answer": answer.decode("latin-1")}


def talk2(stream, headers, body):
    config = h2.config.H2Configuration(
        validate_outbound_headers=False,
        normalize_outbound_headers=False,
        header_encoding="latin-1",
    )
    connection = h2.connection.H2Connection(config)
    connection.initiate_connection()
    fields = [(expand(name), expand(value)) for name, value in headers]
    connection.send_headers(1, fields, end_stream=not body)
    stream.sendall(connection.data_to_send())
    for at, part in enumerate(body):
        last = at + 1 == len(body)
        connection.send_data(1, expand(part).encode("latin-1"), end_stream=last)
        send_part(stream, connection.data_to_send(), not last)
    status, answer = 0, ""
    while more := stream.recv(65536):
        for event in connection.receive_data(more):
            if isinstance(event, h2.events.ResponseReceived):
                status = int(dict(event.headers)[":status"])
                answer += "".join(f"{name}: {value}\n" for name, value in event.headers)
            elif isinstance(event, h2.events.DataReceived):
                connection.acknowledge_received_data(event.flow_controlled_length, 1)
                answer += event.data.decode("latin-1")
            elif isinstance(event, h2.events.StreamReset):
                return {"status": status, "error": f"reset {event.error_code}", "answer": answer}
            elif isinstance(event, h2.events.ConnectionTerminated):
                return {"status": status, "error": f"end {event.error_code}", "answer": answer}
            elif isinstance(event, h2.events.StreamEnded):
                return {"status": status, "answer": answer}
        stream.sendall(connection.data_to_send())
    return {"status": status, "error": "closed", "answer": answer}


def say(entry):
    try:
        with connect(entry) as stream:
            stream.settimeout(60)
            if "raw" in entry:
                return talk1(stream, entry["raw"])
            return talk2(stream, entry["headers"], entry.get("body", []))
    except OSError as error:
        return {"status": 0, "error": str(error), "answer": ""}


with open(sys.argv[1], encoding="utf-8") as file:
    for entry in json.load(file):
        print(json.dumps(say(entry)), flush=True)
