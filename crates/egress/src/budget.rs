//! How much may be said to the world by asking for names.
//!
//! A rule such as `*.example.org` lets code inside ask for
//! `<anything>.example.org`, and whoever serves that zone reads it. Each new
//! name below a wildcard therefore costs its own part, and a run may only
//! spend so much.

use std::collections::{HashMap, HashSet};

use ringfence_policy::HostName;
use thiserror::Error;

/// How much one run may spend on names below wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetSettings {
    /// Distinct names below one wildcard.
    pub names: usize,
    /// Bytes of all such names together, without what the rules fix.
    pub bytes: usize,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self {
            names: 1000,
            bytes: 64 * 1024,
        }
    }
}

/// Why a name may not be resolved any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum BudgetSpent {
    /// Too many names below one wildcard.
    #[error("{most} names below {base} were resolved in this run, and no more may be")]
    Names { base: String, most: usize },
    /// Too many bytes in all of them.
    #[error(
        "the names below wildcards in this run add up to {most} bytes, and no more may be resolved"
    )]
    Bytes { most: usize },
}

/// What a run has spent so far. What it remembers is bounded by its settings:
/// only what was paid for is kept.
pub(crate) struct Budget {
    settings: BudgetSettings,
    paid: HashMap<String, HashSet<Box<str>>>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(settings: BudgetSettings) -> Self {
        Self {
            settings,
            paid: HashMap::new(),
            bytes: 0,
        }
    }

    /// Pays for asking the world about `name`, which `rule` allows: the text of
    /// a rule for a wildcard, or only the name that it stands on. A name is paid
    /// for once, and that name itself is free.
    pub(crate) fn spend(&mut self, rule: &str, name: &HostName) -> Result<(), BudgetSpent> {
        let base = base_of(rule);
        let own = own_part(base, name);
        if own.is_empty() || self.is_paid(base, own) {
            return Ok(());
        }
        let known = self.paid.get(base).map_or(0, HashSet::len);
        if known >= self.settings.names {
            return Err(BudgetSpent::Names {
                base: base.to_owned(),
                most: self.settings.names,
            });
        }
        if self.bytes + own.len() > self.settings.bytes {
            return Err(BudgetSpent::Bytes {
                most: self.settings.bytes,
            });
        }
        self.bytes += own.len();
        let paid = self.paid.entry(base.to_owned()).or_default();
        paid.insert(own.into());
        Ok(())
    }

    fn is_paid(&self, base: &str, own: &str) -> bool {
        self.paid.get(base).is_some_and(|paid| paid.contains(own))
    }
}

/// The name in `*.example.org:443 GET`: rules that differ in the rest share a
/// budget, because the same server reads what is asked for.
fn base_of(rule: &str) -> &str {
    let name = rule.trim_start_matches('*');
    let name = name.strip_prefix('.').unwrap_or(name);
    name.split([':', ' ']).next().unwrap_or(name)
}

/// What of `name` its asker chose: all that stands before `base`.
fn own_part<'a>(base: &str, name: &'a HostName) -> &'a str {
    match name.as_str().strip_suffix(base) {
        Some("") => "",
        Some(front) => front.strip_suffix('.').unwrap_or(name.as_str()),
        None => name.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: &str = "example.org";

    fn below(label: &str) -> HostName {
        HostName::parse(&format!("{label}.{BASE}")).unwrap()
    }

    fn budget(names: usize, bytes: usize) -> Budget {
        Budget::new(BudgetSettings { names, bytes })
    }

    #[test]
    fn exact_names_are_free() {
        let mut budget = budget(0, 0);
        let exact = HostName::parse(BASE).unwrap();
        assert_eq!(budget.spend(BASE, &exact), Ok(()));
        assert!(budget.spend(BASE, &below("a")).is_err());
    }

    #[test]
    fn g2_names_below_a_wildcard_run_out() {
        let mut budget = budget(2, 1000);
        for _ in 0..3 {
            assert_eq!(budget.spend(BASE, &below("a")), Ok(()));
            assert_eq!(budget.spend(BASE, &below("b.c")), Ok(()));
        }
        let spent = budget.spend(BASE, &below("d")).unwrap_err();
        assert!(spent.to_string().contains("names below example.org"));
        assert_eq!(budget.spend(BASE, &below("a")), Ok(()));
        let elsewhere = HostName::parse("d.example.net").unwrap();
        assert_eq!(budget.spend("example.net", &elsewhere), Ok(()));
    }

    #[test]
    fn g2_bytes_run_out_over_all_wildcards_together() {
        let mut budget = budget(1000, 10);
        assert_eq!(budget.spend(BASE, &below("abcdefgh")), Ok(()));
        let elsewhere = HostName::parse("abc.example.net").unwrap();
        let spent = budget.spend("example.net", &elsewhere).unwrap_err();
        assert!(spent.to_string().contains("10 bytes"));
        let small = HostName::parse("ab.example.net").unwrap();
        assert_eq!(budget.spend("example.net", &small), Ok(()));
        assert_eq!(budget.spend("example.net", &small), Ok(()));
        assert!(budget.spend(BASE, &below("z")).is_err());
    }

    #[test]
    fn rules_for_the_same_names_share_a_budget() {
        let mut budget = budget(2, 1000);
        for rule in [
            BASE,
            "*.example.org:443",
            "**.example.org:80,443 GET /v1/**",
            "*.example.org (one label):443",
        ] {
            assert_eq!(base_of(rule), BASE);
            assert_eq!(budget.spend(rule, &below("a")), Ok(()));
        }
        assert_eq!(budget.spend("*.example.org:443", &below("b")), Ok(()));
        assert!(budget.spend("*.example.org:8443", &below("c")).is_err());
        assert_eq!(base_of("*:443"), "");
        assert!(budget.spend("*:443", &below("c")).is_ok());
    }

    #[test]
    fn a_base_ends_at_a_dot() {
        let other = HostName::parse("badexample.org").unwrap();
        assert_eq!(own_part(BASE, &other), "badexample.org");
        assert_eq!(own_part(BASE, &below("a.b")), "a.b");
    }

    proptest! {
        #[test]
        fn no_order_of_asking_gets_more_out(
            labels in prop::collection::vec("[a-z]{1,12}", 0..80),
        ) {
            let mut budget = budget(20, 100);
            let mut said = HashSet::new();
            for label in &labels {
                if budget.spend(BASE, &below(label)).is_ok() {
                    said.insert(label);
                }
            }
            prop_assert!(said.len() <= 20);
            prop_assert!(said.iter().map(|label| label.len()).sum::<usize>() <= 100);
        }
    }
}
