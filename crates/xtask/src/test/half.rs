//! The two halves of a test run: what each one starts, and as whom.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::runner;
use super::summary::Summary;
use crate::cargo::{self, Artifact, Kind};
use crate::srt;
use crate::stage::{self, Runner, Stage};

/// Where tests find the built program.
const RINGFENCE_BIN: &str = "RINGFENCE_BIN";

/// Crates whose integration tests make namespaces, so that they behave
/// differently for root and for an ordinary user.
const AS_TEST_USER: &[&str] = &["cli", "runtime", "sandbox", "sys"];

/// What was built.
pub(super) struct Build {
    pub(super) artifacts: Vec<Artifact>,
    pub(super) ringfence: PathBuf,
    /// A folder with srt, for comparing.
    pub(super) srt: Option<PathBuf>,
}

/// Which tests of a binary run.
pub(super) struct Selection {
    pub(super) include_ignored: bool,
    pub(super) filter: Option<String>,
}

impl Selection {
    fn arguments(&self) -> impl Iterator<Item = &str> {
        let ignored = self.include_ignored.then_some("--include-ignored");
        ignored.into_iter().chain(self.filter.as_deref())
    }
}

/// Documentation, unit and integration tests as the user who started us.
pub(super) fn as_invoker(
    build: &Build,
    selection: &Selection,
    summary: &mut Summary,
) -> Result<()> {
    let user = stage::invoker_name();
    let mut doctests = cargo::cargo(&["test", "--doc", "--workspace", "--no-fail-fast", "--"]);
    doctests.args(selection.arguments());
    summary.add(runner::run("documentation tests", &user, &mut doctests)?);

    for artifact in tests(build) {
        let mut command = Command::new(&artifact.executable);
        cargo::forget_outer_package(&mut command);
        command
            .args(selection.arguments())
            .env("CARGO_MANIFEST_DIR", &artifact.folder)
            .env(RINGFENCE_BIN, &build.ringfence)
            .envs(
                build
                    .srt
                    .iter()
                    .map(|srt| (srt::VARIABLE, srt::program(srt))),
            )
            .current_dir(&artifact.folder);
        summary.add(runner::run(&label(artifact), &user, &mut command)?);
    }
    Ok(())
}

/// The integration tests that make sandboxes, as the test user. Needs root.
pub(super) fn as_test_user(
    build: &Build,
    selection: &Selection,
    summary: &mut Summary,
) -> Result<()> {
    let stage = Stage::new(Runner::test_user()?)?;
    let ringfence = stage.add(&build.ringfence, "ringfence")?;
    let srt = build.srt.as_deref().map(|srt| stage.add_folder(srt, "srt"));
    let srt = srt.transpose()?;
    for artifact in tests(build).filter(|artifact| runs_as_test_user(artifact)) {
        let name = format!("{}-{}", artifact.crate_name(), artifact.name);
        let mut command = stage.command(stage.add(&artifact.executable, &name)?)?;
        command
            .args(selection.arguments())
            .envs(srt.iter().map(|srt| (srt::VARIABLE, srt::program(srt))))
            .env(RINGFENCE_BIN, &ringfence);
        summary.add(runner::run(
            &label(artifact),
            stage::TEST_USER,
            &mut command,
        )?);
    }
    Ok(())
}

fn tests(build: &Build) -> impl Iterator<Item = &Artifact> {
    let artifacts = build.artifacts.iter();
    artifacts.filter(|artifact| artifact.kind != Kind::Program)
}

fn runs_as_test_user(artifact: &Artifact) -> bool {
    artifact.kind == Kind::IntegrationTests
        && AS_TEST_USER.contains(&artifact.crate_name().as_str())
}

fn label(artifact: &Artifact) -> String {
    match artifact.kind {
        Kind::IntegrationTests => format!("{} tests/{}", artifact.crate_name(), artifact.name),
        Kind::UnitTests | Kind::Program => format!("{} unit tests", artifact.crate_name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(kind: Kind, folder: &str) -> Artifact {
        Artifact {
            kind,
            name: "all".into(),
            folder: folder.into(),
            executable: "all-1".into(),
        }
    }

    #[test]
    fn only_integration_tests_that_make_sandboxes_run_twice() {
        assert!(runs_as_test_user(&artifact(
            Kind::IntegrationTests,
            "crates/sandbox"
        )));
        assert!(!runs_as_test_user(&artifact(
            Kind::UnitTests,
            "crates/sandbox"
        )));
        assert!(!runs_as_test_user(&artifact(
            Kind::IntegrationTests,
            "crates/policy"
        )));
    }

    #[test]
    fn the_selection_becomes_arguments_of_the_test_binary() {
        let selection = Selection {
            include_ignored: true,
            filter: Some("dns".into()),
        };
        assert_eq!(
            selection.arguments().collect::<Vec<_>>(),
            ["--include-ignored", "dns"]
        );
    }
}
