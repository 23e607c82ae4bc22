//! LLD's map of a program: which object each piece of code came from, and
//! where functions begin. It shows the names of symbols demangled, so the name
//! to go by is that of the section, of which the compiler makes one for each
//! function. Format: `lld/ELF/MapFile.cpp`.

use anyhow::{Result, bail};

/// How the head of LLD's map is told from that of other linkers.
const HEAD: &[&str] = &["VMA", "LMA", "Size", "Align", "Out", "In", "Symbol"];

/// The code of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Map {
    /// By address; none is empty.
    sections: Vec<Section>,
    functions: Vec<u64>,
}

/// A section of an object that became part of the program's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    address: u64,
    size: u64,
    /// The file as the patterns of linker scripts see it: `archive:member` for
    /// a part of an archive.
    pub(super) object: String,
    pub(super) name: String,
}

impl Section {
    fn holds(&self, address: u64) -> bool {
        (self.address..self.address + self.size).contains(&address)
    }

    #[cfg(test)]
    pub(super) fn new(object: &str, name: &str) -> Self {
        Self {
            address: 0,
            size: 1,
            object: object.into(),
            name: name.into(),
        }
    }
}

impl Map {
    /// Reads what `-Map` wrote.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default();
        if !head.split_whitespace().eq(HEAD.iter().copied()) {
            bail!("the linker's map has another form than LLD's, which rustc uses by default");
        }
        let mut sections: Vec<Section> = Vec::new();
        let mut functions = Vec::new();
        let mut is_code = false;
        for line in lines.filter_map(Line::parse) {
            match line.what {
                What::Output => is_code = false,
                What::Section(text) => {
                    let section = code_section(&line, text);
                    is_code = section.is_some();
                    sections.extend(section);
                }
                // What has no size may be a label before data.
                What::Symbol if is_code && line.size > 0 => functions.push(line.address),
                What::Symbol => {}
            }
        }
        sections.sort_by_key(|section| section.address);
        functions.sort_unstable();
        functions.dedup();
        Ok(Self {
            sections,
            functions,
        })
    }

    /// Every section of code.
    pub(super) fn sections(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter()
    }

    /// Where functions begin, in order and each once.
    pub(super) fn functions(&self) -> &[u64] {
        &self.functions
    }

    /// The section that `address` lies in.
    pub(super) fn section_at(&self, address: u64) -> Option<&Section> {
        let after = self
            .sections
            .partition_point(|section| section.address <= address);
        let section = self.sections.get(after.checked_sub(1)?)?;
        section.holds(address).then_some(section)
    }
}

/// A line of the map: four numbers, and a text that is indented by its kind.
struct Line<'a> {
    address: u64,
    size: u64,
    what: What<'a>,
}

enum What<'a> {
    Output,
    /// `object:(section)`, or an assignment of a linker script.
    Section(&'a str),
    Symbol,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (address, rest) = number(line)?;
        let (_load_address, rest) = number(rest)?;
        let (size, rest) = number(rest)?;
        let (_alignment, rest) = number(rest)?;
        let text = rest.trim_start();
        let what = match rest.len() - text.len() {
            1 => What::Output,
            9 => What::Section(text),
            _ => What::Symbol,
        };
        Some(Self {
            address,
            size,
            what,
        })
    }
}

/// The hexadecimal number that `text` begins with, and what follows it.
fn number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start();
    let (digits, _) = text.split_once(' ')?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    Some((number, &text[digits.len()..]))
}

fn code_section(line: &Line<'_>, text: &str) -> Option<Section> {
    let (object, name) = text.strip_suffix(')')?.rsplit_once(":(")?;
    let is_code = name == ".text" || name.starts_with(".text.");
    (is_code && line.size > 0).then(|| Section {
        address: line.address,
        size: line.size,
        object: as_patterns_see(object),
        name: name.to_string(),
    })
}

/// `libc.a(malloc.o)` is `libc.a:malloc.o` in a script.
fn as_patterns_see(object: &str) -> String {
    let member = object
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('));
    match member {
        Some((archive, member)) => format!("{archive}:{member}"),
        None => object.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
             VMA              LMA     Size Align Out     In      Symbol
             2a8              2a8       20     4 .note.ABI-tag
             2a8              2a8       20     4         /lib/rcrt1.o:(.note.ABI-tag)
             2a8              2a8       20     1                 __abi_tag
            1000             1000       30    16 .text.start
            1000             1000       20    16         /t/deps/ringfence-1.std-2.std.3-cgu.0.rcgu.o:(.text._RNvCs1_3std4main)
            1000             1000       20     1                 std::main
            1020             1020        0     1         . = ALIGN(16)
            1020             1020       10    16         /lib/libc.a(malloc.o):(.text)
            1020             1020        8     1                 malloc
            1020             1020        8     1                 __libc_malloc
            1028             1028        8     1                 free
            1030             1030        0     1                 label
            1040             1040        4    16 .text
            1040             1040        0    16         /lib/crti.o:(.text)
            1040             1040        4    16         /t/a (b).o:(.text.unlikely.cold)
            1040             1040        4     1                 <T as core::fmt::Debug (x)>::fmt
            2000             2000        8     8 .data
            2000             2000        8     8         /lib/libc.a(malloc.o):(.data)
            2000             2000        8     1                 main_arena
";

    #[test]
    fn functions_are_the_sized_symbols_of_code() {
        let map = Map::parse(TEXT).unwrap();
        assert_eq!(map.functions(), [0x1000, 0x1020, 0x1028, 0x1040]);
    }

    #[test]
    fn an_address_leads_to_its_section() {
        let map = Map::parse(TEXT).unwrap();
        let found = |address| {
            let section = map.section_at(address)?;
            Some((section.object.as_str(), section.name.as_str()))
        };
        let malloc = Some(("/lib/libc.a:malloc.o", ".text"));
        assert_eq!(
            found(0x1000),
            Some((
                "/t/deps/ringfence-1.std-2.std.3-cgu.0.rcgu.o",
                ".text._RNvCs1_3std4main"
            ))
        );
        assert_eq!(found(0x1020), malloc);
        assert_eq!(found(0x1028), malloc);
        assert_eq!(found(0x1030), None);
        assert_eq!(found(0x1040), Some(("/t/a (b).o", ".text.unlikely.cold")));
        assert_eq!(found(0xfff), None);
        assert_eq!(found(0x2000), None);
    }

    #[test]
    fn the_map_of_another_linker_is_refused() {
        assert!(Map::parse("").is_err());
        assert!(Map::parse("Archive member included to satisfy reference by file\n").is_err());
    }
}
