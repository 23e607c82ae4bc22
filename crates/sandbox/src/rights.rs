//! What a file gives to whoever runs it, beyond that one's own rights.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::path::Path;

use ringfence_sys::Errno;
use rustix::fs::{Mode, Stat};

const CAPABILITIES: &CStr = c"security.capability";

/// Whether a regular file, open and with this status, gives its owner's or
/// group's rights or capabilities. What cannot be told counts as that.
pub(crate) fn gives_rights(file: impl AsFd, status: &Stat) -> bool {
    let mut nothing: [u8; 0] = [];
    has_set_id(status) || is_there(rustix::fs::fgetxattr(file, CAPABILITIES, &mut nothing[..]))
}

/// The same of the file at a path, which is no link.
pub(crate) fn gives_rights_at(path: &Path, status: &Stat) -> bool {
    let mut nothing: [u8; 0] = [];
    has_set_id(status) || is_there(rustix::fs::lgetxattr(path, CAPABILITIES, &mut nothing[..]))
}

fn has_set_id(status: &Stat) -> bool {
    Mode::from_raw_mode(status.st_mode).intersects(Mode::SUID | Mode::SGID)
}

/// Whether there is an attribute of this length. That of another user namespace
/// is there and cannot be read (`EOVERFLOW`).
fn is_there(length: Result<usize, Errno>) -> bool {
    !matches!(length, Err(Errno::NODATA | Errno::OPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn g4_set_id_bits_give_rights_and_others_do_not() {
        let file = tempfile::tempfile().unwrap();
        for (mode, gives) in [
            (0o644, false),
            (0o1755, false),
            (0o4755, true),
            (0o2755, true),
            (0o4644, true),
        ] {
            file.set_permissions(PermissionsExt::from_mode(mode))
                .unwrap();
            let status = rustix::fs::fstat(&file).unwrap();
            assert_eq!(gives_rights(&file, &status), gives, "{mode:o}");
        }
    }
}
