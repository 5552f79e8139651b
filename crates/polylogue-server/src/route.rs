//! Routes: everything that the server knows of one.

use axum::http::Method;
use futures_util::future::BoxFuture;
use polylogue_wire::Scope;
use serde_json::Value;

use crate::call::{Call, Reply};
use crate::problem::ErrorForm;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::From)]
pub(crate) enum Access {
    /// Everyone, without a token.
    Open,
    /// Tokens with this scope.
    #[from]
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
    /// Whether its body may have fields that the schema has not. Its handler checks those that it reads.
    pub(crate) takes_unknown_fields: bool,
    /// Whether its body may be as large as a file.
    pub(crate) is_large: bool,
    /// Whether its handler is completed when its client goes away.
    pub(crate) is_completed: bool,
    /// Whether `/openapi.json` has it.
    pub(crate) is_documented: bool,
    /// What it does, in one line.
    pub(crate) about: &'static str,
    pub(crate) handler: Box<dyn Fn(Call) -> BoxFuture<'static, Reply> + Send + Sync>,
}

impl Route {
    /// A route without a query and a body. What changes something is completed.
    pub(crate) fn new<F: Future<Output = Reply> + Send + 'static>(
        method: Method,
        path: &'static str,
        access: impl Into<Access>,
        about: &'static str,
        handler: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> Self {
        Self {
            is_completed: method != Method::GET,
            method,
            path,
            access: access.into(),
            form: ErrorForm::Problem,
            query: &[],
            body: None,
            takes_unknown_fields: false,
            is_large: false,
            is_documented: true,
            about,
            handler: Box::new(move |call| -> BoxFuture<'static, Reply> { Box::pin(handler(call)) }),
        }
    }

    /// Sets what it does, in one line.
    pub(crate) fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// Leaves it out of the documentation: it is for the page, and not for other clients.
    pub(crate) fn undocumented(self) -> Self {
        Self { is_documented: false, ..self }
    }

    /// Sets the parameters of its query.
    pub(crate) fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// Takes unknown fields: clients of another protocol send some that are newer than this program.
    pub(crate) fn with_unknown_fields(self) -> Self {
        Self { takes_unknown_fields: true, ..self }
    }

    /// Drops its handler when the client has gone away: the handler notices that itself.
    pub(crate) fn not_completed(self) -> Self {
        Self { is_completed: false, ..self }
    }

    /// Completes its handler also when the client has gone away: it holds something that it must give up at its end, though it changes nothing.
    pub(crate) fn completed(self) -> Self {
        Self { is_completed: true, ..self }
    }

    /// Takes a body as large as a file.
    pub(crate) fn large(self) -> Self {
        Self { is_large: true, ..self }
    }

    /// Sets the form of its errors.
    pub(crate) fn form(self, form: ErrorForm) -> Self {
        Self { form, ..self }
    }

    /// Sets the schema of its body.
    pub(crate) fn body(self, schema: fn() -> Value) -> Self {
        Self { body: Some(schema), ..self }
    }
}

/// A route for each method, of which [`about`](Route::about) says what it does.
macro_rules! methods {
    ($($name:ident: $method:ident;)*) => {
        impl Route {
            $(
                pub(crate) fn $name<F: Future<Output = Reply> + Send + 'static>(
                    path: &'static str,
                    access: impl Into<Access>,
                    handler: impl Fn(Call) -> F + Send + Sync + 'static,
                ) -> Self {
                    Self::new(Method::$method, path, access, "", handler)
                }
            )*
        }
    };
}

methods! { get: GET; post: POST; put: PUT; patch: PATCH; delete: DELETE; }
