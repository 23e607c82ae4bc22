//! Places that hold secrets, sessions or other people's data; hidden from the inside.

use std::path::{Path, PathBuf};

use crate::path::{PathContext, PathRule};

/// The hidden places for this user. No patterns: those would have to be looked up at every start.
pub(super) fn places(context: &PathContext) -> Vec<PathRule> {
    let home = places_in(&context.home);
    let system = SYSTEM.iter().map(|entry| PathRule::Literal(entry.into()));
    home.chain(system)
        .chain(roots_home(&context.home))
        .collect()
}

/// Root's home is its own place when somebody else's run looks at it.
pub(super) fn roots_home(home: &Path) -> Option<PathRule> {
    (home != Path::new("/root")).then(|| PathRule::Literal("/root".into()))
}

/// Those in a home folder alone.
pub(super) fn places_in(home: &Path) -> impl Iterator<Item = PathRule> {
    HOME.iter().map(move |entry| {
        // As `join`, which gets memory twice.
        let mut path = PathBuf::with_capacity(home.as_os_str().len() + 1 + entry.len());
        path.push(home);
        path.push(entry);
        PathRule::Literal(path)
    })
}

/// Of those below the home folder, the ones that hold settings beside tokens: they may be shown
/// without the tokens.
pub const SETTINGS_FILES: [&str; 7] = [
    ".npmrc",
    ".yarnrc.yml",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".cargo/config",
    ".cargo/config.toml",
    ".gradle/gradle.properties",
];

/// Below the home folder.
const HOME: &[&str] = &[
    // Keys and cloud accounts.
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/heroku",
    ".config/netlify",
    ".config/stripe",
    ".config/configstore",
    ".fly",
    ".kube",
    ".minikube",
    ".docker",
    ".oci",
    ".aliyun",
    ".config/linode-cli",
    ".terraform.d",
    ".terraformrc",
    ".pulumi/credentials.json",
    ".vault-token",
    ".vercel",
    ".wrangler",
    ".config/.wrangler",
    ".config/sops",
    ".config/age",
    ".age",
    ".ansible/vault",
    ".config/containers/auth.json",
    ".s3cfg",
    ".boto",
    ".config/rclone",
    ".databrickscfg",
    ".snowflake",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/keepassxc",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".pki",
    // Package managers and code hosts.
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".cargo/config",
    ".cargo/config.toml",
    ".netrc",
    ".git-credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".gem/credentials",
    ".bundle/config",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet/NuGet.Config",
    ".hex/hex.config",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".kaggle",
    // Databases and mail.
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".redisclirc",
    ".mongorc.js",
    ".dbshell",
    ".msmtprc",
    ".muttrc",
    ".mutt",
    ".env",
    // Browsers and mail programs.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    "snap/firefox",
    "snap/chromium",
    ".var/app/org.mozilla.firefox",
    ".cache/mozilla",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".local/share/TelegramDesktop",
    // What was typed.
    ".bash_history",
    ".zsh_history",
    ".histfile",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".irb_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
    ".viminfo",
    ".local/state/nvim",
    ".wget-hsts",
    // Agents, and ourselves.
    ".claude.json",
    ".claude/.credentials.json",
    ".claude/history.jsonl",
    ".claude/projects",
    ".codex/auth.json",
    ".codex/history.jsonl",
    ".gemini/oauth_creds.json",
    ".config/anthropic",
    ".config/openai",
    ".config/github-copilot",
    ".config/goose",
    ".local/share/opencode/auth.json",
    ".aider.conf.yml",
    ".local/share/ringfence",
    ".config/ringfence",
    ".local/state/ringfence",
];

/// Of the system.
const SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/NetworkManager/system-connections",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/docker",
    "/etc/krb5.keytab",
    "/etc/ringfence",
    "/run",
    "/var/run",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/lib/etcd",
    "/var/lib/sss",
    "/var/lib/private",
    "/var/lib/postgresql",
    "/var/lib/mysql",
    "/var/log",
    "/var/spool/cron",
    "/var/spool/mail",
    "/var/mail",
    "/var/backups",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_home_is_hidden_from_others_only() {
        let at = |home: &str| PathContext {
            home: home.into(),
            base: "/w".into(),
        };
        let root = PathRule::Literal("/root".into());
        assert!(places(&at("/home/u")).contains(&root));
        assert!(!places(&at("/root")).contains(&root));
        assert!(
            places(&at("/root"))
                .iter()
                .any(|rule| rule.matches(Path::new("/root/.ssh/id")))
        );
        assert!(
            places(&at("/root"))
                .iter()
                .any(|rule| rule.matches(Path::new("/etc/ssh/ssh_host_rsa_key")))
        );
    }
}
