//! srt's own rules about its settings, beyond types.

use serde_json::Value;

use super::error::SrtFault;
use super::settings::{SrtCredentialMode, SrtNetwork, SrtPath, SrtSettings};

/// What must be there, each named in the error when it is not. Without a part on files, as kagent
/// writes settings, nothing is hidden or written.
const REQUIRED: [(&str, &[&str]); 2] = [
    ("network", &["allowedDomains", "deniedDomains"]),
    ("filesystem", &["denyRead", "allowWrite", "denyWrite"]),
];

pub(super) fn parse(text: &str) -> Result<SrtSettings, SrtFault> {
    if text.trim().is_empty() {
        return Err(SrtFault::Json("it is empty".to_owned()));
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| SrtFault::Json(error.to_string()))?;
    if !value.is_object() {
        return Err(SrtFault::Shape("settings are an object".to_owned()));
    }
    for (part, _) in REQUIRED {
        if value.get(part).is_some_and(|found| !found.is_object()) {
            return Err(SrtFault::Shape(format!("{part} is an object")));
        }
    }
    let missing = missing(&value);
    if !missing.is_empty() {
        return Err(SrtFault::Missing(missing));
    }
    serde_json::from_str(text).map_err(|error| SrtFault::Shape(error.to_string()))
}

fn missing(value: &Value) -> Vec<String> {
    let absent = |part: &str, field: &&str| value[part].get(field).is_none();
    let wanted = |part: &str| part != "filesystem" || value.get(part).is_some();
    let parts = REQUIRED.iter().filter(|(part, _)| wanted(part));
    let fields = parts.flat_map(|(part, fields)| {
        let fields = fields.iter().filter(move |field| absent(part, field));
        fields.map(move |field| format!("{part}.{field}"))
    });
    fields.collect()
}

pub(super) fn check(settings: &SrtSettings) -> Result<(), SrtFault> {
    check_network(&settings.network)?;
    let filesystem = &settings.filesystem;
    check_denies("filesystem.denyRead", &filesystem.deny_read)?;
    check_denies("filesystem.denyWrite", &filesystem.deny_write)?;
    if let Some(depth) = settings
        .mandatory_deny_search_depth
        .filter(|depth| !(1..=10).contains(depth))
    {
        return Err(SrtFault::SearchDepth(depth));
    }
    if let Some(path) = settings
        .java_agent_jar_path
        .as_ref()
        .filter(|path| !path.starts_with('/'))
    {
        return Err(SrtFault::RelativeJar(path.clone()));
    }
    check_masks(settings)
}

fn check_network(network: &SrtNetwork) -> Result<(), SrtFault> {
    if network
        .mitm_proxy
        .as_ref()
        .is_some_and(|proxy| proxy.domains.is_empty())
    {
        return Err(SrtFault::MitmDomains);
    }
    if network.mitm_proxy.is_some() && network.tls_terminate.is_some() {
        return Err(SrtFault::MitmAndTerminate);
    }
    if let Some(tls) = &network.tls_terminate
        && tls.ca_cert_path.is_some() != tls.ca_key_path.is_some()
    {
        return Err(SrtFault::HalfAuthority);
    }
    let inner_star = |name: &&String| name.strip_suffix('*').unwrap_or(name).contains('*');
    match network.allow_mach_lookup.iter().flatten().find(inner_star) {
        Some(name) => Err(SrtFault::MachLookup(name.clone())),
        None => Ok(()),
    }
}

fn check_denies(field: &'static str, list: &[SrtPath]) -> Result<(), SrtFault> {
    let bad = |text: &str| text.ends_with('/') && text.contains(['*', '?', '[', '{']);
    for path in list {
        if let SrtPath::Text(text) = path
            && bad(text)
        {
            return Err(SrtFault::TrailingSlash {
                field,
                entry: text.clone(),
            });
        }
    }
    Ok(())
}

fn check_masks(settings: &SrtSettings) -> Result<(), SrtFault> {
    let all = settings
        .credentials
        .iter()
        .flat_map(|part| part.env_vars.iter().chain(&part.files));
    let masks = all
        .into_iter()
        .any(|secret| secret.mode == SrtCredentialMode::Mask);
    if masks && settings.network.tls_terminate.is_none() {
        Err(SrtFault::MaskWithoutTerminate)
    } else {
        Ok(())
    }
}
