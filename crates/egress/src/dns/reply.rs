//! Writing one answer.
//!
//! There is at most one record of an address, a name or a zone besides the
//! question, so that no answer exceeds the 512 bytes which every client takes.

use std::net::IpAddr;

use ringfence_policy::HostName;

use super::query::{HEADER, Header, Query};
use super::record_type::RecordType;

/// Seconds for which an answer may be kept. The address stays the same for the
/// life of the sandbox; a new sandbox may come by under the same cache.
const KEEP: u32 = 60;
/// What a datagram may hold without being cut into pieces on any common path.
const PAYLOAD: u16 = 1232;
const IN: u16 = 1;
/// A name that stands at the start of the question.
const SAME_NAME: u16 = 0xc000 | HEADER;

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Address(IpAddr),
    Name(HostName),
    /// The name exists, without records of that type.
    NoData,
    NoSuchName,
    Failure(Failure),
}

/// Why nothing is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Malformed,
    Server,
    NotImplemented,
    Refused,
    ExtensionVersion,
}

impl Answer {
    /// The code of RFC 6895; all above 15 need EDNS.
    fn code(&self) -> u8 {
        match self {
            Self::Address(_) | Self::Name(_) | Self::NoData => 0,
            Self::NoSuchName => 3,
            Self::Failure(failure) => match failure {
                Failure::Malformed => 1,
                Failure::Server => 2,
                Failure::NotImplemented => 4,
                Failure::Refused => 5,
                Failure::ExtensionVersion => 16,
            },
        }
    }
}

/// The answer to `query`.
pub(super) fn reply(query: &Query<'_>, answer: &Answer) -> Vec<u8> {
    let positive = matches!(answer, Answer::Address(_) | Answer::Name(_));
    let negative = matches!(answer, Answer::NoData | Answer::NoSuchName);
    let counts = [
        1,
        u16::from(positive),
        u16::from(negative),
        u16::from(query.edns.is_some()),
    ];
    let mut writer = Writer::start(query.header, answer.code(), counts);
    writer.bytes.extend_from_slice(query.question);
    match answer {
        Answer::Address(IpAddr::V4(v4)) => writer.own_record(RecordType::A, &v4.octets()),
        Answer::Address(IpAddr::V6(v6)) => writer.own_record(RecordType::AAAA, &v6.octets()),
        Answer::Name(name) => writer.own_record(RecordType::PTR, &wire(name)),
        Answer::NoData | Answer::NoSuchName => writer.zone(),
        Answer::Failure(_) => {}
    }
    if let Some(edns) = query.edns {
        writer.extensions(answer.code(), edns.signatures_wanted);
    }
    writer.bytes
}

/// The answer to a message of which only the header could be read.
pub(super) fn bare_reply(header: Header, failure: Failure) -> Vec<u8> {
    Writer::start(header, Answer::Failure(failure).code(), [0; 4]).bytes
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn start(header: Header, code: u8, counts: [u16; 4]) -> Self {
        let mut writer = Self {
            bytes: Vec::with_capacity(512),
        };
        let flags = Header::RESPONSE | Header::RECURSION_AVAILABLE | header.echoed();
        writer.u16(header.id);
        writer.u16(flags | u16::from(code & 0xf));
        for count in counts {
            writer.u16(count);
        }
        writer
    }

    fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A record of the name that was asked for.
    fn own_record(&mut self, record_type: RecordType, data: &[u8]) {
        self.u16(SAME_NAME);
        self.record(record_type, data);
    }

    fn record(&mut self, record_type: RecordType, data: &[u8]) {
        self.u16(record_type.0);
        self.u16(IN);
        self.u32(KEEP);
        self.u16(u16::try_from(data.len()).unwrap_or(0));
        self.bytes.extend_from_slice(data);
    }

    /// The start of authority of the root, which tells for how long a negative
    /// answer may be kept (RFC 2308).
    fn zone(&mut self) {
        let [serial, refresh, retry, expire] = [1, 3600, 600, 86400_u32].map(u32::to_be_bytes);
        let numbers = [serial, refresh, retry, expire, KEEP.to_be_bytes()].concat();
        self.bytes.push(0);
        self.record(RecordType::SOA, &[&[0, 0], &numbers[..]].concat());
    }

    fn extensions(&mut self, code: u8, signatures_wanted: bool) {
        self.bytes.push(0);
        self.u16(RecordType::OPT.0);
        self.u16(PAYLOAD);
        let version = 0;
        self.bytes.extend_from_slice(&[code >> 4, version]);
        self.u16(u16::from(signatures_wanted) << 15);
        self.u16(0);
    }
}

/// A canonical name as labels with their lengths.
fn wire(name: &HostName) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.as_str().len() + 2);
    for label in name.as_str().split('.') {
        // A host name's label has at most 63 bytes.
        bytes.push(u8::try_from(label.len()).unwrap_or(0));
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
