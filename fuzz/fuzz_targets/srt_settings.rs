//! srt settings: whatever is read resolves or is refused, denies hold, `explain` agrees with `decide`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_policy::{
    LayerKind, Origin, PathContext, Request, Target, decide, explain, read_srt, resolve,
};

fuzz_target!(|text: &str| {
    let context = PathContext {
        home: "/home/u".into(),
        base: "/srv".into(),
    };
    let Ok(source) = read_srt(text, &Origin::new(LayerKind::SrtSettings, "fuzz"), &context) else {
        return;
    };
    let Ok(policy) = resolve(vec![source.layer], None) else {
        return;
    };
    assert!(!source.settings.network.allowed_domains.is_empty() || policy.network_is_closed());
    for entry in &source.settings.network.denied_domains {
        let Ok(target) = Target::parse(entry) else {
            continue;
        };
        let request = Request::connect(&target, 443);
        assert!(!decide(&policy, &request).is_allowed());
        assert_eq!(
            explain(&policy, &request).decision,
            decide(&policy, &request)
        );
    }
});
