//! Landlock: which files this process and its descendants may touch at all.

use std::os::fd::{BorrowedFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};

use crate::{Errno, Result};

/// What may be done with a file or a folder and all below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsAccess {
    /// List folders.
    List,
    /// Read, execute and list.
    Read,
    /// Everything but making device nodes.
    Write,
    /// Use device nodes and terminals: read, write, control.
    Device,
}

/// A place and what may be done there.
#[derive(Debug)]
pub struct LandlockRule {
    /// A descriptor of the place (`O_PATH` is enough).
    pub place: OwnedFd,
    /// Whether the place is a folder.
    pub is_folder: bool,
    /// The rights.
    pub access: FsAccess,
}

/// The version of the Landlock interface of this kernel; 0 when there is none.
pub fn landlock_abi() -> u32 {
    const CREATE_RULESET_VERSION: libc::c_ulong = 1;
    // SAFETY: with this flag the call takes no attribute and reads no memory.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// The newest interface whose rights we ask for.
const NEWEST: ABI = ABI::V6;

/// Denies the calling thread and its descendants every file access that no
/// rule grants, and signals and abstract sockets that would leave the sandbox
/// as far as this kernel can. Fails when the kernel has no Landlock.
pub fn restrict_with_landlock(rules: &[LandlockRule]) -> Result<()> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(|_| Errno::NOSYS)?;
    let status = ruleset
        .add_rules(rules.iter().map(|rule| {
            let rights = rights_of(rule.access, rule.is_folder);
            Ok::<_, landlock::RulesetError>(PathBeneath::new(&rule.place, rights))
        }))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|_| Errno::INVAL)?;
    enforced(&status)
}

fn enforced(status: &RestrictionStatus) -> Result<()> {
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(Errno::NOSYS),
        _ => Ok(()),
    }
}

fn rights_of(access: FsAccess, is_folder: bool) -> BitFlags<AccessFs> {
    let read = AccessFs::from_read(NEWEST);
    let all = AccessFs::from_all(NEWEST);
    let rights = match access {
        FsAccess::List => AccessFs::ReadDir.into(),
        FsAccess::Read => read,
        FsAccess::Write => all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev),
        FsAccess::Device => read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev,
    };
    if is_folder {
        rights
    } else {
        rights & AccessFs::from_file(NEWEST)
    }
}

impl LandlockRule {
    /// Grants `access` below the place behind `place`.
    pub fn new(place: OwnedFd, access: FsAccess) -> Result<Self> {
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
        Ok(Self {
            is_folder: kind == rustix::fs::FileType::Directory,
            place,
            access,
        })
    }

    /// The same for a borrowed descriptor.
    pub fn of(place: BorrowedFd<'_>, access: FsAccess) -> Result<Self> {
        Self::new(rustix::io::fcntl_dupfd_cloexec(place, 0)?, access)
    }
}
