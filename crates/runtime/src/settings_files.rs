//! Settings files that hold tokens beside settings, as they are shown inside: without the tokens.
//!
//! Read line by line and with suspicion: what may be a secret is left out, so that clients go
//! without instead of sending a wrong one; of a file with a line that cannot be understood nothing
//! is shown. Called when the sandbox's init is there already, which so has no copy of what is read.

use std::path::Path;

use zeroize::Zeroizing;

/// Parts of the names of settings whose value is or may be a secret.
const SECRET_WORDS: [&str; 11] = [
    "token", "auth", "pass", "secret", "key", "cred", "user", "login", "session", "cookie", "pw",
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
    if !is_plain(text) || text.lines().count() > MOST_LINES {
        return None;
    }
    if format == Format::Yaml && !text.lines().all(is_plain_yaml) {
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
        let is_entry = whole.starts_with(['-', '"', '\'']);
        let is_unnamed = is_entry || (name_of(line, format).is_none() && !is_section(line, format));
        if left_out.is_some_and(|own| depth > own || is_entry || (depth == own && is_unnamed)) {
            continue;
        }
        // A further value of nothing.
        if is_unnamed && shown.is_empty() && whole != "---" {
            return None;
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
    if is_section(line, format) {
        // Without its name, what follows would mean something else.
        let section = kept(line, whole);
        return matches!(section, Line::Shown(_)).then_some(section);
    }
    match name_of(line, format) {
        Some(name) if !is_name(name, format) => None,
        Some(name) if is_secret_name(name) => Some(Line::LeftOut),
        Some(name) => Some(kept(line, &whole[name.len()..])),
        // Some readers take an indented line for a setting of its own.
        None if format == Format::Assigned && is_secret_name(&without_user(whole)) => {
            is_further(line, whole).then_some(Line::LeftOut)
        }
        // A further value of the setting above.
        None if is_further(line, whole) => Some(kept(line, whole)),
        None => None,
    }
}

/// Whether every line break is one to every reader, and no text goes beyond its line.
fn is_plain(text: &str) -> bool {
    let breaks = |c: char| matches!(c, '\u{2028}' | '\u{2029}') || (c.is_control() && c != '\t');
    let is_long = LONG_TEXTS.iter().any(|mark| text.contains(mark));
    !is_long && !text.contains('\\') && !text.lines().any(|line| line.contains(breaks))
}

/// Whether a line of YAML has nothing that gives a meaning to the lines around it other than
/// their depth: no key marked as such, no list, mapping or text in quotes that goes on.
fn is_plain_yaml(line: &str) -> bool {
    let whole = line.trim();
    if whole.starts_with('#') {
        return true;
    }
    let marks_key = whole.split(' ').any(|word| word.starts_with('?'));
    let is_even = |quote: char| whole.matches(quote).count().is_multiple_of(2);
    let is_closed = !whole.contains(['[', ']', '{', '}']) || is_closed_flow(whole);
    !whole.contains('\t') && !marks_key && is_even('"') && is_even('\'') && is_closed
}

/// `name: [a, b]` or `name: {a: b}`, with nothing that could hide where it ends.
fn is_closed_flow(whole: &str) -> bool {
    let Some((_, value)) = whole.split_once(": ") else {
        return false;
    };
    let value = value.trim();
    let inner = (value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']')))
    .or_else(|| {
        value
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
    });
    let brackets = whole.matches(['[', ']', '{', '}']).count();
    inner.is_some() && brackets == 2 && !whole.contains(['"', '\'', '#'])
}

fn is_section(line: &str, format: Format) -> bool {
    let whole = line.trim();
    format == Format::Assigned && whole.starts_with('[') && whole.ends_with(']')
}

/// What names the setting of this line. An indented line of assignments has no name: what is
/// before a `=` there may be part of a value.
fn name_of(line: &str, format: Format) -> Option<&str> {
    let whole = line.trim();
    match format {
        Format::Assigned if line.starts_with(char::is_whitespace) => None,
        Format::Assigned => whole.split_once('=').map(|(name, _)| name),
        Format::Yaml => whole
            .split_once(": ")
            .map(|(name, _)| name)
            .or_else(|| whole.strip_suffix(':')),
    }
}

/// Indented, an entry of a list, or one in quotes.
fn is_further(line: &str, whole: &str) -> bool {
    line.starts_with([' ', '\t']) || whole.starts_with(['-', '"', '\''])
}

fn is_name(name: &str, format: Format) -> bool {
    let name = name.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.\"'*".contains(c);
    let is_plain = !name.is_empty() && name.chars().all(plain);
    let is_known = match format {
        Format::Assigned => is_plain || is_npm_name(name),
        Format::Yaml => {
            let in_yaml = |c: char| plain(c) || "/: ".contains(c);
            !name.is_empty() && name.chars().all(in_yaml) && !name.contains("://")
        }
    };
    is_known && !has_token(name)
}

/// `@scope:registry`, or a setting of one host: `//host:port/path/:key`.
fn is_npm_name(name: &str) -> bool {
    let is_word = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        !text.is_empty() && text.chars().all(plain)
    };
    if let Some(scope) = name.strip_prefix('@') {
        return scope.strip_suffix(":registry").is_some_and(is_word);
    }
    let Some((place, key)) = name
        .strip_prefix("//")
        .and_then(|rest| rest.split_once("/:"))
    else {
        return false;
    };
    let mut parts = place.split('/');
    let host = parts.next().unwrap_or_default();
    let (host, port) = host.split_once(':').unwrap_or((host, "0"));
    let is_port = port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    is_word(key) && is_word(host) && is_port && parts.all(is_word)
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

    #[test]
    fn g5_a_secret_before_a_sign_of_assignment_is_not_taken_for_a_name() {
        for (file, text) in [
            (
                "pip.conf",
                "[global]\nindex-url:https://bob:hunter@example.org/a=b\n",
            ),
            ("pip.conf", "[global]\nhttps://hunter@example.org/a=b\n"),
            ("gradle.properties", "a=b\nmyPw:hunterG=\n"),
            ("gradle.properties", "a=b\nmine hunterG=\n"),
            ("gradle.properties", "a=b\n=hunterG\n"),
            ("gradle.properties", "  hunterG\na=b\n"),
            ("gradle.properties", "a=b\rhunterG\n"),
            (".npmrc", "//bob:hunter@example.org/:registry=a\n"),
            (".npmrc", "//example.org:hunter/:registry=a\n"),
            (".npmrc", "@hunter:other=a\n"),
        ] {
            assert_eq!(masked(file, text), "", "{text}");
        }
        let text = "a=b\nmyPw=hunterG\n";
        assert_eq!(masked("gradle.properties", text), "a=b\n");
        let text = "a=b\n  password hunterG\nc=d\n";
        assert_eq!(masked("gradle.properties", text), "a=b\nc=d\n");
    }

    #[test]
    fn g5_an_indented_line_is_a_value_and_cleaned_whole() {
        let text = "[global]\nextra-index-url =\n    https://eve:sesame@example.org/x=y/simple\n";
        let want = "[global]\nextra-index-url =\n    https://example.org/x=y/simple\n";
        assert_eq!(masked("pip.conf", text), want);
        let text =
            "[global]\nfind-links =\n    eve:sesame@example.org/x=y\n    sesame\ntimeout = 1\n";
        let want = "[global]\nfind-links =\ntimeout = 1\n";
        assert_eq!(masked("pip.conf", text), want);
        let text =
            "[global]\n    password =\n    sesame\n    a=sesame\n[install]\nno-deps = true\n";
        let want = "[global]\n[install]\nno-deps = true\n";
        assert_eq!(masked("pip.conf", text), want);
    }

    #[test]
    fn g5_of_yaml_that_is_not_read_by_its_depth_nothing_is_shown() {
        for text in [
            "a: b\nc:\n  ? npmAuthToken\n    : hunterA\n",
            "a: b\n? npmAuthToken\n: hunterA\n",
            "a: b\n- ? npmAuthToken\n",
            "a: b\n: hunterA\n",
            "b: {\n    npmAuthToken:\n    hunterB}\n",
            "b: [\n    npmAuthToken:\n    hunterB]\n",
            "b: [\"]\", npmAuthToken:\n    hunterB]\n",
            "b: [ # ]\n    npmAuthToken:\n    hunterB]\n",
            ";b: {\nnpmAuthToken:\nhunterB}\n",
            "npmAuthToken: \"a\nb: hunterB\"\n",
            "a: b\nnpmAuthToken:\thunterB\n",
            "a: b\n\"https://hunter.example.org\": c\n",
            "a: b\nhunter@example.org: c\n",
        ] {
            assert_eq!(masked(".yarnrc.yml", text), "", "{text}");
        }
        let text = "a:\n  npmAuthToken:\n  hunterB\n  c: d\n";
        assert_eq!(masked(".yarnrc.yml", text), "a:\n  c: d\n");
    }

    #[test]
    fn g5_ordinary_settings_are_still_shown() {
        for (file, text) in [
            (
                ".npmrc",
                "//npm.example.org:8080/a/:certfile=/a.pem\n@own:registry=https://own.example.org/\nfund=false\n",
            ),
            (
                "pip.conf",
                "[global]\nindex-url = https://pip.example.org/simple\ntrusted-host =\n    a.example.org\n    b.example.org\n",
            ),
            (
                "config.toml",
                "[build]\n  jobs = 2\n  target-dir = \"/t\"\n[target.x86_64-unknown-linux-gnu]\nlinker = \"clang\"\nrustflags = [\"-C\", \"link-arg=-fuse-ld=lld\"]\n",
            ),
            (
                ".yarnrc.yml",
                "---\nnodeLinker: node-modules\nenableTelemetry: false\nplugins:\n  - path: .yarn/a.cjs\n    spec: \"b\"\nsupportedArchitectures:\n  os: [linux, darwin]\n",
            ),
            (
                "gradle.properties",
                "org.gradle.jvmargs=-Xmx2g -XX:MaxMetaspaceSize=512m\norg.gradle.parallel=true\n",
            ),
        ] {
            assert_eq!(masked(file, text), text);
        }
    }
}
