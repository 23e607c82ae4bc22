//! Ways to get past the record, or past what keeps it, that do not work.

use ringfence_testkit::{Folder, Outcome};

use super::{Ledger, Recorded};
use crate::suite::ringfence;

/// The programs on record, by every path that tells of them.
fn started(recorded: &Recorded) -> Vec<String> {
    let starts = recorded
        .of_kind("call")
        .filter(|call| call["action"] == "exec");
    let paths = starts.flat_map(|call| call["paths"].as_array().cloned().unwrap_or_default());
    paths
        .map(|path| path.as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn g7_a_program_by_its_descriptor_is_recorded() {
    let ledger = Ledger::new();
    let script = "cp /bin/true copy; ln -s /proc/self/fd/7 link; exec 7<copy; exec";
    for path in ["/dev/fd/7", "/proc/self/fd/7", "./link"] {
        let script = format!("{script} {path}");
        // The attempt as it was written, and the program that the kernel took.
        let written = path.replace("./link", &ledger.path("link"));
        for (level, told) in [("security", written), ("standard", ledger.path("copy"))] {
            let recorded = ledger.run(&["--audit", level], &script).expect_code(0);
            let started = started(&recorded);
            assert!(started.contains(&told), "{path} at {level}: {started:?}");
            ledger.arena.outside("rm -f link").expect_code(0);
        }
    }
}

#[test]
fn g7_what_a_search_does_not_find_is_no_start() {
    let ledger = Ledger::new();
    let script = "PATH=/none:/usr/none:$PWD:/usr/bin:/bin; true; env true; ./nothing; true";
    let recorded = ledger.run(&[], script).expect_code(0);
    let started = started(&recorded);
    assert!(
        !started
            .iter()
            .any(|path| path.contains("none") || path.ends_with("nothing")),
        "{started:?}"
    );
    let found = started.iter().any(|path| path.ends_with("/env"));
    assert!(found, "{started:?}");
}

/// Puts a path where the processor reads and the kernel says that it may only
/// be written, and starts it, or makes a file by it.
#[cfg(target_arch = "x86_64")]
const WRITE_ONLY: &str = "
import ctypes, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
path = sys.argv[2].encode() + b\"\\0\"
ctypes.memmove(page, path, len(path))
page = ctypes.c_void_p(page)
libc.mprotect(page, 4096, 2)
if sys.argv[1] == \"make\": sys.exit(libc.open(page, 0o101, 0o644) < 0)
libc.execve(page, (ctypes.c_char_p * 2)(b\"word\", None), None)
sys.exit(9)";

#[cfg(target_arch = "x86_64")]
#[test]
fn g7_g11_a_path_in_memory_that_may_only_be_written_is_read() {
    let ledger = Ledger::new();
    for level in ["off", "standard", "security", "all"] {
        let script = format!(
            "cp /bin/true copy; p() {{ python3 -c '{WRITE_ONLY}' \"$@\"; }}; \
            p make made && p start ./copy"
        );
        ledger.arena.outside(&script).expect_code(0);
        ledger.arena.outside("rm made").expect_code(0);
        let recorded = ledger.run(&["--audit", level], &script).expect_code(0);
        assert!(ledger.arena.folder.has("made"), "{level}");
        let started = started(&recorded);
        let is_told = started.contains(&ledger.path("copy"));
        assert!(level == "off" || is_told, "{level}: {started:?}");
        assert!(
            !started.iter().any(|path| path == "(unreadable)"),
            "{level}"
        );
    }
}

/// Calls with odd arguments, none of which may end the init.
const ODD: &str = "
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
least = -2**31
for call, arguments in [
    (62, (least, 0)), (129, (least, 0, 0)), (200, (least, 0)), (234, (1, least, 0)),
    (91, (-1, 0)), (42, (-1, 0, 0)), (49, (-1, 0, 0)), (285, (-1, 0, 0, 1)),
    (322, (-1, 0, 0, 0, 0)), (424, (-1, 9, 0, 0)), (257, (least, 1, 1, 0)),
    (263, (least, 0, 0)), (101, (16, least, 0, 0)),
]:
    libc.syscall(call, *arguments)
print('still there')
";

#[test]
#[cfg(target_arch = "x86_64")]
fn g7_odd_arguments_do_not_cut_the_record_off() {
    let ledger = Ledger::new();
    for level in ["off", "network", "standard", "security", "all"] {
        let flags = ["--audit", level];
        let recorded = ledger.run_words(&flags, &["python3", "-c", ODD]);
        let outcome = recorded.outcome.expect_code(0);
        assert_eq!(outcome.stdout, "still there\n", "{level}");
        let is_sealed = recorded
            .events
            .iter()
            .any(|event| event["kind"] == "sealed");
        assert_eq!(is_sealed, level != "off", "{level}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn g7_nothing_is_read_from_memory_that_only_the_caller_has() {
    const SECRET: &str = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); \
        print(libc.syscall(447, 0), ctypes.get_errno())";
    let ledger = Ledger::new();
    for level in ["off", "security", "all"] {
        let recorded = ledger.run_words(&["--audit", level], &["python3", "-c", SECRET]);
        let outcome = recorded.outcome.expect_code(0);
        assert_eq!(outcome.stdout, "-1 38\n", "{level}");
    }
}

#[test]
fn g9_a_lease_cannot_make_the_init_wait() {
    const LEASE: &str = "import fcntl; f = open('leased', 'w'); \
        fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)";
    let ledger = Ledger::new();
    for level in ["off", "security", "all"] {
        let recorded = ledger.run_words(&["--audit", level], &["python3", "-c", LEASE]);
        let outcome = recorded.outcome.expect_code(1);
        assert!(
            outcome.stderr.contains("Invalid argument"),
            "{level}: {}",
            outcome.stderr
        );
    }
}

/// A run whose working folder is the home folder, with the log below it.
fn at_home(home: &Folder, script: &str) -> Outcome {
    ringfence()
        .args(["run", "--", "sh", "-c", script])
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.join(".local/state"))
        .folder(home)
        .run()
}

#[test]
fn g7_the_log_is_out_of_reach_also_in_the_working_folder() {
    let home = Folder::durable();
    let verify = || {
        ringfence()
            .args(["audit", "verify"])
            .env("XDG_STATE_HOME", home.join(".local/state"))
            .run()
            .expect_code(0)
    };
    let attack = "log=.local/state/ringfence/audit
        cat $log/audit.key && echo READ
        echo forged >> $log/audit.jsonl && echo APPENDED
        rm $log/audit.head && echo REMOVED
        for place in .local .local/state .local/state/ringfence; do
            mv $place moved && echo MOVED $place
        done
        rm -rf .local; true";
    // The first run makes the log, the second finds it.
    for _ in 0..2 {
        let outcome = at_home(&home, attack).expect_code(0);
        assert_eq!(outcome.stdout, "", "{}", outcome.stderr);
        verify();
    }
    let log = std::fs::read_to_string(home.join(".local/state/ringfence/audit/audit.jsonl"));
    let log = log.expect("the log");
    assert_eq!(log.matches(r#""kind":"sealed""#).count(), 2, "{log}");
}
