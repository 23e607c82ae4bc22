//! The environment inside, built from nothing.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use ringfence_policy::Environment;

/// Who the command is inside.
pub(crate) struct Identity<'a> {
    pub(crate) home: &'a Path,
    pub(crate) working_folder: &'a Path,
    /// The user's name, where the one outside does not fit.
    pub(crate) user: Option<&'static str>,
}

/// Set in every sandbox, so that a program can tell.
const MARKER: (&str, &str) = ("RINGFENCE", "1");

/// The variables, as `NAME=value`, sorted by name.
pub(crate) fn build(
    rules: &Environment,
    outside: impl IntoIterator<Item = (OsString, OsString)>,
    identity: &Identity<'_>,
    ours: Vec<(&'static str, String)>,
    stand_ins: Vec<(String, String)>,
) -> Vec<CString> {
    let mut inside: BTreeMap<OsString, OsString> = outside
        .into_iter()
        .filter(|(name, _)| {
            name.to_str()
                .map_or(rules.pass_all, |name| rules.passes(name))
        })
        .collect();
    inside.insert("HOME".into(), identity.home.into());
    inside.insert("PWD".into(), identity.working_folder.into());
    inside.insert("TMPDIR".into(), "/tmp".into());
    // Where everything passes, the names stay as they are outside.
    if let Some(user) = identity.user.filter(|_| !rules.pass_all) {
        inside.insert("USER".into(), user.into());
        inside.insert("LOGNAME".into(), user.into());
    }
    for (name, value) in ours {
        inside.insert(name.into(), value.into());
    }
    for (name, value) in &rules.set {
        inside.insert(name.into(), (&value.value).into());
    }
    for (name, value) in stand_ins {
        inside.insert(name.into(), value.into());
    }
    inside.insert(MARKER.0.into(), MARKER.1.into());
    inside
        .iter()
        .filter_map(|(name, value)| assignment(name, value))
        .collect()
}

/// `None` for what no environment can hold.
fn assignment(name: &OsStr, value: &OsStr) -> Option<CString> {
    let mut text = name.to_os_string().into_vec();
    text.push(b'=');
    text.extend_from_slice(value.as_bytes());
    CString::new(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_policy::{LayerKind, Origin, Sourced};

    fn built(rules: &Environment, outside: &[(&str, &str)]) -> Vec<String> {
        let outside = outside
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let identity = Identity {
            home: Path::new("/h"),
            working_folder: Path::new("/w"),
            user: None,
        };
        build(rules, outside, &identity, Vec::new(), Vec::new())
            .into_iter()
            .map(|v| v.into_string().unwrap())
            .collect()
    }

    fn sourced(text: &str) -> Sourced<String> {
        Sourced::new(text.to_owned(), Origin::new(LayerKind::Flag, "test"))
    }

    #[test]
    fn g5_only_named_variables_pass() {
        let rules = Environment {
            pass: vec![sourced("LANG")],
            ..Environment::default()
        };
        let inside = built(
            &rules,
            &[("LANG", "C"), ("SECRET", "x"), ("HOME", "/other")],
        );
        assert_eq!(
            inside,
            ["HOME=/h", "LANG=C", "PWD=/w", "RINGFENCE=1", "TMPDIR=/tmp"]
        );
    }

    #[test]
    fn the_user_has_another_name_unless_everything_passes() {
        let named = |pass_all| {
            let rules = Environment {
                pass_all,
                ..Environment::default()
            };
            let identity = Identity {
                home: Path::new("/h"),
                working_folder: Path::new("/w"),
                user: Some("ringfence"),
            };
            let outside = [("USER".into(), "root".into())];
            let inside = build(&rules, outside, &identity, Vec::new(), Vec::new());
            let is_name = |text: &String| text.contains("USER=") || text.starts_with("LOGNAME=");
            let inside = inside.into_iter().map(|v| v.into_string().unwrap());
            inside.filter(is_name).collect::<Vec<_>>()
        };
        assert_eq!(named(false), ["LOGNAME=ringfence", "USER=ringfence"]);
        assert_eq!(named(true), ["USER=root"]);
    }

    #[test]
    fn what_the_policy_sets_wins_over_what_is_passed() {
        let rules = Environment {
            pass: vec![sourced("A")],
            set: [
                ("A".to_owned(), sourced("set")),
                ("TMPDIR".to_owned(), sourced("/t")),
            ]
            .into(),
            ..Environment::default()
        };
        let inside = built(&rules, &[("A", "passed")]);
        assert!(inside.contains(&"A=set".to_owned()) && inside.contains(&"TMPDIR=/t".to_owned()));
    }
}
