//! `ringfence policy check`: is a file right, and what of it has no effect.

use std::path::{Path, PathBuf};

use ringfence_policy::{Note, PathContext};
use ringfence_runtime::{Directories, HostEnv, Sources, check_file};
use serde::Serialize;

use crate::environment;
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
    let nothing = HostEnv::new(Vec::new(), None);
    let checked: Result<Vec<_>, _> = sources(&nothing).map(|sources| {
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

/// Files are checked by themselves, without what variables say.
fn sources(nothing: &HostEnv) -> Result<Sources<'_>, Failure> {
    let env = environment::own();
    let host = env.look_at_host()?;
    let base = env.directory().unwrap_or(Path::new("/")).to_path_buf();
    Ok(Sources {
        env: nothing,
        approvals: Directories::of(&env, &host).approvals,
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
