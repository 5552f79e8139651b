//! Structured replies: which fields they have, and which values these can have.

use std::collections::BTreeSet;

use polylogue_core::Name;
use polylogue_core::text::of_json;
use serde_json::{Map, Value as Json};

use crate::agent::Agent;
use crate::condition::{FieldLimit, ReadField, is_equal};
use crate::json_schema::{has_variable, is_of};
use crate::outline::Outline;
use crate::suggest;
use crate::team::Team;

type Schema = Map<String, Json>;

/// Keywords that say more about a value than is read here.
const FURTHER: [&str; 8] = [
    "$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas", "unevaluatedProperties",
];

/// Keywords that limit numbers.
const LIMITS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// The structured values that a message can have, as far as schemas say.
#[derive(Default)]
pub(super) struct Replies<'t> {
    schemas: Vec<&'t Schema>,
    /// Whether there can be others, of any form.
    is_open: bool,
    /// The only participant that writes them, if it is one.
    who: Option<&'t Name>,
}

impl<'t> Replies<'t> {
    /// Those of all agents and tasks of a team.
    pub(super) fn of_team(team: &'t Team, outline: &Outline<'t>) -> Self {
        let mut all = Self { is_open: !team.teams.is_empty(), ..Self::default() };
        for own in outline.agents().map(Self::of_agent) {
            all.schemas.extend(own.schemas);
            all.is_open |= own.is_open;
        }
        let tasks = team.checked_chats().flat_map(|(_, chat)| chat.pattern.part().tasks());
        all.schemas.extend(tasks.filter_map(|task| task.output_schema.as_ref()).map(|schema| &schema.0));
        all
    }

    /// Those of one agent.
    pub(super) fn of_agent(agent: &'t Agent) -> Self {
        let Some(keys) = agent.model() else {
            return Self { is_open: agent.runs_output_blocks.is_some(), ..Self::default() };
        };
        let own = keys.output_schema.iter().map(|schema| &schema.0);
        let of_provider = keys.parameters.schema.iter().map(|schema| &schema.value.0);
        Self {
            schemas: own.chain(of_provider).collect(),
            is_open: !keys.output_blocks.is_empty() || agent.runs_output_blocks.is_some(),
            who: Some(&agent.name.value),
        }
    }

    /// Whether one that satisfies a schema may have the field `name`.
    pub(super) fn may_have(&self, name: &str) -> bool {
        self.schemas.iter().any(|schema| schema_at(schema, &[name]).is_ok())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.schemas.is_empty() && !self.is_open
    }

    /// Why a condition on `field` cannot hold, and what to do: no reply has it, or it never has the value with which it is compared.
    pub(super) fn mistake(&self, field: &ReadField<'_>) -> Option<(String, String)> {
        if self.is_open || self.schemas.is_empty() {
            return None;
        }
        let (mut found, mut missing, mut known) = (Vec::new(), None, BTreeSet::new());
        for schema in &self.schemas {
            match schema_at(schema, &field.path) {
                Ok(of) => found.push(of?),
                Err((name, within)) => {
                    missing = Some(name);
                    known.extend(properties(within).into_iter().flatten().map(|(name, _)| name.as_str()));
                }
            }
        }
        if let (true, Some(name)) = (found.is_empty(), missing) {
            let hint = match known.is_empty() {
                true => "its schema describes no fields there".to_owned(),
                false => suggest::hint(name, known.iter().copied()),
            };
            return Some((format!("no {} has the field `{name}`", self.noun()), hint));
        }
        let path: String = field.path.iter().map(|name| format!(".{name}")).collect();
        let limit = field.limit.filter(|limit| !found.iter().any(|schema| reaches(schema, *limit)));
        if let Some(limit) = limit {
            let message = format!("`last.value{path}` is never {limit} in a {}", self.noun());
            return Some((message, possible(&found, "")));
        }
        let value =
            field.equals.as_ref().filter(|value| !found.iter().any(|schema| allows(schema, value)))?;
        let text = of_json(value);
        let message = format!("`last.value{path}` is never `{text}` in a {}", self.noun());
        Some((message, possible(&found, &text)))
    }

    fn noun(&self) -> String {
        self.who.map_or_else(|| "structured reply".to_owned(), |who| format!("reply of `{who}`"))
    }
}

/// What a value of one of `schemas` can be, as a hint to one who writes `text`, which can be empty.
fn possible(schemas: &[&Schema], text: &str) -> String {
    let listed = schemas.iter().filter_map(|schema| schema.get("enum")?.as_array()).flatten();
    let only = schemas.iter().filter_map(|schema| schema.get("const"));
    let values: BTreeSet<String> = listed.chain(only).map(of_json).collect();
    if !values.is_empty() {
        return suggest::hint(text, values.iter().map(String::as_str));
    }
    let types: BTreeSet<&str> = schemas.iter().flat_map(|schema| types_of(schema)).collect();
    let limits = schemas.iter().flat_map(|schema| {
        LIMITS.into_iter().filter_map(move |key| Some(format!("{key}: {}", schema.get(key)?.as_f64()?)))
    });
    let limits: BTreeSet<String> = limits.collect();
    match (types.is_empty(), limits.is_empty()) {
        (true, _) => format!("its schema has {}", suggest::listed(limits.iter().map(String::as_str))),
        (false, true) => format!("its type is {}", suggest::listed(types)),
        (false, false) => {
            let limits = suggest::listed(limits.iter().map(String::as_str));
            format!("its type is {}, with {limits}", suggest::listed(types))
        }
    }
}

/// The schema of what is at `path` in a value of `schema`; `None` if that can be anything. If no value has the field: its name, and the
/// schema that does not have it.
fn schema_at<'s, 'p>(
    schema: &'s Schema,
    path: &[&'p str],
) -> Result<Option<&'s Schema>, (&'p str, &'s Schema)> {
    let mut at = schema;
    for name in path {
        let own = properties(at).and_then(|all| all.get(*name));
        at = match own {
            Some(Json::Object(within)) => within,
            None if lacks_others(at) => return Err((*name, at)),
            _ => return Ok(None),
        };
    }
    Ok(Some(at))
}

fn properties(schema: &Schema) -> Option<&Schema> {
    schema.get("properties")?.as_object()
}

/// Whether values of `schema` have no fields but its properties. A model that is asked for some writes no others.
fn lacks_others(schema: &Schema) -> bool {
    let types = types_of(schema);
    let is_described = properties(schema).is_some_and(|all| !all.is_empty());
    let is_closed = match schema.get("additionalProperties") {
        Some(others) => *others == Json::Bool(false),
        None => is_described,
    };
    !has_further(schema) && (is_closed || !types.is_empty() && !types.contains(&"object"))
}

fn has_further(schema: &Schema) -> bool {
    FURTHER.iter().any(|keyword| schema.contains_key(*keyword))
}

fn types_of(schema: &Schema) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(only)) => vec![only],
        Some(Json::Array(all)) => all.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether `value` may satisfy `schema`.
fn allows(schema: &Schema, value: &Json) -> bool {
    let types = types_of(schema);
    let is_it = |other: &Json| is_equal(other, value) || has_variable(other);
    has_further(schema)
        || (types.is_empty() || types.iter().any(|of| is_of(value, of)))
            && schema.get("enum").and_then(Json::as_array).is_none_or(|all| all.iter().any(is_it))
            && schema.get("const").is_none_or(is_it)
            && value.as_f64().is_none_or(|number| LIMITS.iter().all(|key| is_within(schema, key, number)))
}

/// Whether a number of `schema` may be on a side of another one.
fn reaches(schema: &Schema, limit: FieldLimit) -> bool {
    let types = types_of(schema);
    let is_number = |of: &&str| matches!(*of, "number" | "integer");
    let is_it = |value: &Json| has_variable(value) || value.as_f64().is_some_and(|value| limit.allows(value));
    let keys = if limit.is_above { ["maximum", "exclusiveMaximum"] } else { ["minimum", "exclusiveMinimum"] };
    let [end, open_end] = keys.map(|key| schema.get(key).and_then(Json::as_f64));
    let inner = FieldLimit { includes: false, ..limit };
    has_further(schema)
        || (types.is_empty() || types.iter().any(is_number))
            && schema.get("enum").and_then(Json::as_array).is_none_or(|all| all.iter().any(is_it))
            && schema.get("const").is_none_or(is_it)
            && end.is_none_or(|end| limit.allows(end))
            && open_end.is_none_or(|end| inner.allows(end))
}

/// Whether `number` satisfies the keyword `key` of `schema`, which is one of [`LIMITS`].
fn is_within(schema: &Schema, key: &str, number: f64) -> bool {
    let Some(limit) = schema.get(key).and_then(Json::as_f64) else { return true };
    match key {
        "minimum" => number >= limit,
        "maximum" => number <= limit,
        "exclusiveMinimum" => number > limit,
        _ => number < limit,
    }
}
