//! Tables and JSON on standard output.

use std::io::Write;

use ringfence_policy::Note;
use serde::Serialize;

use crate::error::Failure;

/// Prints a value as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value)
        .unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
    print_text(&text);
}

/// Prints text and a line end. A reader that has gone away is not an error.
pub(crate) fn print_text(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// As `eprintln!`, but a reader that has gone away is not an error: code inside
/// must not be able to change our exit code by what it makes us say.
macro_rules! tell {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($argument)*);
    }};
}
pub(crate) use tell;

/// What became of checking `name`: that it is right or what is wrong, and what
/// of it has no effect.
pub(crate) fn print_checked(name: &str, error: Option<&Failure>, notes: &[Note]) {
    match error {
        None => print_text(&format!("{}: ok", printable(name))),
        Some(failure) => {
            failure.show(false);
        }
    }
    for note in notes {
        print_text(&format!("  {}", note_line(note)));
    }
}

/// A note in one line.
pub(crate) fn note_line(note: &Note) -> String {
    format!(
        "note[{}] {}: {}",
        note.code,
        printable(&note.origin.to_string()),
        printable(&note.message)
    )
}

/// Lines up `rows` in columns, two spaces apart. Control characters, which
/// come from inside a sandbox, are shown and not sent to the terminal.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| printable(cell)).collect())
        .collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|at| {
            rows.iter()
                .filter_map(|row| row.get(at))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `text` with every character escaped that drives a terminal or changes how
/// others are shown.
pub(crate) fn printable(text: &str) -> String {
    let is_unseen = |character: char| {
        character.is_control()
            || matches!(
                character,
                '\u{61c}'
                    | '\u{200b}'..='\u{200f}'
                    | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}'
                    | '\u{feff}'
            )
    };
    let escape = |character: char| {
        if is_unseen(character) {
            character.escape_default().to_string()
        } else {
            character.to_string()
        }
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_cannot_drive_the_terminal() {
        let rows = [
            vec!["a".to_owned(), "bb".to_owned()],
            vec!["ccc".to_owned(), "\u{1b}[2J\u{202e}".to_owned()],
        ];
        assert_eq!(columns(&rows), "a    bb\nccc  \\u{1b}[2J\\u{202e}");
    }
}
