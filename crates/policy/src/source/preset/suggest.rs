//! Which preset would have allowed what was refused, and what kind of project a directory holds.

use std::cmp::Reverse;

use super::Preset;
use crate::host::HostName;

/// The presets whose marks are among `entries`, the names in a project's directory.
pub fn project_kinds<'a>(entries: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let entries: Vec<&str> = entries.into_iter().collect();
    let is_marked = |preset: &Preset| {
        let mut marks = preset.detect.iter();
        marks.any(|mark| entries.iter().any(|entry| mark.matches(entry)))
    };
    let marked = Preset::all().filter(is_marked);
    marked.map(|preset| preset.name).collect()
}

/// The preset that fits `refused` best: one of the project's `kinds` before others, then the one
/// that covers most of it, then the one that opens least beside it. `None` if none covers any.
pub fn suggest(refused: &[(HostName, u16)], kinds: &[String]) -> Option<Preset> {
    let covered = |preset: &Preset| {
        let covers = |(name, port): &&(HostName, u16)| preset.covers(name, *port);
        refused.iter().filter(covers).count()
    };
    let fitting = Preset::all().filter(|preset| covered(preset) > 0);
    fitting.min_by_key(|preset| {
        let is_kind = kinds.contains(&preset.name);
        let is_second = preset.alternative_to.is_some();
        let covered = Reverse(covered(preset));
        (!is_kind, covered, is_second, preset.hosts.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that presets allow, made at run time: no registry is spelled out anywhere.
    fn hosts_of(name: &str) -> Vec<(HostName, u16)> {
        let preset = Preset::named(name).unwrap();
        let hosts = preset.hosts.iter();
        hosts.map(|own| (own.host.name().clone(), 443)).collect()
    }

    fn suggested(refused: &[(HostName, u16)], kinds: &[&str]) -> Option<String> {
        let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        suggest(refused, &kinds).map(|preset| preset.name)
    }

    #[test]
    fn every_preset_with_hosts_of_its_own_is_found_by_them() {
        for preset in Preset::all() {
            assert_eq!(
                suggested(&hosts_of(&preset.name), &[&preset.name]),
                Some(preset.name.clone())
            );
        }
        for name in ["node", "python", "rust", "claude", "git-hosting"] {
            assert_eq!(suggested(&hosts_of(name), &[]).as_deref(), Some(name));
        }
    }

    #[test]
    fn the_kind_of_the_project_decides_where_several_fit() {
        let node = hosts_of("node");
        let bun = hosts_of("bun");
        let shared: Vec<_> = node.into_iter().filter(|own| bun.contains(own)).collect();
        assert_eq!(shared.len(), 1);
        for kind in ["node", "bun", "deno"] {
            assert_eq!(suggested(&shared, &[kind]).as_deref(), Some(kind));
        }
        assert_eq!(suggested(&shared, &[]).as_deref(), Some("node"));
        // What is of another kind than the project is suggested all the same.
        assert_eq!(
            suggested(&hosts_of("rust"), &["node"]).as_deref(),
            Some("rust")
        );
    }

    #[test]
    fn what_no_preset_covers_suggests_none() {
        let name = HostName::parse("api.example.org").unwrap();
        assert_eq!(suggested(&[(name, 443)], &["node"]), None);
        let (name, _) = hosts_of("rust").remove(0);
        assert_eq!(suggested(&[(name, 8443)], &["rust"]), None);
        assert_eq!(suggested(&[], &["rust"]), None);
    }

    #[test]
    fn a_project_is_known_by_its_files() {
        assert_eq!(project_kinds(["src", "Cargo.toml"]), ["rust"]);
        assert_eq!(project_kinds(["App.csproj"]), ["dotnet"]);
        let both = project_kinds(["package.json", "pyproject.toml", "README.md"]);
        assert_eq!(both, ["node", "python"]);
        assert!(project_kinds(["csproj", "package.json.bak"]).is_empty());
    }
}
