//! Our own format: whatever is read resolves or is refused, `explain` agrees with `decide`, and a
//! credential goes only where the connection is looked into.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_policy::{
    LayerKind, Origin, PathContext, Request, Scheme, Target, attachments, decide, explain,
    read_toml, read_yaml, resolve,
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
            let decision = decide(&policy, &request);
            assert_eq!(explain(&policy, &request).decision, decision);
            let bound = !attachments(&policy, &request, Scheme::Https).is_empty();
            assert!(!bound || !decision.is_allowed() || decision.needs_inspection);
        }
    }
});
