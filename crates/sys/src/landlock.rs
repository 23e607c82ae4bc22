//! Landlock: which files this process and its descendants may touch at all.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use landlock::{ABI, Access, AccessFs, BitFlags, Scope};

use crate::{Errno, Result, check};

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

/// `struct landlock_ruleset_attr`; older kernels take it as long as what they
/// do not know is zero.
#[repr(C)]
struct RulesetAttributes {
    files: u64,
    network: u64,
    scopes: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    rights: u64,
    place: libc::c_int,
}

/// What a process and its descendants may touch, once it has restricted itself
/// to it: every file access that nothing here grants is denied, and so are
/// signals and abstract sockets that would leave the sandbox, as far as this
/// kernel can. One process may make it for another.
///
/// The calls are our own, because a rule made by the `landlock` crate looks at
/// its file twice, which for the rules of a start adds up.
#[derive(Debug)]
pub struct Ruleset {
    descriptor: OwnedFd,
    abi: ABI,
}

impl Ruleset {
    /// One that grants nothing. Fails when the kernel has no Landlock.
    pub fn new() -> Result<Self> {
        let abi = here()?;
        let descriptor = create_ruleset(&RulesetAttributes {
            files: AccessFs::from_all(abi).bits(),
            network: 0,
            scopes: Scope::from_all(abi).bits(),
        })?;
        Ok(Self { descriptor, abi })
    }

    /// One that another process made here.
    pub fn given(descriptor: OwnedFd) -> Result<Self> {
        let abi = here()?;
        Ok(Self { descriptor, abi })
    }

    /// Grants `access` to a place (`O_PATH` is enough) and all below it.
    pub fn grant(&self, place: BorrowedFd<'_>, access: FsAccess) -> Result<()> {
        let rights = rights_of(access) & AccessFs::from_all(self.abi);
        match add_rule(self.as_fd(), place, rights.bits()) {
            // What is no folder takes only the rights of files.
            Err(Errno::INVAL) => {
                let rights = rights & AccessFs::from_file(self.abi);
                add_rule(self.as_fd(), place, rights.bits())
            }
            other => other,
        }
    }

    /// Holds from now on for the calling thread and all that it starts.
    pub fn restrict_self(self) -> Result<()> {
        // SAFETY: takes a descriptor and no flags.
        check(unsafe {
            libc::syscall(
                libc::SYS_landlock_restrict_self,
                self.descriptor.as_raw_fd(),
                0usize,
            )
        })?;
        Ok(())
    }
}

impl AsFd for Ruleset {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The interface of this kernel.
fn here() -> Result<ABI> {
    known_interface(landlock_abi()).ok_or(Errno::NOSYS)
}

/// The interface by its number, the newest we know for all newer ones.
fn known_interface(number: u32) -> Option<ABI> {
    Some(match number {
        0 => return None,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => NEWEST,
    })
}

fn create_ruleset(attributes: &RulesetAttributes) -> Result<OwnedFd> {
    // SAFETY: the kernel reads as many bytes of `attributes` as it is told.
    let number = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::from_ref(attributes),
            size_of::<RulesetAttributes>(),
            0usize,
        )
    })?;
    let number = RawFd::try_from(number).map_err(|_| Errno::BADF)?;
    // SAFETY: a descriptor that the call just made.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn add_rule(ruleset: BorrowedFd<'_>, place: BorrowedFd<'_>, rights: u64) -> Result<()> {
    const PATH_BENEATH: libc::c_ulong = 1;
    let rule = PathBeneath {
        rights,
        place: place.as_raw_fd(),
    };
    // SAFETY: the kernel reads one `PathBeneath`, which outlives the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            PATH_BENEATH,
            &raw const rule,
            0usize,
        )
    })?;
    Ok(())
}

fn rights_of(access: FsAccess) -> BitFlags<AccessFs> {
    let read = AccessFs::from_read(NEWEST);
    let all = AccessFs::from_all(NEWEST);
    match access {
        FsAccess::List => AccessFs::ReadDir.into(),
        FsAccess::Read => read,
        FsAccess::Write => all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev),
        FsAccess::Device => read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev,
    }
}
