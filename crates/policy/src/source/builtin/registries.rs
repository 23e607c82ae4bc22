//! Package registries, read from one data file in reverse-domain order.

use crate::host::HostPattern;

/// One line: a name in reverse-domain order (itself and all below it), then its group.
const TABLE: &str = include_str!("../../presets/registries.txt");

/// What a registry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// Packages of a language or a distribution.
    Packages,
    /// A code host, from which packages are often installed too.
    Code,
}

/// The registries of the given groups.
pub(super) fn patterns(groups: &[Group]) -> impl Iterator<Item = HostPattern> {
    entries().filter_map(|(name, group)| {
        let pattern = HostPattern::from_reversed(name).ok()?;
        groups.contains(&group?).then_some(pattern)
    })
}

fn entries() -> impl Iterator<Item = (&'static str, Option<Group>)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let (name, group) = line.split_once(' ')?;
        let group = match group {
            "packages" => Some(Group::Packages),
            "code" => Some(Group::Code),
            _ => None,
        };
        Some((name, group))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_whole() {
        let names: Vec<_> = entries().map(|(name, _)| name).collect();
        assert!(names.is_sorted());
        assert!(entries().all(|(_, group)| group.is_some()));
        assert_eq!(
            patterns(&[Group::Packages, Group::Code]).count(),
            names.len()
        );
        assert_eq!(
            TABLE.lines().filter(|line| !line.starts_with('#')).count(),
            names.len()
        );
        assert!(patterns(&[Group::Packages, Group::Code]).all(|pattern| !pattern.is_too_broad()));
    }
}
