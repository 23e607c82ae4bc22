//! Where forms may begin: every occurrence begins with one of some short texts,
//! which are looked for fast.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::pattern::{Alternative, Pattern, UNBROKEN, tells};

/// Their length in bytes that tell something, where a form does not begin with
/// a longer way to write its first symbol.
const LENGTH: usize = UNBROKEN;
/// More of them than that are looked for with less memory.
const MANY: usize = 4096;

/// A pattern, and the symbol that an occurrence of it begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Start {
    pub(super) pattern: u32,
    pub(super) symbol: u32,
}

/// A place where something may begin, and what.
pub(super) struct Candidate<'a> {
    pub(super) at: usize,
    pub(super) begun: &'a [Start],
}

/// The beginnings of some patterns and of their parts.
pub(super) struct Beginnings {
    /// Sorted.
    texts: Vec<Vec<u8>>,
    /// What begins with each text.
    starts: Vec<Vec<Start>>,
    /// What begins with each byte.
    by_byte: Vec<Vec<Start>>,
    searcher: Option<AhoCorasick>,
    /// The length of the longest text.
    longest: usize,
}

impl Beginnings {
    pub(super) fn of(patterns: &[Pattern]) -> Self {
        let mut all = Vec::new();
        for (number, pattern) in (0..).zip(patterns) {
            for symbol in pattern.beginnings() {
                let start = Start {
                    pattern: number,
                    symbol,
                };
                let mut texts = Vec::new();
                extend(pattern, symbol as usize, &[], &mut texts);
                all.extend(texts.into_iter().map(|text| (text, start)));
            }
        }
        all.sort_unstable();
        all.dedup();
        let mut texts: Vec<Vec<u8>> = all.iter().map(|(text, _)| text.clone()).collect();
        texts.dedup();
        Self {
            starts: starts_of(&texts, &all),
            by_byte: starts_by_byte(&all),
            searcher: searcher(&texts),
            longest: texts.iter().map(Vec::len).max().unwrap_or(0),
            texts,
        }
    }

    /// The first place from `at` on where something begins, or may begin that
    /// the end of `bytes` cuts off.
    pub(super) fn next(&self, bytes: &[u8], at: usize) -> Candidate<'_> {
        let found = self
            .searcher
            .as_ref()
            .and_then(|all| all.find(&bytes[at..]));
        let whole = found.map(|found| Candidate {
            at: at + found.start(),
            begun: &self.starts[found.pattern().as_usize()],
        });
        let before = whole.as_ref().map_or(bytes.len(), |whole| whole.at + 1);
        let tail = (bytes.len() + 1).saturating_sub(self.longest).max(at);
        let cut_off = (tail..before).find(|at| self.is_cut_off(&bytes[*at..]));
        let cut_off = cut_off.map(|at| Candidate {
            at,
            begun: &self.by_byte[usize::from(bytes[at])],
        });
        cut_off.or(whole).unwrap_or(Candidate {
            at: bytes.len(),
            begun: &[],
        })
    }

    /// Whether some text begins with `bytes`.
    fn is_cut_off(&self, bytes: &[u8]) -> bool {
        let first = self.texts.partition_point(|text| &text[..] < bytes);
        let text = self.texts.get(first);
        text.is_some_and(|text| text.starts_with(bytes))
    }
}

/// What begins with each of `texts`, of which the longest is found where several
/// begin together: so what begins with its own beginnings as well.
fn starts_of(texts: &[Vec<u8>], all: &[(Vec<u8>, Start)]) -> Vec<Vec<Start>> {
    let mut starts: Vec<Vec<Start>> = Vec::with_capacity(texts.len());
    let mut around: Vec<usize> = Vec::new();
    let mut rest = all;
    for (number, text) in texts.iter().enumerate() {
        let own = rest.partition_point(|(other, _)| other <= text);
        let mut here: Vec<Start> = rest[..own].iter().map(|(_, start)| *start).collect();
        rest = &rest[own..];
        while around
            .pop_if(|last| !text.starts_with(&texts[*last]))
            .is_some()
        {}
        if let Some(last) = around.last() {
            here.extend_from_slice(&starts[*last]);
            here.sort_unstable();
            here.dedup();
        }
        around.push(number);
        starts.push(here);
    }
    starts
}

fn starts_by_byte(all: &[(Vec<u8>, Start)]) -> Vec<Vec<Start>> {
    let mut starts = vec![Vec::new(); usize::from(u8::MAX) + 1];
    for (text, start) in all {
        starts[usize::from(text[0])].push(*start);
    }
    for starts in &mut starts {
        starts.sort_unstable();
        starts.dedup();
    }
    starts
}

fn searcher(texts: &[Vec<u8>]) -> Option<AhoCorasick> {
    let kind = if texts.len() > MANY {
        AhoCorasickKind::ContiguousNFA
    } else {
        AhoCorasickKind::DFA
    };
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(kind))
        .build(texts)
        .ok()
}

fn extend(pattern: &Pattern, at: usize, text: &[u8], literals: &mut Vec<Vec<u8>>) {
    let telling = text.iter().filter(|byte| tells(**byte)).count();
    if telling >= LENGTH || at >= pattern.len() {
        literals.push(text.to_vec());
        return;
    }
    for byte in pattern.bytes_at(at) {
        extend(pattern, at + 1, &[text, &[byte]].concat(), literals);
    }
    for way in pattern.alternatives(at) {
        // Nothing begins with a new line.
        if text.is_empty() && way.symbols == 0 {
            continue;
        }
        let whole = way.spelling.len();
        let length = match telling {
            0 => whole,
            used => whole.min(LENGTH - used),
        };
        for written in first_bytes(&way, length) {
            let text = [text, &written].concat();
            if length == whole {
                extend(pattern, at + way.symbols as usize, &text, literals);
            } else {
                literals.push(text);
            }
        }
    }
}

/// The first bytes of a spelling, with its digits in every case.
fn first_bytes(way: &Alternative<'_>, length: usize) -> Vec<Vec<u8>> {
    let mut texts = vec![Vec::new()];
    for offset in 0..length {
        let bytes = way.spelling.bytes_at(offset);
        texts = texts
            .iter()
            .flat_map(|text| bytes.iter().map(move |byte| [&text[..], &[*byte]].concat()))
            .collect();
    }
    texts
}
