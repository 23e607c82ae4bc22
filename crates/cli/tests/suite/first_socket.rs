//! A network that is set up when the command makes its first socket.

use ringfence_testkit::{Folder, Program, Started, is_root, wait_until};
use rustix::process::{Pid, Resource, Rlimit};

use super::arena::Arena;
use super::internet::Online;
use super::{inside_with, ringfence};

const OPEN: [&str; 2] = ["--allow", "web.example.org:80"];

/// Python that says how many sockets listen before and after `made`.
fn listeners_around(made: &str) -> String {
    format!(
        r#"python3 -c '
import socket
def listeners():
    lines = open("/proc/net/tcp").readlines()[1:]
    return sum(line.split()[3] == "0A" for line in lines)
before = listeners()
{made}
print(before, listeners())
'"#
    )
}

#[test]
fn nothing_is_set_up_for_a_command_that_makes_no_socket_of_a_network() {
    let folder = Folder::new();
    for made in ["", "socket.socket(socket.AF_UNIX)", "socket.socketpair()"] {
        let script = listeners_around(made);
        let outcome = inside_with(folder.path(), &OPEN, &script).expect_code(0);
        assert_eq!(outcome.stdout, "0 0\n", "{made}");
    }
}

#[test]
fn whichever_socket_is_the_first_finds_the_network_set_up() {
    let folder = Folder::new();
    for kind in [
        "socket.AF_INET",
        "socket.AF_INET6",
        "socket.AF_INET, socket.SOCK_DGRAM",
        "socket.AF_INET6, socket.SOCK_DGRAM",
        "socket.AF_NETLINK, socket.SOCK_RAW, 0",
    ] {
        for level in ["off", "network", "security", "all"] {
            let flags = [&OPEN[..], &["--audit", level]].concat();
            let script = listeners_around(&format!("socket.socket({kind})"));
            let outcome = inside_with(folder.path(), &flags, &script).expect_code(0);
            // Two proxies, and where everything else goes.
            assert_eq!(outcome.stdout, "0 3\n", "{kind} at {level}");
        }
    }
}

#[test]
fn the_first_packet_of_all_is_answered() {
    let online = Online::new();
    // Sent without `connect`, in a message whose address is in memory.
    let ask = r#"python3 -c '
import socket
name = b"".join(bytes([len(part)]) + part for part in b"web.example.org".split(b"."))
question = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + name + b"\0\0\1\0\1"
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.settimeout(20)
asking.sendmsg([question], [], 0, ("192.0.2.53", 53))
answer, server = asking.recvfrom(512)
print(answer[:2].hex(), answer[3] & 15, answer[7], server[0])
'"#;
    let outcome = online.inside_with(&OPEN, ask).expect_code(0);
    assert_eq!(outcome.stdout, "1234 0 1 192.0.2.53\n");
}

#[test]
fn all_who_come_first_at_once_get_there() {
    let online = Online::new();
    let script = r#"python3 -c '
import socket, threading
COUNT = 40
start = threading.Barrier(COUNT)
said = []
def ask():
    start.wait()
    with socket.socket() as asking:
        asking.settimeout(20)
        asking.connect(("web.example.org", 80))
        asking.sendall(b"HEAD / HTTP/1.0\r\nHost: web.example.org\r\n\r\n")
        said.append(asking.recv(12))
threads = [threading.Thread(target=ask) for _ in range(COUNT)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(said), set(said))
'"#;
    let outcome = online.inside_with(&OPEN, script).expect_code(0);
    assert_eq!(outcome.stdout, "40 {b'HTTP/1.1 200'}\n");
}

/// A run of a script that begins when a file `go` appears.
struct Held {
    arena: Arena,
    state: Folder,
    command: Started,
}

impl Held {
    fn new(script: &str) -> Self {
        let (arena, state) = (Arena::new(), Folder::new());
        let script = format!("echo > ready; until [ -e go ]; do sleep 0.01; done; {script}");
        let words = ["run"].iter().chain(&OPEN);
        let command = ringfence()
            .args(words.chain(&["--", "sh", "-c", &script]).copied())
            .env("XDG_STATE_HOME", state.path())
            .folder(arena.folder.path())
            .start();
        assert!(wait_until(|| arena.folder.has("ready")));
        Self {
            arena,
            state,
            command,
        }
    }

    /// Lets the supervisor have at most this many of something; all that it may
    /// with `None`.
    fn limit(&self, resource: Resource, most: Option<u64>) {
        let id = i32::try_from(self.command.id()).expect("a process id");
        let supervisor = Pid::from_raw(id);
        // Which it has from us.
        let maximum = rustix::process::getrlimit(resource).maximum;
        let limit = Rlimit {
            current: most.or(maximum),
            maximum,
        };
        rustix::process::prlimit(supervisor, resource, limit).expect("a limit that is set");
    }

    fn go(&self) {
        self.arena.folder.write("go", "");
    }
}

#[test]
fn g10_a_network_that_cannot_be_set_up_ends_the_run() {
    let run = Held::new("echo 1; ./attack socket 2 1 0; echo 2");
    run.limit(Resource::Nofile, Some(3));
    run.go();
    let outcome = run.command.finish().expect_code(125);
    // Who waits for it is ended, and does not see an error.
    assert_eq!(outcome.stdout, "1\n");
    assert!(
        outcome.stderr.contains("egress-unavailable"),
        "{}",
        outcome.stderr
    );
    let audit = |words: &[&str]| {
        ringfence()
            .args(["audit"].iter().chain(words).copied())
            .env("XDG_STATE_HOME", run.state.path())
            .run()
            .expect_code(0)
    };
    let shown = audit(&["show", "--json"]).stdout;
    assert!(shown.contains("network-failed"), "{shown}");
    assert!(shown.contains("./attack"), "{shown}");
    audit(&["verify"]);
}

/// Many wait, one is killed meanwhile, and the others get many signals.
const DISTURBED: &str = r#"python3 -c '
import os, signal, socket, threading, time
signal.signal(signal.SIGUSR1, lambda *_: None)
made = []
child = os.fork()
if child == 0:
    socket.socket()
    os._exit(1)
threads = [threading.Thread(target=lambda: made.append(socket.socket())) for _ in range(40)]
[thread.start() for thread in threads]
time.sleep(0.2)
for _ in range(20):
    [signal.pthread_kill(thread.ident, signal.SIGUSR1) for thread in threads if thread.is_alive()]
    time.sleep(0.002)
os.kill(child, signal.SIGKILL)
early = len(made)
open("waiting", "w").close()
[thread.join() for thread in threads]
print(early, len(made), os.waitpid(child, 0)[1])
'"#;

/// Root's processes are not limited so.
#[test]
fn sockets_wait_for_as_long_as_there_is_no_process_to_set_the_network_up() {
    if is_root() {
        return;
    }
    let run = Held::new(DISTURBED);
    run.limit(Resource::Nproc, Some(1));
    run.go();
    assert!(wait_until(|| run.arena.folder.has("waiting")));
    run.limit(Resource::Nproc, None);
    let outcome = run.command.finish().expect_code(0);
    assert_eq!(outcome.stdout, "0 40 9\n");
}

/// Becomes its arguments with a filter that knows no `setns`.
const WITHOUT_SETNS: &str = r#"
import ctypes, os, platform, struct, sys
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7fff0000, 0x00050000 | 1
SETNS = {"x86_64": 308, "aarch64": 268}[platform.machine()]
code = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, SETNS), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
buffer = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
loaded = Filter(len(code), ctypes.addressof(buffer))
assert libc.prctl(22, 2, ctypes.byref(loaded), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn g10_where_no_namespace_can_be_entered_nothing_runs_with_a_network() {
    let folder = Folder::new();
    let binary = ringfence().path();
    let run = |flags: &[&str]| {
        let words = ["-c", WITHOUT_SETNS, binary.to_str().unwrap(), "run"];
        let command = ["--", "touch", "ran"];
        Program::new("/usr/bin/python3")
            .args(words.iter().chain(flags).chain(&command).copied())
            .folder(folder.path())
            .run()
    };
    let refused = run(&OPEN).expect_code(125);
    assert!(refused.stderr.contains("setns"), "{}", refused.stderr);
    assert!(!folder.has("ran"));
    run(&[]).expect_code(0);
    assert!(folder.has("ran"));
}
