//! The files themselves, and what a preset means in a layer.

use super::*;
use crate::layer::RequestRule;
use crate::path::PathContext;
use crate::policy::{Policy, Resolved};
use crate::resolve::resolve;
use crate::source::{FlagLayer, Profile, SourceError, builtin_layers, read_yaml};

/// Top-level domains of the hosts there are: a name that starts otherwise is not reversed.
const TOP: &[&str] = &[
    "ai", "co", "com", "dev", "io", "land", "net", "org", "pm", "rs", "sh",
];

#[test]
fn every_file_is_compiled_in_and_reads() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/presets");
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let known: Vec<String> = Preset::names().map(|name| format!("{name}.toml")).collect();
    assert_eq!(names, known);
    for name in Preset::names() {
        let preset = Preset::named(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(preset.name, name);
        assert!(!preset.hosts.is_empty() && !preset.description.is_empty());
        assert!(preset.description.len() < 90 && !preset.description.contains('\n'));
    }
}

#[test]
fn hosts_stand_reversed_and_sorted_and_none_is_too_broad() {
    for preset in Preset::all() {
        let names: Vec<String> = preset.hosts.iter().map(|own| reversed(&own.host)).collect();
        assert!(names.is_sorted(), "{}: {names:?}", preset.name);
        for (own, name) in preset.hosts.iter().zip(&names) {
            let first = name.split('.').next().unwrap();
            assert!(TOP.contains(&first), "{}: {name}", preset.name);
            assert!(!own.host.is_too_broad(), "{name}");
            let covered = |other: &&PresetHost| *other != own && other.host.covers(&own.host);
            assert_eq!(preset.hosts.iter().find(covered), None, "{name}");
        }
    }
}

#[test]
fn no_file_names_a_host_forwards() {
    for preset in Preset::all() {
        for (name, text) in table::FILES {
            for own in &preset.hosts {
                let host = own.host.name().to_string();
                assert!(!text.contains(&format!("{host}\"")), "{name}: {host}");
            }
        }
    }
}

fn reversed(pattern: &HostPattern) -> String {
    let name = pattern.name().to_string();
    let labels: Vec<&str> = name.rsplit('.').collect();
    labels.join(".")
}

#[test]
fn lists_are_sorted() {
    for preset in Preset::all() {
        assert!(preset.home.is_sorted(), "{}", preset.name);
        assert!(preset.detect.is_sorted(), "{}", preset.name);
        let pass: Vec<&String> = preset
            .environment
            .pass
            .iter()
            .map(|own| &own.value)
            .collect();
        assert!(pass.is_sorted(), "{}", preset.name);
    }
}

#[test]
fn g5_no_preset_passes_a_variable_that_can_hold_a_secret() {
    let secret = [
        "TOKEN",
        "KEY",
        "SECRET",
        "PASS",
        "CREDENTIAL",
        "AUTH",
        "SOCK",
        "URL",
        "PROXY",
        "*",
    ];
    for preset in Preset::all() {
        for name in &preset.environment.pass {
            let is_telling = secret.iter().any(|word| name.contains(word));
            assert!(!is_telling, "{}: {}", preset.name, name.value);
        }
    }
}

#[test]
fn a_name_that_does_not_exist_offers_those_that_are_near() {
    let error = Preset::named("nodejs").unwrap_err();
    assert_eq!(error.code(), "unknown-preset");
    assert_eq!(
        error.to_string(),
        "there is no preset \"nodejs\"; did you mean node?"
    );
    let error = Preset::named("zzz").unwrap_err();
    assert_eq!(error.to_string(), "there is no preset \"zzz\"");
    for name in ["", "../node", "Node", "node.toml"] {
        assert!(Preset::named(name).is_err(), "{name}");
    }
}

fn context() -> PathContext {
    PathContext {
        home: "/home/u".into(),
        base: "/w".into(),
    }
}

fn flags(presets: &[&str]) -> Layer {
    let flags = FlagLayer {
        preset: presets.iter().map(ToString::to_string).collect(),
        ..FlagLayer::default()
    };
    flags.to_layer(&context()).unwrap()
}

fn file(kind: LayerKind, text: &str) -> Result<Layer, SourceError> {
    let text = format!("version: 1\n{text}\n");
    read_yaml(&text, &Origin::new(kind, "p.yaml"), &context())
}

fn merged(layers: impl IntoIterator<Item = Layer>, ceiling: Option<Layer>) -> Resolved<Policy> {
    let mut all = builtin_layers(Profile::Default, &context());
    all.extend(layers);
    resolve(all, ceiling).unwrap()
}

#[test]
fn rules_of_a_preset_have_it_as_their_origin() {
    let policy = merged([flags(&["rust"])], None);
    let rust = Preset::named("rust").unwrap();
    assert_eq!(policy.network().allow().len(), rust.hosts.len());
    for rule in policy.network().allow() {
        assert_eq!(rule.origin.to_string(), "preset rust");
    }
    assert_eq!(policy.presets()[0].value, "rust");
    assert_eq!(policy.presets()[0].origin.to_string(), "flag --preset");
    assert!(!policy.network_is_closed());
    assert!(policy.environment().passes("RUST_LOG"));
}

#[test]
fn a_file_names_presets_and_a_mistake_has_its_line() {
    let policy = merged(
        [file(LayerKind::Policy, "presets: [node, rust]").unwrap()],
        None,
    );
    let named: Vec<&str> = policy.presets().iter().map(|own| own.as_str()).collect();
    assert_eq!(named, ["node", "rust"]);
    assert_eq!(policy.presets()[1].origin.line, Some(2));
    let error = file(LayerKind::Policy, "presets: [node, rsut]").unwrap_err();
    assert_eq!(
        (error.code(), error.origin.line),
        ("unknown-preset", Some(2))
    );
    let error = file(LayerKind::Policy, "presets: [node]\nnetwork: {mode: deny}").unwrap_err();
    assert_eq!(error.code(), "entry-never-matches");
}

#[test]
fn a_flag_opens_what_a_file_closed_and_no_network_closes_it_again() {
    let closed = file(LayerKind::Policy, "network: {mode: deny}").unwrap();
    assert!(!merged([closed, flags(&["node"])], None).network_is_closed());
    let flags = FlagLayer {
        preset: vec!["node".to_owned()],
        no_network: true,
        ..FlagLayer::default()
    };
    let flags = flags.to_layer(&context()).unwrap();
    assert!(merged([flags], None).network_is_closed());
}

#[test]
fn what_a_preset_sets_gives_way_to_what_anybody_else_sets() {
    let set = |policy: &Resolved<Policy>| policy.environment().set["DOTNET_NOLOGO"].clone();
    let plain = set(&merged([flags(&["dotnet"])], None));
    assert_eq!(
        (plain.as_str(), plain.origin.layer),
        ("1", LayerKind::Preset)
    );
    for (kind, text) in [
        (
            LayerKind::Config,
            "environment: {set: {DOTNET_NOLOGO: \"0\"}}",
        ),
        (
            LayerKind::Policy,
            "presets: [dotnet]\nenvironment: {set: {DOTNET_NOLOGO: \"0\"}}",
        ),
    ] {
        let own = file(kind, text).unwrap();
        let held = set(&merged([own, flags(&["dotnet"])], None));
        assert_eq!((held.as_str(), held.origin.layer), ("0", kind));
    }
}

#[test]
fn g4_a_home_that_a_preset_keeps_gives_way_to_what_anybody_else_says() {
    let home = |layers: Vec<Layer>, ceiling: Option<Layer>| {
        let base = crate::base_layer(&context());
        let policy = merged(std::iter::once(base).chain(layers), ceiling);
        let home = &policy.filesystem().home;
        (home.value.to_string(), home.origin.layer)
    };
    let kept = ("keep".to_owned(), LayerKind::Preset);
    assert_eq!(home(vec![flags(&["claude"])], None), kept);
    let named = |kind| file(kind, "presets: [claude]").unwrap();
    assert_eq!(home(vec![named(LayerKind::Config)], None), kept);
    let private = ("private".to_owned(), LayerKind::Default);
    assert_eq!(home(vec![flags(&["node"])], None), private);
    for text in ["none", "private", "keep=x"] {
        for kind in [LayerKind::Config, LayerKind::Policy] {
            let own = format!("filesystem: {{home: {text}}}");
            let own = file(kind, &own).unwrap();
            let held = home(vec![own, flags(&["claude"])], None);
            assert_eq!(held, (text.to_owned(), kind));
        }
        let flags = FlagLayer {
            preset: vec!["claude".to_owned()],
            home: Some(text.to_owned()),
            ..FlagLayer::default()
        };
        let flags = flags.to_layer(&context()).unwrap();
        assert_eq!(home(vec![flags], None).1, LayerKind::Flag);
    }
    let ceiling = file(LayerKind::Ceiling, "filesystem: {home: private}").unwrap();
    assert_eq!(home(vec![flags(&["claude"])], Some(ceiling)).0, "private");
    // A ceiling that names it bounds by its hosts, and keeps nothing.
    let ceiling = named(LayerKind::Ceiling);
    assert_eq!(home(Vec::new(), Some(ceiling)).0, "private");
    let request = named(LayerKind::Config).as_request();
    assert_eq!(home(vec![request], None), private);
}

#[test]
fn g3_a_deny_and_a_ceiling_hold_against_a_preset() {
    let rust = Preset::named("rust").unwrap();
    let names: Vec<&HostName> = rust.hosts.iter().map(|own| own.host.name()).collect();
    let allows = |policy: &Resolved<Policy>, name: &HostName| {
        let target = crate::Target::Name(name.clone());
        crate::decide(policy, &crate::Request::connect(&target, 443)).is_allowed()
    };
    let denying = format!("network: {{deny: [\"{}\"]}}", names[0]);
    let denying = file(LayerKind::Config, &denying).unwrap();
    let policy = merged([denying, flags(&["rust"])], None);
    assert!(!allows(&policy, names[0]) && allows(&policy, names[1]));
    let listing = format!("network: {{allow: [\"{}\"]}}", names[0]);
    let ceiling = file(LayerKind::Ceiling, &listing).unwrap();
    let policy = merged([flags(&["rust"])], Some(ceiling));
    assert!(allows(&policy, names[0]) && !allows(&policy, names[1]));
}

#[test]
fn g3_a_ceiling_that_names_a_preset_bounds_by_it() {
    let ceiling = || file(LayerKind::Ceiling, "presets: [rust, dotnet]").unwrap();
    let wide = file(LayerKind::Policy, "network: {mode: open}").unwrap();
    let policy = merged([wide, flags(&["dotnet"])], Some(ceiling()));
    let allows = |name: &HostName| {
        let target = crate::Target::Name(name.clone());
        crate::decide(&policy, &crate::Request::connect(&target, 443)).is_allowed()
    };
    let rust = Preset::named("rust").unwrap();
    assert!(allows(rust.hosts[0].host.name()));
    assert!(!allows(&HostName::parse("api.example.org").unwrap()));
    assert_eq!(policy.presets().len(), 1, "a ceiling gives nothing");
    let bounded = file(
        LayerKind::Ceiling,
        "presets: [dotnet]\nenvironment: {pass: [PATH]}",
    );
    let policy = merged([flags(&["dotnet"])], Some(bounded.unwrap()));
    assert!(policy.environment().set.contains_key("DOTNET_NOLOGO"));
    assert!(policy.environment().passes("DOTNET_ROOT"));
}

#[test]
fn g1_a_preset_named_by_a_request_is_a_request() {
    let asking = || {
        file(LayerKind::Skill, "presets: [rust]")
            .unwrap()
            .as_request()
    };
    let policy = merged([asking()], None);
    assert!(policy.network_is_closed() && policy.presets().is_empty());
    assert!(!policy.environment().passes("RUST_LOG"));
    let [note] = policy.notes() else {
        panic!("{:?}", policy.notes());
    };
    assert_eq!(
        (note.code, note.message.as_str()),
        (
            "pending-request",
            "presets entry rust is asked for and not granted"
        )
    );
    let policy = merged([asking(), flags(&["rust"])], None);
    assert_eq!(policy.notes(), []);
    let mut granting = flags(&[]);
    granting.requests = Some(granting.sourced(RequestRule::Allow));
    let policy = merged([asking(), granting], None);
    assert!(!policy.network_is_closed());
    assert_eq!(policy.presets().len(), 1);
}

#[test]
fn a_request_narrows_an_open_network_to_its_presets() {
    let text = "presets: [rust]\nnetwork: {mode: allowlist}";
    let asking = file(LayerKind::Skill, text).unwrap().as_request();
    let wide = file(LayerKind::Policy, "network: {mode: open}").unwrap();
    let policy = merged([wide, asking], None);
    assert_eq!(policy.network_mode(), crate::NetworkMode::Allowlist);
    let rust = Preset::named("rust").unwrap();
    assert_eq!(policy.network().allow().len(), rust.hosts.len());
}
