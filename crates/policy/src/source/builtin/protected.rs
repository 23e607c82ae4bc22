//! Names that run code, or steer an agent, outside the sandbox once somebody opens the folder.

use crate::filesystem::ProtectedName;

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
    // Continuous integration and commit hooks.
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".gitlab-ci.yaml",
    ".gitea/workflows",
    ".forgejo/workflows",
    ".github/hooks",
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
    }
}
