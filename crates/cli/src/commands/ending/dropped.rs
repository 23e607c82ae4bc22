//! What was written to a private layer and is gone: a command that put something there has ended
//! as if all were well.

use ringfence_policy::shell_word;
use ringfence_runtime::{Change, DroppedChange, DroppedReport, Report};

use crate::output;

/// The most changes that are shown.
const MOST_SHOWN: usize = 5;

/// The block about it, and what to add so that it stays.
pub(crate) fn show_dropped(report: &Report) {
    let home = report.home.as_ref();
    let Some(dropped) = home.and_then(|home| home.dropped.as_ref()) else {
        return;
    };
    let place = place(dropped);
    output::tell!("ringfence: written {place}, and gone with this run:");
    output::tell!("{}", output::columns(&rows(dropped)));
    let unshown = dropped.changes.len().saturating_sub(MOST_SHOWN);
    let unshown = u64::try_from(unshown).unwrap_or(0) + dropped.more;
    if unshown > 0 || dropped.is_partial {
        let least = if dropped.is_partial { "at least " } else { "" };
        output::tell!("  … and {least}{unshown} more (of them: --report FILE)");
    }
    for line in hints(dropped) {
        output::tell!("  {line}");
    }
}

fn place(dropped: &DroppedReport) -> &'static str {
    if dropped.changes.iter().all(|own| own.is_in_home) {
        "to the private home"
    } else {
        "beside files that alone are writable"
    }
}

fn shown(dropped: &DroppedReport) -> impl Iterator<Item = &DroppedChange> {
    dropped.changes.iter().take(MOST_SHOWN)
}

fn rows(dropped: &DroppedReport) -> Vec<Vec<String>> {
    let row = |own: &DroppedChange| {
        let times = Some(own.entries).filter(|entries| *entries > 1);
        let times = times.map_or(String::new(), |entries| format!("×{entries}"));
        let change = own.change.as_str();
        vec![format!("  {change}"), own.path.clone(), times]
    };
    shown(dropped).map(row).collect()
}

/// Lines that can be pasted. A name that drives a terminal is in none of them.
fn hints(dropped: &DroppedReport) -> Vec<String> {
    let named: Vec<&DroppedChange> = shown(dropped)
        .filter(|own| own.may_be_proposed && output::printable(&own.path) == own.path)
        .filter(|own| own.change != Change::Removed)
        .collect();
    let mut lines = Vec::new();
    let words: Vec<String> = named.iter().map(|own| flag(own)).collect();
    if !words.is_empty() {
        lines.push(format!("to write it on the host: {}", words.join(" ")));
    }
    let made = named.iter().filter(|own| is_missing_file(own));
    let made: Vec<String> = made.map(|own| shell_word(&own.path)).collect();
    if !made.is_empty() {
        lines.push(format!("  and before that: touch {}", made.join(" ")));
    }
    if dropped.changes.iter().any(|own| own.is_in_home) {
        let or = if lines.is_empty() { "" } else { "or " };
        let line = format!("{or}to keep the home for the next run: --home keep");
        lines.push(line);
    }
    lines
}

/// A directory that is not there is made for a path that ends in a slash.
fn flag(change: &DroppedChange) -> String {
    let slash = if change.is_directory && change.change == Change::Made {
        "/"
    } else {
        ""
    };
    format!("--write {}", shell_word(&format!("{}{slash}", change.path)))
}

/// A file has to be there to be writable by itself.
fn is_missing_file(change: &DroppedChange) -> bool {
    change.change == Change::Made && !change.is_directory
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, change: Change, is_directory: bool) -> DroppedChange {
        DroppedChange {
            path: path.to_owned(),
            change,
            is_directory,
            entries: 1,
            may_be_proposed: true,
            is_in_home: true,
        }
    }

    #[test]
    fn hints_can_be_pasted() {
        let dropped = DroppedReport {
            changes: vec![
                change("/h/x y.tgz", Change::Made, false),
                change("/h/w", Change::Made, true),
                change("/h/up.git", Change::Changed, true),
                change("/h/old", Change::Removed, false),
                change("/h/a\n\u{1b}[2J", Change::Made, false),
            ],
            more: 0,
            is_partial: false,
        };
        assert_eq!(
            hints(&dropped),
            [
                "to write it on the host: --write '/h/x y.tgz' --write /h/w/ --write /h/up.git",
                "  and before that: touch '/h/x y.tgz'",
                "or to keep the home for the next run: --home keep",
            ]
        );
    }

    #[test]
    fn names_cannot_drive_the_terminal() {
        let dropped = DroppedReport {
            changes: vec![change("/h/a\n\u{1b}[2J", Change::Made, false)],
            more: 0,
            is_partial: false,
        };
        assert_eq!(
            output::columns(&rows(&dropped)),
            "  made  /h/a\\n\\u{1b}[2J"
        );
        assert_eq!(hints(&dropped).len(), 1);
    }
}
