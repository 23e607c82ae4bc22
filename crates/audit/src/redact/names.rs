//! Names whose values are secrets.

/// What the name of a secret has in it, without separators.
const TELLING: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authtoken",
];
/// What it may end with.
const ENDINGS: [&str; 4] = ["token", "pwd", "pass", "signature"];
/// What a variable or a field may end with, after something else.
const LAST_PARTS: [&str; 4] = ["key", "pat", "dsn", "auth"];
/// What the value is then not.
const NO_SECRET: [&str; 9] = [
    "file",
    "path",
    "stdin",
    "dir",
    "url",
    "bypass",
    "compass",
    "publickey",
    "version",
];
/// Where a shell keeps its folder; in small letters it would be a password.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];
/// What a query parameter with a secret has for one of its parts.
const IN_QUERIES: [&str; 6] = ["token", "secret", "key", "password", "signature", "sig"];
/// Headers whose whole value is one.
const HEADERS: [&str; 4] = ["authorization", "proxyauthorization", "cookie", "setcookie"];

/// Whether the value of an option, a variable or a field is a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let parts = parts(name);
    let whole = parts.concat();
    let is_other = NO_SECRET.iter().any(|ending| whole.ends_with(ending))
        || FOLDERS.contains(&name)
        || name.starts_with("--no-");
    let is_telling = TELLING.iter().any(|part| whole.contains(part))
        || ENDINGS.iter().any(|ending| whole.ends_with(ending));
    let last = parts.last().map_or("", String::as_str);
    let is_field = !name.starts_with('-') && parts.len() > 1 && LAST_PARTS.contains(&last);
    let is_auth = name.starts_with('-') && whole == "auth";
    (is_telling || is_field || is_auth) && !is_other
}

/// Whether the value of a header is a secret, to its end.
pub(super) fn is_secret_header(name: &str) -> bool {
    HEADERS.contains(&parts(name).concat().as_str())
}

pub(super) fn is_secret_parameter(name: &str) -> bool {
    let is_it = |part: &String| IN_QUERIES.contains(&part.as_str());
    is_secret_name(name) || parts(name).iter().any(is_it)
}

/// The parts of a name in lower case: `X-Api_key`, `accountKey`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let begins = !letter.is_ascii_alphanumeric() || (was_lower && letter.is_ascii_uppercase());
        if begins && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            part.push(letter.to_ascii_lowercase());
        }
        was_lower = letter.is_ascii_lowercase();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_others() {
        for name in [
            "--password",
            "-password",
            "DB_PASS",
            "STRIPE_KEY",
            "AccountKey",
            "GITHUB_PAT",
            "SENTRY_DSN",
            "--auth",
            "client_secret",
            "access_token",
            "Pwd",
            "X-Api-Key",
            "SECRET_KEY_BASE",
            "--signature",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "--bypass",
            "--no-password",
            "--signature-version",
            "--sort-key",
            "key",
            "PWD",
            "OLDPWD",
            "PUBLIC_KEY",
            "--key-size",
            "--max-tokens",
            "PASSWORD_FILE",
            "auth",
            "--path",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
        for (name, want) in [
            ("keyword", false),
            ("design", false),
            ("monkey", false),
            ("key", true),
            ("X-Amz-Signature", true),
            ("sig", true),
            ("access_token", true),
        ] {
            assert_eq!(is_secret_parameter(name), want, "{name}");
        }
    }
}
