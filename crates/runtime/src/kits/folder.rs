//! A kit in a folder. Everything is opened from the folder's own descriptor,
//! without following links: whoever can write there must not be able to have
//! another file of ours taken for the kit's.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::collect::{Collected, DEEPEST, FILES, KitBytes, SPEC};
use super::error::KitError;

const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Reads what belongs to the kit in `path`.
pub(super) fn read(path: &Path, kit: &mut Collected) -> Result<(), KitError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty());
    let folder = folder.map_err(|errno| unreadable(path, errno))?;
    let mut walk = Walk { path, kit };
    walk.entry(&folder, SPEC, SPEC, 0)?;
    walk.entry(&folder, FILES, FILES, 0)
}

struct Walk<'a> {
    path: &'a Path,
    kit: &'a mut Collected,
}

impl Walk<'_> {
    /// Takes in one entry of `folder`, and all below it. One that is missing is
    /// told at the end, if it matters.
    fn entry(
        &mut self,
        folder: &impl AsFd,
        name: &str,
        path: &str,
        depth: usize,
    ) -> Result<(), KitError> {
        let opened = match rustix::fs::openat(folder, name, OPEN, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            // A link, or a socket.
            Err(Errno::LOOP | Errno::NXIO) => return Err(self.kit.special(path)),
            opened => opened.map_err(|errno| self.unreadable(path, errno))?,
        };
        let stat = rustix::fs::fstat(&opened).map_err(|errno| self.unreadable(path, errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let executable = stat.st_mode & 0o100 != 0;
                self.file(File::from(opened), path, executable)
            }
            FileType::Directory if path != SPEC && depth <= DEEPEST => {
                self.folder(&opened, path, depth)
            }
            _ => Err(self.kit.special(path)),
        }
    }

    fn folder(&mut self, folder: &OwnedFd, path: &str, depth: usize) -> Result<(), KitError> {
        let failed = |errno| unreadable(&self.path.join(path), errno);
        let entries = Dir::read_from(folder).map_err(failed)?;
        for entry in entries {
            let entry = entry.map_err(|errno| self.unreadable(path, errno))?;
            let Ok(name) = entry.file_name().to_str() else {
                let shown = entry.file_name().to_string_lossy();
                return Err(self.kit.special(&format!("{path}/{shown}")));
            };
            if name != "." && name != ".." {
                self.entry(folder, name, &format!("{path}/{name}"), depth + 1)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, file: File, path: &str, executable: bool) -> Result<(), KitError> {
        if !self.kit.wants(path)? {
            return Ok(());
        }
        let mut bytes = Vec::new();
        file.take(self.kit.room() as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| KitError::Unreadable {
                path: self.path.join(path),
                error,
            })?;
        self.kit.add(path, KitBytes { bytes, executable })
    }

    fn unreadable(&self, path: &str, errno: Errno) -> KitError {
        unreadable(&self.path.join(path), errno)
    }
}

fn unreadable(path: &Path, errno: Errno) -> KitError {
    KitError::Unreadable {
        path: path.to_path_buf(),
        error: errno.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(folder: &Path, path: &str, text: &str) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn collected(folder: &Path) -> Result<Vec<String>, KitError> {
        let mut kit = Collected::new("k");
        read(folder, &mut kit)?;
        let (spec, files) = kit.finish()?;
        Ok(std::iter::once(spec).chain(files.into_keys()).collect())
    }

    #[test]
    fn a_folder_is_read_as_far_as_it_is_a_kit() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(collected(place.path()).unwrap_err().code(), "kit-no-spec");
        write(place.path(), "spec.yaml", "x");
        write(place.path(), "README.md", "x");
        write(place.path(), "files/home/.a/b", "x");
        let found = collected(place.path()).unwrap();
        assert_eq!(found, ["x", "files/home/.a/b"]);
        let missing = collected(&place.path().join("none")).unwrap_err();
        assert_eq!(missing.code(), "kit-unreadable");
    }

    #[test]
    fn g4_links_and_devices_are_refused() {
        for link in ["spec.yaml", "files", "files/home/a", "files/home"] {
            let place = tempfile::tempdir().unwrap();
            if link != "spec.yaml" {
                write(place.path(), "spec.yaml", "x");
            }
            let path = place.path().join(link);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink("/etc", path).unwrap();
            let error = collected(place.path()).unwrap_err();
            assert_eq!(error.code(), "kit-special-file", "{link}");
        }
        let place = tempfile::tempdir().unwrap();
        write(place.path(), "spec.yaml", "x");
        std::fs::create_dir_all(place.path().join("files/home")).unwrap();
        let path = place.path().join("files/home/pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(
            collected(place.path()).unwrap_err().code(),
            "kit-special-file"
        );
    }
}
