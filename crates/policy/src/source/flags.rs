//! Command-line flags as a layer.

use std::borrow::Cow;
use std::path::PathBuf;
use std::str::FromStr;

use super::builtin::protected_names;
use super::error::{Fault, SourceError};
use super::preset::Preset;
use super::variables::{allows, denies, sourced};
use crate::audit::AuditLevel;
use crate::filesystem::GuardMode;

use crate::environment::{EnvError, check_name, check_pass, check_value};
use crate::host::Dialect;
use crate::layer::Layer;
use crate::limits::Limits;
use crate::origin::{LayerKind, Origin, Sourced};
use crate::path::{Form, PathContext, PathRule, literal, readings};
use crate::rule::NetworkMode;

/// What was typed, before it means anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlagLayer {
    /// `--allow HOST[:PORT]` or a block.
    pub allow: Vec<String>,
    /// `--preset NAME`.
    pub preset: Vec<String>,
    /// `--deny HOST[:PORT]` or a block.
    pub deny: Vec<String>,
    /// `--authority FILE`: further root certificates for TLS with servers.
    pub authority: Vec<String>,
    /// `--host-port PORT`: of the host's own loopback.
    pub host_port: Vec<String>,
    /// `--no-network`.
    pub no_network: bool,
    /// `--read PATH`: shown although hidden.
    pub read: Vec<String>,
    /// `--write PATH`.
    pub write: Vec<String>,
    /// `--home none|private|keep[=NAME]`.
    pub home: Option<String>,
    /// `--hide PATH`.
    pub hide: Vec<String>,
    /// `--protect NAME`: protected as well, or `ci`.
    pub protect: Vec<String>,
    /// `--unprotect NAME`.
    pub unprotect: Vec<String>,
    /// `--guard MODE`.
    pub guard: Option<GuardMode>,
    /// `--env NAME=VALUE`.
    pub env: Vec<String>,
    /// `--pass-env NAME`; `*` is every variable.
    pub pass_env: Vec<String>,
    /// The limits.
    pub limits: FlagLimits,
    /// `--audit LEVEL`.
    pub audit: Option<AuditLevel>,
}

/// Limits as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlagLimits {
    /// `--cpu CORES`.
    pub cpu: Option<String>,
    /// `--memory SIZE`.
    pub memory: Option<String>,
    /// `--pids COUNT`.
    pub pids: Option<String>,
    /// `--disk SIZE`.
    pub disk: Option<String>,
    /// `--time SPAN`.
    pub time: Option<String>,
    /// `--cpu-time SPAN`.
    pub cpu_time: Option<String>,
    /// `--output SIZE`.
    pub output: Option<String>,
    /// `--files COUNT`.
    pub files: Option<String>,
    /// `--file-size SIZE`.
    pub file_size: Option<String>,
    /// `--require-limits`.
    pub required: bool,
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
        let host_ports = self.host_port.iter();
        let host_ports = host_ports.map(|text| sourced(text.parse(), &flag("--host-port")));
        layer.network.host_ports = stated(host_ports.collect::<Result<Vec<_>, _>>()?);
        layer.network.authorities = stated(files(&self.authority, "--authority", context)?);
        layer.filesystem.read_allow = stated(paths(&self.read, "--read", Form::Glob, context)?);
        layer.filesystem.write_allow =
            stated(paths(&self.write, "--write", Form::Literal, context)?);
        layer.filesystem.home = typed(self.home.as_ref(), "--home")?;
        layer.filesystem.read_deny = paths(&self.hide, "--hide", Form::Deny, context)?;
        self.guard(&mut layer)?;
        self.environment(&mut layer)?;
        layer.limits = self.limits.to_limits()?;
        layer.audit = self.audit.map(|level| Sourced::new(level, flag("--audit")));
        for name in &self.preset {
            let preset = sourced(Preset::named(name), &flag("--preset"))?;
            preset.add_to(&mut layer, &preset.origin);
        }
        Ok(layer)
    }

    fn guard(&self, layer: &mut Layer) -> Result<(), SourceError> {
        for text in &self.protect {
            let names = sourced(protected_names(text), &flag("--protect"))?;
            layer.filesystem.protect.extend(names.spread());
        }
        let unprotect = self.unprotect.iter().cloned();
        layer.filesystem.unprotect = unprotect
            .map(|name| Sourced::new(name, flag("--unprotect")))
            .collect();
        layer.filesystem.guard = self.guard.map(|mode| Sourced::new(mode, flag("--guard")));
        Ok(())
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

impl FlagLimits {
    fn to_limits(&self) -> Result<Limits, SourceError> {
        Ok(Limits {
            cpu: typed(self.cpu.as_ref(), "--cpu")?,
            memory: typed(self.memory.as_ref(), "--memory")?,
            pids: typed(self.pids.as_ref(), "--pids")?,
            disk: typed(self.disk.as_ref(), "--disk")?,
            time: typed(self.time.as_ref(), "--time")?,
            cpu_time: typed(self.cpu_time.as_ref(), "--cpu-time")?,
            output: typed(self.output.as_ref(), "--output")?,
            open_files: typed(self.files.as_ref(), "--files")?,
            file_size: typed(self.file_size.as_ref(), "--file-size")?,
            required: self
                .required
                .then(|| Sourced::new(true, flag("--require-limits"))),
            ..Limits::default()
        })
    }
}

/// A value, if its flag was typed.
fn typed<T>(text: Option<&String>, name: &str) -> Result<Option<Sourced<T>>, SourceError>
where
    T: FromStr,
    Fault: From<T::Err>,
{
    text.map(|text| sourced(text.parse(), &flag(name)))
        .transpose()
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
    let rules = list.iter().map(|text| {
        let (text, context) = climbed(text, context);
        sourced(readings(&text, &context, form), &flag(name))
    });
    let rules: Result<Vec<_>, _> = rules.collect();
    Ok(rules?.into_iter().flat_map(Sourced::spread).collect())
}

fn files(
    list: &[String],
    name: &str,
    context: &PathContext,
) -> Result<Vec<Sourced<PathBuf>>, SourceError> {
    list.iter()
        .map(|text| {
            let (text, context) = climbed(text, context);
            sourced(literal(&text, &context), &flag(name))
        })
        .collect()
}

/// A relative path that leaves the working directory by `..`, from the directory that it leads to:
/// whoever types it stands there. A file means the same wherever it lies, and must not do so.
fn climbed<'a>(text: &'a str, context: &'a PathContext) -> (Cow<'a, str>, Cow<'a, PathContext>) {
    let is_relative = !text.starts_with(['/', '~']);
    if !(is_relative && text.split('/').any(|part| part == "..")) {
        return (text.into(), Cow::Borrowed(context));
    }
    let mut context = context.clone();
    let mut below = Vec::new();
    for part in text.split('/') {
        match part {
            ".." if below.pop().is_none() => drop(context.base.pop()),
            "" | "." | ".." => {}
            name => below.push(name),
        }
    }
    let end = if text.ends_with('/') { "/" } else { "" };
    // From a dot, so that a name that begins with a tilde stays one.
    let text = [&["."], below.as_slice()].concat().join("/") + end;
    (text.into(), Cow::Owned(context))
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
    fn paths_of_flags_may_leave_the_working_directory() {
        let context = PathContext {
            base: "/a/b/c".into(),
            ..context()
        };
        for (text, path) in [
            ("..", "/a/b"),
            ("../", "/a/b/"),
            ("../x", "/a/b/x"),
            ("./../x/", "/a/b/x/"),
            ("d/../../x", "/a/b/x"),
            ("../../../../x", "/x"),
            ("x/..", "/a/b/c"),
            ("../~x", "/a/b/~x"),
        ] {
            let rules = paths(&[text.to_owned()], "--write", Form::Literal, &context).unwrap();
            let PathRule::Literal(found) = &rules[0].value else {
                panic!("{text}");
            };
            assert_eq!(found, std::path::Path::new(path), "{text}");
            assert_eq!(
                rules[0].value.names_directory(),
                text.ends_with('/'),
                "{text}"
            );
        }
        let glob = paths(&["../*.x".to_owned()], "--hide", Form::Glob, &context).unwrap();
        assert_eq!(glob[0].value, PathRule::Glob("/a/b/*.x".to_owned()));
        for text in ["~/../x", "/a/../x"] {
            let refused = paths(&[text.to_owned()], "--write", Form::Literal, &context);
            assert!(refused.is_err(), "{text}");
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
            limits: FlagLimits {
                time: Some("10m".into()),
                cpu: Some("1.5".into()),
                ..FlagLimits::default()
            },
            audit: Some(AuditLevel::All),
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
        assert_eq!(layer.limits.cpu.unwrap().millis(), 1500);
        assert_eq!(layer.audit.unwrap().value, AuditLevel::All);
        assert_eq!(
            FlagLayer::default().to_layer(&context()).unwrap(),
            Layer::empty(flag("flags"))
        );
    }

    fn limited(limits: FlagLimits) -> FlagLayer {
        FlagLayer {
            limits,
            ..FlagLayer::default()
        }
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
                    write: vec!["~/../x".into()],
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
                limited(FlagLimits {
                    time: Some("10".into()),
                    ..Default::default()
                }),
                "flag --time: ",
            ),
            (
                limited(FlagLimits {
                    memory: Some("0".into()),
                    ..Default::default()
                }),
                "flag --memory: ",
            ),
            (
                limited(FlagLimits {
                    pids: Some("-3".into()),
                    ..Default::default()
                }),
                "flag --pids: ",
            ),
            (
                limited(FlagLimits {
                    disk: Some("5 bushels".into()),
                    ..Default::default()
                }),
                "flag --disk: ",
            ),
        ] {
            let error = flags.to_layer(&context()).unwrap_err();
            assert!(error.to_string().starts_with(text), "{error}");
        }
    }
}
