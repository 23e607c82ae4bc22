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
mod sensitive;
mod trust;
mod view;
mod wire;
mod within;

pub use cradle::Cradle;
pub use host::{Host, HostError};
pub use judge::Judge;
pub use limits::{HeldLimit, LimitHit, LimitName, Mechanism, Unheld, Usage, limit_mechanisms};
pub use native::{Attendant, ObservationError, Running, SpawnError, spawn};
pub use network::{Callers, Dialled, HTTP_PROXY_PORT, Inlets, SOCKS_PROXY_PORT};
pub use observation::{Action, Observation, Observed, Outcome};
pub use plan::{
    Command, GivenFile, Intercept, Layer, LayerState, PRIVATE_FOLDERS, Plan, PlanError,
    PlanRequest, ServedFrom, Stream, Weaker,
};
pub use proxy::ProxyUser;
pub use trust::{JAVA_PASSWORD, Trust, TrustPlan};
pub use view::ViewError;
pub use wire::{Ended, Event, Operation, Refusal, RefusalKind, Step};
