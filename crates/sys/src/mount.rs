//! The mount interface of Linux 5.12 and later: everything by descriptor,
//! never by a path that could have changed since it was looked at.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::mount::{
    FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};

use crate::{Result, check};

/// Restrictions of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountFlags(u64);

impl MountFlags {
    /// Set-user-id bits and devices do not count.
    pub const PLAIN: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV);
    /// As [`Self::PLAIN`], and read-only.
    pub const READ_ONLY: Self = Self(Self::PLAIN.0 | libc::MOUNT_ATTR_RDONLY);
    /// As [`Self::READ_ONLY`], and nothing can be executed.
    pub const INERT: Self = Self(Self::READ_ONLY.0 | libc::MOUNT_ATTR_NOEXEC);
    /// A device node that works: no set-user-id, nothing executed.
    pub const DEVICE: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC);
}

/// A detached copy of the mount at `place`; of all below it too if `recursive`.
pub fn clone_tree(place: BorrowedFd<'_>, recursive: bool) -> Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    rustix::mount::open_tree(place, c"", flags)
}

/// A detached copy of the mount at `path` from `folder`; of a link, not of where
/// it leads.
pub fn clone_entry(folder: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    rustix::mount::open_tree(folder, path, flags)
}

/// Attaches a detached mount on top of what is called `name` in `folder`; of a
/// link, not where it leads.
pub fn attach_to_entry(tree: BorrowedFd<'_>, folder: BorrowedFd<'_>, name: &str) -> Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(tree, c"", folder, name, flags)
}

/// Attaches a detached mount on top of `place`.
pub fn attach(tree: BorrowedFd<'_>, place: BorrowedFd<'_>) -> Result<()> {
    rustix::mount::move_mount(
        tree,
        c"",
        place,
        c"",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )
}

/// Restricts the mount `tree` and everything mounted below it, and cuts them
/// off from mounts that are made elsewhere later.
pub fn set_mount_attributes(tree: BorrowedFd<'_>, flags: MountFlags) -> Result<()> {
    let mut request = attributes(flags.0);
    request.propagation = libc::MS_PRIVATE;
    set_attributes(tree, libc::AT_RECURSIVE, &request)
}

/// Restricts the mount `tree` alone.
pub fn set_attributes_of_one(tree: BorrowedFd<'_>, flags: MountFlags) -> Result<()> {
    set_attributes(tree, 0, &attributes(flags.0))
}

/// Makes ids of `tree` be read through the user namespace `mapping`. Needs
/// `CAP_SYS_ADMIN` in the namespace that owns the file system.
pub fn set_id_mapping(
    tree: BorrowedFd<'_>,
    mapping: BorrowedFd<'_>,
    recursive: bool,
) -> Result<()> {
    let mut request = attributes(libc::MOUNT_ATTR_IDMAP);
    request.userns_fd = u64::try_from(mapping.as_raw_fd()).unwrap_or(u64::MAX);
    set_attributes(
        tree,
        if recursive { libc::AT_RECURSIVE } else { 0 },
        &request,
    )
}

/// Makes every mount of the caller's namespace private, read-only, and blind
/// to set-user-id bits and device nodes.
pub fn make_view_read_only() -> Result<()> {
    let mut request = attributes(MountFlags::READ_ONLY.0);
    request.propagation = libc::MS_PRIVATE;
    let root = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty())?;
    set_attributes(root.as_fd(), libc::AT_RECURSIVE, &request)
}

fn attributes(set: u64) -> libc::mount_attr {
    libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    }
}

fn set_attributes(tree: BorrowedFd<'_>, at_flags: i32, request: &libc::mount_attr) -> Result<()> {
    // SAFETY: `request` is a whole `mount_attr` that outlives the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            at_flags | libc::AT_EMPTY_PATH,
            std::ptr::from_ref(request),
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(())
}

/// A new, empty, detached tmpfs whose root folder has the given mode.
pub fn tmpfs(mode: &str, size: Option<&str>, flags: MountFlags) -> Result<OwnedFd> {
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&context, "mode", mode)?;
    if let Some(size) = size {
        rustix::mount::fsconfig_set_string(&context, "size", size)?;
    }
    finish(&context, flags)
}

/// A new, detached overlay of `lower` directories, the first of them on top, under `upper`, which
/// takes all changes. `work` is an empty directory of the mount that `upper` is on. Needs no
/// privilege beyond the caller's user namespace (Linux 5.11).
pub fn overlay(
    lower: &[BorrowedFd<'_>],
    upper: BorrowedFd<'_>,
    work: BorrowedFd<'_>,
    flags: MountFlags,
) -> Result<OwnedFd> {
    // By descriptor only since Linux 6.13; this leads to the very same directories.
    let path = |fd: &BorrowedFd<'_>| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let lower: Vec<String> = lower.iter().map(path).collect();
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_flag(&context, "userxattr")?;
    rustix::mount::fsconfig_set_string(&context, "lowerdir", lower.join(":"))?;
    rustix::mount::fsconfig_set_string(&context, "upperdir", path(&upper))?;
    rustix::mount::fsconfig_set_string(&context, "workdir", path(&work))?;
    finish(&context, flags)
}

/// Limits what an attached tmpfs may hold, what it holds already included.
pub fn limit_tmpfs(root: BorrowedFd<'_>, bytes: u64, inodes: u64) -> Result<()> {
    let flags = FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_EMPTY_PATH;
    let context = rustix::mount::fspick(root, c"", flags)?;
    rustix::mount::fsconfig_set_string(&context, "size", bytes.to_string())?;
    rustix::mount::fsconfig_set_string(&context, "nr_inodes", inodes.to_string())?;
    rustix::mount::fsconfig_reconfigure(&context)
}

/// A new, detached procfs of the caller's pid namespace.
pub fn procfs() -> Result<OwnedFd> {
    let context = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    finish(&context, MountFlags::INERT)
}

/// A new, detached instance of the pseudo-terminal file system.
pub fn devpts() -> Result<OwnedFd> {
    let context = rustix::mount::fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_flag(&context, "newinstance")?;
    rustix::mount::fsconfig_set_string(&context, "ptmxmode", "0666")?;
    rustix::mount::fsconfig_set_string(&context, "mode", "0620")?;
    finish(&context, MountFlags::DEVICE)
}

fn finish(context: &OwnedFd, flags: MountFlags) -> Result<OwnedFd> {
    rustix::mount::fsconfig_create(context)?;
    let attributes = u32::try_from(flags.0).unwrap_or(u32::MAX);
    rustix::mount::fsmount(
        context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::from_bits_retain(attributes),
    )
}

/// Makes `root` the root of the caller's mount namespace and lets go of the
/// old one.
pub fn pivot_into(root: BorrowedFd<'_>) -> Result<()> {
    rustix::process::fchdir(root)?;
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")
}
