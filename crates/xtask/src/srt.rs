//! srt itself, for the tests that compare with it, where npm can fetch it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, process, programs};

/// Where the tests look for its program.
pub(crate) const VARIABLE: &str = "RINGFENCE_COMPARE_SRT";

/// The version whose behaviour is the contract.
const PACKAGE: &str = "@anthropic-ai/sandbox-runtime@0.0.83";
/// Its program, in the folder that it is installed to.
const PROGRAM: &str = "node_modules/.bin/srt";
/// What it needs besides.
const NEEDS: [&str; 2] = ["npm", "rg"];

/// A folder with srt in it; `None`, with the reason printed, where it cannot
/// be had.
pub(crate) fn fetch() -> Option<PathBuf> {
    let folder = cargo::root().join("target/srt");
    if folder.join(PROGRAM).exists() {
        return Some(folder);
    }
    for need in NEEDS {
        if programs::find(need, &programs::own_path()).is_none() {
            println!("srt itself is not compared with: there is no {need}");
            return None;
        }
    }
    let mut npm = Command::new("timeout");
    npm.args(["--signal", "KILL", "300", "npm", "install", "--silent"])
        .arg("--prefix")
        .arg(&folder)
        .arg(PACKAGE);
    match process::run(&mut npm) {
        Ok(()) => Some(folder),
        Err(error) => {
            println!("srt itself is not compared with: {error}");
            None
        }
    }
}

/// The program in a folder of [`fetch`].
pub(crate) fn program(folder: &Path) -> PathBuf {
    folder.join(PROGRAM)
}
