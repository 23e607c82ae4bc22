//! The beginnings of forms: short texts, one of which every occurrence begins
//! with.

use super::pattern::{Alternative, Pattern, UNBROKEN};

/// Their length, where a form does not begin with a longer way to write its
/// first symbol.
const LENGTH: usize = UNBROKEN;
/// So much is enough of such a way. Longer ones would be many for each value;
/// so they are the same few for all.
const ENOUGH: usize = 4;

/// The beginnings of `pattern` and of its parts.
pub(super) fn of(pattern: &Pattern) -> Vec<Vec<u8>> {
    let mut literals = Vec::new();
    for first in pattern.beginnings() {
        extend(pattern, first, &[], &mut literals);
    }
    literals
}

fn extend(pattern: &Pattern, at: usize, text: &[u8], literals: &mut Vec<Vec<u8>>) {
    if text.len() >= LENGTH || at >= pattern.len() {
        literals.push(text.to_vec());
        return;
    }
    for byte in pattern.bytes_at(at) {
        extend(pattern, at + 1, &[text, &[byte]].concat(), literals);
    }
    for way in pattern.alternatives(at) {
        // Nothing begins with a new line.
        if text.is_empty() && way.symbols == 0 {
            continue;
        }
        let whole = way.spelling.len();
        let length = match text.len() {
            0 => whole.min(ENOUGH),
            used => whole.min(LENGTH - used),
        };
        for written in first_bytes(&way, length) {
            let text = [text, &written].concat();
            if length == whole {
                extend(pattern, at + way.symbols as usize, &text, literals);
            } else {
                literals.push(text);
            }
        }
    }
}

/// The first bytes of a spelling, with its digits in every case.
fn first_bytes(way: &Alternative<'_>, length: usize) -> Vec<Vec<u8>> {
    let mut texts = vec![Vec::new()];
    for offset in 0..length {
        let bytes = way.spelling.bytes_at(offset);
        texts = texts
            .iter()
            .flat_map(|text| bytes.iter().map(move |byte| [&text[..], &[*byte]].concat()))
            .collect();
    }
    texts
}
