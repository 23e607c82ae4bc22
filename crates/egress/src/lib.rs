//! The way out of a sandbox: DNS with virtual addresses, transparent TCP,
//! HTTP and SOCKS proxies, resolving, judging, dialling and relaying.
//!
//! Everything is handed in (listeners, policy, log, resolver), so that it works
//! on plain loopback as well. No decision is made here: each attempt goes
//! through its `Exit`, which asks `ringfence_policy::decide` and
//! writes the answer down before it takes effect.
#![forbid(unsafe_code)]

mod attempt;
mod budget;
mod buffers;
mod callers;
mod carry;
mod closing;
mod cover;
mod credentials;
mod dial;
mod dns;
mod exit;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http;
mod inbox;
mod intercept;
mod limits;
mod memory;
mod names;
mod parent;
mod proxy;
mod questions;
mod refusal;
mod relay;
mod resolve;
mod secret;
mod secrets;
mod sentry;
mod service;
mod sips;
mod socks;
mod speech;
#[cfg(test)]
mod testing;
mod tls;
mod traffic;
mod transparent;

pub use budget::BudgetSettings;
pub use callers::Callers;
pub use dns::{Datagram, Datagrams};
pub use exit::{ProxyToken, Settings};
pub use intercept::{Authority, AuthorityError, Interception, Roots, RootsError};
pub use limits::Limits;
pub use parent::{ParentError, ParentProxies, ParentProxy};
pub use questions::{Answer, Ask, HOLD, Question};
pub use refusal::RefusalWords;
pub use secret::{Credentials, Placeholder, Secret, SecretError, Vault};
pub use secrets::untold;
pub use service::{Handle, Idle, Inlets, Service};
