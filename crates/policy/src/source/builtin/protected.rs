//! Names that run code, or steer an agent, outside the sandbox once somebody opens the folder.

use crate::filesystem::ProtectedName;
use crate::source::error::Fault;

/// The protected names, git's own folder first.
pub(super) fn names() -> Vec<ProtectedName> {
    // All are as `parse` wants them.
    let named = NAMES
        .iter()
        .map(|text| ProtectedName::Components(text.into()));
    std::iter::once(ProtectedName::GitInternals)
        .chain(named)
        .collect()
}

const NAMES: &[&str] = &[
    // Shells.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".envrc",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".bashrc.d",
    ".zshrc.d",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    // Tools that read a file of the folder they start in.
    ".gitconfig",
    ".config/git",
    ".ripgreprc",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".emacs",
    ".dir-locals.el",
    ".tmux.conf",
    ".pythonrc",
    ".pdbrc",
    ".gdbinit",
    ".lldbinit",
    ".ssh",
    ".gnupg",
    ".vim",
    ".emacs.d",
    ".config/nvim",
    ".hg/hgrc",
    ".sl/config",
    ".jj/repo/config.toml",
    // Editors.
    ".vscode",
    ".idea",
    ".cursor",
    ".zed",
    ".devcontainer",
    ".continue",
    ".windsurf",
    // Agents.
    ".mcp.json",
    ".claude/commands",
    ".claude/agents",
    ".claude/hooks",
    ".claude/skills",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".claude/plugins",
    ".claude/output-styles",
    ".claude/rules",
    ".codex/hooks.json",
    ".codex/rules",
    ".gemini/extensions",
    ".gemini/.env",
    "opencode.json",
    ".opencode",
    ".roo",
    ".kiro",
    ".cursorrules",
    ".windsurfrules",
    // Commit hooks.
    ".github/hooks",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".lefthook.toml",
    ".lefthook.json",
    ".overcommit.yml",
    ".pre-commit-config.yml",
    ".husky",
];

/// Definitions of continuous integration, which take effect only once they are pushed.
const CI: &[&str] = &[
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".gitlab-ci.yaml",
    ".gitea/workflows",
    ".forgejo/workflows",
    "appveyor.yml",
    ".appveyor.yml",
    ".circleci",
    ".travis.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
    ".drone.yml",
    ".woodpecker.yml",
    ".woodpecker",
    ".buildkite",
    "bitbucket-pipelines.yml",
];

/// The word for all of [`CI`].
const CI_GROUP: &str = "ci";

/// The names that an entry of `protect` stands for.
pub(crate) fn protected_names(text: &str) -> Result<Vec<ProtectedName>, Fault> {
    if text == CI_GROUP {
        let names = CI.iter().map(|name| ProtectedName::Components(name.into()));
        return Ok(names.collect());
    }
    match ProtectedName::parse(text) {
        Some(name) => Ok(vec![name]),
        None => Err(Fault::ProtectedName(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_as_if_it_were_parsed() {
        let parsed: Option<Vec<_>> = NAMES
            .iter()
            .map(|text| ProtectedName::parse(text))
            .collect();
        assert_eq!(names()[1..], parsed.unwrap());
        assert!(CI.iter().all(|text| ProtectedName::parse(text).is_some()));
    }

    #[test]
    fn a_group_stands_for_its_names() {
        assert_eq!(protected_names("ci").unwrap().len(), CI.len());
        assert_eq!(protected_names("a/b").unwrap().len(), 1);
        for bad in ["", "a/../b", "/a", "."] {
            assert!(protected_names(bad).is_err(), "{bad}");
        }
    }
}
