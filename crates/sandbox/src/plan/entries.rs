//! What is in a folder, in as few calls and with as little memory as can be:
//! a plan looks into a dozen of them.

use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_sys::Errno;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};

/// Room for the entries of most folders.
const ROOM: usize = 8 * 1024;

/// Calls `see` with the name and type of each entry until it has seen enough.
/// An entry that is gone meanwhile is of an unknown type.
pub(super) fn each(
    folder: &Path,
    mut see: impl FnMut(&OsStr, FileType) -> ControlFlow<()>,
) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty())?;
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut entries = RawDir::new(&opened, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |status| {
                    FileType::from_raw_mode(status.st_mode)
                }),
            kind => kind,
        };
        if see(OsStr::from_bytes(name.to_bytes()), kind).is_break() {
            break;
        }
    }
    Ok(())
}

/// The entries of a folder, unless there are more than `most`.
pub(super) fn list(folder: &Path, most: usize) -> Result<Option<Vec<(OsString, FileType)>>, Errno> {
    let mut entries = Vec::new();
    let mut is_all = true;
    each(folder, |name, kind| {
        is_all = entries.len() < most;
        if !is_all {
            return ControlFlow::Break(());
        }
        entries.push((name.to_owned(), kind));
        ControlFlow::Continue(())
    })?;
    Ok(is_all.then_some(entries))
}

/// Whether it is something else than a link, as far as that is known.
pub(super) fn is_no_link(kind: FileType) -> bool {
    !matches!(kind, FileType::Symlink | FileType::Unknown)
}

/// The paths of what is in a folder, links left out. As much of it as can be
/// read.
pub(super) fn without_links(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let _ = each(folder, |name, kind| {
        if is_no_link(kind) {
            paths.push(folder.join(name));
        }
        ControlFlow::Continue(())
    });
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_seen_once_also_what_takes_several_calls() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(200);
        let mut made: Vec<OsString> = (0..100).map(|n| format!("{long}{n}").into()).collect();
        for name in &made {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let seen = list(folder.path(), 100).unwrap().unwrap();
        let mut seen: Vec<_> = seen.into_iter().map(|(name, _)| name).collect();
        made.sort();
        seen.sort();
        assert_eq!(seen, made);
        assert_eq!(list(folder.path(), 99), Ok(None));
    }

    #[test]
    fn links_are_told_from_what_they_lead_to() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        let mut seen = without_links(folder.path());
        seen.sort();
        assert_eq!(seen, [at("file"), at("folder")]);
        assert!(without_links(&at("file")).is_empty());
        assert_eq!(list(&at("none"), 1), Err(Errno::NOENT));
    }
}
