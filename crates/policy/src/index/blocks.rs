//! Address blocks by prefix: one hash lookup for each prefix length in use.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;

use super::{Found, RuleId};
use crate::address::Cidr;

#[derive(Debug, Clone, Default)]
pub(super) struct BlockIndex {
    blocks: HashMap<IpNet, Vec<RuleId>>,
    lengths_v4: BTreeSet<u8>,
    lengths_v6: BTreeSet<u8>,
}

impl BlockIndex {
    pub(super) fn insert(&mut self, block: Cidr, id: RuleId) {
        let net = block.net();
        let lengths = match net {
            IpNet::V4(_) => &mut self.lengths_v4,
            IpNet::V6(_) => &mut self.lengths_v6,
        };
        lengths.insert(net.prefix_len());
        self.blocks.entry(net.trunc()).or_default().push(id);
    }

    pub(super) fn find(&self, address: IpAddr) -> Found {
        let address = address.to_canonical();
        let lengths = match address {
            IpAddr::V4(_) => &self.lengths_v4,
            IpAddr::V6(_) => &self.lengths_v6,
        };
        let mut found = Found::default();
        for net in lengths
            .iter()
            .filter_map(|length| IpNet::new(address, *length).ok())
        {
            found.probes += 1;
            found
                .ids
                .extend(self.blocks.get(&net.trunc()).into_iter().flatten());
        }
        found
    }
}
