//! A memory with its scope, and its tools.

use polylogue_core::{AnyTool, Timestamp, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::{Value, json};

use polylogue_memory::{AnyMemory, Memory as _, Note, Query, Scope, Source};

use super::words;

/// A memory that outlives conversations, with its scope. Clones share the memory.
#[derive(Debug, Clone)]
pub struct LongTermMemory {
    pub(super) memory: AnyMemory,
    pub(super) scope: Scope,
}

impl LongTermMemory {
    /// Default number of facts to recall.
    pub const DEFAULT_FACTS: usize = 5;

    /// Creates a memory of the facts of `scope` in `memory`.
    pub const fn new(memory: AnyMemory, scope: Scope) -> Self {
        Self { memory, scope }
    }

    /// Returns the scope of the facts.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }
}

impl LongTermMemory {
    /// Returns the tools `remember`, `recall` and `forget`. All are repeatable: remembering or forgetting twice has no further
    /// effect. Calls in one message run in parallel; `Queue` of `polylogue-tools` runs them one after the other.
    pub fn tools(&self) -> Vec<AnyTool> {
        vec![AnyTool::new(Remember::of(self)), AnyTool::new(Recall::of(self)), AnyTool::new(Forget::of(self))]
    }

    /// Marks `outcome`, which has facts, as text from outside: agents wrote them, and may have read such text before.
    pub(super) fn mark(&self, outcome: ToolResult) -> ToolResult {
        outcome.from_outside(format!("the memory `{}`", self.scope))
    }
}

fn spec(name: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSpec {
    let parameters = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    ToolSpec::new(name, description, parameters).repeatable()
}

/// A string argument.
fn text<'a>(args: &'a Value, name: &str) -> Result<&'a str, ToolError> {
    let text = args.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    text.ok_or_else(|| format!("`{name}` must be a text that is not empty").into())
}

/// The time and the source of a call: from the turn and its earlier events, so that they are the same when the turn is
/// resumed.
fn origin(cx: &ToolCx<'_>) -> (Timestamp, Source) {
    let last = cx.turn.last().or_else(|| cx.transcript.events().last());
    let time = last.map_or(Timestamp(0), |event| event.time);
    let (turn, before) = (cx.transcript.turns_begun_by(cx.who), cx.turn.len());
    let call = format!("{}:{}:{turn}:{before}:{}", cx.chat, cx.who, cx.id);
    (time, Source { conversation: cx.log.clone(), call })
}

/// The tool `remember`.
#[derive(Debug)]
pub(super) struct Remember(LongTermMemory, ToolSpec);

impl Remember {
    pub(super) fn of(memory: &LongTermMemory) -> Self {
        let about = "Writes down a fact for later conversations. Write a whole sentence that is understood \
                     without this conversation, and one fact at a time.";
        let properties = json!({"text": {"type": "string", "description": "The fact"}});
        Self(memory.clone(), spec("remember", about, &properties, &["text"]))
    }
}

impl Tool for Remember {
    fn spec(&self) -> &ToolSpec {
        &self.1
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let (time, source) = origin(cx);
        let (scope, text) = (self.0.scope.clone(), text(&args, "text")?.to_owned());
        let note = Note { scope, text, by: cx.who.clone(), time, source };
        let fact = self.0.memory.remember(&note).await.map_err(|error| error.to_string())?;
        Ok(ToolResult::done(format!("Remembered as #{}.", fact.id)))
    }
}

/// The tool `recall`.
#[derive(Debug)]
pub(super) struct Recall(LongTermMemory, ToolSpec);

impl Recall {
    pub(super) fn of(memory: &LongTermMemory) -> Self {
        let about = "Finds what was written down in earlier conversations, best match first.";
        let properties = json!({
            "query": {"type": "string", "description": "What is looked for, in words"},
            "limit": {
                "type": "integer", "minimum": 1, "maximum": Query::MAX_LIMIT,
                "description": "How many facts at most",
            },
        });
        Self(memory.clone(), spec(RECALL, about, &properties, &["query"]))
    }
}

/// The name of the tool with which a model searches.
pub(super) const RECALL: &str = "recall";

/// The number of facts requested.
pub(super) fn limit(args: &Value) -> Result<usize, ToolError> {
    let Some(limit) = args.get("limit").filter(|limit| !limit.is_null()) else {
        return Ok(LongTermMemory::DEFAULT_FACTS);
    };
    let number = limit.as_u64().and_then(|limit| usize::try_from(limit).ok());
    number.filter(|limit| (1..=Query::MAX_LIMIT).contains(limit)).ok_or_else(|| {
        format!("`limit` must be a whole number from 1 to {}; got {limit}", Query::MAX_LIMIT).into()
    })
}

impl Tool for Recall {
    fn spec(&self) -> &ToolSpec {
        &self.1
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let (scope, text) = (self.0.scope.clone(), text(&args, "query")?.to_owned());
        let query = Query { scope, text, limit: limit(&args)? };
        let recalled =
            self.0.memory.recall_metered(&query, cx.meter).await.map_err(|error| error.to_string())?;
        let mut text = match recalled.facts.as_slice() {
            [] => "Nothing is remembered about that.".to_owned(),
            facts => words::lines(facts),
        };
        if let Some(why) = recalled.missed {
            text.push_str(&format!("\n({why})"));
        }
        let outcome = ToolResult::done(text);
        let outcome = if recalled.facts.is_empty() { outcome } else { self.0.mark(outcome) };
        Ok(match recalled.used {
            Some(used) => outcome.with_usage(used),
            None => outcome,
        })
    }
}

/// The tool `forget`.
#[derive(Debug)]
pub(super) struct Forget(LongTermMemory, ToolSpec);

impl Forget {
    pub(super) fn of(memory: &LongTermMemory) -> Self {
        let about = "Drops a fact that was written down, because it is wrong or no longer true.";
        let properties = json!({"id": {"type": "integer", "minimum": 1, "description": "The fact's number, without the #"}});
        Self(memory.clone(), spec("forget", about, &properties, &["id"]))
    }
}

impl Tool for Forget {
    fn spec(&self) -> &ToolSpec {
        &self.1
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let id = args.get("id");
        // Models also write the number as they read it.
        let written =
            id.and_then(Value::as_str).and_then(|id| id.trim().trim_start_matches('#').parse().ok());
        let id = id.and_then(Value::as_u64).or(written).ok_or("`id` must be the number of a fact")?;
        match self.0.memory.forget(&self.0.scope, id).await {
            Ok(true) => Ok(ToolResult::done(format!("#{id} is forgotten."))),
            Ok(false) => Err(format!("there is no fact #{id}").into()),
            Err(error) => Err(error.to_string().into()),
        }
    }
}
