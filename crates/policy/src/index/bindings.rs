//! Bindings of credentials, found by host name.

use super::RuleId;
use super::names::NameTrie;
use crate::credential::{Binding, Credential};
use crate::host::HostName;
use crate::origin::Sourced;

/// Where a binding stands: its credential, and its place in that.
type Place = (usize, usize);

/// The bindings of a list of credentials. It is asked with the list that it was made from.
#[derive(Debug, Clone, Default)]
pub(crate) struct BindingIndex {
    names: NameTrie,
    places: Vec<Place>,
}

impl BindingIndex {
    pub(crate) fn new(credentials: &[Sourced<Credential>]) -> Self {
        let mut index = Self::default();
        for (owner, credential) in credentials.iter().enumerate() {
            for (place, binding) in credential.bindings.iter().enumerate() {
                let id: RuleId = index.places.len();
                index.names.insert(&binding.host, id);
                index.places.push((owner, place));
            }
        }
        index
    }

    /// Bindings about `name`, in the order of `credentials`.
    pub(crate) fn for_name<'a>(
        &self,
        credentials: &'a [Sourced<Credential>],
        name: &HostName,
    ) -> Vec<(&'a Sourced<Credential>, &'a Binding)> {
        if self.places.is_empty() {
            return Vec::new();
        }
        let mut ids = self.names.find(name).ids;
        ids.sort_unstable();
        let places = ids.into_iter().filter_map(|id| self.places.get(id));
        let bindings = places.filter_map(|(owner, place)| {
            let credential = credentials.get(*owner)?;
            Some((credential, credential.bindings.get(*place)?))
        });
        bindings.collect()
    }
}
