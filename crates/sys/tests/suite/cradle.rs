//! Namespaces that are made ahead of the process that lives in them.

use std::fs::{read_link, read_to_string};
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use ringfence_sys::{self as sys, Cradle, Errno, SignalQueue};
use rustix::process::{Pid, Signal, WaitStatus};

const KINDS: [&str; 7] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];

/// Runs `body` in a process with one thread.
fn alone(body: impl FnOnce()) {
    // SAFETY: this is `fork` of the C library, after which its allocator works
    // also in a child of many threads; the child uses no other lock.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: an integer only.
        unsafe { libc::alarm(60) };
        let outcome = catch_unwind(AssertUnwindSafe(body));
        sys::exit_now(i32::from(outcome.is_err()));
    }
    assert_eq!(status_of(Pid::from_raw(pid).unwrap()), Some(0));
}

fn status_of(pid: Pid) -> Option<i32> {
    sys::reap(pid).ok().and_then(WaitStatus::exit_status)
}

fn namespaces() -> Vec<String> {
    let name = |kind| read_link(format!("/proc/self/ns/{kind}")).unwrap();
    KINDS.map(|kind| name(kind).display().to_string()).to_vec()
}

#[test]
fn whoever_is_born_has_every_namespace_to_itself() {
    alone(|| {
        let outside = namespaces();
        let ours = rustix::process::getpid();
        let born = Cradle::new().unwrap().bear(None, || {
            let is_shared = namespaces().iter().any(|name| outside.contains(name));
            let is_first = rustix::process::getpid() == Pid::INIT;
            // Of the supervisor, which is outside of its pid namespace.
            let is_orphan = rustix::process::getppid().is_none();
            if !is_shared && is_first && is_orphan {
                7
            } else {
                1
            }
        });
        let born = born.unwrap();
        let status = read_to_string(format!("/proc/{}/stat", born.pid.as_raw_pid())).unwrap();
        let (_, fields) = status.rsplit_once(')').unwrap();
        let parent = fields.split_whitespace().nth(1).unwrap();
        assert_eq!(parent, ours.as_raw_pid().to_string());
        assert_eq!(status_of(born.pid), Some(7));
    });
}

#[test]
fn its_network_is_up_and_nothing_but_loopback() {
    alone(|| {
        let born = Cradle::new().unwrap().bear(None, || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            std::net::TcpStream::connect(address).unwrap();
            let interfaces = read_to_string("/proc/self/net/dev").unwrap();
            let name = rustix::system::uname();
            assert_eq!(name.nodename().to_bytes(), b"localhost");
            // Two lines of a heading.
            i32::try_from(interfaces.lines().count()).unwrap() - 3
        });
        assert_eq!(status_of(born.unwrap().pid), Some(0));
    });
}

#[test]
fn signals_that_we_block_stay_blocked() {
    alone(|| {
        let mut cradle = Cradle::new().unwrap();
        // Only now, when the holder is there already.
        let _queue = SignalQueue::new(&[Signal::TERM]).unwrap();
        let born = cradle.bear(None, || {
            let status = read_to_string("/proc/self/status").unwrap();
            let mut lines = status.lines();
            let blocked = lines.find_map(|line| line.strip_prefix("SigBlk:\t"));
            let blocked = u64::from_str_radix(blocked.unwrap(), 16).unwrap();
            i32::from(blocked != 1 << (Signal::TERM.as_raw() - 1))
        });
        assert_eq!(status_of(born.unwrap().pid), Some(0));
    });
}

#[test]
fn it_runs_wherever_we_may() {
    alone(|| {
        let all = rustix::thread::sched_getaffinity(None).unwrap();
        let mut one = rustix::thread::CpuSet::new();
        one.set(rustix::thread::sched_getcpu());
        for allowed in [all, one] {
            rustix::thread::sched_setaffinity(None, &allowed).unwrap();
            let born = Cradle::new().unwrap().bear(None, || {
                let ours = rustix::thread::sched_getaffinity(None).unwrap();
                i32::from(ours != allowed)
            });
            assert_eq!(status_of(born.unwrap().pid), Some(0));
        }
    });
}

#[test]
fn g9_what_a_child_beside_us_says_about_its_processors_holds() {
    // The machine is busy, so that parent and child come in any order.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let outcome = catch_unwind(|| {
            alone(|| {
                let all = rustix::thread::sched_getaffinity(None).unwrap();
                let mut one = rustix::thread::CpuSet::new();
                one.set(rustix::thread::sched_getcpu());
                for turn in 0..100 {
                    let chosen = if turn % 2 == 0 { &all } else { &one };
                    let child = sys::fork_beside(|| {
                        if turn % 2 == 1 {
                            rustix::thread::sched_setaffinity(None, chosen).unwrap();
                        }
                        std::thread::sleep(std::time::Duration::from_millis(10));
                        i32::from(rustix::thread::sched_getaffinity(None).as_ref() != Ok(chosen))
                    });
                    assert_eq!(status_of(child.unwrap().pid), Some(0), "turn {turn}");
                }
                assert!(rustix::thread::sched_getaffinity(None).unwrap() == all);
            });
        });
        stop.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
}

#[test]
fn g9_a_child_in_our_memory_leaves_us_the_processors_that_we_had() {
    alone(|| {
        let all = rustix::thread::sched_getaffinity(None).unwrap();
        let mut one = rustix::thread::CpuSet::new();
        one.set(rustix::thread::sched_getcpu());
        for turn in 0..200 {
            let chosen = if turn % 2 == 0 { &all } else { &one };
            let own = || rustix::thread::sched_getaffinity(None).unwrap();
            rustix::thread::sched_setaffinity(None, chosen).unwrap();
            let child = sys::spawn_to_exec(|| i32::from(own() != *chosen));
            assert_eq!(status_of(child.unwrap().pid), Some(0), "turn {turn}");
            assert!(own() == *chosen, "turn {turn}");
        }
    });
}

#[test]
fn a_holder_that_was_killed_is_missed() {
    alone(|| {
        let mut cradle = Cradle::new().unwrap();
        rustix::process::kill_process(cradle.holder(), Signal::KILL).unwrap();
        let born = cradle.bear(None, || 0);
        assert_eq!(born.map(|born| born.pid), Err(Errno::CHILD));
    });
}

#[test]
fn nothing_is_left_of_one_that_was_not_needed() {
    alone(|| {
        let holder = Cradle::new().unwrap().holder();
        let there = rustix::process::test_kill_process(holder);
        assert_eq!(there, Err(Errno::SRCH));
    });
}

#[test]
fn g8_the_holder_ends_with_us() {
    let (ours, theirs) = sys::Channel::pair().unwrap();
    // SAFETY: as above.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let cradle = Cradle::new().unwrap();
        let holder = cradle.holder().as_raw_pid();
        theirs.send(&holder.to_ne_bytes(), &[]).unwrap();
        sys::exit_now(0);
    }
    assert_eq!(status_of(Pid::from_raw(pid).unwrap()), Some(0));
    let sys::Received::Message(holder, _) = ours.receive().unwrap() else {
        panic!("no word of the holder");
    };
    let holder = i32::from_ne_bytes(holder.try_into().unwrap());
    let there = || {
        let stat = read_to_string(format!("/proc/{holder}/stat")).unwrap_or_default();
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| !rest.starts_with(" Z"))
    };
    for _ in 0..500 {
        if !there() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the holder is still there");
}

/// A process that lives in namespaces of a cradle until it is killed, and its
/// network.
fn inhabited() -> (Cradle, sys::Child, sys::NetworkNamespace) {
    let mut cradle = Cradle::new().unwrap();
    let born = cradle.bear(None, || {
        std::thread::sleep(std::time::Duration::from_secs(50));
        1
    });
    let network = cradle.take_network().unwrap();
    (cradle, born.unwrap(), network)
}

#[test]
fn what_is_opened_on_a_visit_is_ours_and_of_that_network() {
    alone(|| {
        let (mut cradle, born, network) = inhabited();
        assert_eq!(cradle.take_network().unwrap_err(), Errno::BADF);
        let before = namespaces();
        let visitor = || {
            let net = read_link("/proc/thread-self/ns/net").unwrap();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            (net, listener)
        };
        let (seen, listener) = network.visit(visitor).unwrap();
        let pid = born.pid.as_raw_pid();
        // Root may look there; the user may not, and has the next.
        if let Ok(theirs) = read_link(format!("/proc/{pid}/ns/net")) {
            assert_eq!(seen, theirs);
        }
        let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let of = |listener: &std::net::TcpListener| sys::namespace_of(listener.as_fd()).unwrap();
        assert_ne!(of(&listener), of(&outside));
        // Nobody is left there, and we are where we were.
        assert_eq!(namespaces(), before);
        drop(cradle);
        born.signal(Signal::KILL).unwrap();
        sys::reap(born.pid).unwrap();
        let left = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
        assert_eq!(left.unwrap_err(), Errno::CHILD);
    });
}

#[test]
fn a_visitor_has_rights_there_and_nowhere_else() {
    alone(|| {
        let (_cradle, born, network) = inhabited();
        let name = rustix::system::uname().nodename().to_bytes().to_vec();
        let (routed, named) = network
            .visit(|| (sys::bring_anyip_up(), rustix::system::sethostname(&name)))
            .unwrap();
        routed.unwrap();
        assert_eq!(named, Err(Errno::PERM), "the machine's own name");
        born.signal(Signal::KILL).unwrap();
        sys::reap(born.pid).unwrap();
    });
}

#[test]
fn a_signal_that_comes_during_a_visit_waits_for_its_end() {
    alone(|| {
        let (_cradle, born, network) = inhabited();
        let queue = SignalQueue::new(&[Signal::USR1]).unwrap();
        let ours = rustix::process::getpid();
        let outcome = network.visit(|| {
            let visitor = rustix::process::getpid();
            rustix::process::kill_process(visitor, Signal::TERM).unwrap();
            rustix::process::kill_process(ours, Signal::USR1).unwrap();
            visitor != ours
        });
        assert_eq!(outcome, Ok(true));
        assert_eq!(queue.next(), Some(Signal::USR1.as_raw()));
        born.signal(Signal::KILL).unwrap();
        sys::reap(born.pid).unwrap();
    });
}
