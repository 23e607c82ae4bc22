//! One message: its header, and a body that is read by whoever expects it.

use super::wire::{Malformed, Reader, Writer};

/// The part that says how long the whole is.
pub(super) const PREAMBLE: usize = 16;
/// More than any answer that is waited for here.
const LARGEST: usize = 64 * 1024;
const LITTLE_ENDIAN: u8 = b'l';
const VERSION: u8 = 1;
/// Do not start the service that is called.
const NO_AUTO_START: u8 = 2;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    Reply,
    Error,
    Signal,
}

impl Kind {
    const ALL: [(u8, Self); 4] = [
        (1, Self::Call),
        (2, Self::Reply),
        (3, Self::Error),
        (4, Self::Signal),
    ];

    fn of(number: u8) -> Result<Self, Malformed> {
        let known = Self::ALL.into_iter().find(|(known, _)| *known == number);
        known.map(|(_, kind)| kind).ok_or(Malformed::Kind)
    }

    fn number(self) -> u8 {
        let known = Self::ALL.into_iter().find(|(_, kind)| *kind == self);
        known.map_or(0, |(number, _)| number)
    }
}

/// A method to be called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) destination: &'a str,
    pub(crate) path: &'a str,
    pub(crate) interface: &'a str,
    pub(crate) member: &'a str,
}

impl Call<'_> {
    /// With these arguments.
    pub(crate) fn with(self, signature: &str, body: Writer) -> Message {
        Message {
            kind: Kind::Call,
            serial: 0,
            header: Header {
                destination: Some(self.destination.to_owned()),
                path: Some(self.path.to_owned()),
                interface: Some(self.interface.to_owned()),
                member: Some(self.member.to_owned()),
                signature: (!signature.is_empty()).then(|| signature.to_owned()),
                ..Header::default()
            },
            body: body.finish(),
        }
    }
}

/// The fields of a header that mean something here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) path: Option<String>,
    pub(crate) interface: Option<String>,
    pub(crate) member: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) reply_to: Option<u32>,
    pub(crate) destination: Option<String>,
    pub(crate) sender: Option<String>,
    pub(crate) signature: Option<String>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) serial: u32,
    pub(crate) header: Header,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bytes(&[LITTLE_ENDIAN, self.kind.number(), NO_AUTO_START, VERSION]);
        writer.number(u32::try_from(self.body.len()).unwrap_or(u32::MAX));
        writer.number(self.serial);
        writer.array(8, |fields| self.header.encode(fields));
        writer.align(8);
        writer.bytes(&self.body);
        writer.finish()
    }

    /// How long the message is that starts with these bytes.
    pub(super) fn length(preamble: &[u8]) -> Result<usize, Malformed> {
        let mut reader = Reader::new(preamble);
        let [order, _, _, version] = *reader.take(4)? else {
            return Err(Malformed::Short);
        };
        if order != LITTLE_ENDIAN || version != VERSION {
            return Err(Malformed::Version);
        }
        let size = |number: u32| usize::try_from(number).ok().filter(|size| *size <= LARGEST);
        let body = size(reader.number()?).ok_or(Malformed::Size)?;
        reader.number()?;
        let fields = size(reader.number()?).ok_or(Malformed::Size)?;
        let whole = (PREAMBLE + fields).next_multiple_of(8) + body;
        (whole <= LARGEST).then_some(whole).ok_or(Malformed::Size)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if Self::length(bytes)? != bytes.len() {
            return Err(Malformed::Short);
        }
        let mut reader = Reader::new(bytes);
        let kind = Kind::of(reader.take(4)?[1])?;
        let body_length = reader.number()?;
        let serial = reader.number()?;
        if serial == 0 {
            return Err(Malformed::Serial);
        }
        let header = Header::decode(&mut reader)?;
        reader.align(8)?;
        let body_length = usize::try_from(body_length).map_err(|_| Malformed::Size)?;
        let body = reader.take(body_length)?.to_vec();
        reader.end()?;
        Ok(Self {
            kind,
            serial,
            header,
            body,
        })
    }

    /// The body, if it has these types.
    pub(crate) fn read(&self, signature: &str) -> Result<Reader<'_>, Malformed> {
        let own = self.header.signature.as_deref().unwrap_or_default();
        let is_as_expected = own == signature;
        is_as_expected
            .then(|| Reader::new(&self.body))
            .ok_or(Malformed::Content)
    }

    /// Whether it is this signal of this interface.
    pub(crate) fn is_signal(&self, interface: &str, member: &str) -> bool {
        self.kind == Kind::Signal
            && self.header.interface.as_deref() == Some(interface)
            && self.header.member.as_deref() == Some(member)
    }
}

/// Where a field of the header belongs.
enum Slot<'a> {
    Text(&'static str, &'a mut Option<String>),
    Number(&'a mut Option<u32>),
}

impl Header {
    fn encode(&self, writer: &mut Writer) {
        let texts = [
            (1, "o", &self.path),
            (2, "s", &self.interface),
            (3, "s", &self.member),
            (4, "s", &self.error),
            (6, "s", &self.destination),
            (7, "s", &self.sender),
        ];
        for (code, kind, text) in texts {
            if let Some(text) = text {
                start_field(writer, code, kind);
                writer.text(text);
            }
        }
        if let Some(number) = self.reply_to {
            start_field(writer, 5, "u");
            writer.number(number);
        }
        if let Some(signature) = &self.signature {
            start_field(writer, 8, "g");
            writer.signature(signature);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let size = usize::try_from(reader.number()?).map_err(|_| Malformed::Size)?;
        let end = reader.at() + size;
        let mut header = Self::default();
        while reader.at() < end {
            reader.align(8)?;
            let code = reader.byte()?;
            let kind = reader.signature()?;
            header.decode_field(code, kind, reader)?;
        }
        let is_end = reader.at() == end;
        is_end.then_some(header).ok_or(Malformed::Field)
    }

    fn decode_field(
        &mut self,
        code: u8,
        kind: &str,
        reader: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        match self.slot(code) {
            None => reader.pass_over(kind),
            Some(Slot::Text(expected, slot)) if expected == kind && slot.is_none() => {
                let text = if kind == "g" {
                    reader.signature()?
                } else {
                    reader.text()?
                };
                *slot = Some(text.to_owned());
                Ok(())
            }
            Some(Slot::Number(slot)) if kind == "u" && slot.is_none() => {
                *slot = Some(reader.number()?);
                Ok(())
            }
            Some(_) => Err(Malformed::Field),
        }
    }

    fn slot(&mut self, code: u8) -> Option<Slot<'_>> {
        match code {
            1 => Some(Slot::Text("o", &mut self.path)),
            2 => Some(Slot::Text("s", &mut self.interface)),
            3 => Some(Slot::Text("s", &mut self.member)),
            4 => Some(Slot::Text("s", &mut self.error)),
            5 => Some(Slot::Number(&mut self.reply_to)),
            6 => Some(Slot::Text("s", &mut self.destination)),
            7 => Some(Slot::Text("s", &mut self.sender)),
            8 => Some(Slot::Text("g", &mut self.signature)),
            _ => None,
        }
    }
}

fn start_field(writer: &mut Writer, code: u8, kind: &str) {
    writer.align(8);
    writer.byte(code);
    writer.signature(kind);
}

#[cfg(test)]
mod tests;
