//! How much is recorded, and that it changes nothing else.

use super::super::arena::refused;
use super::Ledger;

const LEVELS: [&str; 5] = ["off", "network", "standard", "security", "all"];

/// Calls that are refused, with the error and what they are about.
const CALLS: &[(&str, &str, &str, &str)] = &[
    ("unshare 0x10000000", "EPERM", "unshare", "namespace"),
    ("unshare 0x20000", "EPERM", "unshare", "namespace"),
    ("setns /proc/self/ns/net", "EPERM", "setns", "namespace"),
    ("clone 0x10000000", "EPERM", "clone", "namespace"),
    ("io-uring", "EPERM", "io_uring_setup", "kernel"),
    ("userfaultfd", "EPERM", "userfaultfd", "kernel"),
    ("bpf", "EPERM", "bpf", "kernel"),
    ("perf", "EPERM", "perf_event_open", "kernel"),
    ("keyctl", "EPERM", "keyctl", "kernel"),
    ("mount d", "EPERM", "mount", "mount"),
    ("open-tree d", "EPERM", "open_tree", "mount"),
    ("umount /proc", "EPERM", "umount2", "mount"),
    ("chroot d", "EPERM", "chroot", "mount"),
];

#[test]
fn g4_g7_calls_are_refused_alike_at_every_level() {
    let ledger = Ledger::new();
    ledger.arena.outside("mkdir d e").expect_code(0);
    for level in LEVELS {
        for (attack, error, ..) in CALLS {
            let attack = format!("./attack {attack}");
            let recorded = ledger.run(&["--audit", level], &attack);
            let told = refused(&attack, recorded.outcome).stdout;
            assert_eq!(told, format!("{error}\n"), "`{attack}` at {level}");
        }
        // The way round for those who have no clone3.
        let recorded = ledger.run(&["--audit", level], "./attack clone3 0x10000000");
        assert_eq!(recorded.outcome.stdout, "ENOSYS\n", "{level}");
    }
}

#[test]
fn g7_refused_calls_are_on_record() {
    let ledger = Ledger::new();
    ledger.arena.outside("mkdir d e").expect_code(0);
    for level in ["security", "all"] {
        for (attack, error, call, action) in CALLS {
            let attack = format!("./attack {attack}");
            let recorded = ledger.run(&["--audit", level], &attack);
            let found = recorded
                .of_kind("call")
                .filter(|told| told["call"] == *call);
            let found: Vec<_> = found
                .filter(|told| told["outcome"]["refused"] == *error)
                .collect();
            assert_eq!(found.len(), 1, "`{attack}` at {level}: {}", recorded.text());
            assert_eq!(found[0]["action"], *action, "`{attack}` at {level}");
        }
    }
}

#[test]
fn g7_at_standard_attempts_at_nesting_are_on_record() {
    let ledger = Ledger::new();
    ledger.arena.outside("mkdir d e").expect_code(0);
    let nesting = ["unshare", "clone", "setns", "mount"];
    for (attack, error, call, _) in CALLS {
        let recorded = ledger.run(&[], &format!("./attack {attack}"));
        let found = recorded
            .of_kind("call")
            .filter(|told| told["call"] == *call && told["outcome"]["refused"] == *error);
        let want = usize::from(nesting.contains(call));
        assert_eq!(found.count(), want, "`{attack}`: {}", recorded.text());
        let is_told = recorded.outcome.stderr.contains("make their own sandbox");
        assert_eq!(is_told, want == 1, "{}", recorded.outcome.stderr);
    }
}

#[test]
fn g7_looking_into_the_init_and_signals_to_it_are_on_record_and_fail() {
    let ledger = Ledger::new();
    for level in LEVELS {
        for (attack, call, action) in [
            ("attach 1", "ptrace", "trace"),
            ("peek 1 0x400000", "process_vm_readv", "trace"),
        ] {
            let attack = format!("./attack {attack}");
            let recorded = ledger.run(&["--audit", level], &attack);
            assert_eq!(recorded.outcome.stdout, "EPERM\n", "`{attack}` at {level}");
            let found = recorded.calls(action);
            let want = usize::from(["security", "all"].contains(&level));
            assert_eq!(found.len(), want, "`{attack}` at {level}: {found:?}");
            assert!(found.iter().all(|told| told["call"] == call), "{found:?}");
        }
        // The kernel takes it and does nothing.
        let recorded = ledger.run(&["--audit", level], "kill -KILL 1; echo alive");
        assert_eq!(recorded.outcome.stdout, "alive\n", "{level}");
        let want = usize::from(["security", "all"].contains(&level));
        assert_eq!(recorded.calls("signal").len(), want, "{level}");
    }
}

#[test]
fn g7_a_change_of_who_one_is_is_on_record_and_fails() {
    let ledger = Ledger::new();
    let script = "python3 -c '
import os
for change in [lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0])]:
    try: change(); print(\"changed\")
    except OSError as error: print(error.errno)'";
    let mut told = Vec::new();
    for level in LEVELS {
        let recorded = ledger.run(&["--audit", level], script).expect_code(0);
        assert!(!recorded.outcome.stdout.contains("changed"), "{level}");
        told.push(recorded.outcome.stdout.clone());
        if ["security", "all"].contains(&level) {
            let calls: Vec<_> = recorded
                .calls("identity")
                .iter()
                .map(|call| call["call"].clone())
                .collect();
            assert_eq!(calls, ["setuid", "setgid", "setgroups"], "{level}");
        }
    }
    assert!(told.iter().all(|one| one == &told[0]), "{told:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn g7_calls_of_another_architecture_end_the_process_at_every_level() {
    let ledger = Ledger::new();
    for level in LEVELS {
        for words in [&["./attack", "int80"][..], &["./attack", "x32", "39"]] {
            let recorded = ledger.run_words(&["--audit", level], words);
            assert_eq!(recorded.outcome.code(), 128 + 31, "{words:?} at {level}");
        }
    }
}

#[test]
fn files_are_refused_alike_at_every_level() {
    let ledger = Ledger::new();
    let script = "python3 -c '
import errno, os
for path in [\".bashrc\", \"/etc/made\", \"/usr/made\", \".vscode/x\", \"/proc/sys/kernel/hostname\"]:
    try: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)); print(path, \"opened\")
    except OSError as error: print(path, errno.errorcode[error.errno])'";
    let told = LEVELS.map(|level| {
        ledger
            .run(&["--audit", level], script)
            .expect_code(0)
            .outcome
            .stdout
    });
    assert!(
        told[0].lines().count() == 5 && !told[0].contains("opened"),
        "{}",
        told[0]
    );
    assert!(told.iter().all(|one| one == &told[0]), "{told:#?}");
}

#[test]
fn at_off_nothing_is_written() {
    let ledger = Ledger::new();
    let script = "echo > .bashrc; ./attack bpf; echo > f; true";
    let recorded = ledger.run(&["--audit", "off"], script).expect_code(0);
    assert!(recorded.events.is_empty());
    assert!(
        ledger.state.listing().is_empty(),
        "{:?}",
        ledger.state.listing()
    );
}

#[test]
fn at_network_programs_and_sockets_are_recorded_and_files_are_not() {
    let ledger = Ledger::new();
    let words = ["./probe", "names", "."];
    let recorded = ledger
        .run_words(&["--audit", "network"], &words)
        .expect_code(0);
    assert_eq!(recorded.calls("exec").len(), 1);
    for (action, address) in [("bind", "127.0.0.1:4321"), ("connect", "127.0.0.1:1234")] {
        assert_eq!(
            recorded.naming(action, address).len(),
            1,
            "{}",
            recorded.text()
        );
    }
    for action in ["write", "rename", "remove", "make", "mode", "link"] {
        assert!(
            recorded.calls(action).is_empty(),
            "{action}: {}",
            recorded.text()
        );
    }
}

#[test]
fn at_all_every_call_is_counted() {
    let ledger = Ledger::new();
    let words = ["./probe", "nothing", "5000"];
    let recorded = ledger.run_words(&["--audit", "all"], &words).expect_code(0);
    assert_eq!(recorded.counted("getppid"), 5000, "{}", recorded.text());
    let count = recorded
        .of_kind("calls")
        .find(|count| count["call"] == "getppid");
    let count = count.expect("the count");
    assert!(count["first"].as_str() <= count["last"].as_str(), "{count}");
    let recorded = ledger
        .run_words(&["--audit", "security"], &words)
        .expect_code(0);
    assert_eq!(recorded.counted("getppid"), 0);
}

#[test]
fn at_all_ordinary_work_goes_on() {
    let ledger = Ledger::new();
    let script = "git init -q r && cd r && echo x > f && git add f && \
                  git -c user.email=a@example.org -c user.name=A commit -qm one && \
                  python3 -c 'import subprocess, threading; \
                  ts = [threading.Thread(target=subprocess.run, args=([\"true\"],)) for _ in range(8)]; \
                  [t.start() for t in ts]; [t.join() for t in ts]; print(\"well\")'";
    let recorded = ledger.run(&["--audit", "all"], script).expect_code(0);
    assert_eq!(recorded.outcome.stdout, "well\n");
    assert!(recorded.counted("read") > 0 && recorded.counted("mmap") > 0);
    ledger.audit(&["verify"]).expect_code(0);
}

#[test]
fn a_policy_chooses_the_level_and_a_flag_is_stronger() {
    let ledger = Ledger::new();
    ledger
        .arena
        .folder
        .write("policy.yaml", "version: 1\naudit: {level: network}\n");
    let level = |flags: &[&str]| {
        let recorded = ledger.run(flags, "true").expect_code(0);
        recorded.events[0]["level"].clone()
    };
    assert_eq!(level(&["--policy", "policy.yaml"]), "network");
    assert_eq!(level(&["--policy", "policy.yaml", "--audit", "all"]), "all");
}
