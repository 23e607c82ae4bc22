//! The ways to write one byte or character in URLs, JSON, source code and HTML.

use std::sync::LazyLock;

/// A way to write something, other than as it is.
pub(super) struct Spelling {
    text: Box<[u8]>,
    /// From here on the case of letters does not matter: they are digits.
    digits: usize,
}

/// Where letters and digits may be written in another way, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escaped {
    /// Anything may be.
    Everything,
    /// Only what has a meaning of its own somewhere.
    Marks,
}

impl Spelling {
    fn exact(text: impl Into<Vec<u8>>) -> Self {
        let text = text.into().into_boxed_slice();
        let digits = text.len();
        Self { text, digits }
    }

    fn with_digits(before: &str, digits: &str) -> Self {
        Self {
            text: [before, digits].concat().into_bytes().into_boxed_slice(),
            digits: before.len(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether `byte` is what stands at `offset`.
    pub(super) fn has(&self, offset: usize, byte: u8) -> bool {
        self.text.get(offset).is_some_and(|wanted| {
            *wanted == byte || (offset >= self.digits && wanted.eq_ignore_ascii_case(&byte))
        })
    }

    /// The bytes that may stand at `offset`.
    pub(super) fn bytes_at(&self, offset: usize) -> Vec<u8> {
        let byte = self.text[offset];
        if offset >= self.digits {
            both_cases(byte)
        } else {
            vec![byte]
        }
    }
}

/// A letter in both cases; anything else once.
pub(super) fn both_cases(byte: u8) -> Vec<u8> {
    let mut cases = vec![byte.to_ascii_lowercase(), byte.to_ascii_uppercase()];
    cases.dedup();
    cases
}

/// The ways to write `byte`.
pub(super) fn of_byte(byte: u8, escaped: Escaped) -> &'static [Spelling] {
    if escaped == Escaped::Marks && byte.is_ascii_alphanumeric() {
        return &[];
    }
    &OF_BYTES[usize::from(byte)]
}

/// The ways to write a character outside ASCII as a whole.
pub(super) fn of_character(character: char) -> Vec<Spelling> {
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units).iter();
    let units: Vec<String> = units.map(|unit| format!("{unit:04x}")).collect();
    let code = u32::from(character);
    vec![
        Spelling::with_digits("\\u", &units.join("\\u")),
        Spelling::exact(format!("&#{code};")),
        Spelling::with_digits("&#x", &format!("{code:x};")),
    ]
}

/// The ways to begin a new line within encoded text.
pub(super) fn of_line_break() -> &'static [Spelling] {
    &OF_LINE_BREAK
}

/// The ways to break a line of quoted-printable.
pub(super) fn of_soft_break() -> &'static [Spelling] {
    &OF_SOFT_BREAK
}

static OF_SOFT_BREAK: LazyLock<Vec<Spelling>> =
    LazyLock::new(|| ["=\n", "=\r\n"].map(Spelling::exact).into());

static OF_LINE_BREAK: LazyLock<Vec<Spelling>> = LazyLock::new(|| {
    // With a few depths of what programs put before lines.
    let written = [
        "\n",
        "\r\n",
        "\\n",
        "\\r\\n",
        "\n ",
        "\n  ",
        "\n    ",
        "\n      ",
        "\n        ",
        "\n\t",
        "\r\n ",
        "\r\n\t",
    ];
    let escaped = ["0a", "0d%0a"];
    written
        .into_iter()
        .map(Spelling::exact)
        .chain(escaped.map(|digits| Spelling::with_digits("%", digits)))
        .collect()
});

static OF_BYTES: LazyLock<Vec<Vec<Spelling>>> =
    LazyLock::new(|| (0..=u8::MAX).map(ways_to_write).collect());

fn ways_to_write(byte: u8) -> Vec<Spelling> {
    let hex = format!("{byte:02x}");
    let mut ways = vec![Spelling::with_digits("%", &hex)];
    if !byte.is_ascii() {
        return ways;
    }
    for (before, digits) in [
        ("\\u", format!("00{hex}")),
        ("\\u{", format!("{byte:x}}}")),
        ("\\u{", format!("00{hex}}}")),
        ("\\U", format!("000000{hex}")),
        ("\\x", hex.clone()),
        ("\\x{", format!("{byte:x}}}")),
        // Quoted-printable.
        ("=", hex.clone()),
        ("&#x", format!("{byte:x};")),
        ("&#x", format!("00{hex};")),
        // Text of one kind within another, or of the same kind twice.
        ("%25", hex.clone()),
        ("\\\\u", format!("00{hex}")),
        ("\\\\x", hex),
    ] {
        ways.push(Spelling::with_digits(before, &digits));
    }
    ways.push(Spelling::exact(format!("\\{byte:03o}")));
    ways.push(Spelling::exact(format!("\\0{byte:03o}")));
    ways.push(Spelling::exact(format!("&#{byte};")));
    if byte < 0o100 {
        ways.push(Spelling::exact(format!("\\{byte:o}")));
    }
    if byte < 100 {
        ways.push(Spelling::exact(format!("&#{byte:03};")));
    }
    ways.extend(short_names(byte).iter().map(|name| Spelling::exact(*name)));
    ways
}

/// Backslashes, names of HTML, and what forms send for a blank.
fn short_names(byte: u8) -> &'static [&'static str] {
    match byte {
        b' ' => &["+"],
        b'"' => &["\\\"", "\\\\\\\"", "&quot;"],
        b'\\' => &["\\\\", "\\\\\\\\", "&bsol;"],
        b'/' => &["\\/", "\\\\/", "&sol;"],
        b'+' => &["&plus;"],
        b'=' => &["&equals;"],
        b'_' => &["&lowbar;"],
        b'.' => &["&period;"],
        b':' => &["&colon;"],
        b'\'' => &["\\'", "&apos;"],
        b'&' => &["&amp;"],
        b'<' => &["&lt;"],
        b'>' => &["&gt;"],
        b'\x08' => &["\\b"],
        b'\t' => &["\\t"],
        b'\n' => &["\\n"],
        b'\x0c' => &["\\f"],
        b'\r' => &["\\r"],
        _ => &[],
    }
}
