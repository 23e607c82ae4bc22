//! Which requests of `ioctl` there are inside.
//!
//! File systems make names, snapshots and attributes by requests of their own,
//! past every call that is judged, and drivers have thousands more. So there is
//! a list: terminals, sockets, what every descriptor has, and what programs ask
//! of files. All others get the kernel's answer for a request that it does not
//! know (`ENOTTY`), which whoever makes one expects.

use ringfence_sys::seccomp::{Action, Rule, Test};

use super::NOT_PERMITTED;

/// The argument of `ioctl` that is the request.
const REQUEST: u32 = 1;
/// The bits of a request that are its type, which subsystem it belongs to.
const TYPE_MASK: u32 = 0xff00;
/// The bits that are its type and number, without what it passes.
const NAME_MASK: u32 = 0xffff;
/// As the kernel says for a request that it does not know.
const UNKNOWN: Action = Action::Fail(libc::ENOTTY);

/// Types of which everything but [`REFUSED`] is there.
const TYPES: &[u32] = &[
    // 'T': terminals, and what all descriptors have (FIONREAD, FIOCLEX …).
    0x5400, // sockets and interfaces
    0x8900,
];

/// Requests that can be replaced by a call that is judged, or type into a
/// terminal. Whoever makes one is told that it may not.
const REFUSED: &[u32] = &[
    0x5412,      // TIOCSTI
    0x541c,      // TIOCLINUX
    0x541d,      // TIOCCONS
    0x4008_6602, // FS_IOC_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
];

/// Requests about files that change nothing but the content of what is open
/// for writing.
const OF_FILES: &[u32] = &[
    1,           // FIBMAP, which the kernel refuses without a capability
    2,           // FIGETBSZ
    0x8008_6601, // FS_IOC_GETFLAGS
    0xc020_660b, // FS_IOC_FIEMAP
    0x400c_6615, // FS_IOC_GET_ENCRYPTION_POLICY
    0xc009_6616, // FS_IOC_GET_ENCRYPTION_POLICY_EX
    0xc004_6686, // FS_IOC_MEASURE_VERITY
    0x8008_7601, // FS_IOC_GETVERSION
    0x801c_581f, // FS_IOC_FSGETXATTR
    0x800c_581e, // XFS_IOC_DIOINFO
    0x8011_1500, // FS_IOC_GETFSUUID
    0x8081_1501, // FS_IOC_GETFSSYSFSPATH
    0x8100_9431, // FS_IOC_GETFSLABEL
    0x4004_9409, // FICLONE
    0x4020_940d, // FICLONERANGE
    0xc018_9436, // FIDEDUPERANGE
    0x8004_7210, // FAT_IOCTL_GET_ATTRIBUTES
    0x8004_5200, // RNDGETENTCNT, of /dev/random
];

/// Questions about namespaces and processes, whatever size they pass.
const OF_PROCESSES: &[u32] = &[
    0xb701, // NS_GET_USERNS
    0xb702, // NS_GET_PARENT
    0xb703, // NS_GET_NSTYPE
    0xb704, // NS_GET_OWNER_UID
    0xff0b, // PIDFD_GET_INFO
];

/// Those of a listener for system calls.
const OF_LISTENER: u32 = 0x2100;

/// The rule for everything inside.
pub(super) fn inside() -> Rule {
    let rule = Rule::always(libc::SYS_ioctl, UNKNOWN);
    let rule = REFUSED.iter().fold(rule, |rule, request| {
        rule.when(&[Test::equals(REQUEST, *request)], NOT_PERMITTED)
    });
    let rule = TYPES
        .iter()
        .fold(rule, |rule, of| allowing(rule, TYPE_MASK, *of));
    let rule = OF_FILES
        .iter()
        .fold(rule, |rule, request| allowing(rule, u32::MAX, *request));
    OF_PROCESSES
        .iter()
        .fold(rule, |rule, name| allowing(rule, NAME_MASK, *name))
}

/// The rule for an init, which has the listener.
pub(super) fn of_init() -> Rule {
    allowing(inside(), TYPE_MASK, OF_LISTENER)
}

fn allowing(rule: Rule, mask: u32, value: u32) -> Rule {
    let test = Test::Masked {
        argument: REQUEST,
        mask,
        value,
    };
    rule.when(&[test], Action::Allow)
}

#[cfg(test)]
mod tests {
    use ringfence_sys::seccomp::Filter;

    use super::*;

    fn decide(rule: Rule, request: u64) -> Action {
        let filter = Filter::new(vec![rule]);
        filter.decide(libc::SYS_ioctl, &[3, request, 0, 0, 0, 0])
    }

    #[test]
    fn the_numbers_are_those_of_the_kernel_headers() {
        let named = [
            libc::TIOCSTI,
            libc::TIOCLINUX,
            libc::TIOCCONS,
            libc::FS_IOC_SETFLAGS,
        ];
        for (request, number) in named.into_iter().zip(REFUSED) {
            assert_eq!(request, libc::Ioctl::from(*number));
        }
        for request in [libc::FS_IOC_GETFLAGS, libc::FS_IOC_GETVERSION] {
            assert!(
                OF_FILES
                    .iter()
                    .any(|one| libc::Ioctl::from(*one) == request)
            );
        }
        assert!(
            OF_FILES
                .iter()
                .any(|one| libc::Ioctl::from(*one) == libc::FICLONE)
        );
    }

    #[test]
    fn g11_what_programs_ask_of_terminals_sockets_and_files_is_there() {
        let terminals = [
            libc::TCGETS,
            libc::TIOCGWINSZ,
            libc::TIOCGPTN,
            libc::FIONREAD,
        ];
        let others = [
            libc::FIOCLEX,
            libc::FIONBIO,
            libc::FICLONE,
            0x8912,
            0xb703,
            0xc040_ff0b,
        ];
        for request in terminals.into_iter().chain(others) {
            assert_eq!(decide(inside(), request), Action::Allow, "{request:#x}");
        }
    }

    /// With any bits above those that the kernel looks at.
    #[test]
    fn g4_requests_that_make_or_change_names_and_attributes_are_not_there() {
        for (request, action) in [
            (0x5000_940e, UNKNOWN),       // BTRFS_IOC_SUBVOL_CREATE
            (0x5000_9401, UNKNOWN),       // BTRFS_IOC_SNAP_CREATE
            (0x5000_9417, UNKNOWN),       // BTRFS_IOC_SNAP_CREATE_V2
            (0x5000_940f, UNKNOWN),       // BTRFS_IOC_SNAP_DESTROY
            (0x4030_582a, UNKNOWN),       // FS_IOC_RESVSP64
            (0x4008_7602, UNKNOWN),       // FS_IOC_SETVERSION
            (0x4080_6685, UNKNOWN),       // FS_IOC_ENABLE_VERITY
            (0x4b49, UNKNOWN),            // KDSKBSENT, the text of a key
            (0xc050_2100, UNKNOWN),       // SECCOMP_IOCTL_NOTIF_RECV
            (0x4008_6602, NOT_PERMITTED), // FS_IOC_SETFLAGS
            (0x5412, NOT_PERMITTED),      // TIOCSTI
        ] {
            for high in [0, 1 << 32, 0xffff_ffff << 32] {
                assert_eq!(decide(inside(), high | request), action, "{request:#x}");
            }
        }
    }

    #[test]
    fn only_an_init_answers_calls() {
        assert_eq!(decide(of_init(), 0xc050_2100), Action::Allow);
        assert_eq!(decide(of_init(), 0x5000_940e), UNKNOWN);
        assert_eq!(decide(of_init(), 0x5412), NOT_PERMITTED);
    }
}
