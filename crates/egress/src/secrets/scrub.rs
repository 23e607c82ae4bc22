//! Hides secret values in what comes back.
//!
//! Whatever is part of a value in any of its forms is left out, also where two
//! occurrences overlap, and where only a long part of one is there. Bytes are
//! held back only from where a form may begin, for as long as it may be; how
//! the stream is cut changes nothing. Parts that begin later in a value are not
//! waited for before they are long enough: what came of them in pieces before
//! that has passed.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use bytes::{Buf, BufMut, BytesMut};

use super::matcher::{Match, Matcher, Run};
use super::pattern::{Case, Extent};

/// What is shown where there is no placeholder.
pub(crate) const REDACTED: &str = "[redacted]";
/// What fills the place of a value whose length is kept.
const FILLING: u8 = b'*';

/// A value and what is shown instead.
#[derive(Clone, Copy)]
pub(crate) struct Hidden<'a> {
    /// Of at least 8 bytes: shorter ones are looked for as they are, and would
    /// be found everywhere if they were looked for encoded.
    pub(crate) value: &'a str,
    pub(crate) shown: &'a str,
}

/// Every form of some secret values, compiled: as they are, in URLs, JSON and
/// HTML with any of their characters escaped, in capitals or not, in UTF-16, in
/// hex, and within base64.
pub(crate) struct Forms {
    chunks: Vec<Chunk>,
    shown: Vec<Box<str>>,
}

/// Values that were compiled together. Their numbers are powers of two, each
/// chunk larger than the next, so that one more value seldom means that many
/// have to be compiled again.
#[derive(Clone)]
struct Chunk {
    /// The number of the first.
    first: usize,
    count: usize,
    matcher: Arc<Matcher>,
}

impl Forms {
    pub(crate) fn of_secrets(values: &[Hidden<'_>]) -> Self {
        Self::of(values, Extent::Parts)
    }

    /// The same for values the first of which are those of `known`.
    pub(crate) fn grown(known: &Self, values: &[Hidden<'_>]) -> Self {
        Self::from_chunks(&known.chunks, values, Extent::Parts)
    }

    pub(super) fn of(values: &[Hidden<'_>], extent: Extent) -> Self {
        Self::from_chunks(&[], values, extent)
    }

    fn from_chunks(known: &[Chunk], values: &[Hidden<'_>], extent: Extent) -> Self {
        let mut chunks = Vec::new();
        let mut first = 0;
        while first < values.len() {
            // The highest bit of what is left.
            let count = 1 << (values.len() - first).ilog2();
            let same = |chunk: &&Chunk| (chunk.first, chunk.count) == (first, count);
            chunks.push(known.iter().find(same).cloned().unwrap_or_else(|| {
                let texts = values[first..first + count].iter().map(|one| one.value);
                Chunk {
                    first,
                    count,
                    matcher: Arc::new(Matcher::new(texts, Case::Matters, extent)),
                }
            }));
            first += count;
        }
        Self {
            chunks,
            shown: values.iter().map(|one| one.shown.into()).collect(),
        }
    }

    /// A whole text without the values.
    pub(crate) fn scrub<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        self.scrub_noting(text, &mut Findings::default())
    }

    /// The same, with what was found in it.
    pub(crate) fn scrub_noting<'a>(&self, text: &'a [u8], found: &mut Findings) -> Cow<'a, [u8]> {
        let mut progress = Progress::default();
        progress.read(&self.chunks, text);
        found.near += progress.take_near();
        if progress.found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = BytesMut::with_capacity(text.len());
        let end = progress.position;
        progress.pass(end, text, &mut self.sink(Filling::Shown, &mut out));
        found.finds.append(&mut progress.left_out);
        Cow::Owned(out.into())
    }

    fn sink<'a>(&'a self, filling: Filling, out: &'a mut BytesMut) -> Sink<'a> {
        Sink {
            shown: &self.shown,
            filling,
            out,
        }
    }
}

/// What takes the place of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filling {
    /// What is shown instead.
    Shown,
    /// As many bytes as the value has.
    SameLength,
}

/// Scrubs one stream.
pub(crate) struct Scrubber {
    forms: Arc<Forms>,
    filling: Filling,
    progress: Progress,
    /// What came and was not passed on.
    held: BytesMut,
}

impl Scrubber {
    pub(crate) fn new(forms: Arc<Forms>) -> Self {
        Self {
            forms,
            filling: Filling::Shown,
            progress: Progress::default(),
            held: BytesMut::new(),
        }
    }

    /// Puts as many bytes in as are taken out, for streams that tell lengths.
    pub(crate) fn keeping_lengths(self) -> Self {
        Self {
            filling: Filling::SameLength,
            ..self
        }
    }

    /// What was left out, and came near, since this was last asked.
    pub(crate) fn take_found(&mut self) -> Findings {
        Findings {
            finds: std::mem::take(&mut self.progress.left_out),
            near: self.progress.take_near(),
        }
    }

    /// Takes the next bytes, and appends to `out` what may pass.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut BytesMut) {
        self.progress.read(&self.forms.chunks, bytes);
        let safe = self.progress.safe(&self.forms.chunks);
        let mut sink = self.forms.sink(self.filling, out);
        if self.held.is_empty() {
            let passed = self.progress.pass(safe, bytes, &mut sink);
            self.held.extend_from_slice(&bytes[passed..]);
        } else {
            self.held.extend_from_slice(bytes);
            let passed = self.progress.pass(safe, &self.held, &mut sink);
            self.held.advance(passed);
        }
    }

    /// Lets go of the last bytes where they are no more than the first few of a
    /// value. To be called when nothing follows for now: whoever waits for them
    /// may be waited for in turn. If the rest of the value follows, it is
    /// hidden.
    pub(crate) fn release(&mut self, out: &mut BytesMut) {
        if self.progress.is_harmless(&self.forms.chunks) {
            self.pass_all(out);
        }
    }

    /// Lets go of all that is held back. What goes on as a value after it is
    /// hidden from there on.
    pub(crate) fn let_go(&mut self, out: &mut BytesMut) {
        self.pass_all(out);
    }

    /// Ends the stream: what is still held back is no value.
    pub(crate) fn finish(&mut self, out: &mut BytesMut) {
        self.pass_all(out);
        let left_out = std::mem::take(&mut self.progress.left_out);
        let near = self.progress.take_near();
        self.progress = Progress {
            left_out,
            near,
            ..Progress::default()
        };
    }

    /// Something came that was not passed on yet.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Nothing that came can become a value any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.progress.runs.iter().all(Run::is_clear)
    }

    fn pass_all(&mut self, out: &mut BytesMut) {
        let end = self.progress.position;
        let mut sink = self.forms.sink(self.filling, out);
        self.progress.pass(end, &self.held, &mut sink);
        self.held.clear();
    }
}

/// What was found in a stream.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What was left out.
    pub(crate) finds: Vec<Find>,
    /// How often something came near a value, and may have been it or not.
    pub(crate) near: u64,
}

/// Something that was left out, of whatever occurrences lie in one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Find {
    /// The number of the value.
    pub(crate) value: usize,
    /// A whole value was among them, not only a part of one.
    pub(crate) is_whole: bool,
}

/// How far a stream was read and passed on. Positions are those in the stream.
#[derive(Default)]
struct Progress {
    /// One for each chunk.
    runs: Vec<Run>,
    /// How many bytes came so far.
    position: u64,
    /// Occurrences that were not passed yet.
    found: Vec<Match>,
    /// The first byte that was neither passed on nor left out.
    passed: u64,
    /// The end of the last occurrence.
    covered: u64,
    /// Nobody was told of these yet.
    left_out: Vec<Find>,
    /// Nor of what streams that have ended came near.
    near: u64,
}

/// Where the rest goes.
struct Sink<'a> {
    shown: &'a [Box<str>],
    filling: Filling,
    out: &'a mut BytesMut,
}

impl Progress {
    fn read(&mut self, chunks: &[Chunk], bytes: &[u8]) {
        self.runs.resize_with(chunks.len(), Run::default);
        let found = &mut self.found;
        for (run, chunk) in self.runs.iter_mut().zip(chunks) {
            run.feed(&chunk.matcher, bytes, &mut |one| {
                let owner = chunk.first + one.owner;
                found.push(Match { owner, ..one });
            });
        }
        self.position += bytes.len() as u64;
    }

    fn take_near(&mut self) -> u64 {
        let runs = self.runs.iter_mut().map(Run::take_near);
        runs.sum::<u64>() + std::mem::take(&mut self.near)
    }

    fn is_harmless(&self, chunks: &[Chunk]) -> bool {
        let mut runs = self.runs.iter().zip(chunks);
        runs.all(|(run, chunk)| run.is_harmless(&chunk.matcher))
    }

    /// What is before this cannot become a value any more.
    fn safe(&self, chunks: &[Chunk]) -> u64 {
        let runs = self.runs.iter().zip(chunks);
        let earliest = runs.filter_map(|(run, chunk)| run.earliest(&chunk.matcher));
        earliest.min().unwrap_or(self.position)
    }

    /// Passes what is before `end`. `bytes` are the last that came; returns how
    /// many of them are done with.
    fn pass(&mut self, end: u64, bytes: &[u8], sink: &mut Sink<'_>) -> usize {
        let window = Window {
            start: self.position - bytes.len() as u64,
            bytes,
        };
        // Of two that begin together the longer one is the value meant.
        self.found
            .sort_unstable_by_key(|one| (one.start, Reverse(one.end)));
        let ready = self.found.partition_point(|one| one.start < end);
        let found = std::mem::take(&mut self.found);
        for one in &found[..ready] {
            self.copy(one.start, &window, sink);
            self.leave_out(*one, sink);
        }
        self.found.extend_from_slice(&found[ready..]);
        self.copy(end, &window, sink);
        window.offset(self.passed)
    }

    fn copy(&mut self, end: u64, window: &Window<'_>, sink: &mut Sink<'_>) {
        if self.passed < end {
            let bytes = &window.bytes[window.offset(self.passed)..window.offset(end)];
            sink.out.extend_from_slice(bytes);
            self.passed = end;
        }
    }

    fn leave_out(&mut self, one: Match, sink: &mut Sink<'_>) {
        let continues = one.start < self.covered;
        self.note(one, continues);
        let left = one.end.saturating_sub(self.passed);
        match sink.filling {
            Filling::SameLength => {
                let left = usize::try_from(left).unwrap_or(0);
                sink.out.put_bytes(FILLING, left);
            }
            // What overlaps the last one continues it.
            Filling::Shown if !continues => {
                sink.out.extend_from_slice(sink.shown[one.owner].as_bytes());
            }
            Filling::Shown => {}
        }
        self.passed = self.passed.max(one.end);
        self.covered = self.covered.max(one.end);
    }

    fn note(&mut self, one: Match, continues: bool) {
        let find = Find {
            value: one.owner,
            is_whole: one.is_whole,
        };
        match self.left_out.last_mut().filter(|_| continues) {
            Some(last) if one.is_whole && !last.is_whole => *last = find,
            Some(_) => {}
            // Its beginning was told of before.
            None if continues && !one.is_whole => {}
            None => self.left_out.push(find),
        }
    }
}

/// The last bytes of a stream, and where the first of them is in it.
struct Window<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Window<'_> {
    /// Where in the bytes a position of the stream is.
    fn offset(&self, position: u64) -> usize {
        let offset = position.saturating_sub(self.start);
        usize::try_from(offset).map_or(self.bytes.len(), |offset| offset.min(self.bytes.len()))
    }
}
