//! In whose words a refusal is told: our own, or those of srt, which callers of it compare.

use std::net::{IpAddr, Ipv4Addr};

use ringfence_policy::{Decision, DenyScope, Policy, Reason, Request, Resolved};

use super::Refused;

/// In whose words refusals are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefusalWords {
    /// Our own, with the reason and what would allow it.
    #[default]
    Own,
    /// Those of srt 0.0.83, to the letter.
    Srt,
}

/// What srt says of everything that its lists refuse.
const BY_LIST: &str = "Connection blocked by network allowlist";
/// Why, where a tunnel's status says so.
const NOT_LISTED: &str = "host is not on the allow list";

impl RefusalWords {
    /// A refusal by the policy in these words.
    pub(crate) fn of_policy(
        self,
        mut refused: Refused,
        policy: &Resolved<Policy>,
        request: &Request<'_>,
        decision: &Decision,
    ) -> Refused {
        if self == Self::Own {
            return refused;
        }
        let resolved = request.host.zip(request.addr);
        let resolved = resolved.filter(|_| decision.reason.is_about_address());
        if let Some((name, address)) = resolved {
            let why = format!("resolved to {}", kind_of(policy, decision, address));
            refused.body = Some(format!("Connection to {name} blocked: {why}"));
            refused.phrase = why;
            return refused;
        }
        refused.body = Some(BY_LIST.to_owned());
        let is_listed = decision.reason == Reason::DeniedByRule;
        if decision.message.is_none() && !is_listed {
            NOT_LISTED.clone_into(&mut refused.phrase);
        }
        refused
    }

    /// A refusal of what is no host, in these words.
    pub(crate) fn of_malformed(self, mut refused: Refused) -> Refused {
        if self == Self::Srt {
            refused.body = Some(BY_LIST.to_owned());
        }
        refused
    }
}

/// What srt calls an address that an allowed name must not lead to.
fn kind_of(policy: &Resolved<Policy>, decision: &Decision, address: IpAddr) -> &'static str {
    match decision.reason {
        Reason::AddressDenied if is_only_for_names(policy, decision) => "a listed address",
        Reason::AddressDenied => "a deny-listed address",
        Reason::LoopbackAddress => "a loopback address",
        Reason::UnspecifiedAddress => "an unspecified address",
        Reason::LinkLocalAddress => "a link-local address",
        Reason::MetadataAddress if is_link_local(address) => "a link-local address",
        Reason::MetadataAddress => "a cloud metadata address",
        Reason::MulticastAddress if address == IpAddr::V4(Ipv4Addr::BROADCAST) => {
            "the broadcast address"
        }
        Reason::MulticastAddress => "a multicast address",
        Reason::HostOwnAddress => "one of this host's addresses",
        Reason::PrivateAddress => "a private address",
        // srt has no word for it.
        _ => "a reserved address",
    }
}

/// Whether the rule is one of `deniedResolvedAddresses`.
fn is_only_for_names(policy: &Resolved<Policy>, decision: &Decision) -> bool {
    let mut rules = policy.network().deny().iter();
    let is_it = |text: &str| decision.rule.as_deref() == Some(text);
    rules.any(|rule| rule.scope == DenyScope::Resolved && is_it(&rule.value.to_string()))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}
