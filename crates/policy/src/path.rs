//! Paths in filesystem rules: what `~`, relative paths and globs mean.
//!
//! Everything here is text work; nothing looks at the disk.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet};
use serde::{Serialize, Serializer};
use thiserror::Error;

/// What `~` and relative paths mean for one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathContext {
    /// The user's home folder, absolute.
    pub home: PathBuf,
    /// The folder relative paths start from, absolute.
    pub base: PathBuf,
}

/// A place, or a pattern of places. Absolute after expansion. Always covers all below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathRule {
    /// One file or folder.
    Literal(PathBuf),
    /// `*`, `?`, `[...]`, `{a,b}` within a component and `**` across components.
    Glob(String),
}

/// Which forms a list takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// No globs, except a trailing `/**`, which is the folder.
    Literal,
    /// Globs are patterns.
    Glob,
    /// The same, and what has brackets or braces is also the path that has these characters in its
    /// names: `app/[id]` is a common one, and a deny that passed over it would guard nothing.
    Deny,
    /// Characters mean themselves.
    Verbatim,
}

impl PathRule {
    /// Reads one entry of a list that takes globs.
    pub fn parse(text: &str, context: &PathContext) -> Result<Self, PathRuleError> {
        parse_as(text, context, Form::Glob)
    }

    /// Reads one entry of a list that takes no globs.
    pub fn parse_literal(text: &str, context: &PathContext) -> Result<Self, PathRuleError> {
        parse_as(text, context, Form::Literal)
    }

    /// True when the rule covers `path`, which must be absolute and free of `.` and `..`.
    pub fn matches(&self, path: &Path) -> bool {
        match self {
            Self::Literal(own) => path.starts_with(own),
            Self::Glob(glob) => matcher(glob)
                .is_ok_and(|matcher| path.ancestors().any(|part| matcher.is_match(part))),
        }
    }

    /// True when the text says that this is a directory, be it there or not.
    pub fn names_directory(&self) -> bool {
        match self {
            Self::Literal(path) => path.as_os_str().as_encoded_bytes().ends_with(b"/"),
            Self::Glob(_) => false,
        }
    }

    /// True when every place of `other` is a place of `self`, as far as text can tell.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Literal(path)) => self.matches(path),
            (Self::Literal(own), Self::Glob(glob)) => {
                Path::new(fixed_prefix(glob)).starts_with(own)
            }
            (Self::Glob(a), Self::Glob(b)) => a == b,
        }
    }
}

/// Many patterns at once, with the meaning that [`PathRule::matches`] gives each.
#[derive(Debug, Clone, Default)]
pub struct PathPatterns(GlobSet);

impl PathPatterns {
    /// Of the texts of [`PathRule::Glob`].
    pub fn new<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<Self, globset::Error> {
        let globs: Result<Vec<Glob>, _> = globs.into_iter().map(glob).collect();
        GlobSet::new(globs?).map(Self)
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when one of them covers `path`, which must be absolute and free of `.` and `..`.
    pub fn matches(&self, path: &Path) -> bool {
        !self.is_empty() && path.ancestors().any(|part| self.0.is_match(part))
    }

    /// True when one of them names `path` itself.
    pub fn names(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

/// Everything that one entry of a list means.
pub(crate) fn readings(
    text: &str,
    context: &PathContext,
    form: Form,
) -> Result<Vec<PathRule>, PathRuleError> {
    let pattern = parse_as(text, context, form)?;
    let trimmed = without_everything_below(text);
    if form != Form::Deny || !trimmed.contains(['[', ']', '{', '}']) {
        return Ok(vec![pattern]);
    }
    let named = if trimmed.contains(['*', '?']) {
        expand_glob(&without_classes(trimmed), context)?
    } else {
        PathRule::Literal(expand(trimmed, context)?)
    };
    Ok(vec![pattern, named])
}

/// A pattern in which brackets and braces mean themselves.
fn without_classes(pattern: &str) -> String {
    let mut escaped = String::with_capacity(pattern.len());
    for character in pattern.chars() {
        if matches!(character, '[' | ']' | '{' | '}') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn parse_as(text: &str, context: &PathContext, form: Form) -> Result<PathRule, PathRuleError> {
    if text.is_empty() {
        return Err(PathRuleError::Empty);
    }
    if text.contains('\0') {
        return Err(PathRuleError::Nul(text.to_owned()));
    }
    let trimmed = if form == Form::Verbatim {
        text
    } else {
        without_everything_below(text)
    };
    let has_glob = form != Form::Verbatim && trimmed.contains(['*', '?', '[', ']', '{', '}']);
    match (has_glob, form) {
        (true, Form::Literal) => Err(PathRuleError::GlobNotAllowed(text.to_owned())),
        (true, _) => expand_glob(trimmed, context),
        (false, Form::Literal) => {
            let path = expand(trimmed, context)?;
            Ok(PathRule::Literal(marked(path, text)))
        }
        (false, _) => expand(trimmed, context).map(PathRule::Literal),
    }
}

/// The path with a slash at its end where the text says that it is a directory. No comparison of
/// paths and no table shows it.
fn marked(mut path: PathBuf, text: &str) -> PathBuf {
    if text.ends_with('/') || text.ends_with("/**") {
        path.push("");
    }
    path
}

/// Reads one path whose characters mean themselves.
pub(crate) fn literal(text: &str, context: &PathContext) -> Result<PathBuf, PathRuleError> {
    if text.is_empty() {
        return Err(PathRuleError::Empty);
    }
    if text.contains('\0') {
        return Err(PathRuleError::Nul(text.to_owned()));
    }
    expand(text, context)
}

/// `dir/**` and `dir/` are the folder.
fn without_everything_below(text: &str) -> &str {
    let cut = text.strip_suffix("/**").unwrap_or(text);
    if cut.is_empty() { "/" } else { cut }
}

fn expand(text: &str, context: &PathContext) -> Result<PathBuf, PathRuleError> {
    let (root, rest) = split_root(text, context)?;
    let mut path = root.to_path_buf();
    for component in Path::new(rest).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::ParentDir if path != root && !text.starts_with('/') => drop(path.pop()),
            Component::ParentDir if text.starts_with('/') => {
                return Err(PathRuleError::ParentInAbsolute(text.to_owned()));
            }
            Component::ParentDir => return Err(PathRuleError::LeavesBase(text.to_owned())),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(path)
}

/// The folder an entry starts from, and what is left of it.
fn split_root<'a>(
    text: &'a str,
    context: &'a PathContext,
) -> Result<(&'a Path, &'a str), PathRuleError> {
    if text == "~" {
        return Ok((&context.home, ""));
    }
    if let Some(rest) = text.strip_prefix("~/") {
        return Ok((&context.home, rest));
    }
    if text.starts_with('~') {
        return Err(PathRuleError::OtherHome(text.to_owned()));
    }
    if text.starts_with('/') {
        return Ok((Path::new("/"), text));
    }
    Ok((&context.base, text))
}

fn expand_glob(text: &str, context: &PathContext) -> Result<PathRule, PathRuleError> {
    let (root, rest) = split_root(text, context)?;
    if rest.split('/').any(|part| part == "..") {
        return Err(PathRuleError::LeavesBase(text.to_owned()));
    }
    let root = root
        .to_str()
        .ok_or_else(|| PathRuleError::ContextNotUtf8(text.to_owned()))?;
    let parts: Vec<&str> = rest
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    let escaped = globset::escape(root.trim_end_matches('/'));
    let glob = format!("{escaped}/{}", parts.join("/"));
    matcher(&glob).map_err(|source| PathRuleError::Glob {
        entry: text.to_owned(),
        source,
    })?;
    Ok(PathRule::Glob(glob))
}

fn matcher(text: &str) -> Result<globset::GlobMatcher, globset::Error> {
    Ok(glob(text)?.compile_matcher())
}

/// `*` stays within a component, as in a shell.
fn glob(text: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
}

/// The folder in front of the first component with a wildcard.
fn fixed_prefix(glob: &str) -> &str {
    let wild = glob.find(['*', '?', '[', '{', '\\']).unwrap_or(glob.len());
    let cut = glob[..wild].rfind('/').unwrap_or(0);
    if cut == 0 { "/" } else { &glob[..cut] }
}

impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(path) => match path.to_str() {
                Some("/") => f.write_str("/"),
                Some(path) => f.write_str(path.trim_end_matches('/')),
                None => path.display().fmt(f),
            },
            Self::Glob(glob) => f.write_str(glob),
        }
    }
}

impl Serialize for PathRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why an entry is no path rule. Each message shows the entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathRuleError {
    /// No text.
    #[error("the path is empty")]
    Empty,
    /// A NUL byte, which the kernel would cut at.
    #[error("path {0:?} has a NUL byte")]
    Nul(String),
    /// Climbs out of the base folder or the home folder.
    #[error("path {0:?} leaves its folder")]
    LeavesBase(String),
    /// `..` in an absolute path.
    #[error("path {0:?} has a '..', whose meaning depends on links")]
    ParentInAbsolute(String),
    /// `~user`.
    #[error("path {0:?} names another user's home")]
    OtherHome(String),
    /// A glob in a list of literal paths.
    #[error("path {0:?} is a pattern; this list takes paths only")]
    GlobNotAllowed(String),
    /// The home or base folder is not UTF-8, so a glob cannot be built on it.
    #[error("path {0:?} is a pattern below a folder whose name is not UTF-8")]
    ContextNotUtf8(String),
    /// Not a valid glob.
    #[error("path {entry:?}: {source}")]
    Glob {
        /// The entry as written.
        entry: String,
        /// What is wrong with it.
        source: globset::Error,
    },
}

impl PathRuleError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "path-empty",
            Self::Nul(_) => "path-nul",
            Self::LeavesBase(_) => "path-leaves-base",
            Self::ParentInAbsolute(_) => "path-parent",
            Self::OtherHome(_) => "path-other-home",
            Self::GlobNotAllowed(_) => "path-glob-not-allowed",
            Self::ContextNotUtf8(_) => "path-not-utf8",
            Self::Glob { .. } => "path-glob-malformed",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty => "remove the entry, or use \".\" for the working folder",
            Self::Nul(_) => "remove the NUL byte",
            Self::LeavesBase(_) | Self::OtherHome(_) => "give an absolute path",
            Self::ParentInAbsolute(_) => "write the path without '..'",
            Self::GlobNotAllowed(_) => "name the folder; everything below it is included",
            Self::ContextNotUtf8(_) => "name the files without wildcards",
            Self::Glob { .. } => "patterns are *, ?, [abc], {a,b} and **",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> PathContext {
        PathContext {
            home: "/home/[u]".into(),
            base: "/srv/p".into(),
        }
    }

    #[test]
    fn expansion() {
        for (text, want) in [
            (".", "/srv/p"),
            ("./a/", "/srv/p/a"),
            ("a/../b", "/srv/p/b"),
            ("~", "/home/[u]"),
            ("~/.ssh", "/home/[u]/.ssh"),
            ("/tmp/**", "/tmp"),
            ("/**", "/"),
            ("/", "/"),
            ("a//b", "/srv/p/a/b"),
        ] {
            assert_eq!(
                PathRule::parse_literal(text, &context())
                    .unwrap()
                    .to_string(),
                want,
                "{text}"
            );
        }
    }

    #[test]
    fn g3_denies_with_brackets_are_patterns_and_names() {
        let read = |text: &str| {
            let rules = readings(text, &context(), Form::Deny).unwrap();
            rules.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(read("a/*.x"), ["/srv/p/a/*.x"]);
        assert_eq!(read("app/[id]/**"), ["/srv/p/app/[id]", "/srv/p/app/[id]"]);
        let rules = readings("app/[id]/*.ts", &context(), Form::Deny).unwrap();
        let matches = |path: &str| rules.iter().any(|rule| rule.matches(Path::new(path)));
        assert!(matches("/srv/p/app/[id]/a.ts") && matches("/srv/p/app/d/a.ts"));
        assert!(!matches("/srv/p/app/x/a.ts") && !matches("/srv/p/app/[id]/a.rs"));
        assert_eq!(readings("[a]", &context(), Form::Glob).unwrap().len(), 1);
    }

    #[test]
    fn g3_many_patterns_mean_what_each_means() {
        let texts = ["**/secrets", "*/x", "*.d", "a/{b,c}/*"];
        let rules: Vec<_> = texts
            .iter()
            .map(|text| PathRule::parse(text, &context()).unwrap())
            .collect();
        let globs: Vec<String> = rules.iter().map(ToString::to_string).collect();
        let all = PathPatterns::new(globs.iter().map(String::as_str)).unwrap();
        for path in [
            "a/secrets/y",
            "b/x",
            "a/b/x",
            "y.d/z",
            "a/c/q/r",
            "secrets",
            "y",
            "x",
        ] {
            let path = Path::new("/srv/p").join(path);
            let each = rules.iter().any(|rule| rule.matches(&path));
            assert_eq!(all.matches(&path), each, "{}", path.display());
        }
    }

    #[test]
    fn refused_paths() {
        for (text, code) in [
            ("", "path-empty"),
            ("a\0b", "path-nul"),
            ("../x", "path-leaves-base"),
            ("a/../../x", "path-leaves-base"),
            ("~/../x", "path-leaves-base"),
            ("/a/../b", "path-parent"),
            ("~root/x", "path-other-home"),
            ("*.lock", "path-glob-not-allowed"),
        ] {
            let error = PathRule::parse_literal(text, &context()).unwrap_err();
            assert_eq!(error.code(), code, "{text:?}");
        }
        assert_eq!(
            PathRule::parse("../*.x", &context()).unwrap_err().code(),
            "path-leaves-base"
        );
        assert_eq!(
            PathRule::parse("a[", &context()).unwrap_err().code(),
            "path-glob-malformed"
        );
    }

    #[test]
    fn matching_covers_everything_below() {
        let rule = |text| PathRule::parse(text, &context()).unwrap();
        for (text, path, want) in [
            ("/a/b", "/a/b/c", true),
            ("/a/b", "/a/bc", false),
            ("*.lock", "/srv/p/x.lock", true),
            ("*.lock", "/srv/p/d/x.lock", false),
            ("**/*.lock", "/srv/p/d/x.lock", true),
            ("~/.k*", "/home/[u]/.kube/config", true),
            ("~/.k*", "/home/u/.kube/config", false),
        ] {
            assert_eq!(rule(text).matches(Path::new(path)), want, "{text} {path}");
        }
        assert!(rule("/a").covers(&rule("/a/*/b")));
        assert!(!rule("/a/b").covers(&rule("/a/*/b")));
    }

    #[test]
    fn a_slash_at_the_end_says_directory() {
        for (text, want) in [
            ("out", false),
            ("out/", true),
            ("out/**", true),
            ("/", true),
        ] {
            let rule = PathRule::parse_literal(text, &context()).unwrap();
            assert_eq!(rule.names_directory(), want, "{text}");
        }
        let rules = ["out", "out/"].map(|text| PathRule::parse_literal(text, &context()).unwrap());
        assert!(rules[0] == rules[1] && rules[0].to_string() == rules[1].to_string());
    }
}
