//! The names in the folder of the log.

/// The newest file of the log.
const FILE: &str = "audit.jsonl";
/// Held while records are appended and files are moved on.
pub(crate) const LOCK: &str = "audit.lock";
/// Says where the log ends.
pub(crate) const HEAD: &str = "audit.head";
/// Vouches for that.
pub(crate) const KEY: &str = "audit.key";

/// The most old files that are ever kept, and looked for.
pub(crate) const MOST_KEPT: u32 = 32;

/// The name of the log, for 0, and of its old files, from 1, the newest.
pub(crate) fn segment_name(age: u32) -> String {
    match age {
        0 => FILE.to_owned(),
        age => format!("{FILE}.{age}"),
    }
}
