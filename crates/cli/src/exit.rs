//! The status that the program ends with.

/// As [`std::process::ExitCode`], which cannot be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitCode(u8);

impl ExitCode {
    pub(crate) const SUCCESS: Self = Self(0);

    pub(crate) fn status(self) -> u8 {
        self.0
    }
}

impl From<u8> for ExitCode {
    fn from(status: u8) -> Self {
        Self(status)
    }
}
