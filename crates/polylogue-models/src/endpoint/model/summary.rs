//! Asks models for a summary of what they reason anyway, if they do not show it.

use polylogue_core::{FinishReason, ModelError, Params, Reply, Request, Thinking};
use tracing::info;

use super::{EndpointModel, Forwarder};
use crate::refused_parameters::{SUMMARY, refuses_summary};
use crate::wire::protocol::{Protocol, Style};

impl EndpointModel {
    /// The reply to `request`, with a summary of the reasoning where the endpoint asks for one and can have it.
    pub(super) async fn reply<P: Protocol>(
        &self,
        request: &Request<'_>,
        style: &Style,
        forwarder: &mut Forwarder<'_>,
    ) -> Result<Reply, ModelError> {
        let Some(params) = self.summarized::<P>(request.params, style) else {
            return self.whole::<P>(request, style, forwarder).await;
        };
        let asking = Request { params: &params, ..*request };
        let refusal = match Box::pin(self.whole::<P>(&asking, style, forwarder)).await {
            Err(error) if refuses_summary(&error) => error,
            result => return result,
        };
        // Every request counts, and may not fit into a limit.
        if let Some(reserved) = request.reserved
            && !reserved.again().await
        {
            return Err(refusal);
        }
        forwarder.restart();
        let reply = Box::pin(self.whole::<P>(request, style, forwarder)).await?;
        self.endpoint.0.refused_parameters.learn(&self.name, [SUMMARY]);
        info!(model = &*self.name, why = refusal.message, "the provider refuses a summary of the reasoning");
        Ok(reply)
    }

    /// `params` with the wish for a summary, if they say nothing of that and the model only shows more because of it.
    fn summarized<P: Protocol>(&self, params: &Params, style: &Style) -> Option<Params> {
        let is_wished = self.endpoint.0.config.summarize_reasoning && params.thinking.is_none();
        let refused = &self.endpoint.0.refused_parameters;
        let can_be =
            || P::hides_reasoning(params, style) && !refused.has_any(&self.name, &[SUMMARY, "thinking"]);
        (is_wished && can_be()).then(|| Params { thinking: Some(Thinking::Summary), ..params.clone() })
    }

    /// The reply to `request`, resumed where the provider pauses it.
    async fn whole<P: Protocol>(
        &self,
        request: &Request<'_>,
        style: &Style,
        forwarder: &mut Forwarder<'_>,
    ) -> Result<Reply, ModelError> {
        let answer = self.exchange::<P>(request, style, forwarder).await?;
        match answer.reply.finish {
            FinishReason::Paused => Ok(Box::pin(self.resume::<P>(answer, request, style, forwarder)).await),
            _ => Ok(answer.reply),
        }
    }
}
