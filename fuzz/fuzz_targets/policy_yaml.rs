//! Our own format: whatever is read resolves or is refused, and `explain` agrees with `decide`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_policy::{
    LayerKind, Origin, PathContext, Request, Target, decide, explain, read_toml, read_yaml, resolve,
};

const TARGETS: [&str; 4] = [
    "a.example.org",
    "host.ringfence.internal",
    "10.1.2.3",
    "[2606:4700::1]",
];

fuzz_target!(|text: &str| {
    let context = PathContext {
        home: "/home/u".into(),
        base: "/srv".into(),
    };
    let origin = Origin::new(LayerKind::Policy, "fuzz");
    for layer in [
        read_yaml(text, &origin, &context),
        read_toml(text, &origin, &context),
    ] {
        let Ok(layer) = layer else { continue };
        let empty_is_closed =
            layer.network.mode.is_none() && layer.network.allow.iter().flatten().next().is_none();
        let hosts = layer.network.host_ports.iter().flatten().next().is_some();
        let Ok(policy) = resolve(vec![layer], None) else {
            continue;
        };
        assert!(!empty_is_closed || hosts || policy.network_is_closed());
        for text in TARGETS {
            let Ok(target) = Target::parse(text) else {
                continue;
            };
            let request = Request::connect(&target, 443);
            assert_eq!(
                explain(&policy, &request).decision,
                decide(&policy, &request)
            );
        }
    }
});
