//! The virtual addresses: one of each family per name, the same for as long as
//! the sandbox lives.
//!
//! A virtual address is a spelling of its name and nothing else. It must never
//! be dialled on the host: ask [`is_virtual`] first.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use ringfence_policy::HostName;

/// The name server's own IPv4 address inside a sandbox; no name has it.
pub(crate) const RESOLVER_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The name server's own IPv6 address inside a sandbox; no name has it.
pub(crate) const RESOLVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd72, 0x6966, 0x656e, 0x6365, 0, 0, 0, 1);

/// 198.18.0.0/15, which RFC 2544 keeps for benchmarks: nobody's server.
const V4_BITS: u32 = 32 - 15;
/// A /96 of unique local addresses.
const V6_BITS: u32 = 128 - 96;
/// The network's own address and the resolver's come first.
const FIRST: u32 = 2;
/// As many as the smaller range holds.
const MOST: usize = (1 << V4_BITS) - FIRST as usize;

/// Which kind of address is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// What an address stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// It was handed out for this name.
    Name(HostName),
    /// It is a virtual address that no name has.
    Unknown,
    /// It is an address like any other.
    NotVirtual,
}

/// The names of one sandbox and their addresses.
pub(crate) struct Names {
    places: HashMap<Rc<HostName>, u32>,
    by_place: Vec<Rc<HostName>>,
    most: usize,
    overflow: Overflow,
}

/// Whether the table had to turn a name away.
enum Overflow {
    Never,
    Untold,
    Told,
}

impl Default for Names {
    fn default() -> Self {
        Self::new(16_384)
    }
}

impl Names {
    /// A table for at most `most` names.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            places: HashMap::new(),
            by_place: Vec::new(),
            most: most.min(MOST),
            overflow: Overflow::Never,
        }
    }

    /// The address of `name`, a new one when it has none yet. `None` when the
    /// table is full. `localhost` is the sandbox's own loopback.
    pub(crate) fn address_of(&mut self, name: &HostName, family: Family) -> Option<IpAddr> {
        if name.is_localhost() {
            return Some(loopback(family));
        }
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => self.add(name)?,
        };
        Some(address_at(place, family))
    }

    /// The name that `address` was handed out for.
    pub(crate) fn name_of(&self, address: IpAddr) -> Named {
        let Some(place) = place_of(address) else {
            return Named::NotVirtual;
        };
        let index = place.checked_sub(FIRST).map(|index| index as usize);
        match index.and_then(|index| self.by_place.get(index)) {
            Some(name) => Named::Name(HostName::clone(name)),
            None => Named::Unknown,
        }
    }

    /// How many names the table holds at most, once: the first time this is
    /// called after a name was turned away.
    pub(crate) fn overflow_to_tell(&mut self) -> Option<usize> {
        if matches!(self.overflow, Overflow::Untold) {
            self.overflow = Overflow::Told;
            return Some(self.most);
        }
        None
    }

    fn add(&mut self, name: &HostName) -> Option<u32> {
        if self.by_place.len() >= self.most {
            if matches!(self.overflow, Overflow::Never) {
                self.overflow = Overflow::Untold;
            }
            return None;
        }
        let place = FIRST + u32::try_from(self.by_place.len()).ok()?;
        let name = Rc::new(name.clone());
        self.by_place.push(Rc::clone(&name));
        self.places.insert(name, place);
        Some(place)
    }
}

/// True for every address that only means something inside a sandbox.
pub(crate) fn is_virtual(address: IpAddr) -> bool {
    place_of(address).is_some()
}

fn loopback(family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::LOCALHOST.into(),
        Family::V6 => Ipv6Addr::LOCALHOST.into(),
    }
}

fn address_at(place: u32, family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from_bits(v4_base() | place).into(),
        Family::V6 => Ipv6Addr::from_bits(v6_base() | u128::from(place)).into(),
    }
}

/// Where in its range a virtual address lies.
fn place_of(address: IpAddr) -> Option<u32> {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let place = v4.to_bits() ^ v4_base();
            (place >> V4_BITS == 0).then_some(place)
        }
        IpAddr::V6(v6) => u32::try_from(v6.to_bits() ^ v6_base()).ok(),
    }
}

const fn v4_base() -> u32 {
    RESOLVER_V4.to_bits() >> V4_BITS << V4_BITS
}

const fn v6_base() -> u128 {
    RESOLVER_V6.to_bits() >> V6_BITS << V6_BITS
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use ringfence_policy::{AddressClass, HOST_ALIAS};

    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn one_address_of_each_family_per_name() {
        let mut names = Names::default();
        let api = name("api.example.org");
        let v4 = names.address_of(&api, Family::V4).unwrap();
        let v6 = names.address_of(&api, Family::V6).unwrap();
        assert_eq!(v4, "198.18.0.2".parse::<IpAddr>().unwrap());
        assert_eq!(v6, "fd72:6966:656e:6365::2".parse::<IpAddr>().unwrap());
        let host = names.address_of(&name(HOST_ALIAS), Family::V4).unwrap();
        assert_ne!(host, v4);
        for spelling in ["API.example.org", "api.example.org."] {
            assert_eq!(names.address_of(&name(spelling), Family::V4), Some(v4));
        }
        assert_eq!(names.name_of(v4), Named::Name(api.clone()));
        assert_eq!(names.name_of(v6), Named::Name(api.clone()));
        let mapped = "::ffff:198.18.0.2".parse().unwrap();
        assert_eq!(names.name_of(mapped), Named::Name(api));
    }

    #[test]
    fn localhost_is_the_sandbox_itself() {
        let mut names = Names::new(0);
        for text in ["localhost", "a.localhost"] {
            let found = |names: &mut Names, family| names.address_of(&name(text), family);
            assert_eq!(found(&mut names, Family::V4), Some([127, 0, 0, 1].into()));
            assert_eq!(
                found(&mut names, Family::V6),
                Some(Ipv6Addr::LOCALHOST.into())
            );
        }
        assert_eq!(names.name_of([127, 0, 0, 1].into()), Named::NotVirtual);
    }

    #[test]
    fn addresses_that_nobody_has() {
        let names = Names::default();
        for text in [
            "198.18.0.0",
            "198.18.0.1",
            "198.18.0.2",
            "198.19.255.255",
            "fd72:6966:656e:6365::",
            "fd72:6966:656e:6365::1",
            "fd72:6966:656e:6365::ffff:ffff",
        ] {
            let address = text.parse().unwrap();
            assert_eq!(names.name_of(address), Named::Unknown, "{text}");
            assert!(is_virtual(address), "{text}");
        }
        for text in [
            "198.17.255.255",
            "198.20.0.0",
            "fd72:6966:656e:6365::1:0:0",
            "fd72:6966:656e:6364::1",
            "::1",
        ] {
            let address = text.parse().unwrap();
            assert_eq!(names.name_of(address), Named::NotVirtual, "{text}");
            assert!(!is_virtual(address), "{text}");
        }
    }

    #[test]
    fn a_full_table_keeps_what_it_has_and_says_so_once() {
        let mut names = Names::new(2);
        assert!(names.address_of(&name("a.test"), Family::V4).is_some());
        assert!(names.address_of(&name("b.test"), Family::V6).is_some());
        assert_eq!(names.overflow_to_tell(), None);
        assert_eq!(names.address_of(&name("c.test"), Family::V4), None);
        assert_eq!(names.overflow_to_tell(), Some(2));
        assert_eq!(names.address_of(&name("d.test"), Family::V4), None);
        assert_eq!(names.overflow_to_tell(), None);
        assert!(names.address_of(&name("a.test"), Family::V6).is_some());
    }

    #[test]
    fn the_largest_table_stays_inside_its_ranges() {
        let last = FIRST + u32::try_from(MOST).unwrap() - 1;
        for family in [Family::V4, Family::V6] {
            assert_eq!(place_of(address_at(last, family)), Some(last));
        }
        assert_eq!(
            address_at(last, Family::V4),
            IpAddr::from([198, 19, 255, 255])
        );
        assert_eq!(Names::new(usize::MAX).most, MOST);
    }

    #[test]
    fn g1_no_rule_about_public_addresses_covers_a_virtual_one() {
        for family in [Family::V4, Family::V6] {
            let address = address_at(FIRST, family);
            assert_ne!(AddressClass::of(address), AddressClass::Public);
        }
    }

    proptest! {
        #[test]
        fn addresses_are_distinct_stable_and_lead_back(
            wanted in prop::collection::vec("[a-d]{1,2}\\.test", 1..60),
        ) {
            let mut names = Names::new(12);
            let mut given = HashMap::new();
            for text in &wanted {
                for family in [Family::V4, Family::V6] {
                    let wanted = name(text);
                    let Some(address) = names.address_of(&wanted, family) else { continue };
                    prop_assert!(is_virtual(address));
                    prop_assert_eq!(names.name_of(address), Named::Name(wanted));
                    let before = given.insert((text.clone(), address.is_ipv4()), address);
                    prop_assert!(before.is_none_or(|before| before == address));
                }
            }
            let distinct: HashSet<_> = given.values().collect();
            prop_assert_eq!(distinct.len(), given.len());
        }
    }
}
