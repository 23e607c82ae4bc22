//! Where things are in a small internet: addresses, ports, names, and the
//! commands for `ip` that make it so. Nothing of it leaves the namespaces, so
//! the public addresses can be any that the policy takes for public.

/// A public address of the world.
pub const PUBLIC: &str = "45.0.0.10";
/// The same machine over IPv6.
pub const PUBLIC6: &str = "2a0f:ffff::10";
/// Another public machine.
pub const OTHER_PUBLIC: &str = "45.0.0.11";
/// The other machine over IPv6.
pub const OTHER_PUBLIC6: &str = "2a0f:ffff::11";
/// A third, in another network.
pub const THIRD_PUBLIC: &str = "46.0.0.7";
/// A machine of the organisation's private network.
pub const PRIVATE: &str = "10.1.2.3";
/// Another private network.
pub const OTHER_PRIVATE: &str = "192.168.7.7";
/// Shared address space, as behind a carrier's translator.
pub const SHARED: &str = "100.64.0.9";
/// A unique local address.
pub const PRIVATE6: &str = "fd00:1234::5";
/// Where clouds hand out credentials.
pub const METADATA: &str = "169.254.169.254";
/// The same over IPv6.
pub const METADATA6: &str = "fd00:ec2::254";
/// An address that is reserved for documentation.
pub const RESERVED: &str = "203.0.113.10";
/// The resolver in `/etc/resolv.conf`.
pub const NAMESERVER: &str = "192.168.7.53";
/// A resolver that anybody may ask.
pub const PUBLIC_NAMESERVER: &str = "45.0.0.53";
/// The same over IPv6.
pub const PUBLIC_NAMESERVER6: &str = "2a0f:ffff::53";
/// The host's own address.
pub const HOST: &str = "10.77.0.2";
/// The host's own address over IPv6.
pub const HOST6: &str = "2a0f:ffff:77::2";
/// What is sent here is lost without a word. Other unknown addresses are
/// reported to be unreachable.
pub const BLACK_HOLE: &str = "45.0.9.1";

/// The numbers of the ports; the world has each at all of its addresses.
pub mod port {
    /// Plain HTTP.
    pub const HTTP: u16 = 80;
    /// Plain HTTP; also on the host itself.
    pub const HTTP_HIGH: u16 = 8080;
    /// HTTP over TLS.
    pub const HTTPS: u16 = 443;
    /// HTTP over TLS.
    pub const HTTPS_HIGH: u16 = 8443;
    /// Sends back what it gets, then how much that was.
    pub const ECHO: u16 = 7;
    /// The same; also on the host itself.
    pub const ECHO_HIGH: u16 = 5432;
    /// Speaks first, then sends back what it gets.
    pub const BANNER: u16 = 25;
    /// Real `sshd`, once [`Internet::ssh`](crate::Internet::ssh) made its keys.
    pub const SSH: u16 = 22;
    /// Answers `PING`, `SET` and `GET` of `redis-cli`.
    pub const REDIS: u16 = 6379;
    /// An organisation's proxy for everyone.
    pub const PROXY: u16 = 3128;
    /// An organisation's proxy for `user` with the password `password`.
    pub const PROXY_WITH_PASSWORD: u16 = 3129;
    /// gRPC over TLS, once [`Internet::grpc`](crate::Internet::grpc) was called.
    pub const GRPC: u16 = 50051;
    /// UDP ports at which datagrams are kept: HTTP/3, time, and any other.
    pub const DATAGRAMS: [u16; 3] = [443, 123, 9999];
}

/// Addresses of the world, in the order in which they are made.
pub(super) const WORLD: &[&str] = &[
    PUBLIC,
    PUBLIC6,
    OTHER_PUBLIC,
    OTHER_PUBLIC6,
    THIRD_PUBLIC,
    PRIVATE,
    OTHER_PRIVATE,
    SHARED,
    PRIVATE6,
    METADATA,
    METADATA6,
    RESERVED,
    NAMESERVER,
    PUBLIC_NAMESERVER,
    PUBLIC_NAMESERVER6,
];

/// Names that exist from the start.
pub(super) const NAMES: &[(&str, &[&str])] = &[
    ("web.example.org", &[PUBLIC, PUBLIC6]),
    ("api.example.org", &[OTHER_PUBLIC, OTHER_PUBLIC6]),
    ("v4.example.org", &[PUBLIC]),
    ("v6.example.org", &[PUBLIC6]),
    ("other.test", &[THIRD_PUBLIC]),
    ("private.test", &[PRIVATE]),
    ("private6.test", &[PRIVATE6]),
    ("shared.test", &[SHARED]),
    ("metadata.test", &[METADATA]),
    ("reserved.test", &[RESERVED]),
    ("loopback.test", &["127.0.0.1", "::1"]),
];

/// Where UDP datagrams are kept.
pub(super) const DATAGRAMS_AT: [&str; 4] = [PUBLIC, PUBLIC6, PRIVATE, NAMESERVER];

/// The ends of the cable. Both sides are told the other's, because a machine
/// that just came up would look for its neighbour for a second.
const HOST_CARD: &str = "02:00:00:00:77:02";
const GATEWAY_CARD: &str = "02:00:00:00:77:01";

/// What `ip` does on the host first; the world's process follows.
pub(super) const CABLE: [&str; 13] = [
    "link",
    "add",
    "name",
    "eth0",
    "address",
    HOST_CARD,
    "type",
    "veth",
    "peer",
    "name",
    "wan",
    "address",
    GATEWAY_CARD,
];

/// What `ip -batch` does on the host, once the cable is there.
pub(super) fn host_script() -> String {
    format!(
        "link set lo up\n\
         address add {HOST}/24 dev eth0\n\
         address add {HOST6}/64 dev eth0 nodad\n\
         link set eth0 up\n\
         neighbour add 10.77.0.1 lladdr {GATEWAY_CARD} dev eth0 nud permanent\n\
         neighbour add 2a0f:ffff:77::1 lladdr {GATEWAY_CARD} dev eth0 nud permanent\n\
         route add 0.0.0.0/0 via 10.77.0.1\n\
         route add ::/0 via 2a0f:ffff:77::1 dev eth0\n"
    )
}

/// What `ip -batch` does in the world.
pub(super) fn world_script() -> String {
    let addresses = WORLD.iter().map(|address| {
        // Without the look for a twin, which would not be over at once.
        let rest = if address.contains(':') {
            "/128 dev lo nodad"
        } else {
            "/32 dev lo"
        };
        format!("address add {address}{rest}\n")
    });
    let wiring = format!(
        "link set lo up\n\
         address add 10.77.0.1/24 dev wan\n\
         address add 2a0f:ffff:77::1/64 dev wan nodad\n\
         link set wan up\n\
         neighbour add {HOST} lladdr {HOST_CARD} dev wan nud permanent\n\
         neighbour add {HOST6} lladdr {HOST_CARD} dev wan nud permanent\n\
         route add blackhole 45.0.9.0/24\n\
         route add unreachable 0.0.0.0/0 metric 1000\n\
         route add unreachable ::/0 metric 1000\n"
    );
    wiring + &addresses.collect::<String>()
}

/// Switches of the world's kernel: it forwards, or unknown addresses would be
/// dropped in silence, and it tells so every time.
pub(super) const SWITCHES: [(&str, &str); 4] = [
    ("/proc/sys/net/ipv4/ip_forward", "1"),
    ("/proc/sys/net/ipv6/conf/all/forwarding", "1"),
    ("/proc/sys/net/ipv4/icmp_ratelimit", "0"),
    ("/proc/sys/net/ipv6/icmp/ratelimit", "0"),
];
