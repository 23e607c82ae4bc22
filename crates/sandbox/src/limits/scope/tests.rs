//! Asking for a scope on a real bus, with somebody who acts as systemd; and
//! with listeners that are no bus at all.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

use super::super::bus::rig::{Bus, Manager, Manners, far_away};
use super::*;

const NAME: &str = "ringfence-1-2-3-0000000a.scope";

fn answer(manners: Manners) -> (Result<(), ScopeError>, Message) {
    let bus = Bus::start();
    let manager = Manager::start(&bus.path(), manners);
    let answer = ask(&bus.path(), NAME, far_away());
    (answer, manager.call())
}

/// What comes of a listener that says this, whatever it is asked.
fn answer_of_listener(says: &'static [u8]) -> Result<(), ScopeError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    let speaking = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(says).unwrap();
        // Until the other end is closed, with or without a reset.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let answer = ask(&path, NAME, far_away());
    speaking.join().unwrap();
    answer
}

#[test]
fn a_scope_is_there_when_its_job_is_done() {
    let (answer, call) = answer(Manners::Job("done"));
    answer.unwrap();
    assert_eq!(call.header.member.as_deref(), Some("StartTransientUnit"));
    let mut body = call.read("ssa(sv)a(sa(sv))").unwrap();
    assert_eq!((body.text(), body.text()), (Ok(NAME), Ok("fail")));
    let sent = start(NAME, std::process::id());
    assert_eq!(call.body, sent.body);
}

#[test]
fn a_job_that_failed_is_no_scope() {
    let (answer, _) = answer(Manners::Job("failed"));
    assert!(matches!(answer, Err(ScopeError::Job(result)) if result == "failed"));
}

#[test]
fn a_refusal_is_told_by_its_name() {
    let denied = "org.freedesktop.DBus.Error.AccessDenied";
    let (answer, _) = answer(Manners::Refuse(denied));
    assert!(matches!(answer, Err(ScopeError::Bus(BusError::Refused(name))) if name == denied));
}

#[test]
fn a_bus_without_systemd_refuses() {
    let bus = Bus::start();
    let answer = ask(&bus.path(), NAME, far_away());
    let Err(ScopeError::Bus(BusError::Refused(name))) = answer else {
        panic!("{answer:?}");
    };
    assert!(name.starts_with("org.freedesktop.DBus.Error."), "{name}");
}

#[test]
fn silence_ends_with_the_time() {
    let bus = Bus::start();
    let manager = Manager::start(&bus.path(), Manners::Silence);
    let soon = Deadline::after(Duration::from_millis(500));
    let answer = ask(&bus.path(), NAME, soon);
    assert!(
        matches!(answer, Err(ScopeError::Bus(BusError::Late))),
        "{answer:?}"
    );
    drop(bus);
    manager.call();
}

#[test]
fn other_types_than_expected_are_no_answer() {
    for manners in [Manners::OtherReply, Manners::OtherSignal] {
        let (answer, _) = answer(manners);
        assert!(
            matches!(answer, Err(ScopeError::Bus(BusError::Malformed(_)))),
            "{manners:?}: {answer:?}"
        );
    }
}

#[test]
fn what_is_no_bus_is_left_at_once() {
    let other = answer_of_listener(b"REJECTED EXTERNAL\r\n");
    assert!(
        matches!(other, Err(ScopeError::Bus(BusError::Unauthenticated))),
        "{other:?}"
    );
    let garbage: [&[u8]; 3] = [
        &[b'x'; 1000],
        b"OK 5\r\ngarbage, and more of it",
        // A message of four gigabytes.
        b"OK 5\r\nl\x02\0\x01\xff\xff\xff\xff\x01\0\0\0\0\0\0\0",
    ];
    for says in garbage {
        let answer = answer_of_listener(says);
        assert!(
            matches!(answer, Err(ScopeError::Bus(BusError::Malformed(_)))),
            "{answer:?}"
        );
    }
}

#[test]
fn the_next_bus_is_asked_when_one_cannot() {
    let (without, with) = (Bus::start(), Bus::start());
    let _manager = Manager::start(&with.path(), Manners::Job("done"));
    ask_any(&[without.path(), with.path()], NAME, far_away()).unwrap();
    let none = ask_any(&[], NAME, far_away());
    assert!(matches!(none, Err(ScopeError::NoBus)));
}

#[test]
fn only_scopes_of_our_own_making_are_known() {
    let name = unit_name().unwrap();
    assert!(holds(&Path::new("/user.slice/app.slice").join(&name)));
    assert!(holds(&Path::new("/user.slice").join(&name).join("below")));
    for other in [
        "/user.slice/session-1.scope",
        "/ringfence-1-2-3-0000000a",
        "/",
    ] {
        assert!(!holds(Path::new(other)), "{other}");
    }
}
