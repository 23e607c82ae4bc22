//! Unsafe code lives in one crate, and no other can let it in.

use std::path::Path;

use super::assert_none;
use super::workspace::{self, Source};

const HOME: &str = "crates/sys/";

#[test]
fn every_other_crate_forbids_unsafe_code() {
    assert_none(&not_forbidding(&workspace::sources().unwrap()));
}

#[test]
fn nothing_else_lets_unsafe_code_in() {
    assert_none(&letting_in(&workspace::sources().unwrap()));
}

fn not_forbidding(sources: &[Source]) -> Vec<String> {
    let roots = sources.iter().filter(|source| is_crate_root(&source.path));
    roots
        .filter(|source| !source.path.starts_with(HOME))
        .filter(|source| !forbids(&source.text))
        .map(|source| format!("{} does not forbid unsafe code", source.path))
        .collect()
}

fn letting_in(sources: &[Source]) -> Vec<String> {
    let code = sources.iter().filter(|source| is_rust(&source.path));
    code.filter(|source| !source.path.starts_with(HOME))
        .filter(|source| lets_in(&source.text))
        .map(|source| format!("{} lets unsafe code in", source.path))
        .collect()
}

/// `build.rs`, `src/lib.rs`, `src/main.rs` and `src/bin/*.rs` of a crate.
fn is_crate_root(path: &str) -> bool {
    let Some((_, file)) = path
        .strip_prefix("crates/")
        .and_then(|path| path.split_once('/'))
    else {
        return false;
    };
    matches!(file, "build.rs" | "src/lib.rs" | "src/main.rs")
        || (file.starts_with("src/bin/") && is_rust(file))
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end == "rs")
}

fn forbids(text: &str) -> bool {
    text.lines()
        .any(|line| line.trim() == "#![forbid(unsafe_code)]")
}

/// Whether an attribute lowers the lint, alone or in a list.
fn lets_in(text: &str) -> bool {
    let code: String = text.split_whitespace().collect();
    ["allow(", "expect(", "warn("].iter().any(|level| {
        let lists = code.split(level).skip(1);
        lists
            .filter_map(|rest| rest.split(')').next())
            .any(|list| list.split(',').any(|lint| lint == "unsafe_code"))
    })
}

#[test]
fn a_crate_root_without_the_line_is_seen() {
    let sources = [
        Source::new(
            "crates/policy/src/lib.rs",
            "//! Doc.\n#![forbid(unsafe_code)]\n",
        ),
        Source::new("crates/audit/src/lib.rs", "// #![forbid(unsafe_code)]\n"),
        Source::new("crates/cli/src/main.rs", "fn main() {}\n"),
        Source::new("crates/cli/src/bin/other.rs", ""),
        Source::new("crates/cli/build.rs", ""),
        Source::new("crates/sys/src/lib.rs", ""),
        Source::new("crates/policy/src/host.rs", ""),
    ];
    assert_eq!(not_forbidding(&sources).len(), 4);
}

#[test]
fn letting_unsafe_code_in_is_seen_in_every_spelling() {
    // Spelled in two parts, or this file would be its own finding.
    let bad =
        |head: &str, tail: &str| Source::new("crates/cli/tests/all.rs", &[head, tail].concat());
    let sources = [
        bad("#![allow(", "unsafe_code)]"),
        bad("#[allow(dead_code,", "\n    unsafe_code\n)]"),
        bad("#[expect(", "unsafe_code, reason = \"x\")]"),
    ];
    assert_eq!(letting_in(&sources).len(), 3);

    let fine = [
        Source::new(
            "crates/sys/src/lib.rs",
            &["#![allow(", "unsafe_code)]"].concat(),
        ),
        Source::new(
            "crates/cli/src/lib.rs",
            "#![forbid(unsafe_code)] #[allow(dead_code)]",
        ),
    ];
    assert_none(&letting_in(&fine));
}
