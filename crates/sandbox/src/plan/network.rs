//! How a sandbox reaches the world, if it does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ringfence_policy::{Policy, Resolved};

use super::error::PlanError;
use crate::view::{Content, Overlay, Place};

/// The name server that programs inside are told of. Any address would do.
const NAME_SERVER: &str = "198.18.0.1";
/// Listened on in any case where ports must be listened on one by one, so that
/// what is refused there says why.
const USUAL_PORTS: [u16; 4] = [22, 53, 80, 443];
/// The most ports that are listened on one by one.
const MOST_PORTS: usize = 48;

/// When connections are led to listeners that somebody outside serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Intercept {
    /// When the policy allows anything at all.
    #[default]
    WhenOpen,
    /// Also while it allows nothing: it may change, or its refusals be told.
    Always,
}

/// The network of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetworkPlan {
    /// Its own loopback and nothing else.
    Closed,
    /// Every connection ends at a listener of ours.
    Intercepted {
        /// What is listened on where the kernel cannot intercept every port.
        ports: Vec<u16>,
    },
}

impl NetworkPlan {
    pub(super) fn choose(policy: &Resolved<Policy>, intercept: Intercept) -> Self {
        if policy.network_is_closed() && intercept == Intercept::WhenOpen {
            return Self::Closed;
        }
        Self::Intercepted {
            ports: single_ports(policy),
        }
    }

    pub(crate) fn is_intercepted(&self) -> bool {
        matches!(self, Self::Intercepted { .. })
    }

    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Closed => "closed: only the sandbox's own loopback",
            Self::Intercepted { .. } => "every TCP connection and DNS question is judged outside",
        }
    }

    /// Files that tell programs where to ask for names.
    pub(super) fn files(&self) -> Result<Vec<Overlay>, PlanError> {
        if !self.is_intercepted() {
            return Ok(Vec::new());
        }
        let texts = [
            ("/etc/resolv.conf", format!("nameserver {NAME_SERVER}\n")),
            ("/etc/hosts", hosts()),
            ("/etc/nsswitch.conf", name_services()),
        ];
        let mut overlays = Vec::new();
        for (path, text) in texts {
            // A program that finds none asks 127.0.0.1, which is answered too.
            if let Some(path) = real_file(Path::new(path))? {
                overlays.push(Overlay {
                    path,
                    content: Content::File(text.into_bytes()),
                });
            }
        }
        Ok(overlays)
    }
}

fn real_file(path: &Path) -> Result<Option<PathBuf>, PlanError> {
    Ok(Place::find(path)?
        .filter(|place| !place.is_folder)
        .map(|place| place.path))
}

fn hosts() -> String {
    "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n".to_owned()
}

/// The host's own, but for how names of hosts are found: other services, such
/// as that of systemd, would be asked through sockets that are not there.
fn name_services() -> String {
    let own = std::fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
    let others = own
        .lines()
        .filter(|line| !line.trim_start().starts_with("hosts:"));
    others
        .chain(["hosts: files dns"])
        .fold(String::new(), |text, line| text + line + "\n")
}

/// Every port that a rule names, as far as they can be counted.
fn single_ports(policy: &Resolved<Policy>) -> Vec<u16> {
    let named = policy
        .network()
        .allow()
        .iter()
        .flat_map(|rule| rule.ports.ranges())
        .filter(|(low, high)| !(*low == 1 && *high == u16::MAX))
        .flat_map(|(low, high)| low..=high)
        .chain(policy.network().host_ports().iter().map(|port| port.get()));
    let ports: BTreeSet<u16> = USUAL_PORTS.into_iter().chain(named).collect();
    ports.into_iter().take(MOST_PORTS).collect()
}
