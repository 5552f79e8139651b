//! Resumes replies that their provider paused.

use polylogue_core::{Bound, EncodeCache, Entry, FinishReason, ModelError, Params, Reply, Request};

use super::joint::joined;
use super::{Answer, EndpointModel, Forwarder};
use crate::wire::protocol::{Protocol, Style};

/// How often a reply is resumed.
const MAX_RESUMED: usize = 4;

impl EndpointModel {
    /// The reply of `answer`, resumed as long as its provider pauses it. A reply that cannot be resumed stays paused.
    pub(super) async fn resume<P: Protocol>(
        &self,
        answer: Answer,
        request: &Request<'_>,
        style: &Style,
        forwarder: &mut Forwarder<'_>,
    ) -> Reply {
        let Answer { mut reply, mut continuation, .. } = answer;
        for _ in 0..MAX_RESUMED {
            if reply.finish != FinishReason::Paused {
                break;
            }
            let entries = so_far(request, &reply);
            // The view never has the last entry: the reply gets there as a whole.
            let encoded = EncodeCache::default();
            let further = Request { entries: &entries, encoded: &encoded, ..*request };
            if !self.fits(&further).await {
                break;
            }
            forwarder.keep(&reply.parts);
            let rest = match P::CONTINUATION.zip(continuation.take()) {
                Some(token) => self.continued::<P>(token, request, style, forwarder).await,
                None if P::CONTINUATION.is_some() => break,
                None => self.exchange::<P>(&further, style, forwarder).await,
            };
            let Ok(rest) = rest else {
                forwarder.restart();
                break;
            };
            continuation = rest.continuation;
            reply = match P::CONTINUATION {
                Some(_) => joined::<P>(reply, rest.reply),
                None => reply.resumed(rest.reply),
            };
        }
        reply
    }

    /// The rest of a reply: the answer to the same request with the token in `field`.
    async fn continued<P: Protocol>(
        &self,
        (field, token): (&str, String),
        request: &Request<'_>,
        style: &Style,
        forwarder: &mut Forwarder<'_>,
    ) -> Result<Answer, ModelError> {
        let mut extra = request.params.extra.clone();
        extra.insert(field.to_owned(), token.into());
        let params = Params { extra, ..request.params.clone() };
        self.exchange::<P>(&Request { params: &params, ..*request }, style, forwarder).await
    }

    /// Whether the limits of the run allow `further`, the request for the rest of a reply.
    async fn fits(&self, further: &Request<'_>) -> bool {
        match further.reserved {
            Some(reserved) => reserved.extend(Bound::of(self, further)).await,
            None => true,
        }
    }
}

/// The entries of `request` with what `reply` has so far: asked again with these, a provider writes the rest.
fn so_far(request: &Request<'_>, reply: &Reply) -> Vec<Entry> {
    let so_far = Entry::Assistant { parts: reply.parts.clone(), verbatim: reply.verbatim.clone() };
    request.entries.iter().cloned().chain([so_far]).collect()
}
