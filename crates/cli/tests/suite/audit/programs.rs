//! At the default level programs are recorded once they have begun.

use ringfence_testkit::{Folder, Program};

use super::{LOG, Ledger, Recorded, argv};
use crate::suite::ringfence;

/// Makes a file and ends, with no library and none of the calls that those
/// begin with.
#[cfg(target_arch = "x86_64")]
const BARE: &str = r#"__asm__(".globl _start\n_start:\n"
    "mov $2, %eax\n lea name(%rip), %rdi\n mov $0101, %esi\n mov $0644, %edx\n syscall\n"
    "mov $60, %eax\n xor %edi, %edi\n syscall\n name: .asciz \"made\"\n");"#;

/// The words of all programs but the first, by the process.
fn words(recorded: &Recorded) -> Vec<String> {
    let started = recorded.calls("exec");
    let words = started[1..].iter().map(|call| argv(call).join(" "));
    words.collect()
}

#[test]
fn g7_programs_are_recorded_as_the_kernel_took_them() {
    let ledger = Ledger::new();
    ledger.arena.folder.write("script", "#!/bin/cat -E\n");
    let script = "chmod +x script; ./script; ./probe nothing 1; ./probe-linked nothing 2; \
                  ./probe exec-in-thread /bin/true; ln -s probe link; ./link nothing 3";
    let recorded = ledger.run(&[], script).expect_code(0);
    let expected = [
        "chmod +x script",
        "/bin/cat -E ./script",
        "./probe nothing 1",
        "./probe-linked nothing 2",
        "./probe exec-in-thread /bin/true",
        "true of-a-thread",
        "ln -s probe link",
        "./link nothing 3",
    ];
    assert_eq!(words(&recorded), expected, "{}", recorded.text());
    let last = recorded.calls("exec")[8];
    assert_eq!(last["paths"][0], ledger.path("probe").as_str());
    // One process was two programs.
    let pids: Vec<_> = recorded
        .calls("exec")
        .iter()
        .map(|call| call["pid"].clone())
        .collect();
    assert_eq!(pids[5], pids[6], "{pids:?}");
}

#[test]
fn g7_the_same_program_again_is_recorded_again() {
    let ledger = Ledger::new();
    let script = "/bin/true a; /bin/true a; exec env env env true a";
    // Also where its memory always lies at the same addresses, which can only
    // be said outside.
    for wrapper in [&["env"][..], &["setarch", "-R"]] {
        let before = ledger.events().len();
        let outcome = Program::new(wrapper[0])
            .args(wrapper[1..].iter().copied())
            .args([ringfence().path()])
            .args(["run", "--", "sh", "-c", script])
            .folder(&ledger.arena.folder)
            .env("XDG_STATE_HOME", ledger.state.path())
            .run();
        let events = ledger.events().split_off(before);
        let recorded = Recorded { outcome, events }.expect_code(0);
        let found = words(&recorded);
        let same = found.iter().filter(|words| *words == "/bin/true a");
        assert_eq!(same.count(), 2, "{found:?}");
        let rest = [
            "env env env true a",
            "env env true a",
            "env true a",
            "true a",
        ];
        assert_eq!(found[found.len() - 4..], rest, "{found:?}");
    }
}

#[test]
fn a_program_is_recorded_before_what_it_does() {
    let ledger = Ledger::new();
    let script = "touch .envrc; mkdir .vscode; touch .bashrc; true";
    let recorded = ledger.run(&[], script);
    let recorded = recorded.expect_code(0);
    let told: Vec<_> = recorded
        .of_kind("call")
        .map(|call| call["action"].as_str().unwrap_or_default())
        .collect();
    let expected = ["exec", "exec", "write", "exec", "make", "exec", "write"];
    assert_eq!(told, expected, "{}", recorded.text());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn g7_a_program_that_avoids_the_first_call_is_recorded_at_its_first_watched_one() {
    let (ledger, folder) = (Ledger::new(), Folder::new());
    let source = folder.write("bare.c", BARE);
    Program::new("cc")
        .args(["-nostdlib", "-static", "-o"])
        .args([ledger.arena.folder.join("bare"), source])
        .run()
        .expect_code(0);
    for level in ["network", "standard"] {
        let flags = ["--audit", level];
        // The command; a child; one whose process made a watched call before.
        let recorded = ledger.run_words(&flags, &["./bare", "0"]).expect_code(0);
        assert_eq!(recorded.calls("exec").len(), 1, "{}", recorded.text());
        let script = "./bare 1; ./bare 2; ( : > made; exec ./bare 3 ); : > made";
        let recorded = ledger.run(&flags, script).expect_code(0);
        let expected = ["./bare 1", "./bare 2", "./bare 3"];
        assert_eq!(words(&recorded), expected, "{level}: {}", recorded.text());
    }
}

#[test]
fn g7_a_program_that_says_again_that_it_began_is_only_counted() {
    let ledger = Ledger::new();
    let words = ["./probe", "begin-again", "5000", "as-it-is"];
    let recorded = ledger.run_words(&[], &words).expect_code(0);
    assert_eq!(recorded.calls("exec").len(), 1, "{}", recorded.text());
    let counted = recorded.counted("arch_prctl") + recorded.counted("set_tid_address");
    assert_eq!(counted, 5000, "{}", recorded.text());
}

#[test]
fn g7_a_program_that_pretends_to_be_new_each_time_fills_no_log() {
    let ledger = Ledger::new();
    let words = ["./probe", "begin-again", "20000", "changed"];
    let recorded = ledger.run_words(&[], &words).expect_code(0);
    let told = recorded.calls("exec").len();
    assert!(told < 6000, "{told}");
    let summed = recorded.of_kind("summary");
    let summed: u64 = summed.filter_map(|summary| summary["count"].as_u64()).sum();
    assert_eq!(told as u64 + summed, 20_001, "{told} and {summed}");
    let log = ledger.state.join(LOG);
    let size = std::fs::metadata(log).expect("the log").len();
    assert!(size < 8 << 20, "{size} bytes");
    ledger.audit(&["verify"]).expect_code(0);
}

#[test]
fn a_program_that_nobody_may_read_is_recorded_once() {
    let ledger = Ledger::new();
    let script = "cp /bin/true secret; chmod 111 secret; ./secret; true";
    let recorded = ledger.run(&[], script).expect_code(0);
    assert_eq!(recorded.calls("exec").len(), 4, "{}", recorded.text());
}

#[test]
fn the_command_of_a_terminal_is_recorded_once() {
    let ledger = Ledger::new();
    let script = "exec script -qec \"$RINGFENCE run -- /bin/true in-a-terminal\" /dev/null";
    let built = super::ringfence().path();
    Program::new("sh")
        .args(["-c", script])
        .folder(&ledger.arena.folder)
        .env("RINGFENCE", built)
        .env("XDG_STATE_HOME", ledger.state.path())
        .run()
        .expect_code(0);
    let events = ledger.events();
    let started = events.iter().filter(|event| event["action"] == "exec");
    let started: Vec<_> = started.map(argv).collect();
    assert_eq!(started, [["/bin/true", "in-a-terminal"]]);
}
