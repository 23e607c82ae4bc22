//! G11: who is at the other end of a Unix socket is told as outside.

use ringfence_testkit::{Folder, Program, sh};

use super::{inside, ringfence};

/// A server that asks about each client: by a path and by an abstract name,
/// with both kinds of sockets, from a thread, and once the client is gone.
const PROGRAM: &str = r#"
import ctypes, os, socket, struct, threading
def peer(s): return struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, 17, 12))
def client(kind, name):
    c = socket.socket(socket.AF_UNIX, kind)
    c.connect(name)
    ok = peer(c)[0] == os.getppid()
    c.send(b"y" if ok else b"n")
    c.recv(1)
    os._exit(0)
for kind in [socket.SOCK_STREAM, socket.SOCK_SEQPACKET]:
    for name in ["socket", "\0abstract%d" % os.getpid()]:
        for threaded in [False, True]:
            server = socket.socket(socket.AF_UNIX, kind)
            server.bind(name)
            server.listen()
            pid = os.fork()
            if pid == 0:
                if threaded: threading.Thread(target=client, args=(kind, name)).start()
                else: client(kind, name)
                threading.Event().wait()
            end, _ = server.accept()
            said, known = end.recv(1), peer(end)
            alive = known == (pid, os.getuid(), os.getgid())
            end.send(b"x")
            os.waitpid(pid, 0)
            gone = peer(end)[0] == pid
            short = end.getsockopt(socket.SOL_SOCKET, 17, 4) == struct.pack("i", pid)
            print(said, alive, gone, short)
            server.close()
            if name == "socket": os.unlink(name)
one, other = socket.socketpair()
print(peer(one)[0] == os.getpid(), peer(socket.socket())[0])
"#;

#[test]
fn g11_a_server_is_told_the_process_user_and_group_of_its_client() {
    let folder = Folder::new();
    folder.write("program.py", PROGRAM);
    let outside = sh("python3 program.py", folder.path()).expect_code(0);
    let expected = format!("{}True 0\n", "b'y' True True True\n".repeat(8));
    assert_eq!(outside.stdout, expected);
    let inside = inside(&folder, "python3 program.py").expect_code(0);
    assert_eq!(inside.stdout, expected, "{}", inside.stderr);
}

/// The answer goes to where the caller may write, and nowhere else.
#[test]
fn g11_an_answer_that_cannot_be_written_is_a_fault() {
    let folder = Folder::new();
    let program = r#"
import ctypes, errno, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
server = socket.socket(socket.AF_UNIX)
server.bind("socket")
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("socket")
end, _ = server.accept()
os.unlink("socket")
libc.mmap.restype = ctypes.c_void_p
shut = libc.mmap(None, 4096, 1, 0x22, -1, 0)  # PROT_READ, private, of nobody
def ask(number, address, length):
    length = None if length is None else ctypes.byref(ctypes.c_int(length))
    result = libc.getsockopt(number, 1, 17, ctypes.c_void_p(address), length)
    return errno.errorcode[ctypes.get_errno()] if result else "told"
room = ctypes.create_string_buffer(64)
at = ctypes.addressof(room)
print(ask(end.fileno(), shut, 12), ask(end.fileno(), 8, 12), ask(end.fileno(), at, None),
      ask(end.fileno(), at, -1), ask(999, at, 12), ask(0, at, 12), ask(end.fileno(), at, 60),
      bytes(room)[12:] == bytes(52))
"#;
    folder.write("program.py", program);
    let script = "python3 program.py < /dev/null";
    let outside = sh(script, folder.path()).expect_code(0).stdout;
    assert_eq!(
        outside,
        "EFAULT EFAULT EFAULT EINVAL EBADF ENOTSOCK told True\n"
    );
    assert_eq!(inside(&folder, script).expect_code(0).stdout, outside);
}

/// A client whose end is closed before anybody asked is not known, and is not
/// taken for the init.
#[test]
fn a_client_that_is_gone_before_it_was_asked_about_has_no_number() {
    let folder = Folder::new();
    let program = "import os, socket, struct\n\
        server = socket.socket(socket.AF_UNIX)\n\
        server.bind('\\0name')\n\
        server.listen()\n\
        client = socket.socket(socket.AF_UNIX)\n\
        client.connect('\\0name')\n\
        client.close()\n\
        end, _ = server.accept()\n\
        pid, uid, gid = struct.unpack('iII', end.getsockopt(socket.SOL_SOCKET, 17, 12))\n\
        print(pid, uid == os.getuid(), gid == os.getgid())\n\
        try: end.getsockopt(socket.SOL_SOCKET, 77)\n\
        except OSError as error: print(error.strerror)\n";
    folder.write("program.py", program);
    let outcome = inside(&folder, "python3 program.py").expect_code(0);
    assert_eq!(outcome.stdout, "0 True True\nProtocol not available\n");
}

/// A client of `dbus-daemon` that authenticates by its user (EXTERNAL) and asks
/// what the daemon knows of it.
const BUS: &str = r#"
import os, socket, struct, subprocess
open("bus.conf", "w").write("""<busconfig>
<listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>
<policy context="default">
<allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
</policy></busconfig>""" % os.getcwd())
start = ["dbus-daemon", "--config-file=bus.conf", "--nofork", "--nopidfile", "--print-address=1"]
daemon = subprocess.Popen(start, stdout=subprocess.PIPE)
daemon.stdout.readline()
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
s.connect("bus")
s.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
print(s.recv(99)[:3].decode())
s.sendall(b"BEGIN\r\n")
def pad(data): return data + b"\0" * (-len(data) % 8)
def text(value): return struct.pack("<I", len(value)) + value.encode() + b"\0"
def call(serial, member, argument=None):
    bus = "org.freedesktop.DBus"
    body = text(argument) if argument else b""
    items = [(1, b"o", text("/org/freedesktop/DBus")), (2, b"s", text(bus)),
             (3, b"s", text(member)), (6, b"s", text(bus))]
    if argument: items.append((8, b"g", b"\x01s\0"))
    fields = b""
    for code, kind, value in items:
        fields = pad(fields) + bytes([code, 1]) + kind + b"\0" + value
    head = b"l\x01\0\x01" + struct.pack("<III", len(body), serial, len(fields)) + fields
    s.sendall(pad(head) + body)
    while True:
        head = s.recv(16, socket.MSG_WAITALL)
        length, _, size = struct.unpack("<III", head[4:])
        rest = s.recv(size + (-size % 8) + length, socket.MSG_WAITALL)
        if head[1] in (2, 3) and b"\x05\x01u\0" + struct.pack("<I", serial) in rest:
            return rest[len(rest) - length:]
name = call(1, "Hello")[4:-1].decode()
asked = [("GetConnectionUnixProcessID", os.getpid()), ("GetConnectionUnixUser", os.getuid())]
for serial, (member, own) in enumerate(asked, 2):
    print(member, struct.unpack("<I", call(serial, member, name))[0] == own)
daemon.terminate()
daemon.wait()
"#;

#[test]
fn g11_a_message_bus_knows_its_clients() {
    let folder = Folder::new();
    folder.write("program.py", BUS);
    let expected = "OK \nGetConnectionUnixProcessID True\nGetConnectionUnixUser True\n";
    let outside = Program::new("python3").args(["program.py"]);
    let outside = outside.folder(folder.path()).run().expect_code(0);
    assert_eq!(outside.stdout, expected);
    let inside = ringfence().args(["run", "--", "python3", "program.py"]);
    let inside = inside.folder(folder.path()).run().expect_code(0);
    assert_eq!(inside.stdout, expected, "{}", inside.stderr);
}
