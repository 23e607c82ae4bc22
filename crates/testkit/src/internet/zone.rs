//! What the resolver of a small internet knows, changeable while it runs.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hickory_proto::rr::RecordType;

/// How a question about a name is answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) content: Content,
    pub(super) ttl: u32,
    pub(super) delay: Duration,
    pub(super) over_udp: OverUdp,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Addresses(Vec<IpAddr>),
    Alias(String),
    NoSuchName,
    ServerFailure,
    Silence,
}

/// What a question over UDP gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverUdp {
    TheAnswer,
    /// Nothing but the advice to ask over TCP.
    Truncated,
}

impl Answer {
    /// These addresses, of either kind.
    pub fn addresses(addresses: &[&str]) -> Self {
        let parsed = addresses
            .iter()
            .map(|text| text.parse().expect("an address"));
        Self::new(Content::Addresses(parsed.collect()))
    }

    /// Another name for `name`, whose addresses come along.
    pub fn alias(name: &str) -> Self {
        Self::new(Content::Alias(canonical(name)))
    }

    /// `NXDOMAIN`, like every name that was not set.
    pub fn no_such_name() -> Self {
        Self::new(Content::NoSuchName)
    }

    /// `SERVFAIL`.
    pub fn server_failure() -> Self {
        Self::new(Content::ServerFailure)
    }

    /// No answer at all.
    pub fn silence() -> Self {
        Self::new(Content::Silence)
    }

    /// Valid for this many seconds; 60 unless told.
    #[must_use]
    pub fn ttl(mut self, seconds: u32) -> Self {
        self.ttl = seconds;
        self
    }

    /// Only after a while.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Truncated over UDP.
    #[must_use]
    pub fn only_over_tcp(mut self) -> Self {
        self.over_udp = OverUdp::Truncated;
        self
    }

    fn new(content: Content) -> Self {
        Self {
            content,
            ttl: 60,
            delay: Duration::ZERO,
            over_udp: OverUdp::TheAnswer,
        }
    }
}

impl From<&str> for Answer {
    fn from(address: &str) -> Self {
        Self::addresses(&[address])
    }
}

impl<const N: usize> From<[&str; N]> for Answer {
    fn from(addresses: [&str; N]) -> Self {
        Self::addresses(&addresses)
    }
}

/// The names, shared with the resolver that answers from them.
#[derive(Debug, Clone, Default)]
pub struct Zone(Arc<Mutex<HashMap<String, Entry>>>);

#[derive(Debug)]
struct Entry {
    answers: Vec<Answer>,
    /// How often each kind of record was asked for.
    asked: HashMap<RecordType, usize>,
}

impl Zone {
    /// Answers every question about `name` like this from now on.
    pub fn set(&self, name: &str, answer: impl Into<Answer>) {
        self.set_in_turn(name, vec![answer.into()]);
    }

    /// Answers the first question about `name` with the first answer, the
    /// second with the second, and all later ones with the last. Each kind of
    /// record is counted on its own: clients ask for two at a time.
    pub fn set_in_turn(&self, name: &str, answers: Vec<Answer>) {
        assert!(!answers.is_empty(), "no answer for {name}");
        let entry = Entry {
            answers,
            asked: HashMap::new(),
        };
        self.entries().insert(canonical(name), entry);
    }

    /// Forgets a name, which then does not exist.
    pub fn remove(&self, name: &str) {
        self.entries().remove(&canonical(name));
    }

    /// The answer whose turn it is.
    pub(super) fn answer(&self, name: &str, kind: RecordType) -> Answer {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&canonical(name)) else {
            return Answer::no_such_name();
        };
        let asked = entry.asked.entry(kind).or_default();
        let turn = (*asked).min(entry.answers.len() - 1);
        *asked += 1;
        entry.answers[turn].clone()
    }

    /// The addresses of a name for a server of the internet itself, which
    /// takes nobody's turn.
    pub(super) fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let entries = self.entries();
        let last = |name: &str| entries.get(&canonical(name))?.answers.last();
        let mut found = last(name);
        for _ in 0..LONGEST_CHAIN {
            match found.map(|answer| &answer.content) {
                Some(Content::Addresses(addresses)) => return addresses.clone(),
                Some(Content::Alias(target)) => found = last(target),
                _ => break,
            }
        }
        Vec::new()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The longest chain of aliases that is followed.
pub(super) const LONGEST_CHAIN: usize = 16;

pub(super) fn canonical(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(answer: &Answer) -> String {
        match &answer.content {
            Content::Addresses(addresses) => format!("{addresses:?}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn answers_take_turns_by_kind_and_the_last_stays() {
        let zone = Zone::default();
        zone.set_in_turn("turns.test", vec!["1.1.1.1".into(), "10.0.0.1".into()]);
        for (kind, want) in [
            (RecordType::A, "[1.1.1.1]"),
            (RecordType::AAAA, "[1.1.1.1]"),
            (RecordType::A, "[10.0.0.1]"),
            (RecordType::A, "[10.0.0.1]"),
        ] {
            assert_eq!(addresses(&zone.answer("Turns.test.", kind)), want);
        }
    }

    #[test]
    fn names_come_and_go() {
        let zone = Zone::default();
        zone.set("one.test", ["1.1.1.1", "2a0f::1"]);
        zone.set("two.test", Answer::alias("ONE.test"));
        assert_eq!(zone.addresses("two.test").len(), 2);
        zone.remove("one.test.");
        assert!(zone.addresses("two.test").is_empty());
        let gone = zone.answer("one.test", RecordType::A);
        assert!(matches!(gone.content, Content::NoSuchName));
    }
}
