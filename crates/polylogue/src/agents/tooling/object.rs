//! Tools called by replies with a schema: a message or a call.

use std::sync::Arc;

use polylogue_core::{Act, HistoryEntry, Part, Reply, Result};
use serde_json::{Map, Value, json};

use super::answer::no_json;
use super::text::{Errors, ReplyFlaw, ToolUse, fitting, no_object};
use super::turn::{AssistantTurn, OfferedTool};
use super::{lenient, words};

/// Sent to a model that turned out not to support schemas.
const NEVER_MIND: &str = "Never mind the form of replies that you were told above: just write text.";

/// The next step after a reply.
enum Step<'w> {
    Say(Value),
    Call(OfferedTool<'w>, Value),
}

impl<'w> AssistantTurn<'w, '_> {
    /// Asks for objects until one is a message. `None` if the model does not support schemas.
    pub(super) async fn object(&mut self) -> Result<Option<Act>> {
        let tools = self.tools();
        self.forgets = true;
        self.prompt(words::object(tools.iter().map(|offer| (offer.spec, offer.prompted)))).await?;
        let mut errors = Errors::default();
        let mut called: Vec<&str> = Vec::new();
        let mut left = self.agent.max_rounds;
        loop {
            let missing = tools.iter().find(|offer| offer.must() && !called.contains(&&*offer.spec.name));
            let at_hand = if left == 0 { &[][..] } else { &tools };
            let must = missing.filter(|_| left > 0);
            let schema = schema(at_hand, must.is_none(), self.agent.output_schema.as_deref());
            let Some(reply) = self.with_schema(schema).await? else {
                self.preface(NEVER_MIND);
                return Ok(None);
            };
            let flaw = match read(&reply, at_hand, must) {
                Ok(Step::Say(value)) => return self.say_what(value).await.map(Some),
                Ok(Step::Call(offer, args)) => {
                    left -= 1;
                    match self.make(offer, args, tools.len() == 1).await? {
                        CallStep::End(act) => return Ok(Some(act)),
                        CallStep::Result(text) => {
                            called.push(&offer.spec.name);
                            errors = Errors::default();
                            let note = if left == 0 { words::NO_MORE_TOOLS } else { "" };
                            self.prompt(format!("{text}\n\n{note}").trim_end()).await?;
                            continue;
                        }
                        CallStep::ReplyFlaw(flaw) => flaw,
                    }
                }
                Err(flaw) => flaw,
            };
            if let Some((of, limit)) = errors.count(&flaw) {
                return self.give_up(of, limit).await.map(Some);
            }
            self.prompt(words::object_again(&flaw.text)).await?;
        }
    }

    async fn say_what(&mut self, value: Value) -> Result<Act> {
        match (self.agent.output_schema.clone(), value) {
            (Some(schema), value) => self.say_checked(&schema, value).await,
            (None, Value::String(text)) => self.say(vec![Part::Text(Arc::from(text))]).await,
            (None, value) => self.say(vec![Part::text(value.to_string())]).await,
        }
    }

    async fn make(&mut self, offer: OfferedTool<'w>, args: Value, alone: bool) -> Result<CallStep<'w>> {
        let before = alone.then(|| HistoryEntry::Sent(words::can_use(&offer.spec.name).into()));
        let result = |text: &str| CallStep::Result(words::result(&offer.spec.name, text));
        Ok(match self.try_call(offer, args, before).await? {
            // The result arrives in a later turn: keep everything until then.
            Ok(ToolUse::ForOthers(call)) => CallStep::End(Act::Say(vec![Part::ToolCall(call)])),
            Ok(ToolUse::Ran { parts, .. }) if offer.spec.ends_turn || (alone && self.says_outcome()) => {
                CallStep::End(self.say_result(offer.spec, parts).await?)
            }
            Ok(ToolUse::Ran { text, .. } | ToolUse::Rejected(text)) => result(&text),
            Ok(ToolUse::GaveUp(of, limit)) => CallStep::End(self.give_up(of, limit).await?),
            Err(flaw) => CallStep::ReplyFlaw(flaw),
        })
    }
}

/// The next step after a call.
enum CallStep<'w> {
    End(Act),
    Result(String),
    ReplyFlaw(ReplyFlaw<'w>),
}

fn read<'w>(
    reply: &Reply,
    at_hand: &[OfferedTool<'w>],
    must: Option<&OfferedTool<'w>>,
) -> Result<Step<'w>, ReplyFlaw<'w>> {
    let object = lenient::object(&reply.text()).ok_or_else(|| ReplyFlaw::of_choice(no_json(reply)))?;
    let call = object.get("call").and_then(Value::as_object).filter(|_| !at_hand.is_empty());
    let said = object.get("say").filter(|said| !said.is_null());
    match (call, said) {
        (Some(call), _) => read_call(call, at_hand),
        (None, Some(said)) => match must {
            Some(offer) => Err(ReplyFlaw::of_choice(words::must_call(&offer.spec.name))),
            None => Ok(Step::Say(said.clone())),
        },
        (None, None) => Err(ReplyFlaw::of_choice("it neither says anything nor calls a tool".to_owned())),
    }
}

fn read_call<'w>(call: &Map<String, Value>, at_hand: &[OfferedTool<'w>]) -> Result<Step<'w>, ReplyFlaw<'w>> {
    let tool = call.get("tool").and_then(Value::as_str).unwrap_or_default().trim();
    let Some(offer) = at_hand.iter().find(|offer| offer.spec.name == tool) else {
        let names: Vec<String> = at_hand.iter().map(|offer| format!("`{}`", offer.spec.name)).collect();
        return Err(ReplyFlaw::of_choice(format!("there is no tool `{tool}`, only {}", names.join(", "))));
    };
    let args = match call.get("args") {
        Some(Value::Object(args)) => args.clone(),
        // Models with a schema sometimes write an object as a string.
        Some(args @ Value::String(text)) => {
            lenient::object(text).ok_or_else(|| ReplyFlaw::of_arguments(*offer, no_object(args)))?
        }
        Some(Value::Null) | None => Map::new(),
        Some(other) => return Err(ReplyFlaw::of_arguments(*offer, no_object(other))),
    };
    fitting(args, *offer).map(|args| Step::Call(*offer, args))
}

/// The schema of a reply: closed, all fields required, as strict providers want it.
pub(super) fn schema(at_hand: &[OfferedTool<'_>], may_say: bool, answers: Option<&Value>) -> Value {
    let nothing = json!({"type": "null"});
    let say = match (may_say, answers) {
        (false, _) => nothing.clone(),
        (true, None) => json!({"type": ["string", "null"]}),
        (true, Some(form)) => json!({"anyOf": [nothing, form]}),
    };
    let call = |offer: &OfferedTool<'_>| {
        json!({
            "type": "object",
            "properties": {"tool": {"const": offer.spec.name, "type": "string"}, "args": offer.spec.parameters},
            "required": ["tool", "args"],
            "additionalProperties": false,
        })
    };
    let calls: Vec<Value> =
        may_say.then(|| nothing.clone()).into_iter().chain(at_hand.iter().map(call)).collect();
    let call = if at_hand.is_empty() { nothing } else { json!({"anyOf": calls}) };
    json!({
        "type": "object",
        "properties": {"say": say, "call": call},
        "required": ["say", "call"],
        "additionalProperties": false,
    })
}
