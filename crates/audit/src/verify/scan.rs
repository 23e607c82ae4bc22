//! [`Scan`]: goes through the lines once and says which does not fit.

use super::Verification;
use super::noted::{Noted, Search};
use super::problem::{Place, ProblemKind, Problems};
use super::runs::{Runs, Standing};
use super::snapshot::{Line, Snapshot};
use crate::chain::{End, Head, Header, Record, sum};
use crate::event::{BreakReason, ChainBroken, Digest, EventKind};
use crate::log::{HEAD, KEY, segment_name};

/// The most lines of a file whose beginnings are remembered.
const MOST_OFFSETS: usize = 1 << 20;

/// The record before.
#[derive(Debug, Clone)]
struct Last {
    seq: u64,
    /// Not known of a line that cannot be read.
    hash: Option<Digest>,
    place: Place,
}

/// A record that names another sum than the one before has: which of the two
/// was altered shows with the next.
#[derive(Debug)]
struct Suspect {
    before: Place,
    this: Place,
    hash: Digest,
}

#[derive(Debug)]
pub(super) struct Scan {
    head: Option<Head>,
    /// Where the newest file ends, as far as it is ours.
    end: Option<End>,
    /// Our part of the newest file.
    ours: u64,
    problems: Problems,
    runs: Runs,
    file: Place,
    is_newest: bool,
    offsets: Vec<u64>,
    last: Option<Last>,
    last_line: Vec<u8>,
    suspect: Option<Suspect>,
    records: u64,
    files: usize,
    first_seq: Option<u64>,
    has_foreign: bool,
    search: Option<Search>,
}

impl Scan {
    pub(super) fn new(snapshot: &Snapshot, noted: Option<Noted>) -> Self {
        let head = snapshot.head.as_deref();
        let key = snapshot.key.as_ref();
        let decoded = head
            .zip(key)
            .and_then(|(head, key)| Head::decode(head, key));
        let mut problems = Problems::default();
        let is_anything = !snapshot.files.is_empty() || head.is_some() || key.is_some();
        match (key, head, &decoded) {
            (None, ..) if is_anything => problems.add(Place::whole(KEY), ProblemKind::KeyMissing),
            (Some(_), None, _) => problems.add(Place::whole(HEAD), ProblemKind::HeadMissing),
            (Some(_), Some(_), None) => problems.add(Place::whole(HEAD), ProblemKind::HeadAltered),
            _ => {}
        }
        let size = snapshot.newest.unwrap_or(0);
        let end = decoded.as_ref().and_then(|head| end_of(head, size));
        Self {
            ours: decoded.as_ref().map_or(u64::MAX, |head| head.last().length),
            end,
            head: decoded,
            problems,
            runs: Runs::new(snapshot.key.clone()),
            file: Place::whole(""),
            is_newest: false,
            offsets: Vec::new(),
            last: None,
            last_line: Vec::new(),
            suspect: None,
            records: 0,
            files: snapshot.files.len(),
            first_seq: None,
            has_foreign: false,
            search: noted.map(Search::new),
        }
    }

    pub(super) fn begin_file(&mut self, order: usize, name: &str) {
        self.file = Place {
            file: name.to_owned(),
            line: 0,
            seq: None,
            order,
        };
        self.is_newest = name == segment_name(0);
        self.offsets.clear();
    }

    pub(super) fn line(&mut self, line: Line<'_>) {
        self.file.line += 1;
        if self.offsets.len() < MOST_OFFSETS {
            self.offsets.push(line.offset);
        }
        let header = Header::parse(line.bytes).filter(|_| !line.is_too_long);
        let place = self.place(header.map(|header| header.seq));
        if self.is_newest && line.offset >= self.ours {
            self.beyond(line.bytes, place);
            return;
        }
        match header {
            Some(header) if line.bytes.ends_with(b"\n") => self.record(header, line.bytes, place),
            _ => self.unreadable(place, line.bytes),
        }
    }

    /// A line beyond the end that the head knows.
    fn beyond(&mut self, bytes: &[u8], place: Place) {
        let is_again = !bytes.is_empty() && bytes == self.last_line;
        if !std::mem::replace(&mut self.has_foreign, true) {
            let kind = if is_again {
                ProblemKind::Duplicated
            } else {
                ProblemKind::Foreign
            };
            self.problems.add(place, kind);
        }
    }

    fn place(&self, seq: Option<u64>) -> Place {
        Place {
            seq,
            ..self.file.clone()
        }
    }

    /// A line that is no record stands in the place of one.
    fn unreadable(&mut self, mut place: Place, bytes: &[u8]) {
        let is_unfinished = self.is_newest
            && !bytes.ends_with(b"\n")
            && self.head.as_ref().is_some_and(|head| head.next.is_some());
        if is_unfinished {
            // A writer was killed; the next one cuts this off.
            return;
        }
        self.settle(None);
        let seq = self.last.as_ref().map_or(1, |last| last.seq + 1);
        place.seq = Some(seq);
        let kind = match self.end {
            _ if bytes.ends_with(b"\n") => ProblemKind::Altered,
            Some(end) if self.is_newest => ProblemKind::Truncated { to: end.seq },
            _ => ProblemKind::Truncated { to: seq },
        };
        self.problems.add(place.clone(), kind);
        self.last = Some(Last {
            seq,
            hash: None,
            place,
        });
        self.last_line.clear();
    }

    fn record(&mut self, header: Header<'_>, line: &[u8], place: Place) {
        let hash = sum(line);
        self.settle(Some(header.prev));
        if let Some(search) = &mut self.search
            && search.is_another(header.seq, hash)
        {
            self.problems.add(place.clone(), ProblemKind::NotAsNoted);
        }
        if self.first_seq.is_none() {
            self.first(header, &place);
        }
        let broken = (header.kind == "chain-broken")
            .then(|| parse_broken(line))
            .flatten();
        let seq = match (broken, self.last.clone()) {
            (Some(broken), _) => {
                self.broken(&broken, &place);
                Some(header.seq)
            }
            (None, Some(last)) => self.follows(&last, header, hash, &place),
            (None, None) => Some(header.seq),
        };
        let Some(seq) = seq else {
            return;
        };
        self.records += 1;
        match self
            .runs
            .add((header.run, header.seq, header.kind), line, hash)
        {
            Standing::Fine => {}
            Standing::AfterSeal => self.problems.add(place.clone(), ProblemKind::Foreign),
            Standing::WrongSeal => self.problems.add(place.clone(), ProblemKind::WrongSeal),
        }
        self.last = Some(Last {
            seq,
            hash: Some(hash),
            place,
        });
        self.last_line.clear();
        self.last_line.extend_from_slice(line);
    }

    /// The first record of the log.
    fn first(&mut self, header: Header<'_>, place: &Place) {
        self.first_seq = Some(header.seq);
        self.runs.is_complete = header.seq == 1;
        if header.seq == 1 && header.prev != Digest::ZEROS && self.last.is_none() {
            self.problems.add(place.clone(), ProblemKind::Altered);
        }
        let oldest = self.head.as_ref().map_or(0, |head| head.first);
        if header.seq > oldest && oldest > 0 && self.last.is_none() {
            let kind = ProblemKind::Missing {
                from: oldest,
                to: header.seq - 1,
            };
            self.problems.add(place.clone(), kind);
        }
    }

    /// The number of a record, if it takes its place after the last one.
    fn follows(
        &mut self,
        last: &Last,
        header: Header<'_>,
        hash: Digest,
        place: &Place,
    ) -> Option<u64> {
        let next = last.seq + 1;
        let is_tied = last.hash.is_none_or(|hash| hash == header.prev);
        if header.seq == next {
            self.suspect = (!is_tied).then(|| Suspect {
                before: last.place.clone(),
                this: place.clone(),
                hash,
            });
            return Some(next);
        }
        if is_tied && last.hash.is_some() {
            self.problems.add(place.clone(), ProblemKind::Altered);
            return Some(next);
        }
        if header.seq < next {
            if !self.problems.find_missing(header.seq) {
                self.problems.add(place.clone(), ProblemKind::Duplicated);
            }
            return None;
        }
        if has_two_beginnings(&self.last_line) {
            self.problems.add(last.place.clone(), ProblemKind::Altered);
        }
        let kind = ProblemKind::Missing {
            from: next,
            to: header.seq - 1,
        };
        self.problems.add(place.clone(), kind);
        Some(header.seq)
    }

    /// A writer found the log altered, and said so.
    fn broken(&mut self, broken: &ChainBroken, place: &Place) {
        if broken.why == BreakReason::Appended {
            let before = self.offsets.partition_point(|it| *it < broken.our_bytes);
            let foreign = Place {
                line: before as u64 + 1,
                seq: Some(broken.after_seq + 1),
                ..place.clone()
            };
            self.problems.forget_from(&foreign);
            self.problems.add(foreign, ProblemKind::Foreign);
            return;
        }
        let last = self.last.as_ref().map_or(0, |last| last.seq);
        if last < broken.after_seq && self.last.is_some() {
            let kind = ProblemKind::Missing {
                from: last + 1,
                to: broken.after_seq,
            };
            self.problems.add(place.clone(), kind);
        }
        let why = broken.why;
        self.problems
            .add(place.clone(), ProblemKind::Broken { why });
    }

    /// Decides which of two records was altered: the later one is as it was
    /// written if the next one names its sum.
    fn settle(&mut self, next: Option<Digest>) {
        if let Some(suspect) = self.suspect.take() {
            let place = match next {
                Some(next) if next == suspect.hash => suspect.before,
                _ => suspect.this,
            };
            self.problems.add(place, ProblemKind::Altered);
        }
    }

    pub(super) fn finish(mut self) -> Verification {
        self.settle(self.end.map(|end| end.hash));
        self.check_end();
        self.check_noted();
        let (sealed_runs, unsealed_runs) = self.runs.finish();
        let (problems, more_problems) = self.problems.sorted();
        Verification {
            records: self.records,
            files: self.files,
            first_seq: self.first_seq,
            last_seq: self.last.as_ref().map(|last| last.seq),
            last_sum: self.last.and_then(|last| last.hash),
            sealed_runs,
            unsealed_runs,
            problems,
            more_problems,
        }
    }

    /// Whether the noted record was there, in one form or another.
    fn check_noted(&mut self) {
        let Some(search) = self.search.filter(|search| !search.is_found) else {
            return;
        };
        if !self.problems.has_kind(ProblemKind::NotAsNoted) {
            let noted = search.noted.seq;
            let kind = ProblemKind::NotedMissing { noted };
            self.problems.add(Place::whole(&segment_name(0)), kind);
        }
    }

    /// Whether the log ends where the head says.
    fn check_end(&mut self) {
        let Some(end) = self.end else {
            return;
        };
        let last = self.last.as_ref();
        let (seq, hash) = last.map_or((0, Some(Digest::ZEROS)), |last| (last.seq, last.hash));
        let place = last.map_or_else(|| self.place(None), |last| last.place.clone());
        if self.has_foreign || self.problems.has(&place) {
            return;
        }
        if seq < end.seq {
            let kind = ProblemKind::Truncated { to: end.seq };
            self.problems.add(place, kind);
        } else if seq > end.seq {
            self.problems.add(place, ProblemKind::Foreign);
        } else if hash.is_some_and(|hash| hash != end.hash) {
            self.problems.add(place, ProblemKind::Altered);
        }
    }
}

/// The end that the log should have. None while a writer was killed within an
/// append: what it left is not worth an alarm.
fn end_of(head: &Head, size: u64) -> Option<End> {
    let is_within = |next: End| (head.end.length + 1..next.length).contains(&size);
    match head.next {
        Some(next) if is_within(next) => None,
        Some(next) if size >= next.length => Some(next),
        _ => Some(head.end),
    }
}

/// Whether a line has swallowed the next one. The quotes make sure that this is
/// not in a text, where they would be escaped.
fn has_two_beginnings(line: &[u8]) -> bool {
    let beginning = b"{\"version\":";
    let mut places = line.windows(beginning.len());
    places
        .rposition(|place| place == beginning)
        .is_some_and(|at| at > 0)
}

fn parse_broken(line: &[u8]) -> Option<ChainBroken> {
    let record: Record = serde_json::from_slice(line).ok()?;
    match record.event.kind {
        EventKind::ChainBroken(broken) => Some(broken),
        _ => None,
    }
}
