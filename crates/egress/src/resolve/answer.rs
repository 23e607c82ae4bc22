//! What an answer says about one name.
//!
//! Only records that belong to the name count, or to what it is an alias of,
//! as far as the same answer says that. An alias whose end is missing has no
//! address: its target was not judged, so that nobody asks for it.

use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};

const MOST_ALIASES: usize = 16;
const KEEP: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
const KEEP_NOTHING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// For a negative answer that does not say for how long it holds.
const KEEP_UNSAID: u32 = 5;

/// What is known about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) existence: Existence,
    pub(super) addresses: Vec<IpAddr>,
    /// For how long this holds.
    pub(super) keep: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existence {
    Yes,
    No,
}

impl Found {
    /// Reads an answer with the code `NOERROR` or `NXDOMAIN`.
    pub(super) fn read(answer: &Message, name: &Name, record_type: RecordType) -> Self {
        let (addresses, seconds) = follow(answer, name, record_type);
        if addresses.is_empty() {
            return Self::nothing(answer);
        }
        Self {
            existence: Existence::Yes,
            addresses,
            keep: seconds.clamp(KEEP.0, KEEP.1),
        }
    }

    fn nothing(answer: &Message) -> Self {
        let said = answer
            .authorities
            .iter()
            .find_map(|record| match &record.data {
                RData::SOA(zone) => Some(zone.minimum.min(record.ttl)),
                _ => None,
            });
        let seconds = Duration::from_secs(said.unwrap_or(KEEP_UNSAID).into());
        Self {
            existence: match answer.metadata.response_code {
                ResponseCode::NXDomain => Existence::No,
                _ => Existence::Yes,
            },
            addresses: Vec::new(),
            keep: seconds.clamp(KEEP_NOTHING.0, KEEP_NOTHING.1),
        }
    }

    pub(super) fn has_addresses(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// What two answers about the same name say together.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.addresses.extend(other.addresses);
        if other.existence == Existence::Yes {
            self.existence = Existence::Yes;
        }
        self.keep = self.keep.min(other.keep);
        self
    }

    pub(super) fn kept_for_at_most(mut self, keep: Duration) -> Self {
        self.keep = self.keep.min(keep);
        self
    }
}

/// The addresses at the end of the aliases, and for how long all of it holds.
fn follow(answer: &Message, name: &Name, record_type: RecordType) -> (Vec<IpAddr>, Duration) {
    let mut name = name;
    let mut seconds = u32::MAX;
    for _ in 0..MOST_ALIASES {
        let own = || answer.answers.iter().filter(|record| record.name == *name);
        let records = own().filter(|record| record.record_type() == record_type);
        let addresses: Vec<_> = records.clone().filter_map(address).collect();
        if !addresses.is_empty() {
            seconds = records.map(|record| record.ttl).fold(seconds, u32::min);
            return (addresses, Duration::from_secs(seconds.into()));
        }
        let Some((target, ttl)) = own().find_map(alias) else {
            break;
        };
        (name, seconds) = (target, seconds.min(ttl));
    }
    (Vec::new(), Duration::ZERO)
}

fn address(record: &Record) -> Option<IpAddr> {
    record.data.ip_addr().map(|address| address.to_canonical())
}

fn alias(record: &Record) -> Option<(&Name, u32)> {
    match &record.data {
        RData::CNAME(target) => Some((&target.0, record.ttl)),
        _ => None,
    }
}
