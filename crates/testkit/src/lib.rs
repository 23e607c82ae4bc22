//! For tests only: temporary folders, and running the built `ringfence`
//! binary with a bound on its time.
#![forbid(unsafe_code)]

mod folder;
mod program;

pub use folder::Folder;
pub use program::{Outcome, Program, Started, is_root, sh, wait_until};
