//! `--approve`: services whose secrets kits and files may use in one run.

use ringfence_policy::{Credential, Layer, Sourced};

use super::PolicyLoadError;

/// Lets every layer that asks for one of `services` have it. A name means one
/// thing: layers that say different things by it are none that somebody could
/// approve together.
pub(super) fn approve(services: &[String], layers: &mut [Layer]) -> Result<(), PolicyLoadError> {
    for service in services {
        refuse_ambiguous(service, layers)?;
        let mut is_asked_for = false;
        for layer in layers.iter_mut().filter(|layer| asks_for(layer, service)) {
            layer.approve(service);
            is_asked_for = true;
        }
        if !is_asked_for {
            let service = service.clone();
            return Err(PolicyLoadError::NothingToApprove { service });
        }
    }
    Ok(())
}

/// Also what needs no approval counts: a stronger layer takes the place of a
/// weaker one.
fn refuse_ambiguous(service: &str, layers: &[Layer]) -> Result<(), PolicyLoadError> {
    let named: Vec<_> = layers.iter().flat_map(|layer| of(layer, service)).collect();
    let is_one = named.iter().all(|own| own.value == named[0].value);
    if is_one || !layers.iter().any(|layer| asks_for(layer, service)) {
        return Ok(());
    }
    let origins: Vec<String> = named.iter().map(|own| own.origin.to_string()).collect();
    Err(PolicyLoadError::AmbiguousApproval {
        service: service.to_owned(),
        origins: origins.join(", "),
    })
}

fn asks_for(layer: &Layer, service: &str) -> bool {
    layer.asks_for_credentials() && of(layer, service).next().is_some()
}

fn of<'a>(layer: &'a Layer, service: &str) -> impl Iterator<Item = &'a Sourced<Credential>> {
    let credentials = layer.credentials.iter().flatten();
    credentials.filter(move |own| own.service == service)
}

#[cfg(test)]
mod tests {
    use ringfence_policy::{Kept, LayerKind, Origin, PathContext, read_yaml};

    use super::*;

    fn layer(kind: LayerKind, name: &str, source: &str) -> Layer {
        let text = format!(
            "version: 1\ncredentials:\n  - {{service: forge, {source}, hosts: [api.example.org], bearer: true}}\n"
        );
        let paths = PathContext {
            home: "/home/u".into(),
            base: "/w".into(),
        };
        let layer = read_yaml(&text, &Origin::new(LayerKind::Policy, name), &paths);
        let mut layer = layer.unwrap();
        layer.origin.layer = kind;
        layer
    }

    fn approved(layers: &mut [Layer]) -> Result<Vec<bool>, PolicyLoadError> {
        approve(&["forge".to_owned()], layers)?;
        let is_approved = |layer: &Layer| layer.approved.contains("forge");
        Ok(layers.iter().map(is_approved).collect())
    }

    #[test]
    fn g5_a_name_that_means_two_things_is_not_approved() {
        let kit = || layer(LayerKind::Kit, "kit one", "env: FORGE_TOKEN");
        let mut own = layer(LayerKind::Policy, "policy.yaml", "env: OTHER_TOKEN");
        for kept in [Kept::InWorkingFolder, Kept::Outside] {
            own.kept = kept;
            let error = approved(&mut [kit(), own.clone()]).unwrap_err();
            assert_eq!(error.code(), "approve-ambiguous");
            let text = error.to_string();
            assert!(
                text.contains("kit one") && text.contains("policy.yaml"),
                "{text}"
            );
        }
        let mut same = layer(LayerKind::Policy, "policy.yaml", "env: FORGE_TOKEN");
        same.kept = Kept::InWorkingFolder;
        assert_eq!(approved(&mut [kit(), same]).unwrap(), [true, true]);
    }

    #[test]
    fn what_nobody_asks_for_cannot_be_approved() {
        let mut layers = [layer(LayerKind::Policy, "policy.yaml", "env: FORGE_TOKEN")];
        let error = approved(&mut layers).unwrap_err();
        assert_eq!(error.code(), "nothing-to-approve");
        layers[0].kept = Kept::InWorkingFolder;
        assert_eq!(approved(&mut layers).unwrap(), [true]);
        let error = approve(&["mail".to_owned()], &mut layers).unwrap_err();
        assert_eq!(error.code(), "nothing-to-approve");
    }
}
