//! Where an open file lies.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The path of what was opened, without links; `None` for what is in no
/// folder, such as a pipe. The kernel knows it: the name that it was opened by
/// may lead to another file by now.
pub(crate) fn place_of(file: &File) -> Option<PathBuf> {
    let place = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    place.is_absolute().then_some(place)
}

/// The same, and `None` for what is not there any more: the kernel adds a word
/// to its path, which makes another name.
pub(crate) fn place_where_it_is(file: &File) -> Option<PathBuf> {
    let place = place_of(file)?;
    let (found, held) = (place.symlink_metadata().ok()?, file.metadata().ok()?);
    let is_there = (found.dev(), found.ino()) == (held.dev(), held.ino());
    is_there.then_some(place)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn g5_a_place_is_that_of_the_file_and_not_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let path = |name: &str| folder.join(name);
        std::fs::write(path("one"), "").unwrap();
        symlink(path("one"), path("link")).unwrap();
        let file = File::open(path("link")).unwrap();
        std::fs::remove_file(path("link")).unwrap();
        symlink("/etc/passwd", path("link")).unwrap();
        assert_eq!(place_of(&file), Some(path("one")));
        assert_eq!(place_where_it_is(&file), Some(path("one")));
        std::fs::remove_file(path("one")).unwrap();
        std::fs::write(path("one (deleted)"), "").unwrap();
        assert_eq!(place_where_it_is(&file), None);
        let (pipe, _) = std::io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        assert_eq!(place_of(&pipe), None);
    }
}
