//! What settings do not do here, told one by one with a stable code.

use serde_json::Value;

use super::settings::{
    SrtCredential, SrtCredentialMode, SrtNetwork, SrtNoMatch, SrtSettings, UnknownKeys,
};
use crate::note::{Note, NoteKind};
use crate::origin::Origin;

use NoteKind::{NoEffect, Unsupported};

/// Where the setting stands, what it means here, its code, and one clause.
type Remark = (&'static str, NoteKind, &'static str, &'static str);

pub(super) fn notes(settings: &SrtSettings, origin: &Origin) -> Vec<Note> {
    let written = serde_json::to_value(settings).unwrap_or_default();
    let told = REMARKS
        .iter()
        .filter(|(pointer, ..)| written.pointer(pointer).is_some_and(is_on));
    let told = told.map(|(pointer, kind, code, clause)| {
        let key = pointer.trim_start_matches('/').replace('/', ".");
        Note::new(*kind, code, format!("{key}: {clause}"), origin)
    });
    told.chain(unmatched_reasons(&settings.network, origin))
        .chain(credential_notes(settings, origin))
        .chain(unknown(settings, origin))
        .collect()
}

/// A setting that is false or empty asks for nothing.
fn is_on(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(on) => *on,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

#[rustfmt::skip]
const REMARKS: &[Remark] = &[
    ("/credentials/awsPairs", Unsupported, "srt-aws-pairs", "requests are not signed again"),
    ("/credentials/sigv4", Unsupported, "srt-sigv4", "requests are not signed again"),
    ("/ignoreViolations", NoEffect, "srt-ignore-violations", "every refusal is recorded"),
    ("/enableWeakerNestedSandbox", NoEffect, "srt-weaker-nested-sandbox", "the full sandbox is used"),
    ("/allowNestedUserNamespaces", NoEffect, "srt-nested-user-namespaces", "user namespaces stay off inside"),
    ("/mandatoryDenySearchDepth", NoEffect, "srt-search-depth", "protected names hold at any depth"),
    ("/ripgrep", NoEffect, "srt-ripgrep", "the program is not needed"),
    ("/seccomp", NoEffect, "srt-seccomp", "the helper is not needed"),
    ("/bwrapPath", NoEffect, "srt-bwrap-path", "the program is not needed"),
    ("/socatPath", NoEffect, "srt-socat-path", "the program is not needed"),
    ("/javaAgentJarPath", NoEffect, "srt-java-agent", "Java needs no agent"),
    ("/allowPty", NoEffect, "srt-allow-pty", "macOS only; terminals always work"),
    ("/allowAppleEvents", NoEffect, "srt-apple-events", "macOS only"),
    ("/enableWeakerNetworkIsolation", NoEffect, "srt-weaker-network-isolation", "macOS only"),
    ("/windows", NoEffect, "srt-windows", "Windows only"),
    ("/filesystem/disabled", Unsupported, "srt-filesystem-disabled", "files are always guarded; list what is written in allowWrite"),
    ("/network/strictAllowlist", NoEffect, "srt-strict-allowlist", "the list is always strict"),
    ("/network/allowUnixSockets", NoEffect, "srt-unix-sockets", "macOS only"),
    ("/network/allowAllUnixSockets", NoEffect, "srt-all-unix-sockets", "the sandbox's own sockets always work, the host's never"),
    ("/network/allowLocalBinding", NoEffect, "srt-local-binding", "the sandbox's own loopback always works"),
    ("/network/allowMachLookup", NoEffect, "srt-mach-lookup", "macOS only"),
    ("/network/httpProxyPort", Unsupported, "srt-http-proxy-port", "an external proxy is not supported"),
    ("/network/socksProxyPort", Unsupported, "srt-socks-proxy-port", "an external proxy is not supported"),
    ("/network/mitmProxy", Unsupported, "srt-mitm-proxy", "an external proxy is not supported"),
    ("/network/tlsTerminate/caCertPath", NoEffect, "srt-own-authority", "each sandbox has an authority of its own, trusted inside"),
    ("/network/tlsTerminate/maxTunnels", NoEffect, "srt-max-tunnels", "connections are limited together"),
    ("/network/tlsTerminate/handshakeTimeoutMs", NoEffect, "srt-handshake-timeout", "handshakes have a limit of their own"),
    ("/network/allowPlaintextHeaderSet", NoEffect, "srt-plaintext-header-set", "headers are set over TLS only"),
    ("/network/stripResponseHeaders", Unsupported, "srt-strip-response-headers", "response headers are not changed"),
    ("/network/refuseOpaqueTunnels", Unsupported, "srt-refuse-opaque-tunnels", "tunnels of other protocols are not refused"),
    ("/network/requireHostMatch", NoEffect, "srt-require-host-match", "names are always compared"),
    ("/network/ambiguousRequestTarget", NoEffect, "srt-ambiguous-target", "ambiguous targets are always refused"),
];

/// What the entries of `credentials` ask for that is not done.
fn credential_notes(settings: &SrtSettings, origin: &Origin) -> Vec<Note> {
    let lists = settings.credentials.iter().flat_map(|part| {
        let variables = part.env_vars.iter().map(|item| ("envVars", item));
        variables.chain(part.files.iter().map(|item| ("files", item)))
    });
    let masked = lists.filter(|(_, item)| item.mode == SrtCredentialMode::Mask);
    let told = masked.flat_map(|(list, item)| {
        let asked = credential_remarks(item);
        asked.into_iter().map(move |(key, kind, code, clause)| {
            let message = format!("credentials.{list}.{key}: {clause}");
            Note::new(kind, code, message, origin)
        })
    });
    told.collect()
}

#[rustfmt::skip]
fn credential_remarks(item: &SrtCredential) -> Vec<Remark> {
    let warns = item.on_extract_no_match == Some(SrtNoMatch::Warn);
    let remarks = [
        (item.decode.is_some(), ("decode", Unsupported, "srt-decode", "tokens are not taken apart")),
        (!item.mask_claims.is_empty(), ("maskClaims", Unsupported, "srt-mask-claims", "tokens are not taken apart")),
        (warns, ("onExtractNoMatch", Unsupported, "srt-extract-warn", "a warning would show the secret; write \"deny\" or \"error\"")),
        (item.allow_plaintext_inject == Some(true), ("allowPlaintextInject", NoEffect, "srt-plaintext-inject", "secrets go over TLS only")),
    ];
    remarks.into_iter().filter(|(asked, _)| *asked).map(|(_, remark)| remark).collect()
}

/// Reasons whose key is no entry of `deniedDomains`; srt never shows them.
fn unmatched_reasons(network: &SrtNetwork, origin: &Origin) -> Vec<Note> {
    let unused = network
        .denied_domain_reasons
        .keys()
        .filter(|key| !network.denied_domains.contains(key));
    let note = |key: &String| {
        let message = format!("network.deniedDomainReasons: {key:?} is no entry of deniedDomains");
        Note::new(NoEffect, "srt-unused-reason", message, origin)
    };
    unused.map(note).collect()
}

fn unknown(settings: &SrtSettings, origin: &Origin) -> Vec<Note> {
    let network = &settings.network;
    let mitm = network.mitm_proxy.as_ref().map(|part| &part.unknown);
    let parent = network.parent_proxy.as_ref().map(|part| &part.unknown);
    let tls = network.tls_terminate.as_ref().map(|part| &part.unknown);
    let objects: [(&str, Option<&UnknownKeys>); 9] = [
        ("", Some(&settings.unknown)),
        ("network.", Some(&network.unknown)),
        ("network.mitmProxy.", mitm),
        ("network.parentProxy.", parent),
        ("network.tlsTerminate.", tls),
        ("filesystem.", Some(&settings.filesystem.unknown)),
        (
            "ripgrep.",
            settings.ripgrep.as_ref().map(|part| &part.unknown),
        ),
        (
            "seccomp.",
            settings.seccomp.as_ref().map(|part| &part.unknown),
        ),
        ("git.", settings.git.as_ref().map(|part| &part.unknown)),
    ];
    let keys = objects.into_iter().flat_map(|(prefix, keys)| {
        let names = keys.into_iter().flat_map(UnknownKeys::keys);
        names.map(move |key| format!("{prefix}{key} is not a known key"))
    });
    keys.map(|message| Note::new(NoteKind::UnknownKey, "srt-unknown-key", message, origin))
        .collect()
}
