//! Tools that tests start and that no distribution has as they are wanted: from
//! npm and pip, in the versions named here, and the toolchain that builds us,
//! which may lie where only its owner can go. Each is in a directory of its own
//! below [`programs::TOOLS`], with links to its programs in one that every user
//! may enter.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{cargo, process, programs};

/// How long one may take, in seconds.
const LONGEST: &str = "600";

/// A tool and the programs it brings.
struct Tool {
    source: Source,
    programs: &'static [&'static str],
}

/// Where a tool comes from.
#[derive(Clone, Copy)]
enum Source {
    /// A package of npm, and its version.
    Npm(&'static str, &'static str),
    /// A package of pip, and its version.
    Pip(&'static str, &'static str),
    /// The toolchain that builds us.
    Toolchain,
}

const TOOLS: &[Tool] = &[
    Tool {
        source: Source::Npm("pnpm", "12.18.0"),
        programs: &["pnpm"],
    },
    Tool {
        source: Source::Npm("@anthropic-ai/claude-code", "2.1.197"),
        programs: &["claude"],
    },
    Tool {
        source: Source::Pip("uv", "0.13.7"),
        programs: &["uv"],
    },
    Tool {
        source: Source::Toolchain,
        programs: &["cargo", "rustc"],
    },
];

/// Installs what is missing; needs root for that.
pub(super) fn everything() -> Result<()> {
    let missing: Vec<&Tool> = TOOLS.iter().filter(|tool| !tool.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing
        .iter()
        .flat_map(|tool| tool.programs)
        .copied()
        .collect();
    let names = names.join(", ");
    if !rustix::process::geteuid().is_root() {
        bail!(
            "missing in {}, and not to be installed from here: {names}\nas root:\n  \
             cargo xtask setup",
            programs::TOOLS
        );
    }
    println!("setup: installing {names} (this can take minutes)");
    for tool in missing {
        let installed = tool.install();
        installed.with_context(|| format!("cannot install {}", tool.programs.join(", ")))?;
    }
    Ok(())
}

impl Tool {
    fn is_there(&self) -> bool {
        let Ok(folder) = self.source.folder() else {
            return false;
        };
        self.programs.iter().all(|name| {
            let to = fs::read_link(link(name)).unwrap_or_default();
            to == self.source.program(&folder, name) && to.exists()
        })
    }

    fn install(&self) -> Result<()> {
        let folder = self.source.folder()?;
        if !folder.exists() {
            self.source.install(&folder)?;
        }
        fs::create_dir_all(programs::TOOLS)?;
        for name in self.programs {
            let link = link(name);
            // One of another version, if any.
            let _ = fs::remove_file(&link);
            symlink(self.source.program(&folder, name), &link)?;
        }
        Ok(())
    }
}

impl Source {
    /// Where it is, or will be.
    fn folder(self) -> Result<PathBuf> {
        let name = match self {
            Self::Npm(package, version) | Self::Pip(package, version) => {
                format!(
                    "{}-{version}",
                    package.trim_start_matches('@').replace('/', "-")
                )
            }
            Self::Toolchain => {
                let sysroot = rustc(&["--print", "sysroot"])?;
                if programs::open_to_others(Path::new(&sysroot)) {
                    return Ok(sysroot.into());
                }
                rustc(&["--version"])?
                    .replace(' ', "-")
                    .replace(['(', ')'], "")
            }
        };
        Ok(Path::new(programs::TOOLS).with_file_name(name))
    }

    fn program(self, folder: &Path, name: &str) -> PathBuf {
        let below = match self {
            Self::Npm(..) => "node_modules/.bin",
            Self::Pip(..) | Self::Toolchain => "bin",
        };
        folder.join(below).join(name)
    }

    /// Puts it into `folder`, whole or not at all. The files name their place, so it is not
    /// moved there when it is done, but removed when it is not.
    fn install(self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let installed = match self {
            Self::Npm(package, version) => from_npm(&format!("{package}@{version}"), folder),
            Self::Pip(package, version) => from_pip(&format!("{package}=={version}"), folder),
            Self::Toolchain => copy_toolchain(folder),
        };
        if installed.is_err() {
            let _ = fs::remove_dir_all(folder);
        }
        installed
    }
}

fn link(program: &str) -> PathBuf {
    Path::new(programs::TOOLS).join(program)
}

fn from_npm(package: &str, folder: &Path) -> Result<()> {
    let npm = found("npm")?;
    let mut command = bounded(&npm);
    command.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
    process::run(command.arg(folder).arg(package))
}

fn from_pip(package: &str, folder: &Path) -> Result<()> {
    let python = found("python3")?;
    process::run(bounded(&python).args(["-m", "venv"]).arg(folder))?;
    let mut command = bounded(&folder.join("bin/pip"));
    process::run(command.args(["install", "--quiet", "--disable-pip-version-check", package]))
}

/// With hard links where that is possible, because it is large.
fn copy_toolchain(folder: &Path) -> Result<()> {
    let sysroot = PathBuf::from(rustc(&["--print", "sysroot"])?);
    for part in ["bin", "lib"] {
        let copy = |how: &str| {
            let mut command = Command::new("cp");
            command
                .args([how, "-a"])
                .arg(sysroot.join(part))
                .arg(folder);
            command
        };
        let linked = process::output(&mut copy("-l"))?;
        if !linked.status.success() {
            process::run(&mut copy("--remove-destination"))?;
        }
    }
    Ok(())
}

/// One that an ordinary user can start as well.
fn found(program: &str) -> Result<PathBuf> {
    programs::find(program, &programs::public_path())
        .with_context(|| format!("there is no {program}"))
}

fn bounded(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal", "KILL", LONGEST]).arg(program);
    command
}

/// What the compiler that builds us says about itself.
fn rustc(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("rustc");
    command.args(arguments).current_dir(cargo::root());
    let output = process::output(&mut command)?;
    let said = String::from_utf8(output.stdout)?;
    let said = said.trim();
    if said.is_empty() {
        bail!("rustc does not say what it is");
    }
    Ok(said.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_a_directory_of_its_own_version() {
        let folder = Source::Npm("@a/b", "1.2").folder().unwrap();
        assert_eq!(folder, Path::new(programs::TOOLS).with_file_name("a-b-1.2"));
        let program = Source::Pip("a", "1").program(Path::new("/x"), "a");
        assert_eq!(program, Path::new("/x/bin/a"));
    }

    #[test]
    fn the_toolchain_is_one_that_everybody_may_enter() {
        let folder = Source::Toolchain.folder().unwrap();
        let is_ours = folder.starts_with(Path::new(programs::TOOLS).parent().unwrap());
        assert!(is_ours || programs::open_to_others(&folder));
    }
}
