//! `ringfence kit validate`: is a kit right, can it be used here, and what of
//! it has no effect.

use std::path::Path;

use ringfence_policy::{Note, NoteKind, PathContext};
use ringfence_runtime::LoadedKit;
use serde::Serialize;

use super::ReadArgs;
use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Check kits, and report what of them has no effect here
///
/// Exits with 1 when a kit is wrong, or needs what a sandbox here does not have.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ringfence kit validate ./my-kit --kit-arg region=eu")]
pub(crate) struct ValidateArgs {
    /// The kits
    #[arg(required = true, value_name = "KIT")]
    kits: Vec<String>,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Serialize)]
struct Checked {
    kit: String,
    ok: bool,
    error: Option<Failure>,
    notes: Vec<Note>,
}

pub(crate) fn main(arguments: &ValidateArgs) -> ExitCode {
    let checked: Vec<Checked> = arguments
        .kits
        .iter()
        .map(|kit| checked(kit, &arguments.read))
        .collect();
    if arguments.read.json {
        output::print_json(&checked);
    } else {
        checked.iter().for_each(show);
    }
    ExitCode::from(u8::from(checked.iter().any(|kit| !kit.ok)))
}

fn checked(reference: &String, read: &ReadArgs) -> Checked {
    let read = read.read(std::slice::from_ref(reference));
    let (error, notes) = match read.and_then(|kits| check(&kits)) {
        Err(failure) => (Some(failure), Vec::new()),
        Ok(notes) => (refusal(&notes), notes),
    };
    Checked {
        kit: reference.clone(),
        ok: error.is_none(),
        error,
        notes,
    }
}

/// What is to be told of the kits, once their rules fit together.
fn check(kits: &[LoadedKit]) -> Result<Vec<Note>, Failure> {
    let env = environment::own();
    let host = env.look_at_host()?;
    let paths = PathContext {
        home: host.home,
        base: env.directory().unwrap_or(Path::new("/")).to_path_buf(),
    };
    let mut notes = Vec::new();
    for kit in kits {
        notes.extend(kit.check(&paths)?);
    }
    Ok(notes)
}

/// The first thing that the kit cannot do without.
fn refusal(notes: &[Note]) -> Option<Failure> {
    let mut refused = notes
        .iter()
        .filter(|note| note.kind == NoteKind::Unsupported);
    refused.next().map(|note| {
        let message = format!("{}: {}", note.origin, note.message);
        let hint = "use a kit that does without it";
        Failure::new(note.code, message, hint)
    })
}

fn show(checked: &Checked) {
    let error = checked.error.as_ref();
    output::print_checked(&checked.kit, error, &checked.notes);
}
