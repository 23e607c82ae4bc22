//! What an operator may approve while a command runs.

use super::decide;
use super::reason::Reason;
use super::request::Request;
use crate::address::Cidr;
use crate::host::{Dialect, HostPattern, Target};
use crate::origin::{LayerKind, Origin, Sourced};
use crate::policy::{Policy, Resolved};
use crate::port::{Port, PortSet};
use crate::rule::{AllowRule, Destination};

/// True when a rule for exactly this destination and port is all that is missing. What a deny, the
/// ceiling, a closed network or the guard on special addresses refuses is nothing to ask about.
pub fn may_be_approved(policy: &Resolved<Policy>, target: &Target, port: u16) -> bool {
    let request = Request::connect(target, port);
    let decision = decide(policy, &request);
    let is_missing = match decision.reason {
        Reason::NotInAllowlist => true,
        // An address that has a rule may be a special one.
        Reason::PortNotAllowed => request.host.is_some(),
        _ => false,
    };
    let rule = approval(target, port, "").filter(|_| is_missing && !decision.is_allowed());
    rule.is_some_and(|rule| decide(&policy.with_approved(&[rule]), &request).is_allowed())
}

/// The rule that an approval of this destination is: this name or address, this port, and public
/// addresses only. `for_what` is how far it goes. `None` where no rule could name it.
pub fn approval(target: &Target, port: u16, for_what: &str) -> Option<Sourced<AllowRule>> {
    let destination = match target {
        Target::Name(name) => {
            Destination::Host(HostPattern::parse(name.as_str(), Dialect::Native).ok()?)
        }
        Target::Addr(address) => Destination::Block(Cidr::host(*address)),
    };
    let ports = PortSet::single(Port::new(port)?);
    let origin = Origin::new(LayerKind::Asked, for_what);
    Some(Sourced::new(AllowRule::plain(destination, ports), origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PathContext, read_yaml, resolve};

    fn policy(network: &str, ceiling: Option<&str>) -> Resolved<Policy> {
        let paths = PathContext {
            home: "/home/u".into(),
            base: "/w".into(),
        };
        let read = |text: &str, kind| {
            let origin = Origin::new(kind, "p.yaml");
            let text = format!("version: 1\nnetwork: {text}\n");
            read_yaml(&text, &origin, &paths).unwrap()
        };
        let layers = vec![read(network, LayerKind::Policy)];
        let ceiling = ceiling.map(|text| read(text, LayerKind::Ceiling));
        resolve(layers, ceiling).unwrap()
    }

    #[test]
    fn g3_only_what_one_rule_is_missing_for_may_be_approved() {
        let open = policy("{mode: allowlist}", None);
        let denied = policy("{mode: allowlist, deny: [a.example.org]}", None);
        let other_port = policy("{allow: [a.example.org, \"10.1.2.3:80\"]}", None);
        let closed = policy("{mode: deny}", None);
        let ceiling = policy("{mode: allowlist}", Some("{allow: [b.example.org]}"));
        for (policy, host, expected) in [
            (&open, "a.example.org", true),
            (&open, "45.0.0.10", true),
            (&open, "10.1.2.3", false),
            (&open, "169.254.169.254", false),
            (&open, "localhost", false),
            (&open, "host.ringfence.internal", false),
            (&denied, "a.example.org", false),
            (&other_port, "a.example.org", true),
            (&other_port, "10.1.2.3", false),
            (&closed, "a.example.org", false),
            (&ceiling, "a.example.org", false),
        ] {
            let target = Target::parse(host).unwrap();
            assert_eq!(may_be_approved(policy, &target, 8443), expected, "{host}");
        }
    }
}
