//! Command-line flags as a layer.

use super::error::SourceError;
use super::variables::{allows, denies, sourced};
use crate::environment::{EnvError, check_name, check_pass, check_value};
use crate::host::Dialect;
use crate::layer::Layer;
use crate::limits::TimeSpan;
use crate::origin::{LayerKind, Origin, Sourced};
use crate::path::{Form, PathContext, PathRule, parse_as};
use crate::rule::NetworkMode;

/// What was typed, before it means anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlagLayer {
    /// `--allow HOST[:PORT]`.
    pub allow: Vec<String>,
    /// `--deny HOST[:PORT]` or a block.
    pub deny: Vec<String>,
    /// `--no-network`.
    pub no_network: bool,
    /// `--read PATH`: shown although hidden.
    pub read: Vec<String>,
    /// `--write PATH`.
    pub write: Vec<String>,
    /// `--hide PATH`.
    pub hide: Vec<String>,
    /// `--env NAME=VALUE`.
    pub env: Vec<String>,
    /// `--pass-env NAME`; `*` is every variable.
    pub pass_env: Vec<String>,
    /// `--time SPAN`.
    pub time: Option<String>,
}

impl FlagLayer {
    /// The layer these flags stand for. Each value's origin is its flag.
    pub fn to_layer(&self, context: &PathContext) -> Result<Layer, SourceError> {
        let mut layer = Layer::empty(flag("flags"));
        if self.no_network {
            layer.network.mode = Some(Sourced::new(NetworkMode::Deny, flag("--no-network")));
        }
        let allow = self.allow.iter().map(String::as_str);
        layer.network.allow = stated(allows(allow, Dialect::Native, &flag("--allow"))?);
        layer.network.deny = denies(
            self.deny.iter().map(String::as_str),
            Dialect::Native,
            &flag("--deny"),
        )?;
        layer.filesystem.read_allow = stated(paths(&self.read, "--read", Form::Glob, context)?);
        layer.filesystem.write_allow =
            stated(paths(&self.write, "--write", Form::Literal, context)?);
        layer.filesystem.read_deny = paths(&self.hide, "--hide", Form::Glob, context)?;
        self.environment(&mut layer)?;
        let time = self
            .time
            .as_ref()
            .map(|text| sourced(text.parse::<TimeSpan>(), &flag("--time")));
        layer.limits.time = time.transpose()?;
        Ok(layer)
    }

    fn environment(&self, layer: &mut Layer) -> Result<(), SourceError> {
        let (all, names): (Vec<_>, Vec<_>) = self.pass_env.iter().partition(|name| *name == "*");
        if !all.is_empty() {
            layer.environment.pass_all = Some(Sourced::new(true, flag("--pass-env")));
        }
        let checked = names
            .into_iter()
            .map(|name| check_pass(name).map(|()| name.clone()));
        let pass = checked
            .map(|name| sourced(name, &flag("--pass-env")))
            .collect::<Result<Vec<_>, _>>()?;
        layer.environment.pass = stated(pass);
        for assignment in &self.env {
            let (name, value) = sourced(assign(assignment), &flag("--env"))?.value;
            layer
                .environment
                .set
                .insert(name, Sourced::new(value, flag("--env")));
        }
        Ok(())
    }
}

fn flag(name: &str) -> Origin {
    Origin::new(LayerKind::Flag, name)
}

/// A list that was not typed is not stated.
fn stated<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn paths(
    list: &[String],
    name: &str,
    form: Form,
    context: &PathContext,
) -> Result<Vec<Sourced<PathRule>>, SourceError> {
    list.iter()
        .map(|text| sourced(parse_as(text, context, form), &flag(name)))
        .collect()
}

fn assign(text: &str) -> Result<(String, String), EnvError> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| EnvError::Assignment(text.to_owned()))?;
    check_name(name)?;
    check_value(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> PathContext {
        PathContext {
            home: "/home/u".into(),
            base: "/w".into(),
        }
    }

    #[test]
    fn flags_become_a_layer() {
        let flags = FlagLayer {
            allow: vec!["api.example.org".into()],
            deny: vec!["10.0.0.0/8".into()],
            write: vec!["out".into()],
            hide: vec!["~/x".into()],
            env: vec!["A=b=c".into()],
            pass_env: vec!["*".into(), "LC_*".into()],
            time: Some("10m".into()),
            ..FlagLayer::default()
        };
        let layer = flags.to_layer(&context()).unwrap();
        assert_eq!(layer.network.mode, None);
        assert_eq!(
            layer.network.allow.unwrap()[0].origin.to_string(),
            "flag --allow"
        );
        assert_eq!(
            layer.filesystem.write_allow.unwrap()[0].value.to_string(),
            "/w/out"
        );
        assert_eq!(layer.environment.set["A"].value, "b=c");
        assert!(layer.environment.pass_all.unwrap().value);
        assert_eq!(
            FlagLayer::default().to_layer(&context()).unwrap(),
            Layer::empty(flag("flags"))
        );
    }

    #[test]
    fn mistakes_name_their_flag() {
        for (flags, text) in [
            (
                FlagLayer {
                    allow: vec!["*".into()],
                    ..Default::default()
                },
                "flag --allow: ",
            ),
            (
                FlagLayer {
                    write: vec!["../x".into()],
                    ..Default::default()
                },
                "flag --write: ",
            ),
            (
                FlagLayer {
                    env: vec!["A".into()],
                    ..Default::default()
                },
                "flag --env: ",
            ),
            (
                FlagLayer {
                    time: Some("10".into()),
                    ..Default::default()
                },
                "flag --time: ",
            ),
        ] {
            let error = flags.to_layer(&context()).unwrap_err();
            assert!(error.to_string().starts_with(text), "{error}");
        }
    }
}
