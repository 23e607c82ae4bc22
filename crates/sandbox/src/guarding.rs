//! How closely the names of writable directories are watched while a command
//! runs.

/// What of a command's calls the init carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarding {
    /// Every call that makes, changes or removes a name, or opens a file for
    /// writing: where storage is counted, where all of that is recorded, and
    /// where there is too much to survey beforehand.
    Full,
    /// Calls that make names. What is protected and exists is read-only by
    /// mounts.
    Live,
    /// None that make names: what is there in the end is looked at.
    Sweep,
}

impl Guarding {
    /// The word used in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Live => "live",
            Self::Sweep => "sweep",
        }
    }
}
