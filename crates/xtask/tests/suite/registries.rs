//! No file names the host of a package registry: what may be reached is said
//! by a policy, never built in.

use super::assert_none;
use super::workspace::{self, Source};

/// The hosts, spelled backwards, or this file would be its own finding.
const BACKWARDS: &[&str] = &[
    "oi.setarc",
    "gro.sjmpn",
    "moc.gkpnray",
    "gro.ipyp",
    "gro.detsohnohtyp",
    "gro.smegybur",
    "gro.nevam",
    "gro.ehcapa.nevam",
    "gro.tegun",
    "gro.tsigakcap",
    "gro.gnalog.yxorp",
];

/// Lock files name the source of every package; cargo writes them.
const GENERATED: &str = "Cargo.lock";

#[test]
fn no_file_names_a_package_registry() {
    assert_none(&naming_registries(&workspace::sources().unwrap()));
}

fn naming_registries(sources: &[Source]) -> Vec<String> {
    let hosts = hosts();
    let written = sources
        .iter()
        .filter(|source| source.path.rsplit('/').next() != Some(GENERATED));
    written
        .filter_map(|source| {
            let text = source.text.to_ascii_lowercase();
            let host = hosts.iter().find(|host| text.contains(host.as_str()))?;
            Some(format!("{} names {host}", source.path))
        })
        .collect()
}

fn hosts() -> Vec<String> {
    let reverse = |word: &&str| word.chars().rev().collect();
    BACKWARDS.iter().map(reverse).collect()
}

#[test]
fn each_host_is_seen_in_any_case() {
    for host in hosts() {
        let text = format!("see https://STATIC.{}/x", host.to_uppercase());
        assert_eq!(
            naming_registries(&[Source::new("README.md", &text)]).len(),
            1
        );
    }
}

#[test]
fn lock_files_and_other_hosts_are_fine() {
    let host = hosts().remove(0);
    let sources = [
        Source::new("fuzz/Cargo.lock", &host),
        Source::new("README.md", "https://example.org"),
    ];
    assert_none(&naming_registries(&sources));
}
