//! Environment variables of the calling process, all named here.

use super::error::{Fault, SourceError};
use crate::host::Dialect;
use crate::layer::Layer;
use crate::origin::{LayerKind, Origin, Sourced};
use crate::rule::{AllowRule, DenyRule, Endpoint, NetworkMode, Side};

/// Names a policy file; whoever reads files reads it.
pub const POLICY: &str = "RINGFENCE_POLICY";
/// Entries added to the allow list, comma separated, with our own meaning.
pub const ALLOW: &str = "RINGFENCE_ALLOW";
/// Entries added to the deny list, comma separated, with our own meaning.
pub const DENY: &str = "RINGFENCE_DENY";
/// The allow list of kagent, comma separated, with srt's meaning; set and empty closes the network.
pub const KAGENT_ALLOWED_DOMAINS: &str = "KAGENT_ALLOWED_DOMAINS";
/// The deny list of kagent, comma separated, with srt's meaning.
pub const KAGENT_DENIED_DOMAINS: &str = "KAGENT_DENIED_DOMAINS";

/// Reads the variables that `lookup` gives; one layer for each that is set.
pub fn read_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Vec<Layer>, SourceError> {
    let lists: [(&str, Dialect, Side); 4] = [
        (KAGENT_ALLOWED_DOMAINS, Dialect::Srt, Side::Allow),
        (KAGENT_DENIED_DOMAINS, Dialect::Srt, Side::Deny),
        (ALLOW, Dialect::Native, Side::Allow),
        (DENY, Dialect::Native, Side::Deny),
    ];
    let set = lists
        .into_iter()
        .filter_map(|(name, dialect, side)| Some((name, lookup(name)?, dialect, side)));
    set.map(|(name, text, dialect, side)| layer(name, &text, dialect, side))
        .collect()
}

fn layer(name: &str, text: &str, dialect: Dialect, side: Side) -> Result<Layer, SourceError> {
    let mut layer = Layer::empty(Origin::new(LayerKind::Environment, name));
    let entries = text
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty());
    match side {
        Side::Allow => layer.network.allow = Some(allows(entries, dialect, &layer.origin)?),
        Side::Deny => layer.network.deny = denies(entries, dialect, &layer.origin)?,
    }
    // kagent's list is the whole list: outside it there is nothing, whatever a profile opens.
    if name == KAGENT_ALLOWED_DOMAINS {
        layer.network.mode = Some(layer.sourced(NetworkMode::Allowlist));
    }
    Ok(layer)
}

/// Parses allow entries of one dialect that share an origin.
pub(super) fn allows<'a>(
    entries: impl Iterator<Item = &'a str>,
    dialect: Dialect,
    origin: &Origin,
) -> Result<Vec<Sourced<AllowRule>>, SourceError> {
    let rules = entries.map(|entry| {
        Endpoint::parse(entry, dialect, Side::Allow).map(|parsed| parsed.allow(dialect))
    });
    rules.map(|rule| sourced(rule, origin)).collect()
}

/// Parses deny entries of one dialect that share an origin.
pub(super) fn denies<'a>(
    entries: impl Iterator<Item = &'a str>,
    dialect: Dialect,
    origin: &Origin,
) -> Result<Vec<Sourced<DenyRule>>, SourceError> {
    let rules =
        entries.map(|entry| Endpoint::parse(entry, dialect, Side::Deny).map(Endpoint::deny));
    rules.map(|rule| sourced(rule, origin)).collect()
}

pub(super) fn sourced<T, E: Into<Fault>>(
    value: Result<T, E>,
    origin: &Origin,
) -> Result<Sourced<T>, SourceError> {
    let value = value.map_err(|error| SourceError::new(origin, error))?;
    Ok(Sourced::new(value, origin.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<Vec<Layer>, SourceError> {
        read_variables(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn kagent_lists_have_srts_meaning() {
        let layers = read(
            KAGENT_ALLOWED_DOMAINS,
            "api.example.org, *.example.com:8443,",
        )
        .unwrap();
        let allow = layers[0].network.allow.as_ref().unwrap();
        assert_eq!(allow[0].value.to_string(), "api.example.org:*");
        assert_eq!(allow[1].value.to_string(), "*.example.com:8443");
        assert_eq!(
            read(KAGENT_DENIED_DOMAINS, "*").unwrap()[0].network.deny[0]
                .value
                .to_string(),
            "*"
        );
        assert!(read(KAGENT_ALLOWED_DOMAINS, "*").is_err());
    }

    #[test]
    fn an_empty_list_is_a_list() {
        let layers = read(KAGENT_ALLOWED_DOMAINS, "").unwrap();
        assert_eq!(
            layers[0].network.mode.as_deref(),
            Some(&NetworkMode::Allowlist)
        );
        assert!(read("OTHER", "x").unwrap().is_empty());
    }

    #[test]
    fn our_own_have_our_meaning() {
        let layers = read(ALLOW, "api.example.org").unwrap();
        assert_eq!(
            layers[0].network.allow.as_ref().unwrap()[0]
                .value
                .to_string(),
            "api.example.org:80,443"
        );
        let error = read(ALLOW, "https://x.example.org").unwrap_err();
        assert_eq!(
            error.to_string(),
            "environment RINGFENCE_ALLOW: entry \"https://x.example.org\" has a scheme"
        );
    }
}
