//! Properties of whole policies, over random ones.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proptest::prelude::*;
use proptest::sample::select;
use ringfence_policy::{
    AllowRule, Cidr, Decision, DenyRule, Destination, Dialect, HostPattern, HttpPath, Layer,
    LayerKind, Method, NetworkMode, Origin, PathPattern, Policy, Port, PortSet, Request, Resolved,
    Sourced, Target, decide, explain, resolve,
};

const HOSTS: &[&str] = &[
    "example.org",
    "a.example.org",
    "b.a.example.org",
    "example.com",
    "bücher.example.org",
    "evil.test",
    "host.ringfence.internal",
];
const PATTERNS: &[&str] = &[
    "example.org",
    "a.example.org",
    "*.example.org",
    "**.example.org",
    "*.a.example.org",
    "*.example.com",
    "bücher.example.org",
    "evil.test",
];
const BLOCKS: &[&str] = &[
    "10.0.0.0/8",
    "10.1.0.0/16",
    "127.0.0.1",
    "93.184.216.34",
    "169.254.169.254",
    "fd00::/8",
    "128.0.0.0/1",
];
const ADDRESSES: &[&str] = &[
    "93.184.216.34",
    "10.1.2.3",
    "10.2.2.3",
    "127.0.0.1",
    "169.254.169.254",
    "fd00::1",
    "64:ff9b::a01:203",
    "2606:4700::1",
];
const PORTS: &[u16] = &[80, 443, 8443];

fn destination() -> impl Strategy<Value = Destination> {
    let host = select(PATTERNS)
        .prop_map(|text| Destination::Host(HostPattern::parse(text, Dialect::Native).unwrap()));
    let block = select(BLOCKS).prop_map(|text| Destination::Block(Cidr::parse(text).unwrap()));
    prop_oneof![2 => host, 1 => block]
}

fn ports() -> impl Strategy<Value = PortSet> {
    let one = select(PORTS).prop_map(|port| PortSet::single(Port::new(port).unwrap()));
    prop_oneof![one, Just(PortSet::web()), Just(PortSet::any())]
}

fn allow() -> impl Strategy<Value = AllowRule> {
    let methods =
        prop::option::weighted(0.2, Just(BTreeSet::from([Method::parse("GET").unwrap()])));
    let paths = prop::option::weighted(0.2, Just(vec![PathPattern::parse("/v1/**").unwrap()]));
    let parts = (destination(), ports(), methods, paths, any::<bool>());
    parts.prop_map(|(destination, ports, methods, paths, inspect)| AllowRule {
        methods,
        paths,
        inspect,
        ..AllowRule::plain(destination, ports)
    })
}

fn deny() -> impl Strategy<Value = DenyRule> {
    (destination(), ports()).prop_map(|(destination, ports)| DenyRule::plain(destination, ports))
}

fn mode() -> impl Strategy<Value = Option<NetworkMode>> {
    select(vec![
        None,
        None,
        Some(NetworkMode::Deny),
        Some(NetworkMode::Allowlist),
        Some(NetworkMode::Open),
    ])
}

/// Each layer is a file of its own, so that rules of two layers may contradict each other.
fn layer() -> impl Strategy<Value = Layer> {
    let kinds = select(vec![
        LayerKind::Config,
        LayerKind::Kit,
        LayerKind::SrtSettings,
        LayerKind::Flag,
    ]);
    let parts = (
        kinds,
        mode(),
        prop::collection::vec(allow(), 0..4),
        prop::collection::vec(deny(), 0..2),
        any::<bool>(),
        any::<u16>(),
    );
    parts.prop_map(|(kind, mode, allow, deny, request, id)| {
        let mut layer = Layer::empty(Origin::new(kind, format!("l{id}")));
        layer.network.mode = mode.map(|mode| Sourced::new(mode, layer.origin.clone()));
        layer.network.allow = Some(
            allow
                .into_iter()
                .map(|rule| Sourced::new(rule, layer.origin.clone()))
                .collect(),
        );
        let elsewhere = Origin::new(kind, format!("d{id}"));
        layer.network.deny = deny
            .into_iter()
            .map(|rule| Sourced::new(rule, elsewhere.clone()))
            .collect();
        if request { layer.as_request() } else { layer }
    })
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    prop::collection::vec(layer(), 0..4)
}

#[derive(Debug, Clone)]
struct Asked {
    target: Target,
    addr: Option<IpAddr>,
    port: u16,
    http: Option<(&'static str, &'static str)>,
}

impl Asked {
    fn request(&self) -> Request<'_> {
        let request = Request::connect(&self.target, self.port);
        let request = Request {
            addr: self.addr.or(request.addr),
            ..request
        };
        match self.http {
            Some((method, path)) => request.with_http(method, path),
            None => request,
        }
    }

    fn decided(&self, policy: &Resolved<Policy>) -> Decision {
        decide(policy, &self.request())
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let address = select(ADDRESSES).prop_map(|text| text.parse::<IpAddr>().unwrap());
    let name = (select(HOSTS), prop::option::of(address.clone()))
        .prop_map(|(host, addr)| (Target::parse(host).unwrap(), addr));
    let literal = address.prop_map(|addr| (Target::Addr(addr), None));
    let http = prop::option::of(select(vec![
        ("GET", "/v1/a"),
        ("POST", "/v1/a"),
        ("GET", "/v1/../x"),
    ]));
    let parts = (prop_oneof![2 => name, 1 => literal], select(PORTS), http);
    parts.prop_map(|((target, addr), port, http)| Asked {
        target,
        addr,
        port,
        http,
    })
}

/// Spellings that mean the same host.
fn respelled(host: &str, choice: u8) -> String {
    let mixed = || {
        host.chars()
            .enumerate()
            .map(|(i, c)| {
                if i % 2 == 0 {
                    c.to_ascii_uppercase()
                } else {
                    c
                }
            })
            .collect()
    };
    match choice % 6 {
        0 => host.to_owned(),
        1 => host.to_ascii_uppercase(),
        2 => format!("{host}."),
        3 => mixed(),
        4 => host.replace('.', "。"),
        _ => host.replace("bücher", "xn--bcher-kva").replace('e', "ｅ"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn explain_decides_what_decide_decides(layers in layers(), ceiling in prop::option::of(layer()), asked in asked()) {
        let policy = resolve(layers, ceiling).unwrap();
        prop_assert_eq!(explain(&policy, &asked.request()).decision, asked.decided(&policy));
    }

    #[test]
    fn g3_deny_wins_for_every_spelling(layers in layers(), host in select(HOSTS), port in select(PORTS), choice in any::<u8>()) {
        let mut layers = layers;
        let mut last = Layer::empty(Origin::new(LayerKind::Default, "deny"));
        let name = Target::parse(host).unwrap().name().unwrap().clone();
        let rule = DenyRule::plain(Destination::Host(HostPattern::Exact(name)), PortSet::any());
        last.network.deny = vec![Sourced::new(rule, last.origin.clone())];
        layers.push(last);
        let policy = resolve(layers, None).unwrap();
        let target = Target::parse(&respelled(host, choice)).unwrap();
        prop_assert!(!decide(&policy, &Request::connect(&target, port)).is_allowed());
    }

    #[test]
    fn g3_a_denied_address_is_denied_under_every_name(layers in layers(), text in select(ADDRESSES), host in select(HOSTS), port in select(PORTS)) {
        let mut layers = layers;
        let mut last = Layer::empty(Origin::new(LayerKind::Default, "deny"));
        let addr: IpAddr = text.parse().unwrap();
        let rule = DenyRule::plain(Destination::Block(Cidr::host(addr)), PortSet::any());
        last.network.deny = vec![Sourced::new(rule, last.origin.clone())];
        layers.push(last);
        let policy = resolve(layers, None).unwrap();
        let target = Target::parse(host).unwrap();
        prop_assert!(!decide(&policy, &Request::connect(&target, port).resolved_to(addr)).is_allowed());
        prop_assert!(!decide(&policy, &Request::connect(&Target::Addr(addr), port)).is_allowed());
    }

    #[test]
    fn adding_an_allow_never_takes_away(layers in layers(), rule in allow(), asked in asked()) {
        let before = resolve(layers.clone(), None).unwrap();
        let mut more = layers;
        let mut last = Layer::empty(Origin::new(LayerKind::Flag, "more"));
        last.network.allow = Some(vec![Sourced::new(rule, last.origin.clone())]);
        more.push(last);
        let after = resolve(more, None).unwrap();
        prop_assert!(!asked.decided(&before).is_allowed() || asked.decided(&after).is_allowed());
    }

    #[test]
    fn adding_a_deny_never_gives(layers in layers(), rule in deny(), asked in asked()) {
        let before = resolve(layers.clone(), None).unwrap();
        let mut more = layers;
        let mut last = Layer::empty(Origin::new(LayerKind::Config, "more"));
        last.network.deny = vec![Sourced::new(rule, last.origin.clone())];
        more.push(last);
        let after = resolve(more, None).unwrap();
        prop_assert!(!asked.decided(&after).is_allowed() || asked.decided(&before).is_allowed());
    }

    #[test]
    fn a_ceiling_never_widens(layers in layers(), ceiling in layer(), asked in asked()) {
        let before = resolve(layers.clone(), None).unwrap();
        let after = resolve(layers, Some(ceiling)).unwrap();
        prop_assert!(!asked.decided(&after).is_allowed() || asked.decided(&before).is_allowed());
    }

    #[test]
    fn a_request_layer_never_widens(layers in layers(), request in layer(), asked in asked()) {
        let before = resolve(layers.clone(), None).unwrap();
        let mut more = layers;
        more.push(request.as_request());
        let after = resolve(more, None).unwrap();
        prop_assert!(!asked.decided(&after).is_allowed() || asked.decided(&before).is_allowed());
    }

    #[test]
    fn the_order_of_layers_does_not_matter_for_denies(layers in layers(), asked in asked()) {
        let mut layers = layers;
        // Same kinds with modes of their own are ordered by position; without modes order is free.
        for layer in &mut layers {
            layer.network.mode = None;
        }
        let forward = resolve(layers.clone(), None).unwrap();
        layers.reverse();
        let backward = resolve(layers, None).unwrap();
        prop_assert_eq!(asked.decided(&forward).verdict, asked.decided(&backward).verdict);
        prop_assert_eq!(asked.decided(&forward).reason, asked.decided(&backward).reason);
    }
}

const PARTS: &[&str] = &[
    "a",
    "b",
    ".",
    "..",
    "%2e",
    "%2E%2e",
    "",
    "a;x=1",
    "..;x",
    "%C3%A9",
    "é",
    "%20",
    "%3F",
    "%23",
    "a%25",
    "%2f",
    "%zz",
    "*",
    "+",
    "!$&'()*+,=:@",
    "%7e",
    "\u{7f}",
    "%5c",
    "|",
    "\"",
];

proptest! {
    /// What is judged is what is sent.
    #[test]
    fn g1_the_path_that_is_sent_means_what_was_matched(
        parts in proptest::collection::vec(select(PARTS), 0..6),
        noise in "[ -~é]{0,6}",
    ) {
        for raw in [format!("/{}", parts.join("/")), format!("/{}/{noise}", parts.join("/"))] {
            let Ok(normal) = HttpPath::normalise(&raw) else { continue };
            let target = normal.to_target();
            prop_assert!(target.is_ascii() && !target.contains([' ', '?', '#', ';']));
            prop_assert_eq!(HttpPath::normalise(&target), Ok(normal.clone()));
            prop_assert_eq!(HttpPath::normalise(&target).unwrap().to_target(), target);
        }
    }
}
