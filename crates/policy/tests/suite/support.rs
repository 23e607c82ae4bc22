//! Short forms for the tests.

use std::net::IpAddr;

use ringfence_policy::{
    Decision, Layer, LayerKind, Origin, PathContext, Policy, Request, Resolved, Target, decide,
    read_yaml, resolve,
};

pub(crate) fn context() -> PathContext {
    PathContext {
        home: "/home/u".into(),
        base: "/home/u/p".into(),
    }
}

/// A layer of `kind` from the body of a YAML policy.
pub(crate) fn layer(kind: LayerKind, body: &str) -> Layer {
    let text = format!("version: 1\n{body}\n");
    read_yaml(&text, &Origin::new(kind, "test.yaml"), &context()).unwrap()
}

pub(crate) fn network(kind: LayerKind, rules: &str) -> Layer {
    layer(kind, &format!("network: {rules}"))
}

pub(crate) fn policy(rules: &str) -> Resolved<Policy> {
    resolve(vec![network(LayerKind::Policy, rules)], None).unwrap()
}

/// Asks for `host:port`, once resolved to `addr`.
pub(crate) fn ask(
    policy: &Resolved<Policy>,
    host: &str,
    port: u16,
    addr: Option<&str>,
) -> Decision {
    let target = Target::parse(host).unwrap();
    let mut request = Request::connect(&target, port);
    request.addr = addr
        .map(|text| text.parse::<IpAddr>().unwrap())
        .or(request.addr);
    decide(policy, &request)
}

pub(crate) fn code(
    policy: &Resolved<Policy>,
    host: &str,
    port: u16,
    addr: Option<&str>,
) -> &'static str {
    ask(policy, host, port, addr).reason.code()
}
