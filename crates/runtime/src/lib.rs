//! The life of a sandbox: which policy holds, running a command under it,
//! and what this machine can enforce.
#![forbid(unsafe_code)]

mod audit_log;
mod doctor;
mod egress;
mod end;
mod evidence;
mod parents;
mod policy;
mod relay;
mod report;
mod run;
mod supervise;

pub use audit_log::audit_folder;
pub use doctor::{Check, Finding, Health, examine};
pub use egress::{Changes, EgressError, EgressRequest, Parents};
pub use evidence::{AuditRequest, EvidenceError};
pub use parents::parent_proxies;
pub use policy::{
    Loaded, PolicyInputs, PolicyLoadError, Sources, SrtInputs, SrtLoaded, SrtRest, check_file,
};
pub use report::{
    Destination, Enforcement, Exit, ExitReason, LimitHitReport, LimitReport, Report, report_schema,
};
pub use ringfence_egress::{ParentError, ParentProxies, ProxyToken};
pub use run::{RunError, RunRequest, Terminal, run};
