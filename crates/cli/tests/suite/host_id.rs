//! Started as root must be as safe as started by a user: who is behind the
//! sandbox on the host, and whose the files are.

use std::os::unix::fs::{MetadataExt, chown};

use ringfence_testkit::{
    Folder, Outcome, Program, is_root, own_ids, processes_with, sh, status_of, wait_until,
};

use super::arena::{Arena, refused};
use super::{inside, ringfence};

#[test]
fn no_process_inside_has_roots_id_on_the_host() {
    let folder = Folder::new();
    let script = "touch ready; while [ ! -e done ]; do sleep 0.05; done";
    let marker = folder.text();
    let run = ringfence()
        .args(["run", "--", "sh", "-c", script, marker])
        .folder(&folder)
        .start();
    assert!(wait_until(|| folder.has("ready")), "it did not start");
    let mut seen = processes_with(marker);
    seen.retain(|pid| *pid != run.id());
    assert!(seen.len() >= 2, "the init and the command: {seen:?}");
    for pid in seen {
        for field in ["Uid:", "Gid:"] {
            let ids: Vec<u32> = status_of(pid, field)
                .split_whitespace()
                .map(|id| id.parse().unwrap())
                .collect();
            assert_eq!(ids.len(), 4);
            let (uid, gid) = own_ids();
            let own = if field == "Uid:" { uid } else { gid };
            let expected = |id: &u32| if is_root() { *id != 0 } else { *id == own };
            assert!(ids.iter().all(expected), "{pid} {field} {ids:?}");
        }
    }
    folder.write("done", "");
    run.finish().expect_code(0);
}

#[test]
fn files_made_inside_belong_to_who_started_it() {
    let folder = Folder::new();
    inside(
        &folder,
        "echo x > file; mkdir -p d/e; ln -s x link; mkfifo fifo",
    )
    .expect_code(0);
    for name in ["file", "d", "d/e", "link", "fifo"] {
        let metadata = std::fs::symlink_metadata(folder.join(name)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), own_ids(), "{name}");
    }
}

#[test]
fn files_made_in_somebody_elses_folder_belong_to_them() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    chown(folder.path(), Some(4242), Some(4343)).unwrap();
    inside(&folder, "echo x > file").expect_code(0);
    let metadata = std::fs::metadata(folder.join("file")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (4242, 4343));
}

/// The parts of a file system without id-mapped mounts.
fn unmappable() -> Folder {
    let folder = Folder::new();
    sh("mkdir lower upper work merged", folder.path()).expect_code(0);
    folder
}

/// Runs a script inside, in a directory of such a file system.
fn on_unmappable(folder: &Folder, flags: &str, script: &str) -> Outcome {
    let script = format!(
        "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged && \
         cd merged && exec {} run {flags} -- sh -c '{script}'",
        ringfence().path().display()
    );
    Program::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .folder(folder)
        .run()
}

#[test]
fn g10_a_file_system_without_id_mapped_mounts_is_refused_to_root_unless_accepted() {
    if !is_root() {
        return;
    }
    let folder = unmappable();
    let run = |flags: &str| on_unmappable(&folder, flags, "echo x > file");
    let outcome = run("").expect_code(125);
    assert!(
        outcome.stderr.contains("error[no-id-mapped-mounts]"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("--weaker host-root"),
        "{}",
        outcome.stderr
    );
    assert!(!folder.has("upper/file"));
    run("--weaker host-root").expect_code(0);
    assert_eq!(folder.read("upper/file"), "x\n");
}

#[test]
fn g4_what_is_hidden_stays_hidden_when_roots_own_id_is_behind_it() {
    if !is_root() {
        return;
    }
    let folder = unmappable();
    let run = |script: &str| on_unmappable(&folder, "--weaker host-root", script);
    assert!(!std::fs::read("/etc/shadow").unwrap().is_empty());
    run("id -u > file").expect_code(0);
    for hidden in ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"] {
        if std::path::Path::new(hidden).exists() {
            let outcome = run(&format!("cat {hidden}"));
            assert_ne!(outcome.code(), 0, "{hidden}: {}", outcome.stdout);
        }
    }
}

/// A file that gets its mode before it has a name.
const NAMELESS: &str = "python3 -c '\nimport os\n\
    file = os.open(\".\", os.O_TMPFILE | os.O_RDWR, 0o6755)\n\
    here = os.open(\".\", os.O_RDONLY)\n\
    link = \"/proc/self/fd/%d\" % file\n\
    os.link(link, \"file\", dst_dir_fd=here, follow_symlinks=True)'";

#[test]
fn no_file_gets_a_set_id_bit() {
    let has_set_id = |arena: &Arena| {
        let found = arena.outside("find . -perm /6000").expect_code(0);
        !found.stdout.is_empty()
    };
    for attack in [
        "chmod u+s attack",
        "chmod g+s attack",
        "chmod 2755 attack",
        "./attack fchmod attack 02755",
        "./attack fchmodat2 attack 02755",
        "./attack fchmod attack 04755",
        "./attack fchmod attack 0x1000009ed",
        "./attack fchmodat attack 04755",
        "./attack fchmodat attack 0xffffffff000009ed",
        "./attack fchmodat2 attack 04755",
        "./attack open file 0x41 04755",
        "./attack open file 0x41 0x1000009ed",
        "./attack old-open file 0x41 02755",
        "./attack mknod file 0104755",
        "./attack mknod file 0x1000089ed",
        "install -m 4755 attack file",
        NAMELESS,
    ] {
        let outside = Arena::new();
        outside.outside(attack).expect_code(0);
        assert!(has_set_id(&outside), "{attack} has no effect outside");
        let arena = Arena::new();
        refused(attack, arena.inside(attack));
        assert!(!has_set_id(&arena), "{attack}");
    }
}
