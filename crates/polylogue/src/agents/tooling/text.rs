//! One tool, called in a dialog in plain text.

use crate::stop::ModelMistake;
use polylogue_core::{Act, HistoryEntry, Part, Reply, Result, ToolCall, ToolSpec, ToolStatus, text};
use serde_json::{Map, Value};

use super::answer::no_json;
use super::read::yes_or_no;
use super::turn::{AssistantTurn, OfferedTool, parts_text};
use super::{lenient, words};
use crate::json_schema;

/// Limit on replies that choose no tool.
pub(super) const CHOICES: u32 = 5;

/// The result of using a tool.
pub(super) enum ToolUse {
    /// It ran.
    Ran {
        /// Its output.
        parts: Vec<Part>,
        /// The same as text; a success message if there is no output.
        text: String,
    },
    /// A person rejected it: the message for the model.
    Rejected(String),
    /// Another participant runs it.
    ForOthers(ToolCall),
    /// The model made too many errors.
    GaveUp(ModelMistake, u32),
}

impl<'w> AssistantTurn<'w, '_> {
    /// Calls tools in a dialog, and answers.
    pub(super) async fn by_text(&mut self) -> Result<Act> {
        self.forgets = true;
        let tools = self.tools();
        match tools.as_slice() {
            [only] => self.one(*only).await,
            _ => self.several(&tools).await,
        }
    }

    async fn one(&mut self, offer: OfferedTool<'w>) -> Result<Act> {
        self.ask(words::define(offer.spec, offer.must())).await?;
        if self.keeps_trace() {
            self.ask(words::how_alone(offer.spec, offer.prompted)).await?;
        }
        if !offer.must() && !self.wants(words::relevant(offer.spec, &self.task()), words::USE_IT).await? {
            return self.answer_without().await;
        }
        self.keep([HistoryEntry::Sent(words::can_use(&offer.spec.name).into())]);
        match self.call_by_text(offer, !self.keeps_trace()).await? {
            ToolUse::GaveUp(of, limit) => self.give_up(of, limit).await,
            // The result arrives in a later turn: keep everything until then.
            ToolUse::ForOthers(call) => Ok(Act::Say(vec![Part::ToolCall(call)])),
            ToolUse::Rejected(text) => self.answer_with(offer.spec, &text).await,
            ToolUse::Ran { parts, text } => {
                let is_last =
                    offer.spec.ends_turn || self.says_outcome() || parts_text(&parts).trim().is_empty();
                if is_last && self.agent.output_schema.is_none() {
                    return self.say_result(offer.spec, parts).await;
                }
                self.answer_with(offer.spec, &text).await
            }
        }
    }

    /// Answers with the result of a call.
    async fn answer_with(&mut self, spec: &ToolSpec, text: &str) -> Result<Act> {
        self.prompt(format!("{}\n\n{}", words::result(&spec.name, text), words::solve(&self.task()))).await?;
        self.answer().await
    }

    /// Asks an open question, then a yes-or-no question.
    pub(super) async fn wants(&mut self, question: String, decision: &str) -> Result<bool> {
        self.ask(question).await?;
        self.decides(decision).await
    }

    /// Asks a yes-or-no question, at most twice. An unclear answer is a no.
    pub(super) async fn decides(&mut self, question: &str) -> Result<bool> {
        let reply = self.ask(question).await?;
        if let Some(decision) = yes_or_no(&reply.text()) {
            return Ok(decision);
        }
        let reply = self.ask(words::YES_OR_NO).await?;
        Ok(yes_or_no(&reply.text()).unwrap_or(false))
    }

    /// Answers without any tool.
    pub(super) async fn answer_without(&mut self) -> Result<Act> {
        self.prompt(words::solve_without(&self.task())).await?;
        self.answer().await
    }

    /// Makes the output of a tool the message; a success message if there is none.
    pub(super) async fn say_result(&mut self, spec: &ToolSpec, parts: Vec<Part>) -> Result<Act> {
        let is_empty = parts_text(&parts).trim().is_empty();
        let parts = if is_empty { vec![Part::text(words::success(&spec.name))] } else { parts };
        self.say_outcome(parts).await
    }

    /// Asks for the arguments until the tool accepts them.
    pub(super) async fn call_by_text(
        &mut self,
        offer: OfferedTool<'w>,
        with_instructions: bool,
    ) -> Result<ToolUse> {
        let spec = offer.spec;
        if words::is_without_arguments(spec) {
            return self.try_call(offer, Value::Object(Map::new()), None).await.map(|tried| match tried {
                Ok(used) => used,
                // There is nothing to correct: the failure is the result.
                Err(flaw) => ToolUse::Ran { parts: vec![Part::text(flaw.text.clone())], text: flaw.text },
            });
        }
        let how = with_instructions.then(|| words::how(spec, offer.prompted));
        self.prompt(words::call(spec, how, &self.task())).await?;
        let mut errors = Errors::default();
        loop {
            let reply = self.json().await?;
            let tried = match read_arguments(&reply, offer) {
                Ok(args) => self.try_call(offer, args, None).await?,
                Err(flaw) => Err(flaw),
            };
            let flaw = match tried {
                Ok(used) => return Ok(used),
                Err(flaw) => flaw,
            };
            if let Some((of, limit)) = errors.count(&flaw) {
                return Ok(ToolUse::GaveUp(of, limit));
            }
            self.prompt(words::call_again(spec, &flaw.text, flaw.is_of_form())).await?;
        }
    }

    /// Makes a call. One that succeeds is kept in the history, after the entry `before`.
    pub(super) async fn try_call(
        &mut self,
        offer: OfferedTool<'w>,
        args: Value,
        before: Option<HistoryEntry>,
    ) -> Result<Result<ToolUse, ReplyFlaw<'w>>> {
        let call = self.new_call(&offer.spec.name, args);
        if offer.prompted.is_none() {
            return Ok(Ok(ToolUse::ForOthers(call)));
        }
        let args = call.args.clone();
        let (outcome, is_rejected) = self.run(call).await?;
        let (status, parts) = (outcome.status, outcome.for_model());
        let text = outcome_text(offer.spec, &parts);
        if is_rejected {
            return Ok(Ok(ToolUse::Rejected(text)));
        }
        if status == ToolStatus::Failed {
            return Ok(Err(ReplyFlaw::of_tool(offer, text)));
        }
        self.keep(before);
        self.keep_call(&offer.spec.name, &args, &text);
        Ok(Ok(ToolUse::Ran { parts, text }))
    }
}

/// The output of a tool as text; a success message if there is none.
fn outcome_text(spec: &ToolSpec, parts: &[Part]) -> String {
    let text = parts_text(parts);
    if text.trim().is_empty() { words::success(&spec.name) } else { text }
}

fn read_arguments<'w>(reply: &Reply, offer: OfferedTool<'w>) -> Result<Value, ReplyFlaw<'w>> {
    let text = reply.text();
    match lenient::object(&text) {
        Some(args) => fitting(args, offer),
        None => Err(match lenient::value(&text) {
            Some(other) => ReplyFlaw::of_arguments(offer, no_object(&other)),
            None => ReplyFlaw::of_tool(offer, no_json(reply)),
        }),
    }
}

/// The error for arguments that are JSON, but not an object.
pub(super) fn no_object(args: &Value) -> String {
    format!("the arguments must be a JSON object; got {args}")
}

/// The arguments, if they fit the tool. Models sometimes wrap them in another object.
pub(super) fn fitting(args: Map<String, Value>, offer: OfferedTool<'_>) -> Result<Value, ReplyFlaw<'_>> {
    let schema = &offer.spec.parameters;
    let args = Value::Object(args);
    let Err(flaw) = json_schema::check(&args, schema) else { return Ok(args) };
    let wrappers = ["arguments", "args", "parameters", "input", &*offer.spec.name];
    let inner = wrappers.into_iter().filter_map(|wrapper| args.get(wrapper)).find(|inner| inner.is_object());
    match inner {
        Some(inner) if json_schema::check(inner, schema).is_ok() => Ok(inner.clone()),
        _ => Err(ReplyFlaw::of_arguments(offer, flaw)),
    }
}

/// An error in a reply, or in the call that it made.
pub(super) struct ReplyFlaw<'w> {
    offer: Option<OfferedTool<'w>>,
    kind: Kind,
    pub(super) text: String,
}

#[derive(PartialEq, Eq)]
enum Kind {
    Tool,
    Arguments,
    Choice,
}

impl<'w> ReplyFlaw<'w> {
    pub(super) const fn of_tool(offer: OfferedTool<'w>, text: String) -> Self {
        Self { offer: Some(offer), kind: Kind::Tool, text }
    }

    pub(super) fn of_arguments(offer: OfferedTool<'w>, text: String) -> Self {
        Self { offer: Some(offer), kind: Kind::Arguments, text: text::shortened(&text, MAX_ERROR) }
    }

    pub(super) fn of_choice(text: String) -> Self {
        Self { offer: None, kind: Kind::Choice, text: text::shortened(&text, MAX_ERROR) }
    }

    fn is_of_form(&self) -> bool {
        self.kind == Kind::Arguments
    }
}

/// The most bytes of an error, which can quote what the model wrote. The bound of a run counts on it.
const MAX_ERROR: usize = 600;

/// Errors in a row, of each kind.
#[derive(Default)]
pub(super) struct Errors {
    tool: u32,
    arguments: u32,
    choice: u32,
}

impl Errors {
    /// Counts an error; returns what the limit was reached for, if it was.
    pub(super) fn count(&mut self, flaw: &ReplyFlaw<'_>) -> Option<(ModelMistake, u32)> {
        use crate::agents::prompted::PromptedTool;
        let prompted = flaw.offer.and_then(|offer| offer.prompted);
        let name = || flaw.offer.map(|offer| offer.spec.name.clone()).unwrap_or_default();
        let (count, limit, of) = match flaw.kind {
            Kind::Tool => {
                let limit = prompted.map_or(PromptedTool::DEFAULT_MAX_ERRORS, |prompted| prompted.max_errors);
                (&mut self.tool, limit, ModelMistake::Tool(name()))
            }
            Kind::Arguments => {
                let limit =
                    prompted.map_or(PromptedTool::DEFAULT_MAX_ERRORS, |prompted| prompted.max_call_errors);
                (&mut self.arguments, limit, ModelMistake::Arguments(name()))
            }
            Kind::Choice => (&mut self.choice, CHOICES - 1, ModelMistake::Choice),
        };
        *count += 1;
        (*count > limit).then_some((of, limit))
    }
}
