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
    /// Unless the policy wants nothing but loopback. One that allows nothing is
    /// served as well: its refusals say who was wanted.
    #[default]
    UnlessAbsent,
    /// Also then: the policy may change.
    Always,
}

/// From when on the network of a sandbox is served. Until then nobody listens
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedFrom {
    /// Before the command starts.
    Start,
    /// When the command first connects or binds a socket of the internet, which
    /// waits for it, or asks for a name. Most of what a start with a network
    /// takes is spared for a command that does not.
    FirstUse,
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
        /// From when on.
        served_from: ServedFrom,
    },
}

impl NetworkPlan {
    pub(super) fn choose(
        policy: &Resolved<Policy>,
        intercept: Intercept,
        served_from: ServedFrom,
    ) -> Self {
        if policy.network_is_absent() && intercept == Intercept::UnlessAbsent {
            return Self::Closed;
        }
        Self::Intercepted {
            ports: single_ports(policy),
            served_from,
        }
    }

    /// Whether who uses it first has to wait for it.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(
            self,
            Self::Intercepted {
                served_from: ServedFrom::FirstUse,
                ..
            }
        )
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
            ("/etc/resolv.conf", name_server()),
            ("/etc/hosts", Some(hosts())),
            ("/etc/nsswitch.conf", name_services()),
        ];
        let mut overlays = Vec::new();
        for (path, text) in texts {
            let Some(text) = text else { continue };
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

/// `None` where the host's own will do: every address is answered at, so it
/// must only not have names tried below other names.
fn name_server() -> Option<String> {
    let path = Path::new("/etc/resolv.conf");
    let is_shown = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let own = std::fs::read_to_string(path).unwrap_or_default();
    (!is_shown || !asks_plainly(&own)).then(|| format!("nameserver {NAME_SERVER}\n"))
}

/// Whether a `resolv.conf` names servers and nothing else that matters here.
fn asks_plainly(text: &str) -> bool {
    let lines = || {
        text.lines()
            .filter_map(|line| line.split_whitespace().next())
    };
    let is_plain = |word: &str| word == "nameserver" || word.starts_with(['#', ';']);
    lines().all(is_plain) && lines().any(|word| word == "nameserver")
}

/// The host's own, but for how names of hosts are found: other services, such
/// as that of systemd, would be asked through sockets that are not there.
/// `None` where the host's own says the same.
fn name_services() -> Option<String> {
    let own = std::fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
    services_without_others(&own)
}

fn services_without_others(own: &str) -> Option<String> {
    let is_about_hosts = |line: &&str| line.trim_start().starts_with("hosts:");
    let plain = |line: &str| line.split_whitespace().eq(["hosts:", "files", "dns"]);
    let mut about_hosts = own.lines().filter(is_about_hosts);
    if about_hosts.next().is_some_and(plain) && about_hosts.next().is_none() {
        return None;
    }
    let others = own.lines().filter(|line| !is_about_hosts(line));
    let lines = others.chain(["hosts: files dns"]);
    Some(lines.fold(String::new(), |text, line| text + line + "\n"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_alone_are_left_as_they_are() {
        assert!(asks_plainly(
            "# mine\nnameserver 192.0.2.1\nnameserver ::1\n\n"
        ));
        for text in [
            "",
            "nameserver 192.0.2.1\nsearch corp.test\n",
            "nameserver 192.0.2.1\noptions ndots:5\n",
            "domain corp.test\nnameserver 192.0.2.1\n",
        ] {
            assert!(!asks_plainly(text), "{text:?}");
        }
    }

    #[test]
    fn names_of_hosts_come_from_files_and_then_from_the_name_server() {
        assert_eq!(
            services_without_others("passwd: files\nhosts:\tfiles  dns\n"),
            None
        );
        assert_eq!(
            services_without_others(
                "hosts: files resolve [!UNAVAIL=return] dns\nnetworks: files\n"
            ),
            Some("networks: files\nhosts: files dns\n".to_owned())
        );
        assert_eq!(
            services_without_others(""),
            Some("hosts: files dns\n".to_owned())
        );
    }
}
