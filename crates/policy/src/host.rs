//! Host names, patterns of host names, and the split between names and addresses.
//!
//! Every reader of a name (policy files, DNS, SOCKS, CONNECT, `Host`, SNI) parses into these
//! types once, so that no two parts of the program can read one spelling in two ways.

mod authority;
mod inet;
mod name;
mod pattern;
mod target;

pub use authority::{HostPort, HostPortError, HttpUrl, HttpUrlError, check_path};
pub use name::{HostName, HostNameError};
pub use pattern::{Dialect, HostPattern, PatternError};
pub use target::{Target, TargetError};

/// The name under which the host's own loopback is reached, on the ports of `hostPorts`.
pub const HOST_ALIAS: &str = "host.ringfence.internal";
