//! Lines of comma-separated values (RFC 4180).

use std::io::{self, Write};

/// Writes one line. An empty cell is without quotes, which databases take for
/// no value.
pub(super) fn write(out: &mut impl Write, cells: &[String]) -> io::Result<()> {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    writeln!(out, "{}", cells.join(","))
}

fn quoted(cell: &str) -> String {
    // A spreadsheet takes what begins so for a formula, and may run it.
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '|', '%']);
    let guard = if is_formula { "'" } else { "" };
    let needs_quotes = is_formula || cell.contains([',', '"', '\n', '\r', '\'']);
    if needs_quotes {
        format!(
            "\"{guard}{}\"",
            cell.replace('"', "\"\"").replace(['\n', '\r'], " ")
        )
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cannot_break_out_or_become_formulas() {
        for (cell, want) in [
            ("", ""),
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("a\nb\rc", "\"a b c\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
        ] {
            assert_eq!(quoted(cell), want, "{cell}");
        }
    }
}
