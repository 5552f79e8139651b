//! Which pictures, sounds and documents a model reads, and how much of them.

use polylogue_core::{Capability, Media, ModelError, ModelErrorKind, Request};

use super::EndpointModel;
use crate::catalog::KnownModel;
use crate::deviations::MediaForm;
use crate::media_limits::{Excess, MediaLimits};
use crate::protocols::with_protocol;
use crate::wire::excess::sent_media;
use crate::wire::protocol::{Protocol, Style};

impl EndpointModel {
    /// Returns whether the model reads `media`: its API has a form for it, the model is known to read it, and its provider is not known to
    /// take less. `None` if that is unknown.
    pub fn reads(&self, media: &Media) -> Option<bool> {
        match self.exceeds(media) {
            Some(_) => Some(false),
            None => self.reads_such(media),
        }
    }

    /// Returns how `media` is more than the provider takes, by its published limits. `None` if it is not, or if the model reads nothing
    /// of that kind.
    pub fn exceeds(&self, media: &Media) -> Option<Excess> {
        self.media_limits.excess(media).filter(|_| self.reads_such(media) != Some(false))
    }

    /// Whether the model reads such media, whatever their size.
    fn reads_such(&self, media: &Media) -> Option<bool> {
        let form = self.endpoint.0.config.deviations.media;
        if !with_protocol!(self.api, P => P::takes(media, form)) {
            return Some(false);
        }
        let known = || {
            let listed = self.endpoint.0.config.listed(&self.model)?;
            KnownModel::find(self.endpoint.provider(), listed)
        };
        match media.media_type.split_once('/') {
            Some(("image", _)) => self.capabilities.has(Capability::Vision),
            Some(("audio", _)) => known()?.has("audio"),
            // Its API reads documents for all its models, of which the table knows nothing.
            _ if form == MediaForm::Mistral => None,
            _ => known()?.reads_documents(),
        }
    }

    /// Refuses a request with more pictures or documents than its provider takes.
    pub(super) fn check_media<P: Protocol>(&self, request: &Request<'_>) -> Result<(), ModelError> {
        if *self.media_limits == MediaLimits::NONE {
            return Ok(());
        }
        let vision = self.capabilities.has(Capability::Vision) == Some(true);
        let sent = sent_media::<P>(request.entries, &Style { vision, ..self.own_style() });
        self.refuse_excess(self.media_limits.excess_of_all(sent.iter().copied()))
    }

    /// Refuses a request of more bytes than its provider takes.
    pub(super) fn check_length(&self, bytes: usize) -> Result<(), ModelError> {
        self.refuse_excess(self.media_limits.excess_of_body(bytes))
    }

    fn refuse_excess(&self, excess: Option<Excess>) -> Result<(), ModelError> {
        excess.map_or(Ok(()), |Excess { why, hint }| {
            Err(ModelError::new(ModelErrorKind::Config, &*self.name, why).hint(hint))
        })
    }
}
