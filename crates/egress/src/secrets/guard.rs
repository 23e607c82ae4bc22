//! Holds back whatever follows the beginning of a form, right or wrong.
//!
//! Were only the right bytes held back, whoever gets bytes of his own choice
//! back could tell from their delay how a value goes on, letter by letter. So
//! what is held depends on the first few symbols, and from there on on nothing
//! but how much could follow them.

use std::collections::VecDeque;

use super::pattern::Pattern;

/// So much of a value may be known, and let go when nothing follows.
pub(super) const HARMLESS: u32 = 3;
/// No symbol and no new line is written in more bytes after its first one.
const LONGEST_REST: u8 = 9;
/// What begins another way to write a symbol, or a new line, is repeated in it
/// within so many bytes: `%0d%0a`.
const REPEATED: u8 = 3;

/// What is held back of one stream.
#[derive(Default)]
pub(super) struct Guards {
    queues: Vec<Queue>,
    /// How much came while something was held: symbols, as they may be written,
    /// and new lines.
    units: u64,
    /// How many of the next bytes may belong to the last unit.
    rest: u8,
}

/// Those of forms of one length. Each begins and ends after the one before it.
struct Queue {
    length: u64,
    guards: VecDeque<Guard>,
}

#[derive(Clone, Copy)]
struct Guard {
    /// Where what is held begins in the stream.
    start: u64,
    /// After how many units it began to hold, and ends to.
    since: u64,
    until: u64,
}

impl Guards {
    /// Holds from `start` on as much as there may be of the pattern, of which
    /// `symbols` have come.
    pub(super) fn hold(&mut self, pattern: &Pattern, symbols: u32, start: u64) {
        let length = pattern.units_after(symbols);
        let mut guard = Guard {
            start,
            since: self.units,
            until: self.units + length,
        };
        let queue = self.queue(length);
        // One that begins earlier and ends later takes their place.
        while let Some(last) = queue.guards.pop_back_if(|last| last.start >= start) {
            guard.since = guard.since.min(last.since);
        }
        queue.guards.push_back(guard);
    }

    fn queue(&mut self, length: u64) -> &mut Queue {
        let known = self.queues.iter().position(|own| own.length == length);
        let at = known.unwrap_or_else(|| {
            let guards = VecDeque::new();
            self.queues.push(Queue { length, guards });
            self.queues.len() - 1
        });
        &mut self.queues[at]
    }

    /// Takes the next byte into account.
    pub(super) fn pass(&mut self, byte: u8) {
        if self.queues.is_empty() {
            return;
        }
        let begins = matches!(byte, b'%' | b'\\' | b'&' | b'=' | b'\n' | b'\r');
        let may_begin = self.rest <= LONGEST_REST - REPEATED;
        if self.rest > 0 && !(begins && may_begin) {
            self.rest -= 1;
            return;
        }
        self.rest = if begins { LONGEST_REST } else { 0 };
        self.units += 1;
        self.let_go();
    }

    /// Ends what has held for long enough.
    fn let_go(&mut self) {
        let units = self.units;
        for queue in &mut self.queues {
            while queue
                .guards
                .pop_front_if(|first| first.until <= units)
                .is_some()
            {}
        }
        self.queues.retain(|queue| !queue.guards.is_empty());
        if self.queues.is_empty() {
            *self = Self::default();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Where the first byte is that is held.
    pub(super) fn earliest(&self) -> Option<u64> {
        let first = self.queues.iter().filter_map(|queue| queue.guards.front());
        first.map(|guard| guard.start).min()
    }

    /// Whether more than a beginning is held.
    pub(super) fn is_deep(&self) -> bool {
        let mut all = self.queues.iter().flat_map(|queue| &queue.guards);
        all.any(|guard| guard.since < self.units)
    }
}
