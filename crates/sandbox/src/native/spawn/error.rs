//! Why a sandbox does not start, or is lost.

use std::path::PathBuf;

use ringfence_sys::Errno;

use crate::wire::Step;

/// Why a sandbox did not start. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The process could not be made.
    #[error("cannot make a process in new namespaces: {0}")]
    Clone(Errno),
    /// A step inside failed.
    #[error("{step} failed{}: {errno}", .path.as_deref().map(|path| format!(" at {path}")).unwrap_or_default())]
    Setup {
        /// The step.
        step: Step,
        /// What it was about.
        path: Option<String>,
        /// The kernel's answer.
        errno: Errno,
    },
    /// Another sandbox around this process has the only listener that there
    /// can be.
    #[error("the listener for system calls is taken by another sandbox that this process is in")]
    ListenerTaken,
    /// Something else is where a place of the host is to be shown.
    #[error(
        "{path} cannot be shown: a link or a file is in the way, on the host or in a kept home"
    )]
    InTheWay {
        /// The place.
        path: String,
    },
    /// A folder's file system cannot show files under another owner.
    #[error("{} is on a file system without id-mapped mounts", .path.display())]
    NoIdMappedMounts {
        /// The folder.
        path: PathBuf,
    },
    /// A folder could not be prepared.
    #[error("cannot prepare {}: {errno}", .path.display())]
    Prepare {
        /// The folder.
        path: PathBuf,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The ids of the new user namespace could not be mapped.
    #[error("cannot map user and group ids: {0}")]
    MapIds(Errno),
    /// The sandbox's network cannot be entered to set it up.
    #[error("cannot set up the sandbox's network: {0}")]
    EnterNetwork(Errno),
    /// Nobody serves the sockets of its network.
    #[error("the sandbox's network is not served")]
    NotServed,
    /// Nobody gave the certificates that programs inside are to trust.
    #[error("the certificates that the sandbox trusts could not be made")]
    NoTrust,
    /// Nobody gave what a file with a secret in it shows instead.
    #[error("the secret in {} could not be replaced", .path.display())]
    NotMasked {
        /// The file.
        path: PathBuf,
    },
    /// Memory for files to hand in could not be had.
    #[error("cannot hand in files: {0}")]
    HandIn(Errno),
    /// The memory limit leaves no room for the sandbox itself.
    #[error("the memory limit is too low for the sandbox to start")]
    TooLittleMemory,
    /// The channel to the init broke.
    #[error("the sandbox's first process ended before it was ready")]
    InitDied,
    /// The init died while the command ran, and everything with it.
    #[error("the sandbox's first process died while the command ran, and the command with it")]
    InitLost,
    /// It said something that makes no sense.
    #[error("the sandbox's first process sent an unreadable message")]
    Protocol,
}

impl SpawnError {
    /// What a failed step means.
    pub(in crate::native) fn of_step(step: Step, path: Option<String>, errno: Errno) -> Self {
        match (step, errno) {
            // A process has one listener at most (seccomp(2)).
            (Step::Listener, Errno::BUSY) => Self::ListenerTaken,
            (Step::OpenPlace, Errno::LOOP | Errno::NOTDIR) if path.is_some() => Self::InTheWay {
                path: path.unwrap_or_default(),
            },
            _ => Self::Setup { step, path, errno },
        }
    }

    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Clone(_) => "namespaces-unavailable",
            Self::Setup {
                step: Step::Proc, ..
            } => "proc-unavailable",
            Self::Setup { .. } | Self::HandIn(_) => "setup-failed",
            Self::ListenerTaken => "listener-taken",
            Self::InTheWay { .. } => "place-in-the-way",
            Self::NoIdMappedMounts { .. } => "no-id-mapped-mounts",
            Self::Prepare { .. } => "folder-unusable",
            Self::MapIds(_) => "ids-unavailable",
            Self::EnterNetwork(_) | Self::NotServed => "egress-unavailable",
            Self::NoTrust => "trust-unavailable",
            Self::NotMasked { .. } => "not-masked",
            Self::TooLittleMemory => "memory-limit-too-low",
            Self::InitDied | Self::InitLost | Self::Protocol => "init-died",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoIdMappedMounts { .. } => {
                "run as an ordinary user, or accept that root's own id is behind the sandbox: --weaker host-root"
            }
            Self::InTheWay { .. } => {
                "if the home is kept, see which, and remove it: ringfence home list"
            }
            Self::ListenerTaken => {
                "start ringfence outside of that sandbox, or accept that nothing of the host is writable and calls are not recorded: --weaker listener"
            }
            Self::EnterNetwork(Errno::AGAIN | Errno::NOMEM) => {
                "let its user have more processes (ulimit -u), or the machine more memory"
            }
            Self::EnterNetwork(_) => {
                "allow ringfence the call setns(2), or run it with the network closed: --no-network"
            }
            Self::TooLittleMemory => "allow it some megabytes more: --memory",
            Self::InitLost => "look for an out-of-memory kill in the kernel's log: dmesg",
            Self::NotMasked { .. } => "check that the file holds the secret, or hide all of it",
            Self::Prepare { .. } => "check that the folder exists and that you may read it",
            _ => "see what this machine can enforce, and the fix: ringfence doctor",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g10_a_listener_that_is_taken_is_told_from_one_that_fails() {
        let error = |step, errno| SpawnError::of_step(step, None, errno);
        let taken = error(Step::Listener, Errno::BUSY);
        assert_eq!(taken.code(), "listener-taken");
        assert!(taken.hint().ends_with("--weaker listener"));
        for (step, errno) in [(Step::Listener, Errno::INVAL), (Step::Scratch, Errno::BUSY)] {
            assert_eq!(error(step, errno).code(), "setup-failed");
        }
    }
}
