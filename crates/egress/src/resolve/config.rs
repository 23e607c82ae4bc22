//! `resolv.conf`, as glibc reads it (resolv.conf(5)).
//!
//! Read by hand: the crate for it knows no zones such as `%br-lan`. Search
//! lists are not read at all.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

/// glibc's `MAXNS`.
const MOST_SERVERS: usize = 3;

/// Which name servers to ask, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) servers: Vec<SocketAddr>,
    /// For one server to answer.
    pub(super) time: Duration,
    /// How often all of them are asked.
    pub(super) attempts: usize,
    pub(super) rotation: Rotation,
    pub(super) transport: Transport,
    pub(super) extensions: Extensions,
    pub(super) families: Families,
}

/// Who is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rotation {
    Off,
    /// `rotate`
    On,
}

/// How questions are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// Over TCP only when the answer is too long.
    Udp,
    /// `use-vc`
    Tcp,
}

/// Whether questions say that a long answer may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extensions {
    Off,
    /// `edns0`
    On,
}

/// Which addresses are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Families {
    Both,
    /// `single-request`
    BothInTurn,
    /// `no-aaaa`
    V4Only,
}

impl Config {
    /// `None` when there are name servers and none can be used. Without any,
    /// this machine is asked.
    pub(super) fn parse(text: &str, port: u16) -> Option<Self> {
        let mut config = Self::with_port(port);
        let mut named = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with(['#', ';'])) {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => named.extend(words.next()),
                Some("options") => words.for_each(|word| config.option(word)),
                _ => {}
            }
        }
        if named.is_empty() {
            return Some(config);
        }
        let usable = named.iter().filter_map(|text| server(text, port));
        config.servers = usable.take(MOST_SERVERS).collect();
        (!config.servers.is_empty()).then_some(config)
    }

    fn with_port(port: u16) -> Self {
        Self {
            servers: vec![(Ipv4Addr::LOCALHOST, port).into()],
            time: Duration::from_secs(5),
            attempts: 2,
            rotation: Rotation::Off,
            transport: Transport::Udp,
            extensions: Extensions::Off,
            families: Families::Both,
        }
    }

    /// Those that make no difference here are passed over, as are unknown ones.
    fn option(&mut self, word: &str) {
        match word.split_once(':').unwrap_or((word, "")) {
            ("timeout", value) => {
                if let Ok(seconds) = value.parse::<u64>() {
                    self.time = Duration::from_secs(seconds.clamp(1, 30));
                }
            }
            ("attempts", value) => {
                if let Ok(attempts) = value.parse::<usize>() {
                    self.attempts = attempts.clamp(1, 5);
                }
            }
            ("rotate", _) => self.rotation = Rotation::On,
            ("use-vc", _) => self.transport = Transport::Tcp,
            ("edns0", _) => self.extensions = Extensions::On,
            ("no-aaaa", _) => self.families = Families::V4Only,
            ("single-request", _) if self.families == Families::Both => {
                self.families = Families::BothInTurn;
            }
            _ => {}
        }
    }
}

fn server(text: &str, port: u16) -> Option<SocketAddr> {
    let Some((address, zone)) = text.split_once('%') else {
        let address: IpAddr = text.parse().ok()?;
        return Some((address, port).into());
    };
    let address = address.parse().ok()?;
    let zone = zone.parse().ok().or_else(|| link(zone))?;
    Some(SocketAddrV6::new(address, port, 0, zone).into())
}

/// The number of the interface called `name`.
fn link(name: &str) -> Option<u32> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    rustix::net::netdevice::name_to_index(&socket, name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Vec<String> {
        let config = Config::parse(text, 53).unwrap();
        config.servers.iter().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn servers_in_their_order() {
        assert_eq!(servers("nameserver 127.0.0.53\n"), ["127.0.0.53:53"]);
        let text = "search example.org\nnameserver\t192.0.2.1 # first\n;nameserver 192.0.2.9\n\
                    nameserver 2001:db8::1\n#nameserver 192.0.2.9\nnameserver bad\n\
                    nameserver 192.0.2.3\nnameserver 192.0.2.4\n";
        assert_eq!(
            servers(text),
            ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"]
        );
    }

    #[test]
    fn zones_are_numbers_or_interfaces() {
        assert_eq!(servers("nameserver fe80::1%7"), ["[fe80::1%7]:53"]);
        assert_eq!(servers("nameserver fe80::1%lo"), ["[fe80::1%1]:53"]);
        assert_eq!(Config::parse("nameserver fe80::1%no-such-link", 53), None);
    }

    #[test]
    fn without_servers_this_machine_is_asked() {
        for text in ["", "search example.org\n", "nameserver\n"] {
            assert_eq!(servers(text), ["127.0.0.1:53"], "{text:?}");
        }
        assert_eq!(Config::parse("nameserver localhost\n", 53), None);
    }

    #[test]
    fn options_of_glibc() {
        let plain = Config::with_port(53);
        let unknown = "options ndots:5 trust-ad timeout:x attempts inet6 debug\n";
        assert_eq!(Config::parse(unknown, 53).unwrap(), plain);
        let text = "options timeout:2 attempts:3 rotate\noptions use-vc edns0 single-request\n";
        let wanted = Config {
            time: Duration::from_secs(2),
            attempts: 3,
            rotation: Rotation::On,
            transport: Transport::Tcp,
            extensions: Extensions::On,
            families: Families::BothInTurn,
            ..plain.clone()
        };
        assert_eq!(Config::parse(text, 53).unwrap(), wanted);
        let extreme = Config::parse("options timeout:0 attempts:99 no-aaaa single-request\n", 53);
        let wanted = Config {
            time: Duration::from_secs(1),
            attempts: 5,
            families: Families::V4Only,
            ..plain
        };
        assert_eq!(extreme.unwrap(), wanted);
    }
}
