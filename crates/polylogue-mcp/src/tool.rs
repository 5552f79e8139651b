//! A tool of a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::schema::well_formed;
use polylogue_core::{Name, Path, ResourceKey, Tool, ToolCx, ToolError, ToolResult, ToolSpec, text};
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
    /// The schema of its arguments that is in the definition for models.
    schema: Arc<JsonObject>,
    /// The [`Notices`] of a conversation.
    notices: ResourceKey,
}

/// The latest other schema that each agent of a conversation received.
type Notices = Mutex<BTreeMap<(Path, Name), Notice>>;

/// A schema that an agent received instead of the result of a call.
struct Notice {
    schema: Arc<JsonObject>,
    /// The event after which the call was made: parallel calls have the same, and were written before the schema was received.
    after: Option<u64>,
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
        let (name, schema) = (listed.name.to_string(), Arc::clone(&listed.input_schema));
        Self { spec, server, name, schema, notices: ResourceKey::new() }
    }

    /// Whether the arguments of this call were written for the schema `now`. If not, the agent receives the schema.
    fn is_known(&self, now: &Arc<JsonObject>, cx: &ToolCx<'_>) -> bool {
        let notices = cx.resources.of(&self.notices, Notices::default);
        let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
        let after = cx.turn.last().or_else(|| cx.transcript.events().last()).map(|event| event.seq);
        let agent = (cx.chat.clone(), cx.who.clone());
        match notices.get(&agent) {
            Some(notice) if notice.schema == *now => notice.after != after,
            None if self.schema == *now => true,
            _ => {
                notices.insert(agent, Notice { schema: Arc::clone(now), after });
                false
            }
        }
    }
}

impl Tool for Remote {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let args = match args {
            Value::Object(args) => args,
            Value::Null => JsonObject::new(),
            _ => return Err("the arguments must be a JSON object".into()),
        };
        Ok(self.server.call(&self.name, |now| self.is_known(now, cx), args).await)
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
