//! Secrets in the words of programs are not on record.

use super::{Ledger, argv};

const SECRET: &str = "hunter2-very-secret";

#[test]
fn g5_secrets_in_words_are_left_out() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let cases = [
        vec![format!("--token={SECRET}")],
        vec!["--password".to_owned(), SECRET.to_owned()],
        vec![format!("--api-key={SECRET}")],
        vec!["-H".to_owned(), format!("Authorization: Bearer {SECRET}")],
        vec![format!("Authorization: Basic {SECRET}")],
        vec![format!("https://user:{SECRET}@git.example.org/x")],
        vec![format!("https://api.example.org/x?token={SECRET}&y=1")],
        vec![format!("PASSWORD={SECRET}")],
        vec![token.clone()],
    ];
    for words in cases {
        let ledger = Ledger::new();
        // In the command itself, and in a program that it starts.
        let mut command = vec!["sh", "-c", "true \"$@\"; /bin/true \"$@\"", "sh"];
        command.extend(words.iter().map(String::as_str));
        let recorded = ledger.run_words(&[], &command).expect_code(0);
        let text = std::fs::read_to_string(ledger.state.join(super::LOG)).expect("the log");
        for secret in [SECRET, &token] {
            assert!(!text.contains(secret), "{words:?}: {text}");
        }
        assert!(text.contains("[redacted]"), "{words:?}: {text}");
        let started = recorded.calls("exec");
        let last = argv(started.last().expect("a program"));
        assert_eq!(last[0], "/bin/true", "{last:?}");
        let printed = [
            &["show"][..],
            &["tail"],
            &["list"],
            &["export", "--format", "json"],
        ];
        for words in printed {
            let told = ledger.audit(words).expect_code(0).stdout;
            assert!(
                !told.contains(SECRET) && !told.contains(&token),
                "{words:?}: {told}"
            );
        }
    }
}

#[test]
fn g5_words_without_secrets_are_kept_as_they_are() {
    let ledger = Ledger::new();
    let words = [
        "/bin/true",
        "PATH=/opt:$PWD:/usr/bin",
        "--message",
        "a token of thanks",
        "--key-size=4096",
        "https://example.org/a?page=2",
        "-p",
        "8080",
    ];
    let recorded = ledger.run_words(&[], &words).expect_code(0);
    assert_eq!(argv(recorded.calls("exec")[0]), words);
}

#[test]
fn g5_a_key_in_a_word_is_left_out() {
    let ledger = Ledger::new();
    let key = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
        "QUJD".repeat(16)
    );
    ledger.run_words(&[], &["/bin/true", &key]).expect_code(0);
    let text = std::fs::read_to_string(ledger.state.join(super::LOG)).expect("the log");
    assert!(!text.contains("QUJDQUJD"), "{text}");
}
