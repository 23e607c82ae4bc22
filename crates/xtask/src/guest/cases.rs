//! The guests, and the cases that each of them runs.

/// A guest by what its first process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guest {
    /// A script, so that every control group is of our making.
    Bare,
    /// systemd, with a service manager for an ordinary user.
    Systemd,
}

/// Where ringfence is started from, and what is checked there.
type Place = (&'static str, &'static [&'static [&'static str]]);

/// What is checked wherever a control group holds everything.
const HELD: &[&str] = &[
    "works",
    "required",
    "memory",
    "memory_peak",
    "pids",
    "cpu",
    "cpu_time",
];
/// The same, in short.
const BRIEFLY: &[&str] = &["works", "required", "memory"];
/// What else depends on the kernel.
const OTHERWISE: &[&str] = &["network", "protected_names", "disk", "audit"];
/// Where there is no group.
const WITHOUT: &[&str] = &[
    "works",
    "refused",
    "fraction_refused",
    "whole_cores",
    "watched_memory",
    "watched_pids",
];

/// The places are prepared in this order.
const BARE: &[Place] = &[
    ("root_top", &[HELD, OTHERWISE, &["killed"]]),
    ("root_crowd", &[BRIEFLY, &["killed"]]),
    ("root_below", &[BRIEFLY, &["killed"]]),
    ("root_alone", &[BRIEFLY, &["pids", "cpu", "killed_alone"]]),
    ("user_delegated", &[HELD, OTHERWISE, &["killed"]]),
    ("user_alone", &[BRIEFLY, &["pids", "cpu", "killed_alone"]]),
    (
        "user_partial",
        &[&["works", "memory", "pids", "fraction_refused", "whole_cores"]],
    ),
    ("user_plain", &[WITHOUT]),
];

const SYSTEMD: &[Place] = &[
    ("systemd_service", &[BRIEFLY, &["killed"]]),
    ("systemd_scope", &[HELD, &["killed_scope"]]),
    ("systemd_shell", &[BRIEFLY]),
    ("systemd_session", &[HELD, &["killed_scope", "unstated"]]),
];

impl Guest {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Bare, Self::Systemd];

    /// Its name, for people and for files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Systemd => "systemd",
        }
    }

    /// The guest of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guest| guest.name() == name)
    }

    /// Its cases, a place and a name each.
    pub(super) fn cases(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let places = match self {
            Self::Bare => BARE,
            Self::Systemd => SYSTEMD,
        };
        places.iter().flat_map(|(place, lists)| {
            let names = lists.iter().flat_map(|list| list.iter());
            names.map(move |name| (*place, *name))
        })
    }

    /// The list that it goes through: a place and a case per line.
    pub(super) fn list(self) -> String {
        let lines = self.cases().map(|(place, name)| format!("{place} {name}"));
        lines.collect::<Vec<_>>().join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_have_every_place_and_case() {
        let places = include_str!("places.sh");
        let cases = include_str!("cases.sh");
        for (place, name) in Guest::ALL.into_iter().flat_map(Guest::cases) {
            assert!(places.contains(&format!("\nprepare_{place}() ")), "{place}");
            assert!(places.contains(&format!("\nat_{place}() ")), "{place}");
            assert!(cases.contains(&format!("\ncase_{name}() ")), "{name}");
        }
    }
}
