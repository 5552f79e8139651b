//! Routes: everything that the server knows of one.

use axum::http::Method;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::call::{Call, Reply};
use crate::problem::ErrorForm;
use crate::scope::Scope;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone, without a token.
    Open,
    /// Tokens with this scope.
    Scope(Scope),
}

/// A route: everything that the server knows of it.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// With the names of its variable parts in braces. It is also the label in log lines.
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) form: ErrorForm,
    /// The parameters of its query.
    pub(crate) query: &'static [&'static str],
    /// The JSON Schema of its body. `None`: it takes none.
    pub(crate) body: Option<fn() -> Value>,
    /// Whether `/openapi.json` has it.
    pub(crate) is_documented: bool,
    /// What it does, in one line.
    pub(crate) about: &'static str,
    pub(crate) handler: fn(Call) -> BoxFuture<'static, Reply>,
}

impl Route {
    /// A route without a query and a body.
    pub(crate) fn new(
        method: Method,
        path: &'static str,
        access: Access,
        about: &'static str,
        handler: fn(Call) -> BoxFuture<'static, Reply>,
    ) -> Self {
        let (form, is_documented) = (ErrorForm::Problem, true);
        Self { method, path, access, form, query: &[], body: None, is_documented, about, handler }
    }

    /// The same, which is for the page and not for other clients.
    pub(crate) fn undocumented(self) -> Self {
        Self { is_documented: false, ..self }
    }

    /// The same with these parameters of its query.
    pub(crate) fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// The same with errors in another form.
    pub(crate) fn form(self, form: ErrorForm) -> Self {
        Self { form, ..self }
    }

    /// The same with a body.
    pub(crate) fn body(self, schema: fn() -> Value) -> Self {
        Self { body: Some(schema), ..self }
    }
}
