//! Names that run code, or steer an agent, outside the sandbox once somebody opens the folder.

use super::table::groups;
use crate::filesystem::ProtectedName;
use crate::source::error::Fault;

/// The protected names, git's own folder first.
pub(super) fn names() -> Vec<ProtectedName> {
    // All are as `parse` wants them.
    let named = usual().map(|text| ProtectedName::Components(text.into()));
    std::iter::once(ProtectedName::GitInternals)
        .chain(named)
        .collect()
}

/// What is protected without a word about it.
fn usual() -> impl Iterator<Item = &'static str> {
    groups(TABLE)
        .filter(|(group, _)| *group != CI_GROUP)
        .map(|(_, name)| name)
}

/// Definitions of continuous integration, which take effect only once they are pushed.
fn of_ci() -> impl Iterator<Item = &'static str> {
    groups(TABLE)
        .filter(|(group, _)| *group == CI_GROUP)
        .map(|(_, name)| name)
}

const TABLE: &str = include_str!("protected.txt");

/// The group of these, and the word for all of them.
const CI_GROUP: &str = "ci";

/// The names that an entry of `protect` stands for.
pub(crate) fn protected_names(text: &str) -> Result<Vec<ProtectedName>, Fault> {
    if text == CI_GROUP {
        let names = of_ci().map(|name| ProtectedName::Components(name.into()));
        return Ok(names.collect());
    }
    match ProtectedName::parse(text) {
        Some(name) => Ok(vec![name]),
        None => Err(Fault::ProtectedName(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_as_if_it_were_parsed() {
        let parsed: Option<Vec<_>> = usual().map(ProtectedName::parse).collect();
        assert_eq!(names()[1..], parsed.unwrap());
        assert!(of_ci().all(|text| ProtectedName::parse(text).is_some()));
        let all: Vec<&str> = usual().chain(of_ci()).collect();
        for (at, name) in all.iter().enumerate() {
            assert!(!all[..at].contains(name), "{name} twice");
        }
    }

    #[test]
    fn a_group_stands_for_its_names() {
        let of_group = protected_names("ci").unwrap();
        assert!(of_group.len() > 10 && of_group.len() == of_ci().count());
        assert_eq!(protected_names("a/b").unwrap().len(), 1);
        for bad in ["", "a/../b", "/a", "."] {
            assert!(protected_names(bad).is_err(), "{bad}");
        }
    }
}
