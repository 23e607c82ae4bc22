//! `ringfence preset`: what can be named with `--preset`.

mod list;
mod show;

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use ringfence_policy::{Preset, PresetError, PresetHost, PresetKind, ProjectMark};
use serde::Serialize;

use crate::error::Failure;
use crate::exit::ExitCode;

/// List and show presets: what tools and agents need, by name
///
/// A preset allows the hosts of a tool, passes and sets a few variables, and
/// names what the tool keeps in the home folder.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  ringfence preset list
  ringfence preset show node
  ringfence run --preset node --preset git-hosting -- npm ci
  ringfence policy show --preset python"
)]
pub(crate) struct PresetArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    List(list::ListArgs),
    Show(show::ShowArgs),
}

pub(crate) fn main(arguments: &PresetArgs) -> ExitCode {
    match &arguments.action {
        Action::List(arguments) => list::main(arguments),
        Action::Show(arguments) => show::main(arguments),
    }
}

/// A preset, as programs read it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    name: &'a str,
    description: &'a str,
    kind: PresetKind,
    hosts: &'a [PresetHost],
    host_ports: Vec<u16>,
    environment: Variables<'a>,
    home: Vec<String>,
    keep_home: bool,
    detect: &'a [ProjectMark],
}

#[derive(Serialize)]
struct Variables<'a> {
    pass: Vec<&'a str>,
    set: serde_json::Map<String, serde_json::Value>,
}

impl<'a> Shown<'a> {
    fn new(preset: &'a Preset) -> Self {
        let environment = &preset.environment;
        let set = environment.set.iter();
        let set = set.map(|(name, value)| (name.clone(), value.value.as_str().into()));
        Self {
            name: &preset.name,
            description: &preset.description,
            kind: preset.kind,
            hosts: &preset.hosts,
            host_ports: preset.host_ports.iter().map(|port| port.get()).collect(),
            environment: Variables {
                pass: environment.pass.iter().map(|own| own.as_str()).collect(),
                set: set.collect(),
            },
            home: home(preset).collect(),
            keep_home: preset.keep_home,
            detect: &preset.detect,
        }
    }
}

/// What the tool keeps in the home folder.
fn home(preset: &Preset) -> impl Iterator<Item = String> {
    let paths = preset.home.iter();
    paths.map(|path| format!("~/{}", path.display()))
}

/// A preset's name. Completions know them all; a name that does not exist is
/// left to the policy, whose error has a code and a hint of its own.
#[derive(Debug, Clone)]
pub(crate) struct PresetName;

impl TypedValueParser for PresetName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Preset::names().map(PossibleValue::new)))
    }
}

impl From<PresetError> for Failure {
    fn from(error: PresetError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
