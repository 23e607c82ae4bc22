//! What the guest says of each case. A case that it says nothing of has failed.

use std::collections::BTreeMap;

use super::cases::Guest;

/// What became of each case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdicts {
    /// `None` until the guest says something.
    cases: BTreeMap<String, Option<Verdict>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Good,
    Bad(String),
}

impl Verdicts {
    /// All cases of `guest`, nothing said yet.
    pub(super) fn expected(guest: Guest) -> Self {
        let cases = guest.cases();
        let unsaid = cases.map(|(place, name)| (format!("{place}/{name}"), None));
        Self {
            cases: unsaid.collect(),
        }
    }

    /// Takes in a line of the console.
    pub(super) fn read_line(&mut self, line: &str) {
        let Some(said) = line.strip_prefix("CASE ") else {
            return;
        };
        let mut words = said.splitn(3, ' ');
        let (Some(case), Some(word)) = (words.next(), words.next()) else {
            return;
        };
        // The first word counts, unless a later one is worse.
        let verdict = match word {
            "ok" => Verdict::Good,
            _ => Verdict::Bad(words.next().unwrap_or_default().to_string()),
        };
        if let Some(known) = self.cases.get_mut(case)
            && !matches!(known, Some(Verdict::Bad(_)))
        {
            *known = Some(verdict);
        }
    }

    pub(super) fn passed(&self) -> u64 {
        let good = self
            .cases
            .values()
            .flatten()
            .filter(|case| **case == Verdict::Good);
        good.count() as u64
    }

    /// The cases that failed, with the reason.
    pub(super) fn failed(&self) -> Vec<String> {
        let reason = |verdict: &Option<Verdict>| match verdict {
            None => Some("the guest said nothing of it".to_string()),
            Some(Verdict::Bad(why)) => Some(why.clone()),
            Some(Verdict::Good) => None,
        };
        let cases = self.cases.iter();
        cases
            .filter_map(|(name, verdict)| Some(format!("{name}: {}", reason(verdict)?)))
            .collect()
    }

    pub(super) fn count(&self) -> u64 {
        self.cases.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_a_failure_and_a_failure_stays_one() {
        let mut verdicts = Verdicts::expected(Guest::Bare);
        assert_eq!(verdicts.failed().len() as u64, verdicts.count());
        for line in [
            "CASE root_top/works ok",
            "CASE root_top/pids FAIL exit code 1, not 0",
            "CASE root_top/pids ok",
            "CASE nowhere/works ok",
            "CASE root_top/cpu",
            "noise CASE root_top/memory ok",
        ] {
            verdicts.read_line(line);
        }
        assert_eq!(verdicts.passed(), 1);
        assert_eq!(verdicts.failed().len() as u64, verdicts.count() - 1);
        let pids = "root_top/pids: exit code 1, not 0".to_string();
        assert!(verdicts.failed().contains(&pids));
    }
}
