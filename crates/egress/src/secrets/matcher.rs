//! Finds every form of some values in a stream, in whatever pieces it comes.
//!
//! Beginnings are looked for fast; from each on all that it can still become is
//! followed byte by byte, until nothing is left of it or it is complete.

use super::beginnings::{Beginnings, Start};
use super::guard::{Guards, HARMLESS};
use super::pattern::{Case, Extent, Pattern};

/// More threads than that may be the same ones twice.
const FEW: usize = 32;

/// Compiled forms.
pub(super) struct Matcher {
    patterns: Vec<Pattern>,
    beginnings: Beginnings,
}

/// One occurrence, in bytes from the beginning of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) owner: usize,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Nothing of the value is missing.
    pub(super) is_whole: bool,
}

/// What the last bytes of a stream can still become.
#[derive(Default)]
pub(super) struct Run {
    threads: Vec<Thread>,
    before: Vec<Thread>,
    guards: Guards,
    /// How many bytes came so far.
    position: u64,
    /// How often something came near a value.
    near: u64,
}

/// One way to read the bytes from `start` on as the beginning of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    pattern: u32,
    /// The next symbol.
    symbol: u32,
    within: Within,
    start: u64,
    /// The symbol that `start` is at.
    from: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Within {
    /// Before the symbol.
    Before,
    /// Before it, and a new line was begun there.
    NewLine,
    /// Within another way to write it.
    Spelling { index: u8, offset: u8 },
}

impl Thread {
    fn new(begun: Start, start: u64) -> Self {
        Self {
            pattern: begun.pattern,
            symbol: begun.symbol,
            within: Within::Before,
            start,
            from: begun.symbol,
        }
    }

    /// How many symbols have come.
    fn symbols(&self) -> u32 {
        self.symbol - self.from
    }
}

impl Matcher {
    /// Compiles every form of `values`, numbered in their order.
    pub(super) fn new<'a>(
        values: impl IntoIterator<Item = &'a str>,
        case: Case,
        extent: Extent,
    ) -> Self {
        let all = |(owner, value)| Pattern::all_of(value, owner, case, extent);
        let patterns: Vec<Pattern> = values.into_iter().enumerate().flat_map(all).collect();
        Self {
            beginnings: Beginnings::of(&patterns),
            patterns,
        }
    }

    /// Whether what comes next may tell whether the thread is right. That of a
    /// part which begins later in a value is not waited for before it is
    /// enough: were it, whoever gets bytes of his own choice back could tell
    /// from their delay which few symbols follow each other anywhere in it.
    fn is_awaited(&self, thread: &Thread) -> bool {
        let pattern = &self.patterns[thread.pattern as usize];
        let is_first = thread.from == 0 && !pattern.is_rest();
        is_first || thread.symbols() as usize >= self.enough(thread)
    }

    fn enough(&self, thread: &Thread) -> usize {
        self.patterns[thread.pattern as usize].enough()
    }
}

impl Run {
    /// Reads on, and tells of every occurrence that is complete.
    pub(super) fn feed(&mut self, matcher: &Matcher, bytes: &[u8], found: &mut impl FnMut(Match)) {
        let mut at = 0;
        let mut next = matcher.beginnings.next(bytes, at);
        while at < bytes.len() {
            if at > next.at {
                next = matcher.beginnings.next(bytes, at);
            }
            if self.is_clear() {
                self.position += (next.at - at) as u64;
                at = next.at;
            }
            if let Some(byte) = bytes.get(at) {
                let begun = if at == next.at { next.begun } else { &[] };
                self.step(matcher, *byte, begun, found);
                at += 1;
            }
        }
    }

    /// How often something came near a value since this was last asked.
    pub(super) fn take_near(&mut self) -> u64 {
        std::mem::take(&mut self.near)
    }

    /// Whether nothing that came can become an occurrence any more.
    pub(super) fn is_clear(&self) -> bool {
        self.threads.is_empty() && self.guards.is_empty()
    }

    /// Where the earliest beginning is that may yet become an occurrence, as far
    /// as may be told.
    pub(super) fn earliest(&self, matcher: &Matcher) -> Option<u64> {
        let awaited = self.threads.iter().filter(|one| matcher.is_awaited(one));
        let threads = awaited.map(|thread| thread.start);
        threads.chain(self.guards.earliest()).min()
    }

    /// Whether no more than the first few symbols of any form have come.
    pub(super) fn is_harmless(&self, matcher: &Matcher) -> bool {
        let mut awaited = self.threads.iter().filter(|one| matcher.is_awaited(one));
        awaited.all(|thread| thread.symbols() <= HARMLESS) && !self.guards.is_deep()
    }

    fn step(
        &mut self,
        matcher: &Matcher,
        byte: u8,
        begun: &[Start],
        found: &mut impl FnMut(Match),
    ) {
        std::mem::swap(&mut self.threads, &mut self.before);
        let start = self.position;
        let begun = begun.iter().map(|begun| Thread::new(*begun, start));
        self.position += 1;
        self.guards.pass(byte);
        let mut follow = Follow {
            matcher,
            threads: &mut self.threads,
            guards: &mut self.guards,
            near: &mut self.near,
            end: self.position,
            found,
        };
        for thread in self.before.drain(..).chain(begun) {
            follow.on(thread, byte);
        }
        if self.threads.len() > FEW {
            self.threads.sort_unstable();
            // The earliest of those that differ in their start only.
            self.threads
                .dedup_by_key(|thread| (thread.pattern, thread.symbol, thread.within));
        }
    }
}

/// One step of all threads.
struct Follow<'a, F> {
    matcher: &'a Matcher,
    threads: &'a mut Vec<Thread>,
    guards: &'a mut Guards,
    near: &'a mut u64,
    end: u64,
    found: &'a mut F,
}

impl<F: FnMut(Match)> Follow<'_, F> {
    /// What becomes of `thread` with one more byte.
    fn on(&mut self, thread: Thread, byte: u8) {
        let pattern = &self.matcher.patterns[thread.pattern as usize];
        let symbol = thread.symbol as usize;
        if let Within::Spelling { index, offset } = thread.within {
            let way = pattern.alternatives(symbol).nth(usize::from(index));
            if let Some(way) = way
                && way.spelling.has(usize::from(offset), byte)
            {
                self.spelled(thread, index, offset + 1, (way.spelling.len(), way.symbols));
            }
            return;
        }
        if pattern.has(symbol, byte) {
            self.advance(thread, 1);
        }
        for (index, way) in (0..).zip(pattern.alternatives(symbol)) {
            // A new line comes neither first nor twice.
            let is_first = thread.symbols() == 0 || thread.within == Within::NewLine;
            if !(way.symbols == 0 && is_first) && way.spelling.has(0, byte) {
                self.spelled(thread, index, 1, (way.spelling.len(), way.symbols));
            }
        }
    }

    /// Goes on within a spelling of some length that stands for some symbols.
    fn spelled(&mut self, thread: Thread, index: u8, offset: u8, (length, symbols): (usize, u32)) {
        if usize::from(offset) == length {
            self.advance(thread, symbols);
        } else {
            let within = Within::Spelling { index, offset };
            self.threads.push(Thread { within, ..thread });
        }
    }

    fn advance(&mut self, thread: Thread, symbols: u32) {
        let symbol = thread.symbol + symbols;
        let pattern = &self.matcher.patterns[thread.pattern as usize];
        let length = (symbol - thread.from) as usize;
        if symbols > 0 && pattern.is_near(length) {
            *self.near += 1;
        }
        if length >= pattern.enough() && symbols > 0 {
            (self.found)(Match {
                owner: pattern.owner,
                start: thread.start,
                end: self.end,
                is_whole: length == pattern.len(),
            });
        }
        if symbol as usize == pattern.len() {
            return;
        }
        let is_first = thread.from == 0 && !pattern.is_rest();
        if is_first && thread.symbol < HARMLESS && symbol >= HARMLESS {
            self.guards.hold(pattern, symbol, thread.start);
        }
        let within = match symbols {
            0 => Within::NewLine,
            _ => Within::Before,
        };
        self.threads.push(Thread {
            symbol,
            within,
            ..thread
        });
    }
}
