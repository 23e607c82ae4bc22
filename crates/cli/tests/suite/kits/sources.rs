//! Where kits come from, and what hostile ones try.

use ringfence_testkit::{Outcome, Program};

use super::{Place, V2, fails_with};

/// Makes a zip archive by a line of Python with `z` as the archive.
fn archive(place: &Place, line: &str) -> String {
    let path = place.kit("k.zip");
    let script = format!(
        "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as z:\n    z.writestr('spec.yaml', sys.argv[2])\n    {line}\n"
    );
    Program::new("python3")
        .args(["-c", &script, &path, V2])
        .run()
        .expect_code(0);
    path
}

#[test]
fn an_archive_is_a_kit() {
    let place = Place::new();
    let path = archive(&place, "z.writestr('files/home/a', 'x')");
    let shown = place.json(&["show", &path]);
    assert_eq!(shown["name"], "my-service");
    assert!(shown["surface"]["files"]["~/a"].is_string());
}

#[test]
fn g4_hostile_archives_are_refused() {
    for (line, code) in [
        ("z.writestr('../evil', 'x')", "kit-file-path"),
        (
            "z.writestr('files/home/../../../evil', 'x')",
            "kit-file-path",
        ),
        ("z.writestr('/tmp/evil', 'x')", "kit-file-path"),
        (
            "i = zipfile.ZipInfo('files/home/a'); i.create_system = 3; i.external_attr = 0o120777 << 16; z.writestr(i, '/etc/passwd')",
            "kit-special-file",
        ),
        (
            "i = zipfile.ZipInfo('files/home/a'); i.create_system = 3; i.external_attr = 0o20666 << 16; z.writestr(i, '')",
            "kit-special-file",
        ),
        (
            "[z.writestr('files/home/%d' % n, bytes(10 << 20)) for n in range(10)]",
            "kit-too-large",
        ),
        (
            "[z.writestr('files/home/%d' % n, '') for n in range(3000)]",
            "kit-too-large",
        ),
    ] {
        let place = Place::new();
        let path = archive(&place, line);
        fails_with(place.run_kit(&["validate", &path]), 1, code);
    }
    let place = Place::new();
    let path = place.kits.write("k.zip", "");
    let file = std::fs::File::options().write(true).open(&path);
    file.expect("the file")
        .set_len(100_000_000)
        .expect("its size");
    fails_with(
        place.run_kit(&["validate", &place.kit("k.zip")]),
        1,
        "kit-too-large",
    );
}

#[test]
fn names_that_are_no_kit_are_told_before_git_is_started() {
    let place = Place::new();
    for (name, code) in [
        ("git+https://-oProxyCommand=id/x", "kit-url"),
        ("git+ssh://-oProxyCommand=id/x", "kit-url"),
        ("git+https://example.org/x#ref=--upload-pack=id", "kit-url"),
        ("git+https://user:word@example.org/x", "kit-url"),
        ("git+ext::sh -c id", "kit-url"),
        ("oci://example.org/x", "kit-scheme"),
        ("forge", "kit-bare-name"),
    ] {
        fails_with(place.run_kit(&["validate", name]), 1, code);
        let words = ["run", "--kit", name, "--", "true"];
        fails_with(place.program().args(words).run(), 125, code);
    }
}

/// A repository with the kit in `kit/`; its URL.
fn repository(place: &Place) -> String {
    place.kits.write("repository/kit/spec.yaml", V2);
    let script = "cd repository && git init -q -b main && git add -A && git -c user.name=a -c user.email=a@example.org commit -q -m x";
    outside(place, script).expect_code(0);
    format!(
        "git+file://{}/.git#ref=main&dir=kit",
        place.kit("repository")
    )
}

fn outside(place: &Place, script: &str) -> Outcome {
    Program::new("sh")
        .args(["-c", script])
        .folder(&place.kits)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .run()
}

#[test]
fn a_repository_is_fetched_once_and_its_commit_shown() {
    let place = Place::new();
    let url = repository(&place);
    let head = outside(&place, "git -C repository rev-parse HEAD").stdout;
    let shown = place.json(&["show", &url]);
    assert_eq!(shown["commit"], head.trim());
    outside(&place, "mv repository gone").expect_code(0);
    assert_eq!(place.json(&["show", &url])["commit"], head.trim());
    fails_with(place.run_kit(&["show", &url, "--refresh"]), 1, "kit-git");
}

/// Hooks come from a user's own templates and settings; a fetched kit must not
/// set them off.
#[test]
fn g4_no_hook_or_filter_is_run() {
    let place = Place::new();
    let url = repository(&place);
    let mark = place.own.join("mark");
    let evil = format!("#!/bin/sh\ntouch '{}'\n", mark.display());
    for hook in ["post-checkout", "reference-transaction"] {
        let path = place.own.write(format!("hooks/{hook}"), &evil);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).expect("its mode");
    }
    let hooks = place.own.join("hooks").display().to_string();
    place.own.write(
        "home/.gitconfig",
        &format!("[core]\n\thooksPath = {hooks}\n"),
    );
    let home = place.own.join("home");
    Program::new("git")
        .args(["clone", "-q", "repository", "copy"])
        .folder(&place.kits)
        .env("HOME", &home)
        .run()
        .expect_code(0);
    assert!(
        std::fs::remove_file(&mark).is_ok(),
        "the hook works outside"
    );
    let program = place.program().env("HOME", &home);
    program.args(["kit", "show", &url]).run().expect_code(0);
    assert!(!mark.exists());
}
