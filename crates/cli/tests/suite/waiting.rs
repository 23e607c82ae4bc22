//! The command's process waits until its run is on record, and until then nothing
//! of it runs.

use ringfence_testkit::{Folder, Outcome, Program, is_root};

use super::ringfence;

/// Starts a command, by the program that the words of `starter` name, while the
/// log is kept from being written; does `meanwhile` when the command's process is
/// there, and lets the log be written. The command makes the file `ran`.
fn held_up(folder: &Folder, starter: &[&str], meanwhile: &str) -> Outcome {
    let state = folder.join("state");
    let script = r#"
import fcntl, os, signal, socket, subprocess, sys, time
def children(pid):
    threads = f"/proc/{pid}/task"
    try:
        names = [open(f"{threads}/{thread}/children").read() for thread in os.listdir(threads)]
    except OSError: # it is gone
        return []
    return [int(child) for child in " ".join(names).split()]
def running():
    words = [*sys.argv[1:], "run", "--", "sh", "-c", "echo > ran"]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
def init_with_child(supervisor):
    # For less time than the supervisor waits for the log.
    for _ in range(600):
        for init in children(supervisor.pid):
            if children(init):
                return init
        time.sleep(0.005)
assert running().wait() == 0
os.remove("ran")
lock = open(os.environ["XDG_STATE_HOME"] + "/ringfence/audit/audit.lock")
fcntl.flock(lock, fcntl.LOCK_EX)
supervisor = running()
init = init_with_child(supervisor)
for _ in range(100):
    assert not os.path.exists("ran")
    time.sleep(0.005)
"#;
    let end = r"
fcntl.flock(lock, fcntl.LOCK_UN)
_, said = supervisor.communicate(timeout=60)
print(said, file=sys.stderr)
sys.exit(supervisor.returncode % 256)
";
    let script = format!("{script}{meanwhile}{end}");
    let binary = ringfence().path().display().to_string();
    Program::new("python3")
        .args(["-c", &script])
        .args(starter.iter().copied().chain([binary.as_str()]))
        .folder(folder)
        .env("XDG_STATE_HOME", state)
        // A file there whose tokens are masked would be waited for first.
        .env("HOME", folder.path())
        .run()
}

#[test]
fn g7_the_process_of_a_command_waits_for_the_record() {
    let folder = Folder::new();
    held_up(&folder, &[], "").expect_code(0);
    assert!(folder.has("ran"));
}

#[test]
fn g7_another_word_than_the_expected_starts_nothing() {
    let folder = Folder::new();
    // To the init, as the supervisor.
    let forge = r#"
import ctypes
PIDFD_GETFD = 438
place = f"/proc/{supervisor.pid}/fd"
pidfd = os.pidfd_open(supervisor.pid)
call = ctypes.CDLL(None, use_errno=True).syscall
for number in sorted(int(name) for name in os.listdir(place)):
    if os.readlink(f"{place}/{number}").startswith("socket:"):
        copy = socket.socket(fileno=call(PIDFD_GETFD, pidfd, number, 0))
        if copy.type == socket.SOCK_SEQPACKET:
            copy.send(b'"proceed"')
            break
else:
    sys.exit("there is no channel")
"#;
    let outcome = held_up(&folder, &[], forge).expect_code(125);
    assert!(
        outcome.stderr.contains("error[setup-failed]"),
        "{}",
        outcome.stderr
    );
    assert!(!folder.has("ran"));
}

#[test]
fn g8_an_init_that_dies_meanwhile_takes_the_process_with_it() {
    let folder = Folder::new();
    let outcome = held_up(&folder, &[], "os.kill(init, signal.SIGKILL)").expect_code(125);
    for part in ["error[init-died]", "before it was ready"] {
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    }
    assert!(!folder.has("ran"));
}

#[test]
fn the_init_is_not_the_first_to_be_killed_meanwhile() {
    let compare = r#"
scores = [open(f"/proc/{process}/oom_score_adj").read() for process in ("self", init)]
assert scores[0] == scores[1], scores
"#;
    held_up(&Folder::new(), &[], compare).expect_code(0);
}

#[test]
fn a_start_needs_no_more_processes_than_its_own_and_the_commands() {
    if is_root() {
        // Whose processes are not counted.
        return;
    }
    // Where nobody else's processes count: the supervisor, the init, the command.
    let starter = [
        "unshare",
        "-U",
        "--map-current-user",
        "prlimit",
        "--nproc=3",
    ];
    let folder = Folder::new();
    held_up(&folder, &starter, "").expect_code(0);
    assert!(folder.has("ran"));
}

#[test]
fn a_starter_that_ignores_the_end_of_children_changes_nothing() {
    let folder = Folder::new();
    let script = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); \
        os.execv(sys.argv[1], sys.argv[1:])";
    let binary = ringfence().path().display().to_string();
    Program::new("python3")
        .args(["-c", script, &binary, "run", "--", "sh", "-c", "exit 7"])
        .folder(&folder)
        .run()
        .expect_code(7);
}
