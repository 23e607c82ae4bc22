//! How a command ended when nothing went wrong with the command itself.

use std::process::ExitCode;

/// A finished command. `Failure` means that the reason is already on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failure,
}

impl Outcome {
    /// `Success` when `good`.
    pub(crate) fn when(good: bool) -> Self {
        if good { Self::Success } else { Self::Failure }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::SUCCESS,
            Outcome::Failure => Self::FAILURE,
        }
    }
}

/// Prints `text` as the whole answer of a command.
pub(crate) fn say(text: &str) -> Outcome {
    print!("{text}");
    Outcome::Success
}
