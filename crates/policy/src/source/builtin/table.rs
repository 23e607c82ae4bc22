//! The form of the tables of names: one a line, in groups under a heading in brackets, with
//! comments after `#` at the beginning of a line.

/// Every name.
pub(super) fn rows(table: &'static str) -> impl Iterator<Item = &'static str> {
    groups(table).map(|(_, name)| name)
}

/// Every name with the heading it is under.
pub(super) fn groups(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut group = "";
    table.lines().filter_map(move |line| {
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        match line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            Some(heading) => {
                group = heading;
                None
            }
            None => Some((group, line)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_headings_and_comments() {
        let table = "# about\n\n[One]\n.a\n.b c\n\n[two]\n# more\n.d/e\n";
        let all: Vec<_> = groups(table).collect();
        assert_eq!(all, [("One", ".a"), ("One", ".b c"), ("two", ".d/e")]);
        assert_eq!(rows(table).count(), 3);
    }
}
