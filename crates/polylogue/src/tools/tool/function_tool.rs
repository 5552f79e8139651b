//! Tools from closures.

use std::marker::PhantomData;

use polylogue_core::{Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::private::{outcome, read, schema};

/// A tool from a closure, or a function, with one struct parameter, whose fields are the arguments. For a function of your own
/// the attribute [`#[tool]`](macro@crate::tool) is shorter.
///
/// The schema is derived from the struct: names and types of the fields, doc comments as descriptions, defaults; a
/// field is required unless it has a default or is an `Option`. A function of `()` takes no arguments, one of a
/// [`serde_json::Value`] any. The return value is the result: a text unchanged, `()` as no output, anything else as
/// JSON.
///
/// A function with state is a closure with an `async` block:
/// `move |args: Args| { let shared = shared.clone(); async move { .. } }`.
///
/// ```
/// use polylogue::tools::FunctionTool;
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
/// let tool = FunctionTool::new("exchange", "Converts money.", async |args: Exchange| {
///     if args.to == "USD" { Ok(args.amount * 1.1) } else { Err(format!("There is no rate for {}.", args.to).into()) }
/// });
/// ```
#[derive(derive_more::Debug)]
pub struct FunctionTool<F, A> {
    spec: ToolSpec,
    #[debug(skip)]
    function: F,
    #[debug(skip)]
    args: PhantomData<fn(A)>,
}

impl<F, A: JsonSchema> FunctionTool<F, A> {
    /// Creates the tool `name`, which runs `function`. Models read `description`.
    pub fn new<Fut, R>(name: &str, description: &str, function: F) -> Self
    where
        F: Fn(A) -> Fut,
        Fut: Future<Output = Result<R, ToolError>>,
    {
        Self { spec: ToolSpec::new(name, description, schema::<A>()), function, args: PhantomData }
    }

    /// Declares that calls can be repeated; see [`ToolSpec::repeatable`].
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { spec: self.spec.repeatable(), ..self }
    }
}

impl<F, A, R, Fut> Tool for FunctionTool<F, A>
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ToolError>> + Send,
    A: DeserializeOwned + Send + 'static,
    R: Serialize,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        outcome(&self.spec, (self.function)(read(&self.spec, args)?).await?)
    }
}
