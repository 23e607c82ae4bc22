//! What a question is answered with, and who hears of it.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use ringfence_policy::HostName;

use super::query::{Query, Unreadable};
use super::record_type::RecordType;
use super::reply::{Answer, Failure, bare_reply, reply};
use crate::names::{Family, Named, Names};

const IN: u16 = 1;

/// A question about a name, of whatever type.
#[derive(Debug)]
pub(crate) struct Lookup<'a> {
    pub(crate) name: &'a HostName,
}

/// Who hears of every lookup before it is answered.
pub(crate) trait Lookups {
    /// A failure to write it down leaves the question without an answer.
    fn looked_up(&self, lookup: &Lookup<'_>) -> io::Result<()>;

    /// A name was turned away, because there are `most` already. Told once.
    fn too_many_names(&self, most: usize);
}

/// Answers questions from one sandbox.
#[derive(Clone)]
pub(crate) struct NameServer {
    names: Rc<RefCell<Names>>,
    lookups: Rc<dyn Lookups>,
}

impl NameServer {
    pub(crate) fn new(names: Rc<RefCell<Names>>, lookups: Rc<dyn Lookups>) -> Self {
        Self { names, lookups }
    }

    /// The answer to one message, at most 512 bytes long; `None` when there
    /// should be none.
    pub(crate) fn answer(&self, message: &[u8]) -> Option<Vec<u8>> {
        match Query::read(message) {
            Ok(query) => Some(reply(&query, &self.judged(&query))),
            Err(Unreadable::NotAQuestion) => None,
            Err(Unreadable::Malformed(header)) => Some(bare_reply(header, Failure::Malformed)),
            Err(Unreadable::OtherOperation(header)) => {
                Some(bare_reply(header, Failure::NotImplemented))
            }
        }
    }

    fn judged(&self, query: &Query<'_>) -> Answer {
        if let Some(failure) = unanswerable(query) {
            return Answer::Failure(failure);
        }
        if query.name.is_root() {
            return Answer::NoData;
        }
        let Some(name) = query.name.host() else {
            return Answer::NoSuchName;
        };
        if query.record_type == RecordType::PTR && is_reverse(&name) {
            return self.name_at(&name);
        }
        if self.lookups.looked_up(&Lookup { name: &name }).is_err() {
            return Answer::Failure(Failure::Server);
        }
        match query.record_type {
            RecordType::A => self.address_of(&name, Family::V4),
            RecordType::AAAA => self.address_of(&name, Family::V6),
            _ => Answer::NoData,
        }
    }

    fn address_of(&self, name: &HostName, family: Family) -> Answer {
        let mut names = self.names.borrow_mut();
        let address = names.address_of(name, family);
        let overflow = names.overflow_to_tell();
        drop(names);
        if let Some(most) = overflow {
            self.lookups.too_many_names(most);
        }
        address.map_or(Answer::Failure(Failure::Server), Answer::Address)
    }

    fn name_at(&self, reverse: &HostName) -> Answer {
        let address = reversed_v4(reverse.as_str()).or_else(|| reversed_v6(reverse.as_str()));
        match address.map(|address| self.names.borrow().name_of(address)) {
            Some(Named::Name(name)) => Answer::Name(name),
            Some(Named::Unknown | Named::NotVirtual) | None => Answer::NoSuchName,
        }
    }
}

/// What no name server of this kind would answer.
fn unanswerable(query: &Query<'_>) -> Option<Failure> {
    if query.edns.is_some_and(|edns| edns.version > 0) {
        return Some(Failure::ExtensionVersion);
    }
    if query.class != IN {
        return Some(Failure::Refused);
    }
    match query.record_type.0 {
        // Nothing, and the record of EDNS itself.
        0 | 41 => Some(Failure::Malformed),
        // Keys and signatures of transactions, and the mail records of 1983.
        249 | 250 | 253 | 254 => Some(Failure::NotImplemented),
        // Transfers of a zone.
        251 | 252 => Some(Failure::Refused),
        _ => None,
    }
}

const REVERSE_V4: &str = ".in-addr.arpa";
const REVERSE_V6: &str = ".ip6.arpa";

fn is_reverse(name: &HostName) -> bool {
    name.as_str().ends_with(REVERSE_V4) || name.as_str().ends_with(REVERSE_V6)
}

fn reversed_v4(name: &str) -> Option<IpAddr> {
    let numbers: Vec<&str> = name.strip_suffix(REVERSE_V4)?.rsplit('.').collect();
    let address: Ipv4Addr = numbers.join(".").parse().ok()?;
    Some(address.into())
}

fn reversed_v6(name: &str) -> Option<IpAddr> {
    let mut bits = 0;
    let mut count = 0;
    for digit in name.strip_suffix(REVERSE_V6)?.rsplit('.') {
        if digit.len() != 1 || count == 32 {
            return None;
        }
        bits = bits << 4 | u128::from_str_radix(digit, 16).ok()?;
        count += 1;
    }
    (count == 32).then(|| Ipv6Addr::from_bits(bits).into())
}

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
