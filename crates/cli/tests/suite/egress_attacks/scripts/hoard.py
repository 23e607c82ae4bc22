"""Has the way out hold as much as it will, and says so; then asks as anybody does.

Whatever is opened is neither read nor finished. Once nothing moves any more the
file `held` is there; when there is `go`, all is closed."""
import array, fcntl, os, resource, socket, ssl, struct, subprocess, sys, termios, time

WEB = "web.example.org"
OPEN = "open.example.org"
HUGE = 1 << 30
NAP = 0.05

way = sys.argv[1]
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
context = ssl.create_default_context()
held = []


def dial(port, address=None):
    stream = socket.socket()
    # What is not read shall wait with whoever passes it on.
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    # Less than those wait who find no room: then no more are taken.
    stream.settimeout(5)
    stream.connect((address or WEB, port))
    return stream


def secured(*protocols):
    one = ssl.create_default_context()
    one.set_alpn_protocols(list(protocols))
    return one.wrap_socket(dial(443), server_hostname=WEB)


def say(stream, *pieces):
    """As much as is taken."""
    stream.settimeout(0.5)
    try:
        for piece in pieces:
            stream.sendall(piece)
    except OSError:
        pass
    held.append(stream)


def many(count, one):
    """Until no more are taken."""
    for _ in range(count):
        try:
            one()
        except OSError:
            return


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    """A string of HPACK, as it is."""
    length, rest = len(value), b""
    if length < 127:
        return bytes([length]) + value
    length -= 127
    while length > 127:
        rest += bytes([length % 128 + 128])
        length //= 128
    return b"\x7f" + rest + bytes([length]) + value


def head(stream, method, path, more=b"", ends=True):
    block = method + b"\x87\x04" + text(path) + b"\x01" + text(WEB.encode()) + more
    pieces = [block[at:at + 16000] for at in range(0, len(block), 16000)]
    last = len(pieces) - 1
    for number, piece in enumerate(pieces):
        flags = (4 if number == last else 0) | (1 if ends and number == 0 else 0)
        yield frame(9 if number else 1, flags, stream, piece)


def begin_http2():
    stream = secured("h2")
    stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                   + frame(4, 0, 0, struct.pack(">HI", 4, (1 << 31) - 1))
                   + frame(8, 0, 0, struct.pack(">I", (1 << 31) - 65536)))
    return stream


def answers(count):
    ask = f"GET /bytes/{HUGE} HTTP/1.1\r\nHost: {WEB}\r\n\r\n".encode()
    many(count, lambda: say(secured("http/1.1"), ask))


def idle(count):
    """Each is answered, and kept."""
    ask = f"GET /status/204 HTTP/1.1\r\nHost: {WEB}\r\n\r\n".encode()
    for _ in range(count):
        stream = secured("http/1.1")
        stream.sendall(ask)
        assert stream.recv(4096).startswith(b"HTTP/1.1 204 "), f"{len(held)} were answered"
        held.append(stream)


def streams(count):
    def one():
        ask = b"".join(b"".join(head(2 * n + 1, b"\x82", b"/bytes/%d" % HUGE)) for n in range(100))
        say(begin_http2(), ask)
    many(count, one)


def heads(count):
    """Requests with large heads that do not end."""
    more = b"".join(b"\x00" + text(b"x-%d" % n) + text(b"x" * 14000) for n in range(4))

    def one():
        asks = (b"".join(head(2 * n + 1, b"\x83", b"/", more, False)) for n in range(100))
        say(begin_http2(), *asks)
    many(count, one)


def sockets(count):
    """WebSockets that send and do not read."""
    ask = (f"GET /socket HTTP/1.1\r\nHost: {WEB}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode()
    message = b"\x82\xfe\xff\xff\0\0\0\0" + b"x" * 65535
    many(count, lambda: say(secured("http/1.1"), ask, *[message] * 16))


def tunnels(count):
    ask = f"GET /bytes/{HUGE} HTTP/1.1\r\nHost: {OPEN}\r\n\r\n".encode()
    many(count, lambda: say(dial(80, OPEN), ask))


def lines(count):
    """Heads without an end, and bodies with much behind their end."""
    line = f"GET http://{OPEN}/ HTTP/1.1\r\nHost: {OPEN}\r\n".encode()
    many(count // 2, lambda: say(dial(3128, "127.0.0.1"), line + b"X: y\r\n" * 10000))
    post = f"POST http://{OPEN}/events/never HTTP/1.1\r\nHost: {OPEN}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n".encode()
    rest = b"hello\r\n0\r\n\r\n" + b"GET / HTTP/1.1\r\n" * 30000
    many(count // 2, lambda: say(dial(3128, "127.0.0.1"), post, rest))


def questions(count):
    many(count, lambda: say(dial(53, "192.0.2.53"), b"\x0f\xff" + b"x" * 4000))


def everything(count):
    for one in (questions, lines, tunnels, sockets, heads, streams, answers):
        one(count)


def spent(count):
    """While all is held, whoever asks is told that there is no room."""
    streams(count)
    for protocol in ("--http1.1", "--http2"):
        url = f"https://{WEB}/status/204"
        asked = ["curl", "--noproxy", "*", "-sS", "-i", "--max-time", "60", protocol, url]
        told = subprocess.run(asked, stdout=subprocess.PIPE, text=True).stdout.lower()
        assert " 503" in told.partition("\n")[0], told
        assert "x-ringfence-reason: memory-budget" in told, told


def events(count):
    """Streams of events that go on, as many programs have one; others are answered meanwhile."""
    for number in range(count):
        stream = secured("http/1.1")
        stream.settimeout(60)
        stream.sendall(f"GET /events/{number} HTTP/1.1\r\nHost: {WEB}\r\n\r\n".encode())
        held.append(stream)
    for number, stream in enumerate(held):
        answer = b""
        while b"data:" not in answer:
            answer += stream.recv(4096) or exit(f"stream {number}: {answer}")
        assert answer.startswith(b"HTTP/1.1 200 "), answer
    with secured("http/1.1") as stream:
        stream.sendall(f"GET /status/204 HTTP/1.1\r\nHost: {WEB}\r\n\r\n".encode())
        assert stream.recv(4096).startswith(b"HTTP/1.1 204 "), "an ordinary request was not answered"


def waiting():
    """How much has come that nobody reads."""
    total = 0
    for stream in held:
        count = array.array("i", [0])
        fcntl.ioctl(stream.fileno(), termios.FIONREAD, count)
        total += count[0]
    return total


globals()[way](int(sys.argv[2]))
quiet, before = 0, -1
while quiet < 20:
    time.sleep(NAP)
    now = waiting()
    quiet, before = (quiet + 1 if now == before else 0), now
open("held", "w").write(str(len(held)))
while not os.path.exists("go"):
    time.sleep(NAP)
for stream in held:
    stream.close()
for protocol in ("http/1.1", "h2"):
    with secured(protocol) as stream:
        if protocol == "h2":
            stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
            stream.sendall(b"".join(head(1, b"\x82", b"/status/204")))
            answer = b""
            while b"\x89" not in answer and b"204" not in answer:
                answer += stream.recv(4096) or exit("closed")
        else:
            stream.sendall(f"GET /status/204 HTTP/1.1\r\nHost: {WEB}\r\n\r\n".encode())
            assert stream.recv(4096).startswith(b"HTTP/1.1 204 "), "no answer"
print("served")
