//! G4: no write outside the writable roots, by any way to name a file.

use ringfence_testkit::{Folder, is_root, sh};

use super::arena::{Arena, refused, state};
use super::{inside, inside_with};

/// Attacks on the folder OTHER, which is visible and not writable, and its file.
const ON_ANOTHER_FOLDER: &[&str] = &[
    "./attack write OTHER/new",
    "./attack write OTHER/file",
    "./attack creat OTHER/file",
    "./attack creat OTHER/new",
    "./attack openat OTHER new",
    "./attack openat OTHER file",
    "./attack open OTHER/file 0x200",
    "./attack old-open OTHER/file 0x202",
    "./attack mkdirat OTHER new",
    "./attack symlinkat OTHER new target",
    "./attack renameat OTHER file new",
    "./attack mknod OTHER/new 0100644",
    "./attack bind OTHER/s",
    "./attack truncate OTHER/file",
    "./attack reopen OTHER/file",
    "./attack reopen OTHER/file path",
    "./attack fchmod OTHER/file 0600",
    "./attack fchmodat OTHER/file 0600",
    "./attack fchmodat2 OTHER/file 0600",
    "./attack nameless OTHER OTHER/new",
    "./attack nameless . OTHER/new",
    "./attack write /proc/self/root/OTHER/new",
    "./attack write /proc/thread-self/root/OTHER/file",
    "ln -s OTHER/file link && ./attack write link",
    "ln -s OTHER/new link && ./attack write link",
    "ln -s OTHER link && ./attack write link/new",
    "ln -s / link && ./attack write link/OTHER/new",
    "ln OTHER/file link && echo evil >> link",
    "./attack link-open OTHER/file link",
    "mv OTHER/file here",
    "echo > here && mv here OTHER/new",
    "echo > here && ln here OTHER/new",
    "echo > here && ./attack exchange here OTHER/file",
    "cd OTHER && echo evil >> file",
    "cd OTHER && echo evil > /proc/self/cwd/new",
    "exec 5< OTHER && echo evil > /proc/self/fd/5/new",
    "exec 5< OTHER && cd /proc/self/fd/5 && echo evil > new",
    "exec 5< OTHER/file && echo evil > /dev/fd/5",
    "exec 5< OTHER/file && echo evil > /proc/$$/fd/5",
    "touch -d 2001-01-01 OTHER/file",
    "chmod 600 OTHER/file",
    "rm OTHER/file",
    "rmdir OTHER/empty",
];

#[test]
fn g4_no_way_to_name_a_file_leads_out_of_the_writable_roots() {
    for attack in ON_ANOTHER_FOLDER {
        let prepared = || {
            let other = Folder::new();
            other.write("file", "text\n");
            std::fs::create_dir(other.join("empty")).unwrap();
            let attack = attack.replace("OTHER", other.text());
            (other, attack)
        };
        let (other, script) = prepared();
        let before = state(other.path());
        Arena::new().outside(&script).expect_code(0);
        let changed = before != state(other.path()) || attack.contains("touch -d");
        assert!(changed, "`{attack}` has no effect outside");

        let (other, script) = prepared();
        let before = state(other.path());
        let place = other.text();
        let seen = format!("test -f {place}/file || exit 0; {script}");
        refused(attack, Arena::new().inside_with(&["--read", place], &seen));
        assert_eq!(state(other.path()), before, "{attack}");
    }
}

#[test]
fn g4_the_newest_way_to_open_is_refused_too() {
    let other = Folder::new();
    let attack = format!("./attack openat2 {}/new", other.path().display());
    Arena::new().outside(&attack).expect_code(0);
    std::fs::remove_file(other.join("new")).unwrap();
    let place = other.text();
    refused(
        &attack,
        Arena::new().inside_with(&["--read", place], &attack),
    );
    assert!(other.listing().is_empty());
}

#[test]
fn g4_home_system_and_other_temporary_folders_are_not_writable() {
    let (folder, home) = (Folder::new(), Folder::new());
    let (other, state) = (Folder::new(), Folder::new());
    let script = format!(
        "for d in /etc /usr /usr/bin /var /var/lib /home /root /opt / /dev /sys /proc {}; do \
             (echo evil > $d/ringfence-evil) 2>/dev/null && echo $d; \
         done; \
         (echo evil > $HOME/evil; echo evil > {}/evil) 2>/dev/null; true",
        home.path().display(),
        other.path().display()
    );
    let outcome = super::ringfence()
        .args(["run", "--read", home.text(), "--", "sh", "-c", &script])
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", state.path())
        .folder(&folder)
        .run()
        .expect_code(0);
    // The home is changed in the sandbox's own layer.
    assert_eq!(outcome.stdout, format!("{}\n", home.text()));
    assert!(home.listing().is_empty() && other.listing().is_empty());
    for place in ["/etc", "/usr", "/usr/bin", "/var", "/var/lib", "/"] {
        assert!(!std::path::Path::new(place).join("ringfence-evil").exists());
    }
}

#[test]
fn g4_the_folder_above_the_working_folder_is_untouched() {
    let above = Folder::new();
    std::fs::create_dir(above.join("inner")).unwrap();
    let attack = "echo evil > ../evil; echo evil > $PWD/../evil; mv ../inner ../moved; true";
    let place = above.text();
    for flags in [&[][..], &["--read", place]] {
        inside_with(above.join("inner"), flags, attack).expect_code(0);
        assert_eq!(above.listing(), ["inner"]);
    }
    sh(attack, &above.join("inner")).expect_code(0);
    assert!(above.has("evil"));
}

#[test]
fn g4_the_sandboxs_temporary_folders_are_not_the_hosts() {
    let (folder, other) = (Folder::new(), Folder::new());
    let name = other.path().file_name().unwrap().to_str().unwrap();
    let script = format!(
        "for d in /tmp /var/tmp /dev/shm; do echo x > $d/{name}-inside && cat $d/{name}-inside; done"
    );
    let outcome = inside(&folder, &script).expect_code(0);
    assert_eq!(outcome.stdout, "x\nx\nx\n");
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        let path = std::path::Path::new(place).join(format!("{name}-inside"));
        assert!(!path.exists(), "{place}");
    }
    // And none of the host's files show there.
    let outcome = inside(&folder, &format!("test -e {}", other.path().display()));
    assert_eq!(outcome.code(), 1);
}

#[test]
fn g4_an_extra_writable_root_opens_nothing_beside_it() {
    let (folder, other) = (Folder::new(), Folder::new());
    std::fs::create_dir(other.join("root")).unwrap();
    other.write("file", "text");
    let (root, place) = (other.join("root"), other.text());
    let flags = ["--read", place, "--write", root.to_str().unwrap()];
    let script = format!(
        "cd {place}; echo x > root/new || exit 9; echo x > file; echo x > beside; mv root/new beside; \
         echo x > root/../beside; true"
    );
    inside_with(&folder, &flags, &script).expect_code(0);
    assert_eq!(other.listing(), ["file", "root", "root/new"]);
    assert_eq!(other.read("file"), "text");
}

#[test]
fn g4_policy_denials_of_writing_hold() {
    let attempts = [
        "echo evil >> keep",
        "rm keep",
        "mv keep away",
        "echo evil > missing",
        "mkdir missing",
        "echo x > new && mv new keep",
        "ln keep link && echo evil >> link",
        "./attack link-open keep link",
        "./attack reopen keep",
        "echo evil > a.lock",
        "mkdir d && echo evil > d/b.lock",
        "echo x > n && mv n c.lock",
    ];
    for attempt in attempts {
        let arena = Arena::prepared("echo text > keep");
        let policy = Folder::new();
        let text = "version: 1\nfilesystem: {write: {deny: [keep, missing, '**/*.lock']}}\n";
        let file = policy.write("policy.yaml", text);
        Arena::prepared("echo text > keep")
            .outside(attempt)
            .expect_code(0);
        let flags = ["--policy", file.to_str().unwrap()];
        refused(attempt, arena.inside_with(&flags, attempt));
        assert_eq!(arena.folder.read("keep"), "text\n", "{attempt}");
        assert!(!arena.folder.has("missing") && !arena.folder.has("c.lock"));
    }
}

#[test]
fn g4_root_reads_no_more_than_its_view() {
    // Root's rights are not the sandbox's: a file that only root reads is shut.
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let outcome = inside(&folder, "cat /etc/shadow /etc/gshadow");
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (1, ""));
}
