//! `ringfence policy check`: is a file right, and what of it has no effect.

use std::path::{Path, PathBuf};

use ringfence_policy::{Note, PathContext};
use ringfence_runtime::{Sources, approvals_folder, check_file};
use ringfence_sandbox::Host;
use serde::Serialize;

use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Check policy files and srt settings, and report what has no effect
///
/// Exits with 1 when a file is wrong. A file ending in .json is read as srt
/// settings, .toml as TOML, anything else as YAML.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ringfence policy check policy.yaml ~/.srt-settings.json")]
pub(crate) struct CheckArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Checked {
    file: String,
    ok: bool,
    error: Option<Failure>,
    notes: Vec<Note>,
}

pub(crate) fn main(arguments: &CheckArgs) -> ExitCode {
    let checked: Result<Vec<_>, _> = sources().map(|sources| {
        arguments
            .files
            .iter()
            .map(|file| check(file, &sources))
            .collect()
    });
    let checked = match checked {
        Ok(checked) => checked,
        Err(failure) => return failure.show(arguments.json),
    };
    if arguments.json {
        output::print_json(&checked);
    } else {
        checked.iter().for_each(show);
    }
    ExitCode::from(u8::from(checked.iter().any(|file| !file.ok)))
}

fn sources() -> Result<Sources<'static>, Failure> {
    let host = Host::look(std::env::var_os("HOME").map(PathBuf::from))?;
    let base = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Ok(Sources {
        variable: &|_| None,
        approvals: approvals_folder(&|name| std::env::var_os(name), &host),
        paths: PathContext {
            home: host.home,
            base,
        },
        other_home: host.other_home,
    })
}

fn check(path: &Path, sources: &Sources<'_>) -> Checked {
    let file = path.display().to_string();
    match check_file(path, sources) {
        Ok(notes) => Checked {
            file,
            ok: true,
            error: None,
            notes,
        },
        Err(error) => Checked {
            file,
            ok: false,
            error: Some(error.into()),
            notes: Vec::new(),
        },
    }
}

fn show(checked: &Checked) {
    let error = checked.error.as_ref();
    output::print_checked(&checked.file, error, &checked.notes);
}
