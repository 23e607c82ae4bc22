//! What a call is about, and which of its arguments say so.

use crate::observation::Action;

/// What of a call's arguments goes into the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum Detail {
    Nothing,
    /// A path at this argument.
    Path(usize),
    /// Two of them.
    Paths(usize, usize),
    /// A path at the second argument, from the folder at the first.
    PathAt(usize, usize),
    /// A number at this argument, of what the word says.
    Number(&'static str, usize),
    /// A request's number at this argument.
    Request(usize),
    /// The first so many arguments, which are ids.
    Ids(usize),
    /// Flags that make namespaces, at this argument.
    Namespaces(usize),
    /// The same, in memory that the first argument points at.
    NamespacesInMemory,
    /// The three arguments of a `socket`.
    Socket,
}

/// What a call that is refused or let go on is about.
pub(in crate::native) fn about(number: i64) -> (Action, Detail) {
    match number {
        libc::SYS_mount | libc::SYS_pivot_root => (Action::Mount, Detail::Paths(0, 1)),
        libc::SYS_umount2 | libc::SYS_chroot | libc::SYS_fsopen => (Action::Mount, Detail::Path(0)),
        libc::SYS_move_mount => (Action::Mount, Detail::Paths(1, 3)),
        libc::SYS_open_tree | libc::SYS_mount_setattr | libc::SYS_fspick => {
            (Action::Mount, Detail::PathAt(0, 1))
        }
        libc::SYS_fsconfig | libc::SYS_fsmount => (Action::Mount, Detail::Nothing),
        libc::SYS_setns => (Action::Namespace, Detail::Namespaces(1)),
        libc::SYS_unshare | libc::SYS_clone => (Action::Namespace, Detail::Namespaces(0)),
        libc::SYS_clone3 => (Action::Namespace, Detail::NamespacesInMemory),
        libc::SYS_name_to_handle_at => (Action::Read, Detail::PathAt(0, 1)),
        libc::SYS_open_by_handle_at => (Action::Read, Detail::Nothing),
        libc::SYS_socket | libc::SYS_socketpair => (Action::Other, Detail::Socket),
        libc::SYS_ioctl => (Action::Kernel, Detail::Request(1)),
        libc::SYS_bpf => (Action::Kernel, Detail::Number("command", 0)),
        libc::SYS_keyctl => (Action::Kernel, Detail::Number("operation", 0)),
        libc::SYS_add_key | libc::SYS_request_key => (Action::Kernel, Detail::Paths(0, 1)),
        libc::SYS_acct | libc::SYS_swapon | libc::SYS_swapoff => (Action::Kernel, Detail::Path(0)),
        libc::SYS_prlimit64 => (Action::Other, Detail::Number("process", 0)),
        libc::SYS_setxattr
        | libc::SYS_lsetxattr
        | libc::SYS_removexattr
        | libc::SYS_lremovexattr => (Action::Mode, Detail::Paths(0, 1)),
        libc::SYS_fsetxattr | libc::SYS_fremovexattr => (Action::Mode, Detail::Path(1)),
        libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => {
            (Action::Trace, Detail::Number("process", 0))
        }
        libc::SYS_pidfd_getfd => (Action::Trace, Detail::Number("descriptor", 1)),
        libc::SYS_setuid | libc::SYS_setgid | libc::SYS_setfsuid | libc::SYS_setfsgid => {
            (Action::Identity, Detail::Ids(1))
        }
        libc::SYS_setreuid | libc::SYS_setregid => (Action::Identity, Detail::Ids(2)),
        libc::SYS_setresuid | libc::SYS_setresgid => (Action::Identity, Detail::Ids(3)),
        libc::SYS_setgroups => (Action::Identity, Detail::Number("groups", 0)),
        libc::SYS_capset => (Action::Identity, Detail::Nothing),
        other => (about_files(other), detail_of_files(other)),
    }
}

/// What a call that the init carries out is about.
pub(in crate::native) fn about_files(number: i64) -> Action {
    match number {
        libc::SYS_openat | libc::SYS_truncate => Action::Write,
        libc::SYS_mkdirat | libc::SYS_mknodat => Action::Make,
        libc::SYS_symlinkat | libc::SYS_linkat => Action::Link,
        libc::SYS_renameat | libc::SYS_renameat2 => Action::Rename,
        libc::SYS_unlinkat => Action::Remove,
        libc::SYS_fchmod | libc::SYS_fchmodat | libc::SYS_fchmodat2 => Action::Mode,
        libc::SYS_connect => Action::Connect,
        libc::SYS_bind => Action::Bind,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open | libc::SYS_creat => Action::Write,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir | libc::SYS_mknod => Action::Make,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink | libc::SYS_link => Action::Link,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => Action::Rename,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink | libc::SYS_rmdir => Action::Remove,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => Action::Mode,
        _ => Action::Kernel,
    }
}

/// Of calls that are refused for a bit of their mode.
fn detail_of_files(number: i64) -> Detail {
    match number {
        libc::SYS_openat
        | libc::SYS_mkdirat
        | libc::SYS_mknodat
        | libc::SYS_fchmodat
        | libc::SYS_fchmodat2 => Detail::PathAt(0, 1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open | libc::SYS_creat | libc::SYS_mkdir | libc::SYS_mknod | libc::SYS_chmod => {
            Detail::Path(0)
        }
        _ => Detail::Nothing,
    }
}
