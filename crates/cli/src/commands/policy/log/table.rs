//! The log as a table, and the same as JSON.

use ringfence_audit::{Group, Grouped, Sightings, Timestamp, Verdict, Via};
use serde::Serialize;

use crate::output;

/// What stands for destinations that were too many to be told apart.
const OTHERS: &str = "(others)";

/// Decisions that are alike.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    host: String,
    via: Option<Via>,
    verdict: Verdict,
    rule: Option<String>,
    source: Option<String>,
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
    count: u64,
    first_seen: Timestamp,
    last_seen: Timestamp,
}

impl Row {
    fn new(group: &Group, seen: Sightings) -> Self {
        Self {
            host: group.destination().unwrap_or_else(|| OTHERS.to_owned()),
            via: group.via,
            verdict: group.verdict,
            rule: group.rule.as_ref().map(ToString::to_string),
            source: group.source.as_ref().map(ToString::to_string),
            reason: group.reason.as_ref().map(ToString::to_string),
            credential: group.credential.as_ref().map(ToString::to_string),
            count: seen.count,
            first_seen: seen.first,
            last_seen: seen.last,
        }
    }

    /// With a column for credentials where there are any.
    fn cells(&self, credentials: bool) -> Vec<String> {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![
            self.host.clone(),
            self.via.map_or("-", Via::as_str).to_owned(),
            self.verdict.as_str().to_owned(),
            or_dash(&self.rule),
            or_dash(&self.reason),
        ];
        cells.extend(credentials.then(|| or_dash(&self.credential)));
        cells.extend([self.count.to_string(), self.last_seen.to_seconds()]);
        cells
    }
}

/// The rows of the table, the one last seen at the end.
pub(super) fn rows(grouped: Grouped) -> Vec<Row> {
    let sorted = grouped.into_sorted();
    sorted
        .iter()
        .map(|(group, seen)| Row::new(group, *seen))
        .collect()
}

pub(super) fn table(rows: &[Row]) -> String {
    let credentials = rows.iter().any(|row| row.credential.is_some());
    let mut head = vec!["HOST", "VIA", "VERDICT", "RULE", "REASON"];
    head.extend(credentials.then_some("CREDENTIAL"));
    head.extend(["COUNT", "LAST SEEN"]);
    let head = head.into_iter().map(str::to_owned).collect();
    let cells: Vec<Vec<String>> = std::iter::once(head)
        .chain(rows.iter().map(|row| row.cells(credentials)))
        .collect();
    output::columns(&cells)
}

/// The rows as a program wants them.
#[derive(Serialize)]
pub(super) struct Sections<'a> {
    blocked: Vec<&'a Row>,
    allowed: Vec<&'a Row>,
}

pub(super) fn sections(rows: &[Row]) -> Sections<'_> {
    let with = |verdict| rows.iter().filter(|row| row.verdict == verdict).collect();
    Sections {
        blocked: with(Verdict::Refused),
        allowed: with(Verdict::Allowed),
    }
}
