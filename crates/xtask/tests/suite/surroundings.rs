//! Only the binary reads the process that it runs in: everything below is
//! handed its variables and its directory.

use super::assert_none;
use super::workspace::{self, Source};

/// The crates that are handed them.
const HANDED: [&str; 5] = [
    "crates/policy/src/",
    "crates/audit/src/",
    "crates/egress/src/",
    "crates/sandbox/src/",
    "crates/runtime/src/",
];
/// What reads them.
const READERS: [&str; 6] = [
    "env::var(",
    "env::var_os(",
    "env::vars(",
    "env::vars_os(",
    "env::current_dir(",
    "environment_where(",
];

#[test]
fn nothing_below_the_binary_reads_its_environment() {
    assert_none(&reading(&workspace::sources().unwrap()));
}

fn reading(sources: &[Source]) -> Vec<String> {
    let handed = sources
        .iter()
        .filter(|source| HANDED.iter().any(|own| source.path.starts_with(own)));
    let mut complaints = Vec::new();
    for source in handed.filter(|source| !is_test(&source.path)) {
        let code = source.text.split("#[cfg(test)]\nmod tests").next();
        for reader in READERS {
            if code.unwrap_or_default().contains(reader) {
                complaints.push(format!("{} calls {reader}…)", source.path));
            }
        }
    }
    complaints
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

#[test]
fn a_reader_is_seen_outside_of_tests_alone() {
    let path = "crates/runtime/src/run.rs";
    let call = "fn f() { std::env::var_os(\"HOME\"); }\n";
    let in_tests = format!("#[cfg(test)]\nmod tests {{ {call} }}");
    let count = |path: &str, text: &str| reading(&[Source::new(path, text)]).len();
    assert_eq!(count(path, call), 1);
    assert_eq!(count(path, &in_tests), 0);
    assert_eq!(count("crates/runtime/src/kits/tests.rs", call), 0);
    assert_eq!(count("crates/cli/src/environment.rs", call), 0);
}
