//! The native backend: namespaces, mounts, Landlock and seccomp, with no
//! helper program and no privilege.

mod broker;
mod calls;
mod child;
mod copy_on_write;
mod covers;
mod desk;
mod disk;
mod failure;
mod filters;
mod given;
mod handover;
mod init;
mod landlock;
mod late;
mod life;
mod mounts;
mod network;
mod observations;
mod observe;
mod prepared;
mod refusals;
mod scratch;
mod spawn;
mod storage;
mod watchdog;

pub(crate) use filters::Watch;
pub(crate) use given::can_be_mapped;
pub use observations::ObservationError;
pub(crate) use prepared::Prepared;
pub use spawn::{Attendant, Running, SpawnError, spawn};
