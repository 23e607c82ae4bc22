//! From a resolved policy to a running sandbox.
//!
//! [`Plan::build`] turns a policy and this machine's facts into explicit
//! instructions and fails on anything that cannot be enforced here. A backend
//! carries a plan out; there is no other way to start a command.
#![forbid(unsafe_code)]

mod cradle;
mod environment;
mod git;
mod guard;
mod guarding;
mod host;
mod judge;
mod limits;
mod mappings;
mod mount_table;
mod native;
mod network;
mod observation;
mod plan;
mod proxy;
mod rights;
mod sensitive;
mod survey;
mod sweep;
mod trust;
mod view;
mod wire;
mod within;

pub use cradle::Cradle;
pub use guarding::Guarding;
pub use host::{BusVariables, Host, HostError};
pub use judge::Judge;
pub use limits::{HeldLimit, LimitHit, LimitName, Mechanism, Unheld, Usage, limit_mechanisms};
pub use native::{Attendant, ObservationError, Running, SpawnError, spawn};
pub use network::{Callers, Dialled, HTTP_PROXY_PORT, Inlets, SOCKS_PROXY_PORT};
pub use observation::{Action, Observation, Observed, Outcome};
pub use plan::{
    Alias, Command, GivenFile, GuardAnswer, Intercept, Layer, LayerState, PRIVATE_FOLDERS,
    PathAccess, PathAnswer, PathExplainer, PathQuestion, PathReason, Plan, PlanError, PlanRequest,
    ServedFrom, Stream, Weaker,
};
pub use proxy::ProxyUser;
pub use sweep::{SweepRecord, Sweeper, Swept};
pub use trust::{Certificates, JAVA_PASSWORD, OWN_FOLDER, Trust, TrustPlan, certificate_variables};
pub use view::{Cover, PrivateLayer, Shows, ViewError};
pub use wire::{Ended, Event, Operation, Refusal, RefusalKind, Step};
