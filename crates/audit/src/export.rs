//! The log in the formats of others.

mod csv;
mod row;
mod skillhub;

use std::io::{self, Write};

use crate::chain::Record;

/// A format to export in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One record on each line, as in the log.
    Json,
    /// A table with a line of titles.
    Csv,
    /// The columns of `audit_log` in a skillhub, with a line of titles, for
    /// `COPY … FROM … WITH (FORMAT csv, HEADER)`.
    Skillhub,
}

/// Writes records in a format.
#[derive(Debug)]
pub struct Exporter<W> {
    format: ExportFormat,
    out: W,
}

impl<W: Write> Exporter<W> {
    /// Begins, with a line of titles where the format has one.
    pub fn new(format: ExportFormat, mut out: W) -> io::Result<Self> {
        let titles: &[&str] = match format {
            ExportFormat::Json => &[],
            ExportFormat::Csv => &row::TITLES,
            ExportFormat::Skillhub => &skillhub::TITLES,
        };
        if !titles.is_empty() {
            writeln!(out, "{}", titles.join(","))?;
        }
        Ok(Self { format, out })
    }

    /// Adds a record. Some formats have no line for some of them.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        match self.format {
            ExportFormat::Json => {
                serde_json::to_writer(&mut self.out, record)?;
                self.out.write_all(b"\n")
            }
            ExportFormat::Csv => csv::write(&mut self.out, &row::cells(record)),
            ExportFormat::Skillhub => match skillhub::cells(record) {
                Some(cells) => csv::write(&mut self.out, &cells),
                None => Ok(()),
            },
        }
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
