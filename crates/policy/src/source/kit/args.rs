//! Arguments of a kit: what is declared, what was given, and `${{ kit.args.NAME }}`.
//!
//! References are replaced in the tree that the text was read into, so that a value can never add
//! a key or an entry.

use std::collections::BTreeMap;

use regex::bytes::RegexBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::document::{Located, Node, Rewriter, Rewritten};
use super::super::error::Position;
use super::fault::KitFault;
use super::word::Word;

/// The largest value of an argument, in bytes.
const LARGEST_VALUE: usize = 4096;
/// The most bytes that references may become in one text or kit.
const LARGEST_RESULT: usize = 4 * 1024 * 1024;
/// The most bytes that a compiled pattern may take.
const LARGEST_PATTERN: usize = 1024 * 1024;

/// A fault and its place.
pub(super) type Placed = (Position, KitFault);

/// The values of a kit's arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments(BTreeMap<String, String>);

/// One argument as declared.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ArgumentDocument {
    /// Used when nothing is given.
    default: Option<Word>,
    /// A value has to be given.
    required: Option<bool>,
    /// What it is for.
    #[allow(dead_code, reason = "checked and shown by the schema only")]
    description: Option<String>,
    /// The values it may have.
    #[serde(rename = "enum")]
    choices: Option<Vec<Word>>,
    /// A regular expression for the whole value.
    pattern: Option<String>,
}

pub(crate) type Declared = BTreeMap<String, Located<ArgumentDocument>>;

impl Arguments {
    /// Checks what is declared, and what was given against it.
    pub(super) fn resolve(
        declared: &Declared,
        given: &BTreeMap<String, String>,
        begin: Position,
    ) -> Result<Self, Placed> {
        if let Some(unknown) = given.keys().find(|name| !declared.contains_key(*name)) {
            return Err((begin, KitFault::ArgumentUnknown(unknown.clone())));
        }
        for (name, argument) in declared {
            check_declaration(name, argument).map_err(|fault| (argument.at, fault))?;
        }
        let mut values = Values {
            declared,
            given,
            known: BTreeMap::new(),
        };
        for (name, argument) in declared {
            values
                .find(name, &mut Vec::new())
                .map_err(|fault| (argument.at, fault))?;
        }
        Ok(Self(values.known))
    }

    /// The values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `text` with every reference replaced; `None` when it has none.
    pub fn substitute(&self, text: &str) -> Result<Option<String>, KitFault> {
        let value = |name: &str| {
            let value = self.0.get(name);
            value
                .cloned()
                .ok_or_else(|| KitFault::ArgumentUnknown(name.to_owned()))
        };
        replace(text, value)
    }

    /// Replaces every reference in the values of `tree`, which was read from `text`.
    pub(super) fn apply(&self, tree: &mut Node, text: &str) -> Result<(), Placed> {
        tree.rewrite(&mut Substitution {
            arguments: self,
            lines: text.lines().collect(),
            left: LARGEST_RESULT,
        })
    }
}

/// The replacement of references in one kit.
struct Substitution<'a> {
    arguments: &'a Arguments,
    lines: Vec<&'a str>,
    /// How many bytes references may still become.
    left: usize,
}

impl Rewriter for Substitution<'_> {
    type Error = Placed;

    fn key(&mut self, at: Position, key: &str) -> Result<(), Placed> {
        match reference(key) {
            None => Ok(()),
            Some(_) => Err((at, KitFault::ReferenceInKey(key.to_owned()))),
        }
    }

    fn text(&mut self, at: Position, old: &str) -> Result<Option<Rewritten>, Placed> {
        let new = self
            .arguments
            .substitute(old)
            .map_err(|fault| (at, fault))?;
        let Some(new) = new else { return Ok(None) };
        let left = self.left.checked_sub(new.len());
        self.left = left.ok_or((at, KitFault::TooLarge(LARGEST_RESULT)))?;
        Ok(Some(if is_plain(&self.lines, at, old) {
            Rewritten::Plain(new)
        } else {
            Rewritten::Text(new)
        }))
    }
}

/// True when the scalar stands in the text as it is, without quotes.
fn is_plain(lines: &[&str], at: Position, scalar: &str) -> bool {
    let line = at
        .line
        .checked_sub(1)
        .and_then(|line| lines.get(line as usize));
    let column = at.column.saturating_sub(1) as usize;
    let mut rest = line.into_iter().flat_map(|line| line.chars().skip(column));
    rest.next() == scalar.chars().next()
}

/// Values while they are looked up.
struct Values<'a> {
    declared: &'a Declared,
    given: &'a BTreeMap<String, String>,
    known: BTreeMap<String, String>,
}

impl Values<'_> {
    /// The value of `name`; `asked` is what led here.
    fn find(&mut self, name: &str, asked: &mut Vec<String>) -> Result<String, KitFault> {
        if let Some(value) = self.known.get(name) {
            return Ok(value.clone());
        }
        let unknown = || KitFault::ArgumentUnknown(name.to_owned());
        let declared = self.declared.get(name).ok_or_else(unknown)?;
        if asked.iter().any(|own| own == name) {
            return Err(KitFault::ArgumentCircle(name.to_owned()));
        }
        asked.push(name.to_owned());
        let value = match (self.given.get(name), &declared.default) {
            (Some(given), _) => given.clone(),
            (None, Some(default)) => {
                let found = replace(&default.0, |other| self.find(other, asked))?;
                found.unwrap_or_else(|| default.0.clone())
            }
            (None, None) => return Err(KitFault::ArgumentMissing(name.to_owned())),
        };
        asked.pop();
        check_value(name, &value, declared)?;
        self.known.insert(name.to_owned(), value.clone());
        Ok(value)
    }
}

fn check_declaration(name: &str, argument: &ArgumentDocument) -> Result<(), KitFault> {
    if !is_name(name) {
        return Err(KitFault::ArgumentName(name.to_owned()));
    }
    if argument.default.is_some() == (argument.required == Some(true)) {
        return Err(KitFault::ArgumentForm(name.to_owned()));
    }
    if argument.choices.is_some() && argument.pattern.is_some() {
        return Err(KitFault::ArgumentChecks(name.to_owned()));
    }
    Ok(())
}

fn check_value(name: &str, value: &str, argument: &ArgumentDocument) -> Result<(), KitFault> {
    let listed = argument.choices.as_ref();
    let is_listed = listed.is_none_or(|list| list.iter().any(|word| word.0 == value));
    let fits = argument
        .pattern
        .as_deref()
        .map_or(Ok(true), |pattern| is_match(name, pattern, value))?;
    let is_short = value.len() <= LARGEST_VALUE && !value.contains('\0');
    if is_listed && fits && is_short {
        return Ok(());
    }
    let shown = value.chars().take(80).collect();
    Err(KitFault::ArgumentValue {
        name: name.to_owned(),
        value: shown,
    })
}

/// The whole value has to match, by the rules for ASCII, in time linear in its length.
fn is_match(name: &str, pattern: &str, value: &str) -> Result<bool, KitFault> {
    let unusable = || KitFault::ArgumentPattern {
        name: name.to_owned(),
        pattern: pattern.to_owned(),
    };
    // On its own first: a `)(` in it must not get out of the group around it.
    let build = |text: &str| {
        RegexBuilder::new(text)
            .unicode(false)
            .size_limit(LARGEST_PATTERN)
            .build()
            .map_err(|_| unusable())
    };
    build(pattern)?;
    let whole = build(&format!(r"\A(?:{pattern})\z"))?;
    Ok(whole.is_match(value.as_bytes()))
}

fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !text.is_empty()
        && text.bytes().all(plain)
        && !text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

/// The next reference: what is before it, what it refers to, what is after it. `${{` of others,
/// such as a build service, is left alone.
fn reference(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("${{")?;
        let inner = &text[start + 3..];
        let end = inner.find("}}")?;
        let path = inner[..end].trim();
        if path.starts_with("kit.") {
            return Some((&text[..start], path, &inner[end + 2..]));
        }
        from = start + 3;
    }
}

fn replace(
    text: &str,
    mut value: impl FnMut(&str) -> Result<String, KitFault>,
) -> Result<Option<String>, KitFault> {
    let mut rest = text;
    let mut result = String::new();
    while let Some((before, path, after)) = reference(rest) {
        let name = path.strip_prefix("kit.args.").filter(|name| is_name(name));
        let name = name.ok_or_else(|| KitFault::Reference(path.to_owned()))?;
        result.push_str(before);
        result.push_str(&value(name)?);
        if result.len() > LARGEST_RESULT {
            return Err(KitFault::TooLarge(LARGEST_RESULT));
        }
        rest = after;
    }
    if rest.len() == text.len() {
        return Ok(None);
    }
    result.push_str(rest);
    Ok(Some(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(declared: &str, given: &[(&str, &str)]) -> Result<Arguments, KitFault> {
        let declared: Declared = Node::from_yaml(declared).unwrap().into().unwrap();
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Arguments::resolve(&declared, &given, Position::default()).map_err(|(_, fault)| fault)
    }

    #[test]
    fn values_are_given_or_default_and_checked() {
        let declared = "region: {default: eu, enum: [eu, us]}\nname: {required: true, pattern: '[a-z]+|x1'}\nport: {default: 80}\n";
        let found = values(declared, &[("name", "forge")]).unwrap();
        let pairs: Vec<_> = found.iter().collect();
        assert_eq!(pairs, [("name", "forge"), ("port", "80"), ("region", "eu")]);
        let code = |given: &[(&str, &str)]| values(declared, given).unwrap_err().code();
        assert_eq!(code(&[]), "kit-arg-missing");
        assert_eq!(code(&[("name", "forge1")]), "kit-arg-value");
        assert_eq!(code(&[("name", "x1\n")]), "kit-arg-value");
        assert_eq!(code(&[("name", "a"), ("region", "ap")]), "kit-arg-value");
        assert_eq!(code(&[("name", "a"), ("other", "b")]), "kit-arg-unknown");
    }

    #[test]
    fn defaults_may_refer_to_others_but_not_to_themselves() {
        let found = values(
            "a: {default: '${{ kit.args.b }}-x'}\nb: {default: y}\n",
            &[],
        )
        .unwrap();
        assert_eq!(found.substitute("${{kit.args.a}}").unwrap().unwrap(), "y-x");
        for circle in [
            "a: {default: '${{ kit.args.a }}'}",
            "a: {default: '${{ kit.args.b }}'}\nb: {default: '${{ kit.args.a }}'}",
        ] {
            assert_eq!(values(circle, &[]).unwrap_err().code(), "kit-arg-circle");
        }
        let open = values("a: {default: '${{ kit.args.c }}'}", &[]);
        assert_eq!(open.unwrap_err().code(), "kit-arg-unknown");
    }

    #[test]
    fn defaults_do_not_grow_without_end() {
        let line = |n: usize| {
            let before = format!("${{{{ kit.args.a{} }}}}", n.saturating_sub(1));
            match n {
                0 => "a0: {default: xxxxxxxxxx}\n".to_owned(),
                _ => format!("a{n}: {{default: '{}'}}\n", before.repeat(10)),
            }
        };
        let bomb: String = (0..9).map(line).collect();
        assert_eq!(values(&bomb, &[]).unwrap_err().code(), "kit-arg-value");
    }

    #[test]
    fn declarations_are_checked() {
        for bad in [
            "a: {}",
            "a: {default: x, required: true}",
            "a: {default: x, enum: [x], pattern: x}",
            "a: {default: x, pattern: '('}",
            "a: {default: x, pattern: 'x)|(.'}",
            "a.b: {default: x}",
            "1a: {default: x}",
        ] {
            assert_eq!(values(bad, &[]).unwrap_err().code(), "kit-args", "{bad}");
        }
    }

    #[test]
    fn references_are_found_among_others() {
        let found = values("a: {default: A}", &[]).unwrap();
        let text = "x ${{ github.token }} ${{ kit.args.a }}${{kit.args.a}} ${X} }}";
        let done = found.substitute(text).unwrap().unwrap();
        assert_eq!(done, "x ${{ github.token }} AA ${X} }}");
        assert_eq!(found.substitute("${{ other }} $").unwrap(), None);
        for bad in ["${{ kit.name }}", "${{ kit.args.a.b }}", "${{ kit.args. }}"] {
            let fault = found.substitute(bad).unwrap_err();
            assert_eq!(fault.code(), "kit-reference", "{bad}");
        }
    }
}
