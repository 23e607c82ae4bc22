//! `ringfence kit`: what sandbox kits ask for, and what a change of one widens.

mod diff;
pub(crate) mod show;
mod validate;

use ringfence_runtime::{
    Directories, Freshness, KitError, KitReference, KitStore, LoadedKit, load_kits,
};

use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;

/// Check, show and compare sandbox kits
///
/// A kit is a folder with a spec.yaml, a .zip of one, or a folder of a git
/// repository. What is fetched is kept by its commit; a branch or tag means the
/// commit that it meant then, until --refresh.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  ringfence kit validate ./my-kit
  ringfence kit show git+https://forge.example.org/team/kits.git#ref=v2&dir=forge
  ringfence kit diff ./my-kit ./my-kit-new
  ringfence run --kit ./my-kit --approve forge -- ./agent.sh"
)]
pub(crate) struct KitArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Validate(validate::ValidateArgs),
    Show(show::ShowArgs),
    Diff(diff::DiffArgs),
}

/// How kits are read.
#[derive(Debug, clap::Args)]
struct ReadArgs {
    /// A value for an argument of the kit (may be given several times)
    #[arg(long, value_name = "NAME=VALUE")]
    kit_arg: Vec<String>,
    /// Look up anew what a branch or tag means
    #[arg(long)]
    refresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ReadArgs {
    fn read(&self, kits: &[String]) -> Result<Vec<LoadedKit>, Failure> {
        let kits = references(kits)?;
        let store = store()?;
        let freshness = if self.refresh {
            Freshness::Fresh
        } else {
            Freshness::Pinned
        };
        Ok(load_kits(&kits, &self.kit_arg, &store, freshness)?)
    }
}

/// Where this user's kits are kept.
pub(crate) fn store() -> Result<KitStore, Failure> {
    let env = environment::own();
    let host = env.look_at_host()?;
    Ok(KitStore {
        directory: Directories::of(&env, &host).kits,
        env,
    })
}

/// Kits as they were named. Not left to the command line's own parser, which
/// would keep the hint to itself.
pub(crate) fn references(words: &[String]) -> Result<Vec<KitReference>, Failure> {
    let parse = |word: &String| Ok(word.parse().map_err(KitError::Reference)?);
    words.iter().map(parse).collect()
}

pub(crate) fn main(arguments: &KitArgs) -> ExitCode {
    match &arguments.action {
        Action::Validate(arguments) => validate::main(arguments),
        Action::Show(arguments) => show::main(arguments),
        Action::Diff(arguments) => diff::main(arguments),
    }
}
