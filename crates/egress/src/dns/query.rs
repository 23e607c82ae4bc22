//! Reading one question from hostile bytes.
//!
//! Every byte is looked at once and no pointer is ever followed: there is
//! nothing before the first question that a name could continue at.

use ringfence_policy::HostName;

use super::record_type::RecordType;

/// Bytes of a message's header.
pub(super) const HEADER: u16 = 12;
/// A question needs one, and some clients send two.
const MOST_FURTHER_RECORDS: u16 = 4;
const LONGEST_NAME: usize = 255;
const LONGEST_LABEL: u8 = 63;

/// The first bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: u16,
    flags: u16,
}

impl Header {
    pub(super) const RESPONSE: u16 = 1 << 15;
    pub(super) const RECURSION_DESIRED: u16 = 1 << 8;
    pub(super) const RECURSION_AVAILABLE: u16 = 1 << 7;
    pub(super) const CHECKING_DISABLED: u16 = 1 << 4;
    pub(super) const OPERATION: u16 = 0xf << 11;

    pub(super) fn has(self, bit: u16) -> bool {
        self.flags & bit != 0
    }

    /// What of the flags an answer repeats.
    pub(super) fn echoed(self) -> u16 {
        self.flags & (Self::OPERATION | Self::RECURSION_DESIRED | Self::CHECKING_DISABLED)
    }
}

/// One question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Query<'a> {
    pub(super) header: Header,
    /// Name, type and class exactly as they came, for the answer to repeat.
    pub(super) question: &'a [u8],
    pub(super) name: WireName<'a>,
    pub(super) record_type: RecordType,
    pub(super) class: u16,
    pub(super) edns: Option<Edns>,
}

/// What the asker says about extensions (RFC 6891).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edns {
    pub(super) version: u8,
    /// Kept in the answer, as RFC 3225 wants it.
    pub(super) signatures_wanted: bool,
}

/// Why there is no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Not even a header, or an answer: say nothing, so that no two servers can
    /// be made to talk to each other.
    NotAQuestion,
    /// An operation other than asking.
    OtherOperation(Header),
    /// A header, and nonsense behind it.
    Malformed(Header),
}

impl<'a> Query<'a> {
    pub(super) fn read(message: &'a [u8]) -> Result<Self, Unreadable> {
        let mut reader = Reader { rest: message };
        let (header, counts) = reader.header().ok_or(Unreadable::NotAQuestion)?;
        if header.has(Header::RESPONSE) {
            return Err(Unreadable::NotAQuestion);
        }
        if header.has(Header::OPERATION) {
            return Err(Unreadable::OtherOperation(header));
        }
        let [1, 0, 0, further @ ..=MOST_FURTHER_RECORDS] = counts else {
            return Err(Unreadable::Malformed(header));
        };
        Self::body(message, header, reader, further).ok_or(Unreadable::Malformed(header))
    }

    fn body(
        message: &'a [u8],
        header: Header,
        mut reader: Reader<'a>,
        further: u16,
    ) -> Option<Self> {
        let name = reader.name()?;
        let record_type = RecordType(reader.u16()?);
        let class = reader.u16()?;
        let question = message.get(HEADER.into()..message.len() - reader.rest.len())?;
        let mut edns = None;
        for _ in 0..further {
            let record = reader.further_record()?;
            if let Further::Edns(found) = record
                && edns.replace(found).is_some()
            {
                return None;
            }
        }
        reader.rest.is_empty().then_some(Self {
            header,
            question,
            name,
            record_type,
            class,
            edns,
        })
    }
}

/// A name as labels with their lengths, whole and without pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WireName<'a>(&'a [u8]);

impl<'a> WireName<'a> {
    pub(super) fn is_root(self) -> bool {
        self.0 == [0]
    }

    /// The name in canonical form, if it can be a host's.
    ///
    /// A label may hold any byte, also a dot: taken into text such a name would
    /// become another one. Only what hosts are called is therefore let through.
    pub(super) fn host(self) -> Option<HostName> {
        let mut text = String::with_capacity(self.0.len());
        for label in self.labels() {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
            if !label.iter().all(plain) {
                return None;
            }
            text.extend(label.iter().copied().map(char::from));
            text.push('.');
        }
        HostName::parse(&text).ok()
    }

    fn labels(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first()?;
            let (label, behind) = behind.split_at_checked(usize::from(*length))?;
            rest = behind;
            (!label.is_empty()).then_some(label)
        })
    }
}

/// What has not been read yet.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?.try_into().ok()?;
        Some(u16::from_be_bytes(bytes))
    }

    /// The header and how many records of each section follow.
    fn header(&mut self) -> Option<(Header, [u16; 4])> {
        let header = Header {
            id: self.u16()?,
            flags: self.u16()?,
        };
        Some((header, [self.u16()?, self.u16()?, self.u16()?, self.u16()?]))
    }

    fn name(&mut self) -> Option<WireName<'a>> {
        let whole = self.rest;
        loop {
            let length = self.u8()?;
            if length > LONGEST_LABEL {
                return None;
            }
            self.take(usize::from(length))?;
            let read = whole.len() - self.rest.len();
            if read > LONGEST_NAME {
                return None;
            }
            if length == 0 {
                return whole.get(..read).map(WireName);
            }
        }
    }

    /// A record of the last section. All but EDNS are passed over.
    fn further_record(&mut self) -> Option<Further> {
        let name = self.name()?;
        let record_type = RecordType(self.u16()?);
        let _payload_size = self.u16()?;
        let (_code, version) = (self.u8()?, self.u8()?);
        let flags = self.u16()?;
        let length = self.u16()?;
        self.take(usize::from(length))?;
        if record_type != RecordType::OPT {
            return Some(Further::Other);
        }
        name.is_root().then_some(Further::Edns(Edns {
            version,
            signatures_wanted: flags & (1 << 15) != 0,
        }))
    }
}

enum Further {
    Edns(Edns),
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &[u8] = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00";

    fn question(name: &[u8]) -> Vec<u8> {
        [START, name, b"\x00\x01\x00\x01"].concat()
    }

    fn with_further(count: u8, records: &[u8]) -> Vec<u8> {
        let mut message = question(b"\x01a\x04test\x00");
        message[11] = count;
        message.extend_from_slice(records);
        message
    }

    const OPT: &[u8] = b"\x00\x00\x29\x04\xd0\x00\x00\x80\x00\x00\x00";

    #[test]
    fn a_plain_question() {
        let message = question(b"\x03wWw\x07Example\x03org\x00");
        let query = Query::read(&message).unwrap();
        assert_eq!(query.header.id, 0x1234);
        assert!(query.header.has(Header::RECURSION_DESIRED));
        assert_eq!(query.question, &message[12..]);
        assert_eq!(query.name.host().unwrap().as_str(), "www.example.org");
        assert_eq!((query.record_type, query.class), (RecordType::A, 1));
        assert_eq!(query.edns, None);
    }

    #[test]
    fn extensions_are_read_and_other_records_passed_over() {
        let message = with_further(1, OPT);
        let edns = Query::read(&message).unwrap().edns.unwrap();
        assert_eq!((edns.version, edns.signatures_wanted), (0, true));
        let other = b"\x01k\x00\x00\xfa\x00\xff\x00\x00\x00\x00\x00\x02xx";
        let message = with_further(2, &[&other[..], OPT].concat());
        assert!(Query::read(&message).unwrap().edns.is_some());
    }

    #[test]
    fn nonsense_behind_a_header_is_malformed() {
        let long_label = [b"\x40".as_slice(), &[b'a'; 64], b"\x00"].concat();
        let long_name = [b"\x3f".as_slice(), &[b'a'; 63]].concat().repeat(4);
        for (what, message) in [
            ("no question", START.to_vec()),
            ("unfinished name", question(b"\x09a")),
            ("pointer", question(b"\xc0\x0c")),
            ("pointer behind a label", question(b"\x01a\xc0\x0c")),
            ("long label", question(&long_label)),
            ("long name", question(&[&long_name[..], b"\x00"].concat())),
            ("no class", question(b"\x01a\x00")[..17].to_vec()),
            ("bytes behind", [&question(b"\x01a\x00")[..], b"x"].concat()),
            ("missing record", with_further(1, b"")),
            ("two OPT records", with_further(2, &OPT.repeat(2))),
            ("too many records", with_further(5, &OPT.repeat(5))),
            ("OPT of a name", with_further(1, &[b"\x01a", OPT].concat())),
            (
                "long record",
                with_further(1, b"\x00\x00\x29\x04\xd0\x00\x00\x80\x00\xff\xff"),
            ),
        ] {
            let read = Query::read(&message);
            assert!(
                matches!(read, Err(Unreadable::Malformed(_))),
                "{what}: {read:?}"
            );
        }
        for section in [5, 7, 9] {
            let mut message = question(b"\x01a\x00");
            message[section] = 2;
            let read = Query::read(&message);
            assert!(matches!(read, Err(Unreadable::Malformed(_))), "{read:?}");
        }
    }

    #[test]
    fn answers_and_stumps_are_not_questions() {
        let mut answer = question(b"\x01a\x00");
        answer[2] |= 0x80;
        assert_eq!(Query::read(&answer), Err(Unreadable::NotAQuestion));
        for length in 0..12 {
            assert_eq!(Query::read(&START[..length]), Err(Unreadable::NotAQuestion));
        }
        let mut update = question(b"\x01a\x00");
        update[2] |= 5 << 3;
        assert!(matches!(
            Query::read(&update),
            Err(Unreadable::OtherOperation(_))
        ));
    }

    #[test]
    fn g3_labels_with_bytes_of_other_readers_are_no_host() {
        for name in [
            &b"\x03a.b\x04test\x00"[..],
            b"\x02a\x00\x04test\x00",
            b"\x02a \x04test\x00",
            b"\x02a%\x04test\x00",
            b"\x02\xc3\xbc\x04test\x00",
            b"\x04xn--\x04test\x00",
            b"\x02-a\x04test\x00",
            b"\x01*\x04test\x00",
            b"\x03127\x010\x010\x011\x00",
            b"\x01a\x0242\x00",
            b"\x00",
        ] {
            let message = question(name);
            let query = Query::read(&message).unwrap();
            assert_eq!(query.name.host(), None, "{name:?}");
        }
    }
}
