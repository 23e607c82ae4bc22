//! Folders and files that cannot be trusted or used are refused at the start.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use ringfence_audit::{Log, LogError};
use ringfence_testkit::{Folder, is_root};

use crate::full_disk::run_this_test_again;
use crate::support::numbered;

fn refusal(folder: impl AsRef<Path>) -> LogError {
    Log::open(folder.as_ref()).unwrap_err()
}

#[test]
fn a_link_in_place_of_the_folder_is_refused() {
    let parent = Folder::new();
    let real = parent.join("real");
    std::fs::create_dir(&real).unwrap();
    for (name, target) in [("link", "real"), ("dangling", "nowhere")] {
        symlink(target, parent.join(name)).unwrap();
        let error = refusal(parent.join(name));
        assert!(matches!(error, LogError::FolderIsLink { .. }), "{error:?}");
        assert_eq!(error.code(), "audit-unavailable");
    }
    assert_eq!(parent.listing(), ["dangling", "link", "real"]);
}

#[test]
fn a_file_in_place_of_the_folder_is_refused() {
    let parent = Folder::new();
    let error = refusal(parent.write("file", ""));
    assert_eq!(error.code(), "audit-unavailable");
    assert!(!error.hint().is_empty());
}

#[test]
fn links_pipes_and_folders_in_place_of_the_log_are_refused() {
    for make in [
        "ln -s elsewhere audit.jsonl",
        "ln -s /dev/full audit.jsonl",
        "mkfifo audit.jsonl",
        "mkdir audit.jsonl",
    ] {
        let folder = Folder::new();
        let mut log = Log::open(folder.path()).unwrap();
        ringfence_testkit::sh(make, folder.path()).expect_code(0);
        let at_start = refusal(folder.path());
        assert!(
            matches!(at_start, LogError::NotAFile { .. }),
            "{at_start:?}"
        );
        let later = log.record(&numbered(0, 0)).unwrap_err();
        assert_eq!(later.code(), "audit-unavailable", "{later:?}");
        assert!(!folder.has("audit.head"), "{make}");
    }
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    let folder = Folder::new();
    let foreign = if is_root() {
        chown(folder.path(), Some(12_345), None).unwrap();
        folder.path()
    } else {
        Path::new("/usr")
    };
    let error = refusal(foreign);
    assert!(matches!(error, LogError::ForeignFolder { .. }), "{error:?}");
    assert_eq!(error.code(), "audit-unavailable");
}

#[test]
fn a_log_of_somebody_else_is_refused() {
    if !is_root() {
        eprintln!("skipped: only root can give a file away");
        return;
    }
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    let file = folder.write("audit.jsonl", "");
    chown(&file, Some(12_345), None).unwrap();
    let at_start = refusal(folder.path());
    let later = log.record(&numbered(0, 0)).unwrap_err();
    for error in [at_start, later] {
        assert!(matches!(error, LogError::ForeignFile { .. }), "{error:?}");
        assert_eq!(error.code(), "audit-unavailable");
    }
    assert_eq!(folder.read("audit.jsonl"), "");
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    let key = folder.join("audit.key");
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for mode in [0o640, 0o604, 0o620] {
        std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
        let error = refusal(folder.path());
        assert!(matches!(error, LogError::KeyExposed { .. }), "{error:?}");
    }
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&key, "short").unwrap();
    let error = Log::open(folder.path())
        .unwrap()
        .record(&numbered(0, 0))
        .unwrap_err();
    assert!(matches!(error, LogError::KeySize { .. }), "{error:?}");
    assert_eq!(error.code(), "audit-unavailable");
}

#[test]
fn g10_a_folder_that_cannot_be_written_to_is_refused_at_the_start() {
    let script = "mount -t tmpfs -o ro,mode=700 tmpfs /mnt && exec \"$0\" \"$@\"";
    run_this_test_again(
        "folders::g10_a_folder_that_cannot_be_written_to_is_refused_at_the_start",
        &[
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
        ],
        || {
            for (folder, is_there) in [("/mnt", true), ("/mnt/missing", false)] {
                let error = refusal(folder);
                assert_eq!(error.code(), "audit-unavailable");
                assert_eq!(
                    matches!(error, LogError::UnwritableFolder { .. }),
                    is_there,
                    "{error:?}"
                );
            }
        },
    );
}
