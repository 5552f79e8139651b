//! Single requests of an endpoint.

use std::pin::pin;

use bytes::Bytes;
use polylogue_core::{FailedAttempt, ModelError};
use polylogue_http::{HeaderMap, Method, Response};
use url::Url;

use super::key_pool::{KeyPool, KeyState};
use super::read::{compressed, compression, refusal};
use crate::authorizer::{Authorized, Unauthorized};
use crate::cluster::Permit;
use crate::failure::{ErrorContext, Failure};
use crate::retry::RetryAdvice;
use crate::timeouts::{Clock, Limit};

/// A request to be sent once.
pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    /// `None` is that of chat requests.
    pub(super) url: Option<&'a Url>,
    /// Instead of those of every request with the same names.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// A response that is none of an error.
pub(super) struct Exchanged<'a> {
    /// The index of the key.
    pub(super) key: usize,
    pub(super) response: Response<'a>,
    /// What the request was authorized by: the body can quote it.
    pub(super) authorized: Authorized,
}

impl KeyPool {
    /// Sends a request within `limit` of `clock` with the key of its permit, or the next one.
    pub(super) async fn exchange(
        &self,
        outgoing: Outgoing<'_>,
        permit: &Permit,
        (clock, limit): (&Clock, Limit),
        context: &ErrorContext<'_>,
    ) -> Result<Exchanged<'_>, Failure> {
        let (key, transport) = self.chosen(permit);
        let Outgoing { method, url, mut headers, body } = outgoing;
        let unauthorized = Unauthorized { method: &method, url: url.unwrap_or(&self.url), body: &body };
        let authorizing = self.authorizer.authorize(unauthorized, &mut headers, context);
        let late_credentials = |limit| late_to_authorize(context.late(limit, clock.timeouts()));
        let authorized = clock.wait(limit, pin!(authorizing)).await.map_err(late_credentials)??;
        let late = |limit| self.but_for(key, context.late(limit, clock.timeouts()));
        let asking = pin!(transport.ask(method, url, headers, body));
        let sent = clock.wait(limit, asking).await.map_err(late)?;
        let unsent = |why| self.but_for(key, context.unsent(why, clock.timeouts()));
        let mut response = sent.map_err(unsent)?;
        let status = response.status();
        permit.note(response.headers());
        if (200..300).contains(&status) {
            if let Some(encoding) = compression(response.headers()) {
                return Err(self.but_for(key, compressed(encoding, status, context)));
            }
            return Ok(Exchanged { key, response, authorized });
        }
        let redactor = authorized.redactor(context.redactor);
        let context = ErrorContext { redactor: &redactor, ..*context };
        let failure = Box::pin(refusal(&mut response, clock, &context)).await;
        if let (402 | 429, RetryAdvice::Yes(asked)) = (status, failure.again) {
            permit.block(KeyState::wait(asked)).await;
        }
        let failure = self.but_for(key, failure);
        match self.authorizer.corrects(&authorized, status, response.headers()) {
            true => Err(Failure { again: RetryAdvice::Now, ..failure }),
            false => Err(failure),
        }
    }
}

/// The failure of a request that nothing authorized in time. It was not sent, so that it says nothing about the model's server.
fn late_to_authorize(late: Failure) -> Failure {
    let message = "no server or program issued the credentials of the request in time".to_owned();
    Failure { error: ModelError { message, ..late.error }, ended: FailedAttempt::Unsent, ..late }
}
