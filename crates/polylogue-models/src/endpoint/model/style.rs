//! The format of requests to a model.

use polylogue_core::{CacheLifetime, Capability, Entry, Request};
use serde_json::Value;

use super::EndpointModel;
use crate::endpoint::COMPLETION_LIMIT;
use crate::unsupported::Unsupported;
use crate::wire::protocol::{Protocol, Style};

impl EndpointModel {
    /// The format of requests to the model, as far as it does not depend on what is requested.
    pub(super) fn own_style(&self) -> Style {
        let style = self.endpoint.style();
        let reasoning = style.deviations.reasoning_of(&self.model, style.reasoning);
        let is_apart = style.deviations.completion_limit_while_reasoning && self.accepts.thinks == Some(true);
        let max_tokens = if is_apart { COMPLETION_LIMIT } else { style.max_tokens };
        Style { reasoning, max_tokens, accepts: self.accepts, media: self.media_limits, ..style }
    }

    pub(super) fn style<P: Protocol>(&self, request: &Request<'_>) -> Style {
        let style = self.own_style();
        let stream = request.params.extra.get("stream").and_then(Value::as_bool);
        let (fold, omit) =
            (self.is_unsupported(Capability::SystemRole), self.is_unsupported(Capability::NullContent));
        let bridge = self.is_unsupported(Capability::UserAfterTool);
        let merge = style.merge || P::GROUPS_RESULTS;
        // An agent without tools that is asked once never reads what a mark would write, which costs more.
        let has_replied = request.entries.iter().any(|entry| matches!(entry, Entry::Assistant { .. }));
        let accepts = self.accepts;
        let takes_marks = P::CACHE_MARK.is_some_and(|mark| !mark.only_known || accepts.cache_min.is_some());
        let marks = style.marks && takes_marks && (has_replied || !request.tools.is_empty());
        let stream = stream.unwrap_or(style.stream);
        // Not only from the second request on, because the system text has another form then.
        let marks_system = style.names_prefix && accepts.paid_cache;
        let is_long = request.params.prompt_cache.is_some_and(CacheLifetime::is_long);
        let long_marks = (marks || marks_system) && is_long;
        let vision = self.capabilities.has(Capability::Vision) == Some(true);
        Style { vision, marks, long_marks, marks_system, merge, stream, fold, omit, bridge, ..style }
    }

    /// Whether the model is known to reject a format, so that another one is sent.
    pub(super) fn is_unsupported(&self, form: Capability) -> bool {
        let Some(has) = self.endpoint.capabilities().has(form) else {
            let kept = self.endpoint.findings(&self.model);
            let kept = kept.get(&form).is_some_and(|finding| !finding.has && finding.is_fresh());
            let lacks = |known: &Unsupported| known.has(&self.name, form);
            return kept || lacks(&self.logged) || lacks(self.endpoint.unsupported());
        };
        !has
    }
}
