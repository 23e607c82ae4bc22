//! `ringfence kit show`: what a kit asks for.

use std::collections::BTreeMap;
use std::fmt::Display;

use ringfence_policy::{Kit, KitKind, KitSchema, Note, NoteKind, Surface};
use ringfence_runtime::LoadedKit;
use serde::Serialize;

use super::ReadArgs;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Show what a kit asks for: hosts, credentials, variables, files and commands
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ringfence kit show ./my-kit --json")]
pub(crate) struct ShowArgs {
    /// The kit
    #[arg(value_name = "KIT")]
    kit: String,
    #[command(flatten)]
    read: ReadArgs,
}

/// A kit, as programs read it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    name: &'a str,
    version: Option<&'a str>,
    title: Option<&'a str>,
    description: Option<&'a str>,
    schema_version: KitSchema,
    kind: KitKind,
    source: String,
    commit: Option<&'a str>,
    digest: String,
    arguments: BTreeMap<&'a str, &'a str>,
    surface: &'a Surface,
    notes: &'a [Note],
}

pub(crate) fn main(arguments: &ShowArgs) -> ExitCode {
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(arguments.read.json),
    }
}

fn start(arguments: &ShowArgs) -> Result<(), Failure> {
    for kit in arguments.read.read(std::slice::from_ref(&arguments.kit))? {
        if arguments.read.json {
            output::print_json(&shown(&kit));
        } else {
            output::print_text(&output::columns(&rows(&kit)));
        }
    }
    Ok(())
}

fn shown(loaded: &LoadedKit) -> Shown<'_> {
    let kit = &loaded.kit;
    Shown {
        name: &kit.name,
        version: kit.version.as_deref(),
        title: kit.title.as_deref(),
        description: kit.description.as_deref(),
        schema_version: kit.schema,
        kind: kit.kind,
        source: loaded.reference().to_string(),
        commit: loaded.commit(),
        digest: loaded.digest().to_string(),
        arguments: kit.arguments.iter().collect(),
        surface: loaded.surface(),
        notes: &kit.notes,
    }
}

/// What a kit asks for, one thing a row.
pub(crate) fn rows(loaded: &LoadedKit) -> Vec<Vec<String>> {
    let kit = &loaded.kit;
    let surface = loaded.surface();
    let mut rows = Rows(Vec::new());
    rows.add("kit", &kit.name);
    rows.all("version", kit.version.iter());
    rows.all("description", kit.description.iter());
    rows.add("source", loaded.reference());
    rows.all("commit", loaded.commit());
    rows.add("digest", &loaded.digest());
    rows.pairs("argument", kit.arguments.iter());
    rows.all("allow", &surface.allow);
    rows.all("deny", &surface.deny);
    rows.credentials(kit);
    let variables = surface.variables.iter();
    rows.pairs(
        "variable",
        variables.map(|(name, value)| (name.as_str(), value.as_str())),
    );
    rows.all("file", surface.files.keys());
    rows.all("install", &surface.install);
    rows.all("startup", &kit.startup);
    for note in &kit.notes {
        let section = match note.kind {
            NoteKind::Unsupported => "cannot",
            _ => "note",
        };
        rows.add(section, &note.message);
    }
    rows.0
}

struct Rows(Vec<Vec<String>>);

impl Rows {
    fn add(&mut self, section: &str, entry: &dyn Display) {
        self.0.push(vec![section.to_owned(), entry.to_string()]);
    }

    fn all<T: Display>(&mut self, section: &str, entries: impl IntoIterator<Item = T>) {
        for entry in entries {
            self.add(section, &entry);
        }
    }

    fn pairs<'a>(&mut self, section: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
        self.all(
            section,
            pairs.map(|(name, value)| format!("{name}={value}")),
        );
    }

    fn credentials(&mut self, kit: &Kit) {
        for credential in &kit.credentials {
            let sources: Vec<String> = credential.sources.iter().map(ToString::to_string).collect();
            let required = if credential.required {
                " (required)"
            } else {
                ""
            };
            let found = format!(
                "{}{required} from {}",
                credential.service,
                sources.join(", ")
            );
            self.add("credential", &found);
            for binding in &credential.bindings {
                self.add("", &format!("{}: {binding}", credential.service));
            }
            if !credential.variables.is_empty() {
                let names = credential.variables.join(", ");
                self.add(
                    "",
                    &format!("{}: a placeholder in {names}", credential.service),
                );
            }
        }
    }
}
