//! Rules compiled for lookup: by reversed labels for names, by prefix length for addresses.
//!
//! A lookup touches the labels of the name or the prefix lengths in use, never every rule.

mod bindings;
mod blocks;
mod names;

use std::net::IpAddr;

use crate::host::HostName;
use crate::origin::Sourced;
use crate::rule::{AllowRule, DenyRule, Destination};

pub(crate) use bindings::BindingIndex;
use blocks::BlockIndex;
use names::NameTrie;

/// Position of a rule in its list.
type RuleId = usize;

/// What the index needs to know of a rule.
pub(crate) trait Ruled {
    fn destination(&self) -> &Destination;
}

impl Ruled for AllowRule {
    fn destination(&self) -> &Destination {
        &self.destination
    }
}

impl Ruled for DenyRule {
    fn destination(&self) -> &Destination {
        &self.destination
    }
}

/// A list of rules with its indexes.
#[derive(Debug, Clone)]
pub(crate) struct RuleIndex<R> {
    rules: Vec<Sourced<R>>,
    any: Vec<RuleId>,
    names: NameTrie,
    blocks: BlockIndex,
}

impl<R: Ruled> RuleIndex<R> {
    pub(crate) fn new(rules: Vec<Sourced<R>>) -> Self {
        let mut index = Self {
            rules: Vec::new(),
            any: Vec::new(),
            names: NameTrie::default(),
            blocks: BlockIndex::default(),
        };
        for (id, rule) in rules.iter().enumerate() {
            match rule.destination() {
                Destination::Any => index.any.push(id),
                Destination::Host(pattern) => index.names.insert(pattern, id),
                Destination::Block(block) => index.blocks.insert(*block, id),
            }
        }
        index.rules = rules;
        index
    }

    pub(crate) fn rules(&self) -> &[Sourced<R>] {
        &self.rules
    }

    /// Rules about everything.
    pub(crate) fn for_all(&self) -> impl Iterator<Item = &Sourced<R>> {
        self.any.iter().map(|id| &self.rules[*id])
    }

    /// Rules about `name`, in the order they were written.
    pub(crate) fn for_name(&self, name: &HostName) -> Vec<&Sourced<R>> {
        self.pick(self.names.find(name).ids)
    }

    /// Rules whose pattern could cover a whole pattern on `name`: those at the name or above it,
    /// and those about everything.
    pub(crate) fn about_name(&self, name: &HostName) -> Vec<&Sourced<R>> {
        let mut ids = self.names.on_the_way_to(name);
        ids.extend(&self.any);
        self.pick(ids)
    }

    /// Rules about `address`, in the order they were written.
    pub(crate) fn for_address(&self, address: IpAddr) -> Vec<&Sourced<R>> {
        self.pick(self.blocks.find(address).ids)
    }

    fn pick(&self, mut ids: Vec<RuleId>) -> Vec<&Sourced<R>> {
        ids.sort_unstable();
        ids.into_iter().map(|id| &self.rules[id]).collect()
    }
}

/// What a lookup found, and how many places it looked at.
#[derive(Debug, Default)]
struct Found {
    ids: Vec<RuleId>,
    #[cfg_attr(
        not(test),
        allow(dead_code, reason = "read by the test that lookups are not linear")
    )]
    probes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Cidr;
    use crate::host::{Dialect, HostPattern};
    use crate::origin::{LayerKind, Origin};
    use crate::port::PortSet;

    fn index(destinations: Vec<Destination>) -> RuleIndex<DenyRule> {
        let origin = Origin::new(LayerKind::Flag, "t");
        let sourced = |destination| {
            Sourced::new(DenyRule::plain(destination, PortSet::any()), origin.clone())
        };
        RuleIndex::new(destinations.into_iter().map(sourced).collect())
    }

    #[test]
    fn ten_thousand_rules_do_not_make_a_lookup_linear() {
        let host =
            |i: u32| HostPattern::parse(&format!("*.h{i}.example.org"), Dialect::Native).unwrap();
        let names = index((0..10_000).map(|i| Destination::Host(host(i))).collect());
        let found = names
            .names
            .find(&HostName::parse("a.h77.example.org").unwrap());
        assert_eq!(found.ids, [77]);
        assert!(found.probes <= 8, "{}", found.probes);

        let block = |i: u32| Cidr::parse(&format!("10.{}.{}.0/24", i / 256, i % 256)).unwrap();
        let blocks = index((0..10_000).map(|i| Destination::Block(block(i))).collect());
        let found = blocks.blocks.find("10.1.2.3".parse().unwrap());
        assert_eq!(found.ids, [258]);
        assert!(found.probes <= 33, "{}", found.probes);
    }

    #[test]
    fn every_kind_of_pattern_is_found() {
        let patterns = [
            "example.org",
            "*.example.org",
            "**.example.org",
            "*.a.example.org",
        ];
        let mut all: Vec<_> = patterns
            .iter()
            .map(|text| HostPattern::parse(text, Dialect::Native).unwrap())
            .collect();
        all.push(HostPattern::parse("*.example.org", Dialect::Kit).unwrap());
        let names = index(all.iter().cloned().map(Destination::Host).collect());
        for text in [
            "example.org",
            "a.example.org",
            "b.a.example.org",
            "org",
            "xexample.org",
        ] {
            let name = HostName::parse(text).unwrap();
            let want: Vec<_> = all
                .iter()
                .filter(|pattern| pattern.matches(&name))
                .map(ToString::to_string)
                .collect();
            let have: Vec<_> = names
                .for_name(&name)
                .iter()
                .map(|rule| rule.destination.to_string())
                .collect();
            assert_eq!(have, want, "{text}");
        }
    }
}
