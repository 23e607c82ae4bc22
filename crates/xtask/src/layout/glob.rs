//! Wildcards as linkers read them, as far as our script uses them: `*` is any
//! text, slashes included, and everything else is itself.

/// Whether `pattern` describes the whole of `text`.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    // There is always a first part, which is the beginning.
    let Some(mut rest) = parts.next().and_then(|head| text.strip_prefix(head)) else {
        return false;
    };
    let Some(tail) = parts.next_back() else {
        return rest.is_empty();
    };
    // The earliest place for each part leaves most for those after it.
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_star_it_is_the_text_itself() {
        assert!(matches(".text", ".text"));
        assert!(!matches(".text", ".text.a"));
        assert!(!matches(".text.a", ".text"));
    }

    #[test]
    fn a_star_is_any_text() {
        for text in ["/a/b.std-1.o", ".std-", "x.std-.std-y"] {
            assert!(matches("*.std-*", text), "{text}");
        }
        assert!(!matches("*.std-*", "std-1"));
        assert!(matches("a*b*c", "a-b-b-c"));
        assert!(matches("a**c", "ac"));
        assert!(matches("*", ""));
    }

    #[test]
    fn parts_do_not_overlap() {
        assert!(!matches("ab*bc", "abc"));
        assert!(!matches("a*b*b", "ab"));
    }
}
