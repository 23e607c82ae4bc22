//! A scope of the user's own systemd: a control group that is given to us when
//! we ask, for as long as we are in it.
//!
//! It is us who are moved there, and the sandbox's group is made below it as
//! anywhere else. The first process of a sandbox could not be born in a scope
//! from outside: for that, the kernel wants a common place above both that is
//! ours (cgroups(7)), and what is above a login session is root's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_sys::Errno;

use super::bus::{self, BusError, Call, Connection, Deadline, Message, Writer};
use super::name::GroupName;
use super::place::Hierarchies;
use crate::host::BusVariables;

/// How long all of it may take.
const LONGEST: Duration = Duration::from_secs(3);
const SUFFIX: &str = ".scope";
const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const PATH: &str = "/org/freedesktop/systemd1";
/// What a job says when it did what it should.
const DONE: &str = "done";

/// Why there is no scope to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScopeError {
    #[error("the user has no bus here")]
    NoBus,
    #[error("no name can be made for it: {0}")]
    Name(Errno),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("the bus takes us for another process, {0}")]
    OtherProcess(u32),
    #[error("systemd's job ended with {0}")]
    Job(String),
    #[error("systemd did not move us")]
    NotMoved,
}

/// Moves this process into a new scope, and says where it is from then on.
pub(crate) fn enter(bus: &BusVariables) -> Result<Hierarchies, ScopeError> {
    let buses = bus::addresses(bus);
    let name = unit_name().map_err(ScopeError::Name)?;
    ask_any(&buses, &name, Deadline::after(LONGEST))?;
    let here = Hierarchies::here();
    let is_there = here.v2().first().is_some_and(|own| own.ends_with(&name));
    is_there.then_some(here).ok_or(ScopeError::NotMoved)
}

/// Whether this place is in a scope that was made on our request.
pub(crate) fn holds(place: &Path) -> bool {
    place.iter().any(|part| {
        let stem = part.to_str().and_then(|part| part.strip_suffix(SUFFIX));
        stem.and_then(GroupName::parse).is_some()
    })
}

fn unit_name() -> Result<String, Errno> {
    GroupName::new().map(|name| format!("{name}{SUFFIX}"))
}

/// The first bus with a systemd that does it; else what the last one said.
fn ask_any(buses: &[PathBuf], name: &str, deadline: Deadline) -> Result<(), ScopeError> {
    let mut answer = Err(ScopeError::NoBus);
    for path in buses {
        answer = ask(path, name, deadline);
        if answer.is_ok() {
            break;
        }
    }
    answer
}

/// Has systemd make the scope with this process in it, and waits until it has.
fn ask(path: &Path, name: &str, deadline: Deadline) -> Result<(), ScopeError> {
    let mut bus = Connection::open(path, deadline)?;
    let us = std::process::id();
    let seen = bus.own_pid()?;
    if seen != us {
        return Err(ScopeError::OtherProcess(seen));
    }
    let mut rule = Writer::default();
    rule.text(&format!(
        "type='signal',sender='{SYSTEMD}',path='{PATH}',interface='{MANAGER}',member='JobRemoved'"
    ));
    let watched = bus.call_bus("AddMatch", "s", rule)?;
    bus.reply_to(watched)?;
    let started = bus.send(start(name, us))?;
    let reply = bus.reply_to(started)?;
    let job = reply.read("o").and_then(|mut body| body.text());
    let job = job.map_err(BusError::from)?;
    match result_of(&mut bus, job)?.as_str() {
        DONE => Ok(()),
        other => Err(ScopeError::Job(other.to_owned())),
    }
}

/// `StartTransientUnit(name, mode, properties, others)`.
fn start(name: &str, pid: u32) -> Message {
    let mut body = Writer::default();
    body.text(name);
    body.text("fail");
    body.array(8, |all| {
        all.property("Description", "s", |value| value.text("ringfence"));
        all.property("PIDs", "au", |value| {
            value.array(4, |pids| pids.number(pid));
        });
        // What is below is ours, with every controller that the user has.
        all.property("Delegate", "b", |value| value.truth(true));
        // A sandbox that was killed leaves no failed unit behind.
        all.property("CollectMode", "s", |value| value.text("inactive-or-failed"));
    });
    body.array(8, |_| {});
    let call = Call {
        destination: SYSTEMD,
        path: PATH,
        interface: MANAGER,
        member: "StartTransientUnit",
    };
    call.with("ssa(sv)a(sa(sv))", body)
}

/// Waits for the end of a job of systemd's. It starts after the reply that
/// names it, so its end cannot have been missed.
fn result_of(bus: &mut Connection, job: &str) -> Result<String, BusError> {
    loop {
        let message = bus.next()?;
        if !message.is_signal(MANAGER, "JobRemoved") {
            continue;
        }
        let mut body = message.read("uoss")?;
        let (_, ended, _, result) = (body.number()?, body.text()?, body.text()?, body.text()?);
        body.end()?;
        if ended == job {
            return Ok(result.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
