//! Teams as tools: what a call takes, and what it returns.

use std::collections::BTreeMap;

use polylogue_config::suggest;
use polylogue_core::ToolSpec;
use polylogue_mcp::serve::ServedTool;
use polylogue_runtime::Prepared;
use polylogue_team::Team;
use serde_json::{Map, Value, json};

use super::result::output_schema;
use crate::problem::Problem;

/// The argument that is the task, or the next message.
const MESSAGE: &str = "message";
/// The argument that names the conversation to continue.
const CONVERSATION: &str = "conversation";

/// The team as a tool, named by its id.
pub(super) fn tool(id: &str, prepared: &Prepared) -> ServedTool {
    let team = prepared.team();
    let about = match team.description.as_str() {
        "" => format!("The team `{}`: agents who work on a task by talking with one another.", team.name),
        about => about.to_owned(),
    };
    ServedTool { spec: ToolSpec::new(id, about, input_schema(team)), output: Some(output_schema()) }
}

fn input_schema(team: &Team) -> Value {
    let about = "What the team is to do; with `conversation`, the next message or the answer";
    let about = match &team.task {
        Some(task) => format!("{about}. Default: {task}"),
        None => about.to_owned(),
    };
    let id = "The conversation to continue, from an earlier result. Default: a new one";
    let mut properties = Map::new();
    properties.insert(MESSAGE.into(), json!({"type": "string", "description": about}));
    properties.insert(CONVERSATION.into(), json!({"type": "string", "description": id}));
    for (name, value) in variables(team) {
        let about = format!("{{{{{name}}}}} in the texts of the team");
        properties.insert(name.to_owned(), json!({"type": "string", "default": value, "description": about}));
    }
    let required: &[&str] = if team.task.is_some() { &[] } else { &[MESSAGE] };
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// The variables that are arguments, with their values: those with other names than the arguments of all tools.
fn variables(team: &Team) -> impl Iterator<Item = (&str, &str)> + Clone {
    let all = team.vars.iter().map(|(name, variable)| (name.as_str(), variable.value.as_str()));
    all.filter(|(name, _)| ![MESSAGE, CONVERSATION].contains(name))
}

/// What a call asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) message: Option<String>,
    pub(super) conversation: Option<String>,
    pub(super) inputs: BTreeMap<String, String>,
}

impl Arguments {
    /// Those of a call of `team`.
    pub(super) fn of(team: &Team, args: Map<String, Value>) -> Result<Self, Problem> {
        let mut arguments = Self::default();
        let known = || variables(team).map(|(name, _)| name).chain([MESSAGE, CONVERSATION]);
        // Some hosts send what is left out.
        for (name, value) in args.into_iter().filter(|(_, value)| !value.is_null()) {
            if !known().any(|known| known == name) {
                let hint = suggest::hint(&name, known());
                return Err(Problem::bad_request(format!("there is no argument `{name}`")).hint(hint));
            }
            let Value::String(text) = value else {
                return Err(Problem::bad_request(format!("`{name}` must be a string")));
            };
            match name.as_str() {
                MESSAGE => arguments.message = Some(text),
                CONVERSATION => arguments.conversation = Some(text),
                _ => drop(arguments.inputs.insert(name, text)),
            }
        }
        match arguments.conversation.is_some() && !arguments.inputs.is_empty() {
            true => Err(Problem::bad_request("a conversation that has begun keeps its variables")
                .hint("send `message` and `conversation` only, or begin a new conversation")),
            false => Ok(arguments),
        }
    }
}

/// Identifies a call by its tool and its arguments.
pub(super) fn digest(tool: &str, args: &Map<String, Value>) -> blake3::Hash {
    let mut sorted: Vec<(&String, &Value)> = args.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    blake3::hash(json!([tool, sorted]).to_string().as_bytes())
}
