"""The namespaces of a small internet, and sockets made in them on request.

Started as (mapped) root in fresh network and mount namespaces, which become
the "host"; the "world" is a second network namespace behind a pair of virtual
cables. Standard input is a socket to the test: it carries the requests, and
when it closes everything here ends.
"""

import ctypes
import json
import os
import signal
import socket
import struct
import sys

MS_BIND_RECURSIVE = 0x1000 | 0x4000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
SO_ATTACH_FILTER = 26
ETH_P_IP = 0x0800
ETH_P_IPV6 = 0x86DD

LIBC = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def bind(source, place):
    paths = (source.encode(), place.encode())
    mounted = LIBC.mount(*paths, None, ctypes.c_ulong(MS_BIND_RECURSIVE), None)
    check(mounted, f"mount {place}")


def ip(*arguments):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    code = os.spawnvpe(os.P_WAIT, "ip", ["ip", *arguments], {"PATH": path})
    if code != 0:
        raise OSError(f"`ip {' '.join(arguments)}` ended with {code}")


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def child(namespace, prepare, work):
    """A process in a new namespace that ends with this one; its id."""
    parent = os.getpid()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        check(LIBC.unshare(namespace), "unshare")
        prepare()
        os.write(writer, b"!")
        work()
        os._exit(0)
    os.close(writer)
    if os.read(reader, 1) != b"!":
        raise OSError("a process could not have its namespace")
    os.close(reader)
    return pid


def listening(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    made.bind((address, int(port)))
    made.listen(1024)
    return made


def datagrams(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.bind((address, int(port)))
    return made


def dialling(version):
    family = socket.AF_INET6 if version == "6" else socket.AF_INET
    return socket.socket(family, socket.SOCK_STREAM)


# Classic BPF (code, jump if true, jump if false, value): everything but TCP
# segments that do not open a connection, so that a long download is no flood.
OPENING_V4 = [
    (0x30, 0, 0, 9),  # protocol
    (0x15, 0, 7, 6),  # not TCP: keep
    (0x28, 0, 0, 6),  # a later fragment: keep
    (0x45, 5, 0, 0x1FFF),
    (0xB1, 0, 0, 0),  # skip the header
    (0x50, 0, 0, 13),  # flags
    (0x54, 0, 0, 0x12),
    (0x15, 1, 0, 0x02),  # SYN without ACK: keep
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 256),
]
OPENING_V6 = [
    (0x30, 0, 0, 6),
    (0x15, 0, 4, 6),
    (0x30, 0, 0, 53),
    (0x54, 0, 0, 0x12),
    (0x15, 1, 0, 0x02),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 256),
]


def capturing(device, version):
    """Packets that arrive at `device`, from their IP header on."""
    protocol, program = {"4": (ETH_P_IP, OPENING_V4), "6": (ETH_P_IPV6, OPENING_V6)}[version]
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    )
    made = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    attached = struct.pack("HP", len(program), ctypes.addressof(code))
    made.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attached)
    made.bind((device, protocol))
    return made


MAKERS = {
    "listen": listening,
    "datagrams": datagrams,
    "dial": dialling,
    "capture": capturing,
}


def serve(channel):
    while request := channel.recv(4096):
        maker, *arguments = request.decode().split()
        try:
            made = MAKERS[maker](*arguments)
        except OSError as error:
            channel.send(str(error).encode())
            continue
        socket.send_fds(channel, [b"ok"], [made.fileno()])
        made.close()


def network_of(process):
    """The network namespace of a process; None when it is gone or another's."""
    try:
        return os.stat(f"/proc/{process}/ns/net").st_ino
    except OSError:
        return None


def end_programs(networks, spared):
    """Ends what runs in these networks, and what that starts meanwhile."""
    for _ in range(100):
        processes = (int(name) for name in os.listdir("/proc") if name.isdigit())
        left = [one for one in processes if one not in spared and network_of(one) in networks]
        if not left:
            return
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass


def start_world(settings):
    """The other network namespace: its process, and the channel to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def switch():
        for path, text in settings["switches"]:
            write(path, text)

    def work():
        theirs.recv(16)
        ip("-batch", settings["world"])
        theirs.send(b"ready")
        serve(theirs)

    return child(CLONE_NEWNET, switch, work), ours


def start_user(user, group):
    """A user namespace in which (mapped) root is an ordinary user again."""

    def map_ids():
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} 0 1")
        write("/proc/self/gid_map", f"{group} 0 1")

    return child(CLONE_NEWUSER, map_ids, signal.pause)


def main():
    # A signal to the test's whole group must not hinder the cleaning up.
    os.setsid()
    settings = json.loads(sys.argv[1])
    for source, place in settings["binds"]:
        bind(source, place)
    world, channel = start_world(settings)
    ip(*settings["cable"], "netns", str(world))
    ip("-batch", settings["host"])
    channel.send(b"wired")
    if channel.recv(16) != b"ready":
        raise OSError("the world did not become ready")
    pids = {"host": os.getpid(), "world": world}
    if settings["ids"]:
        pids["user"] = start_user(*settings["ids"])
    test = socket.socket(fileno=0)
    socket.send_fds(test, [json.dumps(pids).encode()], [channel.fileno()])
    channel.close()
    networks = {network_of(pids["host"]), network_of(world)} - {None, network_of(os.getppid())}
    serve(test)
    end_programs(networks, pids.values())


main()
