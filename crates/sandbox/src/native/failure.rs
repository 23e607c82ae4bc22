//! A failed step of building the sandbox, with what it was about.

use std::path::{Path, PathBuf};

use ringfence_sys::Errno;

use super::spawn::SpawnError;
use crate::wire::{Event, Step};

/// A step, the path it was about, and the kernel's answer.
#[derive(Debug)]
pub(super) struct Failure {
    step: Step,
    path: Option<PathBuf>,
    errno: Errno,
}

impl Failure {
    /// A failure that another process told of.
    pub(super) fn told(step: Step, path: Option<String>, errno: i32) -> Self {
        Self {
            step,
            path: path.map(PathBuf::from),
            errno: Errno::from_raw_os_error(errno),
        }
    }

    pub(super) fn event(&self) -> Event {
        Event::SetupFailed {
            step: self.step,
            path: self.path.as_ref().map(|path| path.display().to_string()),
            errno: self.errno.raw_os_error(),
        }
    }
}

impl From<Failure> for SpawnError {
    fn from(failure: Failure) -> Self {
        let path = failure.path.map(|path| path.display().to_string());
        Self::of_step(failure.step, path, failure.errno)
    }
}

/// Says which step a system call was part of.
pub(super) trait During<T> {
    fn during(self, step: Step) -> Result<T, Failure>;
    fn at(self, step: Step, path: &Path) -> Result<T, Failure>;
}

impl<T> During<T> for Result<T, Errno> {
    fn during(self, step: Step) -> Result<T, Failure> {
        self.map_err(|errno| Failure {
            step,
            path: None,
            errno,
        })
    }

    fn at(self, step: Step, path: &Path) -> Result<T, Failure> {
        self.map_err(|errno| Failure {
            step,
            path: Some(path.to_path_buf()),
            errno,
        })
    }
}
