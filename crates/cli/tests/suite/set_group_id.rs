//! G11: directories whose files belong to their group (set-group-id) work as
//! outside; files with that bit are not made.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use ringfence_testkit::{Folder, sh};

use super::{inside, inside_with, ringfence};

/// Every way that people come to such a directory, and what is there then.
const SCRIPT: &str = r#"
set -e
umask 022
mkdir work; cd work
mkdir -m 2775 made
mkdir given; chmod g+s given
touch given/file; mkdir given/below
chmod 700 given/below
cp -a given copied
tar cf archive.tar given; mkdir unpacked; tar xpf archive.tar -C unpacked
install -d -m 2750 installed
git init -q --shared repository
python3 -c '
import os
os.mkdir("plain", 0o2777)
held = os.open("plain", os.O_RDONLY)
os.fchmod(held, 0o2711)
os.symlink("plain", "link")
os.mkdir("by-link")
os.chmod("link", 0o2755)'
find . -not -path './repository/.git/*' -printf '%M %p\n' | sort -k2
stat -c '%A' repository/.git/objects
cd ..; rm -r work
"#;

#[test]
fn g11_directories_have_a_set_group_id_bit_as_outside() {
    for flags in [&[][..], &["--guard", "sweep"], &["--disk", "100M"]] {
        let folder = Folder::new();
        let outside = sh(SCRIPT, folder.path()).expect_code(0).stdout;
        assert!(outside.contains("drwxrwsr-x ./made"), "{outside}");
        let inside = inside_with(&folder, flags, SCRIPT).expect_code(0);
        assert_eq!(inside.stdout, outside, "{flags:?} {}", inside.stderr);
    }
}

#[test]
fn g11_what_is_made_in_such_a_directory_has_its_group_and_bit() {
    let folder = Folder::new();
    sh("mkdir shared; chmod 2770 shared", folder.path()).expect_code(0);
    let script = "cd shared; touch file; mkdir below; python3 -c 'open(\"other\", \"w\")'; \
        [ $(stat -c %g .) = $(stat -c %g file) ] && [ $(stat -c %g .) = $(stat -c %g other) ] \
        && stat -c %A below . && chmod 770 . && stat -c %A .";
    let outcome = inside(&folder, script).expect_code(0);
    assert_eq!(outcome.stdout, "drwxr-sr-x\ndrwxrws---\ndrwxrws---\n");
}

/// Another thread puts a file where the directory was, again and again.
#[test]
fn g4_no_file_gets_the_bit_in_place_of_a_directory() {
    let folder = Folder::new();
    let program = r#"
import ctypes, os, threading
renameat2 = ctypes.CDLL(None).renameat2
os.mkdir("one")
open("two", "w").close()
over, changed = False, 0
def swap():
    while not over: renameat2(-100, b"one", -100, b"two", 2)
swapper = threading.Thread(target=swap)
swapper.start()
for _ in range(2000):
    try: os.chmod("one", 0o2755); changed += 1
    except PermissionError: pass
over = True
swapper.join()
print(changed > 0)
"#;
    folder.write("program.py", program);
    let outcome = inside(&folder, "python3 program.py").expect_code(0);
    assert_eq!(outcome.stdout, "True\n");
    let found = sh("find . -type f -perm /6000", folder.path()).expect_code(0);
    assert_eq!(found.stdout, "");
}

/// A standard stream that is a file of the host is not the command's, by
/// whatever name it calls it; other files are, also where there is one.
#[test]
fn g4_the_mode_of_a_stream_stays() {
    let attempts = [
        "chmod 777 /dev/stdout",
        "chmod 777 /proc/self/fd/1",
        "chmod 777 /dev/fd/1",
        "ln -s /dev/stdout link; chmod 777 link",
        "ln -s /proc/self/fd link; chmod 777 link/1",
        "python3 -c 'import os; os.fchmod(1, 0o777)'",
        "python3 -c 'import os; os.chmod(1, 0o777)'",
    ];
    for attempt in attempts {
        let (folder, elsewhere) = (Folder::new(), Folder::new());
        let path = elsewhere.write("log", "");
        let reset = || std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600));
        let mode = || path.metadata().expect("a log").permissions().mode() & 0o777;
        let log = || std::fs::File::options().append(true).open(&path);
        reset().expect("its mode");
        let outside = format!("exec >> '{}'; {attempt}", path.display());
        sh(&outside, folder.path()).expect_code(0);
        assert_eq!(mode(), 0o777, "{attempt} has no effect outside");
        reset().expect("its mode");
        let script = format!("rm -f link; {attempt}; touch file; chmod 640 file");
        let run = ringfence().args(["run", "--", "sh", "-c", &script]);
        let outcome = run
            .folder(folder.path())
            .with(|command| {
                command.stdout(Stdio::from(log().expect("a log")));
            })
            .run()
            .expect_code(0);
        assert_eq!(mode(), 0o600, "{attempt} {}", outcome.stderr);
        let other = folder.join("file").metadata().expect("a file");
        assert_eq!(other.permissions().mode() & 0o777, 0o640);
    }
}
