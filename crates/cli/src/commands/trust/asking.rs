//! [`Asking`]: something that asks for things, shown and approved.

use ringfence_policy::Row;
use ringfence_runtime::{Approvals, Asked, Candidate, KitApproval, LoadedKit, Subject};
use serde::Serialize;
use serde_json::Value;

use crate::commands::kit::show;
use crate::error::Failure;
use crate::output;

/// Who asks.
pub(super) enum Asking {
    /// A file of a working folder.
    File(Candidate, Asked),
    /// A kit.
    Kit(Box<LoadedKit>),
}

/// The same, as programs read it.
#[derive(Serialize)]
struct Shown {
    subject: Subject,
    services: Vec<String>,
    asks: Value,
    approved: bool,
}

impl Asking {
    /// Approves all that it asks for.
    pub(super) fn approve(&self, approvals: &mut Approvals) -> Result<(), Failure> {
        match self {
            Self::File(..) => approvals.approve(self.subject(), self.services(), None)?,
            Self::Kit(kit) => kit.approve(approvals, kit.services())?,
        }
        Ok(())
    }

    /// Prints what it asks for, and whether that is approved.
    pub(super) fn show(&self, approvals: &Approvals, json: bool) {
        let approved = self.is_approved(approvals);
        let subject = self.subject();
        if json {
            return output::print_json(&Shown {
                subject,
                services: self.services(),
                asks: self.asks(),
                approved,
            });
        }
        let rows = self.rows();
        if !rows.is_empty() {
            output::print_text(&output::columns(&rows));
        }
        let not = if approved { "" } else { "not " };
        output::tell!(
            "ringfence: {} is {not}approved",
            output::printable(&subject.name)
        );
    }

    fn subject(&self) -> Subject {
        match self {
            Self::File(file, _) => file.subject(),
            Self::Kit(kit) => kit.subject(),
        }
    }

    fn services(&self) -> Vec<String> {
        match self {
            Self::File(_, asked) => asked.services.clone(),
            Self::Kit(kit) => kit.services(),
        }
    }

    fn is_approved(&self, approvals: &Approvals) -> bool {
        match self {
            Self::File(file, _) => approvals.is_trusted(&file.subject()),
            Self::Kit(kit) => match kit.approval(approvals) {
                KitApproval::NotNeeded => true,
                approval => !approval.services().is_empty(),
            },
        }
    }

    fn asks(&self) -> Value {
        let asks = match self {
            Self::File(_, asked) => serde_json::to_value(&asked.rows),
            Self::Kit(kit) => serde_json::to_value(kit.surface()),
        };
        asks.unwrap_or_default()
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let cells = |row: &Row| vec![row.section.to_owned(), row.entry.clone()];
        match self {
            Self::File(_, asked) => asked.rows.iter().map(cells).collect(),
            Self::Kit(kit) => show::rows(kit),
        }
    }
}
