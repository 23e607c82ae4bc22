//! G11: starting programs does not fail because of signals.

use ringfence_testkit::Folder;

use super::inside;

/// The shell gets signals of children that end while it becomes another
/// program, and has a handler for them.
const CHILDREN: &str = "true | true & exec /bin/true";

/// More than a pipe page: the shell has a child write it, which is there until
/// the program reads.
const DOCUMENT: &str = "{ head -c 6000 /dev/zero | tr '\\0' x; echo; } > text; \
    { echo 'exec /bin/true <<END'; cat text; echo END; } > document";

/// Runs `shell WORDS` that often and says how often it failed.
fn often(count: usize, words: &str) -> String {
    format!(
        "failed=0; i=0; while [ $i -lt {count} ]; do {words} || failed=$((failed+1)); \
         i=$((i+1)); done; echo $failed failed"
    )
}

fn never_fails(count: usize, beside: &str) {
    let folder = Folder::new();
    let shells = ["dash", "bash"];
    for shell in shells {
        let child = often(count, &format!("{shell} -c '{CHILDREN}'"));
        let document = often(count, &format!("{shell} document"));
        for script in [child, format!("{DOCUMENT}; {document}")] {
            let outcome = inside(&folder, &format!("{beside} {script}"));
            assert_eq!(
                outcome.expect_code(0).stdout,
                "0 failed\n",
                "{shell}: {script}"
            );
        }
    }
}

#[test]
fn g11_no_start_of_a_program_is_interrupted() {
    never_fails(300, "");
}

#[test]
#[ignore = "slow: thousands of starts beside loops that take every processor"]
fn g11_no_start_of_a_program_is_interrupted_under_load() {
    never_fails(1000, "(while :; do :; done) & (while :; do :; done) &");
}
