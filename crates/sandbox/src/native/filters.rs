//! The system-call rules of the native backend.
//!
//! [`hardening`] holds for the init and the command: calls that reach parts of
//! the kernel which no sandboxed program needs fail. [`watched`] is added for
//! the command: calls that make or change names, and those that connect, are
//! carried out by the init (see [`super::broker`]). [`Verdict`] is what both
//! together say about a call that reached the init. [`unjudged`] is added
//! instead where no call reaches it.

mod requests;

use crate::guarding::Guarding;
use ringfence_sys::Errno;
use ringfence_sys::seccomp::{Action, Filter, Rule, Test};

const NOT_PERMITTED: Action = Action::Fail(libc::EPERM);
const NO_SUCH_CALL: Action = Action::Fail(libc::ENOSYS);

/// Every flag of `clone` and `unshare` that makes a namespace.
pub(super) const NAMESPACE_FLAGS: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;
const CLONE_NEWTIME: i32 = 0x80;
/// Set-user-id and set-group-id: started as root, a file made inside belongs
/// to root outside, so these bits would hand root to anyone on the machine.
const SET_ID_BITS: u32 = 0o6000;
const SET_USER_ID: u32 = 0o4000;
/// On a directory it means no more than the group of what is made in it.
const SET_GROUP_ID: u32 = 0o2000;
/// Flags of an `open` that makes a file, with a name or without.
const MAKES_FILE: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)).cast_unsigned();
/// Either family of the internet: their numbers differ in one bit.
const INTERNET: Test = Test::Masked {
    argument: 0,
    mask: !(libc::AF_INET ^ libc::AF_INET6).cast_unsigned(),
    value: (libc::AF_INET & libc::AF_INET6).cast_unsigned(),
};
const _: () = assert!((libc::AF_INET ^ libc::AF_INET6).count_ones() == 1);
/// The part of a socket's type argument that is the type.
const TYPE_MASK: u32 = 0xf;

/// Newer calls that libc has no name for yet, by number (the same everywhere).
const MEMFD_SECRET: libc::c_long = 447;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const OPEN_TREE_ATTR: libc::c_long = 467;
const FILE_SETATTR: libc::c_long = 469;
/// The flag of `seccomp` that asks for a listener.
const NEW_LISTENER: u32 = 1 << 3;
/// Linux, Linux for 32 bits, both with the name of an older kernel, and the
/// question which it is.
const PERSONALITIES: &[u32] = &[0, 8, 0x2_0000, 0x2_0008, u32::MAX];

/// Calls that change extended attributes, among them the access lists that a
/// refused `chmod` could be replaced by. As if the file system had none.
const ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];

/// Calls that always fail with `EPERM`.
const REFUSED: &[libc::c_long] = &[
    // mounts and roots
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    // files by handle, past every path rule
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // kernel interfaces with a history of escapes
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_kcmp,
    libc::SYS_lookup_dcookie,
    // the machine itself
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    OPEN_TREE_ATTR,
    FILE_SETATTR,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

/// The filter for everything inside.
pub(super) fn hardening() -> Filter {
    let mut rules = vec![requests::inside(), personality()];
    rules.extend([socket(), socketpair(), clone(), unshare()]);
    // Its flags are in memory, where they could change after the check; libc
    // falls back to `clone`, whose flags are in a register.
    rules.push(Rule::always(libc::SYS_clone3, NO_SUCH_CALL));
    // The kernel would read paths from memory that nobody else can read.
    rules.push(Rule::always(MEMFD_SECRET, NO_SUCH_CALL));
    // Of the limits of others, those of the init would matter: it could be
    // made to die before it looked at what was left behind.
    let own = Test::equals(0, 0);
    rules.push(Rule::always(libc::SYS_prlimit64, NOT_PERMITTED).when(&[own], Action::Allow));
    let unsupported = Action::Fail(libc::EOPNOTSUPP);
    rules.extend(
        ATTRIBUTES
            .iter()
            .map(|call| Rule::always(*call, unsupported)),
    );
    rules.extend(set_id_rules());
    rules.extend(
        REFUSED
            .iter()
            .chain(REFUSED_HERE)
            .map(|call| Rule::always(*call, NOT_PERMITTED)),
    );
    Filter::new(rules)
}

/// The same for an init that judges: it changes the modes of directories for
/// the command, which does not inherit this, and answers its calls.
pub(super) fn of_init() -> Filter {
    let hardening = hardening();
    let rules = hardening.rules().iter().cloned();
    let rules = rules.map(|rule| match (rule.number(), mode_argument(rule.number())) {
        (libc::SYS_ioctl, _) => requests::of_init(),
        (number, Some(mode)) => {
            Rule::always(number, Action::Allow).when(&[any_bit(mode, SET_USER_ID)], NOT_PERMITTED)
        }
        (_, None) => rule,
    });
    Filter::new(rules.collect())
}

/// The same where the init judges: whether a limit is the caller's own, and
/// whether a mode is that of a directory, only it can tell.
pub(super) fn judged_hardening() -> Filter {
    let to_init = |action| match action {
        Action::Fail(_) => Action::Notify,
        other => other,
    };
    let hardening = hardening();
    let rules = hardening.rules().iter().cloned();
    let rules = rules.map(|rule| match rule.number() {
        libc::SYS_prlimit64 => rule.map(to_init),
        number => match mode_argument(number) {
            Some(mode) => Rule::always(number, Action::Allow)
                .when(&[any_bit(mode, SET_USER_ID)], NOT_PERMITTED)
                .when(&[any_bit(mode, SET_GROUP_ID)], Action::Notify),
            None => rule,
        },
    });
    Filter::new(rules.collect())
}

/// Those that Docker's default profile takes: others have no randomisation, or
/// memory that can all be executed.
fn personality() -> Rule {
    PERSONALITIES.iter().fold(
        Rule::always(libc::SYS_personality, NOT_PERMITTED),
        |rule, persona| rule.when(&[Test::equals(0, *persona)], Action::Allow),
    )
}

fn socket() -> Rule {
    let family = |value: i32| Test::equals(0, value.unsigned_abs());
    let kind = |value: i32| Test::Masked {
        argument: 1,
        mask: TYPE_MASK,
        value: value.unsigned_abs(),
    };
    let protocol = |value: i32| Test::equals(2, value.unsigned_abs());
    // A Unix datagram socket can send to any path with no `connect` that
    // could be judged, so only the kinds that connect are there.
    let mut rule = Rule::always(libc::SYS_socket, Action::Fail(libc::EAFNOSUPPORT))
        .when(
            &[family(libc::AF_UNIX), kind(libc::SOCK_STREAM)],
            Action::Allow,
        )
        .when(
            &[family(libc::AF_UNIX), kind(libc::SOCK_SEQPACKET)],
            Action::Allow,
        )
        .when(&[family(libc::AF_UNIX)], NOT_PERMITTED)
        .when(
            &[family(libc::AF_NETLINK), protocol(libc::NETLINK_ROUTE)],
            Action::Allow,
        );
    for (type_, protocols) in [
        (libc::SOCK_STREAM, [0, libc::IPPROTO_TCP]),
        (libc::SOCK_DGRAM, [0, libc::IPPROTO_UDP]),
    ] {
        for number in protocols {
            rule = rule.when(&[INTERNET, kind(type_), protocol(number)], Action::Allow);
        }
    }
    rule.when(
        &[INTERNET, kind(libc::SOCK_STREAM)],
        Action::Fail(libc::EPROTONOSUPPORT),
    )
    .when(&[INTERNET], NOT_PERMITTED)
}

fn socketpair() -> Rule {
    let family = Test::equals(0, libc::AF_UNIX.unsigned_abs());
    let kind = |value: i32| Test::Masked {
        argument: 1,
        mask: TYPE_MASK,
        value: value.unsigned_abs(),
    };
    Rule::always(libc::SYS_socketpair, NOT_PERMITTED)
        .when(&[family, kind(libc::SOCK_STREAM)], Action::Allow)
        .when(&[family, kind(libc::SOCK_SEQPACKET)], Action::Allow)
}

fn clone() -> Rule {
    let bits = NAMESPACE_FLAGS.cast_unsigned();
    Rule::always(libc::SYS_clone, Action::Allow)
        .when(&[Test::AnyBit { argument: 0, bits }], NOT_PERMITTED)
}

fn unshare() -> Rule {
    let bits = (NAMESPACE_FLAGS | CLONE_NEWTIME).cast_unsigned();
    Rule::always(libc::SYS_unshare, Action::Allow)
        .when(&[Test::AnyBit { argument: 0, bits }], NOT_PERMITTED)
}

/// No file gets a set-user-id or set-group-id bit. (The kernel takes neither
/// from a `mkdir`.)
fn set_id_rules() -> Vec<Rule> {
    let mut calls = vec![(libc::SYS_mknodat, 2), (libc::SYS_openat, 3)];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        (libc::SYS_creat, 1),
        (libc::SYS_mknod, 1),
        (libc::SYS_open, 2),
    ]);
    let modes = [MODES, MODES_HERE].concat().into_iter();
    let modes = modes.filter_map(|call| Some((call, mode_argument(call)?)));
    calls
        .into_iter()
        .chain(modes)
        .map(|(call, mode)| set_id_rule(call, mode))
        .collect()
}

/// Which argument of a call that changes modes is the mode.
fn mode_argument(call: libc::c_long) -> Option<u32> {
    match call {
        libc::SYS_fchmod => Some(1),
        libc::SYS_fchmodat | libc::SYS_fchmodat2 => Some(2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => Some(1),
        _ => None,
    }
}

fn any_bit(argument: u32, bits: u32) -> Test {
    Test::AnyBit { argument, bits }
}

fn set_id_rule(call: libc::c_long, mode: u32) -> Rule {
    let set_id = any_bit(mode, SET_ID_BITS);
    let flags = match call {
        libc::SYS_openat => Some(2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Some(1),
        _ => None,
    };
    // The mode argument of an open means something only when a file is made.
    let makes = flags.map(|argument| any_bit(argument, MAKES_FILE));
    let tests: Vec<_> = makes.into_iter().chain([set_id]).collect();
    Rule::always(call, Action::Allow).when(&tests, NOT_PERMITTED)
}

/// Which calls of the command the init carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watch {
    guarding: Guarding,
    modes: bool,
}

impl Watch {
    /// Those that a guard needs; `with_files` where the command holds files of
    /// the host, whose modes are not its own to change.
    pub(crate) fn new(guarding: Guarding, with_files: bool) -> Self {
        let modes = with_files || guarding == Guarding::Full;
        Self { guarding, modes }
    }

    /// All of them.
    pub(super) const ALL: Self = Self {
        guarding: Guarding::Full,
        modes: true,
    };

    fn calls(self) -> impl Iterator<Item = libc::c_long> {
        let names = [NAMES, NAMES_HERE].concat();
        let modes = [MODES, MODES_HERE].concat();
        let changes = [CHANGES, CHANGES_HERE].concat();
        let is_full = self.guarding == Guarding::Full;
        let wanted = [
            (SOCKETS.to_vec(), true),
            (names, self.guarding != Guarding::Sweep),
            (modes, self.modes),
            (changes, is_full),
        ];
        let wanted = wanted.into_iter().filter(|(_, is_wanted)| *is_wanted);
        wanted.flat_map(|(calls, _)| calls)
    }

    /// The flags of an `open` that is to be seen, any of them.
    fn open_flags(self) -> Option<i32> {
        match self.guarding {
            Guarding::Full => Some(libc::O_CREAT | libc::O_WRONLY | libc::O_RDWR | libc::O_TRUNC),
            Guarding::Live => Some(libc::O_CREAT),
            Guarding::Sweep => None,
        }
    }
}

/// Connecting, and getting an address.
const SOCKETS: &[libc::c_long] = &[libc::SYS_connect, libc::SYS_bind];

/// Making names.
const NAMES: &[libc::c_long] = &[
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
];

/// Changing modes.
const MODES: &[libc::c_long] = &[libc::SYS_fchmodat, libc::SYS_fchmodat2, libc::SYS_fchmod];

/// Removing names, and changing what storage is used.
const CHANGES: &[libc::c_long] = &[
    libc::SYS_unlinkat,
    libc::SYS_truncate,
    libc::SYS_fallocate,
    libc::SYS_landlock_add_rule,
];

#[cfg(target_arch = "x86_64")]
const NAMES_HERE: &[libc::c_long] = &[
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_symlink,
    libc::SYS_link,
    libc::SYS_rename,
];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[libc::c_long] = &[libc::SYS_chmod];
#[cfg(target_arch = "x86_64")]
const CHANGES_HERE: &[libc::c_long] = &[libc::SYS_unlink, libc::SYS_rmdir];
#[cfg(not(target_arch = "x86_64"))]
const NAMES_HERE: &[libc::c_long] = &[];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[libc::c_long] = &[];
#[cfg(not(target_arch = "x86_64"))]
const CHANGES_HERE: &[libc::c_long] = &[];

/// What is to be done with a call that the command's filter sent to the init.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It fails.
    Refuse(Errno),
    /// The init carries it out.
    CarryOut,
    /// It was sent to be seen; the kernel carries it out.
    GoOn,
}

/// The rules that every call of the command is under, wherever they are held.
pub(super) struct Rules {
    hardening: Filter,
    watched: Filter,
}

impl Rules {
    pub(super) fn new(watch: Watch) -> Self {
        Self {
            hardening: judged_hardening(),
            watched: watched(watch),
        }
    }

    /// What the rules say, by the registers alone: the same rules that the
    /// kernel is given where it refuses by itself.
    pub(super) fn verdict(&self, number: i64, arguments: &[u64; 6]) -> Verdict {
        let decisions =
            [&self.hardening, &self.watched].map(|filter| filter.decide(number, arguments));
        match decisions {
            [Action::Kill, _] | [_, Action::Kill] => Verdict::Refuse(Errno::PERM),
            [Action::Fail(errno), _] | [_, Action::Fail(errno)] => {
                Verdict::Refuse(Errno::from_raw_os_error(errno))
            }
            [Action::Notify, _] | [_, Action::Notify] => Verdict::CarryOut,
            [Action::Allow, Action::Allow] => Verdict::GoOn,
        }
    }
}

/// The filter of a command whose calls nobody judges. What they could change
/// is private, so they go on; but a Unix socket could be connected to one of
/// the host that lies in a visible folder.
pub(super) fn unjudged() -> Filter {
    let goes_on = |action| match action {
        Action::Notify => Action::Allow,
        other => other,
    };
    let watched = watched(Watch::ALL);
    let rules = watched.rules().iter().cloned();
    let unix = Test::equals(0, libc::AF_UNIX.unsigned_abs());
    let no_unix = Rule::always(libc::SYS_socket, Action::Allow).when(&[unix], NOT_PERMITTED);
    Filter::new(
        rules
            .map(|rule| rule.map(goes_on))
            .chain([no_unix])
            .collect(),
    )
}

/// An opening with `O_PATH` of what need not be a folder.
fn file_as_place(argument: u32) -> [Test; 2] {
    let as_place = Test::AnyBit {
        argument,
        bits: libc::O_PATH.cast_unsigned(),
    };
    let any_kind = Test::Masked {
        argument,
        mask: libc::O_DIRECTORY.cast_unsigned(),
        value: 0,
    };
    [as_place, any_kind]
}

/// An opening to read and write, which a shared mapping that can be written to
/// takes: what is stored there takes no bits away that give rights to whoever
/// runs the file. Programs seldom ask for it, but of what they make.
fn for_mapping(argument: u32) -> Test {
    Test::Masked {
        argument,
        mask: libc::O_ACCMODE.cast_unsigned(),
        value: libc::O_RDWR.cast_unsigned(),
    }
}

/// The filter that sends calls of the command to the init.
pub(super) fn watched(watch: Watch) -> Filter {
    let mut rules: Vec<Rule> = open_calls()
        .filter_map(|(call, argument)| open_rule(watch, call, argument))
        .collect();
    // The kernel allows one listener. Were there another, of code inside, it
    // could let calls go on that are sent to be refused.
    let new_listener = Test::AnyBit {
        argument: 1,
        bits: NEW_LISTENER,
    };
    rules.push(
        Rule::always(libc::SYS_seccomp, Action::Allow)
            .when(&[new_listener], Action::Fail(libc::EBUSY)),
    );
    // Whoever opens a file that is leased waits until the lease is given up,
    // and the init opens for everybody.
    let lease = Test::equals(1, libc::F_SETLEASE.unsigned_abs());
    rules.push(
        Rule::always(libc::SYS_fcntl, Action::Allow).when(&[lease], Action::Fail(libc::EINVAL)),
    );
    // Its flags are in memory; every user of it has a fallback to `openat`.
    rules.push(Rule::always(libc::SYS_openat2, NO_SUCH_CALL));
    rules.push(peers());
    rules.extend(watch.calls().map(|call| Rule::always(call, Action::Notify)));
    Filter::new(rules)
}

/// Whom a Unix socket is connected with, only the init can tell. A descriptor of
/// that process would be one of the init: as if the kernel were older (6.5).
fn peers() -> Rule {
    let option = |name: i32| {
        [
            Test::equals(1, libc::SOL_SOCKET.unsigned_abs()),
            Test::equals(2, name.unsigned_abs()),
        ]
    };
    Rule::always(libc::SYS_getsockopt, Action::Allow)
        .when(&option(libc::SO_PEERCRED), Action::Notify)
        .when(&option(libc::SO_PEERPIDFD), Action::Fail(libc::ENOPROTOOPT))
}

/// The calls that open files, each with the argument that its flags are.
fn open_calls() -> impl Iterator<Item = (libc::c_long, u32)> {
    let calls = [
        Some((libc::SYS_openat, 2)),
        #[cfg(target_arch = "x86_64")]
        Some((libc::SYS_open, 1)),
    ];
    calls.into_iter().flatten()
}

fn open_rule(watch: Watch, call: libc::c_long, argument: u32) -> Option<Rule> {
    let bits = watch.open_flags()?.cast_unsigned();
    let rule =
        Rule::always(call, Action::Allow).when(&[Test::AnyBit { argument, bits }], Action::Notify);
    if watch.guarding != Guarding::Full {
        return Some(rule.when(&[for_mapping(argument)], Action::Notify));
    }
    // Held as a place, a removed file is not freed: the account of storage has
    // to know that there are such.
    Some(rule.when(&file_as_place(argument), Action::Notify))
}
