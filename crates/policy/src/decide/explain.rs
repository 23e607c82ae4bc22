//! [`explain`]: the decision with everything it looked at, and what to write to change it.

use serde::Serialize;

use super::attach::{Attachment, CredentialView, attachments};
use super::evaluate::evaluate;
use super::request::{Request, RequestView};
use super::suggest::{Suggestion, suggestions};
use super::trace::Considered;
use super::{Decision, Verdict};
use crate::credential::{Binding, Scheme};
use crate::policy::{Policy, Resolved};

/// How a request may travel; one that is explained does not say.
const SCHEMES: [Scheme; 2] = [Scheme::Https, Scheme::Http];

/// A decision and its grounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What was asked.
    pub request: RequestView,
    /// The answer: exactly that of [`decide`](super::decide).
    pub decision: Decision,
    /// Every rule that was looked at, in order.
    pub considered: Vec<Considered>,
    /// Credentials that the request would get.
    pub credentials: Vec<CredentialView>,
    /// Credentials that it would get if they were approved and the ceiling let them be.
    pub withheld: Vec<CredentialView>,
    /// Lines that would allow it, one for each place it can be written, the most suitable one
    /// first. Empty when adding a line cannot help: it is allowed, a deny holds, or the ceiling
    /// stands against it.
    pub suggestions: Vec<Suggestion>,
}

/// Decides one request and tells why.
pub fn explain(policy: &Resolved<Policy>, request: &Request<'_>) -> Explanation {
    let mut considered = Vec::new();
    let decision = evaluate(policy.inner(), request, &mut considered);
    Explanation {
        request: request.into(),
        suggestions: suggestions(&decision, policy.inner(), request),
        credentials: credentials(&decision, policy, request),
        withheld: withheld(&decision, policy, request),
        considered,
        decision,
    }
}

fn credentials(
    decision: &Decision,
    policy: &Resolved<Policy>,
    request: &Request<'_>,
) -> Vec<CredentialView> {
    if decision.verdict == Verdict::Deny {
        return Vec::new();
    }
    let all = SCHEMES
        .into_iter()
        .flat_map(|scheme| attachments(policy, request, scheme));
    all.map(CredentialView::from).collect()
}

fn withheld(
    decision: &Decision,
    policy: &Resolved<Policy>,
    request: &Request<'_>,
) -> Vec<CredentialView> {
    if decision.verdict == Verdict::Deny {
        return Vec::new();
    }
    let fits = |binding: &Binding| SCHEMES.iter().any(|own| binding.fits(request, *own));
    let bindings = policy.withheld().iter().flat_map(|credential| {
        let fitting = credential.bindings.iter().filter(|own| fits(own));
        fitting.map(move |binding| Attachment {
            credential,
            binding,
        })
    });
    bindings.map(CredentialView::from).collect()
}
