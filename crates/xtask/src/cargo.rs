//! Calling cargo: the workspace root, and the executables a build made,
//! read from cargo's own messages.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::process;

/// Progress and rendered errors go to stderr, one JSON message per line to stdout.
const MESSAGES: &str = "--message-format=json-render-diagnostics";

/// Optimisation of a built program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
}

/// What an executable is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A program.
    Program,
    /// The tests beside a crate's code.
    UnitTests,
    /// A binary of a crate's `tests` folder.
    IntegrationTests,
}

/// An executable that a build made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Artifact {
    pub(crate) kind: Kind,
    /// Target name, such as `all` or `ringfence`.
    pub(crate) name: String,
    /// The folder of the crate's manifest.
    pub(crate) folder: PathBuf,
    pub(crate) executable: PathBuf,
}

impl Artifact {
    /// The name of the crate's folder, such as `policy`.
    pub(crate) fn crate_name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// The workspace root.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// `cargo <arguments>` at the workspace root, with the toolchain that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    forget_outer_package(&mut command);
    command
}

/// Removes what cargo told this process about its own package, which would
/// otherwise be taken for facts about the package of `command`.
pub(crate) fn forget_outer_package(command: &mut Command) {
    const ABOUT_A_PACKAGE: &[&str] = &[
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
    ];
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ABOUT_A_PACKAGE
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
}

/// Builds every test of the workspace once and lists what came out.
pub(crate) fn build_tests() -> Result<Vec<Artifact>> {
    build(&["test", "--workspace", "--no-run", MESSAGES])
}

/// Builds the `ringfence` program and says where it is.
pub(crate) fn build_ringfence(profile: Profile) -> Result<PathBuf> {
    let mut arguments = vec![
        "build",
        "-p",
        "ringfence-cli",
        "--bin",
        "ringfence",
        MESSAGES,
    ];
    if profile == Profile::Release {
        arguments.push("--release");
    }
    find_ringfence(&build(&arguments)?).context("the build made no `ringfence` program")
}

/// The `ringfence` program among `artifacts`.
pub(crate) fn find_ringfence(artifacts: &[Artifact]) -> Option<PathBuf> {
    let program = artifacts
        .iter()
        .find(|artifact| artifact.kind == Kind::Program && artifact.name == "ringfence")?;
    Some(program.executable.clone())
}

fn build(arguments: &[&str]) -> Result<Vec<Artifact>> {
    let messages = process::stdout_of(&mut cargo(arguments))?;
    read_messages(&String::from_utf8_lossy(&messages))
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<ArtifactProfile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct ArtifactProfile {
    test: bool,
}

fn read_messages(text: &str) -> Result<Vec<Artifact>> {
    let mut artifacts = Vec::new();
    // A build script's own output is no message; messages are objects.
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let message: Message =
            serde_json::from_str(line).context("cargo printed a message of an unknown form")?;
        artifacts.extend(artifact(message));
    }
    // Cargo reports in the order in which compilations end.
    artifacts.sort_by(|a, b| a.folder.cmp(&b.folder).then(a.kind.cmp(&b.kind)));
    Ok(artifacts)
}

fn artifact(message: Message) -> Option<Artifact> {
    if message.reason != "compiler-artifact" {
        return None;
    }
    let target = message.target?;
    Some(Artifact {
        kind: kind(&target.kind, message.profile?.test)?,
        folder: message.manifest_path?.parent()?.to_path_buf(),
        executable: message.executable?,
        name: target.name,
    })
}

fn kind(kinds: &[String], test: bool) -> Option<Kind> {
    let is = |wanted: &str| kinds.iter().any(|kind| kind == wanted);
    match (test, is("test"), is("bin")) {
        (true, true, _) => Some(Kind::IntegrationTests),
        (true, false, _) => Some(Kind::UnitTests),
        (false, _, true) => Some(Kind::Program),
        (false, _, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"
{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/crates/cli/Cargo.toml","target":{"kind":["bin"],"name":"ringfence"},"profile":{"test":false},"executable":"/t/debug/ringfence"}
{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/crates/cli/Cargo.toml","target":{"kind":["bin"],"name":"ringfence"},"profile":{"test":true},"executable":"/t/debug/deps/ringfence-1"}
{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/crates/sys/Cargo.toml","target":{"kind":["test"],"name":"all"},"profile":{"test":true},"executable":"/t/debug/deps/all-2"}
{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/crates/sys/Cargo.toml","target":{"kind":["lib"],"name":"ringfence_sys"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/crates/sys/Cargo.toml","target":{"kind":["example"],"name":"show"},"profile":{"test":false},"executable":"/t/debug/examples/show"}
{"reason":"build-script-executed","package_id":"x","linked_libs":[]}
{"reason":"build-finished","success":true}
not a message
"#;

    #[test]
    fn programs_and_both_kinds_of_tests_are_told_apart() {
        let artifacts = read_messages(MESSAGES).unwrap();
        let seen: Vec<_> = artifacts
            .iter()
            .map(|artifact| (artifact.kind, artifact.crate_name(), artifact.name.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                (Kind::Program, "cli".to_string(), "ringfence"),
                (Kind::UnitTests, "cli".to_string(), "ringfence"),
                (Kind::IntegrationTests, "sys".to_string(), "all"),
            ]
        );
        assert_eq!(
            find_ringfence(&artifacts),
            Some(PathBuf::from("/t/debug/ringfence"))
        );
    }

    #[test]
    fn a_broken_message_is_an_error() {
        assert!(read_messages("{\"reason\":").is_err());
    }
}
