//! What attaching credentials asks of the exit.

use std::sync::Arc;

use ringfence_audit::{ReasonCode, Text};
use ringfence_policy::{Policy, Resolved, services_of_host};

use super::{Exit, decided, unrecorded};
use crate::attempt::Attempt;
use crate::intercept::Keeper;
use crate::refusal::Refused;
use crate::secrets::{Find, Placeholders};

impl Exit {
    /// The policy in force at this moment.
    pub(crate) fn policy(&self) -> Arc<Resolved<Policy>> {
        Arc::clone(&self.policy.borrow())
    }

    /// The secrets of the sandbox, if it has any.
    pub(crate) fn keeper(&self) -> Option<&Keeper> {
        self.keeper.as_ref()
    }

    /// What stands for the secrets inside, if there are any.
    pub(crate) fn placeholders(&self) -> Option<&Arc<Placeholders>> {
        self.placeholders.as_ref()
    }

    /// Has those secrets known that the host behind `attempt` may hold from an
    /// earlier run. Nothing it says may be let in before.
    pub(crate) async fn learn_secrets(&self, attempt: &Attempt) -> Result<(), Refused> {
        let Some(keeper) = self.keeper() else {
            return Ok(());
        };
        let policy = self.policy();
        let services = services_of_host(&policy, &attempt.request());
        let learnt = keeper.learn(&services).await;
        learnt.map_err(|(service, why)| {
            let phrase = format!("the credential {service} is not available: {why}");
            self.refuse(attempt, why.code(), &phrase)
        })
    }

    /// Records that a secret that left was found in the answer to `attempt`, and
    /// hidden.
    pub(crate) fn note_returned(&self, attempt: &Attempt, find: Find) {
        let returned = self.keeper().and_then(|keeper| keeper.returned(find));
        let Some(service) = returned else {
            return;
        };
        let mut decided = decided(attempt, None, &self.decide(attempt, None));
        decided.reason = ReasonCode::new("secret-returned");
        let what = if find.is_whole { "" } else { "a part " };
        decided.credential = Some(Text::new(&format!(
            "{service} ({what}hidden in the answer)"
        )));
        // Nothing takes effect with it; the next decision fails if this did.
        let _ = self.recorder.decision(decided);
    }

    /// Judges and records a request; `credential` says what is attached to it,
    /// never its value.
    pub(crate) fn admit_with(
        &self,
        attempt: &Attempt,
        credential: Option<&str>,
    ) -> Result<(), Refused> {
        let decision = self.judge(attempt)?;
        let mut decided = decided(attempt, None, &decision);
        decided.credential = credential.map(Text::new);
        self.recorder.decision(decided).map_err(|_| unrecorded())
    }
}
