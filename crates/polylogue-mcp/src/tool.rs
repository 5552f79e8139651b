//! A tool of a server.

use std::sync::{Arc, Mutex};

use polylogue_core::schema::well_formed;
use polylogue_core::{Tool, ToolCx, ToolError, ToolResult, ToolSpec, text};
use rmcp::model::{JsonObject, Tool as Listed};
use serde_json::{Value, json};

use crate::outcome::{MAX_COST, dollars};
use crate::server::Server;

/// Maximum length of a description for models. Every request carries it.
const ABOUT_BYTES: usize = 8 * 1024;

/// A tool of a server, under a name that models accept.
pub(crate) struct Remote {
    spec: ToolSpec,
    server: Arc<Server>,
    /// Its name for the server.
    name: String,
    schema: Mutex<Arc<JsonObject>>,
}

impl Remote {
    pub(crate) fn new(name: String, server: Arc<Server>, listed: &Listed) -> Self {
        // Providers refuse tools whose schemas are not well formed, or whose arguments are not an object.
        let mut parameters = well_formed(&Value::Object((*listed.input_schema).clone()));
        if let Some(keywords) = parameters.as_object_mut() {
            keywords.insert("type".into(), json!("object"));
        }
        let mut spec = ToolSpec::new(name, about(listed), parameters);
        spec.repeatable = is_repeatable(listed);
        spec.max_cost = listed.meta.as_ref().and_then(|meta| dollars(meta.get(MAX_COST)?));
        let schema = Mutex::new(Arc::clone(&listed.input_schema));
        Self { spec, server, name: listed.name.to_string(), schema }
    }
}

impl Tool for Remote {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let args = match args {
            Value::Object(args) => args,
            Value::Null => JsonObject::new(),
            _ => return Err("the arguments must be a JSON object".into()),
        };
        Ok(self.server.call(&self.name, &self.schema, args).await)
    }
}

/// Its description for models. Default: its title or name.
fn about(listed: &Listed) -> String {
    let about = listed.description.as_deref().filter(|about| !about.trim().is_empty());
    let about = about.or(listed.title.as_deref()).unwrap_or(&listed.name);
    text::head(about, ABOUT_BYTES).to_owned()
}

/// Whether it declares that calls can be repeated.
fn is_repeatable(listed: &Listed) -> bool {
    listed.annotations.as_ref().is_some_and(|hints| {
        hints.read_only_hint.unwrap_or_default() || hints.idempotent_hint.unwrap_or_default()
    })
}
