//! What `--debug` tells, on standard error.

use ringfence_audit::{Decided, Observer, Verdict};
use ringfence_policy::variables::SRT_DEBUG;
use ringfence_policy::{LayerKind, Policy, Resolved, Row, rows};
use ringfence_runtime::{HostEnv, Report, SrtLoaded};

use crate::output;

/// Whether to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Debug {
    On,
    Off,
}

impl Debug {
    /// By the flag or the variable.
    pub(super) fn new(flag: bool, env: &HostEnv) -> Self {
        let by_variable = env.text(SRT_DEBUG).is_some_and(|value| !value.is_empty());
        if flag || by_variable {
            Self::On
        } else {
            Self::Off
        }
    }

    pub(super) fn say(self, text: impl FnOnce() -> String) {
        if self == Self::On {
            output::tell!("[SandboxDebug] {}", printable_lines(&text()));
        }
    }

    pub(super) fn show_policy(self, loaded: &SrtLoaded) {
        self.say(|| match &loaded.file {
            Some(path) => format!("Settings: {}", path.display()),
            None => "Settings: none, so srt's defaults".to_owned(),
        });
        for note in loaded.policy.notes() {
            self.say(|| note.message.clone());
        }
        self.say(|| table(&loaded.policy));
    }

    pub(super) fn show_layers(self, report: &Report) {
        for layer in &report.enforcement {
            self.say(|| format!("{}: {}", layer.layer, layer.detail));
        }
    }

    /// Who tells of decisions, if anybody does.
    pub(super) fn observer(self) -> Option<Observer> {
        (self == Self::On).then(|| {
            let observer: Observer = Box::new(move |decided| self.say(|| described(decided)));
            observer
        })
    }
}

/// The rules that are not built in, and how many are.
fn table(policy: &Resolved<Policy>) -> String {
    let is_built_in = |row: &Row| row.origin.layer == LayerKind::Default;
    let (built_in, others): (Vec<Row>, Vec<Row>) = rows(policy).into_iter().partition(is_built_in);
    let cells = |row: Row| vec![row.section.to_owned(), row.entry, row.origin.to_string()];
    let others: Vec<Vec<String>> = others.into_iter().map(cells).collect();
    let (table, count) = (output::columns(&others), built_in.len());
    format!("Policy: {count} built-in rules and\n{table}")
}

fn described(decided: &Decided) -> String {
    let verdict = match decided.verdict {
        Verdict::Allowed => "Allowed",
        Verdict::Refused => "Refused",
    };
    let address = decided.address.map(|address| address.to_string());
    let name = decided.host.as_ref().map(ToString::to_string);
    let host = name.or(address).unwrap_or_default();
    let rule = decided.rule.as_ref().map(|rule| format!(", {rule}"));
    format!(
        "{verdict}: {host}:{} ({}{})",
        decided.port,
        decided.reason,
        rule.unwrap_or_default()
    )
}

/// Line ends stay; other control characters, which may come from inside a
/// sandbox, must not reach the terminal.
fn printable_lines(text: &str) -> String {
    let lines = text.lines().map(output::printable);
    lines.collect::<Vec<_>>().join("\n")
}
