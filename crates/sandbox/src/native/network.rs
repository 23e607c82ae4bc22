//! The sandbox's own network: a loopback, which is up, and where the policy
//! opens it, listeners that every connection ends at.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ringfence_sys::{self as net, Families, Family};
use ringfence_sys::{Channel, Errno};

use rustix::fs::{Mode, OFlags};

use super::child::tell;
use super::failure::{During, Failure};
use crate::network::{HTTP_PROXY_PORT, Inlet, Interception, SOCKS_PROXY_PORT};
use crate::plan::NetworkPlan;
use crate::wire::{Event, Step};

/// The port of name servers.
const NAME_SERVICE: u16 = 53;

/// The namespace's own setting.
const FAST_OPEN: &str = "/proc/sys/net/ipv4/tcp_fastopen";

/// Listeners that every connection ends at.
struct Network {
    inlets: Vec<(Inlet, OwnedFd)>,
    interception: Interception,
}

/// Sets the network up, while the init has the rights to, and hands its sockets
/// to the supervisor.
pub(super) fn set_up(plan: &NetworkPlan, supervisor: &Channel) -> Result<(), Failure> {
    match plan {
        NetworkPlan::Closed => Ok(()),
        NetworkPlan::Intercepted { ports, singly } => {
            let families = net::bring_anyip_up().during(Step::Loopback)?;
            refuse_fast_open().at(Step::Loopback, Path::new(FAST_OPEN))?;
            let ports = ports.as_slice();
            let network = open(families, ports, *singly).during(Step::Inlets)?;
            hand_out(network, supervisor).during(Step::Channel)
        }
    }
}

fn hand_out(network: Network, supervisor: &Channel) -> Result<(), Errno> {
    let (inlets, sockets): (Vec<_>, Vec<_>) = network.inlets.into_iter().unzip();
    let descriptors: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
    let event = Event::Network {
        inlets,
        interception: network.interception,
    };
    tell(supervisor, &event, &descriptors)
}

/// TCP Fast Open connects without `connect`, so that nobody would know who did.
fn refuse_fast_open() -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let setting = match rustix::fs::open(FAST_OPEN, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    rustix::io::write(setting, b"0").map(drop)
}

fn open(families: Families, ports: &[u16], singly: bool) -> Result<Network, Errno> {
    let mut inlets = Vec::new();
    for family in families.each() {
        for port in [HTTP_PROXY_PORT, SOCKS_PROXY_PORT] {
            inlets.push((Inlet::Proxy, net::loopback_listener(*family, port)?));
        }
        let names = net::datagram_socket(*family, NAME_SERVICE)?;
        inlets.push((Inlet::Names, names));
    }
    // Setting the rules takes long where nobody else on the machine has any,
    // so the supervisor does it, while the init goes on.
    let rules = net::rules_socket().ok().filter(|_| !singly);
    let (listeners, interception) = match &rules {
        Some(_) => (listen_everywhere(families)?, Interception::EveryPort),
        // Without nf_tables other ports are refused by the kernel: nothing
        // gets out that would not otherwise.
        None => (
            listen_on(families, ports)?,
            Interception::Ports(ports.to_vec()),
        ),
    };
    let listeners = listeners.into_iter();
    inlets.extend(listeners.map(|listener| (Inlet::Transparent, listener)));
    inlets.extend(rules.map(|rules| (Inlet::Rules, rules)));
    Ok(Network {
        inlets,
        interception,
    })
}

fn listen_everywhere(families: Families) -> Result<Vec<OwnedFd>, Errno> {
    let each = families.each().iter();
    each.map(|family| net::transparent_listener(*family))
        .collect()
}

fn listen_on(families: Families, ports: &[u16]) -> Result<Vec<OwnedFd>, Errno> {
    let each = families.each().iter();
    each.flat_map(|family: &Family| ports.iter().map(|port| (*family, *port)))
        .map(|(family, port)| net::anyip_listener(family, port))
        .collect()
}
