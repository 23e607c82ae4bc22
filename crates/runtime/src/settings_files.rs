//! Settings files that hold tokens beside settings, as they are shown inside: without the tokens.
//!
//! Read line by line and with suspicion: what may be a secret is left out, so that clients go
//! without instead of sending a wrong one; of a file with a line that cannot be understood nothing
//! is shown. Called when the sandbox's init is there already, which so has no copy of what is read.

use std::path::Path;

use zeroize::Zeroizing;

/// Parts of the names of settings whose value is or may be a secret.
const SECRET_WORDS: [&str; 11] = [
    "token", "auth", "pass", "secret", "key", "cred", "user", "login", "session", "cookie", "pwd",
];
/// From this length on a mixed run of letters and digits is taken for a token.
const SHORTEST_TOKEN: usize = 12;
/// The most lines that are looked at.
const MOST_LINES: usize = 10_000;
/// Begins the text of several lines, which is not taken apart.
const LONG_TEXTS: [&str; 2] = ["\"\"\"", "'''"];

/// How a line separates a name from its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `name = value`: npm, pip, cargo and others.
    Assigned,
    /// `name: value`.
    Yaml,
}

/// What becomes of a line.
enum Line {
    Shown(Zeroizing<String>),
    LeftOut,
}

/// What the file, which was read from `path`, shows; nothing where that is in doubt.
pub(crate) fn shown(path: &Path, text: &str) -> Vec<u8> {
    let is_yaml = path
        .extension()
        .is_some_and(|extension| extension == "yml" || extension == "yaml");
    let format = if is_yaml {
        Format::Yaml
    } else {
        Format::Assigned
    };
    without_secrets(text, format)
        .unwrap_or_default()
        .into_bytes()
}

fn without_secrets(text: &str, format: Format) -> Option<String> {
    let is_long = LONG_TEXTS.iter().any(|mark| text.contains(mark));
    if is_long || text.contains('\\') || text.lines().count() > MOST_LINES {
        return None;
    }
    let mut shown = String::new();
    // The depth of a setting that was left out: what is deeper belongs to it.
    let mut left_out: Option<usize> = None;
    for line in text.lines() {
        let whole = line.trim();
        // An old token may stand in a comment.
        if whole.is_empty() || whole.starts_with(['#', ';']) {
            continue;
        }
        let depth = line.len() - line.trim_start().len();
        if left_out.is_some_and(|own| depth > own || whole.starts_with(['-', '"', '\''])) {
            continue;
        }
        match judged(line, format)? {
            Line::Shown(line) => {
                left_out = None;
                shown.push_str(&line);
                shown.push('\n');
            }
            // Where it ends is not seen.
            Line::LeftOut if whole.ends_with(['[', '{', '(', ',']) => return None,
            Line::LeftOut => left_out = Some(depth),
        }
    }
    Some(shown)
}

/// `None` for a line that cannot be understood.
fn judged(line: &str, format: Format) -> Option<Line> {
    let whole = line.trim();
    if whole.chars().all(|c| "[]{},- ".contains(c)) {
        return Some(Line::Shown(line.to_owned().into()));
    }
    if whole.starts_with('[') && whole.ends_with(']') && format == Format::Assigned {
        // Without its name, what follows would mean something else.
        let section = kept(line, whole);
        return matches!(section, Line::Shown(_)).then_some(section);
    }
    let name = match format {
        Format::Assigned => whole.split_once('=').map(|(name, _)| name),
        Format::Yaml => whole
            .split_once(": ")
            .map(|(name, _)| name)
            .or_else(|| whole.strip_suffix(':')),
    };
    match name {
        Some(name) if !is_name(name, format) => None,
        Some(name) if is_secret_name(name) => Some(Line::LeftOut),
        Some(name) => Some(kept(line, &whole[name.len()..])),
        // A further value of the setting above.
        None if is_further(line, whole) => Some(kept(line, whole)),
        None => None,
    }
}

/// Indented, an entry of a list, or one in quotes.
fn is_further(line: &str, whole: &str) -> bool {
    line.starts_with([' ', '\t']) || whole.starts_with(['-', '"', '\''])
}

fn is_name(name: &str, format: Format) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./@:\"' *".contains(c);
    let has_value = format == Format::Assigned && name.contains(": ");
    name.chars().all(plain) && !has_value && !has_token(name)
}

fn is_secret_name(text: &str) -> bool {
    let text = Zeroizing::new(text.to_ascii_lowercase());
    SECRET_WORDS.iter().any(|word| text.contains(word))
}

/// The line, if its value has nothing that may be a secret; without a name and password in a URL.
fn kept(line: &str, value: &str) -> Line {
    let plain = without_user(value);
    let names_secret = is_secret_name(&plain)
        && plain
            .trim_start_matches(['=', ':'])
            .contains(['=', ':', '?']);
    if plain.contains('?') || plain.contains('@') || names_secret || has_token(&plain) {
        return Line::LeftOut;
    }
    let before = line.len() - value.len() - trailing(line);
    Line::Shown(Zeroizing::new(format!("{}{}", &line[..before], *plain)))
}

fn trailing(line: &str) -> usize {
    line.len() - line.trim_end().len()
}

/// `scheme://user:password@host` as `scheme://host`, everywhere.
fn without_user(value: &str) -> Zeroizing<String> {
    let mut shown = Zeroizing::new(String::with_capacity(value.len()));
    let mut rest = value;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after
            .find(['/', ' ', '"', '\'', ','])
            .unwrap_or(after.len());
        let host = after[..end].rfind('@').map_or(0, |user| user + 1);
        rest = &after[host..];
    }
    shown.push_str(rest);
    shown
}

/// Whether a run of letters and digits looks like a token.
fn has_token(text: &str) -> bool {
    let in_token = |c: char| c.is_ascii_alphanumeric() || "_+".contains(c);
    text.split(|c| !in_token(c)).any(|run| {
        run.len() >= SHORTEST_TOKEN
            && run.bytes().any(|b| b.is_ascii_digit())
            && run.bytes().any(|b| b.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(name: &str, text: &str) -> String {
        String::from_utf8(shown(Path::new(name), text)).unwrap()
    }

    #[test]
    fn g5_settings_of_npm_are_shown_without_their_tokens() {
        let text = "registry=https://npm.example.org/\n//npm.example.org/:_authToken=npm_s3cr3t\n\
                    @own:registry=https://u:s3cr3t@own.example.org/npm/\n# old s3cr3t\n\
                    _password = s3cr3t\nemail=a\nsave-exact=true\ncert=AAAAaaaa0000BBBBbbbb1111\n";
        let want = "registry=https://npm.example.org/\n\
                    @own:registry=https://own.example.org/npm/\nemail=a\nsave-exact=true\n";
        assert_eq!(masked(".npmrc", text), want);
    }

    #[test]
    fn g5_settings_of_pip_and_cargo_are_shown_without_their_tokens() {
        let text = "[global]\nindex-url = https://u:s3cr3t@pip.example.org/simple\n\
                    extra-index-url =\n    https://s3cr3t@a.example.org/simple\n    https://b.example.org\n\
                    password =\n    s3cr3t\ntimeout = 60\n";
        let want = "[global]\nindex-url = https://pip.example.org/simple\nextra-index-url =\n    \
                    https://a.example.org/simple\n    https://b.example.org\ntimeout = 60\n";
        assert_eq!(masked("pip.conf", text), want);
        let text = "[build]\nrustflags = [\n  \"-C\",\n]\n[registries.own]\n\
                    index = \"sparse+https://cargo.example.org/\"\ntoken = \"s3cr3t\"\n\
                    [registries]\nother = { index = \"https://o.example.org\", token = \"s3cr3t\" }\n";
        let want = "[build]\nrustflags = [\n  \"-C\",\n]\n[registries.own]\n\
                    index = \"sparse+https://cargo.example.org/\"\n[registries]\n";
        assert_eq!(masked("config.toml", text), want);
    }

    #[test]
    fn g5_what_is_deeper_than_a_secret_in_yaml_is_left_out_with_it() {
        let text = "nodeLinker: node-modules\nnpmScopes:\n  own:\n    npmAuthToken: s3cr=et\n    \
                    npmRegistryServer: \"https://own.example.org\"\nnpmAuthIdent: |\n  s3cr3t\nx: y\n";
        let want = "nodeLinker: node-modules\nnpmScopes:\n  own:\n    \
                    npmRegistryServer: \"https://own.example.org\"\nx: y\n";
        assert_eq!(masked(".yarnrc.yml", text), want);
    }

    #[test]
    fn g5_of_what_is_in_doubt_nothing_is_shown() {
        for text in [
            "s3cr3t",
            "a = 1\ns3cr3t\n",
            "a = \"\"\"\ns3cr3t\n\"\"\"\n",
            "a = b\\\ns3cr3t",
            "token: s3cr3t = x",
            "tokens = [\n\"s3cr3t\",\n]\n",
        ] {
            assert_eq!(masked(".npmrc", text), "", "{text}");
        }
        let deep = "password =\n# x\n\n  s3cr3t\na = x86_64-unknown-linux-gnu\n";
        assert_eq!(masked(".npmrc", deep), "a = x86_64-unknown-linux-gnu\n");
        assert_eq!(masked("a.yml", "tokens:\n- s3cr3t\nb: c\n"), "b: c\n");
        let link = "a=https://example.org/?sig=s3cr3t\nb=https://u:p@x@example.org/\n";
        assert_eq!(masked(".npmrc", link), "b=https://example.org/\n");
    }
}
