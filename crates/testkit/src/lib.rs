//! For tests only: temporary folders, running the built `ringfence` binary
//! with a bound on its time, and a small internet to run it in.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, reason = "a test kit fails the test on the spot")]
#![allow(clippy::missing_panics_doc, reason = "the same")]

mod folder;
mod framings;
#[cfg(feature = "internet")]
mod internet;
mod processes;
mod program;

pub use folder::Folder;
pub use framings::{Framing, framings};
#[cfg(feature = "internet")]
pub use internet::{
    Answer, Certificate, Connection, Datagram, Grpc, Internet, Query, Service, Ssh, Transport, Web,
    Zone, place,
};
pub use processes::{own_ids, processes_with, status_of};
pub use program::{Outcome, Program, Started, is_root, sh, wait_until};
