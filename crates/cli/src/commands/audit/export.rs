//! `ringfence audit export`: the record for other programs.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ringfence_audit::{ExportFormat, Exporter, Filter, Records, Timestamp};
use ringfence_policy::TimeSpan;

use super::{WhichRun, ending, folder, tell_skipped};
use crate::error::Failure;
use crate::exit::ExitCode;

/// Write the record in a format for other programs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence audit export --format json --run 3f2a > run.jsonl
  ringfence audit export --format csv --since 24h --output events.csv
  ringfence audit export --format skillhub --output audit_log.csv
    # then: \\copy audit_log (actor_user_id, action, target_type, target_id, request_id, client_ip,
    #   user_agent, detail_json, created_at) from 'audit_log.csv' with (format csv, header)")]
pub(crate) struct ExportArgs {
    /// Which format
    #[arg(long, value_enum)]
    format: Format,
    /// Only this run: last (in this folder), an id, or how it begins
    #[arg(long, value_name = "ID")]
    run: Option<WhichRun>,
    /// Only what happened in this time until now, such as 10m or 2h30m
    #[arg(long, value_name = "DURATION")]
    since: Option<TimeSpan>,
    /// Where to write it; standard output if it is not named
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One record on each line, as in the log
    Json,
    /// A table, safe to open in a spreadsheet
    Csv,
    /// The columns of a skillhub's table `audit_log`, for SQL COPY
    Skillhub,
}

impl From<Format> for ExportFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Json => Self::Json,
            Format::Csv => Self::Csv,
            Format::Skillhub => Self::Skillhub,
        }
    }
}

pub(crate) fn main(arguments: &ExportArgs) -> ExitCode {
    ending(export(arguments), false)
}

fn export(arguments: &ExportArgs) -> Result<(), Failure> {
    let folder = folder()?;
    let run = arguments.run.as_ref().map(|run| run.prefix(&folder));
    let run = run.transpose()?;
    let filter = Filter {
        since: arguments
            .since
            .map(|span| Timestamp::now().minus(span.as_duration())),
        run: run.flatten(),
        ..Filter::default()
    };
    let mut records = Records::open(&folder, filter)?;
    let out: Box<dyn Write> = match &arguments.output {
        Some(path) => Box::new(create(path)?),
        None => Box::new(io::stdout().lock()),
    };
    let format = arguments.format.into();
    let written = write(&mut records, format, BufWriter::new(out));
    tell_skipped(records.skipped());
    match written? {
        // A reader that has gone away has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(unwritable(arguments.output.as_deref(), &error)),
        Ok(()) => Ok(()),
    }
}

fn write(
    records: &mut Records,
    format: ExportFormat,
    out: impl Write,
) -> Result<io::Result<()>, Failure> {
    let mut exporter = match Exporter::new(format, out) {
        Ok(exporter) => exporter,
        Err(error) => return Ok(Err(error)),
    };
    for record in records {
        if let Err(error) = exporter.add(&record?) {
            return Ok(Err(error));
        }
    }
    Ok(exporter.finish())
}

/// What runs did is nobody else's business, also in a copy.
fn create(path: &Path) -> Result<std::fs::File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
        .open(path)
        .map_err(|error| unwritable(Some(path), &error))
}

fn unwritable(path: Option<&Path>, error: &io::Error) -> Failure {
    let path = path.map_or("standard output".into(), Path::to_string_lossy);
    Failure::new(
        "export-unwritable",
        format!("cannot write to {path}: {error}"),
        "name a file that you may write to with --output",
    )
}
