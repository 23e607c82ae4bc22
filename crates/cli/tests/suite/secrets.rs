//! G5: what ringfence itself was given does not get inside.

use ringfence_testkit::{Folder, Outcome, Program};

use super::arena::{Arena, refused};
use super::{inside, ringfence};

const SECRET: &str = "s3cr3t-of-the-starter";

#[test]
fn g5_a_variable_of_the_starter_is_nowhere_inside() {
    let script = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/task/*/environ /proc/[0-9]*/cmdline \
                  /proc/[0-9]*/mem /proc/[0-9]*/auxv 2>/dev/null | tr '\\0' '\\n'; true";
    let folder = Folder::new();
    let proof = Program::new("sh")
        .args(["-c", script])
        .env("MY_SECRET", SECRET);
    assert!(
        proof
            .folder(&folder)
            .run()
            .expect_code(0)
            .stdout
            .contains(SECRET)
    );
    let outcome = ringfence()
        .args(["run", "--", "sh", "-c", script])
        .env("MY_SECRET", SECRET)
        .env("MY_TOKEN", SECRET)
        .folder(&folder)
        .run()
        .expect_code(0);
    assert!(outcome.stdout.contains("RINGFENCE=1"));
    assert!(!outcome.stdout.contains(SECRET) && !outcome.stdout.contains("MY_SECRET"));
}

#[test]
fn g5_the_init_shows_nothing_of_the_host() {
    let arena = Arena::new();
    let attacks = |pid: &str| {
        [
            format!("grep -q = /proc/{pid}/environ"),
            format!("ls /proc/{pid}/fd | grep -q ."),
            format!("ls /proc/{pid}/fdinfo | grep -q ."),
            format!("ls /proc/{pid}/root/ | grep -q ."),
            format!("ls /proc/{pid}/cwd/ | grep -q ."),
            format!("readlink /proc/{pid}/exe"),
            format!("grep -q . /proc/{pid}/maps"),
            format!("grep -q . /proc/{pid}/auxv"),
            format!("ls -l /proc/{pid}/map_files | grep -q ringfence"),
            format!(": 3< /proc/{pid}/mem"),
        ]
    };
    for (outside, attack) in attacks("self").iter().zip(attacks("1")) {
        if !outside.contains("map_files") {
            arena.outside(outside).expect_code(0);
        }
        refused(&attack, arena.inside(&attack));
    }
}

#[test]
fn g5_the_init_is_closed_from_the_first_moment() {
    let folder = Folder::new();
    for attempt in 0..30 {
        let look = ["run", "--", "ls", "/proc/1/fd"];
        let outcome = ringfence().args(look).folder(&folder).run();
        assert_eq!(outcome.stdout, "", "attempt {attempt}");
    }
}

#[test]
fn g5_no_descriptor_of_the_starter_is_inherited() {
    let (folder, other) = (Folder::new(), Folder::new());
    let file = other.write("secret", SECRET);
    let program = ringfence().path();
    let run = |tail: &str| {
        let script = format!(
            "exec 7< {} 9< {}; {tail}",
            other.path().display(),
            file.display()
        );
        Program::new("sh")
            .args(["-c", &script])
            .folder(&folder)
            .run()
    };
    let look = "ls /proc/self/fd; cat <&9";
    let proof = run(look).expect_code(0).stdout;
    assert!(proof.contains(SECRET) && proof.lines().any(|line| line == "9"));
    let outcome = run(&format!("exec {} run -- sh -c '{look}'", program.display()));
    // The standard streams, and the folder that `ls` reads.
    assert_eq!(outcome.stdout, "0\n1\n2\n3\n", "{}", outcome.stderr);
    assert_ne!(outcome.code(), 0);
}

/// Runs the command with a redirection of the shell.
fn redirected(folder: &Folder, script: &str, redirection: &str) -> Outcome {
    let script = format!(
        "exec {} run -- sh -c '{script}' {redirection}",
        ringfence().path().display()
    );
    Program::new("sh")
        .args(["-c", &script])
        .folder(folder)
        .run()
}

#[test]
fn g4_a_standard_stream_that_is_a_folder_is_refused() {
    let (folder, other) = (Folder::new(), Folder::new());
    let place = other.path().display();
    let outcome = redirected(&folder, "touch ran", &format!("< {place}")).expect_code(125);
    assert!(
        outcome.stderr.contains("error[stream-is-folder]"),
        "{}",
        outcome.stderr
    );
    redirected(&folder, "touch ran", &format!("1< {place}")).expect_code(125);
    redirected(&folder, "touch ran", &format!("2< {place}")).expect_code(125);
    assert!(folder.listing().is_empty(), "nothing was run");
}

#[test]
fn g4_a_file_given_to_read_cannot_be_opened_again_to_write() {
    let (folder, other) = (Folder::new(), Folder::new());
    let file = other.write("file", "text");
    for path in [
        "/proc/self/fd/0",
        "/dev/stdin",
        "/dev/fd/0",
        "/proc/$$/fd/0",
    ] {
        let script = format!("echo evil >> {path}");
        let redirection = format!("< {}", file.display());
        let proof = Folder::new();
        proof.write("file", "text");
        let outside = format!("sh -c '{script}' < file");
        Program::new("sh")
            .args(["-c", &outside])
            .folder(&proof)
            .run()
            .expect_code(0);
        assert!(proof.read("file").contains("evil"), "{path}");
        refused(&script, redirected(&folder, &script, &redirection));
        assert_eq!(other.read("file"), "text", "{path}");
    }
}

#[test]
fn g5_the_sandbox_has_a_terminal_and_host_name_of_its_own() {
    let folder = Folder::new();
    let outcome = inside(&folder, "cat /proc/sys/kernel/hostname; ls /dev/pts").expect_code(0);
    assert_eq!(outcome.stdout, "localhost\nptmx\n");
}
