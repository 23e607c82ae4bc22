//! What the command can ask of the kernel: nothing that reaches past the fence.

use ringfence_testkit::{Folder, Program, is_root};

use super::arena::{Arena, Outside, refused};
use super::{inside_with, ringfence};

#[test]
fn there_is_no_capability_and_no_way_to_get_one() {
    let arena = Arena::new();
    let status = arena.inside("cat /proc/self/status").expect_code(0).stdout;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim).unwrap_or_default().to_owned()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Seccomp:"), "2");
}

#[test]
fn calls_that_reach_past_the_fence_are_refused() {
    let arena = Arena::prepared("mkdir d e");
    let io_uring = if is_set("kernel/io_uring_disabled") {
        Outside::Untried
    } else {
        Outside::Anyone
    };
    for (attack, outside) in [
        // namespaces: user, mount, network, all
        ("unshare 0x10000000", Outside::Anyone),
        ("unshare 0x20000", Outside::Root),
        ("unshare 0x40000000", Outside::Root),
        ("unshare 0x7e020000", Outside::Anyone),
        ("unshare 0x10000080", Outside::Anyone),
        ("clone 0x10000000", Outside::Anyone),
        ("clone 0x110000000", Outside::Anyone),
        ("clone 0x20000000", Outside::Root),
        ("clone3 0x10000000", Outside::Anyone),
        ("clone3 0", Outside::Anyone),
        ("setns /proc/self/ns/net", Outside::Root),
        ("setns /proc/self/ns/user", Outside::Untried),
        // parts of the kernel with a history
        ("io-uring", io_uring),
        ("userfaultfd", Outside::Anyone),
        ("bpf", Outside::Root),
        ("perf", Outside::Root),
        ("keyctl", Outside::Anyone),
        // mounts, roots, devices, handles
        ("mount d", Outside::Root),
        ("bind-mount d e", Outside::Root),
        ("open-tree d", Outside::Root),
        ("pivot $PWD/d", Outside::Root),
        ("chroot d", Outside::Root),
        ("device node", Outside::Root),
        ("device /tmp/node", Outside::Untried),
        ("handle attack", Outside::Root),
        ("bare-handle", Outside::Untried),
        // the init
        ("attach 1", Outside::Untried),
        ("peek 1 0x400000", Outside::Untried),
    ] {
        arena.refuses(&format!("./attack {attack}"), outside);
    }
}

/// Whether a switch of the kernel is there and not 0.
fn is_set(switch: &str) -> bool {
    std::fs::read_to_string(format!("/proc/sys/{switch}")).is_ok_and(|value| value.trim() != "0")
}

#[test]
fn nothing_can_be_typed_into_a_terminal() {
    // Newer kernels refuse it to everybody unless they are told otherwise.
    let outside = if is_set("dev/tty/legacy_tiocsti") {
        Outside::Anyone
    } else {
        Outside::Untried
    };
    let arena = Arena::new();
    for high in ["0", "1", "0xffffffff"] {
        let error = arena.refuses(&format!("./attack tiocsti {high}"), outside);
        assert_eq!(error, "EPERM\n", "{high}");
    }
}

#[test]
fn mounts_of_the_view_cannot_be_changed() {
    let arena = Arena::new();
    if is_root() {
        let apart = ["-m", "./attack", "umount", "/proc"];
        let proof = Program::new("unshare").args(apart).folder(&arena.folder);
        proof.run().expect_code(0);
    }
    for attack in [
        "umount /proc",
        "umount /tmp",
        "umount /dev",
        "umount $PWD",
        "remount /usr",
        "remount /",
    ] {
        let attack = format!("./attack {attack}");
        let error = refused(&attack, arena.inside(&attack)).stdout;
        assert_eq!(error, "EPERM\n", "{attack}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_another_architecture_end_the_process() {
    const SIGSYS: i32 = 31;
    let arena = Arena::new();
    arena.outside("./attack int80").expect_code(0);
    // 39 is getpid, 165 mount.
    for words in [&["int80"][..], &["x32", "39"], &["x32", "165"]] {
        ringfence()
            .args(["run", "--", "./attack"])
            .args(words.iter().copied())
            .folder(&arena.folder)
            .run()
            .expect_code(128 + SIGSYS);
    }
}

#[test]
fn a_debugger_works_on_its_own_children_only() {
    let arena = Arena::new();
    arena.inside("./attack trace-child").expect_code(0);
    refused("attach 1", arena.inside("./attack attach 1"));
}

#[test]
fn the_init_survives_every_signal_from_inside() {
    let script =
        "for s in KILL TERM INT HUP STOP SEGV CHLD; do kill -s $s 1; done; echo alive > f; cat f";
    let outcome = Arena::new().inside(script).expect_code(0);
    assert_eq!(outcome.stdout, "alive\n");
}

#[test]
fn memory_segments_and_queues_of_the_host_are_out_of_sight() {
    let arena = Arena::new();
    let key = arena.outside("./attack shm-make").expect_code(0).stdout;
    let find = format!("./attack shm-find {}", key.trim());
    arena.outside(&find).expect_code(0);
    let outcome = refused(&find, arena.inside(&find));
    arena
        .outside(&format!("./attack shm-remove {}", key.trim()))
        .expect_code(0);
    assert_eq!(outcome.stdout, "ENOENT\n");

    let name = arena.folder.path().display().to_string().replace('/', "-");
    arena
        .outside(&format!("./attack queue-make /{name}"))
        .expect_code(0);
    let find = format!("./attack queue-find /{name}");
    arena.outside(&find).expect_code(0);
    let outcome = refused(&find, arena.inside(&find));
    arena
        .outside(&format!("./attack queue-remove /{name}"))
        .expect_code(0);
    assert_eq!(outcome.stdout, "ENOENT\n");
}

#[test]
fn kernel_controls_cannot_be_written() {
    let arena = Arena::new();
    let script = r"
        for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/kernel/modprobe \
                 /proc/sys/vm/overcommit_memory /proc/sys/net/ipv4/ip_forward /proc/sysrq-trigger \
                 /proc/sys/user/max_user_namespaces /proc/1/oom_score_adj /proc/self/uid_map \
                 /sys/kernel/mm/transparent_hugepage/enabled /sys/power/state /sys/fs/cgroup/cgroup.procs; do
            [ -e $f ] || continue
            if (: >> $f) 2>/dev/null; then echo open $f; fi
            if (echo 0 > $f) 2>/dev/null; then echo written $f; fi
        done
        (: > /sys/new || mkdir /sys/fs/cgroup/new || : > /proc/new) 2>/dev/null && echo made
        true";
    let outcome = arena.inside(script).expect_code(0);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn processes_of_the_host_are_out_of_sight() {
    let arena = Arena::new();
    let own = std::process::id();
    let script = format!("ls -d /proc/[0-9]*; kill -0 {own}");
    let proof = arena.outside(&script).expect_code(0);
    assert!(
        proof
            .stdout
            .lines()
            .any(|line| line == format!("/proc/{own}"))
    );
    let outcome = refused(
        &script,
        arena.inside("ls -d /proc/[0-9]*; kill -0 99999999"),
    );
    // The init and the shell.
    let seen: Vec<&str> = outcome.stdout.lines().collect();
    assert!(seen.len() == 2 && seen[0] == "/proc/1", "{seen:?}");
}

#[test]
fn g6_g10_nothing_runs_where_the_fence_cannot_be_built() {
    let folder = Folder::new();
    let nested = format!("{} run -- touch made", ringfence().path().display());
    let outcome =
        inside_with(folder.path(), &["--read", &binary_folder()], &nested).expect_code(125);
    assert!(outcome.stderr.contains("hint:"), "{}", outcome.stderr);
    assert!(!folder.has("made"));
}

/// Where the binary under test lies: perhaps below the host's `/tmp`.
fn binary_folder() -> String {
    let program = ringfence().path().canonicalize().expect("the binary");
    program.parent().expect("its folder").display().to_string()
}

#[test]
fn g6_the_first_instruction_is_already_fenced() {
    let folder = Folder::new();
    let outcome = inside_with(folder.path(), &[], "echo > .bashrc || exit 9").expect_code(9);
    assert!(
        outcome.stderr.contains("protected name"),
        "{}",
        outcome.stderr
    );
    assert!(!folder.has(".bashrc"));
}

#[test]
fn a_process_sets_its_own_limits_by_its_number_and_nobody_elses() {
    const LIMITS: &str = "
import os, resource, subprocess, threading
def limit(process):
    try: resource.prlimit(process, resource.RLIMIT_NOFILE, (64, 128)); return \"set\"
    except OSError as error: return error.strerror
other = subprocess.Popen([\"sleep\", \"100\"])
print(limit(1), limit(other.pid), limit(os.getpid()), limit(0), sep=\", \")
print(resource.getrlimit(resource.RLIMIT_NOFILE))
other.kill()";
    let folder = Folder::new();
    for level in ["off", "network", "standard", "security", "all"] {
        let script = format!("python3 -c '{LIMITS}'");
        let outcome = inside_with(&folder, &["--audit", level], &script);
        let refused = "Operation not permitted";
        let expected = format!("{refused}, {refused}, set, set\n(64, 128)\n");
        assert_eq!(outcome.expect_code(0).stdout, expected, "{level}");
    }
}

/// Storage by a request of the file system, past the call that is judged; the
/// same list holds what makes names and snapshots on others.
#[test]
fn g4_requests_of_file_systems_are_as_unknown() {
    const RESERVE: &str = "
import fcntl, os, struct
file = open(\"file\", \"w+\")
try: fcntl.ioctl(file, 0x4030582a, struct.pack(\"hhqqII4I\", 0, 0, 0, 1 << 20, 0, 0, 0, 0, 0, 0))
except OSError as error: print(error.strerror)
else: print(os.fstat(file.fileno()).st_blocks > 0)";
    let arena = Arena::new();
    let script = format!("python3 -c '{RESERVE}'");
    let outside = arena.outside(&script).expect_code(0);
    assert_eq!(outside.stdout, "True\n");
    for level in ["standard", "security"] {
        let inside = arena.inside_with(&["--audit", level], &script);
        let expected = "Inappropriate ioctl for device\n";
        assert_eq!(inside.expect_code(0).stdout, expected, "{level}");
    }
}

/// What programs ask of files, sockets, pipes and terminals, by number, and
/// what they ask in vain.
#[test]
fn g11_requests_of_ordinary_programs_are_answered_as_outside() {
    const ASK: &str = "
import errno, fcntl, os, pty, socket
def ask(of, *requests):
    for request in requests:
        try: answer = len(fcntl.ioctl(of, request, b\"\\0\" * 256))
        except OSError as error: answer = errno.errorcode[error.errno]
        print(hex(request), answer)
file = open(\"file\", \"w+\")
ask(file, 0x541b, 0x5421, 0x5451, 0x5450, 0x5460, 0x5401, 0x5413)
ask(file, 2, 0x80086601, 0xc020660b, 0x80087601, 0x801c581f, 0x80111500, 0x81009431)
ask(file, 0x40049409, 0x4020940d, 0xc0189436, 0x80081272, 0x1268, 0x801c6d02, 0x301)
ask(os.open(\".\", os.O_RDONLY), 0x80086601, 0x801c581f, 0x541b)
ask(os.pipe()[0], 0x541b, 0x5421)
ask(socket.socket(), 0x541b, 0x8905, 0x8912, 0x8913, 0x8915)
ask(pty.openpty()[1], 0x5401, 0x5413, 0x540f, 0x5429, 0x802c542a, 0x5430)
ask(open(\"/dev/urandom\"), 0x80045200)
ask(open(\"/proc/self/ns/net\"), 0xb703)";
    let arena = Arena::new();
    let script = format!("python3 -c '{ASK}'");
    let outside = arena.outside(&script).expect_code(0).stdout;
    assert_eq!(arena.inside(&script).expect_code(0).stdout, outside);
    assert!(outside.contains("0x80086601 256"), "{outside}");
}

#[test]
fn only_ordinary_personalities_can_be_taken() {
    const TAKE: &str = "
import ctypes, sys
take = ctypes.CDLL(None).personality
sys.exit(take(ctypes.c_ulong(int(sys.argv[1], 16))) < 0)";
    let arena = Arena::new();
    let take = |persona: &str| format!("python3 -c '{TAKE}' {persona}");
    // No randomisation, everything executable, a page at 0, another system.
    for persona in ["0x40000", "0x400000", "0x100000", "0x100040000", "2"] {
        arena.refuses(&take(persona), Outside::Anyone);
    }
    for persona in ["0", "8", "0x20000", "0x20008", "0xffffffff"] {
        arena.inside(&take(persona)).expect_code(0);
    }
}
