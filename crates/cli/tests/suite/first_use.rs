//! A network that is served when the command first uses it.

use ringfence_testkit::{Folder, Program, Started, is_root, wait_until};
use rustix::process::{Pid, Resource, Rlimit};

use super::arena::Arena;
use super::internet::Online;
use super::{inside_with, ringfence, under_filter};

const OPEN: [&str; 2] = ["--allow", "web.example.org:80"];

/// Python that says how many sockets listen before and after `made`.
fn listeners_around(made: &str) -> String {
    format!(
        r#"python3 -c '
import ctypes, socket
libc = ctypes.CDLL(None)
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
fn nobody_listens_for_a_command_that_uses_no_network() {
    let folder = Folder::new();
    for made in [
        "",
        "socket.socket()",
        "socket.socket(socket.AF_UNIX).bind(\"name\")",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).bind((0, 0))",
    ] {
        let script = listeners_around(made);
        let outcome = inside_with(folder.path(), &OPEN, &script).expect_code(0);
        assert_eq!(outcome.stdout, "0 0\n", "{made}");
    }
}

#[test]
fn whichever_use_is_the_first_finds_the_network_served() {
    let folder = Folder::new();
    for used in [
        "socket.socket().connect_ex((\"127.0.0.1\", 1))",
        "socket.socket(socket.AF_INET6).connect_ex((\"::1\", 1))",
        "socket.socket().connect_ex((\"192.0.2.1\", 443))",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect((\"192.0.2.1\", 53))",
        "socket.socket().bind((\"127.0.0.1\", 0))",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).bind((\"::\", 0))",
        "libc.bind(socket.socket().detach(), bytes(16), 16)",
    ] {
        for level in ["off", "network", "standard", "security", "all"] {
            let flags = [&OPEN[..], &["--audit", level]].concat();
            let outcome = inside_with(folder.path(), &flags, &listeners_around(used));
            // Two proxies, and where everything else goes.
            assert_eq!(outcome.expect_code(0).stdout, "0 3\n", "{used} at {level}");
        }
    }
}

#[test]
fn a_port_of_ours_is_never_free_to_be_taken() {
    let folder = Folder::new();
    let script = r#"python3 -c '
import socket
for port in (3128, 1080):
    for address in ("127.0.0.1", ""):
        try:
            socket.socket().bind((address, port))
            print("taken", port)
        except OSError as error:
            print(error.errno)
'"#;
    let outcome = inside_with(folder.path(), &OPEN, script).expect_code(0);
    assert_eq!(outcome.stdout, "98\n98\n98\n98\n");
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
    let run = Held::new("echo 1; ./attack tcp 127.0.0.1 9; echo 2");
    // Fewer than are open, and no fewer than are waited for at once: `poll` takes
    // no more than the limit.
    run.limit(Resource::Nofile, Some(6));
    run.go();
    let outcome = run.command.finish().expect_code(125);
    // Who waits for it is ended, and does not see an error.
    assert_eq!(outcome.stdout, "1\n");
    // Whichever descriptor is the first that cannot be had.
    let codes = ["egress-unavailable", "setup-failed"];
    let is_told = codes.iter().any(|code| outcome.stderr.contains(code));
    assert!(is_told, "{}", outcome.stderr);
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
def bind():
    socket.socket().bind(("127.0.0.1", 0))
    made.append(1)
child = os.fork()
if child == 0:
    bind()
    os._exit(1)
threads = [threading.Thread(target=bind) for _ in range(40)]
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
fn who_comes_first_waits_while_there_is_no_process_to_serve_the_network() {
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

/// Root's processes are not limited so.
#[test]
fn who_waited_for_long_may_try_again() {
    if is_root() {
        return;
    }
    let script = r#"python3 -c '
import os, socket, time
while True:
    tried = socket.socket().connect_ex(("127.0.0.1", 1))
    print(os.strerror(tried), flush=True)
    if tried != 11:
        break
    open("tried", "w").close()
    time.sleep(0.1)
' | uniq"#;
    let run = Held::new(script);
    run.limit(Resource::Nproc, Some(1));
    run.go();
    assert!(wait_until(|| run.arena.folder.has("tried")));
    run.limit(Resource::Nproc, None);
    let outcome = run.command.finish().expect_code(0);
    let expected = "Resource temporarily unavailable\nConnection refused\n";
    assert_eq!(outcome.stdout, expected);
}

/// A filter that refuses `setns`.
const WITHOUT_SETNS: &str = "[
    (LOAD, 0, 0, 0), (EQUAL, 0, 1, SETNS),
    (RETURN, 0, 0, ERRNO | 1), (RETURN, 0, 0, ALLOW),
]";

#[test]
fn g10_where_no_namespace_can_be_entered_nothing_runs_with_a_network() {
    let folder = Folder::new();
    let binary = ringfence().path();
    let filtered = under_filter(WITHOUT_SETNS);
    let run = |flags: &[&str]| {
        let words = ["-c", &filtered, binary.to_str().unwrap(), "run"];
        let command = ["--", "touch", "ran"];
        Program::new("/usr/bin/python3")
            .args(words.iter().chain(flags).chain(&command).copied())
            .folder(folder.path())
            .run()
    };
    for flags in [&OPEN[..], &[]] {
        let refused = run(flags).expect_code(125);
        for part in ["setns", "--no-network"] {
            assert!(refused.stderr.contains(part), "{}", refused.stderr);
        }
        assert!(!folder.has("ran"));
    }
    run(&["--no-network"]).expect_code(0);
    assert!(folder.has("ran"));
}
