//! One form of a value: its symbols, each of which may be written in several
//! ways.

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, Encoding, HEXLOWER};
use zeroize::Zeroizing;

use super::guard::HARMLESS;
use super::spelling::{self, Escaped, Spelling, both_cases};
use super::substitute::Context;

/// Encoded forms of shorter values would be found everywhere.
const SHORTEST_ENCODED: usize = 8;
/// Encoded text is not broken into lines before this symbol of a form; what is
/// broken there is found by the form that begins here.
pub(super) const UNBROKEN: usize = 3;

/// Whether capital and small letters are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Matters,
    Ignored,
}

/// Whether lines may begin within the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    One,
    /// Between any two symbols, as quoted-printable breaks them.
    Soft,
    Many,
}

/// How much of a value has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// A part that is long enough to be nothing else, and to be worth hiding:
    /// what comes before a value can make a server take its first characters
    /// for something else, and give the rest of it back.
    Parts,
}

/// No more than so many bytes of a value may be missing: tokens of one issuer
/// begin alike.
const MOST_MISSING: usize = 32;
/// A shorter part than this is one only if hardly anything is missing: it may
/// be a word.
const SHORTEST_PART: usize = 12;

/// One form.
pub(super) struct Pattern {
    /// The number of the value.
    pub(super) owner: usize,
    symbols: Zeroizing<Vec<u8>>,
    case: Case,
    escaped: Escaped,
    lines: Lines,
    /// How many symbols in a row are enough.
    enough: usize,
    /// How many are no chance any more, where parts are looked for.
    near: Option<usize>,
    /// What comes before it is another form's.
    is_rest: bool,
    /// Characters of more than one symbol, in order.
    wide: Vec<Wide>,
}

struct Wide {
    at: usize,
    symbols: u32,
    spelling: Spelling,
}

/// Another way to write the next symbols.
#[derive(Clone, Copy)]
pub(super) struct Alternative<'a> {
    pub(super) spelling: &'a Spelling,
    /// How many they are; none for a new line.
    pub(super) symbols: u32,
}

impl Pattern {
    /// Every form of a value.
    pub(super) fn all_of(value: &str, owner: usize, case: Case, extent: Extent) -> Vec<Self> {
        let mut patterns = vec![Self::plain(value, owner, case)];
        if value.len() >= SHORTEST_ENCODED {
            patterns.extend(Self::encodings(value.as_bytes(), owner));
            let exact = |text| Self::encoded(text, owner, Case::Matters, Lines::One);
            patterns.extend(further(value, case).into_iter().map(exact));
        }
        if extent == Extent::Parts {
            let enough = enough_of(value.len());
            for pattern in &mut patterns {
                pattern.enough = symbols_of(pattern, value.len(), enough);
                pattern.near = Some(symbols_of(pattern, value.len(), near_of(enough)));
            }
            if value.len() >= SHORTEST_ENCODED {
                patterns.extend(Self::of_written(value, owner));
            }
        }
        patterns.retain(|pattern| !pattern.symbols.is_empty());
        patterns
    }

    /// Whole encodings of it as we write it ourselves in URLs and JSON: servers
    /// may encode what they got as it came.
    fn of_written(value: &str, owner: usize) -> impl Iterator<Item = Self> + '_ {
        [Context::Form, Context::Json]
            .into_iter()
            .flat_map(move |context| {
                let mut text = Zeroizing::new(Vec::new());
                context.write(value, &mut text);
                Self::encodings(&text, owner)
            })
    }

    /// In hex, and within base64.
    fn encodings(value: &[u8], owner: usize) -> Vec<Self> {
        let hex = HEXLOWER.encode(value).into_bytes();
        let mut patterns = vec![Self::encoded(hex, owner, Case::Ignored, Lines::One)];
        for core in cores(value) {
            let rest = core.get(UNBROKEN..).unwrap_or_default().to_vec();
            let many = |text| Self::encoded(text, owner, Case::Matters, Lines::Many);
            patterns.push(many(core));
            patterns.push(Self {
                is_rest: true,
                ..many(rest)
            });
        }
        patterns
    }

    fn plain(value: &str, owner: usize, case: Case) -> Self {
        let beyond = value.char_indices().filter(|(_, one)| !one.is_ascii());
        let wide = beyond.flat_map(|(at, character)| {
            let wide = move |spelling| Wide {
                at,
                symbols: bytes_of(character),
                spelling,
            };
            spelling::of_character(character).into_iter().map(wide)
        });
        Self {
            owner,
            symbols: Zeroizing::new(value.as_bytes().to_vec()),
            case,
            escaped: Escaped::Everything,
            lines: Lines::Soft,
            enough: value.len(),
            near: None,
            is_rest: false,
            wide: wide.collect(),
        }
    }

    fn encoded(text: Vec<u8>, owner: usize, case: Case, lines: Lines) -> Self {
        Self {
            owner,
            enough: text.len(),
            near: None,
            symbols: Zeroizing::new(text),
            case,
            escaped: Escaped::Marks,
            lines,
            is_rest: false,
            wide: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether it is what follows the first symbols of another form, of which
    /// parts are looked for too.
    pub(super) fn is_rest(&self) -> bool {
        self.is_rest && self.enough < self.len()
    }

    /// How many symbols in a row are enough to be hidden.
    pub(super) fn enough(&self) -> usize {
        self.enough
    }

    /// Whether so many symbols in a row tell that somebody comes near it.
    pub(super) fn is_near(&self, symbols: usize) -> bool {
        self.near == Some(symbols)
    }

    /// The symbols that a part may begin with.
    pub(super) fn beginnings(&self) -> impl Iterator<Item = u32> + '_ {
        let symbols = &self.symbols[..=self.len() - self.enough];
        let telling = (0..).zip(symbols).filter(|(_, symbol)| tells(**symbol));
        telling.map(|(at, _)| at)
    }

    /// How many symbols and new lines there can be after the first `symbols`.
    pub(super) fn units_after(&self, symbols: u32) -> u64 {
        let left = (self.len() as u64).saturating_sub(symbols.into());
        match self.lines {
            // What begins a soft break counts for what follows it, too.
            Lines::One | Lines::Soft => left,
            Lines::Many => left * 2,
        }
    }

    /// Whether `byte` is the symbol itself.
    pub(super) fn has(&self, at: usize, byte: u8) -> bool {
        let symbol = self.symbols[at];
        symbol == byte || (self.case == Case::Ignored && symbol.eq_ignore_ascii_case(&byte))
    }

    /// The bytes that are the symbol itself.
    pub(super) fn bytes_at(&self, at: usize) -> Vec<u8> {
        match self.case {
            Case::Matters => vec![self.symbols[at]],
            Case::Ignored => both_cases(self.symbols[at]),
        }
    }

    /// Every other way to go on from a symbol, in a fixed order.
    pub(super) fn alternatives(&self, at: usize) -> impl Iterator<Item = Alternative<'_>> {
        let one = |spelling| Alternative {
            spelling,
            symbols: 1,
        };
        let none = |spelling| Alternative {
            spelling,
            symbols: 0,
        };
        let (own, other) = self.ways_to_write(self.symbols[at]);
        let singles = own.iter().chain(other).map(one);
        let breaks = self.line_breaks(at).iter().map(none);
        singles.chain(breaks).chain(self.wide_at(at))
    }

    fn ways_to_write(&self, symbol: u8) -> (&'static [Spelling], &'static [Spelling]) {
        let own = spelling::of_byte(symbol, self.escaped);
        if self.case == Case::Matters || !symbol.is_ascii_alphabetic() {
            return (own, &[]);
        }
        // Small and capital letters differ in this bit.
        (own, spelling::of_byte(symbol ^ 0x20, self.escaped))
    }

    fn line_breaks(&self, at: usize) -> &'static [Spelling] {
        match self.lines {
            Lines::Many if at >= UNBROKEN => spelling::of_line_break(),
            Lines::Soft if at > 0 => spelling::of_soft_break(),
            _ => &[],
        }
    }

    fn wide_at(&self, at: usize) -> impl Iterator<Item = Alternative<'_>> {
        let first = self.wide.partition_point(|wide| wide.at < at);
        let here = self.wide[first..]
            .iter()
            .take_while(move |wide| wide.at == at);
        here.map(|wide| Alternative {
            spelling: &wide.spelling,
            symbols: wide.symbols,
        })
    }
}

/// Whether a byte tells one text from another. Those between the characters of
/// UTF-16 and UTF-32 do not: files are full of them.
pub(super) fn tells(byte: u8) -> bool {
    byte != 0
}

/// How many bytes of a value of `length` are a part that is hidden.
fn enough_of(length: usize) -> usize {
    let long = SHORTEST_PART.min(length.saturating_sub(1)).max(1);
    length
        .saturating_sub(MOST_MISSING)
        .max(length.div_ceil(2))
        .max(long)
}

/// How many bytes of a value are no chance any more, where so many are a part.
/// Beginnings that many tokens and addresses share are shorter, and whoever
/// tries to find a value meets it often.
fn near_of(enough: usize) -> usize {
    const LEAST: usize = 5;
    (enough / 2).max(LEAST)
}

/// How many symbols of a form say at least so much as these bytes of a value of
/// `length`: counted in symbols of each form, a few bytes would be enough in
/// one that is long.
fn symbols_of(pattern: &Pattern, length: usize, bytes: usize) -> usize {
    let symbols = pattern.len();
    let wanted = if pattern.lines == Lines::Many {
        // Of the first one the part may determine two bits only.
        (bytes * 8).saturating_sub(4) / 6
    } else {
        // The last byte is not followed by what stands between two.
        (bytes * symbols).div_ceil(length.max(1))
    };
    wanted.clamp(1, symbols.max(1))
}

/// How many characters of a secret of so many bytes nobody can find without
/// trying all that they may be: those that a part has, but for the first few,
/// which the delay of an answer may tell.
pub fn untold(length: usize) -> usize {
    enough_of(length).saturating_sub(HARMLESS as usize)
}

/// How many bytes a character outside ASCII has.
fn bytes_of(character: char) -> u32 {
    match u32::from(character) {
        ..0x800 => 2,
        0x800..0x1_0000 => 3,
        0x1_0000.. => 4,
    }
}

/// Other texts that are as good as the value: in small letters or capitals only
/// (any mixture would cost far more to look for), and of wider characters.
fn further(value: &str, case: Case) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    if case == Case::Matters {
        texts.extend([value.to_ascii_lowercase(), value.to_ascii_uppercase()]);
    }
    texts.retain(|text| text != value);
    let mut texts: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
    if value.is_ascii() {
        texts.extend([1, 3].map(|between| spread(value, between)));
    }
    texts
}

/// What of `value` is the same in UTF-16 or UTF-32 of either order of bytes.
fn spread(value: &str, between: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len() * (between + 1));
    for byte in value.bytes() {
        if !text.is_empty() {
            text.resize(text.len() + between, 0);
        }
        text.push(byte);
    }
    text
}

/// What of `value` is the same in every base64 text that holds it: for each
/// place that it may have within three bytes, and for both alphabets.
fn cores(value: &[u8]) -> Vec<Vec<u8>> {
    let mut cores = Vec::new();
    for before in 0..3 {
        let mut text = Zeroizing::new(vec![0; before]);
        text.extend_from_slice(value);
        for alphabet in [&BASE64_NOPAD, &BASE64URL_NOPAD] {
            cores.push(core(&text, before, alphabet));
        }
    }
    cores.dedup();
    cores
}

/// Of the first and last character the value may determine a part only.
fn core(text: &[u8], before: usize, alphabet: &Encoding) -> Vec<u8> {
    let encoded = Zeroizing::new(alphabet.encode(text));
    let first = (before * 8).div_ceil(6);
    let last = text.len() * 8 / 6;
    encoded.as_bytes()[first..last].to_vec()
}
