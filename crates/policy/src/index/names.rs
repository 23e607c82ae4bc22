//! A trie over labels, top-level domain first.

use std::collections::HashMap;

use super::{Found, RuleId};
use crate::host::{HostName, HostPattern};

#[derive(Debug, Clone, Default)]
pub(super) struct NameTrie {
    root: Node,
}

#[derive(Debug, Clone, Default)]
struct Node {
    children: HashMap<Box<str>, Node>,
    exact: Vec<RuleId>,
    below: Vec<RuleId>,
    one_label: Vec<RuleId>,
    subtree: Vec<RuleId>,
}

impl NameTrie {
    pub(super) fn insert(&mut self, pattern: &HostPattern, id: RuleId) {
        let mut node = &mut self.root;
        for label in pattern.name().labels_from_top() {
            node = node.children.entry(label.into()).or_default();
        }
        match pattern {
            HostPattern::Exact(_) => node.exact.push(id),
            HostPattern::Below(_) => node.below.push(id),
            HostPattern::OneLabel(_) => node.one_label.push(id),
            HostPattern::Subtree(_) => node.subtree.push(id),
        }
    }

    pub(super) fn find(&self, name: &HostName) -> Found {
        let mut found = Found::default();
        let mut left = name.label_count();
        let mut node = &self.root;
        for label in name.labels_from_top() {
            found.probes += 1;
            let Some(next) = node.children.get(label) else {
                return found;
            };
            node = next;
            left -= 1;
            node.collect(left, &mut found);
        }
        found
    }

    /// Every rule at `name` or at one of its parents, whether or not it covers `name` itself.
    pub(super) fn on_the_way_to(&self, name: &HostName) -> Vec<RuleId> {
        let mut ids = Vec::new();
        let mut node = &self.root;
        for label in name.labels_from_top() {
            let Some(next) = node.children.get(label) else {
                return ids;
            };
            node = next;
            for list in [&node.exact, &node.below, &node.one_label, &node.subtree] {
                ids.extend(list);
            }
        }
        ids
    }
}

impl Node {
    /// Takes the rules that cover a name with `left` more labels below this node.
    fn collect(&self, left: usize, found: &mut Found) {
        let lists = [
            (left == 0, &self.exact),
            (left > 0, &self.below),
            (left == 1, &self.one_label),
            (true, &self.subtree),
        ];
        for (applies, ids) in lists {
            if applies {
                found.probes += ids.len();
                found.ids.extend(ids);
            }
        }
    }
}
