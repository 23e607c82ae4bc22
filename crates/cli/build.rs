//! Has the linker put the code that a start executes side by side, as
//! `start.ld` says: each part of the program that is touched is a page fault
//! in every process of a sandbox.
#![forbid(unsafe_code)]

use std::env;

const SCRIPT: &str = "start.ld";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SCRIPT}");
    if is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && linker_takes_scripts(&variable("CARGO_ENCODED_RUSTFLAGS"))
    {
        let folder = variable("CARGO_MANIFEST_DIR");
        // Not `-Wl,-T,…`, which a comma in the folder's name would cut.
        println!("cargo:rustc-link-arg-bin=ringfence=-T{folder}/{SCRIPT}");
    }
}

/// Whether no other linker is chosen: mold and gold know no such scripts.
fn linker_takes_scripts(rustflags: &str) -> bool {
    rustflags
        .split(|between: char| between == '\x1f' || between.is_whitespace())
        .filter_map(|flag| flag.split_once("-fuse-ld="))
        .all(|(_, linker)| matches!(linker, "lld" | "bfd"))
}

fn is(name: &str, value: &str) -> bool {
    variable(name) == value
}

/// What cargo says; empty where it says nothing.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
