//! Words for a shell.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The words as text of which a shell makes the same words again.
pub(super) fn quote<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> OsString {
    let quoted: Vec<Vec<u8>> = words
        .into_iter()
        .map(|word| quote_word(word.as_ref().as_bytes()))
        .collect();
    OsString::from_vec(quoted.join(&b' '))
}

fn quote_word(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./:=@+,-".contains(byte);
    if !word.is_empty() && word[0] != b'=' && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => quoted.extend_from_slice(br#"'"'"'"#),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stay_and_others_are_quoted() {
        for (words, want) in [
            (&["ls", "-la", "a/b.c", "X=1"][..], "ls -la a/b.c X=1"),
            (&["echo", "a b", ""], "echo 'a b' ''"),
            (&["it's"], r#"'it'"'"'s'"#),
            (
                &["=ls", "!x", "$HOME", "a;b", "*", "ä"],
                "'=ls' '!x' '$HOME' 'a;b' '*' 'ä'",
            ),
        ] {
            assert_eq!(quote(words), want, "{words:?}");
        }
    }

    #[test]
    fn a_shell_reads_the_same_words() {
        let words = [
            "printf", r"%s\0", "it's", "$(id)", "`id`", "\\", "\n", "a\tb", "-", "\"!\"",
        ];
        let command = quote(words);
        let mut shell = std::process::Command::new("bash");
        let output = shell.arg("-c").arg(command).output().unwrap();
        let read = String::from_utf8(output.stdout).unwrap();
        let read: Vec<&str> = read.trim_end_matches('\0').split('\0').collect();
        assert_eq!(read, words[2..]);
    }
}
