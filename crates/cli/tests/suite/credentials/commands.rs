//! Secrets that a program prints: it runs on the host, and code inside must not
//! choose which.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ringfence_testkit::Folder;

use super::{Bound, HOST, SECRET};

fn program(folder: &Folder, name: &str, text: &str) {
    let file = folder.write(name, &format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).expect("its mode");
}

fn credential(argv: &str) -> String {
    format!("{{service: my-service, command: {{argv: {argv}}}, hosts: [{HOST}], bearer: true}}")
}

/// A `PATH` that starts with these folders.
fn path(folders: &[&Path]) -> String {
    let folders: Vec<String> = folders
        .iter()
        .map(|own| own.display().to_string())
        .collect();
    let usual = std::env::var("PATH").expect("PATH");
    format!("{}:.venv/bin:{usual}", folders.join(":"))
}

#[test]
fn g4_a_program_that_is_planted_inside_is_not_run_outside() {
    let bound = Bound::new();
    let folder = &bound.host.online.arena.folder;
    let mark = bound.policies.join("mark");
    program(&bound.policies, "bin/get-token", "print-token");
    program(
        &bound.policies,
        "bin/print-token",
        &format!("echo '{SECRET}'"),
    );
    std::fs::create_dir_all(folder.join(".venv/bin")).unwrap();
    std::fs::create_dir_all(folder.join("tools")).unwrap();
    std::os::unix::fs::symlink(folder.join("tools"), bound.policies.join("alias")).unwrap();
    let path = path(&[
        &folder.join(".venv/bin"),
        &bound.policies.join("alias"),
        &bound.policies.join("bin"),
    ]);
    let planted = format!(
        "#!/bin/sh\\ntouch {}\\necho planted-by-code-inside\\n",
        mark.display()
    );
    let script = format!(
        "for name in get-token print-token; do for place in .venv/bin tools; do \
           printf \"{planted}\" > $place/$name && chmod +x $place/$name || exit 1; \
         done; done; curl -sSf https://{HOST}/"
    );
    let flags = bound.policy(&credential("[get-token]"));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let run = bound.host.run_with(&[("PATH", &path)], &flags, &script);
    let run = run.expect_code(0);
    bound.holds_nothing(&run);
    assert!(bound.saw(HOST, &format!("authorization: Bearer {SECRET}")));
    assert!(!mark.exists(), "a planted program was run outside");
    let outside = format!("PATH='{path}' get-token");
    bound.outside(&outside).expect_code(0);
    assert!(mark.exists(), "what was planted would not have been run");
}

#[test]
fn g4_a_program_that_code_inside_can_write_stops_the_run() {
    let bound = Bound::new();
    let folder = &bound.host.online.arena.folder;
    program(folder, "get-token", &format!("echo '{SECRET}'"));
    let script = folder.join("get-token");
    let script = script.display();
    let link = bound.policies.join("link");
    std::os::unix::fs::symlink(folder.join("get-token"), &link).unwrap();
    for argv in [
        format!("[{script}]"),
        format!("[sh, {script}]"),
        format!("[sh, -c, \". '{script}'\"]"),
        format!("[{}]", link.display()),
        format!("[sh, {}]", link.display()),
        format!("[sh, {}/not-there-yet]", folder.text()),
    ] {
        let flags = bound.policy(&credential(&argv));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let run = bound.host.run(&flags, "echo ran").expect_code(125);
        assert_eq!(run.stdout(), "", "{argv}");
        let told = &run.outcome.stderr;
        assert!(told.contains("credential-command-unsafe"), "{argv}: {told}");
    }
    let writable = bound.policies.join("bin");
    program(
        &bound.policies,
        "bin/get-token",
        &format!("echo '{SECRET}'"),
    );
    let flags = bound.policy(&credential(&format!("[{}/get-token]", writable.display())));
    let write = writable.display().to_string();
    let flags = [flags[0].as_str(), &flags[1], "--write", &write];
    let run = bound.host.run(&flags[..2], "echo ran").expect_code(0);
    assert_eq!(run.stdout(), "ran\n");
    let run = bound.host.run(&flags, "echo ran").expect_code(125);
    assert!(run.outcome.stderr.contains("credential-command-unsafe"));
}

#[test]
fn g5_a_file_that_code_inside_could_come_to_read_stops_the_run() {
    let bound = Bound::new();
    let folder = &bound.host.online.arena.folder;
    let file = bound.policies.write("tokens/token", SECRET);
    let writable = bound.policies.join("tokens").display().to_string();
    let run = |file: &Path, flags: &[&str]| {
        let source = format!("file: {{path: {}}}", file.display());
        let credential =
            format!("{{service: my-service, {source}, hosts: [{HOST}], bearer: true}}");
        let policy = bound.policy(&credential);
        let policy = policy.iter().map(String::as_str);
        let flags: Vec<&str> = policy.chain(flags.iter().copied()).collect();
        bound.host.run(&flags, "echo ran")
    };
    assert_eq!(run(&file, &[]).expect_code(0).stdout(), "ran\n");
    for (file, flags) in [
        (file, &["--write", &writable][..]),
        (folder.join("not-there-yet"), &[]),
    ] {
        let run = run(&file, flags).expect_code(125);
        assert_eq!(run.stdout(), "");
        let told = &run.outcome.stderr;
        assert!(told.contains("credential-file-exposed"), "{told}");
    }
}
