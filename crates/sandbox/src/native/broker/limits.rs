//! Limits that a process sets for itself by its number.

use ringfence_sys::Errno;
use ringfence_sys::seccomp::Answer;
use rustix::process::Pid;

use super::caller::{Caller, as_descriptor};
use super::{Broker, Done, Outcome, seen};

impl Broker<'_> {
    /// `prlimit` with the number of a process. The caller's own is the same as
    /// none, which never comes here. Whose it is stands in a register and stays
    /// so while the caller waits, so the kernel may carry it out.
    pub(super) fn limit(&mut self, caller: &Caller<'_>, target: u64) -> Outcome {
        let number = as_descriptor(target);
        let target = Pid::from_raw(number).map(seen::process_of);
        if target == Some(caller.process()?) {
            return Ok(Done::Now(Answer::Continue));
        }
        let subject = format!("process {number}");
        self.subject.is_refused(&subject, seen::CALL_RULES);
        Err(Errno::PERM)
    }
}
