//! Whether the operator let a kit use secrets.

use ringfence_policy::{Difference, Layer, Surface};

use super::load::LoadedKit;
use crate::secrets::{Approvals, ApprovalsError, Subject};

/// What was approved of a kit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KitApproval {
    /// Nothing, and nothing needs to be: it asks for no secret.
    NotNeeded,
    /// Nothing ever was.
    Never,
    /// These services, for this content.
    Content(Vec<String>),
    /// These services, for another content that could do no less.
    NotWider(Vec<String>),
    /// Another content was approved, which could do less: here is what is new.
    Widened(Vec<Difference>),
}

impl KitApproval {
    /// The services whose secrets it may use.
    pub fn services(&self) -> &[String] {
        match self {
            Self::Content(services) | Self::NotWider(services) => services,
            Self::NotNeeded | Self::Never | Self::Widened(_) => &[],
        }
    }

    /// Why a secret is withheld, where that is more than that nobody was asked.
    pub fn remark(&self, kit: &str) -> Option<String> {
        let Self::Widened(new) = self else {
            return None;
        };
        let new: Vec<String> = new
            .iter()
            .map(|own| format!("{} {} {}", own.change.as_str(), own.part, own.entry))
            .collect();
        Some(format!(
            "kit {kit} asks for more than was approved: {}",
            new.join(", ")
        ))
    }
}

impl LoadedKit {
    /// What is approved by its content, and by the place that it comes from.
    pub fn subject(&self) -> Subject {
        Subject {
            name: self.reference().place(),
            digest: self.digest(),
        }
    }

    /// Looks up what was approved of it. A content that could do no more than
    /// the one approved last keeps that approval.
    pub fn approval(&self, approvals: &Approvals) -> KitApproval {
        let wanted = self.services();
        if wanted.is_empty() {
            return KitApproval::NotNeeded;
        }
        let known: Vec<_> = approvals.of_content(&self.digest()).collect();
        if !known.is_empty() {
            let is_approved = |service: &String| known.iter().any(|own| own.names(service));
            return KitApproval::Content(wanted.into_iter().filter(is_approved).collect());
        }
        let Some(last) = approvals.of_subject(&self.subject().name) else {
            return KitApproval::Never;
        };
        let surface = last.surface.clone();
        let known = surface.and_then(|own| serde_json::from_value::<Surface>(own).ok());
        let Some(known) = known else {
            return KitApproval::Never;
        };
        let mut new = known.differences(self.surface());
        new.retain(|own| own.widens);
        if new.is_empty() {
            let services = last.services.iter().filter(|own| wanted.contains(own));
            KitApproval::NotWider(services.cloned().collect())
        } else {
            KitApproval::Widened(new)
        }
    }

    /// Approves this content for `services`.
    pub fn approve(
        &self,
        approvals: &mut Approvals,
        services: Vec<String>,
    ) -> Result<(), ApprovalsError> {
        let surface = serde_json::to_value(self.surface()).ok();
        approvals.approve(self.subject(), services, surface)
    }

    /// Its layer, with the secrets that were approved before.
    pub fn layer(&self, approval: &KitApproval) -> Layer {
        let mut layer = self.kit.layer();
        for service in approval.services() {
            layer.approve(service);
        }
        layer
    }
}
