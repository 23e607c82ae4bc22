//! Names that run code, or steer an agent, outside the sandbox once somebody opens the folder.

use crate::filesystem::ProtectedName;

/// The protected names, git's own folder first.
pub(super) fn names() -> Vec<ProtectedName> {
    let named = NAMES.iter().filter_map(|text| ProtectedName::parse(text));
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
    // Tools that read a file of the folder they start in.
    ".gitconfig",
    ".gitmodules",
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
    // Editors.
    ".vscode",
    ".idea",
    ".cursor",
    ".zed",
    ".devcontainer",
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
    ".cursorrules",
    ".windsurfrules",
    // Continuous integration and commit hooks.
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".circleci",
    ".travis.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
    ".drone.yml",
    ".woodpecker.yml",
    ".woodpecker",
    ".buildkite",
    "bitbucket-pipelines.yml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".husky",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses() {
        assert_eq!(names().len(), NAMES.len() + 1);
    }
}
