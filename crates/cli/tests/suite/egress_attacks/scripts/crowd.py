"""Three hundred clients that never come to their point, or do so byte by byte,
and one that does at once."""
import os, socket, subprocess, sys, threading, time

way = sys.argv[1]
held, failed = [], []
# curl would take "try again" for "under way".
NEIGHBOUR = """import urllib.request
open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
print(open("http://web.example.org/bytes/5", timeout=60).status)"""


def hold(count, place, said):
    for _ in range(count):
        stream = socket.create_connection(place, 60)
        stream.sendall(said)
        held.append(stream)


def spell(count, place, said):
    """Says one byte of each after the other; the last ones by themselves."""
    hold(count, place, b"")
    mine = held[-count:]
    for stream in mine:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(len(said) - 1):
        for stream in mine:
            stream.sendall(said[at : at + 1])
        if at % 10 == 0:
            # Whatever has come is read meanwhile.
            subprocess.run([sys.executable, "-c", NEIGHBOUR], check=True, stdout=subprocess.DEVNULL)
    for stream in mine:
        stream.sendall(said[-1:])
    return sum(stream.recv(4096).startswith(b"HTTP/1.1 204 ") for stream in mine)


def wait_in_vain(place):
    stream = socket.socket()
    held.append(stream)
    try:
        stream.connect(place)
    except OSError:
        failed.append(stream)


def under_way(port):
    """How many connections to the port are being made or were refused."""
    lines = [line.split() for line in open("/proc/net/tcp").read().splitlines()[1:]]
    return len(failed) + sum(line[2].endswith(f":{port:04X}") for line in lines)


if way == "slow":
    address = socket.gethostbyname("web.example.org")
    hold(50, ("127.0.0.1", 3128), b"GET http://web.example.org/ HT")
    hold(50, ("127.0.0.1", 1080), b"\5")
    hold(50, (address, 80), b"GET / HTTP/1.1\r\nHost: ")
    hold(50, (address, 443), b"\x16\x03\x01\x02\x00\x01")
    hold(50, ("192.0.2.53", 53), b"\0")
    hold(50, (address, 80), b"")
elif way == "spelling":
    address = socket.gethostbyname("web.example.org")
    rest = b"/status/204 HTTP/1.1\r\nHost: web.example.org\r\n\r\n"
    print(spell(150, (address, 80), b"GET " + rest))
    print(spell(150, ("127.0.0.1", 3128), b"GET http://web.example.org" + rest), flush=True)
else:
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    place = full.getsockname()
    for _ in range(300):
        threading.Thread(target=wait_in_vain, args=[place], daemon=True).start()
    # Where only some may wait at a time, the others never get there.
    end = time.monotonic() + 5
    while under_way(place[1]) < 300 and time.monotonic() < end:
        time.sleep(0.01)

os._exit(subprocess.run([sys.executable, "-c", NEIGHBOUR]).returncode)
