//! The hosts file: names that the host's owner has given addresses to.

use std::collections::HashMap;
use std::net::IpAddr;

use ringfence_policy::HostName;

use super::source::{Source, Version};

/// Names whose lines are remembered.
const MOST_NAMES: usize = 1024;

/// The hosts file. It may be long, so that it is not kept, only what it said
/// about the names that were asked for.
pub(super) struct HostsFile {
    source: Source,
    version: Option<Version>,
    known: HashMap<HostName, Vec<IpAddr>>,
}

impl HostsFile {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            version: None,
            known: HashMap::new(),
        }
    }

    /// All addresses the file gives to `name`; a name it gives one to is not
    /// asked for elsewhere, whichever family that one is of.
    pub(super) fn addresses_of(&mut self, name: &HostName) -> Vec<IpAddr> {
        let version = Some(self.source.version());
        if self.version != version || self.known.len() >= MOST_NAMES {
            self.known.clear();
            self.version = version;
        }
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let text = self.source.read().unwrap_or_default();
        let found = scan(&text, name);
        self.known.insert(name.clone(), found.clone());
        found
    }
}

fn scan(text: &str, name: &HostName) -> Vec<IpAddr> {
    let mut found = Vec::new();
    let addresses = text.lines().filter_map(|line| address_in(line, name));
    for address in addresses {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// The address of a line that gives one to `name`.
fn address_in(line: &str, name: &HostName) -> Option<IpAddr> {
    let line = line.split('#').next()?;
    let mut words = line.split_whitespace();
    let address = words.next()?;
    let same = |word: &str| {
        let word = word.strip_suffix('.').unwrap_or(word);
        word.eq_ignore_ascii_case(name.as_str())
    };
    if !words.any(same) {
        return None;
    }
    // A zone is about one link of this host, where an address is not enough.
    let address: IpAddr = address.parse().ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
127.0.0.1 localhost\n\
# 192.0.2.9 a.example.org\n\
192.0.2.1\ta.example.org A2 # b.example.org\n\
  2001:db8::1 alias A.Example.Org.\n\
192.0.2.1 a.example.org\n\
::ffff:192.0.2.7 mapped.example.org\n\
fe80::1%eth0 zone.example.org\n\
nonsense c.example.org\n\
192.0.2.3\n";

    fn addresses(name: &str) -> Vec<String> {
        let name = HostName::parse(name).unwrap();
        scan(TEXT, &name).iter().map(IpAddr::to_string).collect()
    }

    #[test]
    fn every_line_about_a_name_counts() {
        assert_eq!(addresses("a.example.org"), ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(addresses("a2"), ["192.0.2.1"]);
        assert_eq!(addresses("mapped.example.org"), ["192.0.2.7"]);
    }

    #[test]
    fn comments_and_nonsense_do_not() {
        for name in [
            "b.example.org",
            "c.example.org",
            "zone.example.org",
            "example.org",
        ] {
            assert_eq!(addresses(name), [""; 0], "{name}");
        }
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        let name = HostName::parse("a.example.org").unwrap();
        let mut hosts = HostsFile::new(Source::File(path.clone()));
        assert!(hosts.addresses_of(&name).is_empty());
        for address in ["192.0.2.1", "192.0.2.22"] {
            std::fs::write(&path, format!("{address} a.example.org\n")).unwrap();
            let wanted: IpAddr = address.parse().unwrap();
            assert_eq!(hosts.addresses_of(&name), [wanted]);
            assert_eq!(hosts.addresses_of(&name), [wanted]);
        }
        std::fs::remove_file(&path).unwrap();
        assert!(hosts.addresses_of(&name).is_empty());
    }
}
