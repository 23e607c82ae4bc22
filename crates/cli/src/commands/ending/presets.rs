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

    /// The presets' names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|fit| fit.preset.name.as_str())
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
