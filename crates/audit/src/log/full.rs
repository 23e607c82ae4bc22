//! Why a run has no seal: its last records found no room.
//!
//! A file without content needs none. It is no part of the chain, and nothing
//! is decided by it: it only tells a full disk from a process that was killed.

use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};

use super::folder::Folder;
use crate::event::{Life, RunId};

fn name(run: RunId) -> String {
    format!("audit.full.{run}")
}

/// Notes it. Where not even that can be done the run looks killed.
pub(super) fn note(folder: &Folder, run: RunId) {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let _ = rustix::fs::openat(folder, name(run), flags, Mode::RUSR | Mode::WUSR);
}

/// Takes it back, once there is room and the run is sealed.
pub(super) fn forget(folder: &Folder, run: RunId) {
    let _ = rustix::fs::unlinkat(folder, name(run), AtFlags::empty());
}

/// What became of a run without a seal whose process lives like this.
pub(crate) fn life(folder: &Path, run: RunId, life: Life) -> Life {
    let is_noted = || std::fs::symlink_metadata(folder.join(name(run))).is_ok();
    match life {
        Life::Ended if is_noted() => Life::NoRoom,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g7_a_full_disk_is_told_from_a_kill() {
        let place = ringfence_testkit::Folder::new();
        let folder = Folder::open(place.path()).unwrap();
        let run = RunId::from_bits(7);
        let told = |before| life(place.path(), run, before);
        assert_eq!(told(Life::Ended), Life::Ended);
        note(&folder, run);
        assert_eq!(told(Life::Ended), Life::NoRoom);
        assert_eq!(told(Life::Running), Life::Running, "it may find room yet");
        let other = RunId::from_bits(8);
        assert_eq!(life(place.path(), other, Life::Ended), Life::Ended);
        forget(&folder, run);
        assert_eq!(told(Life::Ended), Life::Ended);
    }
}
