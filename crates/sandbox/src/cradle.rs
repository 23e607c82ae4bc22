//! Namespaces for a sandbox, made before it is known what it is to be.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringfence_sys::{self as sys, Errno};

/// Namespaces that are made while a policy is read and a plan is made.
///
/// A process holds them until a sandbox is born there. Where that process would
/// be in the way it is dismissed, and another takes its place when it is needed.
#[derive(Debug, Clone, Default)]
pub struct Cradle(Arc<Mutex<Made>>);

#[derive(Debug, Default)]
struct Made {
    holder: Option<Result<sys::Cradle, Errno>>,
}

impl Cradle {
    /// Begins to make them. What fails is told when a sandbox is made.
    pub fn prepare() -> Self {
        Self(Arc::new(Mutex::new(Made {
            holder: Some(sys::Cradle::new()),
        })))
    }

    /// The process that holds them, if one does.
    pub(crate) fn holder(&self) -> Option<u32> {
        let made = self.made();
        let holder = made.holder.as_ref()?.as_ref().ok()?.holder();
        Some(holder.as_raw_pid().cast_unsigned())
    }

    /// Says that a sandbox will be born there soon.
    pub(crate) fn wake(&self) {
        if let Some(Ok(holder)) = &mut self.made().holder {
            // What fails is told when it is asked for.
            let _ = holder.wake();
        }
    }

    /// Ends the process that holds them.
    pub(crate) fn dismiss(&self) {
        drop(std::mem::take(&mut *self.made()));
    }

    /// For one sandbox: those that were made, or else new ones.
    pub(crate) fn take(&self) -> Result<sys::Cradle, Errno> {
        let made = std::mem::take(&mut *self.made());
        made.holder.unwrap_or_else(sys::Cradle::new)
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
