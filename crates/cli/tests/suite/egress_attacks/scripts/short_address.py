"""Connects with the shortest address that the kernel takes, to a server that
has no time, and makes a file meanwhile."""
import ctypes, os, socket, struct, threading

own = socket.create_server(("::1", 0), family=socket.AF_INET6, backlog=0)
port = own.getsockname()[1]
held = []
for _ in range(4):
    stream = socket.socket(socket.AF_INET6)
    stream.setblocking(False)
    stream.connect_ex(("::1", port))
    held.append(stream)
address = struct.pack("=H", socket.AF_INET6) + struct.pack(">HI", port, 0)
address += socket.inet_pton(socket.AF_INET6, "::1")
assert len(address) == 24
started = threading.Event()


def connect():
    stream = socket.socket(socket.AF_INET6)
    started.set()
    ctypes.CDLL(None).connect(stream.fileno(), address, len(address))


threading.Thread(target=connect, daemon=True).start()
started.wait()
for count in range(200):
    open(f"made{count}", "w").close()
print("made", flush=True)
os._exit(0)
