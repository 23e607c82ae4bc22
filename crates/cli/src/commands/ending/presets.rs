//! [`Fitting`]: the presets that would have allowed what was refused.

use std::path::Path;

use ringfence_audit::Refusal;
use ringfence_policy::{HostName, Preset, suggest_preset};
use ringfence_runtime::{Report, project_kinds};

use super::CLOSED;

/// A preset, and how many of the refused destinations it allows.
struct Fit {
    preset: Preset,
    covered: usize,
}

/// The presets to name, the best first.
#[derive(Default)]
pub(super) struct Fitting(Vec<Fit>);

impl Fitting {
    /// For what an entry would lift in `report`, by the kind of project that
    /// the working folder holds and the program that ran.
    pub(super) fn of(report: &Report, is_lifted: impl Fn(&Refusal) -> bool) -> Self {
        let refused = report.refusals.iter().filter(|refusal| is_lifted(refusal));
        let mut refused: Vec<(HostName, u16)> = refused.filter_map(destination).collect();
        refused.sort();
        refused.dedup();
        let is_closed = |refusal: &Refusal| refusal.rule == CLOSED;
        if refused.is_empty() && !report.refusals.iter().any(is_closed) {
            return Self::default();
        }
        let kinds = kinds(report);
        if refused.is_empty() {
            return Self::of_project(&kinds);
        }
        let mut fitting = Vec::new();
        while let Some(preset) = suggest_preset(&refused, &kinds) {
            let before = refused.len();
            refused.retain(|(name, port)| !preset.covers(name, *port));
            let covered = before - refused.len();
            fitting.push(Fit { preset, covered });
        }
        Self(fitting)
    }

    /// Where names cannot be looked up, the project alone tells what was wanted.
    fn of_project(kinds: &[String]) -> Self {
        let presets = kinds.iter().filter_map(|kind| Preset::named(kind).ok());
        let covered = 0;
        Self(presets.map(|preset| Fit { preset, covered }).collect())
    }

    /// The names of presets that stand for entries, or of those that an entry stands for.
    pub(super) fn names(&self, needed: bool) -> impl Iterator<Item = &str> {
        let fits = self
            .0
            .iter()
            .filter(move |fit| (fit.covered != 1) == needed);
        fits.map(|fit| fit.preset.name.as_str())
    }

    /// Whether one of them stands for the entry that would lift `refusal`. One
    /// that covers a single host does not: the entry opens less.
    pub(super) fn replaces(&self, refusal: &Refusal) -> bool {
        let Some((name, port)) = destination(refusal) else {
            return false;
        };
        let mut several = self.0.iter().filter(|fit| fit.covered > 1);
        several.any(|fit| fit.preset.covers(&name, port))
    }
}

fn destination(refusal: &Refusal) -> Option<(HostName, u16)> {
    let (name, port) = refusal.subject.rsplit_once(':')?;
    Some((HostName::parse(name).ok()?, port.parse().ok()?))
}

/// What the working folder holds, and what ran: many presets are called as the
/// program is that they are for.
fn kinds(report: &Report) -> Vec<String> {
    let mut kinds = project_kinds(Path::new(&report.working_folder));
    let program = report.command.first().map(Path::new);
    let program = program.and_then(Path::file_name);
    kinds.extend(program.map(|name| name.to_string_lossy().into_owned()));
    kinds.sort();
    kinds.dedup();
    kinds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What was refused by `rule`, to `command` in `folder`.
    fn report(folder: &Path, command: &str, rule: &str, subjects: &[String]) -> Report {
        let refusal = |subject: &String| json!({"kind": "network", "operation": "connect", "subject": subject, "rule": rule, "count": 1});
        let refusals: Vec<_> = subjects.iter().map(refusal).collect();
        let report = json!({
            "version": 1, "command": [command], "workingFolder": folder,
            "exit": {"code": 1, "reason": "exited", "signal": null},
            "signals": [], "durationMs": 1, "enforcement": [],
            "audit": {"level": "network", "effective": "network", "reason": null},
            "refusals": refusals, "moreRefusals": 0,
            "limits": [], "limits_hit": [], "peakMemoryBytes": 1,
        });
        serde_json::from_value(report).unwrap()
    }

    fn named(report: &Report) -> Vec<String> {
        let is_lifted = |refusal: &Refusal| refusal.rule == "not-in-allowlist";
        let fitting = Fitting::of(report, is_lifted);
        let names = fitting.names(true).chain(fitting.names(false));
        names.map(str::to_owned).collect()
    }

    /// The destinations of a preset, made at run time.
    fn of(preset: &str) -> Vec<String> {
        let preset = Preset::named(preset).unwrap();
        let hosts = preset.hosts.iter();
        hosts
            .map(|own| format!("{}:443", own.host.name()))
            .collect()
    }

    #[test]
    fn several_presets_are_named_until_nothing_is_left_that_one_covers() {
        let folder = tempfile::tempdir().unwrap();
        let subjects = [of("rust"), of("ruby"), vec!["a.test:443".to_owned()]].concat();
        let report = report(folder.path(), "make", "not-in-allowlist", &subjects);
        let mut names = named(&report);
        names.sort();
        assert_eq!(names, ["ruby", "rust"]);
        let fitting = Fitting::of(&report, |_| true);
        let (last, covered) = report.refusals.split_last().unwrap();
        assert!(covered.iter().all(|refusal| fitting.replaces(refusal)));
        assert!(!fitting.replaces(last));
    }

    #[test]
    fn the_program_decides_between_agents_that_share_a_host() {
        let folder = tempfile::tempdir().unwrap();
        let claude = of("claude");
        let shared: Vec<String> = of("aider")
            .into_iter()
            .filter(|own| claude.contains(own))
            .collect();
        for program in ["claude", "aider", "/usr/bin/opencode"] {
            let report = report(folder.path(), program, "not-in-allowlist", &shared);
            assert_eq!(named(&report), [program.rsplit('/').next().unwrap()]);
        }
    }

    #[test]
    fn in_a_closed_network_the_project_alone_tells() {
        let folder = tempfile::tempdir().unwrap();
        let subjects = ["192.0.2.7:443".to_owned()];
        let closed = || report(folder.path(), "make", CLOSED, &subjects);
        assert!(named(&closed()).is_empty());
        std::fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(named(&closed()), ["rust"]);
        let denied = report(folder.path(), "make", "denied-by-rule", &of("rust"));
        assert!(named(&denied).is_empty());
    }
}
