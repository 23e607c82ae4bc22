//! A process whose memory is its own.

use rustix::process::{DumpableBehavior, Resource, Rlimit};

use crate::Result;

/// Keeps the memory of this process from core dumps and from other processes
/// of the same user, for as long as it lives.
///
/// From then on its files in `/proc` are root's: ids must be mapped before.
pub fn keep_secrets() -> Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none)?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Errno, Probe, in_child};

    #[test]
    fn g5_a_process_with_secrets_is_never_dumped() {
        let kept = in_child(Probe::Plain, || {
            keep_secrets()?;
            let limit = rustix::process::getrlimit(Resource::Core);
            let dumpable = rustix::process::dumpable_behavior()?;
            let is_kept = limit.maximum == Some(0) && dumpable == DumpableBehavior::NotDumpable;
            is_kept.then_some(()).ok_or(Errno::PERM)
        });
        assert_eq!(kept, Ok(()));
    }
}
