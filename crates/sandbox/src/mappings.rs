//! How files of the host appear to a sandbox that has other ids.

use std::os::fd::{AsFd, BorrowedFd};

use ringfence_sys::{Errno, IdMap, IdMapping};

/// The user and the group that a file belongs to.
type Owner = (u32, u32);

/// User namespaces that give one owner's files to the sandbox.
#[derive(Debug)]
pub(crate) struct Mappings {
    sandbox: IdMap,
    made: Vec<(Owner, IdMapping)>,
}

impl Mappings {
    pub(crate) fn new(sandbox: IdMap) -> Self {
        Self {
            sandbox,
            made: Vec::new(),
        }
    }

    pub(crate) fn for_owner(&mut self, owner: Owner) -> Result<BorrowedFd<'_>, Errno> {
        let known = self.made.iter().position(|(known, _)| *known == owner);
        let at = if let Some(at) = known {
            at
        } else {
            let map = IdMap {
                inside_uid: owner.0,
                inside_gid: owner.1,
                ..self.sandbox
            };
            self.made.push((owner, IdMapping::new(&map)?));
            self.made.len() - 1
        };
        Ok(self.made[at].1.as_fd())
    }
}
