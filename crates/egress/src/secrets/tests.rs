//! Values in streams, in every form and every cut.

use std::sync::{Arc, LazyLock};

use bytes::BytesMut;
use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, HEXLOWER, HEXUPPER};
use proptest::prelude::*;
use proptest::sample::Index;

use super::beginnings::Beginnings;
use super::pattern::{Case, Extent, Pattern};
use super::*;
use crate::secret::Placeholder;

const SECRET: &str = "sk-live/4f\"9\\K+é=%z";
const OTHER: &str = "9\\K+é=%z and on";
const PLAIN: &str = "ghp_0123456789abcdefXYZ";
const HELD: &str = "rf-0123456789abcdef0123456789abcdef";

static FORMS: LazyLock<Arc<Forms>> = LazyLock::new(|| Arc::new(of_all(Extent::Parts)));
static WHOLE: LazyLock<Arc<Forms>> = LazyLock::new(|| Arc::new(of_all(Extent::Whole)));

fn of_all(extent: Extent) -> Forms {
    let values = [SECRET, OTHER, PLAIN].map(|value| Hidden {
        value,
        shown: REDACTED,
    });
    Forms::of(&values, extent)
}

fn forms() -> Arc<Forms> {
    Arc::clone(&FORMS)
}

fn scrubbed<'a>(forms: &Arc<Forms>, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut scrubber = Scrubber::new(Arc::clone(forms));
    let mut out = BytesMut::new();
    for piece in pieces {
        scrubber.feed(piece, &mut out);
    }
    scrubber.finish(&mut out);
    out.to_vec()
}

fn cut<'a>(text: &'a [u8], at: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = at.iter().map(|at| at.index(text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &text[pair[0]..pair[1]])
        .collect()
}

/// Each byte or character in one of the ways to write it.
fn mixed(value: &str, ways: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (character, way) in value.chars().zip(ways.iter().cycle()) {
        let mut utf8 = [0; 4];
        let bytes = character.encode_utf8(&mut utf8).as_bytes();
        let code = u32::from(character);
        let percent = |byte: &u8| format!("%{byte:02x}");
        let text = match (way % 16, character) {
            (1, _) => bytes.iter().map(percent).collect::<Vec<_>>().concat(),
            (2, _) => bytes
                .iter()
                .map(percent)
                .collect::<Vec<_>>()
                .concat()
                .to_uppercase(),
            (3, _) => format!("\\u{code:04x}"),
            (4, _) => format!("\\u{code:04X}"),
            (5, '"' | '\\' | '/') => format!("\\{character}"),
            (6, _) => format!("&#{code};"),
            (7, _) => format!("&#x{code:x};"),
            (8, _) if code < 128 => format!("\\x{code:02x}"),
            (9, _) if code < 128 => format!("\\{code:03o}"),
            (10, _) if code < 128 => format!("\\u{{{code:x}}}"),
            (11, _) if code < 128 => format!("={code:02X}"),
            (12, _) if code < 128 => format!("\\U{code:08x}"),
            (13, _) if code < 128 => format!("%25{code:02x}"),
            _ => character.to_string(),
        };
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// A form that is promised to be found.
fn written(value: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let value = value.to_owned();
    let around = ("[a-z:]{0,5}", "[a-z:]{0,5}");
    let ways = prop::collection::vec(any::<u8>(), 1..24);
    (0..8, around, ways).prop_map(move |(form, (before, after), ways)| {
        let whole = format!("{before}{value}{after}");
        match form {
            0 => HEXLOWER.encode(value.as_bytes()).into_bytes(),
            1 => HEXUPPER.encode(value.as_bytes()).into_bytes(),
            2 => BASE64.encode(whole.as_bytes()).into_bytes(),
            3 => BASE64URL.encode(whole.as_bytes()).into_bytes(),
            4 => in_lines(&BASE64_NOPAD.encode(whole.as_bytes()), &ways),
            5 => value.clone().into_bytes(),
            _ => mixed(&value, &ways),
        }
    })
}

fn in_lines(text: &str, ways: &[u8]) -> Vec<u8> {
    let width = usize::from(ways[0] % 40) + 20;
    let ends = ["\n", "\r\n", "\\n", "\\r\\n", "%0A", "%0d%0a"];
    let end = ends[usize::from(ways[ways.len() - 1]) % ends.len()];
    let lines = text.as_bytes().chunks(width);
    let lines: Vec<&str> = lines
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join(end).into_bytes()
}

/// The forms of a value of letters and digits, without escapes and lines: first
/// its own eight, then those of what we write in its place.
fn unescaped(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    forms.extend(encodings(value));
    for context in [Context::Form, Context::Json] {
        let mut written = Vec::new();
        context.write(value, &mut written);
        forms.extend(encodings(std::str::from_utf8(&written).unwrap()));
    }
    forms
}

fn encodings(value: &str) -> Vec<String> {
    let mut forms = vec![HEXLOWER.encode(value.as_bytes())];
    for (before, skipped) in [("", 0), ("?", 2), ("??", 3)] {
        let whole = [before, value].concat();
        let text = BASE64_NOPAD.encode(whole.as_bytes());
        let text = &text[skipped..whole.len() * 8 / 6];
        forms.extend([text.to_owned(), text[3..].to_owned()]);
    }
    forms
}

/// Text that has the beginnings of forms in it.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let start = |value: &'static str| {
        written(value)
            .prop_flat_map(|text| (0..text.len()).prop_map(move |length| text[..length].to_vec()))
    };
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..30),
        "[sk%\\\\u07&#;x+=-]{0,20}".prop_map(String::into_bytes),
        start(SECRET),
        start(PLAIN),
    ]
}

/// Noise and values; and how many values there are.
fn stream() -> impl Strategy<Value = (Vec<u8>, usize)> {
    let part = prop_oneof![
        3 => noise().prop_map(|text| (text, 0)),
        1 => written(SECRET).prop_map(|text| (text, 1)),
        1 => written(OTHER).prop_map(|text| (text, 1)),
        1 => written(PLAIN).prop_map(|text| (text, 1)),
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| {
        let count = parts.iter().map(|(_, count)| count).sum();
        let text = parts.into_iter().flat_map(|(text, _)| text).collect();
        (text, count)
    })
}

fn count(text: &[u8], what: &str) -> usize {
    let windows = text.windows(what.len());
    windows.filter(|part| *part == what.as_bytes()).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn g5_any_cut_hides_the_same(
        (text, _) in stream(),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        // Of a part it depends on the cut how much has passed before it is one.
        let forms = Arc::clone(&WHOLE);
        let whole = scrubbed(&forms, [&text[..]]);
        prop_assert_eq!(&scrubbed(&forms, cut(&text, &cuts)), &whole);
        prop_assert_eq!(&scrubbed(&forms, text.chunks(1)), &whole);
        prop_assert_eq!(&forms.scrub(&text)[..], &whole[..]);
    }

    #[test]
    fn g5_of_a_long_part_no_more_than_its_first_half_is_left(
        before in "[A-R ]{0,8}",
        part in (0..12usize, 12..24usize),
        ways in prop::collection::vec(any::<u8>(), 1..24),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let end = (part.0 + part.1).min(PLAIN.len());
        let part = &PLAIN[part.0..end];
        prop_assume!(part.len() >= 12);
        let text = [before.as_bytes(), b"<", &mixed(part, &ways), b">"].concat();
        let at_once = scrubbed(&forms(), [&text[..]]);
        let want = [before.as_bytes(), b"<", REDACTED.as_bytes(), b">"].concat();
        prop_assert_eq!(&at_once, &want);
        for pieces in [cut(&text, &cuts), text.chunks(1).collect()] {
            let out = scrubbed(&forms(), pieces);
            prop_assert!(count(&out, REDACTED) == 1 && out.ends_with(b"]>"));
        }
    }

    #[test]
    fn g5_every_form_is_hidden((text, values) in stream()) {
        let forms = forms();
        let out = scrubbed(&forms, [&text[..]]);
        for value in [SECRET, OTHER, PLAIN] {
            prop_assert_eq!(count(&out, value), 0);
        }
        prop_assert!(values == 0 || count(&out, REDACTED) > 0);
        prop_assert_eq!(&scrubbed(&forms, [&out[..]]), &out, "something is left");
    }

    #[test]
    fn g5_one_written_value_is_left_out(
        before in "[A-R ]{0,8}",
        value in prop_oneof![written(SECRET), written(PLAIN)],
        after in "[A-R ]{0,8}",
    ) {
        let text = [before.as_bytes(), b"<", &value, b">", after.as_bytes()].concat();
        let out = scrubbed(&forms(), [&text[..]]);
        prop_assert!(out.starts_with(&[before.as_bytes(), b"<"].concat()));
        prop_assert!(out.ends_with(&[b">", after.as_bytes()].concat()));
        prop_assert_eq!(count(&out, REDACTED), 1);
        // Of base64 only what the neighbours determine, too, is left.
        prop_assert!(out.len() <= before.len() + after.len() + 2 + REDACTED.len() + 22);
    }

    #[test]
    fn other_text_passes_unchanged_and_only_beginnings_wait(
        parts in prop::collection::vec((0..8usize, any::<Index>(), "[a-zA-Z0-9 .]{0,9}"), 0..9),
        cuts in prop::collection::vec(any::<Index>(), 0..9),
    ) {
        let value = "s3cret-value";
        let forms = unescaped(value);
        let beginning = |form: usize, length: Index| {
            let form = &forms[form];
            // Of half a form or more nothing is left.
            &form[..length.index(form.len() / 2)]
        };
        let text: String = parts
            .iter()
            .map(|(form, length, noise)| [noise, beginning(*form, *length), "."].concat())
            .collect();
        let values = [Hidden { value, shown: REDACTED }];
        let mut scrubber = Scrubber::new(Arc::new(Forms::of_secrets(&values)));
        let mut out = BytesMut::new();
        let mut came = 0;
        for piece in cut(text.as_bytes(), &cuts) {
            scrubber.feed(piece, &mut out);
            came += piece.len();
            let held = &text[out.len()..came];
            // Of what follows the first three, right or wrong, as much as there
            // may be of a value.
            let first = held.len().min(3);
            let is_beginning = forms.iter().any(|form| {
                form.len() >= first && form[..first].eq_ignore_ascii_case(&held[..first])
            });
            prop_assert!(held.len() <= value.len() * 3, "{held:?}");
            prop_assert!(held.is_empty() || is_beginning, "{held:?}");
        }
        scrubber.finish(&mut out);
        prop_assert_eq!(&out[..], text.as_bytes());
    }

    #[test]
    fn lengths_are_kept_where_they_matter((text, _) in stream()) {
        let mut scrubber = Scrubber::new(forms()).keeping_lengths();
        let mut out = BytesMut::new();
        for piece in text.chunks(3) {
            scrubber.feed(piece, &mut out);
        }
        scrubber.finish(&mut out);
        prop_assert_eq!(out.len(), text.len());
        let changed = out.iter().zip(&text).filter(|(new, old)| new != old);
        prop_assert!(changed.into_iter().all(|(new, _)| *new == b'*'));
        prop_assert_eq!(count(&out, PLAIN), 0);
    }

    #[test]
    fn g5_a_placeholder_is_noticed_in_any_form_and_cut(
        before in prop::collection::vec(any::<u8>(), 0..20),
        text in written(HELD),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let mut watch = watch();
        let text = [&before[..], &text].concat();
        let found = cut(&text, &cuts).into_iter().find_map(|piece| watch.feed(piece).err());
        let service = "api".to_owned();
        prop_assert_eq!(found, Some(Found { service }));
    }

    #[test]
    fn any_cut_notices_the_same(
        text in noise(),
        placeholder in prop_oneof![written(HELD), written(&HELD[1..])],
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let text = [text, placeholder].concat();
        let whole = watch().feed(&text).is_err();
        let mut watch = watch();
        let pieces = cut(&text, &cuts).into_iter();
        prop_assert_eq!(pieces.map(|piece| watch.feed(piece)).any(|fed| fed.is_err()), whole);
    }
}

static PLACEHOLDERS: LazyLock<Arc<Placeholders>> = LazyLock::new(|| {
    let all = [
        ("api", HELD),
        ("web", "rf-ffffffffffffffffffffffffffffffff"),
    ];
    let all = all.map(|(service, text)| Placeholder {
        service: service.to_owned(),
        text: text.to_owned(),
    });
    Arc::new(Placeholders::new(&all).unwrap())
});

fn watch() -> Watch {
    Watch::new(Arc::clone(&PLACEHOLDERS))
}

/// Whoever waits for what is held back gets it, and of the secret no more.
#[test]
fn g5_what_goes_on_after_it_was_let_go_is_covered_from_there() {
    let mut scrubber = Scrubber::new(forms()).keeping_lengths();
    let mut out = BytesMut::new();
    for piece in ["<", "ghp_012", "3456789", "abcdefXYZ", ">"] {
        scrubber.feed(piece.as_bytes(), &mut out);
        scrubber.let_go(&mut out);
    }
    scrubber.finish(&mut out);
    // With the second piece it is a part.
    assert_eq!(&out[..], b"<ghp_012****************>");
    assert_eq!(scrubber.take_found().finds.len(), 1);
}

#[test]
fn what_comes_near_a_value_is_counted_and_ordinary_text_is_not() {
    let near = |text: &str| {
        let mut found = Findings::default();
        forms().scrub_noting(text.as_bytes(), &mut found);
        assert_eq!(found.finds, []);
        found.near
    };
    assert_eq!(near("ghp_and ghp_0 and ghp_0x, 0123 and 6789"), 0);
    // Each form counts: this is one in small letters, too.
    assert_eq!(near("ghp_01"), 2);
    assert_eq!(near("GHP_01"), 1);
    assert_eq!(near("ghp_01x ghp_01 "), 4);
    assert_eq!(near(&HEXLOWER.encode(b"ghp_01")), 1);
}

#[test]
fn a_piece_passes_up_to_the_last_byte_of_a_placeholder() {
    let mut watch = watch();
    for byte in &HELD.as_bytes()[..HELD.len() - 1] {
        assert_eq!(watch.feed(&[*byte]), Ok(()));
    }
    assert!(watch.feed(&HELD.as_bytes()[HELD.len() - 1..]).is_err());
}

#[test]
fn placeholders_of_other_services_and_changed_case_count_too() {
    let mut watch = watch().except(&["web"]);
    assert_eq!(watch.feed(b"rf-ffffffffffffffffffffffffffffffff"), Ok(()));
    assert!(watch.feed(HELD.to_ascii_uppercase().as_bytes()).is_err());
    let placeholders = &PLACEHOLDERS;
    let value = BASE64.encode(format!("user:{HELD}").as_bytes());
    assert!(placeholders.holds("api", value.as_bytes()));
    assert!(!placeholders.holds("web", value.as_bytes()));
    assert!(Placeholders::new(&[]).is_none());
}

#[test]
fn g5_overlapping_values_leave_nothing_of_either() {
    let text = "<sk-live/4f\"9\\K+é=%z and on>";
    let out = scrubbed(&forms(), [text.as_bytes()]);
    assert_eq!(String::from_utf8(out).unwrap(), "<[redacted]>");
    let values = ["aaaaaaaa", "aaaaaaaabbbb"].map(|value| Hidden {
        value,
        shown: value,
    });
    let forms = Arc::new(Forms::of_secrets(&values));
    for (text, want) in [
        ("aaaaaaaaaaa.", "aaaaaaaa."),
        ("aaaaaaaabbbb.", "aaaaaaaabbbb."),
        ("aaaaaaaabb.", "aaaaaaaabb."),
        // All but the last.
        ("aaaaaaaabbb.", "aaaaaaaabbbb."),
    ] {
        let out = scrubbed(&forms, text.as_bytes().chunks(1));
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}

#[test]
fn what_is_shown_is_the_placeholder_of_the_value() {
    let values = [(SECRET, "rf-one"), (PLAIN, "rf-two")];
    let values = values.map(|(value, shown)| Hidden { value, shown });
    let forms = Forms::of_secrets(&values);
    let text = format!("a {PLAIN}{PLAIN} b {SECRET}");
    assert_eq!(
        &forms.scrub(text.as_bytes())[..],
        b"a rf-tworf-two b rf-one"
    );
}

#[test]
fn a_harmless_beginning_can_be_let_go_and_the_rest_stays_hidden() {
    let mut scrubber = Scrubber::new(forms());
    let mut out = BytesMut::new();
    scrubber.feed(b"likes gh", &mut out);
    assert_eq!(&out[..], b"likes ");
    scrubber.release(&mut out);
    assert_eq!(&out[..], b"likes gh");
    scrubber.feed(&PLAIN.as_bytes()[2..6], &mut out);
    scrubber.release(&mut out);
    assert_eq!(&out[..], b"likes gh", "too much of the value has come");
    scrubber.feed(&PLAIN.as_bytes()[6..], &mut out);
    scrubber.feed(b".", &mut out);
    assert_eq!(&out[..], b"likes gh[redacted].");
}

/// How much is held back of a text, at once and when nothing follows it.
fn held(text: &str) -> [usize; 2] {
    let mut scrubber = Scrubber::new(forms());
    let mut out = BytesMut::new();
    scrubber.feed(text.as_bytes(), &mut out);
    let at_once = text.len() - out.len();
    scrubber.release(&mut out);
    [at_once, text.len() - out.len()]
}

/// The same symbol with another last digit.
fn other(symbol: &str) -> String {
    let last = if symbol.ends_with('7') { "1" } else { "7" };
    format!("{}{last}", &symbol[..symbol.len() - 1])
}

#[test]
fn g5_what_is_held_back_does_not_tell_how_a_value_goes_on() {
    let letters = |text: &str| -> Vec<String> { text.chars().map(String::from).collect() };
    let written = |way: fn(u8) -> String| -> Vec<String> { PLAIN.bytes().map(way).collect() };
    let base64 = letters(&BASE64.encode(PLAIN.as_bytes()));
    let lines = base64
        .iter()
        .skip(3)
        .map(|symbol| format!("\n    {symbol}"));
    let lines = base64.iter().take(3).cloned().chain(lines).collect();
    for symbols in [
        letters(PLAIN),
        letters(&HEXLOWER.encode(PLAIN.as_bytes())),
        written(|byte| format!("%{byte:02x}")),
        written(|byte| format!("\\u{byte:04x}")),
        lines,
        base64,
    ] {
        // Up to the last few, with which base64 is complete.
        for count in 5..symbols.len() - 4 {
            let (first, last) = symbols[..count].split_at(count - 1);
            let right = format!("x {}{}", first.concat(), last[0]);
            let wrong = format!("x {}{}", first.concat(), other(&last[0]));
            assert_eq!(held(&right), held(&wrong), "{right}");
            let early: String = symbols[3..count]
                .iter()
                .map(|symbol| other(symbol))
                .collect();
            let early = format!("x {}{early}", symbols[..3].concat());
            assert_eq!(held(&right), held(&early), "{early}");
        }
    }
    assert_eq!(held("x ghp")[1], 0, "a beginning can be let go");
}

#[test]
fn characters_outside_ascii_are_found_as_json_writes_them() {
    let values = ["pass-wörd-😀"].map(|value| Hidden { value, shown: "_" });
    let forms = Forms::of_secrets(&values);
    for text in [
        "pass-w\\u00f6rd-\\ud83d\\ude00",
        "pass-w\\u00F6rd-\\uD83D\\uDE00",
        "pass-w%C3%B6rd-%f0%9f%98%80",
        "pass-w&#246;rd-&#x1f600;",
        "pass-wörd-😀",
    ] {
        assert_eq!(&forms.scrub(text.as_bytes())[..], b"_", "{text}");
    }
}

#[test]
fn g5_servers_that_write_a_value_otherwise_do_not_give_it_away() {
    let value = "s3cret/Value+01=_9";
    let forms = Forms::of_secrets(&[Hidden { value, shown: "_" }]);
    let marks = |way: fn(char) -> String| -> String {
        let is_mark = |character: char| !character.is_ascii_alphanumeric();
        let write = |one| {
            if is_mark(one) {
                way(one)
            } else {
                one.to_string()
            }
        };
        value.chars().map(write).collect()
    };
    let written = |way: fn(u8) -> String| -> Vec<u8> {
        value.bytes().map(way).collect::<String>().into_bytes()
    };
    let utf16: Vec<u16> = value.encode_utf16().collect();
    let utf32: Vec<u8> = value
        .chars()
        .flat_map(|one| u32::from(one).to_be_bytes())
        .collect();
    let base64 = BASE64.encode(format!("key: {value}").as_bytes());
    let lines: Vec<&str> = (0..base64.len() / 8)
        .map(|at| &base64[at * 8..at * 8 + 8])
        .collect();
    for (text, left) in [
        (value.to_uppercase().into_bytes(), 0),
        (value.to_lowercase().into_bytes(), 0),
        (
            utf16.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
            1,
        ),
        (
            utf16.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
            1,
        ),
        (utf32, 3),
        (
            marks(|mark| format!("%25{:02X}", u32::from(mark))).into_bytes(),
            0,
        ),
        (
            marks(|mark| format!("\\\\u00{:02x}", u32::from(mark))).into_bytes(),
            0,
        ),
        (value.replace('/', "\\\\/").into_bytes(), 0),
        (b"s3cret&sol;Value&plus;01&equals;&lowbar;9".to_vec(), 0),
        (written(|byte| format!("&#{byte};")), 0),
        (written(|byte| format!("&#x{byte:X};")), 0),
        (written(|byte| format!("\\x{byte:02x}")), 0),
        (written(|byte| format!("\\{byte:o}")), 0),
        (written(|byte| format!("\\u{{{byte:x}}}")), 0),
        (written(|byte| format!("={byte:02X}")), 0),
        // Quoted-printable breaks lines wherever they are long enough.
        (b"s3cret/=\r\nValue+0=\n1=3D_9".to_vec(), 0),
        // What an open escape or another charset takes of it.
        (value.as_bytes()[1..].to_vec(), 0),
        (value.as_bytes()[4..].to_vec(), 0),
        (value.as_bytes()[..value.len() - 4].to_vec(), 0),
        (lines.join("\n    ").into_bytes(), 18),
        (lines.join("\r\n\t").into_bytes(), 18),
    ] {
        let out = forms.scrub(&text);
        let shown = text.escape_ascii();
        assert!(
            out.contains(&b'_') && out.len() <= left + 1,
            "{shown}: {}",
            out.escape_ascii()
        );
    }
}

#[test]
fn short_values_are_found_as_they_are_and_nothing_is_hidden_for_empty_ones() {
    let values = ["abc", ""].map(|value| Hidden { value, shown: "_" });
    let forms = Forms::of_secrets(&values);
    assert_eq!(
        &forms.scrub(b"xabc%61bc YWJj 616263")[..],
        b"x__ YWJj 616263"
    );
    let none = Forms::of_secrets(&[]);
    assert_eq!(&none.scrub(b"anything")[..], b"anything");
}

#[test]
fn a_repetitive_value_costs_no_more_than_its_length_allows() {
    let value = "%25".repeat(500);
    let values = [Hidden {
        value: &value,
        shown: "_",
    }];
    let forms = Arc::new(Forms::of_secrets(&values));
    let out = scrubbed(&forms, value.repeat(3).as_bytes().chunks(7));
    assert_eq!(out, b"_");
}

#[test]
fn g5_what_a_cut_leaves_of_a_beginning_counts_though_another_is_in_it() {
    // In the digits of the first escape another part of the value begins.
    let value = "s0000abcdefgh";
    let values = [Hidden { value, shown: "_" }];
    let forms = Arc::new(Forms::of_secrets(&values));
    let escape = |byte| format!("\\U{byte:08x}");
    let text = value.bytes().map(escape).collect::<Vec<_>>().concat();
    for at in 0..text.len() {
        let (first, rest) = text.as_bytes().split_at(at);
        assert_eq!(scrubbed(&forms, [first, rest]), b"_", "{at}");
    }
}

#[test]
fn what_fills_files_is_no_beginning() {
    let values = [Hidden {
        value: PLAIN,
        shown: "_",
    }];
    let beginnings = Beginnings::of(&Pattern::all_of(PLAIN, 0, Case::Matters, Extent::Parts));
    let nothing = [0; 4096];
    assert_eq!(beginnings.next(&nothing, 0).at, nothing.len());
    let number = [b'g', 0, 0, 0].repeat(64);
    let candidate = beginnings.next(&number, 0);
    assert!(candidate.at > number.len() - 16, "only the last may go on");
    let forms = Arc::new(Forms::of_secrets(&values));
    assert_eq!(scrubbed(&forms, [&nothing[..]]), nothing);
}
