//! The evaluation behind `decide` and `explain`.
//!
//! Order: denies on the name and on every address, then the mode, then allow rules with port,
//! method and path, then the guard on special addresses. The ceiling is judged by the same code
//! after the layers.

use std::fmt::Display;
use std::net::IpAddr;

use super::attach::is_bound;
use super::reason::Reason;
use super::request::Request;
use super::trace::{Effect, ListName, Outcome, Trace};
use super::{Decision, Verdict};
use crate::address::{AddressClass, judged, special_range};
use crate::host::{HOST_ALIAS, HostName};
use crate::http::HttpPath;
use crate::origin::{Origin, Sourced};
use crate::policy::{Network, Policy};
use crate::rule::{AllowRule, DenyRule, DenyScope, Destination, NetworkMode, Reach};

pub(super) fn evaluate(policy: &Policy, request: &Request<'_>, trace: &mut impl Trace) -> Decision {
    let layers = Side::new(ListName::Policy, &policy.network, policy, request);
    let granted = match layers.judge(trace) {
        Ok(granted) => Decision {
            needs_inspection: granted.needs_inspection || is_bound(policy, request),
            ..granted
        },
        Err(refusal) => return refusal,
    };
    let Some(network) = &policy.ceiling else {
        return granted;
    };
    match Side::new(ListName::Ceiling, network, policy, request).judge(trace) {
        Ok(bound) => Decision {
            needs_inspection: granted.needs_inspection || bound.needs_inspection,
            ..granted
        },
        Err(refusal) => Decision {
            reason: Reason::Ceiling,
            source: refusal.source.or_else(|| Some(network.origin.clone())),
            ..refusal
        },
    }
}

/// One set of rules and one request.
struct Side<'a> {
    list: ListName,
    network: &'a Network,
    policy: &'a Policy,
    request: &'a Request<'a>,
    addresses: Vec<IpAddr>,
}

/// The allow rules that fit, or the openness that needs none.
struct Fit<'a> {
    rules: Vec<&'a Sourced<AllowRule>>,
    open: bool,
    needs_inspection: bool,
}

impl<'a> Side<'a> {
    fn new(
        list: ListName,
        network: &'a Network,
        policy: &'a Policy,
        request: &'a Request<'a>,
    ) -> Self {
        Self {
            list,
            network,
            policy,
            request,
            addresses: request.addr.map(judged).unwrap_or_default(),
        }
    }

    fn judge(&self, trace: &mut impl Trace) -> Result<Decision, Decision> {
        if self.request.host.is_none() && self.request.addr.is_none() {
            return Err(refuse(Reason::MalformedHost));
        }
        self.check_denied(trace)?;
        let Some(mode) = &self.network.mode else {
            return Ok(grant(Reason::AllowedOpen));
        };
        if mode.value == NetworkMode::Deny {
            return Err(Decision {
                source: Some(mode.origin.clone()),
                ..refuse(Reason::NetworkClosed)
            });
        }
        match self.request.host {
            Some(name) if name.as_str() == HOST_ALIAS => self.host_port(),
            Some(name) => self.judge_name(name, mode, trace),
            None => self.judge_address(mode, trace),
        }
    }

    fn check_denied(&self, trace: &mut impl Trace) -> Result<(), Decision> {
        let everything = self.network.deny.for_all();
        let named = self
            .request
            .host
            .map(|name| self.network.deny.for_name(name));
        for rule in everything.chain(named.into_iter().flatten()) {
            if self.denies(rule, trace) {
                return Err(by_rule(Reason::DeniedByRule, rule));
            }
        }
        for rule in self.address_denies() {
            if rule.scope == DenyScope::Always && self.denies(rule, trace) {
                return Err(by_rule(Reason::AddressDenied, rule));
            }
        }
        Ok(())
    }

    fn address_denies(&self) -> impl Iterator<Item = &'a Sourced<DenyRule>> {
        let deny = &self.network.deny;
        self.addresses
            .iter()
            .flat_map(|address| deny.for_address(*address))
    }

    fn denies(&self, rule: &Sourced<DenyRule>, trace: &mut impl Trace) -> bool {
        let applies = rule.ports.contains(self.request.port);
        let outcome = if applies {
            Outcome::Matched
        } else {
            Outcome::OtherPort
        };
        trace.consider(self.list, Effect::Deny, &rule.value, &rule.origin, outcome);
        applies
    }

    /// The host's own loopback goes by its list of ports and nothing else.
    fn host_port(&self) -> Result<Decision, Decision> {
        let listed = self
            .network
            .host_ports
            .iter()
            .find(|port| port.get() == self.request.port);
        let loopback = |address: &IpAddr| AddressClass::of(*address) == AddressClass::Loopback;
        match listed {
            Some(port) if self.addresses.iter().all(loopback) => Ok(Decision {
                rule: Some(format!("{HOST_ALIAS}:{}", port.value)),
                source: Some(port.origin.clone()),
                ..grant(Reason::AllowedHostPort)
            }),
            _ => Err(refuse(Reason::HostPortNotAllowed)),
        }
    }

    fn judge_name(
        &self,
        name: &HostName,
        mode: &Sourced<NetworkMode>,
        trace: &mut impl Trace,
    ) -> Result<Decision, Decision> {
        let rules = self.network.allow.for_name(name);
        // A `localhost` name is loopback whatever a resolver says, so openness does not cover it.
        let open = mode.value == NetworkMode::Open && !name.is_localhost();
        let missing = if name.is_localhost() {
            Reason::LoopbackAddress
        } else {
            Reason::NotInAllowlist
        };
        let fit = self.fit(rules, open, missing, trace)?;
        self.guard_addresses(&fit, trace)?;
        Ok(granted(&fit, mode))
    }

    fn judge_address(
        &self,
        mode: &Sourced<NetworkMode>,
        trace: &mut impl Trace,
    ) -> Result<Decision, Decision> {
        let outer = self.addresses.first().copied();
        let rules = outer
            .map(|address| self.network.allow.for_address(address))
            .unwrap_or_default();
        let open = mode.value == NetworkMode::Open;
        let special = self
            .addresses
            .iter()
            .find_map(|address| self.guarded(*address));
        let fit = self.fit(
            rules,
            open,
            special.unwrap_or(Reason::NotInAllowlist),
            trace,
        )?;
        self.guard_addresses(&fit, trace)?;
        Ok(granted(&fit, mode))
    }

    /// Of the rules about this destination, those that fit port, method and path.
    fn fit(
        &self,
        rules: Vec<&'a Sourced<AllowRule>>,
        open: bool,
        missing: Reason,
        trace: &mut impl Trace,
    ) -> Result<Fit<'a>, Decision> {
        let mut outcomes = Vec::new();
        let mut fitting = Vec::new();
        for rule in rules {
            let outcome = self.outcome(rule);
            trace.consider(self.list, Effect::Allow, &rule.value, &rule.origin, outcome);
            outcomes.push((outcome, rule));
            if outcome == Outcome::Matched {
                fitting.push(rule);
            }
        }
        if fitting.is_empty() && (!open || self.request.port == 0) {
            return Err(nearest_miss(&outcomes, missing));
        }
        let free = open || fitting.iter().any(|rule| !rule.is_restricted());
        let asked = fitting
            .iter()
            .any(|rule| rule.asks_to_inspect(self.request.host));
        Ok(Fit {
            needs_inspection: !free || asked,
            rules: fitting,
            open,
        })
    }

    /// A method or path that is not known yet counts as matched; `needs_inspection` tells so.
    fn outcome(&self, rule: &AllowRule) -> Outcome {
        if !rule.ports.contains(self.request.port) {
            return Outcome::OtherPort;
        }
        let method_fits = |method: &str| {
            rule.methods
                .as_ref()
                .is_none_or(|all| all.iter().any(|own| own.as_str() == method))
        };
        if !self.request.method.is_none_or(method_fits) {
            return Outcome::OtherMethod;
        }
        let path_fits = |path: &str| {
            rule.paths.as_ref().is_none_or(|globs| {
                HttpPath::normalise(path)
                    .is_ok_and(|normal| globs.iter().any(|glob| glob.matches(&normal)))
            })
        };
        if self.request.path.is_none_or(path_fits) {
            Outcome::Matched
        } else {
            Outcome::OtherPath
        }
    }

    /// Every address that would be reached must be public, within the rule's reach, or lifted.
    fn guard_addresses(&self, fit: &Fit<'_>, trace: &mut impl Trace) -> Result<(), Decision> {
        for address in self.addresses.iter().copied() {
            self.guard_resolved_denies(address, trace)?;
            let Some(reason) = self.guarded(address) else {
                self.guard_localhost(fit)?;
                continue;
            };
            if !within_reach(fit, reason) && !self.lifted(address, reason, trace) {
                return Err(refuse(reason));
            }
        }
        Ok(())
    }

    /// A `localhost` rule reaches loopback and nothing else.
    fn guard_localhost(&self, fit: &Fit<'_>) -> Result<(), Decision> {
        let only_loopback = !fit.open && fit.rules.iter().all(|rule| rule.reach == Reach::Loopback);
        if only_loopback && self.request.host.is_some() {
            Err(refuse(Reason::NotInAllowlist))
        } else {
            Ok(())
        }
    }

    fn guard_resolved_denies(
        &self,
        address: IpAddr,
        trace: &mut impl Trace,
    ) -> Result<(), Decision> {
        if self.request.host.is_none() {
            return Ok(());
        }
        for rule in self.network.deny.for_address(address) {
            let applies = rule.scope == DenyScope::Resolved && self.denies(rule, trace);
            if applies && !self.lifted(address, Reason::HostOwnAddress, trace) {
                return Err(by_rule(Reason::AddressDenied, rule));
            }
        }
        Ok(())
    }

    /// Why `address` needs a rule of its own, if it does.
    fn guarded(&self, address: IpAddr) -> Option<Reason> {
        let class = AddressClass::of(address);
        let ordinary = matches!(class, AddressClass::Public | AddressClass::Private);
        if ordinary && self.policy.host_addresses.contains(&address) {
            return Some(Reason::HostOwnAddress);
        }
        Reason::for_class(class)
    }

    /// An address rule lifts the guard when it lies wholly inside the special range, so that a
    /// broad block never opens loopback by accident; metadata endpoints and this host's own
    /// addresses need a rule for exactly that address.
    fn lifted(&self, address: IpAddr, reason: Reason, trace: &mut impl Trace) -> bool {
        let exact_only = matches!(reason, Reason::MetadataAddress | Reason::HostOwnAddress);
        let mut lifted = false;
        for rule in self.network.allow.for_address(address) {
            let Destination::Block(block) = rule.destination else {
                continue;
            };
            let inside = special_range(address).is_none_or(|(range, _)| range.covers(&block));
            let narrow = if exact_only {
                block.is_single()
            } else {
                inside
            };
            let outcome = match (rule.ports.contains(self.request.port), narrow) {
                (false, _) => Outcome::OtherPort,
                (true, true) => Outcome::Lifted,
                (true, false) => Outcome::TooBroadToLift,
            };
            trace.consider(self.list, Effect::Allow, &rule.value, &rule.origin, outcome);
            lifted |= outcome == Outcome::Lifted;
        }
        lifted
    }
}

fn within_reach(fit: &Fit<'_>, reason: Reason) -> bool {
    fit.rules.iter().any(|rule| match rule.reach {
        Reach::Public => false,
        Reach::Private => reason == Reason::PrivateAddress,
        Reach::Loopback => reason == Reason::LoopbackAddress,
    })
}

/// The refusal that is closest to being allowed tells the user most.
fn nearest_miss(outcomes: &[(Outcome, &Sourced<AllowRule>)], missing: Reason) -> Decision {
    let misses = [
        (Outcome::OtherPath, Reason::PathNotAllowed),
        (Outcome::OtherMethod, Reason::MethodNotAllowed),
        (Outcome::OtherPort, Reason::PortNotAllowed),
    ];
    for (outcome, reason) in misses {
        if let Some((_, rule)) = outcomes.iter().find(|(own, _)| *own == outcome) {
            return Decision {
                rule: Some(rule.value.to_string()),
                source: Some(rule.origin.clone()),
                ..refuse(reason)
            };
        }
    }
    refuse(missing)
}

fn granted(fit: &Fit<'_>, mode: &Sourced<NetworkMode>) -> Decision {
    let free = fit.rules.iter().find(|rule| !rule.is_restricted());
    let needs_inspection = fit.needs_inspection;
    match free.or(fit.rules.first()) {
        Some(rule) => Decision {
            needs_inspection,
            ..allowed_by(&rule.value, &rule.origin)
        },
        None => Decision {
            needs_inspection,
            source: Some(mode.origin.clone()),
            ..grant(Reason::AllowedOpen)
        },
    }
}

fn allowed_by(rule: &dyn Display, origin: &Origin) -> Decision {
    Decision {
        rule: Some(rule.to_string()),
        source: Some(origin.clone()),
        ..grant(Reason::AllowedByRule)
    }
}

fn by_rule(reason: Reason, rule: &Sourced<DenyRule>) -> Decision {
    Decision {
        rule: Some(rule.value.to_string()),
        source: Some(rule.origin.clone()),
        message: rule.message.clone(),
        ..refuse(reason)
    }
}

fn grant(reason: Reason) -> Decision {
    Decision {
        verdict: Verdict::Allow,
        ..refuse(reason)
    }
}

fn refuse(reason: Reason) -> Decision {
    Decision {
        verdict: Verdict::Deny,
        reason,
        rule: None,
        source: None,
        needs_inspection: false,
        message: None,
    }
}
