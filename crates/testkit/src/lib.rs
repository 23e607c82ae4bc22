//! For tests only: temporary folders, and running the built `ringfence`
//! binary with a bound on its time.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, reason = "a test kit fails the test on the spot")]
#![allow(clippy::missing_panics_doc, reason = "the same")]

mod folder;
mod processes;
mod program;

pub use folder::Folder;
pub use processes::{own_ids, processes_with, status_of};
pub use program::{Outcome, Program, Started, is_root, sh, wait_until};
