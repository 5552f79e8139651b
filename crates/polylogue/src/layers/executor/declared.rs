//! Tools declared as functions.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use polylogue_core::{Outcome, Tool, ToolCx, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::private::{outcome, read, schema};

/// A tool that is a function of one struct: the fields are the arguments.
///
/// The schema is made of the struct: names and types of the fields, their documentation as descriptions, their defaults; a
/// field without a default that is no `Option` is required. A function of `()` takes no arguments, one of a
/// [`serde_json::Value`] any. What the function returns is the outcome: a text as it is, nothing as no text, and anything
/// else as JSON.
///
/// A function that holds something of its own is a closure with an `async` block:
/// `move |args: Args| { let shared = shared.clone(); async move { .. } }`.
///
/// ```
/// use polylogue::executor::Declared;
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Exchange {
///     /// The amount in euros
///     amount: f64,
///     /// The other currency
///     #[serde(default = "dollars")]
///     to: String,
/// }
/// fn dollars() -> String {
///     "USD".into()
/// }
///
/// let tool = Declared::new("exchange", "Converts money.", async |args: Exchange| {
///     if args.to == "USD" { Ok(args.amount * 1.1) } else { Err(format!("There is no rate for {}.", args.to).into()) }
/// });
/// ```
pub struct Declared<F, A> {
    spec: ToolSpec,
    function: F,
    args: PhantomData<fn(A)>,
}

impl<F, A: JsonSchema> Declared<F, A> {
    /// The tool `name`, which runs `function`. `description` is what a model is told of it.
    pub fn new<Fut, R>(name: &str, description: &str, function: F) -> Self
    where
        F: Fn(A) -> Fut,
        Fut: Future<Output = Result<R, ToolError>>,
    {
        Self { spec: ToolSpec::new(name, description, schema::<A>()), function, args: PhantomData }
    }

    /// The same tool, whose calls may be made again; see [`ToolSpec::repeatable`].
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { spec: self.spec.repeatable(), ..self }
    }
}

impl<F, A, R, Fut> Tool for Declared<F, A>
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send,
    A: DeserializeOwned + Send + 'static,
    R: Serialize,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<Outcome, ToolError> {
        outcome(&self.spec, (self.function)(read(&self.spec, args)?).await?)
    }
}

impl<F, A> fmt::Debug for Declared<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared").field("spec", &self.spec).finish_non_exhaustive()
    }
}
