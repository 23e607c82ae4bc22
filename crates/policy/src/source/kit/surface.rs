//! [`Surface`]: what a kit could do, in a form that is kept beside an approval and compared.
//!
//! A kit is wider than another when it opens what the other does not: a destination, a removed
//! deny, a source or a host of a credential, a command. What a command runs is in files, and which
//! code a program loads is in variables, so another one of these is wider, too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Kit;
use super::entry::KitEntry;
use crate::credential::{Credential, in_words};
use crate::rule::Side;

/// What a kit asks for, as texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Surface {
    /// Allowed destinations.
    pub allow: BTreeSet<String>,
    /// Denied destinations.
    pub deny: BTreeSet<String>,
    /// Credentials, by service.
    pub credentials: BTreeMap<String, CredentialSurface>,
    /// Variables that are set.
    pub variables: BTreeMap<String, String>,
    /// Files that are written, with a digest of each.
    pub files: BTreeMap<String, String>,
    /// Lines of shell.
    pub install: Vec<String>,
    /// Commands.
    pub startup: Vec<String>,
}

/// What a kit asks of one credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CredentialSurface {
    /// Where the secret is read.
    pub sources: BTreeSet<String>,
    /// Where it goes.
    pub bindings: BTreeSet<String>,
    /// Variables that stand for it.
    pub variables: BTreeSet<String>,
}

/// How an entry differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Only the new kit has it.
    Added,
    /// Only the old kit has it.
    Removed,
    /// Both have it, with another value.
    Changed,
}

impl Change {
    /// The word that people read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

/// One difference between two kits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where: `allow`, `deny`, `credential SERVICE source` and so on.
    pub part: String,
    /// How.
    pub change: Change,
    /// The entry.
    pub entry: String,
    /// True when the new kit can do more by it.
    pub widens: bool,
}

impl Kit {
    /// What the kit asks for; `files` are all files that it writes, with a digest of each.
    pub fn surface(&self, files: BTreeMap<String, String>) -> Surface {
        let by_service = |own: &Credential| (own.service.clone(), credential(own));
        let value = |(name, value): (&String, &crate::origin::Sourced<String>)| {
            (name.clone(), value.value.clone())
        };
        Surface {
            allow: self.allow.iter().map(|entry| entry.text.clone()).collect(),
            deny: self.deny.iter().map(|entry| entry.text.clone()).collect(),
            credentials: self.credentials.iter().map(|own| by_service(own)).collect(),
            variables: self.variables.iter().map(value).collect(),
            files,
            install: self
                .install
                .iter()
                .map(|step| step.command.clone())
                .collect(),
            startup: self
                .startup
                .iter()
                .map(|step| in_words(&step.argv))
                .collect(),
        }
    }
}

fn credential(own: &Credential) -> CredentialSurface {
    CredentialSurface {
        sources: own.sources.iter().map(ToString::to_string).collect(),
        bindings: own.bindings.iter().map(ToString::to_string).collect(),
        variables: own.variables.iter().cloned().collect(),
    }
}

impl Surface {
    /// What `new` has otherwise than this, part by part.
    pub fn differences(&self, new: &Self) -> Vec<Difference> {
        let mut found = Differences(Vec::new());
        let is_open = |entry: &str| covered(entry, &self.allow, Side::Allow);
        let is_closed = |entry: &str| covered(entry, &new.deny, Side::Deny);
        found.sets("allow", &self.allow, &new.allow, |change, entry| {
            change == Change::Added && !is_open(entry)
        });
        found.sets("deny", &self.deny, &new.deny, |change, entry| {
            change == Change::Removed && !is_closed(entry)
        });
        found.credentials(&self.credentials, &new.credentials);
        found.maps("variable", &self.variables, &new.variables);
        found.maps("file", &self.files, &new.files);
        found.commands("install", &self.install, &new.install);
        found.commands("startup", &self.startup, &new.startup);
        found.0
    }
}

/// True when an entry of `others` covers all of `entry`.
fn covered(entry: &str, others: &BTreeSet<String>, side: Side) -> bool {
    let Ok(own) = KitEntry::parse(entry, side) else {
        return false;
    };
    let own = own.allow();
    let covers =
        |other: &String| KitEntry::parse(other, side).is_ok_and(|other| other.allow().covers(&own));
    others.iter().any(covers)
}

struct Differences(Vec<Difference>);

impl Differences {
    fn add(&mut self, part: &str, change: Change, entry: &str, widens: bool) {
        self.0.push(Difference {
            part: part.to_owned(),
            change,
            entry: entry.to_owned(),
            widens,
        });
    }

    fn sets(
        &mut self,
        part: &str,
        old: &BTreeSet<String>,
        new: &BTreeSet<String>,
        widens: impl Fn(Change, &str) -> bool,
    ) {
        for entry in new.difference(old) {
            self.add(part, Change::Added, entry, widens(Change::Added, entry));
        }
        for entry in old.difference(new) {
            self.add(part, Change::Removed, entry, widens(Change::Removed, entry));
        }
    }

    fn credentials(
        &mut self,
        old: &BTreeMap<String, CredentialSurface>,
        new: &BTreeMap<String, CredentialSurface>,
    ) {
        let none = CredentialSurface::default();
        let services: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for service in services {
            let (before, after) = (old.get(service), new.get(service));
            let (before, after) = (before.unwrap_or(&none), after.unwrap_or(&none));
            let part = |name| format!("credential {service} {name}");
            let is_added = |change, _: &str| change == Change::Added;
            self.sets(&part("source"), &before.sources, &after.sources, is_added);
            self.sets(&part("use"), &before.bindings, &after.bindings, is_added);
            self.sets(
                &part("variable"),
                &before.variables,
                &after.variables,
                |_, _| false,
            );
        }
    }

    /// Any difference counts: without a file, a command may find another of its name.
    fn maps(&mut self, part: &str, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) {
        for (name, value) in new {
            match old.get(name) {
                None => self.add(part, Change::Added, name, true),
                Some(before) if before != value => self.add(part, Change::Changed, name, true),
                Some(_) => {}
            }
        }
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            self.add(part, Change::Removed, name, true);
        }
    }

    /// A command that is run more often than before is a new one.
    fn commands(&mut self, part: &str, old: &[String], new: &[String]) {
        let mut left: Vec<&String> = old.iter().collect();
        for command in new {
            match left.iter().position(|own| *own == command) {
                Some(at) => drop(left.remove(at)),
                None => self.add(part, Change::Added, command, true),
            }
        }
        for command in left {
            self.add(part, Change::Removed, command, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_kit;
    use super::*;
    use crate::origin::{LayerKind, Origin};

    fn surface(json: &str) -> Surface {
        serde_json::from_str(json).unwrap()
    }

    fn is_wider(old: &Surface, new: &Surface) -> bool {
        old.differences(new).iter().any(|own| own.widens)
    }

    fn widened(old: &str, new: &str) -> bool {
        is_wider(&surface(old), &surface(new))
    }

    #[test]
    fn g5_what_opens_or_runs_more_is_wider() {
        for (old, new) in [
            (r"{}", r#"{"allow": ["a.example.org"]}"#),
            (
                r#"{"allow": ["a.example.org:443"]}"#,
                r#"{"allow": ["a.example.org"]}"#,
            ),
            (
                r#"{"allow": ["*.example.org"]}"#,
                r#"{"allow": ["**.example.org"]}"#,
            ),
            (r#"{"deny": ["t.example.org"]}"#, r"{}"),
            (
                r#"{"deny": ["t.example.org"]}"#,
                r#"{"deny": ["t.example.org:443"]}"#,
            ),
            (
                r"{}",
                r#"{"credentials": {"a": {"sources": ["$A"], "bindings": ["b"]}}}"#,
            ),
            (
                r#"{"credentials": {"a": {"sources": ["$A"], "bindings": ["b"]}}}"#,
                r#"{"credentials": {"a": {"sources": ["$A", "$B"], "bindings": ["b"]}}}"#,
            ),
            (
                r#"{"credentials": {"a": {"sources": ["$A"], "bindings": ["b"]}}}"#,
                r#"{"credentials": {"a": {"sources": ["$A"], "bindings": ["b", "c"]}}}"#,
            ),
            (
                r#"{"install": ["make"]}"#,
                r#"{"install": ["make", "make"]}"#,
            ),
            (r"{}", r#"{"startup": ["server"]}"#),
            (r"{}", r#"{"files": {"~/run.sh": "1"}}"#),
            (r#"{"files": {"~/run.sh": "1"}}"#, r"{}"),
            (
                r#"{"startup": ["./run.sh"], "files": {"./run.sh": "1"}}"#,
                r#"{"startup": ["./run.sh"], "files": {"./run.sh": "2"}}"#,
            ),
            (r"{}", r#"{"variables": {"LD_PRELOAD": "/tmp/a.so"}}"#),
            (
                r#"{"variables": {"PATH": "/bin"}}"#,
                r#"{"variables": {"PATH": "/tmp:/bin"}}"#,
            ),
        ] {
            assert!(widened(old, new), "{old} {new}");
        }
    }

    #[test]
    fn g5_words_put_together_otherwise_are_another_command() {
        let startup = |argv: &str| {
            let text = format!(
                "schemaVersion: '2'\nkind: mixin\nname: k\nsetup: {{startup: [{{command: {argv}}}]}}\n"
            );
            let origin = Origin::new(LayerKind::Kit, "k");
            let kit = read_kit(&text, &BTreeMap::new(), &origin).unwrap();
            kit.surface(BTreeMap::new())
        };
        let (old, new) = (startup("[sh, -c, 'a b']"), startup("[sh, -c, a, b]"));
        assert!(is_wider(&old, &new) && is_wider(&new, &old));
    }

    #[test]
    fn what_opens_no_more_is_not_wider() {
        for (old, new) in [
            (r#"{"allow": ["a.example.org"]}"#, r"{}"),
            (
                r#"{"allow": ["**.example.org"]}"#,
                r#"{"allow": ["a.example.org:443"]}"#,
            ),
            (
                r#"{"deny": ["t.example.org"]}"#,
                r#"{"deny": ["**.example.org"]}"#,
            ),
            (r#"{"install": ["a", "b"]}"#, r#"{"install": ["b"]}"#),
            (
                r#"{"credentials": {"a": {"sources": ["$A"], "bindings": ["b"]}}}"#,
                r#"{"credentials": {"a": {"sources": ["$A"], "bindings": []}}}"#,
            ),
        ] {
            assert!(!widened(old, new), "{old} {new}");
            assert_ne!(surface(old).differences(&surface(new)), []);
        }
    }
}
