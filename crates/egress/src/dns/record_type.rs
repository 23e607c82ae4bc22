//! [`RecordType`]: what a question asks about a name.

/// A type of records, as its number (RFC 1035, section 3.2.2 and later).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordType(pub(super) u16);

impl RecordType {
    pub(super) const A: Self = Self(1);
    pub(super) const SOA: Self = Self(6);
    pub(super) const PTR: Self = Self(12);
    pub(super) const AAAA: Self = Self(28);
    pub(super) const OPT: Self = Self(41);
}
