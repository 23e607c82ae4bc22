//! Which calls of the command are seen at each level, and the one filter that
//! sends them to the init together with those that it judges.
//!
//! A call that is sent may fail with `EINTR` until the init has received it. So
//! up to `standard` nothing is sent for the record alone but what a program does
//! first of all, when no signal has a handler, and refused calls that are rare.
//! From `security` on all refused calls are sent, to be recorded and refused
//! there: an error that the kernel gives by itself is seen by nobody. A listener
//! that is gone means `ENOSYS` for them, so they stay refused.

use ringfence_policy::AuditLevel;
use ringfence_sys::Errno;
use ringfence_sys::seccomp::{Action, Filter, Rule, Test};
use rustix::rand::GetRandomFlags;

use crate::native::filters::{self, Watch};

/// Programs that are started, as the attempt. (Connections are watched in any
/// case.)
const PROGRAMS: &[libc::c_long] = &[libc::SYS_execve, libc::SYS_execveat];

/// The call by which a program shows that it has been started: every C library,
/// static or not, and Go set up their thread pointer with it before anything
/// else. Threads get theirs from `clone`.
#[cfg(target_arch = "x86_64")]
pub(in crate::native) const FIRST_CALL: libc::c_long = libc::SYS_arch_prctl;
#[cfg(not(target_arch = "x86_64"))]
pub(in crate::native) const FIRST_CALL: libc::c_long = libc::SYS_set_tid_address;
/// From the kernel's `asm/prctl.h`.
#[cfg(target_arch = "x86_64")]
const ARCH_SET_FS: u32 = 0x1002;

/// What programs try that make a sandbox of their own. They are told at the end
/// what to do, so these refusals are recorded from `standard` on.
const NESTING: &[libc::c_long] = &[
    libc::SYS_unshare,
    libc::SYS_clone,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_pivot_root,
];

/// Other processes, other ids, and files that are looked at.
const SECURITY: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_chdir,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    // Fails, but what it was asked for is worth a look.
    libc::SYS_clone3,
];

#[cfg(target_arch = "x86_64")]
const SECURITY_HERE: &[libc::c_long] = &[libc::SYS_open];
#[cfg(not(target_arch = "x86_64"))]
const SECURITY_HERE: &[libc::c_long] = &[];

/// What is never seen: these end a process, a signal's handler or a wait, and
/// must not wait for anybody. A return from a handler that is interrupted
/// again would come back with an error in the middle of anywhere.
const NEVER: &[libc::c_long] = &[
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
];

/// Requests of `ptrace` that begin something.
pub(in crate::native) const TRACE_ME: u32 = 0;
pub(in crate::native) const ATTACH: u32 = 16;
pub(in crate::native) const SEIZE: u32 = 0x4206;

/// Whether programs are seen once they have been started, and not before.
pub(in crate::native) fn sees_programs_begin(level: AuditLevel) -> bool {
    matches!(level, AuditLevel::Network | AuditLevel::Standard)
}

/// Whether call `number` is of interest at this level.
pub(in crate::native) fn is_of_interest(level: AuditLevel, number: i64) -> bool {
    match level {
        AuditLevel::Off => false,
        AuditLevel::Network => {
            let sockets = [libc::SYS_connect, libc::SYS_bind];
            number == FIRST_CALL || PROGRAMS.contains(&number) || sockets.contains(&number)
        }
        AuditLevel::Standard | AuditLevel::Security | AuditLevel::All => true,
    }
}

/// Lets the command's process become the command without a stop at the init,
/// which waits for that. Nobody inside knows it: it is in the memory of the
/// supervisor and the init, in a register until then, and in the filter, none of
/// which can be read from inside. Each plan has its own.
#[derive(Debug, Clone, Copy)]
pub(in crate::native) struct Pass(pub(in crate::native) [u32; 3]);

impl Pass {
    pub(in crate::native) fn new() -> Result<Self, Errno> {
        let mut bytes = [0; 12];
        rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty()).and_then(|length| {
            if length == bytes.len() {
                Ok(())
            } else {
                Err(Errno::IO)
            }
        })?;
        let word = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        Ok(Self([word(0), word(4), word(8)]))
    }

    /// Adds itself to a rule for `execve`.
    fn open(self, rule: Rule) -> Rule {
        let [one, two, three] = self.0;
        let shown = [
            Test::equals(3, one),
            Test::equals(4, two),
            Test::equals(5, three),
        ];
        rule.when(&shown, Action::Allow)
    }
}

/// The filter of the command, which can be become with `pass`.
pub(in crate::native) fn of_command_with(level: AuditLevel, watch: Watch, pass: Pass) -> Filter {
    let filter = of_command(level, watch);
    let rules = filter.rules().iter().cloned().map(|rule| {
        if rule.number() == libc::SYS_execve {
            pass.open(rule)
        } else {
            rule
        }
    });
    Filter::new(rules.collect())
}

/// The filter of the command.
pub(in crate::native) fn of_command(level: AuditLevel, watch: Watch) -> Filter {
    match level {
        AuditLevel::Off => lean(watch, None),
        AuditLevel::Network | AuditLevel::Standard => lean(watch, Some(begun())),
        AuditLevel::Security => security(),
        AuditLevel::All => Filter::with_default(
            NEVER
                .iter()
                .map(|call| Rule::always(*call, Action::Allow))
                .collect(),
            Action::Notify,
        ),
    }
}

/// A program that has begun.
fn begun() -> Rule {
    #[cfg(target_arch = "x86_64")]
    return Rule::always(FIRST_CALL, Action::Allow)
        .when(&[Test::equals(0, ARCH_SET_FS)], Action::Notify);
    #[cfg(not(target_arch = "x86_64"))]
    Rule::always(FIRST_CALL, Action::Notify)
}

/// The kernel refuses by itself, but for attempts at nesting.
fn lean(watch: Watch, begun: Option<Rule>) -> Filter {
    let (hardening, watched) = (filters::judged_hardening(), filters::watched(watch));
    let refused = hardening.rules().iter().map(|rule| {
        let number = rule.number();
        let rule = if NESTING.contains(&number) {
            rule.clone().map(to_init)
        } else {
            rule.clone()
        };
        let Some(also) = watched.rule(number) else {
            return rule;
        };
        // The init asks both.
        rule.then(also)
            .unwrap_or_else(|| Rule::always(number, Action::Notify))
    });
    let only_watched = watched.rules().iter();
    let only_watched = only_watched.filter(|rule| hardening.rule(rule.number()).is_none());
    let rules = refused.chain(only_watched.cloned()).chain(begun);
    Filter::new(rules.collect())
}

fn security() -> Filter {
    let (hardening, watched) = (filters::judged_hardening(), filters::watched(Watch::ALL));
    let seen = PROGRAMS.iter().chain(SECURITY).chain(SECURITY_HERE);
    let mut rules: Vec<Rule> = seen
        .map(|call| Rule::always(*call, Action::Notify))
        .collect();
    rules.push(trace());
    let mut known: Vec<libc::c_long> = rules.iter().map(Rule::number).collect();
    known.sort_unstable();
    let is_new = |rule: &&Rule| known.binary_search(&rule.number()).is_err();
    let of_both = watched.rules().iter();
    let only_watched = of_both.filter(|rule| hardening.rule(rule.number()).is_none());
    for rule in hardening.rules().iter().chain(only_watched).filter(is_new) {
        let number = rule.number();
        let is_in_both = hardening.rule(number).is_some() && watched.rule(number).is_some();
        rules.push(if is_in_both {
            Rule::always(number, Action::Notify)
        } else {
            rule.clone().map(to_init)
        });
    }
    Filter::new(rules)
}

/// What the kernel would refuse is sent to the init. A call or a request that is
/// not there at all, so that another is used, tells nothing.
fn to_init(action: Action) -> Action {
    match action {
        Action::Fail(errno) if ![libc::ENOSYS, libc::ENOTTY].contains(&errno) => Action::Notify,
        other => other,
    }
}

fn trace() -> Rule {
    [TRACE_ME, ATTACH, SEIZE].into_iter().fold(
        Rule::always(libc::SYS_ptrace, Action::Allow),
        |rule, request| rule.when(&[Test::equals(0, request)], Action::Notify),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guarding::Guarding;
    use crate::native::filters::{Rules, Verdict};
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::new(Watch::ALL));
    static HARDENING: LazyLock<Filter> = LazyLock::new(filters::hardening);
    /// With every level and everything that can be watched at it.
    static FILTERS: LazyLock<Vec<(AuditLevel, Rules, Filter)>> = LazyLock::new(|| {
        let levels = [
            AuditLevel::Off,
            AuditLevel::Network,
            AuditLevel::Standard,
            AuditLevel::Security,
            AuditLevel::All,
        ];
        let is_whole = |level| level >= AuditLevel::Security;
        let combined = levels.into_iter().flat_map(|level| {
            let watches = watches().filter(move |watch| *watch == Watch::ALL || !is_whole(level));
            watches.map(move |watch| (level, watch))
        });
        let with_filter = |(level, watch)| (level, Rules::new(watch), of_command(level, watch));
        combined.map(with_filter).collect()
    });

    fn watches() -> impl Iterator<Item = Watch> {
        let guardings = [Guarding::Full, Guarding::Live, Guarding::Sweep];
        guardings
            .into_iter()
            .flat_map(|guarding| [false, true].map(|files| Watch::new(guarding, files)))
    }

    fn decision() -> impl Strategy<Value = (i64, [u64; 6])> {
        let argument = || prop_oneof![0..20u64, any::<u64>(), (0..64u32).prop_map(|bit| 1 << bit)];
        (0..480i64, prop::array::uniform6(argument()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        /// Whatever the level: what the rules refuse is refused by the kernel
        /// or gets to the init, which refuses it; and what the init carries
        /// out gets there.
        #[test]
        fn g4_no_level_lets_a_refused_or_watched_call_pass((number, arguments) in decision()) {
            for (level, rules, filter) in FILTERS.iter() {
                let verdict = rules.verdict(number, &arguments);
                if NEVER.contains(&number) {
                    prop_assert_eq!(verdict, Verdict::GoOn);
                    continue;
                }
                let own = filter.decide(number, &arguments);
                match verdict {
                    Verdict::Refuse(errno) => {
                        let fails = Action::Fail(errno.raw_os_error());
                        prop_assert!(
                            own == fails || own == Action::Notify,
                            "{level:?} {number} {own:?}"
                        );
                    }
                    Verdict::CarryOut => prop_assert_eq!(own, Action::Notify),
                    Verdict::GoOn => prop_assert!(matches!(own, Action::Allow | Action::Notify)),
                }
            }
        }
    }

    static UNJUDGED: LazyLock<Filter> = LazyLock::new(filters::unjudged);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        /// Without a listener the kernel refuses what the rules refuse, and
        /// nothing waits for an answer that nobody gives.
        #[test]
        fn g4_without_a_listener_what_is_refused_stays_refused((number, arguments) in decision()) {
            let decided = [&UNJUDGED, &HARDENING].map(|filter| filter.decide(number, &arguments));
            prop_assert!(!decided.contains(&Action::Notify), "{number}");
            if let Verdict::Refuse(errno) = RULES.verdict(number, &arguments) {
                prop_assert!(decided.contains(&Action::Fail(errno.raw_os_error())), "{number}");
            }
        }
    }

    #[test]
    fn g1_without_a_listener_a_unix_socket_is_only_made_in_a_pair() {
        let unix = |call| UNJUDGED.decide(call, &[1 << 32 | 1, 1, 0, 0, 0, 0]);
        assert_eq!(unix(libc::SYS_socket), Action::Fail(libc::EPERM));
        assert_eq!(unix(libc::SYS_socketpair), Action::Allow);
        let internet = UNJUDGED.decide(libc::SYS_socket, &[2, 1, 0, 0, 0, 0]);
        assert_eq!(internet, Action::Allow);
    }

    #[test]
    fn only_a_pass_lets_a_program_start_unseen() {
        let pass = Pass::new().unwrap();
        let [one, two, three] = pass.0.map(u64::from);
        let filter = of_command_with(AuditLevel::Security, Watch::ALL, pass);
        let decide = |call, shown: [u64; 3]| {
            let [one, two, three] = shown;
            filter.decide(call, &[9, 9, 9, one, two, three])
        };
        let exec = libc::SYS_execve;
        assert_eq!(decide(exec, [one, two, three]), Action::Allow);
        for wrong in [
            [0, 0, 0],
            [one ^ 1, two, three],
            [one, two ^ 1, three],
            [one, two, three ^ 1],
        ] {
            assert_eq!(decide(exec, wrong), Action::Notify);
        }
        let other = decide(libc::SYS_execveat, [one, two, three]);
        assert_eq!(other, Action::Notify);
        assert_ne!(pass.0, Pass::new().unwrap().0);
    }

    /// What programs do not expect to fail with `EINTR` is not sent.
    #[test]
    fn g11_up_to_standard_neither_programs_nor_reading_wait_for_anybody() {
        for level in [AuditLevel::Off, AuditLevel::Network, AuditLevel::Standard] {
            let filter = of_command(level, Watch::ALL);
            for call in PROGRAMS.iter().chain(SECURITY).chain(SECURITY_HERE) {
                let decided = filter.decide(*call, &[0; 6]);
                assert_ne!(decided, Action::Notify, "{call} at {level:?}");
            }
        }
    }

    #[test]
    fn standard_sees_programs_begin_and_attempts_at_nesting() {
        let filter = of_command(AuditLevel::Standard, Watch::ALL);
        let decide = |call, one| filter.decide(call, &[one, 0, 0, 0, 0, 0]);
        let user = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
        for call in [libc::SYS_mount, libc::SYS_pivot_root, libc::SYS_setns] {
            assert_eq!(decide(call, 0), Action::Notify, "{call}");
        }
        for call in [libc::SYS_clone, libc::SYS_unshare] {
            assert_eq!(decide(call, user), Action::Notify, "{call}");
            assert_eq!(decide(call, 0), Action::Allow, "{call}");
        }
        assert_eq!(decide(libc::SYS_bpf, 0), Action::Fail(libc::EPERM));
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(decide(FIRST_CALL, ARCH_SET_FS.into()), Action::Notify);
            assert_eq!(decide(FIRST_CALL, 0x1003), Action::Allow);
        }
    }

    #[test]
    fn security_sees_what_is_refused_and_programs() {
        let filter = of_command(AuditLevel::Security, Watch::ALL);
        for call in [
            libc::SYS_mount,
            libc::SYS_bpf,
            libc::SYS_execve,
            libc::SYS_openat,
        ] {
            assert_eq!(filter.decide(call, &[0; 6]), Action::Notify, "{call}");
        }
        for call in [
            libc::SYS_read,
            libc::SYS_clone,
            libc::SYS_mmap,
            libc::SYS_socket,
        ] {
            let stream = [1, 1, 0, 0, 0, 0];
            assert_eq!(filter.decide(call, &stream), Action::Allow, "{call}");
        }
    }
}
