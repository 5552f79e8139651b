//! Probes the capabilities of a model with short requests.

use polylogue_core::{
    Capability, EncodeCache, Entry, FinishReason, ModelError, ModelErrorKind, Name, Origin, Params, Path,
    Reply, Request, ToolSpec, Usage,
};
use serde_json::{Value, json};

use super::EndpointModel;
use crate::protocols::with_protocol;
use crate::unsupported::shown;
use crate::written_calls::written_call_hint;

/// Enough tokens for each request, even for a reasoning model.
const MAX_TOKENS: u32 = 1000;

/// The result of a probe for one capability.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Probed {
    /// The capability.
    pub capability: Capability,
    /// Whether the model has it; `None` if the probe was inconclusive.
    pub has: Option<bool>,
    /// Why the model does not have it, or why the probe was inconclusive; empty if it has.
    pub why: String,
    /// Usage of the probe.
    pub usage: Usage,
}

impl EndpointModel {
    /// Probes the model with three short requests, and stores the results in [`Config::known`](crate::Config::known).
    /// They use a few hundred tokens in all; known capabilities are probed again. Vision is not probed.
    ///
    /// # Errors
    /// When no request is possible: the server does not answer, or the key is wrong.
    pub async fn probe(&self) -> Result<Vec<Probed>, ModelError> {
        let mut all = Vec::new();
        for capability in [Capability::Tools, Capability::Schema, Capability::Json, Capability::Vision] {
            if let Some(question) = Question::of(capability) {
                all.push(self.probe_for(capability, &question).await?);
            }
        }
        Ok(all)
    }

    async fn probe_for(&self, capability: Capability, question: &Question) -> Result<Probed, ModelError> {
        let (at, who, wire) = (Path::root(), Name::user(), EncodeCache::default());
        let request = Request {
            origin: Origin::new(&at, &who, 0),
            system: None,
            entries: &question.entries,
            tools: &question.tools,
            params: &question.params,
            encoded: &wire,
            reserved: None,
        };
        let context = self.endpoint.context(&self.name);
        let asked = with_protocol!(self.api, P => {
            self.check::<P>(&request, &context)?;
            self.send::<P>(&request, &mut ()).await
        });
        let reply = match asked {
            Ok(reply) => reply,
            Err(error) => return refused(capability, error),
        };
        let has = shown(&request, &reply).any(|shown| shown == capability);
        let probed = judged(&self.name, capability, has, &reply);
        match probed.has {
            Some(true) => {
                self.logged.forget(&self.name, capability);
                self.endpoint.unsupported().forget(&self.name, capability);
            }
            Some(false) => self.note(capability, Some(&probed.why)),
            None => {}
        }
        Ok(probed)
    }
}

/// The result of a refused probe for `capability`.
fn refused(capability: Capability, error: ModelError) -> Result<Probed, ModelError> {
    let has = match error.kind {
        ModelErrorKind::Unsupported(_) => Some(false),
        // The request failed for an unknown reason.
        _ if matches!(error.status, Some(400 | 422)) => None,
        ModelErrorKind::InvalidReply => None,
        _ => return Err(error),
    };
    Ok(Probed { capability, has, why: error.message, usage: Usage::default() })
}

fn judged(model: &str, capability: Capability, has: bool, reply: &Reply) -> Probed {
    let why = match (has, &reply.finish, capability) {
        (true, ..) => "",
        (false, FinishReason::Length, _) => "its reply met the limit on tokens",
        (_, _, Capability::Tools) => "it did not call the tool that it was told to call",
        (_, _, Capability::Schema) => "it did not keep to the schema that it was given",
        (_, _, Capability::Json) => "it wrote more than JSON, or none",
        (_, _, Capability::Vision) => "it did not see the picture",
        (_, _, Capability::SystemRole | Capability::NullContent | Capability::UserAfterTool) => {
            "it is not asked for"
        }
    };
    let known = has || reply.finish != FinishReason::Length;
    let is_uncalled = known && !has && capability == Capability::Tools;
    let written = is_uncalled.then(|| written_call_hint(model, &reply.text())).flatten();
    let why = match written {
        Some(hint) => format!("it wrote the call as text: {hint}"),
        None => why.to_owned(),
    };
    Probed { capability, has: known.then_some(has), why, usage: reply.usage }
}

/// A request that shows whether a model has a capability.
struct Question {
    entries: Vec<Entry>,
    tools: Vec<ToolSpec>,
    params: Params,
}

impl Question {
    /// Vision cannot be probed by a short request: servers silently drop pictures.
    fn of(capability: Capability) -> Option<Self> {
        let params = Params { max_tokens: Some(MAX_TOKENS), ..Params::default() };
        let ask = |text: &str| vec![Entry::user(text)];
        Some(match capability {
            Capability::Tools => Self {
                entries: ask("Call the tool `note` with the word `ready`."),
                tools: vec![ToolSpec::new("note", "Writes a word down.", form("word"))],
                params,
            },
            // Only a model that follows the schema would use this field name.
            Capability::Schema => Self {
                entries: ask("Which color has fresh grass? Answer in JSON."),
                tools: Vec::new(),
                params: Params { schema: Some(form("shade_of_grass")), ..params },
            },
            Capability::Json => Self {
                entries: ask("Which color has fresh grass? Answer with a JSON object."),
                tools: Vec::new(),
                params: Params { json: true, ..params },
            },
            Capability::Vision
            | Capability::SystemRole
            | Capability::NullContent
            | Capability::UserAfterTool => return None,
        })
    }
}

/// A closed object schema with one string.
fn form(field: &str) -> Value {
    json!({
        "type": "object", "properties": {field: {"type": "string"}}, "required": [field],
        "additionalProperties": false,
    })
}
