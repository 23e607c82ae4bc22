//! From rules about system calls to classic BPF.
//!
//! Calls without a rule are mostly allowed, and the kernel remembers that per number
//! (since 5.11), so rules cost only the calls they are about.

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET,
    BPF_W, sock_filter,
};

use crate::{Errno, Result};

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It goes on.
    Allow,
    /// It fails with this errno.
    Fail(i32),
    /// It waits for the listener's answer.
    Notify,
    /// The whole process dies.
    Kill,
}

impl Action {
    fn value(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Fail(errno) => libc::SECCOMP_RET_ERRNO | (errno.unsigned_abs() & 0xffff),
            Self::Notify => libc::SECCOMP_RET_USER_NOTIF,
            Self::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        }
    }
}

/// A condition on one argument's low 32 bits.
///
/// The kernel takes these arguments as `int`: a filter that looked at all 64
/// bits could be passed by setting a high one (as in CVE-2019-10063).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// `(argument & mask) == value`
    Masked {
        /// Which argument, from 0.
        argument: u32,
        /// The bits that count.
        mask: u32,
        /// What they must be.
        value: u32,
    },
    /// Any of these bits is set.
    AnyBit {
        /// Which argument, from 0.
        argument: u32,
        /// The bits.
        bits: u32,
    },
}

impl Test {
    fn holds(self, arguments: &[u64; 6]) -> bool {
        let low = |argument: u32| {
            let register = arguments.get(argument as usize).copied().unwrap_or(0);
            u32::try_from(register & 0xffff_ffff).unwrap_or(0)
        };
        match self {
            Self::Masked {
                argument,
                mask,
                value,
            } => low(argument) & mask == value,
            Self::AnyBit { argument, bits } => low(argument) & bits != 0,
        }
    }

    /// The argument equals `value`.
    pub const fn equals(argument: u32, value: u32) -> Self {
        Self::Masked {
            argument,
            mask: u32::MAX,
            value,
        }
    }
}

/// What happens to one system call: the first case whose tests all hold says
/// it, otherwise the last word does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    number: u32,
    cases: Vec<(Vec<Test>, Action)>,
    otherwise: Action,
}

impl Rule {
    /// A rule that says the same for every use of the call.
    pub fn always(number: libc::c_long, action: Action) -> Self {
        Self {
            number: as_number(number),
            cases: Vec::new(),
            otherwise: action,
        }
    }

    /// Adds a case, tried after those already there.
    #[must_use]
    pub fn when(mut self, tests: &[Test], action: Action) -> Self {
        self.cases.push((tests.to_vec(), action));
        self
    }

    /// The number of the call.
    pub fn number(&self) -> libc::c_long {
        libc::c_long::from(self.number)
    }

    /// The same rule with other actions.
    #[must_use]
    pub fn map(mut self, change: impl Fn(Action) -> Action) -> Self {
        for (_, action) in &mut self.cases {
            *action = change(*action);
        }
        self.otherwise = change(self.otherwise);
        self
    }

    /// This rule first, and `other` for every use that it allows. None where
    /// the two do not make one list of cases.
    pub fn then(&self, other: &Self) -> Option<Self> {
        let stops = |action: Action| action != Action::Allow;
        if self.cases.is_empty() && stops(self.otherwise) {
            return Some(self.clone());
        }
        let stops_in_each = self.cases.iter().all(|(_, action)| stops(*action));
        (stops_in_each && !stops(self.otherwise)).then(|| Self {
            number: self.number,
            cases: [self.cases.as_slice(), &other.cases].concat(),
            otherwise: other.otherwise,
        })
    }

    fn decide(&self, arguments: &[u64; 6]) -> Action {
        self.cases
            .iter()
            .find(|(tests, _)| tests.iter().all(|test| test.holds(arguments)))
            .map_or(self.otherwise, |(_, action)| *action)
    }

    fn assemble(&self, program: &mut Vec<sock_filter>) -> Result<()> {
        let mut cases = Cases {
            program,
            held: None,
            said: Vec::with_capacity(self.cases.len()),
        };
        for (tests, action) in &self.cases {
            if tests.is_empty() {
                return cases.finish(*action);
            }
            cases.add(tests, *action)?;
        }
        cases.finish(self.otherwise)
    }
}

/// A whole filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// By number.
    rules: Vec<Rule>,
    otherwise: Action,
}

/// A filter as the kernel takes it.
#[derive(Clone)]
pub struct Program(Vec<sock_filter>);

impl Program {
    pub(super) fn instructions(&self) -> &[sock_filter] {
        &self.0
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({} instructions)", self.0.len())
    }
}

#[cfg(target_arch = "x86_64")]
const NATIVE_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE_ARCHITECTURE: u32 = 0xc000_00b7;
/// Set in the number of a call made through the x32 interface of `x86_64`.
const X32_BIT: u32 = 0x4000_0000;
/// Instructions that a filter has room for at once.
const USUAL_LENGTH: usize = 1024;
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;
const OFFSET_ARGUMENTS: u32 = 16;

impl Filter {
    /// A filter of these rules, one per system call; others are allowed.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self::with_default(rules, Action::Allow)
    }

    /// The same with another action for calls without a rule.
    pub fn with_default(mut rules: Vec<Rule>, otherwise: Action) -> Self {
        rules.sort_by_key(|rule| rule.number);
        Self { rules, otherwise }
    }

    /// The rules, by number.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rule for a call.
    pub fn rule(&self, number: libc::c_long) -> Option<&Rule> {
        let number = as_number(number);
        let at = self.rules.binary_search_by_key(&number, |rule| rule.number);
        at.ok().map(|at| &self.rules[at])
    }

    /// What the filter does with a call of this architecture.
    pub fn decide(&self, number: i64, arguments: &[u64; 6]) -> Action {
        match u32::try_from(number) {
            Ok(plain) if plain < X32_BIT => self
                .rule(number)
                .map_or(self.otherwise, |rule| rule.decide(arguments)),
            _ => Action::Kill,
        }
    }

    /// The program: kill foreign architectures, then rule by rule.
    pub fn assemble(&self) -> Result<Program> {
        let mut program = Vec::with_capacity(USUAL_LENGTH);
        program.extend([
            load(OFFSET_ARCHITECTURE),
            jump(BPF_JEQ, NATIVE_ARCHITECTURE, 1, 0),
            ret(Action::Kill),
            load(OFFSET_NUMBER),
            jump(BPF_JGE, X32_BIT, 0, 1),
            ret(Action::Kill),
        ]);
        search(&mut program, &spans(&self.rules, self.otherwise))?;
        Ok(Program(program))
    }
}

/// What is said about neighbouring calls alike, from a number on.
struct Span<'a> {
    from: u32,
    said: Said<'a>,
}

#[derive(Clone, Copy)]
enum Said<'a> {
    Always(Action),
    ByCase(&'a Rule),
}

impl Said<'_> {
    fn is_also(self, other: Self) -> bool {
        matches!((self, other), (Self::Always(one), Self::Always(another)) if one == another)
    }

    fn assemble(self, program: &mut Vec<sock_filter>) -> Result<()> {
        match self {
            Self::Always(action) => program.push(ret(action)),
            Self::ByCase(rule) => rule.assemble(program)?,
        }
        Ok(())
    }
}

/// All numbers there are, in as few spans as can be: installing a program takes
/// the kernel the longer the longer it is, and a start waits for it.
fn spans<'a>(rules: &'a [Rule], otherwise: Action) -> Vec<Span<'a>> {
    let mut spans: Vec<Span<'a>> = Vec::with_capacity(2 * rules.len() + 1);
    let mut say = |from, said: Said<'a>| match spans.last() {
        Some(last) if last.said.is_also(said) => {}
        _ => spans.push(Span { from, said }),
    };
    let mut next = 0;
    for rule in rules {
        if rule.number > next {
            say(next, Said::Always(otherwise));
        }
        let said = match rule.cases.as_slice() {
            [] => Said::Always(rule.otherwise),
            _ => Said::ByCase(rule),
        };
        say(rule.number, said);
        next = rule.number.saturating_add(1);
    }
    say(next, Said::Always(otherwise));
    spans
}

/// Finds what is said about a call by halving: the kernel runs the program once
/// for every number there is when it is installed, and for watched calls always.
fn search(program: &mut Vec<sock_filter>, spans: &[Span<'_>]) -> Result<()> {
    let [_, others @ ..] = spans else {
        return Ok(());
    };
    if others.is_empty() {
        return spans[0].said.assemble(program);
    }
    let (lower, upper) = spans.split_at(spans.len() / 2);
    let test = program.len();
    program.push(jump(BPF_JGE, upper[0].from, 0, 0));
    search(program, lower)?;
    if let Ok(over_lower) = distance_from(program, test) {
        program[test].jt = over_lower;
    } else {
        let length = program.len() - test - 1;
        let over_lower = u32::try_from(length).map_err(|_| Errno::TOOBIG)?;
        program[test].jf = 1;
        program.insert(test + 1, statement(BPF_JMP | BPF_JA, over_lower));
    }
    search(program, upper)
}

/// A rule on its way into a program.
struct Cases<'a> {
    program: &'a mut Vec<sock_filter>,
    /// The argument that the accumulator holds as it is, from wherever the next
    /// instruction is reached.
    held: Option<u32>,
    /// Jumps that are taken when their test holds.
    said: Vec<(usize, Action)>,
}

impl Cases<'_> {
    /// A case of one test or more.
    fn add(&mut self, tests: &[Test], action: Action) -> Result<()> {
        let mut failing = Vec::with_capacity(tests.len());
        let mut left_with = Vec::with_capacity(tests.len());
        for test in tests {
            failing.push(self.test(*test));
            left_with.push(self.held);
        }
        self.said.push((self.program.len() - 1, action));
        // Now that it is known how far the next case is.
        for at in failing {
            self.program[at].jf = distance_from(self.program, at)?;
        }
        left_with.dedup();
        self.held = match left_with.as_slice() {
            [held] => *held,
            _ => None,
        };
        Ok(())
    }

    /// Where its jump is, which goes on to the next instruction if it holds.
    fn test(&mut self, test: Test) -> usize {
        let (argument, mask, compare) = match test {
            Test::Masked {
                argument,
                mask,
                value,
            } => (argument, mask, jump(BPF_JEQ, value, 0, 0)),
            Test::AnyBit { argument, bits } => (argument, u32::MAX, jump(BPF_JSET, bits, 0, 0)),
        };
        if self.held != Some(argument) {
            self.program.push(load(OFFSET_ARGUMENTS + 8 * argument));
            self.held = Some(argument);
        }
        if mask != u32::MAX {
            self.program
                .push(statement(BPF_ALU | BPF_AND | BPF_K, mask));
            self.held = None;
        }
        self.program.push(compare);
        self.program.len() - 1
    }

    /// What is said otherwise comes first: the last case fails to there.
    fn finish(self, otherwise: Action) -> Result<()> {
        let mut places = vec![(otherwise, self.program.len())];
        self.program.push(ret(otherwise));
        for (at, action) in self.said {
            let known = places.iter().find(|(known, _)| *known == action);
            let place = if let Some((_, place)) = known {
                *place
            } else {
                let place = self.program.len();
                places.push((action, place));
                self.program.push(ret(action));
                place
            };
            let over = place - at - 1;
            self.program[at].jt = u8::try_from(over).map_err(|_| Errno::TOOBIG)?;
        }
        Ok(())
    }
}

fn load(offset: u32) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset)
}

fn ret(action: Action) -> sock_filter {
    statement(BPF_RET | BPF_K, action.value())
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter {
        code: code_of(code),
        jt: 0,
        jf: 0,
        k,
    }
}

fn jump(test: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: code_of(BPF_JMP | test | BPF_K),
        jt,
        jf,
        k,
    }
}

fn code_of(code: u32) -> u16 {
    u16::try_from(code).unwrap_or(u16::MAX)
}

/// From the jump at `place` to the end of the program; a rule that needs a
/// longer one is refused.
fn distance_from(program: &[sock_filter], place: usize) -> Result<u8> {
    u8::try_from(program.len() - place - 1).map_err(|_| Errno::TOOBIG)
}

fn as_number(number: libc::c_long) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs a program the way the kernel does, on one call.
    fn run(program: &[sock_filter], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(architecture.to_le_bytes());
        data.extend(0u64.to_le_bytes());
        for argument in arguments {
            data.extend(argument.to_le_bytes());
        }
        let (mut at, mut accumulator) = (0, 0u32);
        loop {
            let instruction = program[at];
            let code = u32::from(instruction.code);
            at += 1;
            if code == BPF_LD | BPF_W | BPF_ABS {
                let offset = instruction.k as usize;
                accumulator = u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap());
            } else if code == BPF_ALU | BPF_AND | BPF_K {
                accumulator &= instruction.k;
            } else if code == BPF_JMP | BPF_JA {
                at += instruction.k as usize;
            } else if code == BPF_RET | BPF_K {
                return instruction.k;
            } else {
                let holds = if code == BPF_JMP | BPF_JEQ | BPF_K {
                    accumulator == instruction.k
                } else if code == BPF_JMP | BPF_JSET | BPF_K {
                    accumulator & instruction.k != 0
                } else {
                    accumulator >= instruction.k
                };
                at += usize::from(if holds {
                    instruction.jt
                } else {
                    instruction.jf
                });
            }
        }
    }

    fn sample() -> Vec<sock_filter> {
        Filter::new(vec![
            Rule::always(10, Action::Fail(libc::EPERM)),
            Rule::always(20, Action::Allow)
                .when(
                    &[
                        Test::equals(0, 1),
                        Test::AnyBit {
                            argument: 1,
                            bits: 0o100,
                        },
                    ],
                    Action::Notify,
                )
                .when(
                    &[Test::Masked {
                        argument: 2,
                        mask: 0xf,
                        value: 3,
                    }],
                    Action::Kill,
                ),
        ])
        .assemble()
        .unwrap()
        .0
    }

    fn native(number: u32, arguments: [u64; 6]) -> u32 {
        run(&sample(), NATIVE_ARCHITECTURE, number, arguments)
    }

    #[test]
    fn foreign_architectures_and_x32_die() {
        let kill = Action::Kill.value();
        assert_eq!(run(&sample(), 0x4000_0003, 1, [0; 6]), kill);
        assert_eq!(native(X32_BIT | 1, [0; 6]), kill);
    }

    #[test]
    fn calls_without_a_rule_pass() {
        assert_eq!(native(11, [0; 6]), Action::Allow.value());
    }

    #[test]
    fn cases_are_tried_in_order() {
        assert_eq!(native(10, [0; 6]), Action::Fail(libc::EPERM).value());
        assert_eq!(native(20, [1, 0o100, 3, 0, 0, 0]), Action::Notify.value());
        assert_eq!(native(20, [2, 0o100, 3, 0, 0, 0]), Action::Kill.value());
        assert_eq!(native(20, [1, 0o200, 4, 0, 0, 0]), Action::Allow.value());
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            Just(Action::Allow),
            (1..200).prop_map(Action::Fail),
            Just(Action::Notify),
            Just(Action::Kill),
        ]
    }

    fn test() -> impl Strategy<Value = Test> {
        let small = || prop_oneof![0..4u32, any::<u32>()];
        prop_oneof![
            (0..6u32, small(), small()).prop_map(|(argument, mask, value)| Test::Masked {
                argument,
                mask,
                value
            }),
            (0..6u32, small()).prop_map(|(argument, bits)| Test::AnyBit { argument, bits }),
        ]
    }

    fn rule(number: i64) -> impl Strategy<Value = Rule> {
        let case = (prop::collection::vec(test(), 0..3), action());
        (prop::collection::vec(case, 0..4), action()).prop_map(move |(cases, otherwise)| {
            let rule = Rule::always(number, otherwise);
            cases
                .iter()
                .fold(rule, |rule, (tests, action)| rule.when(tests, *action))
        })
    }

    fn filter() -> impl Strategy<Value = Filter> {
        let numbers = prop::collection::btree_set(0..40i64, 0..30);
        let rules =
            numbers.prop_flat_map(|numbers| numbers.into_iter().map(rule).collect::<Vec<_>>());
        (rules, action()).prop_map(|(rules, otherwise)| Filter::with_default(rules, otherwise))
    }

    proptest! {
        #[test]
        fn what_is_decided_is_what_the_kernel_would_do(
            filter in filter(),
            calls in prop::collection::vec(
                (
                    prop_oneof![0..40i64, -2..0x1_0000_0000i64],
                    prop::array::uniform6(prop_oneof![0..5u64, any::<u64>()]),
                ),
                1..40,
            ),
        ) {
            let program = filter.assemble().unwrap().0;
            for (number, arguments) in calls {
                let number_in_kernel = u32::try_from(number & 0xffff_ffff).unwrap();
                let decided = filter.decide(number, &arguments).value();
                prop_assert_eq!(
                    run(&program, NATIVE_ARCHITECTURE, number_in_kernel, arguments),
                    decided
                );
            }
        }
    }

    #[test]
    fn every_rule_of_a_large_filter_is_found() {
        let rules = (0..100)
            .map(|n: i32| Rule::always(3 * libc::c_long::from(n), Action::Fail(1 + n)))
            .collect();
        let program = Filter::new(rules).assemble().unwrap().0;
        for number in 0..310u32 {
            let expected = match number {
                n if n % 3 == 0 && n < 300 => Action::Fail(1 + (n / 3).cast_signed()),
                _ => Action::Allow,
            };
            assert_eq!(
                run(&program, NATIVE_ARCHITECTURE, number, [0; 6]),
                expected.value(),
                "{number}"
            );
        }
    }

    #[test]
    fn neighbours_that_are_treated_alike_are_told_apart_from_others_only() {
        let rule = |number| Rule::always(number, Action::Notify);
        let length = |numbers: std::ops::Range<libc::c_long>| {
            let filter = Filter::new(numbers.map(rule).collect());
            filter.assemble().unwrap().0.len()
        };
        assert_eq!(length(7..300), length(7..8));
    }

    #[test]
    fn high_halves_of_arguments_do_not_hide_the_low_ones() {
        let high = 1 << 40;
        assert_eq!(
            native(20, [1 | high, 0o100 | high, 0, 0, 0, 0]),
            Action::Notify.value()
        );
    }
}
