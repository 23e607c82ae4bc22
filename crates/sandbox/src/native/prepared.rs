//! The filters of a sandbox and the way its command begins, made ready while
//! the sandbox is planned: whoever needs them has others waiting.

use ringfence_policy::AuditLevel;
use ringfence_sys::Errno;
use ringfence_sys::seccomp::Program;

use super::filters::{self, Watch};
use super::observe::{self, Pass};
use crate::judge::Judge;

/// How the command's process comes to be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// In the init's memory, to become the command, with this pass where that
    /// would wait for the init.
    InMemory(Option<Pass>),
    /// As a copy, with whether its own calls wait for the init from its filter
    /// on, its `execve` at the latest.
    Copied { waits: bool },
}

impl Way {
    fn choose(level: AuditLevel, has_terminal: bool) -> Result<Self, Errno> {
        // One that waits for us cannot be waited for.
        if has_terminal || level == AuditLevel::All {
            let waits = level >= AuditLevel::Security;
            return Ok(Self::Copied { waits });
        }
        let pass = (level == AuditLevel::Security).then(Pass::new);
        pass.transpose().map(Self::InMemory)
    }
}

/// What a sandbox's processes are restricted with.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(super) way: Way,
    /// Of the command's process. It has a listener where the init judges.
    pub(super) command: Program,
    /// Of the init.
    pub(super) init: Program,
}

impl Prepared {
    pub(crate) fn new(
        level: AuditLevel,
        judge: Judge,
        watch: Watch,
        has_terminal: bool,
    ) -> Result<Self, Errno> {
        let way = Way::choose(level, has_terminal)?;
        let command = match (judge, way) {
            (Judge::Nobody, _) => filters::unjudged(),
            (Judge::Init, Way::InMemory(Some(pass))) => {
                observe::of_command_with(level, watch, pass)
            }
            (Judge::Init, _) => observe::of_command(level, watch),
        };
        let init = match judge {
            Judge::Init => filters::of_init(),
            // The command inherits it.
            Judge::Nobody => filters::hardening(),
        };
        Ok(Self {
            way,
            command: command.assemble()?,
            init: init.assemble()?,
        })
    }
}
