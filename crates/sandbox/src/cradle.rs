//! Namespaces for a sandbox, made before it is known what it is to be.

use std::sync::{Arc, Mutex, PoisonError};

use ringfence_sys::{self as sys, Errno};

/// Namespaces that are made while a policy is read and a plan is made.
///
/// A process holds them until a sandbox is born there. Where that process would
/// be in the way it is dismissed, and another takes its place when it is needed.
#[derive(Debug, Clone, Default)]
pub struct Cradle(Arc<Mutex<Option<Result<sys::Cradle, Errno>>>>);

impl Cradle {
    /// Begins to make them. What fails is told when a sandbox is made.
    pub fn prepare() -> Self {
        Self(Arc::new(Mutex::new(Some(sys::Cradle::new()))))
    }

    /// The process that holds them, if one does.
    pub(crate) fn holder(&self) -> Option<u32> {
        let cradle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let holder = cradle.as_ref()?.as_ref().ok()?.holder();
        Some(holder.as_raw_pid().cast_unsigned())
    }

    /// Ends the process that holds them.
    pub(crate) fn dismiss(&self) {
        drop(self.take_made());
    }

    /// For one sandbox: those that were made, or else new ones.
    pub(crate) fn take(&self) -> Result<sys::Cradle, Errno> {
        self.take_made().unwrap_or_else(sys::Cradle::new)
    }

    fn take_made(&self) -> Option<Result<sys::Cradle, Errno>> {
        let mut cradle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cradle.take()
    }
}
