//! How values are written in messages, as far as it is needed here. Whatever
//! is read is bounded by its own length, and judged strictly.

/// Why bytes make no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("it ends too early")]
    Short,
    #[error("it goes on after its end")]
    Long,
    #[error("there is something in a gap")]
    Gap,
    #[error("a text is not terminated, or not UTF-8")]
    Text,
    #[error("it is larger than anything that was asked for")]
    Size,
    #[error("its byte order or version is unknown")]
    Version,
    #[error("its kind is unknown")]
    Kind,
    #[error("it has no number")]
    Serial,
    #[error("a field of its header has the wrong type or comes twice")]
    Field,
    #[error("it does not hold what was expected")]
    Content,
}

/// Values one after the other, each at a multiple of its size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn bytes(&mut self, values: &[u8]) {
        self.0.extend_from_slice(values);
    }

    /// Type `u`.
    pub(crate) fn number(&mut self, value: u32) {
        self.align(4);
        self.bytes(&value.to_le_bytes());
    }

    /// Type `b`.
    pub(crate) fn truth(&mut self, value: bool) {
        self.number(u32::from(value));
    }

    /// Type `s`, and `o`.
    pub(crate) fn text(&mut self, value: &str) {
        self.number(length(value.len()));
        self.bytes(value.as_bytes());
        self.byte(0);
    }

    /// Type `g`.
    pub(crate) fn signature(&mut self, value: &str) {
        debug_assert!(value.len() < 256, "a signature has one byte for its length");
        self.byte(u8::try_from(value.len()).unwrap_or(u8::MAX));
        self.bytes(value.as_bytes());
        self.byte(0);
    }

    /// Type `a…`; `align` is that of its elements.
    pub(crate) fn array(&mut self, align: usize, fill: impl FnOnce(&mut Self)) {
        self.number(0);
        let at = self.0.len();
        self.align(align);
        let start = self.0.len();
        fill(self);
        let size = length(self.0.len() - start).to_le_bytes();
        self.0[at - size.len()..at].copy_from_slice(&size);
    }

    /// One `(sv)`.
    pub(crate) fn property(&mut self, name: &str, signature: &str, value: impl FnOnce(&mut Self)) {
        self.align(8);
        self.text(name);
        self.signature(signature);
        value(self);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Nothing that is written here comes near the largest length.
fn length(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Reads values one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// `bytes` start at a multiple of 8 in their message.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let rest = self.bytes.get(self.at..).ok_or(Malformed::Short)?;
        let taken = rest.get(..count).ok_or(Malformed::Short)?;
        self.at += count;
        Ok(taken)
    }

    pub(super) fn align(&mut self, to: usize) -> Result<(), Malformed> {
        let gap = self.take(self.at.next_multiple_of(to) - self.at)?;
        let is_empty = gap.iter().all(|byte| *byte == 0);
        is_empty.then_some(()).ok_or(Malformed::Gap)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        self.take(1).map(|byte| byte[0])
    }

    pub(crate) fn number(&mut self) -> Result<u32, Malformed> {
        self.align(4)?;
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Type `s`, and `o`.
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = self.number()?;
        self.terminated(usize::try_from(length).map_err(|_| Malformed::Size)?)
    }

    pub(super) fn signature(&mut self) -> Result<&'a str, Malformed> {
        let length = self.byte()?;
        self.terminated(usize::from(length))
    }

    fn terminated(&mut self, length: usize) -> Result<&'a str, Malformed> {
        let bytes = self.take(length)?;
        let end = self.byte()?;
        let is_text = end == 0 && !bytes.contains(&0);
        let text = std::str::from_utf8(bytes).ok().filter(|_| is_text);
        text.ok_or(Malformed::Text)
    }

    /// Passes over a value of a basic type that means nothing here.
    pub(super) fn pass_over(&mut self, kind: &str) -> Result<(), Malformed> {
        let size = match kind {
            "y" => 1,
            "n" | "q" => 2,
            "b" | "i" | "u" | "h" => 4,
            "x" | "t" | "d" => 8,
            "s" | "o" => return self.text().map(drop),
            "g" => return self.signature().map(drop),
            _ => return Err(Malformed::Field),
        };
        self.align(size)?;
        self.take(size).map(drop)
    }

    /// Everything was read.
    pub(crate) fn end(&self) -> Result<(), Malformed> {
        let is_end = self.at == self.bytes.len();
        is_end.then_some(()).ok_or(Malformed::Long)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_stand_at_multiples_of_their_size() {
        let mut writer = Writer::default();
        writer.byte(7);
        writer.text("ab");
        writer.array(8, |array| array.property("P", "u", |value| value.number(9)));
        let expected = [
            7, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', 0, 0, // text
            16, 0, 0, 0, // the array's length, then its element at 16
            1, 0, 0, 0, b'P', 0, 1, b'u', 0, 0, 0, 0, 9, 0, 0, 0,
        ];
        assert_eq!(writer.finish(), expected);
    }

    #[test]
    fn the_gap_before_the_first_element_is_not_counted() {
        let mut writer = Writer::default();
        writer.array(8, |array| {
            array.property("", "b", |value| value.truth(true));
        });
        let bytes = writer.finish();
        assert_eq!(bytes[..8], [12, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes.len(), 20);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let read = |bytes: &'static [u8]| Reader::new(bytes).text();
        assert_eq!(read(&[1, 0, 0]), Err(Malformed::Short));
        assert_eq!(read(&[1, 0, 0, 0, b'a']), Err(Malformed::Short));
        assert_eq!(read(&[255, 255, 255, 255, 0]), Err(Malformed::Short));
        assert_eq!(read(&[1, 0, 0, 0, b'a', b'b']), Err(Malformed::Text));
        assert_eq!(read(&[1, 0, 0, 0, 0, 0]), Err(Malformed::Text));
        assert_eq!(read(&[1, 0, 0, 0, 0xff, 0]), Err(Malformed::Text));
        let mut reader = Reader::new(&[1, 2, 0, 0, 5, 0, 0, 0]);
        reader.byte().unwrap();
        assert_eq!(reader.end(), Err(Malformed::Long));
        assert_eq!(reader.number(), Err(Malformed::Gap));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(values: Vec<(u8, u32, String)>) {
            let values: Vec<_> = values
                .into_iter()
                .map(|(byte, number, text)| (byte, number, text.replace('\0', "")))
                .collect();
            let mut writer = Writer::default();
            for (byte, number, text) in &values {
                writer.byte(*byte);
                writer.number(*number);
                writer.text(text);
            }
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            for (byte, number, text) in &values {
                prop_assert_eq!(reader.byte()?, *byte);
                prop_assert_eq!(reader.number()?, *number);
                prop_assert_eq!(reader.text()?, text.as_str());
            }
            prop_assert_eq!(reader.end(), Ok(()));
        }
    }
}
