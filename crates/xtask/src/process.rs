//! Running a program and turning its failure into an error that names it.

use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};

/// Runs `command` with this terminal and fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", describe(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", describe(command));
    }
    Ok(())
}

/// Runs `command`, progress to this terminal, and returns what it printed.
pub(crate) fn stdout_of(command: &mut Command) -> Result<Vec<u8>> {
    let output = output(command.stderr(Stdio::inherit()))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", describe(command), output.status);
    }
    Ok(output.stdout)
}

/// Runs `command` to its end, whatever that is.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", describe(command)))
}

/// The command line, for messages.
pub(crate) fn describe(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}
