//! `cargo xtask test`: every test of the workspace as the invoking user and,
//! started by root, the tests that make sandboxes a second time as an ordinary
//! user. Its last line is the sum.

mod emulated;
mod half;
mod runner;
mod summary;
mod tally;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::cargo::{self, Profile};
use crate::guest::Guest;
use crate::outcome::Outcome;
use crate::{setup, srt};
use half::{Build, Selection};
use summary::Summary;

const ALL: &str = "--all";
const USER_ONLY: &str = "--as-user-only";
const ROOT_ONLY: &str = "--as-root-only";

/// Which users the tests run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halves {
    /// The invoking user alone.
    Invoker,
    /// Root, then the test user.
    RootThenUser,
    /// The test user alone.
    User,
}

/// Runs the command.
pub(crate) fn run(typed: &[String]) -> Result<Outcome> {
    let args = Args::parse(typed, &[ALL, USER_ONLY, ROOT_ONLY], 1)?;
    let is_root = rustix::process::geteuid().is_root();
    let halves = halves(&args, is_root)?;
    let selection = Selection {
        include_ignored: args.has(ALL),
        filter: args.word(0).map(str::to_string),
    };
    setup::for_tests()?;

    // Starting it once takes as long as a hundred of our tests.
    let srt = args.has(ALL).then(srt::fetch).flatten();
    let build = Build { srt, ..build()? };
    let mut summary = Summary::default();
    if halves != Halves::User {
        half::as_invoker(&build, &selection, &mut summary)?;
    }
    if halves != Halves::Invoker && is_root {
        half::as_test_user(&build, &selection, &mut summary)?;
    }
    if args.has(ALL) && selection.filter.is_none() {
        for guest in Guest::ALL {
            summary.add(emulated::run(guest, &build.ringfence)?);
        }
    }
    print!("\n{}", summary.table());
    if !is_root {
        println!("The tests were not run as root: start this as root for that half.");
    }
    println!("{}", summary.last_line());
    Ok(Outcome::when(summary.failed() == 0))
}

fn halves(args: &Args, is_root: bool) -> Result<Halves> {
    match (args.has(USER_ONLY), args.has(ROOT_ONLY), is_root) {
        (true, true, _) => bail!("{USER_ONLY} and {ROOT_ONLY} exclude each other"),
        (_, true, false) => bail!("{ROOT_ONLY} needs root"),
        (true, false, true) => Ok(Halves::User),
        (false, false, true) => Ok(Halves::RootThenUser),
        (_, _, _) => Ok(Halves::Invoker),
    }
}

fn build() -> Result<Build> {
    println!("== building the tests");
    let artifacts = cargo::build_tests()?;
    // The build of the integration tests made it already, with the same
    // features; a build of its own could make it again with others.
    let ringfence = match cargo::find_ringfence(&artifacts) {
        Some(program) => program,
        None => cargo::build_ringfence(Profile::Debug).context("cannot build ringfence")?,
    };
    Ok(Build {
        artifacts,
        ringfence,
        srt: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(flags: &[&str], is_root: bool) -> Result<Halves> {
        let typed: Vec<String> = flags.iter().map(ToString::to_string).collect();
        halves(
            &Args::parse(&typed, &[ALL, USER_ONLY, ROOT_ONLY], 1)?,
            is_root,
        )
    }

    #[test]
    fn root_runs_both_halves_unless_told_otherwise() {
        assert_eq!(chosen(&[], true).unwrap(), Halves::RootThenUser);
        assert_eq!(chosen(&[USER_ONLY], true).unwrap(), Halves::User);
        assert_eq!(chosen(&[ROOT_ONLY], true).unwrap(), Halves::Invoker);
    }

    #[test]
    fn an_ordinary_user_runs_one_half_and_cannot_ask_for_roots() {
        assert_eq!(chosen(&[], false).unwrap(), Halves::Invoker);
        assert_eq!(chosen(&[USER_ONLY], false).unwrap(), Halves::Invoker);
        assert!(chosen(&[ROOT_ONLY], false).is_err());
        assert!(chosen(&[ROOT_ONLY, USER_ONLY], true).is_err());
    }
}
