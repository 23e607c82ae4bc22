//! The life of a sandbox: which policy holds, running a command under it,
//! and what this machine can enforce.
#![forbid(unsafe_code)]

mod doctor;
mod policy;
mod relay;
mod report;
mod run;
mod supervise;

pub use doctor::{Check, Finding, Health, examine};
pub use policy::{PolicyInputs, PolicyLoadError, Sources, check_file};
pub use report::{Enforcement, Exit, ExitReason, Report, report_schema};
pub use run::{RunError, RunRequest, Terminal, run};
