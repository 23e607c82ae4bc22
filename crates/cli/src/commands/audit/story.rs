//! A story for people: one section for each thing that they ask.

use ringfence_audit::{
    ConnectionLine, FileLine, LimitLine, ProgramLine, Reduced, RefusalLine, SeenLine, Story,
    Timestamp, Via, amount, command_line,
};
use ringfence_policy::AuditLevel;

use crate::output::{columns, printable};

/// The most lines of a section.
const MOST_LINES: usize = 40;

/// The whole story.
pub(super) fn tell(story: &Story, state: &str) -> String {
    let sections = [
        beginning(story, state),
        section(
            "Ran",
            story.programs.iter().map(program),
            story.more_programs,
        ),
        section("Connected to", story.connections.iter().map(connection), 0),
        section("Changed", story.files.iter().map(file), 0),
        section(
            "Seen (how it ended is not known)",
            story.seen.iter().map(seen),
            story.more_seen,
        ),
        section(
            "Refused",
            story.refused.iter().map(refusal),
            story.more_refused,
        ),
        section("Limits", story.limits.iter().map(limit), 0),
        end(story),
    ];
    let told: Vec<String> = sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .collect();
    told.join("\n\n")
}

fn beginning(story: &Story, state: &str) -> String {
    let mut rows = vec![row(["Run", &story.run.to_string()])];
    if let Some(name) = &story.sandbox {
        rows.push(row(["Name", name]));
    }
    if let Some(start) = &story.start {
        rows.push(row(["Command", &start.command.to_string()]));
        rows.push(row(["Folder", start.working_folder.as_str()]));
        rows.push(row(["User", &start.uid.to_string()]));
        if let Some(reduced) = &start.reduced {
            rows.push(row(["Level", &level(start.level, reduced)]));
        }
    }
    if let Some(started) = story.started {
        rows.push(row(["Started", &started.to_seconds()]));
    }
    rows.push(row(["Record", state]));
    columns(&rows)
}

fn level(held: AuditLevel, reduced: &Reduced) -> String {
    let reason = printable(reduced.reason.as_str());
    if held == reduced.from {
        return format!("{}, without calls: {reason}", held.as_str());
    }
    format!(
        "{} instead of {}: {reason}",
        held.as_str(),
        reduced.from.as_str()
    )
}

fn end(story: &Story) -> String {
    let Some(end) = &story.end else {
        return "Its end is not on record.".to_owned();
    };
    let signal = end.signal.map(|signal| format!(", signal {signal}"));
    let at = story.ended.map_or_else(String::new, Timestamp::to_seconds);
    format!(
        "Ended {at} after {}: {} with {}{}; {} refused.",
        amount(end.duration_ms, "milliseconds"),
        printable(end.reason.as_str()),
        end.code,
        signal.unwrap_or_default(),
        end.refusals
    )
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// A title and its lines, or nothing.
fn section(title: &str, rows: impl Iterator<Item = Vec<String>>, more: u64) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() && more == 0 {
        return String::new();
    }
    let shown = rows.len().min(MOST_LINES);
    let unshown = (rows.len() - shown) as u64 + more;
    let indented: Vec<Vec<String>> = rows[..shown]
        .iter()
        .map(|row| {
            let mut row = row.clone();
            row.insert(0, String::new());
            row
        })
        .collect();
    let text = format!("{title}\n{}", columns(&indented));
    match unshown {
        0 => text,
        unshown => format!("{text}\n  … and {unshown} more (all with --json)"),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => String::new(),
        count => format!("×{count}"),
    }
}

fn program(line: &ProgramLine) -> Vec<String> {
    let words = if line.argv.is_empty() {
        line.program.clone()
    } else {
        command_line(&line.argv)
    };
    let pid = line.pid.map_or("-".to_owned(), |pid| pid.to_string());
    let note = if line.refused { "refused" } else { "" };
    vec![pid, words, times(line.count), note.to_owned()]
}

fn connection(line: &ConnectionLine) -> Vec<String> {
    vec![
        line.destination.clone(),
        line.via.map_or("", Via::as_str).to_owned(),
        format!("×{}", line.count),
        format!("{} bytes up, {} down", line.bytes_up, line.bytes_down),
        line.rule.clone().unwrap_or_default(),
        credential(line),
    ]
}

fn credential(line: &ConnectionLine) -> String {
    line.credential.as_ref().map_or_else(String::new, |added| {
        let times = times(line.credential_count);
        format!("credential added: {added} {times}")
            .trim_end()
            .to_owned()
    })
}

fn file(line: &FileLine) -> Vec<String> {
    let files = match line.files {
        0 | 1 => String::new(),
        files => format!("{files} files"),
    };
    vec![
        line.action.as_str().to_owned(),
        line.path.clone(),
        times(line.count),
        files,
    ]
}

fn seen(line: &SeenLine) -> Vec<String> {
    vec![
        line.action.clone(),
        line.subject.clone(),
        format!("×{}", line.count),
        line.rule.clone().unwrap_or_default(),
        line.call.clone().unwrap_or_default(),
    ]
}

fn refusal(line: &RefusalLine) -> Vec<String> {
    let call = [line.call.as_deref(), line.error.as_deref()];
    let call: Vec<&str> = call.into_iter().flatten().collect();
    vec![
        line.action.clone(),
        line.subject.clone(),
        format!("×{}", line.count),
        line.rule.clone(),
        call.join(": "),
    ]
}

/// `2 of 4096 tasks`, `1.5 MiB of 128.0 MiB`.
fn used_of(peak: &str, most: &str, unit: &str) -> String {
    let bare = peak.strip_suffix(unit).filter(|_| most.ends_with(unit));
    format!("{} of {most}", bare.unwrap_or(peak).trim_end())
}

fn limit(line: &LimitLine) -> Vec<String> {
    let as_read = |number| amount(number, &line.unit);
    let used = match (line.peak, line.configured) {
        (Some(peak), Some(most)) => used_of(&as_read(peak), &as_read(most), &line.unit),
        (Some(peak), None) => as_read(peak),
        (None, Some(most)) => format!("at most {}", as_read(most)),
        (None, None) => String::new(),
    };
    let hit = match (line.hits, line.ended) {
        (0, _) => String::new(),
        (_, true) => "HIT, ended the run".to_owned(),
        (hits, false) => format!("HIT ×{hits}"),
    };
    vec![
        line.limit.clone(),
        used,
        line.mechanism.clone().unwrap_or_default(),
        hit,
        line.evidence.clone().unwrap_or_default(),
    ]
}
