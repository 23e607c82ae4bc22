"""Says what attacks.json lists, each over a connection of its own, all at once.
A part without words waits for what the server says."""
import json, socket, sys, threading

HTTP, SOCKS = ("127.0.0.1", 3128), ("127.0.0.1", 1080)


def answer(stream, enough):
    """Reads no further: what follows may be waited for."""
    said = b""
    while not enough(said):
        more = stream.recv(1)
        if not more:
            break
        said += more
    return said


def tunnel(host, port):
    stream = socket.create_connection(HTTP, 60)
    stream.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
    answer(stream, lambda said: b"\r\n\r\n" in said)
    return stream


def socks(kind, host, port):
    stream = socket.create_connection(SOCKS, 60)
    stream.sendall(b"\5\1\0")
    answer(stream, lambda said: len(said) >= 2)
    place = host if kind else bytes([len(host)]) + host
    stream.sendall(b"\5\1\0" + bytes([kind or 3]) + place + port.to_bytes(2, "big"))
    answer(stream, lambda said: len(said) >= 10)
    return stream


def connection(way, host, port):
    if way == "connect":
        return tunnel(host, port)
    if way == "socks":
        return socks(0, bytes.fromhex(host), port)
    if way == "socks4":
        return socks(1, socket.inet_pton(socket.AF_INET, host), port)
    if way == "socks6":
        return socks(4, socket.inet_pton(socket.AF_INET6, host), port)
    return socket.create_connection((host, port), 60)


def attack(one):
    try:
        stream = connection(one["way"], one["host"], one["port"])
        for part in one["says"]:
            stream.sendall(bytes.fromhex(part)) if part else stream.recv(4096)
        stream.shutdown(socket.SHUT_WR)
        while stream.recv(4096):
            pass
    except OSError:
        pass


if __name__ == "__main__":
    threads = [threading.Thread(target=attack, args=[one]) for one in json.load(open(sys.argv[1]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
