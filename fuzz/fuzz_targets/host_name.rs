//! Names and addresses: canonical forms are fixed points, and no name could be an address.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_policy::{Dialect, HostName, HostPattern, Target};

fuzz_target!(|text: &str| {
    if let Ok(target) = Target::parse(text) {
        assert_eq!(Target::parse(&target.to_string()).as_ref(), Ok(&target));
    }
    if let Ok(name) = HostName::parse(text) {
        assert_eq!(HostName::parse(name.as_str()).as_ref(), Ok(&name));
        assert_eq!(Target::parse(text), Ok(Target::Name(name.clone())));
        assert!(name.as_str().parse::<std::net::IpAddr>().is_err());
        assert!(
            name.as_str()
                .bytes()
                .all(|b| b.is_ascii_graphic() && !b"%:/@\\".contains(&b))
        );
        assert!(HostPattern::Exact(name.clone()).matches(&name));
    }
    for dialect in [Dialect::Native, Dialect::Srt] {
        if let Ok(pattern) = HostPattern::parse(text, dialect) {
            assert_eq!(
                HostPattern::parse(&pattern.to_string(), dialect),
                Ok(pattern)
            );
        }
    }
});
