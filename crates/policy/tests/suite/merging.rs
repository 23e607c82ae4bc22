//! How layers add up.

use ringfence_policy::{
    CompatibilityMode, FlagLayer, Layer, LayerKind, NetworkMode, Profile, Target, builtin_layers,
    mode_layer, read_variables, resolve,
};

use crate::support::{ask, code, context, layer, network};

fn base() -> Vec<Layer> {
    builtin_layers(Profile::Default, &context())
}

#[test]
fn allows_add_up_and_a_deny_of_any_layer_holds() {
    let layers = vec![
        network(LayerKind::Flag, "{allow: [a.example.org, b.example.org]}"),
        network(
            LayerKind::Config,
            "{allow: [c.example.org], deny: [a.example.org]}",
        ),
    ];
    let policy = resolve(layers, None).unwrap();
    assert_eq!(code(&policy, "a.example.org", 443, None), "denied-by-rule");
    assert_eq!(code(&policy, "b.example.org", 443, None), "allowed-by-rule");
    assert_eq!(code(&policy, "c.example.org", 443, None), "allowed-by-rule");
}

#[test]
fn scalars_come_from_the_strongest_layer() {
    let layers = vec![
        layer(
            LayerKind::Policy,
            "resources: {memory: 1g, pids: 10}\naudit: {level: all}",
        ),
        layer(
            LayerKind::Config,
            "resources: {memory: 2g, cpu: 2}\naudit: {level: network}",
        ),
    ];
    let policy = resolve(layers, None).unwrap();
    let limits = policy.limits();
    assert_eq!(limits.memory.as_ref().unwrap().to_string_value(), "1GiB");
    assert_eq!(limits.cpu.as_ref().unwrap().millis(), 2000);
    assert_eq!(
        limits.memory.as_ref().unwrap().origin.layer,
        LayerKind::Policy
    );
    assert_eq!(policy.audit().as_str(), "all");
}

trait Shown {
    fn to_string_value(&self) -> String;
}

impl<T: ToString> Shown for ringfence_policy::Sourced<T> {
    fn to_string_value(&self) -> String {
        self.value.to_string()
    }
}

#[test]
fn listing_opens_a_closed_network_and_never_closes_an_open_one() {
    let flags = FlagLayer {
        allow: vec!["a.example.org".into()],
        ..FlagLayer::default()
    };
    let mut layers = base();
    layers.push(flags.to_layer(&context()).unwrap());
    assert_eq!(
        resolve(layers, None).unwrap().network_mode(),
        NetworkMode::Allowlist
    );
    let mut layers = builtin_layers(Profile::Permissive, &context());
    layers.push(flags.to_layer(&context()).unwrap());
    assert_eq!(
        resolve(layers, None).unwrap().network_mode(),
        NetworkMode::Open
    );
}

#[test]
fn no_network_closes_everything() {
    let flags = FlagLayer {
        no_network: true,
        ..FlagLayer::default()
    };
    let layers = vec![
        network(
            LayerKind::Policy,
            "{mode: open, allow: [a.example.org], hostPorts: [1]}",
        ),
        flags.to_layer(&context()).unwrap(),
    ];
    let policy = resolve(layers, None).unwrap();
    assert!(policy.network_is_closed());
    assert_eq!(code(&policy, "a.example.org", 443, None), "network-closed");
    assert_eq!(
        code(&policy, "host.ringfence.internal", 1, None),
        "network-closed"
    );
}

#[test]
fn kagent_variables_bound_an_open_profile() {
    let mut layers = builtin_layers(Profile::Permissive, &context());
    let set = |name: &str| (name == "KAGENT_ALLOWED_DOMAINS").then(|| "api.example.org".to_owned());
    layers.extend(read_variables(set).unwrap());
    let policy = resolve(layers, None).unwrap();
    assert_eq!(
        code(&policy, "api.example.org", 9999, None),
        "allowed-by-rule"
    );
    assert_eq!(
        code(&policy, "other.example.org", 443, None),
        "not-in-allowlist"
    );
}

#[test]
fn dead_entries_and_loose_credentials_are_errors() {
    for (body, want) in [
        (
            "network: {allow: [a.example.org], deny: [\"*.example.org\"]}",
            "entry-never-matches",
        ),
        (
            "network: {allow: [{cidr: 10.1.0.0/16}], deny: [10.0.0.0/8]}",
            "entry-never-matches",
        ),
        (
            "credentials: [{service: s, env: T, hosts: [a.example.org], bearer: true}]",
            "credential-host-not-allowed",
        ),
        (
            "network: {allow: [\"a.example.org:80\"]}\ncredentials: [{service: s, env: T, hosts: [a.example.org], bearer: true}]",
            "credential-host-not-allowed",
        ),
        (
            "network: {mode: open, deny: [\"*.example.org\"]}\ncredentials: [{service: s, env: T, hosts: [a.example.org], bearer: true}]",
            "credential-host-not-allowed",
        ),
        (
            "filesystem: {write: {unprotect: [.nothing]}}",
            "unprotect-unknown",
        ),
    ] {
        let mut layers = base();
        layers.push(layer(LayerKind::Policy, body));
        let error = resolve(layers, None).unwrap_err();
        assert_eq!(error.code(), want, "{body}: {error}");
        assert!(error.to_string().contains("test.yaml:"), "{error}");
    }
}

#[test]
fn g5_a_bound_variable_is_managed() {
    let body = "network: {allow: [a.example.org]}\ncredentials: [{service: s, env: TOKEN, hosts: [a.example.org], bearer: true}]\nenvironment: {pass: [TOKEN]}";
    let policy = resolve(vec![layer(LayerKind::Policy, body)], None).unwrap();
    assert!(!policy.environment().passes("TOKEN"));
    assert_eq!(policy.environment().managed[0].value, "TOKEN");
}

#[test]
fn g4_unprotect_takes_out_by_exact_text() {
    let mut layers = base();
    layers.push(layer(
        LayerKind::Config,
        "filesystem: {write: {unprotect: [.vscode, .git/config]}}",
    ));
    let policy = resolve(layers, None).unwrap();
    let protect = &policy.filesystem().protect;
    assert!(
        !protect
            .iter()
            .any(|name| name.value.to_string() == ".vscode")
    );
    assert!(protect.iter().any(|name| name.value.to_string() == ".git"));
    assert!(
        policy
            .filesystem()
            .unprotect
            .iter()
            .any(|name| name.value == ".git/config")
    );
}

#[test]
fn every_mode_resolves_and_denies_metadata() {
    for mode in CompatibilityMode::ALL {
        let mut layers = base();
        layers.push(mode_layer(mode, &context()));
        let policy = resolve(layers, None).unwrap();
        for host in [
            "metadata.google.internal",
            "metadata",
            "169.254.169.254",
            "[fd00:ec2::254]",
        ] {
            assert!(!ask(&policy, host, 80, None).is_allowed(), "{mode} {host}");
        }
        assert!(Target::parse("metadata").is_ok());
    }
    let mut layers = base();
    layers.push(mode_layer(CompatibilityMode::Claude, &context()));
    let claude = resolve(layers, None).unwrap();
    assert_eq!(
        code(&claude, "api.anthropic.com", 443, None),
        "allowed-by-rule"
    );
    assert_eq!(
        code(&claude, "api.anthropic.com", 22, None),
        "port-not-allowed"
    );
    assert_eq!(
        code(&claude, "other.example.org", 443, None),
        "not-in-allowlist"
    );
}
