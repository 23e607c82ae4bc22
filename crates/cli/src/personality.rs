//! Which command line this program speaks, by the name it was started under.
//!
//! A personality translates its own arguments into calls of the runtime and
//! nothing else; adding one is one line in the table.

use std::ffi::OsString;
use std::path::Path;

use crate::commands;
use crate::exit::ExitCode;

/// A command line that this program speaks.
pub(crate) struct Personality {
    name: &'static str,
    main: fn(Vec<OsString>) -> ExitCode,
}

/// All of them; the first is spoken under any name that is not in the table.
const PERSONALITIES: &[Personality] = &[
    Personality {
        name: "ringfence",
        main: commands::main,
    },
    Personality {
        name: "srt",
        main: commands::srt::main,
    },
];

impl Personality {
    /// Runs it; `arguments` start with the program's name.
    pub(crate) fn start(&self, arguments: Vec<OsString>) -> ExitCode {
        (self.main)(arguments)
    }
}

/// The personality for the name that the program was started under.
pub(crate) fn of(program: Option<&OsString>) -> &'static Personality {
    choose(PERSONALITIES, program)
}

fn choose<'a>(table: &'a [Personality], program: Option<&OsString>) -> &'a Personality {
    let name = program.and_then(|program| Path::new(program).file_name());
    table
        .iter()
        .find(|personality| name.is_some_and(|name| name == personality.name))
        .unwrap_or(&table[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: Vec<OsString>) -> ExitCode {
        ExitCode::SUCCESS
    }

    #[test]
    fn the_base_name_chooses() {
        let table = [
            Personality {
                name: "one",
                main: nothing,
            },
            Personality {
                name: "two",
                main: nothing,
            },
        ];
        let chosen = |program: &str| choose(&table, Some(&program.into())).name;
        assert_eq!(chosen("/usr/bin/two"), "two");
        assert_eq!(chosen("two"), "two");
        assert_eq!(chosen("other"), "one");
        assert_eq!(choose(&table, None).name, "one");
    }
}
