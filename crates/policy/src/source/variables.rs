//! Environment variables of the calling process, all named here.

use super::error::{Fault, SourceError};
use super::srt::settings::{SrtFilesystem, SrtNetwork, SrtPath, SrtSettings};
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

/// Names a settings file of srt, used where none is named otherwise; whoever reads files reads it.
pub const KAGENT_SRT_SETTINGS_PATH: &str = "KAGENT_SRT_SETTINGS_PATH";
/// Makes the `srt` command line tell what it does, if set at all.
pub const SRT_DEBUG: &str = "SRT_DEBUG";
/// Says nothing at the end of a run about what was refused, where it is neither empty nor `0`.
pub const QUIET: &str = "RINGFENCE_QUIET";
/// The folders for temporary files that the `srt` command line hands on, the first one first.
pub const SRT_TEMPORARY: [&str; 2] = ["CLAUDE_CODE_TMPDIR", "CLAUDE_TMPDIR"];

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

/// The settings that the lists of kagent mean, as kagent writes them for `srt`.
pub fn kagent_settings(
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<SrtSettings, SourceError> {
    let list = |name: &str, side| {
        let text = lookup(name).unwrap_or_default();
        layer(name, &text, Dialect::Srt, side)?;
        Ok::<_, SourceError>(entries(&text).map(str::to_owned).collect())
    };
    Ok(SrtSettings {
        network: SrtNetwork {
            allowed_domains: list(KAGENT_ALLOWED_DOMAINS, Side::Allow)?,
            denied_domains: list(KAGENT_DENIED_DOMAINS, Side::Deny)?,
            ..SrtNetwork::default()
        },
        filesystem: SrtFilesystem {
            allow_write: [".", "/tmp"]
                .map(|path| SrtPath::Text(path.to_owned()))
                .into(),
            ..SrtFilesystem::default()
        },
        ..SrtSettings::default()
    })
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

fn layer(name: &str, text: &str, dialect: Dialect, side: Side) -> Result<Layer, SourceError> {
    let mut layer = Layer::empty(Origin::new(LayerKind::Environment, name));
    let entries = entries(text);
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
    fn kagents_lists_are_written_as_its_settings() {
        let lookup = |name: &str| match name {
            KAGENT_ALLOWED_DOMAINS => Some("api.example.org, *.example.com:8443".to_owned()),
            KAGENT_DENIED_DOMAINS => Some("bad.example.com".to_owned()),
            _ => None,
        };
        let settings = kagent_settings(lookup).unwrap();
        assert_eq!(
            serde_json::to_value(settings).unwrap(),
            serde_json::json!({
                "network": {
                    "allowedDomains": ["api.example.org", "*.example.com:8443"],
                    "deniedDomains": ["bad.example.com"]
                },
                "filesystem": {"denyRead": [], "allowWrite": [".", "/tmp"], "denyWrite": []}
            })
        );
        assert!(kagent_settings(|_| Some("*".to_owned())).is_err());
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
