//! Late files on their way in: memory without a name, which the supervisor
//! fills and the init copies to where it is read.

use std::cell::OnceCell;
use std::os::fd::OwnedFd;

use ringfence_sys::{self as sys, Errno};
use rustix::fs::SealFlags;

use super::failure::{During, Failure};
use super::spawn::{Attendant, SpawnError};
use crate::plan::{LateFile, LateFiles};
use crate::trust::Trust;
use crate::wire::Step;

/// Asks for the content of the files, and has them as they are handed in. This
/// process has secrets from here on, which are kept.
pub(super) fn fill(
    files: &LateFiles,
    attendant: &mut dyn Attendant,
) -> Result<Vec<OwnedFd>, SpawnError> {
    sys::keep_secrets().map_err(SpawnError::HandIn)?;
    let is_trust = |file: &LateFile| matches!(file, LateFile::Trust(_));
    let trust = if files.all().iter().any(is_trust) {
        attendant.trust()
    } else {
        None
    };
    let files = files.all().iter();
    files
        .map(|file| fill_one(file, trust.as_ref(), attendant))
        .collect()
}

fn fill_one(
    file: &LateFile,
    trust: Option<&Trust>,
    attendant: &mut dyn Attendant,
) -> Result<OwnedFd, SpawnError> {
    let sealed = |bytes: &[u8]| sealed(bytes).map_err(SpawnError::HandIn);
    match file {
        LateFile::Trust(file) => sealed(file.bytes(trust.ok_or(SpawnError::NoTrust)?)),
        LateFile::Masked(place) => {
            let shown = attendant.masked(&place.path, &place.services);
            let not_masked = || SpawnError::NotMasked {
                path: place.path.clone(),
            };
            sealed(&shown.ok_or_else(not_masked)?)
        }
    }
}

/// Memory without a name that has these bytes for good.
pub(super) fn sealed(bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let file = sys::sealable_memory("given")?;
    let mut left = bytes;
    while !left.is_empty() {
        let written = rustix::io::write(&file, left)?;
        left = &left[written..];
    }
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// What was [`sealed`].
pub(super) fn content(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let length = usize::try_from(rustix::fs::fstat(file)?.st_size).map_err(|_| Errno::FBIG)?;
    let mut bytes = vec![0; length];
    let mut read = 0;
    while read < length {
        match rustix::io::pread(file, &mut bytes[read..], read as u64)? {
            0 => return Err(Errno::PIPE),
            more => read += more,
        }
    }
    Ok(bytes)
}

/// The files as the init got them, by their numbers, and the names of its
/// copies.
#[derive(Debug, Default)]
pub(super) struct GivenFiles(Vec<(OwnedFd, OnceCell<String>)>);

impl GivenFiles {
    pub(super) fn add(&mut self, files: Vec<OwnedFd>) {
        let files = files.into_iter();
        self.0.extend(files.map(|file| (file, OnceCell::new())));
    }

    /// The name of the copy of a file, which `copy` makes once.
    pub(super) fn name(
        &self,
        number: usize,
        copy: impl FnOnce(&OwnedFd) -> Result<String, Failure>,
    ) -> Result<&str, Failure> {
        let given = self.0.get(number).ok_or(Errno::BADF);
        let (file, name) = given.during(Step::LateFiles)?;
        if let Some(name) = name.get() {
            return Ok(name);
        }
        let made = copy(file)?;
        Ok(name.get_or_init(|| made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_in_cannot_be_changed_any_more() {
        let file = sealed(b"all").unwrap();
        assert_eq!(content(&file).unwrap(), b"all");
        assert_eq!(rustix::io::write(&file, b"more"), Err(Errno::PERM));
    }

    #[test]
    fn each_file_is_copied_once() {
        let mut files = GivenFiles::default();
        files.add(vec![sealed(b"one").unwrap(), sealed(b"two").unwrap()]);
        let first = files.name(1, |_| Ok("copy".to_owned()));
        assert_eq!(first.unwrap(), "copy");
        let again = files.name(1, |_| panic!("copied again"));
        assert_eq!(again.unwrap(), "copy");
        assert!(files.name(2, |_| panic!("from nothing")).is_err());
    }
}
