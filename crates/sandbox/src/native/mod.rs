//! The native backend: namespaces, mounts, Landlock and seccomp, with no
//! helper program and no privilege.

mod broker;
mod child;
mod failure;
mod filters;
mod init;
mod mounts;
mod network;
mod refusals;
mod spawn;

pub use spawn::{Running, Serve, SpawnError, spawn};
