//! Inside a sandbox that has the listener for system calls: refused, or, by
//! name, run in a form in which what nobody judges is not possible (G10).

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};

use ringfence_policy::AuditLevel;
use ringfence_runtime::Report;
use ringfence_testkit::{Folder, Outcome, Program, sh};
use serde_json::Value;

use super::arena::{Arena, refused, state};
use super::internet::Online;
use super::ringfence;

/// Becomes its arguments under a filter that allows everything and has a
/// listener, which lasts as long as whoever holds it.
const UNDER_A_LISTENER: &str = r#"
import ctypes, os, platform, struct, sys
RETURN, ALLOW = 0x06, 0x7fff0000
SECCOMP = {"x86_64": 317, "aarch64": 277}[platform.machine()]
SET_MODE_FILTER, NEW_LISTENER = 1, 1 << 3
buffer = ctypes.create_string_buffer(struct.pack("HBBI", RETURN, 0, 0, ALLOW))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
loaded = Filter(1, ctypes.addressof(buffer))
listener = libc.syscall(SECCOMP, SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(loaded))
assert listener >= 0, os.strerror(ctypes.get_errno())
os.set_inheritable(listener, True)
os.execv(sys.argv[1], sys.argv[1:])
"#;

const PYTHON: &str = "/usr/bin/python3";
const LEVELS: [&str; 5] = ["off", "network", "standard", "security", "all"];

/// The words that start the binary under somebody else's listener.
fn under_a_listener(words: &[&str]) -> Vec<String> {
    let binary = ringfence().path();
    let binary = binary.to_str().expect("a path in Unicode");
    let start = ["-c", UNDER_A_LISTENER, binary];
    let all = start.iter().chain(words);
    all.map(|word| (*word).to_owned()).collect()
}

/// `ringfence run FLAGS -- sh -c SCRIPT` in `folder`, under a listener.
fn nested(folder: &Folder, flags: &[&str], script: &str) -> Program {
    let words = [&["run"], flags, &["--", "sh", "-c", script]].concat();
    Program::new(PYTHON)
        .args(under_a_listener(&words))
        .folder(folder)
}

/// The same, accepting to have no listener.
fn weaker(folder: &Folder, flags: &[&str], script: &str) -> Outcome {
    let flags = [&["--weaker", "listener"], flags].concat();
    nested(folder, &flags, script).run()
}

fn reported(report: &Folder) -> Report {
    serde_json::from_str(&report.read("report.json")).expect("a report")
}

#[test]
fn g10_a_listener_of_somebody_else_means_refusal_with_the_way_out() {
    let folder = Folder::new();
    for level in LEVELS {
        let outcome = nested(&folder, &["--audit", level], "touch made").run();
        let outcome = outcome.expect_code(125);
        for part in ["error[listener-taken]", "hint: ", "--weaker listener"] {
            assert!(outcome.stderr.contains(part), "{level}: {}", outcome.stderr);
        }
        assert!(folder.listing().is_empty(), "{level}: it was run");
    }
    let doctor = Program::new(PYTHON).args(under_a_listener(&["doctor"]));
    let told = doctor.run().stdout;
    assert!(told.contains("--weaker listener"), "{told}");
}

#[test]
fn g10_accepting_it_changes_nothing_where_there_is_no_other_listener() {
    let (folder, place) = (Folder::new(), Folder::new());
    let report = place.join("report.json");
    ringfence()
        .args(["run", "--weaker", "listener", "--report"])
        .args([&report])
        .args(["--", "sh", "-c", "touch made; touch .bashrc"])
        .folder(&folder)
        .run();
    assert_eq!(folder.listing(), ["made"]);
    let report = reported(&place);
    assert_eq!(report.audit.effective, AuditLevel::Standard);
    assert_eq!(
        (report.audit.level, report.audit.reason),
        (AuditLevel::Standard, None)
    );
    assert!(
        report
            .refusals
            .iter()
            .any(|one| one.subject.ends_with(".bashrc"))
    );
}

/// What the attacks below find in their folder.
const PREPARED: &str = "echo old > file; mkdir d; ln -s file link";

/// Each changes something in the working folder.
const CHANGES: &[&str] = &[
    "echo new > file",
    "echo new >> file",
    "echo new > link",
    "echo new > /proc/self/cwd/made",
    "exec 5< file; echo new > /proc/self/fd/5",
    "touch made",
    "touch -d 2001-01-01 file",
    "mkdir made",
    "mkfifo made",
    "mv file made",
    "ln file made",
    "ln -s file made",
    "rm file",
    "rmdir d",
    "chmod 777 file",
    "chmod 777 .",
    "exec 5< file; chmod 777 /proc/self/fd/5",
    "./attack fchmod file 0777",
    "./attack truncate file",
    "./attack nameless . made",
    "touch .bashrc",
    "mkdir .vscode",
    "mkdir -p .git/hooks",
];

#[test]
fn g4_without_a_listener_nothing_of_the_host_can_be_changed() {
    for attack in CHANGES {
        let outside = Arena::prepared(PREPARED);
        outside.outside(attack).expect_code(0);
        let arena = Arena::prepared(PREPARED);
        let before = state(arena.folder.path());
        refused(attack, weaker(&arena.folder, &[], attack));
        assert_eq!(state(arena.folder.path()), before, "`{attack}`");
    }
}

#[test]
fn g4_without_a_listener_other_writable_places_are_only_shown() {
    let (folder, place) = (Folder::new(), Folder::durable());
    place.write("old", "words");
    let (flags, path) = (["--write", place.text()], place.text());
    weaker(&folder, &flags, &format!("cat {path}/old")).expect_code(0);
    for attack in ["touch $P/made", "echo more >> $P/old", "rm $P/old"] {
        let attack = attack.replace("$P", path);
        refused(&attack, weaker(&folder, &flags, &attack));
    }
    assert_eq!(
        (place.listing(), place.read("old")),
        (vec!["old".to_owned()], "words".to_owned())
    );
}

#[test]
fn g4_without_a_listener_a_pipe_of_the_host_cannot_be_written_to() {
    let folder = Folder::durable();
    let attack = format!("{PYTHON} -c 'import os; os.open(\"pipe\", os.O_RDWR)'");
    sh("mkfifo pipe", folder.path()).expect_code(0);
    sh(&attack, folder.path()).expect_code(0);
    refused(&attack, weaker(&folder, &[], &attack));
}

#[test]
fn without_a_listener_private_folders_are_writable() {
    let folder = Folder::new();
    let script = "set -e; cd /tmp; echo a > f; mv f g; ln g h; ln -s g s; chmod 700 g; mkfifo p
        mkdir d; rmdir d; truncate -s 5 g; touch .bashrc; mkdir -p .git/hooks; rm h
        echo b > /dev/shm/x; echo c > /var/tmp/x; echo d > /dev/null; cat s /dev/shm/x /var/tmp/x";
    let outcome = weaker(&folder, &[], script).expect_code(0);
    assert!(outcome.stdout.ends_with("b\nc\n"), "{}", outcome.stdout);
}

#[test]
fn g4_without_a_listener_files_that_are_streams_stay_as_they_are() {
    let (folder, place) = (Folder::new(), Folder::new());
    let text = "0123456789abcdef".repeat(1 << 16);
    place.write("in", &text);
    for name in ["in", "out", "err"] {
        let file = place.join(name);
        File::options()
            .create(true)
            .append(true)
            .open(&file)
            .expect("a file");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("its mode");
    }
    let open = |name| {
        File::options()
            .read(true)
            .append(true)
            .open(place.join(name))
    };
    let change = "import os\nfor one in range(3): os.fchmod(one, 0o777)";
    let script = format!(
        "cat; {PYTHON} -c '{change}'; for one in 0 1 2; do chmod 777 /proc/self/fd/$one; done; :"
    );
    let streams = |program: Program| {
        program.with(|command| {
            command.stdin(open("in").expect("a file"));
            command.stdout(open("out").expect("a file"));
            command.stderr(open("err").expect("a file"));
        })
    };
    let flags = ["--weaker", "listener"];
    streams(nested(&folder, &flags, &script))
        .run()
        .expect_code(0);
    assert!(place.read("out") == text, "what was written did not arrive");
    let mode = |name| {
        place
            .join(name)
            .metadata()
            .expect("a file")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(["in", "out", "err"].map(mode), [0o644; 3]);
    // Outside, whoever holds a file can do that.
    let outside = Program::new("sh").args(["-c", &script]).folder(&folder);
    streams(outside).run().expect_code(0);
    assert_eq!(["in", "out", "err"].map(mode), [0o777; 3]);
}

#[test]
fn g1_without_a_listener_there_are_no_unix_sockets_but_pairs() {
    let arena = Arena::new();
    let _server = UnixListener::bind(arena.folder.join("stream")).expect("a socket");
    let _datagrams = UnixDatagram::bind(arena.folder.join("datagram")).expect("a socket");
    for attack in [
        "./attack unix-connect stream",
        "./attack unix-send datagram",
    ] {
        arena.outside(attack).expect_code(0);
        let outcome = refused(attack, weaker(&arena.folder, &[], attack));
        assert_eq!(outcome.stdout, "EPERM\n", "{attack}");
    }
    let attack = "./attack socket 0x100000001 1 0";
    refused(attack, weaker(&arena.folder, &[], attack));
    let pairs = r#"
import socket
near, far = socket.socketpair()
near.send(b"words"); assert far.recv(9) == b"words"
for one in (near, far):
    try: one.connect("stream"); print("connected")
    except OSError: pass
far.close()
try: near.connect("stream"); print("connected")
except OSError: pass
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
print("done")"#;
    let outcome = weaker(&arena.folder, &[], &format!("{PYTHON} -c '{pairs}'"));
    assert_eq!(outcome.expect_code(0).stdout, "done\n");
}

#[test]
fn g4_without_a_listener_the_kernel_refuses_the_same_calls() {
    let arena = Arena::prepared("mkdir d");
    for (attack, error) in [
        ("unshare 0x10000000", "EPERM"),
        ("setns /proc/self/ns/net", "EPERM"),
        ("clone 0x10000000", "EPERM"),
        ("clone3 0x10000000", "ENOSYS"),
        ("io-uring", "EPERM"),
        ("bpf", "EPERM"),
        ("keyctl", "EPERM"),
        ("mount d", "EPERM"),
        ("open-tree d", "EPERM"),
        ("chroot d", "EPERM"),
        ("openat2 /tmp/made", "ENOSYS"),
        ("fchmod /tmp 04777", "EPERM"),
        ("attach 1", "EPERM"),
    ] {
        let attack = format!("./attack {attack}");
        let outcome = refused(&attack, weaker(&arena.folder, &[], &attack));
        assert_eq!(outcome.stdout, format!("{error}\n"), "`{attack}`");
    }
}

#[test]
fn g9_without_a_listener_limits_hold() {
    let (folder, place) = (Folder::new(), Folder::new());
    let report = place.join("report.json");
    let report = report.to_str().expect("a path in Unicode");
    let fill = "head -c 4M /dev/zero > /tmp/x; head -c 4M /dev/zero > /dev/shm/x; du -ckx /tmp /dev/shm | tail -n 1";
    let outcome = weaker(&folder, &["--disk", "1MiB", "--report", report], fill);
    let kept = outcome.expect_code(0).stdout;
    let kept: u64 = kept
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a size");
    assert!(kept <= 1024, "{kept} KiB");
    let told = reported(&place);
    let disk = told
        .limits
        .iter()
        .find(|limit| limit.limit == "disk")
        .expect("a limit");
    assert_eq!(
        (disk.mechanism.as_str(), disk.peak),
        ("tmpfs", Some(1 << 20))
    );
    assert!(
        told.limits_hit.iter().any(|hit| hit.limit == "disk"),
        "{told:?}"
    );
    weaker(&folder, &["--time", "100ms"], "exec sleep 1000").expect_code(124);
    let outcome = weaker(&folder, &["--output", "1KiB"], "yes").expect_code(137);
    assert_eq!(outcome.stdout.len(), 1024);
    let hungry = format!("{PYTHON} -c 'x = bytearray(512 << 20)'");
    weaker(&folder, &["--memory", "64MiB"], &hungry).expect_code(137);
}

/// Everything on record below `state`.
fn events(state: &Folder) -> Vec<Value> {
    let text = state.read("ringfence/audit/audit.jsonl");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect()
}

#[test]
fn g1_g7_without_a_listener_the_network_is_judged_and_recorded() {
    let (online, state) = (Online::new(), Folder::new());
    let run = |script: &str| {
        let allowed = ["--weaker", "listener", "--allow", "web.example.org"];
        let words = [&["run"][..], &allowed, &["--", "sh", "-c", script]].concat();
        let program = online.net.program(PYTHON).args(under_a_listener(&words));
        let program = program.env("XDG_STATE_HOME", state.path());
        program.folder(online.arena.folder.path()).run()
    };
    for client in ["curl -sS -f -m 20", "curl -sS -f -m 20 --noproxy '*'"] {
        run(&format!("{client} -o /tmp/page http://web.example.org/")).expect_code(0);
        online.net.forget();
        let refused = run(&format!("{client} http://other.test/"));
        assert_eq!(refused.code(), 22, "{refused:?}");
        assert_eq!(online.net.packets(), Vec::<String>::new());
    }
    let events = events(&state);
    let decided = |host: &str, verdict: &str| {
        let is_that = |event: &&Value| event["host"] == host && event["verdict"] == verdict;
        let decisions = events.iter().filter(|event| event["kind"] == "decision");
        decisions.filter(is_that).count()
    };
    assert!(decided("web.example.org", "allowed") >= 2, "{events:?}");
    assert!(decided("other.test", "refused") >= 2, "{events:?}");
}

#[test]
fn g7_a_run_without_a_listener_says_so_everywhere() {
    let (folder, state) = (Folder::new(), Folder::new());
    let report = state.join("report.json");
    let report = report.to_str().expect("a path in Unicode");
    let run = |flags: &[&str]| {
        let flags = [&["--weaker", "listener", "--report", report], flags].concat();
        let program = nested(&folder, &flags, "true; true");
        program
            .env("XDG_STATE_HOME", state.path())
            .run()
            .expect_code(0)
    };
    let told = run(&[]).stderr;
    assert!(
        told.lines().count() == 1 && told.contains("nothing of the host"),
        "{told}"
    );
    assert_eq!(run(&["--quiet"]).stderr, "");
    let report = reported(&state);
    let reason = report.audit.reason.expect("a reason");
    assert!(reason.contains("listener"), "{reason}");
    assert_eq!(report.audit.level, AuditLevel::Standard);
    assert_eq!(report.audit.effective, AuditLevel::Network);
    let seccomp = report
        .enforcement
        .iter()
        .find(|layer| layer.layer == "seccomp");
    assert!(seccomp.is_some_and(|layer| layer.detail.contains("--weaker listener")));

    let kinds: Vec<Value> = events(&state)
        .into_iter()
        .map(|event| event["kind"].clone())
        .collect();
    assert_eq!(kinds, ["run-started", "run-ended", "sealed"].repeat(2));
    let started = &events(&state)[0];
    assert_eq!(
        (&started["level"], &started["reduced"]["from"]),
        (&"network".into(), &"standard".into())
    );
    let audit = |word: &str| {
        let program = ringfence().args(["audit", word]);
        program
            .env("XDG_STATE_HOME", state.path())
            .run()
            .expect_code(0)
            .stdout
    };
    assert!(
        audit("show").contains("network instead of standard"),
        "{}",
        audit("show")
    );
    audit("verify");
}
