//! One request to a route: what its handler receives.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::app::App;
use crate::problem::Problem;
use crate::request::Peer;
use crate::token::Token;

/// A response, or why there is none.
pub(crate) type Reply = Result<Response<Body>, Problem>;

/// A request that has passed all checks of its route.
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    /// The path of the route.
    pub(crate) path: &'static str,
    pub(crate) peer: Option<Peer>,
    /// Of an open route: none.
    pub(crate) token: Option<Arc<Token>>,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Call {
    /// Who calls.
    ///
    /// # Errors
    /// On an open route: a mistake in the table of routes.
    pub(crate) fn token(&self) -> Result<&Arc<Token>, Problem> {
        self.token.as_ref().ok_or_else(|| Problem::internal("an open route has no token"))
    }

    /// The part of the path with this name.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// A parameter of the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A parameter of the query as a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let parse = |text: &str| {
            text.parse().map_err(|_| Problem::bad_request(format!("`{name}` must be a whole number")))
        };
        self.query(name).map(parse).transpose()
    }

    /// How many the response has at most, by the query parameter `limit`: `usually` without it, and never more than `most`.
    pub(crate) fn limit(&self, usually: u64, most: u64) -> Result<usize, Problem> {
        let limit = self.number("limit")?.unwrap_or(usually);
        if limit == 0 {
            return Err(Problem::bad_request("`limit` must be at least 1")
                .hint(format!("leave it out for the default, {usually}")));
        }
        Ok(usize::try_from(limit.min(most)).unwrap_or(usize::MAX))
    }

    /// The body.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        T::deserialize(&self.body).map_err(|error| Problem::bad_request(format!("the body: {error}")))
    }

    /// Identifies the content of the body.
    pub(crate) fn body_digest(&self) -> blake3::Hash {
        blake3::hash(self.body.to_string().as_bytes())
    }
}

/// A response with a JSON body.
pub(crate) fn json_reply(status: StatusCode, body: &impl Serialize) -> Reply {
    let text = serde_json::to_vec(body)
        .map_err(|error| Problem::internal(format!("the reply cannot be written: {error}")))?;
    let response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    response.body(Body::from(text)).map_err(|error| Problem::internal(error.to_string()))
}
