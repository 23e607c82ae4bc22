//! Standard input, output and error: whole, unchanged, without piling up.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use ringfence_testkit::{Folder, Outcome, Program, Started, is_root, wait_until};

use super::terminal::binary;
use super::{inside, ringfence};

const GIB: u64 = 1 << 30;
/// Far below what flows through, far above what a supervisor needs.
const MODEST: u64 = 64 << 20;

/// The largest resident size that a running process ever had, in bytes.
fn peak_memory(process: &Started) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("a peak");
    let kibibytes: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kibibytes << 10
}

/// Waits for a file that takes longer than anything else here.
fn wait_long_for(folder: &Folder, name: &str) {
    assert!((0..2).any(|_| wait_until(|| folder.has(name))), "no {name}");
}

/// A shell outside, in which `$RF` is the binary under test.
fn outside(folder: &Folder, script: &str) -> Outcome {
    Program::new("bash")
        .args(["-c", script])
        .env("RF", binary())
        .folder(folder.path())
        .run()
}

#[test]
fn a_gibibyte_of_input_flows_without_piling_up() {
    let folder = Folder::new();
    let mut source = Command::new("head")
        .args(["-c", &GIB.to_string(), "/dev/zero"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("head");
    let pipe = source.stdout.take().expect("a pipe");
    let script = "wc -c > count; echo > counted; while [ ! -e go ]; do sleep 0.02; done";
    let running = ringfence()
        .args(["run", "--", "sh", "-c", script])
        .folder(folder.path())
        .with(|command| {
            command.stdin(pipe);
        })
        .start();
    wait_long_for(&folder, "counted");
    let peak = peak_memory(&running);
    folder.write("go", "");
    running.finish().expect_code(0);
    source.wait().expect("the end of head");
    assert_eq!(folder.read("count"), format!("{GIB}\n"));
    assert!(peak < MODEST, "{peak} bytes");
}

#[test]
fn a_gibibyte_of_output_flows_without_piling_up() {
    let folder = Folder::new();
    let script =
        format!("head -c {GIB} /dev/zero; echo > written; while [ ! -e go ]; do sleep 0.02; done");
    let mut running = ringfence()
        .args(["run", "--", "sh", "-c", &script])
        .folder(folder.path())
        .start();
    let mut output = running.child().stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        let mut total = 0;
        while let Ok(length @ 1..) = output.read(&mut buffer) {
            total += length as u64;
        }
        total
    });
    wait_long_for(&folder, "written");
    let peak = peak_memory(&running);
    folder.write("go", "");
    running.finish().expect_code(0);
    assert_eq!(reader.join().expect("a count"), GIB);
    assert!(peak < MODEST, "{peak} bytes");
}

#[test]
fn every_byte_passes_unchanged() {
    let folder = Folder::new();
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(100_000).collect();
    std::fs::write(folder.join("in"), &bytes).expect("a file");
    let pipes = "\"$RF\" run -- cat < in | cat > through-pipe && cat in | \"$RF\" run -- cat > through-file";
    outside(&folder, pipes).expect_code(0);
    for name in ["through-pipe", "through-file"] {
        assert!(
            std::fs::read(folder.join(name)).expect("a file") == bytes,
            "{name}"
        );
    }
}

#[test]
fn output_and_error_stay_apart() {
    let outcome = inside(Folder::new().path(), "echo out; echo err >&2; echo out").expect_code(0);
    assert_eq!(
        (outcome.stdout.as_str(), outcome.stderr.as_str()),
        ("out\nout\n", "err\n")
    );
}

#[test]
fn one_stream_for_both_keeps_the_order() {
    let folder = Folder::new();
    let script =
        "\"$RF\" run -- sh -c 'for i in 1 2 3; do echo o$i; echo e$i >&2; done' > both 2>&1";
    outside(&folder, script).expect_code(0);
    assert_eq!(folder.read("both"), "o1\ne1\no2\ne2\no3\ne3\n");
}

#[test]
fn input_that_is_not_read_does_no_harm() {
    let outcome = ringfence()
        .args(["run", "--", "true"])
        .folder(Folder::new().path())
        .input(vec![b'x'; 1 << 20])
        .run();
    outcome.expect_code(0);
}

#[test]
fn input_is_left_for_the_next_reader() {
    let script =
        "printf 'one\\ntwo\\n' | { \"$RF\" run -- sh -c 'read line; echo \"in: $line\"'; cat; }";
    let outcome = outside(&Folder::new(), script).expect_code(0);
    assert_eq!(outcome.stdout, "in: one\ntwo\n");
}

#[test]
fn a_reader_that_goes_away_ends_the_writer() {
    let script = "\"$RF\" run -- yes | head -n 1; echo ${PIPESTATUS[0]}";
    let outcome = outside(&Folder::new(), script).expect_code(0);
    assert_eq!(outcome.stdout, "y\n141\n");
}

#[test]
fn output_is_appended_where_the_shell_says_so() {
    let folder = Folder::new();
    folder.write("log", "before\n");
    outside(&folder, "\"$RF\" run -- echo after >> log").expect_code(0);
    assert_eq!(folder.read("log"), "before\nafter\n");
}

/// Closed streams either work or are refused before anything runs.
fn works_or_is_refused(script: &str) {
    let folder = Folder::new();
    let outcome = outside(&folder, script);
    match outcome.code() {
        0 => assert!(folder.has("ran"), "{}", outcome.stderr),
        125 => assert!(!folder.has("ran"), "{}", outcome.stderr),
        code => panic!("{code}: {}", outcome.stderr),
    }
}

#[test]
fn closed_input_is_handled() {
    works_or_is_refused("\"$RF\" run -- sh -c 'echo > ran; cat' <&-");
}

#[test]
fn closed_output_is_handled() {
    works_or_is_refused("\"$RF\" run -- sh -c 'echo > ran' >&-");
}

#[test]
fn closed_error_is_handled() {
    works_or_is_refused("\"$RF\" run -- sh -c 'echo > ran' 2>&-");
}

#[test]
fn all_streams_closed_are_handled() {
    works_or_is_refused("\"$RF\" run -- sh -c 'echo > ran' <&- >&- 2>&-");
}

#[test]
fn g4_a_closed_stream_is_nothing_of_ours_inside() {
    let folder = Folder::new();
    // Had it been left closed, the next file that we open would have its number.
    let script = "\"$RF\" run --report report.json -- sh -c \
        'in=$(readlink /proc/$$/fd/0); out=$(readlink /proc/$$/fd/1); \
        err=$(readlink /proc/$$/fd/2); echo \"$in $out $err\" > seen' <&- >&- 2>&-";
    outside(&folder, script).expect_code(0);
    assert_eq!(folder.read("seen"), "/dev/null /dev/null /dev/null\n");
    let report: serde_json::Value = serde_json::from_str(&folder.read("report.json")).unwrap();
    assert_eq!(report["exit"]["code"], 0);
}

#[test]
fn a_full_device_as_output_is_the_commands_own_failure() {
    let folder = Folder::new();
    outside(
        &folder,
        "\"$RF\" run -- sh -c 'echo x || exit 3' > /dev/full",
    )
    .expect_code(3);
}

#[test]
fn a_folder_as_a_stream_is_refused() {
    let folder = Folder::new();
    let here = File::open(folder.path()).expect("the folder");
    let outcome = ringfence()
        .args(["run", "--", "sh", "-c", "echo > ran"])
        .folder(folder.path())
        .with(|command| {
            command.stdin(here);
        })
        .run()
        .expect_code(125);
    assert!(
        outcome.stderr.contains("error[stream-is-folder]"),
        "{}",
        outcome.stderr
    );
    assert!(!folder.has("ran"));
}

#[test]
fn further_descriptors_are_not_passed_in() {
    let folder = Folder::new();
    folder.write("open", "words\n");
    let script = "exec 7< open; \"$RF\" run -- sh -c 'ls /proc/self/fd; cat <&7'";
    let outcome = outside(&folder, script);
    assert_ne!(outcome.code(), 0);
    assert!(!outcome.stdout.contains("words"), "{}", outcome.stdout);
}

#[test]
fn standard_streams_can_be_opened_by_name() {
    let folder = Folder::new();
    let script = "echo to-out > /dev/stdout; echo to-err > /dev/stderr; cat < /dev/stdin; echo x > /dev/null";
    let outcome = ringfence()
        .args(["run", "--", "sh", "-c", script])
        .folder(folder.path())
        .input("typed\n")
        .run()
        .expect_code(0);
    assert_eq!(outcome.stdout, "to-out\ntyped\n");
    assert_eq!(outcome.stderr, "to-err\n");
}

#[test]
fn an_output_file_can_be_opened_by_name() {
    let folder = Folder::new();
    outside(
        &folder,
        "\"$RF\" run -- sh -c 'echo words > /dev/stdout' > out",
    )
    .expect_code(0);
    assert_eq!(folder.read("out"), "words\n");
}

/// Opens each stream anew and writes to it.
const REWRITE: &str = r#"
import os, sys
for stream in (0, 1):
    for flags in (os.O_WRONLY | os.O_TRUNC, os.O_RDWR, os.O_WRONLY | os.O_CREAT):
        try: os.pwrite(os.open("/proc/self/fd/%d" % stream, flags), b"evil", 0)
        except OSError: pass
    try: os.truncate("/proc/self/fd/%d" % stream, 0)
    except OSError: pass
print(sys.stdin.readline(), end="")
"#;

/// A stream is on the host's mount of a file, which the view has read-only: by
/// its own path, and on another mount of the directory.
#[test]
fn g4_a_protected_file_that_is_a_stream_cannot_be_opened_anew_for_writing() {
    let alias = "mkdir other; mount --bind . other; ";
    for (before, path) in [("", ""), (alias, "other/"), ("", ".git/")] {
        let folder = Folder::new();
        folder.write("rewrite.py", REWRITE);
        outside(&folder, "git init -q . && touch .git/.bashrc").expect_code(0);
        let file = format!("{path}.bashrc").replace(".git/.bashrc", ".git/config");
        let own = file.replace("other/", "");
        folder.write(&own, "first\n");
        let apart = |script: String| {
            let user = if is_root() {
                "-m"
            } else {
                "-mU --map-current-user"
            };
            let script = format!("unshare {user} --keep-caps sh -c '{before}{script}'");
            outside(&folder, &script)
        };
        // Outside this works.
        apart(format!("python3 rewrite.py < {file} > out")).expect_code(0);
        assert!(folder.read(&own).is_empty(), "{file}");
        folder.write(&own, "first\n");
        apart(format!("\"$RF\" run -- python3 rewrite.py < {file} > out")).expect_code(0);
        assert_eq!(
            (folder.read(&own), folder.read("out")),
            ("first\n".into(), "first\n".into())
        );
        // What the stream was opened for is its own.
        apart(format!("\"$RF\" run -- python3 rewrite.py < out >> {file}")).expect_code(0);
        let written = folder.read(&own);
        assert!(
            written.starts_with("first\n") && !written.contains("evil"),
            "{file}: {written}"
        );
    }
}
