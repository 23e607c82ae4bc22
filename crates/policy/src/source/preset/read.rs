//! From the file to the model.

use std::path::{Component, Path, PathBuf};

use super::document::{HostEntry, HostMatch, PresetDocument, PresetVariables};
use super::{Preset, PresetError, PresetHost, ProjectMark};
use crate::environment::{Environment, check_name, check_value};
use crate::host::HostPattern;
use crate::origin::{LayerKind, Origin, Sourced};
use crate::port::{Port, PortError, PortSet};
use crate::rule::EntryError;
use crate::source::document::{Located, Node};
use crate::source::error::{Fault, SourceError};

/// Reads the preset file `name`.
pub(super) fn read(name: &str, text: &str) -> Result<Preset, SourceError> {
    let origin = Origin::new(LayerKind::Preset, name);
    let node = Node::from_toml(text).and_then(Node::into::<PresetDocument>);
    let document = node.map_err(|error| {
        let at = error.at.unwrap_or_default();
        SourceError::at(&origin, at, Fault::Document(error.message))
    })?;
    Reader { origin: &origin }.preset(document)
}

struct Reader<'a> {
    origin: &'a Origin,
}

impl Reader<'_> {
    fn preset(&self, document: PresetDocument) -> Result<Preset, SourceError> {
        Ok(Preset {
            hosts: self.all(&document.hosts, host)?,
            host_ports: self.all(&document.host_ports, |number| port(*number))?,
            environment: self.environment(document.environment)?,
            home: self.all(&document.home, |text| home_path(text))?,
            keep_home: document.keep_home,
            detect: self.all(&document.detect, |text| mark(text))?,
            alternative_to: document.alternative_to,
            name: document.name,
            description: document.description,
            kind: document.kind,
        })
    }

    fn environment(&self, variables: PresetVariables) -> Result<Environment, SourceError> {
        let pass = self.all(&variables.pass, |name| {
            check_name(name)?;
            Ok(Sourced::new(name.clone(), self.origin.clone()))
        })?;
        let mut environment = Environment {
            pass,
            ..Environment::default()
        };
        for (name, value) in variables.set {
            let checked = check_name(&name).and_then(|()| check_value(&name, &value));
            checked.map_err(|error| SourceError::at(self.origin, value.at, error))?;
            let value = Sourced::new(value.value, self.origin.clone());
            environment.set.insert(name, value);
        }
        Ok(environment)
    }

    fn all<T, U>(
        &self,
        list: &[Located<T>],
        translate: impl Fn(&T) -> Result<U, Fault>,
    ) -> Result<Vec<U>, SourceError> {
        let one = |item: &Located<T>| {
            translate(&item.value).map_err(|fault| SourceError::at(self.origin, item.at, fault))
        };
        list.iter().map(one).collect()
    }
}

fn host(entry: &HostEntry) -> Result<PresetHost, Fault> {
    let (name, covers, listed) = match entry {
        HostEntry::Name(name) => (name, HostMatch::Subtree, None),
        HostEntry::Rule(rule) => (&rule.host, rule.covers, rule.ports.as_deref()),
    };
    let subtree = HostPattern::from_reversed(name).map_err(EntryError::from)?;
    let host = match covers {
        HostMatch::Subtree => subtree,
        HostMatch::Exact => HostPattern::Exact(subtree.name().clone()),
    };
    let ports = listed.map(ports).transpose()?.unwrap_or(PortSet::web());
    Ok(PresetHost { host, ports })
}

fn ports(list: &[u16]) -> Result<PortSet, Fault> {
    if list.is_empty() {
        return Err(PortError::Empty.into());
    }
    let ports = list.iter().map(|number| port(*number));
    let ranges: Vec<(Port, Port)> = ports
        .map(|port| port.map(|port| (port, port)))
        .collect::<Result<_, _>>()?;
    Ok(PortSet::from_ranges(ranges))
}

fn port(number: u16) -> Result<Port, Fault> {
    Port::new(number).ok_or_else(|| PortError::Number(number.to_string()).into())
}

/// A path below the home directory, spelled in one way.
fn home_path(text: &str) -> Result<PathBuf, Fault> {
    let path = Path::new(text);
    let plain: PathBuf = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect();
    if text.is_empty() || plain.as_os_str() != path.as_os_str() {
        return Err(PresetError::Home(text.to_owned()).into());
    }
    Ok(plain)
}

fn mark(text: &str) -> Result<ProjectMark, Fault> {
    let rest = text.strip_prefix('*').unwrap_or(text);
    if rest.is_empty() || rest.contains(['*', '/', '\0']) {
        return Err(PresetError::Mark(text.to_owned()).into());
    }
    Ok(ProjectMark(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(line: &str) -> Result<Preset, SourceError> {
        let head = "name = \"made-up\"\ndescription = \"a test\"\nkind = \"data\"\n";
        read("made-up", &format!("{head}{line}\n"))
    }

    #[test]
    fn hosts_are_reversed_with_their_match_and_ports() {
        let line =
            r#"hosts = ["org.example", {host = "com.example.api", match = "exact", ports = [22]}]"#;
        let hosts = with(line).unwrap().hosts;
        let shown: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["**.example.org:80,443", "api.example.com:22"]);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (line, code) in [
            ("hosts = [\"a b\"]", "malformed-host"),
            (
                "hosts = [{host = \"org.example\", ports = []}]",
                "malformed-port",
            ),
            ("hostPorts = [0]", "malformed-port"),
            ("home = [\"/etc\"]", "malformed-preset"),
            ("home = [\"../x\"]", "malformed-preset"),
            ("home = [\"a//b\"]", "malformed-preset"),
            ("home = [\"\"]", "malformed-preset"),
            ("detect = [\"*\"]", "malformed-preset"),
            ("detect = [\"a/b\"]", "malformed-preset"),
            (
                "environment = {pass = [\"NPM_*\"]}",
                "malformed-environment",
            ),
            ("wirte = []", "malformed-document"),
        ] {
            let error = with(line).unwrap_err();
            assert_eq!(error.code(), code, "{line}: {error}");
            assert!(error.to_string().starts_with("preset made-up:4"), "{error}");
        }
    }
}
