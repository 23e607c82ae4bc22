//! Other sandboxes that the same work is done in, where they are installed.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::timing::{COMMAND, Candidate};
use crate::programs;

/// Names the `srt` to compare with, where it is not on the search path.
pub(super) const SRT_VARIABLE: &str = "BENCH_SRT";
pub(super) const SRT: &str = "srt";
pub(super) const BWRAP: &str = "bwrap";

/// The arguments with which bwrap builds what comes nearest to our sandbox.
pub(super) const BWRAP_SANDBOX: &[&str] = &[
    "--unshare-all",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/tmp",
    "--new-session",
    "--die-with-parent",
];

/// The same with all files of the host, to which a writable folder is added.
pub(super) const BWRAP_WITH_FILES: &[&str] = &[
    "--unshare-all",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--new-session",
    "--die-with-parent",
];

/// The arguments with which bwrap builds the least that still has namespaces.
pub(super) const BWRAP_LEAST: &[&str] = &["--ro-bind", "/", "/", "--unshare-all"];

/// Where `program` is, if it is installed.
pub(super) fn locate(program: &str) -> Option<PathBuf> {
    let named = env::var_os(SRT_VARIABLE).filter(|_| program == SRT);
    named
        .map(PathBuf::from)
        .or_else(|| programs::find(program, &programs::public_path()))
}

/// A start of the command that does nothing, in the sandbox that `program`
/// makes from `arguments`; fails where that does not work.
pub(super) fn start(name: &str, program: &str, arguments: &[&str]) -> Result<Candidate> {
    let attempt = || {
        let path = locate(program).context("not installed")?;
        let candidate = Candidate::new(name, &path, &[arguments, &[COMMAND]].concat());
        candidate.check()?;
        Ok(candidate)
    };
    let result: Result<Candidate> = attempt();
    result.context(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_installed_is_said_by_name() {
        let error = start("that one", "no-such-sandbox-anywhere", &[]).unwrap_err();
        assert_eq!(format!("{error:#}"), "that one: not installed");
    }
}
