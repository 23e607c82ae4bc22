//! The one decision: may this request leave?
//!
//! [`decide`] and [`explain`] run the same evaluation; `explain` keeps the trace that `decide`
//! drops. No other code in the project may answer this question.

mod approval;
mod attach;
mod evaluate;
mod explain;
mod reason;
mod request;
mod suggest;
mod trace;

use serde::Serialize;

use crate::origin::Origin;
use crate::policy::{Policy, Resolved};

pub use approval::{approval, may_be_approved};
pub use attach::{
    Attachment, CredentialView, attachments, binds, binds_host, judges_paths, services_of_host,
};
pub use explain::{Explanation, explain};
pub use reason::Reason;
pub use request::{Request, RequestView};
pub use suggest::{Suggestion, SuggestionFormat};
pub use trace::{Considered, Effect, ListName, Outcome};

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The request may leave.
    Allow,
    /// It may not.
    Deny,
}

/// The answer, with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Yes or no.
    pub verdict: Verdict,
    /// Why, as a stable code.
    pub reason: Reason,
    /// The rule that decided, as text.
    pub rule: Option<String>,
    /// Where that rule was written.
    pub source: Option<Origin>,
    /// Allowed only as far as every request inside is judged too, or gets its credential: the
    /// connection must be looked into, and refused where that is not possible.
    pub needs_inspection: bool,
    /// What the rule's author wants people to read.
    pub message: Option<String>,
}

impl Decision {
    /// True for [`Verdict::Allow`].
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}

/// Decides one request. Call it with the name before resolving, and again with each address that
/// the name resolved to; dial only an address that was allowed.
pub fn decide(policy: &Resolved<Policy>, request: &Request<'_>) -> Decision {
    evaluate::evaluate(policy.inner(), request, &mut trace::Silent)
}
