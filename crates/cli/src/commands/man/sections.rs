//! What the main page has besides its commands.

use clap_mangen::roff::{Roff, bold, roman};
use ringfence_policy::variables;

const EXIT_CODES: [(&str, &str); 8] = [
    ("the command's own", "it ran and ended by itself"),
    ("128 and a signal's number", "that signal ended it"),
    ("124", "it ran longer than --time"),
    (
        "125",
        "ringfence did not start it, lost it, or could not record it; the message has a stable code and a hint",
    ),
    ("126, 127", "it cannot be executed, or was not found"),
    ("137", "with a line limits_hit: another limit ended it"),
    (
        "1, 2",
        "of the other commands: something is wrong, or the command line makes no sense",
    ),
    ("3", "of policy explain: it is not allowed"),
];

const FILES: [(&str, &str); 9] = [
    (
        "ringfence.toml",
        "the policy of a project, in its folder; used once ringfence trust approved its content",
    ),
    (
        "~/.srt-settings.json",
        "the settings of srt, read by ringfence srt",
    ),
    ("~/.local/state/ringfence/audit", "the audit log"),
    (
        "~/.local/state/ringfence/approvals",
        "what ringfence trust approved",
    ),
    (
        "~/.local/state/ringfence/homes",
        "homes that are kept: ringfence home",
    ),
    (
        "~/.local/state/ringfence/guard",
        "what is to be swept, and what was moved to quarantine",
    ),
    (
        "~/.local/share/ringfence/secrets",
        "the encrypted store of ringfence secret",
    ),
    ("~/.cache/ringfence/kits", "kits that were fetched"),
    (
        "/run/ringfence",
        "inside a sandbox: certificates, and files of kits",
    ),
];

const ENVIRONMENT: [(&str, &str); 12] = [
    (variables::POLICY, "a policy file"),
    (variables::ALLOW, "hosts to allow, separated by commas"),
    (variables::DENY, "hosts to deny, separated by commas"),
    (
        variables::QUIET,
        "srt says nothing at the end about what was refused, unless it is empty or 0",
    ),
    (
        variables::KAGENT_ALLOWED_DOMAINS,
        "hosts to allow, with srt's meaning: no port is any port",
    ),
    (
        variables::KAGENT_DENIED_DOMAINS,
        "hosts to deny, with srt's meaning",
    ),
    (
        variables::KAGENT_SRT_SETTINGS_PATH,
        "a settings file of srt, where no --settings names one",
    ),
    (variables::SRT_DEBUG, "srt says what it does, if it is set"),
    (
        "XDG_STATE_HOME",
        "the audit log, approvals, kept homes and quarantine are in ringfence below it; else below ~/.local/state",
    ),
    (
        "XDG_DATA_HOME",
        "the secret store; else below ~/.local/share",
    ),
    (
        "XDG_CACHE_HOME",
        "kits that were fetched; else below ~/.cache",
    ),
    ("HOME", "the home directory that is shown inside"),
];

pub(super) fn all() -> Roff {
    let mut roff = Roff::new();
    list(&mut roff, "EXIT STATUS", &EXIT_CODES);
    list(&mut roff, "FILES", &FILES);
    list(&mut roff, "ENVIRONMENT", &ENVIRONMENT);
    roff
}

fn list(roff: &mut Roff, heading: &str, entries: &[(&str, &str)]) {
    roff.control("SH", [heading]);
    for (name, text) in entries {
        roff.control("TP", []);
        roff.text([bold(*name)]);
        roff.text([roman(*text)]);
    }
}

#[cfg(test)]
mod tests {
    use ringfence_runtime::{Directories, HostEnv};
    use ringfence_sandbox::{BusVariables, Host, OWN_FOLDER};

    use super::*;

    #[test]
    fn the_files_are_where_the_page_says() {
        let host = Host {
            uid: 1000,
            gid: 1000,
            home: "/h".into(),
            other_home: None,
            landlock_abi: 1,
            spare_id: None,
            bus: BusVariables::default(),
        };
        let own = Directories::of(&HostEnv::new(Vec::new(), None), &host);
        let kits = own.kits.clone();
        let folders = own.closed().map(std::path::Path::to_path_buf);
        let folders = folders.into_iter().chain([kits, OWN_FOLDER.into()]);
        for folder in folders {
            let text = folder.display().to_string();
            let text = text.replacen("/h/", "~/", 1);
            assert!(FILES.iter().any(|(name, _)| *name == text), "{text}");
        }
    }
}
