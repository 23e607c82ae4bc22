//! The `nf_tables` rules that hand every TCP connection to the transparent
//! listeners.
//!
//! In the language of `nft`, for listeners on ports 4000 and 6000:
//! ```text
//! table inet ringfence {
//!     chain prerouting {
//!         type filter hook prerouting priority mangle; policy accept;
//!         meta l4proto tcp ip daddr != 127.0.0.0/8 tproxy ip to :4000 accept
//!         meta l4proto tcp ip6 daddr != ::1 tproxy ip6 to :6000 accept
//!     }
//! }
//! ```

use std::net::Ipv6Addr;

use super::Family;
use super::netlink::{APPEND, Batch, Body, CREATE, EXCLUSIVE, NETFILTER, exchange};
use crate::Result;

const SUBSYSTEM: u16 = 10;
const NFNL_MSG_BATCH_BEGIN: u16 = 16;
const NFNL_MSG_BATCH_END: u16 = 17;
const NFT_MSG_NEWTABLE: u16 = SUBSYSTEM << 8;
const NFT_MSG_NEWCHAIN: u16 = (SUBSYSTEM << 8) | 3;
const NFT_MSG_NEWRULE: u16 = (SUBSYSTEM << 8) | 6;

const NFPROTO_UNSPEC: u8 = 0;
const NFPROTO_INET: u8 = 1;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;

const NFTA_TABLE_NAME: u16 = 1;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;

const NF_INET_PRE_ROUTING: u32 = 0;
const PRIORITY_MANGLE: i32 = -150;

const TABLE: &[u8] = b"ringfence\0";
const CHAIN: &[u8] = b"prerouting\0";

/// Hands every TCP connection to an address other than loopback, on any port,
/// to the transparent listeners on these ports, where its local address is
/// the destination that was dialled.
///
/// All or nothing: after an error, whichever it is, the namespace is as
/// before. Without the second port, IPv6 is left as it is.
pub fn intercept_tcp(port_v4: u16, port_v6: Option<u16>) -> Result<()> {
    let mut batch = Batch::with_capacity(1536);
    batch.push(NFNL_MSG_BATCH_BEGIN, 0, enclose);
    batch.push(NFT_MSG_NEWTABLE, CREATE | EXCLUSIVE, table);
    batch.push(NFT_MSG_NEWCHAIN, CREATE | EXCLUSIVE, chain);
    let v4 = |body: &mut Body<'_>| rule(body, Family::V4, port_v4);
    match port_v6 {
        None => batch.push_acknowledged(NFT_MSG_NEWRULE, CREATE | APPEND, v4),
        Some(port) => {
            batch.push(NFT_MSG_NEWRULE, CREATE | APPEND, v4);
            batch.push_acknowledged(NFT_MSG_NEWRULE, CREATE | APPEND, |body| {
                rule(body, Family::V6, port);
            });
        }
    }
    batch.push(NFNL_MSG_BATCH_END, 0, enclose);
    match exchange(NETFILTER, &batch)?.first() {
        None => Ok(()),
        Some(refusal) => Err(refusal.errno),
    }
}

/// Writes a `struct nfgenmsg`: family, version, and what the family leaves
/// open.
fn general(body: &mut Body<'_>, family: u8, resource: u16) {
    body.fixed(&[family, 0]);
    body.fixed(&resource.to_be_bytes());
}

fn enclose(body: &mut Body<'_>) {
    general(body, NFPROTO_UNSPEC, SUBSYSTEM);
}

fn table(body: &mut Body<'_>) {
    general(body, NFPROTO_INET, 0);
    body.attribute(NFTA_TABLE_NAME, TABLE);
}

fn chain(body: &mut Body<'_>) {
    general(body, NFPROTO_INET, 0);
    body.attribute(NFTA_CHAIN_TABLE, TABLE);
    body.attribute(NFTA_CHAIN_NAME, CHAIN);
    body.nest(NFTA_CHAIN_HOOK, |hook| {
        hook.attribute(NFTA_HOOK_HOOKNUM, &NF_INET_PRE_ROUTING.to_be_bytes());
        hook.attribute(NFTA_HOOK_PRIORITY, &PRIORITY_MANGLE.to_be_bytes());
    });
    body.attribute(NFTA_CHAIN_TYPE, b"filter\0");
}

fn rule(body: &mut Body<'_>, family: Family, port: u16) {
    general(body, NFPROTO_INET, 0);
    body.attribute(NFTA_RULE_TABLE, TABLE);
    body.attribute(NFTA_RULE_CHAIN, CHAIN);
    body.nest(NFTA_RULE_EXPRESSIONS, |list| {
        let mut rule = Expressions(list);
        rule.is_tcp();
        rule.is_not_to_loopback(family);
        rule.take_to(family, port);
        rule.accept();
    });
}

/// The expressions of a rule, which work on one register. Their attributes
/// count from 1 in the order of `linux/netfilter/nf_tables.h`.
struct Expressions<'a, 'b>(&'a mut Body<'b>);

/// How a comparison lets a packet pass.
#[derive(Clone, Copy)]
enum Compare {
    Equal = 0,
    NotEqual = 1,
}

impl Expressions<'_, '_> {
    fn is_tcp(&mut self) {
        const NFT_META_L4PROTO: u32 = 16;
        const TCP: u8 = 6;
        self.load_meta(NFT_META_L4PROTO);
        self.compare(Compare::Equal, &[TCP]);
    }

    fn is_not_to_loopback(&mut self, family: Family) {
        const DESTINATION_V4: u32 = 16;
        const DESTINATION_V6: u32 = 24;
        match family {
            Family::V4 => {
                self.load_network_header(DESTINATION_V4, 1);
                self.compare(Compare::NotEqual, &[127]);
            }
            Family::V6 => {
                self.load_network_header(DESTINATION_V6, 16);
                self.compare(Compare::NotEqual, &Ipv6Addr::LOCALHOST.octets());
            }
        }
    }

    /// Looks for the packet's connection first, then for a listener on `port`.
    /// The rule ends here unless it found one that is transparent, which lets
    /// the packets of the dialling side through. It also ends for the other
    /// family, so that nothing before has to ask for it.
    fn take_to(&mut self, family: Family, port: u16) {
        const NFTA_TPROXY_FAMILY: u16 = 1;
        const NFTA_TPROXY_REG_PORT: u16 = 3;
        self.set_register(&port.to_be_bytes());
        self.push(b"tproxy\0", |data| {
            let family = u32::from(protocol(family));
            data.attribute(NFTA_TPROXY_FAMILY, &family.to_be_bytes());
            data.attribute(NFTA_TPROXY_REG_PORT, REGISTER);
        });
    }

    fn accept(&mut self) {
        const NFTA_DATA_VERDICT: u16 = 2;
        const NFTA_VERDICT_CODE: u16 = 1;
        const NF_ACCEPT: u32 = 1;
        const VERDICT: &[u8] = &0u32.to_be_bytes();
        self.immediate(VERDICT, |data| {
            data.nest(NFTA_DATA_VERDICT, |verdict| {
                verdict.attribute(NFTA_VERDICT_CODE, &NF_ACCEPT.to_be_bytes());
            });
        });
    }

    fn load_meta(&mut self, key: u32) {
        self.push(b"meta\0", |data| {
            data.attribute(1, REGISTER);
            data.attribute(2, &key.to_be_bytes());
        });
    }

    fn load_network_header(&mut self, offset: u32, length: u32) {
        const NFT_PAYLOAD_NETWORK_HEADER: u32 = 1;
        self.push(b"payload\0", |data| {
            data.attribute(1, REGISTER);
            data.attribute(2, &NFT_PAYLOAD_NETWORK_HEADER.to_be_bytes());
            data.attribute(3, &offset.to_be_bytes());
            data.attribute(4, &length.to_be_bytes());
        });
    }

    fn compare(&mut self, how: Compare, with: &[u8]) {
        self.push(b"cmp\0", |data| {
            data.attribute(1, REGISTER);
            data.attribute(2, &(how as u32).to_be_bytes());
            data.nest(3, |nested| nested.attribute(NFTA_DATA_VALUE, with));
        });
    }

    fn set_register(&mut self, value: &[u8]) {
        self.immediate(REGISTER, |data| data.attribute(NFTA_DATA_VALUE, value));
    }

    fn immediate(&mut self, register: &[u8], value: impl FnOnce(&mut Body<'_>)) {
        self.push(b"immediate\0", |data| {
            data.attribute(1, register);
            data.nest(2, |nested| value(nested));
        });
    }

    fn push(&mut self, name: &[u8], fill: impl FnOnce(&mut Body<'_>)) {
        const NFTA_LIST_ELEM: u16 = 1;
        const NFTA_EXPR_NAME: u16 = 1;
        const NFTA_EXPR_DATA: u16 = 2;
        self.0.nest(NFTA_LIST_ELEM, |expression| {
            expression.attribute(NFTA_EXPR_NAME, name);
            expression.nest(NFTA_EXPR_DATA, |data| fill(data));
        });
    }
}

/// `NFT_REG_1`, 16 bytes wide.
const REGISTER: &[u8] = &1u32.to_be_bytes();
const NFTA_DATA_VALUE: u16 = 1;

fn protocol(family: Family) -> u8 {
    match family {
        Family::V4 => NFPROTO_IPV4,
        Family::V6 => NFPROTO_IPV6,
    }
}
