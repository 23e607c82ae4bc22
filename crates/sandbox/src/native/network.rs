//! The sandbox's own network, where the policy opens it: routes that keep every
//! packet in, and listeners that every connection ends at. The functions here
//! are for a process in its namespace with the rights to set it up.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ringfence_sys::Errno;
use ringfence_sys::{self as net, Families, Family};

use rustix::fs::{Mode, OFlags};

use super::failure::{During, Failure};
use crate::network::{HTTP_PROXY_PORT, SOCKS_PROXY_PORT};
use crate::wire::Step;

/// The port of name servers.
const NAME_SERVICE: u16 = 53;

/// The namespace's own setting.
const FAST_OPEN: &str = "/proc/sys/net/ipv4/tcp_fastopen";

/// A network in which names can be asked for.
#[derive(Debug)]
pub(super) struct Ground {
    families: Families,
    pub(super) names: Vec<OwnedFd>,
}

/// Listeners that every connection ends at.
pub(super) struct Listeners {
    pub(super) transparent: Vec<OwnedFd>,
    pub(super) proxies: Vec<OwnedFd>,
    pub(super) interception: Interception,
}

/// How connections are led to the listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interception {
    /// All of them, whatever their port.
    EveryPort,
    /// Those to these ports; any other is refused by the kernel.
    Ports(Vec<u16>),
}

/// Routes every address to the sandbox itself, and opens the sockets that
/// questions for names end at.
pub(super) fn prepare() -> Result<Ground, Failure> {
    let families = net::bring_anyip_up().during(Step::Loopback)?;
    refuse_fast_open().at(Step::Loopback, Path::new(FAST_OPEN))?;
    let each = families.each().iter();
    let names = each.map(|family| net::datagram_socket(*family, NAME_SERVICE));
    Ok(Ground {
        families,
        names: names.collect::<Result<_, _>>().during(Step::Inlets)?,
    })
}

/// Opens the listeners. These ports are listened on where the kernel cannot
/// intercept every port.
pub(super) fn listen(ground: &Ground, ports: &[u16]) -> Result<Listeners, Failure> {
    open(ground.families, ports).during(Step::Inlets)
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

fn open(families: Families, ports: &[u16]) -> Result<Listeners, Errno> {
    let mut proxies = Vec::new();
    for family in families.each() {
        for port in [HTTP_PROXY_PORT, SOCKS_PROXY_PORT] {
            proxies.push(net::loopback_listener(*family, port)?);
        }
    }
    let (transparent, interception) = match intercept(families) {
        Ok(listeners) => (listeners, Interception::EveryPort),
        // Without nf_tables other ports are refused by the kernel: nothing
        // gets out that would not otherwise.
        Err(_) => (
            listen_on(families, ports)?,
            Interception::Ports(ports.to_vec()),
        ),
    };
    Ok(Listeners {
        transparent,
        proxies,
        interception,
    })
}

/// Leads every connection to listeners, one for each family.
fn intercept(families: Families) -> Result<Vec<OwnedFd>, Errno> {
    let each = families.each().iter();
    let listeners = each
        .map(|family| net::transparent_listener(*family))
        .collect::<Result<Vec<_>, _>>()?;
    let port = |at: usize| {
        let listener = listeners.get(at);
        listener
            .map(|listener| net::local_port(listener.as_fd()))
            .transpose()
    };
    let port_v4 = port(0)?.ok_or(Errno::INVAL)?;
    net::intercept_tcp(port_v4, port(1)?)?;
    Ok(listeners)
}

fn listen_on(families: Families, ports: &[u16]) -> Result<Vec<OwnedFd>, Errno> {
    let each = families.each().iter();
    each.flat_map(|family: &Family| ports.iter().map(|port| (*family, *port)))
        .map(|(family, port)| net::anyip_listener(family, port))
        .collect()
}
