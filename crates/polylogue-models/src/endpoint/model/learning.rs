//! What a model has refused before, and what its replies show that it can do.

use polylogue_core::{Capability, ModelError, ModelErrorKind, Reply, Request};

use super::EndpointModel;
use crate::learned::ModelKey;
use crate::unsupported::{asked_for, shown};

impl EndpointModel {
    /// The known refusal of `request`, if there is one.
    pub(super) fn refusal(&self, request: &Request<'_>) -> Option<ModelError> {
        let said = |capability: &Capability| self.endpoint.capabilities().has(*capability) == Some(false);
        if let Some(capability) = asked_for(request).into_iter().find(said) {
            // A turn that began before this was configured continues in another way.
            let kind = ModelErrorKind::Unsupported(capability);
            return Some(ModelError::new(kind, &*self.name, "as it was set, it has no such capability"));
        }
        let found = self.logged.known(&self.name, request);
        found.or_else(|| self.endpoint.unsupported().known(&self.name, request)).or_else(|| {
            let asked = ModelKey {
                base_url: self.endpoint.shown(),
                model: &self.model,
                name: &self.name,
                capabilities: self.endpoint.capabilities(),
            };
            self.endpoint.known()?.refusal(&asked, &asked_for(request))
        })
    }

    /// Stores detected capabilities.
    pub(super) fn learn(&self, request: &Request<'_>, result: &Result<Reply, ModelError>) {
        match result {
            Ok(reply) => shown(request, reply).for_each(|capability| self.note(capability, None)),
            Err(error) => {
                self.endpoint.unsupported().learn(error);
                if let ModelErrorKind::Unsupported(capability) = error.kind {
                    self.note(capability, Some(&error.message));
                }
            }
        }
    }

    pub(super) fn note(&self, capability: Capability, lacks: Option<&str>) {
        if let Some(known) = self.endpoint.known() {
            known.learn(self.endpoint.shown(), &self.model, capability, lacks);
        }
    }
}
