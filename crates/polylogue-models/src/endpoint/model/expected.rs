//! What a model is expected to be capable of, before it is asked.

use polylogue_core::{
    Capabilities, Capability, Effort, EncodeCache, Model as _, Name, Origin, Params, Path, Request,
};

use super::EndpointModel;
use crate::catalog::KnownModel;
use crate::protocols::with_protocol;
use crate::wire::protocol::WriteTail;

impl EndpointModel {
    /// The configured capabilities; besides, tools and schemas as far as the table of models has them, nothing refused them lately, and
    /// the API can express them.
    pub(super) fn expected(&self, params: &Params) -> Capabilities {
        let known = self.endpoint.0.config.listed(&self.model);
        let known = known.and_then(|listed| KnownModel::find(self.endpoint.provider(), listed));
        let abilities = known.map(|known| known.can).unwrap_or_default();
        let is_listed = |name: &str| abilities.iter().any(|ability| ability == name);
        let listed = [(Capability::Tools, is_listed("tools")), (Capability::Schema, is_listed("schema"))];
        listed
            .into_iter()
            .filter(|(capability, is_listed)| {
                *is_listed
                    && self.endpoint.0.config.capabilities.has(*capability).is_none()
                    && !self.is_unsupported(*capability)
                    && !self.cannot_express(*capability, params)
            })
            .fold(self.endpoint.0.config.capabilities, |all, (capability, _)| all.with(capability))
    }

    /// Whether replies to requests with `params` can have seals, by what is sent of these.
    pub(super) fn can_seal(&self, params: &Params) -> bool {
        let sent = params.clone().without(&self.ignored(params));
        let style = self.own_style();
        with_protocol!(self.api, P => P::can_seal(&sent, &style))
    }

    /// Returns the effort that is sent for that of `params`: the nearest one that the model has.
    pub fn effort_sent(&self, params: &Params) -> Option<Effort> {
        self.accepts.effort(params)
    }

    /// Whether it is known before a request with `params` is sent that the model lacks `capability` for it.
    fn cannot_express(&self, capability: Capability, params: &Params) -> bool {
        let (at, who, encoded) = (Path::root(), Name::user(), EncodeCache::default());
        let request = Request {
            origin: Origin::new(&at, &who, 0),
            system: None,
            entries: &[],
            tools: &[],
            params,
            encoded: &encoded,
            reserved: None,
        };
        let style = self.own_style();
        let lacks = with_protocol!(self.api, P => P::lacks(&request, &style));
        lacks.is_some_and(|(lacked, _)| lacked == capability)
    }
}
