//! Errors on the wire: RFC 9457, with a hint and the id of the request.

use std::fmt;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use polylogue_core::{LogId, StoreError};
use polylogue_wire::problem as wire;
use serde_json::{Value, json};

use crate::source::SourceError;
use crate::token::TokenError;

/// Why a request failed, whose fault that is, and what to do.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<Details>);

#[derive(Debug, Clone)]
struct Details {
    status: StatusCode,
    /// The last part of its `type`, which never changes.
    word: &'static str,
    title: &'static str,
    detail: String,
    hint: Option<String>,
    /// The hint for clients of other protocols, who do not use the paths of the native API. `None`: the same.
    protocol_hint: Option<&'static str>,
    errors: Vec<(String, String)>,
    /// Findings in a text that was sent.
    problems: Option<Value>,
    retry_after: Option<Duration>,
    /// The methods that the path has.
    allow: Option<HeaderValue>,
}

/// In which form errors are written: each protocol has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// `application/problem+json`.
    Problem,
    /// That of OpenAI's API.
    OpenAi,
    /// A message of JSON-RPC 2.0, for MCP.
    JsonRpc,
}

impl ErrorForm {
    /// That of errors on `path` where no route is known.
    pub(crate) fn of_path(path: &str) -> Self {
        match path {
            "/mcp" => Self::JsonRpc,
            path if path.starts_with("/mcp/") => Self::JsonRpc,
            path if path.starts_with("/v1/") => Self::OpenAi,
            _ => Self::Problem,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.detail)
    }
}

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident: $status:ident, $word:literal, $title:literal;)*) => {
        impl Problem {
            $($(#[$doc])*
            pub(crate) fn $name(detail: impl Into<String>) -> Self {
                Self::new(StatusCode::$status, $word, $title, detail.into())
            })*
        }
    };
}

problems! {
    bad_request: BAD_REQUEST, "bad-request", "The request is not valid";
    not_parsed: BAD_REQUEST, "not-parsed", "The body is not JSON";
    unauthorized: UNAUTHORIZED, "unauthorized", "A token is needed";
    forbidden: FORBIDDEN, "forbidden", "The token may not do this";
    foreign_origin: FORBIDDEN, "foreign-origin", "The page of another site sent this";
    unsupported_parameter: BAD_REQUEST, "unsupported-parameter", "The server cannot do this";
    model_not_found: NOT_FOUND, "model-not-found", "There is no such model";
    not_found: NOT_FOUND, "not-found", "There is no such thing";
    unknown_call: NOT_FOUND, "unknown-call", "There is no such call";
    method_not_allowed: METHOD_NOT_ALLOWED, "method-not-allowed", "The path has no such method";
    busy: CONFLICT, "busy", "Another process or request changes the conversation";
    answered: CONFLICT, "answered", "The question was answered";
    token_made: CONFLICT, "token-made", "The token was made before";
    over: CONFLICT, "over", "The conversation is over";
    refused: CONFLICT, "refused", "The conversation does not allow this";
    other_body: UNPROCESSABLE_ENTITY, "idempotency-mismatch", "The key was used for another request";
    not_acceptable: NOT_ACCEPTABLE, "not-acceptable", "The client takes no form that the server has";
    timed_out: REQUEST_TIMEOUT, "timed-out", "The request took too long to arrive";
    too_large: PAYLOAD_TOO_LARGE, "too-large", "The body is too large";
    no_json: UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body must be JSON";
    wrong_host: MISDIRECTED_REQUEST, "wrong-host", "This server has another name";
    no_version: PRECONDITION_REQUIRED, "precondition-required", "The request must name a version";
    changed: PRECONDITION_FAILED, "changed", "Someone else has changed it";
    bad_team: UNPROCESSABLE_ENTITY, "bad-team", "The team file has errors";
    bad_log: UNPROCESSABLE_ENTITY, "bad-log", "The log cannot be imported";
    more_rights: FORBIDDEN, "more-rights", "The text would give the team more rights";
    imported: CONFLICT, "imported", "An imported conversation can only be read";
    budget_spent: TOO_MANY_REQUESTS, "budget-spent", "The budget of the token is spent";
    too_many: TOO_MANY_REQUESTS, "too-many-requests", "Too many requests";
    internal: INTERNAL_SERVER_ERROR, "internal", "The server failed";
    unavailable: SERVICE_UNAVAILABLE, "unavailable", "The server cannot do this now";
}

impl Problem {
    fn new(status: StatusCode, word: &'static str, title: &'static str, detail: String) -> Self {
        let details = Details {
            status,
            word,
            title,
            detail,
            hint: None,
            protocol_hint: None,
            errors: Vec::new(),
            problems: None,
            retry_after: None,
            allow: None,
        };
        Self(Box::new(details))
    }

    /// Sets what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Sets what clients of other protocols than the native API can do.
    fn protocol_hint(mut self, hint: &'static str) -> Self {
        self.0.protocol_hint = Some(hint);
        self
    }

    /// Adds a place in the body that is wrong, as a JSON pointer.
    pub(crate) fn at(mut self, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        self.0.errors.push((pointer.into(), message.into()));
        self
    }

    /// Sets the findings, as a check has them.
    pub(crate) fn with_problems(mut self, problems: Value) -> Self {
        self.0.problems = Some(problems);
        self
    }

    /// Sets the time after which the client can try again.
    pub(crate) fn retry_after(mut self, time: Duration) -> Self {
        self.0.retry_after = Some(time);
        self
    }

    /// Sets the methods that the path has.
    pub(crate) fn allow(mut self, methods: Option<HeaderValue>) -> Self {
        self.0.allow = methods;
        self
    }

    /// The response, in the form of the protocol.
    pub(crate) fn response(&self, form: ErrorForm, request_id: &str) -> Response<Body> {
        let (media, body) = match form {
            ErrorForm::Problem => (wire::MEDIA_TYPE, json!(self.document(request_id))),
            ErrorForm::OpenAi => ("application/json", self.openai_document()),
            ErrorForm::JsonRpc => ("application/json", self.json_rpc_document(request_id)),
        };
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.0.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        let is_spent = self.0.word == "budget-spent";
        if is_spent || form == ErrorForm::OpenAi && !self.is_temporary() {
            // Clients would try again after each error of the server, and each 429.
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if form == ErrorForm::JsonRpc && self.0.status == StatusCode::UNAUTHORIZED {
            // Without metadata of an authorization server, there is none to go to.
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(time) = self.0.retry_after {
            // Rounded up: who comes earlier is refused once more.
            let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        headers.extend(self.0.allow.clone().map(|methods| (ALLOW, methods)));
        response
    }

    /// Whether no valid token was sent.
    pub(crate) fn is_unauthorized(&self) -> bool {
        self.0.status == StatusCode::UNAUTHORIZED
    }

    /// Whether there is no such thing, or none that the caller may see.
    pub(crate) fn is_not_found(&self) -> bool {
        self.0.status == StatusCode::NOT_FOUND
    }

    /// Whether another process or request changes the conversation.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.word == "busy"
    }

    /// Whether a question was answered before.
    pub(crate) fn is_answered(&self) -> bool {
        self.0.word == "answered"
    }

    /// Whether the same request may succeed later.
    fn is_temporary(&self) -> bool {
        matches!(self.0.status.as_u16(), 408 | 409 | 429 | 503)
    }

    /// The field that is wrong, as a path with dots.
    pub(crate) fn param(&self) -> Option<String> {
        let (pointer, _) = self.0.errors.first()?;
        Some(pointer.trim_start_matches('/').replace('/', "."))
    }

    /// The hint in other protocols than the native API.
    fn hint_of_protocols(&self) -> Option<&str> {
        self.0.protocol_hint.or(self.0.hint.as_deref())
    }

    /// What is wrong and what to do, in one line, for other protocols than the native API.
    pub(crate) fn line(&self) -> String {
        match self.hint_of_protocols() {
            Some(hint) => format!("{self} (hint: {hint})"),
            None => self.to_string(),
        }
    }

    /// The document of the error as a message of JSON-RPC 2.0 that belongs to no request.
    fn json_rpc_document(&self, request_id: &str) -> Value {
        let Details { status, word, .. } = &*self.0;
        let hint = self.hint_of_protocols();
        let code = match (*word, status.as_u16()) {
            ("not-parsed", _) => -32700,
            (_, 400 | 413 | 415) => -32600,
            (_, 500) => -32603,
            _ => -32000,
        };
        let data = json!({"type": format!("/problems/{word}"), "hint": hint, "request_id": request_id});
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": self.line(), "data": data}})
    }

    /// The document of the error as OpenAI writes it.
    pub(crate) fn openai_document(&self) -> Value {
        let status = self.0.status;
        let kind = match status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            400..500 => "invalid_request_error",
            _ => "server_error",
        };
        json!({
            "error": {
                "message": self.line(),
                "type": kind,
                "param": self.param(),
                "code": self.0.word.replace('-', "_"),
            },
        })
    }

    fn document(&self, request_id: &str) -> wire::Problem {
        let Details { status, word, title, detail, hint, errors, problems, .. } = (*self.0).clone();
        let error = |(pointer, message)| wire::FieldError { pointer, message };
        wire::Problem {
            kind: wire::Problem::kind_of(word),
            title: title.to_owned(),
            status: status.as_u16(),
            detail,
            hint,
            request_id: request_id.to_owned(),
            errors: errors.into_iter().map(error).collect(),
            problems,
        }
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::BadName => Self::bad_request(error.to_string()).at("/name", "one line of text"),
            TokenError::NoScope => Self::bad_request(error.to_string()).at("/scopes", "empty"),
            TokenError::NoTeam => Self::bad_request(error.to_string())
                .at("/teams", "empty")
                .hint("leave `teams` out for all teams"),
            error if error.is_usage() => Self::bad_request(error.to_string()),
            error => {
                // The path is for the log of the server, not for clients.
                tracing::error!(%error, "tokens");
                Self::unavailable("the tokens of the server cannot be read or written")
                    .hint("the log of the server says why")
            }
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { .. } | StoreError::BadId { .. } => Self::unknown_conversation(),
            StoreError::Busy { holder, .. } => Self::busy(format!("{holder} has the conversation open"))
                .hint("reading it, messages, answers, `stop` and `pause` work meanwhile; try this again when that process has left it"),
            error => {
                tracing::error!(%error, "store");
                Self::unavailable("the store of conversations cannot be read or written")
                    .hint("the log of the server says why")
            }
        }
    }
}

impl Problem {
    /// There is no such team, or the token may not see it: a client cannot tell which.
    pub(crate) fn unknown_team(id: &str) -> Self {
        let id: String = id.chars().filter(|c| !c.is_control()).take(64).collect();
        Self::not_found(format!("there is no team `{id}`"))
            .hint("`GET /api/v1/teams` lists the teams")
            .protocol_hint("`tools/list` of `/mcp` lists the teams")
    }

    /// There is no such model, as the API of OpenAI calls a team, or the token may not see it.
    pub(crate) fn unknown_model(id: &str) -> Self {
        let id: String = id.chars().filter(|c| !c.is_control()).take(64).collect();
        Self::model_not_found(format!("there is no model `{id}`"))
            .at("/model", "unknown model")
            .hint("`GET /v1/models` lists the teams")
    }

    /// Names a model instead of a team, if the problem is that there is no such team.
    pub(crate) fn of_model(self, id: &str) -> Self {
        if self.0.status == StatusCode::NOT_FOUND { Self::unknown_model(id) } else { self }
    }

    /// Nothing begins any more.
    pub(crate) fn stopping() -> Self {
        Self::unavailable("the server is stopping").retry_after(Duration::from_secs(2))
    }

    /// What a conversation receives while it is paused has no reply before it is resumed: a client would wait until then.
    pub(crate) fn paused(id: &LogId) -> Self {
        Self::refused(format!("`{id}` is paused, and replies when it is resumed"))
            .hint(format!("resume it: `polylogue resume {id}`, or `POST /api/v1/conversations/{id}/resume`"))
    }

    /// The token may not answer questions, some of which are whether a call is allowed.
    pub(crate) fn may_not_answer() -> Self {
        Self::forbidden("the token does not have the scope `answer`")
            .hint("`polylogue token new --scope run,answer` makes one that has")
    }

    /// There is no such conversation, or it is another tenant's: a client cannot tell which.
    pub(crate) fn unknown_conversation() -> Self {
        Self::not_found("there is no such conversation")
            .hint("`GET /api/v1/conversations` lists them")
            .protocol_hint("use an id that an earlier reply had, or none to begin a conversation")
    }
}

impl From<polylogue_runtime::Error> for Problem {
    fn from(error: polylogue_runtime::Error) -> Self {
        match error {
            polylogue_runtime::Error::Run(polylogue_core::Error::Store(error)) => error.into(),
            error @ (polylogue_runtime::Error::BadFork { .. }
            | polylogue_runtime::Error::NotBegun { .. }
            | polylogue_runtime::Error::NoQuestion { .. }
            | polylogue_runtime::Error::FilesElsewhere { .. }
            | polylogue_runtime::Error::NotClosed { .. }) => {
                let problem = Self::refused(error.to_string());
                error.hint().into_iter().fold(problem, Self::hint)
            }
            error @ polylogue_runtime::Error::BadImport { .. } => {
                let problem = Self::bad_log(error.to_string());
                error.hint().into_iter().fold(problem, Self::hint)
            }
            error @ polylogue_runtime::Error::Imported { .. } => {
                let problem = Self::imported(error.to_string());
                error.hint().into_iter().fold(problem, Self::hint)
            }
            // What is missing is on the machine of the server, with paths that are not for clients.
            error @ (polylogue_runtime::Error::NoVolume(_)
            | polylogue_runtime::Error::NoProject(_)
            | polylogue_runtime::Error::NoSharedBudgets { .. }
            | polylogue_runtime::Error::UnknownBudget { .. }) => {
                tracing::error!(%error, "conversation");
                Self::unavailable("the server does not have what the conversation needs")
                    .hint("the log of the server says why")
            }
            error if error.is_usage() => {
                let problem = Self::bad_request(error.to_string());
                error.hint().into_iter().fold(problem, Self::hint)
            }
            error => {
                tracing::error!(%error, "conversation");
                Self::internal("the conversation cannot be continued").hint("the log of the server says why")
            }
        }
    }
}

impl From<Box<polylogue_runtime::Error>> for Problem {
    fn from(error: Box<polylogue_runtime::Error>) -> Self {
        (*error).into()
    }
}

impl From<SourceError> for Problem {
    fn from(error: SourceError) -> Self {
        let problem = match error.is_usage {
            true => Self::bad_request(error.what),
            false => Self::unavailable(error.what),
        };
        error.hint.into_iter().fold(problem, Self::hint)
    }
}

#[cfg(test)]
mod tests {
    use polylogue_runtime::Error;

    use super::*;

    #[test]
    fn what_the_server_lacks_is_not_the_fault_of_the_client() {
        let folder = || "/srv/files".into();
        for error in [
            Error::NoVolume(folder()),
            Error::NoProject(folder()),
            Error::NoSharedBudgets { place: "/srv/files/runs.db".into() },
            Error::UnknownBudget { name: "/srv/files".into() },
        ] {
            let what = format!("{error:?}");
            let problem = Problem::from(error);
            assert_eq!(problem.0.status, StatusCode::SERVICE_UNAVAILABLE, "{what}");
            assert!(!problem.line().contains("/srv/files"), "{what}: {}", problem.line());
        }
    }

    #[test]
    fn clients_are_asked_to_wait_long_enough() {
        for (millis, seconds) in [(0, "1"), (400, "1"), (1000, "1"), (1001, "2"), (1900, "2")] {
            let problem = Problem::stopping().retry_after(Duration::from_millis(millis));
            let response = problem.response(ErrorForm::Problem, "r1");
            assert_eq!(response.headers()[RETRY_AFTER], seconds, "{millis} ms");
        }
    }
}
