//! G11: programs that nobody may look into (agents that hold keys) work with
//! directories that they hold open.

use ringfence_testkit::{Folder, sh};

use super::inside_with;

/// Each kind of call with a directory's descriptor. The first argument is the
/// directory that it is done in.
const PROGRAM: &str = r#"
import ctypes, os, sys
os.mkdir(sys.argv[1])
os.chdir(sys.argv[1])
os.mkdir("d")
d = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
place = os.open("d", os.O_PATH)
prctl = ctypes.CDLL(None).prctl
prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
assert prctl(3, 0, 0, 0, 0) == 0  # PR_GET_DUMPABLE
os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=d))
os.close(os.open("other", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=place))
os.mkdir("made", dir_fd=d)
os.rename("file", "made/moved", src_dir_fd=d, dst_dir_fd=d)
os.symlink("made/moved", "link", dir_fd=d)
os.link("made/moved", "second", src_dir_fd=d, dst_dir_fd=d)
os.mknod("pipe", 0o010600, dir_fd=d)
os.chmod("second", 0o640, dir_fd=d)
os.fchmod(d, 0o750)
os.close(os.open("/dev/fd/%d/below" % d, os.O_CREAT | os.O_WRONLY, 0o600))
nameless = os.open("d", os.O_TMPFILE | os.O_RDWR, 0o600)
os.link("/proc/self/fd/%d" % nameless, "named", dst_dir_fd=d, follow_symlinks=True)
os.unlink("other", dir_fd=d)
for name in sorted(os.listdir(d)):
    print(name, oct(os.lstat(name, dir_fd=d).st_mode))
try:
    os.open("none", os.O_CREAT | os.O_WRONLY, dir_fd=99)
except OSError as error:
    print(error.strerror)
"#;

#[test]
fn g11_directories_that_an_undumpable_process_holds_can_be_used() {
    for flags in [&[][..], &["--disk", "100M"]] {
        let folder = Folder::new();
        folder.write("program.py", PROGRAM);
        let outside = sh("python3 program.py outside", folder.path()).expect_code(0);
        assert!(outside.stdout.contains("named"), "{}", outside.stdout);
        let inside = inside_with(&folder, flags, "python3 program.py inside").expect_code(0);
        assert_eq!(inside.stdout, outside.stdout, "{flags:?}");
    }
}

/// Nor does it get anything by it that others do not.
#[test]
fn g4_an_undumpable_process_makes_no_protected_name() {
    let folder = Folder::new();
    let program = "import ctypes, os\n\
        here = os.open('.', os.O_RDONLY)\n\
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n\
        for attempt in [lambda: os.open('.bashrc', os.O_CREAT | os.O_WRONLY, dir_fd=here),\n\
        \x20               lambda: os.rename('plain', '.bashrc', src_dir_fd=here, dst_dir_fd=here)]:\n\
        \x20   try: attempt(); print('made')\n\
        \x20   except OSError as error: print(error.strerror)\n";
    folder.write("plain", "");
    folder.write("program.py", program);
    let outcome = inside_with(&folder, &[], "python3 program.py").expect_code(0);
    assert_eq!(outcome.stdout, "Read-only file system\n".repeat(2));
    assert!(!folder.has(".bashrc"));
}
