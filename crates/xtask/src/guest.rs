//! `cargo xtask guest`: ringfence in an emulated machine with Debian's kernel
//! and version 2 of control groups, which the machine at hand may not have.
//! Everything comes from Debian's packages and stays in the build folder.

mod archive;
mod cases;
mod image;
mod machine;
mod modules;
mod packages;
mod system;
mod verdicts;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::args::Args;
use crate::cargo::{self, Profile};
use crate::outcome::Outcome;
pub(crate) use cases::Guest;
use image::Content;
use machine::{Machine, Parts};
use packages::Packages;
use verdicts::Verdicts;

/// How long everything in one guest may take.
const LIMIT: Duration = Duration::from_mins(10);

/// What a run in the guest came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing was run, for this reason.
    Skipped { cases: u64, why: String },
    /// The cases that passed, and why the others did not.
    Ran { passed: u64, failed: Vec<String> },
}

/// Runs the command.
pub(crate) fn run(typed: &[String]) -> Result<Outcome> {
    let args = Args::parse(typed, &[], 2)?;
    let named = args.word(0).and_then(Guest::named);
    let program = args.word(usize::from(named.is_some()));
    let ringfence = match program {
        Some(program) => PathBuf::from(program),
        None => cargo::build_ringfence(Profile::Debug)?,
    };
    let mut is_good = true;
    for guest in named.map_or(Guest::ALL.to_vec(), |guest| vec![guest]) {
        is_good &= is_success(guest, &try_in(guest, &ringfence)?);
    }
    Ok(Outcome::when(is_good))
}

fn is_success(guest: Guest, ending: &Ending) -> bool {
    let name = guest.name();
    match ending {
        Ending::Skipped { why, .. } => println!("guest {name}: nothing was run: {why}"),
        Ending::Ran { passed, failed } => {
            println!("guest {name}: {passed} passed, {} failed", failed.len());
        }
    }
    matches!(ending, Ending::Ran { failed, .. } if failed.is_empty())
}

/// Runs every case of `guest` with `ringfence`.
pub(crate) fn try_in(guest: Guest, ringfence: &Path) -> Result<Ending> {
    let mut verdicts = Verdicts::expected(guest);
    let folder = cargo::root().join("target/guest");
    let sources = match Sources::fetch(guest, &folder) {
        Ok(sources) => sources,
        Err(error) => {
            return Ok(Ending::Skipped {
                cases: verdicts.count(),
                why: format!("{error:#}"),
            });
        }
    };
    let parts = build(guest, &folder, &sources, ringfence).context("cannot build the guest")?;
    let machine = Machine::start(sources.packages.qemu(), &parts, LIMIT)?;
    if let Err(error) = listen(&machine, &mut verdicts) {
        println!("guest: {error:#}");
    }
    let failed = verdicts.failed();
    for case in &failed {
        println!("guest: FAILED {case}");
    }
    Ok(Ending::Ran {
        passed: verdicts.passed(),
        failed,
    })
}

/// What a guest is made from.
struct Sources {
    packages: Packages,
    /// The folder of a whole system, for a guest that has one.
    system: Option<PathBuf>,
}

impl Sources {
    fn fetch(guest: Guest, folder: &Path) -> Result<Self> {
        anyhow::ensure!(
            env::consts::ARCH == "x86_64",
            "the guest is made for x86-64 only"
        );
        fs::create_dir_all(folder)?;
        let packages = Packages::fetch(folder)?;
        let system = match guest {
            Guest::Bare => None,
            Guest::Systemd => Some(system::fetch(folder, &packages)?),
        };
        Ok(Self { packages, system })
    }
}

fn build(guest: Guest, folder: &Path, sources: &Sources, ringfence: &Path) -> Result<Parts> {
    let packages = &sources.packages;
    let parts = Parts {
        kernel: packages.kernel()?,
        first_files: folder.join("first-files"),
        disk: folder.join(guest.name()),
    };
    fs::write(&parts.first_files, image::first_files(packages)?)?;
    let content = Content {
        packages,
        ringfence,
        list: guest.list(),
    };
    match &sources.system {
        None => image::bare_disk(&parts.disk, &content)?,
        Some(system) => image::system_disk(&parts.disk, &content, system.clone())?,
    }
    Ok(parts)
}

fn listen(machine: &Machine, verdicts: &mut Verdicts) -> Result<()> {
    while let Some(line) = machine.next_line()? {
        println!("guest| {line}");
        verdicts.read_line(&line);
    }
    Ok(())
}
