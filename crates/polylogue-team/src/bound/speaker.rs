//! The model calls of one turn of an agent.

use polylogue::{Assistant, Result};
use polylogue_core::{AnyModel, AnyTool, Capability, Model as _, Params, Tool as _, ToolSpec, Window};
use serde::Serialize;

use super::amount::{Amount, Effect, NO_LIMIT, Sum};
use super::case::{
    self, BYTES_PER_TOKEN, CALL, CALL_TOKENS, Case, MESSAGE, PERSON, PROMPT, REQUEST, SCHEMA, TOOLS,
};
use super::model;
use super::summaries::Summaries;
use crate::agent::{Agent, ModelKeys};
use crate::tooling::ToolEntry;

/// Loops longer than this are computed from their last step.
const STEPS: u128 = 1_024;

/// Questions with which a model without function calls is asked about one call: which tool (at most 5), whether
/// another one is needed (3), and whether any helps (3).
const QUESTIONS: u128 = 11;

/// Bytes of the request for the rest of a reply that was cut off.
const REST: u128 = 160 + MESSAGE;

/// Bytes of the note of what a truncated text lacks.
const NOTICE: u128 = 64;

/// What a model is asked with, and how often.
#[derive(Debug, Clone)]
pub(super) struct Speaker {
    pub(super) model: AnyModel,
    params: Params,
    /// Bytes of the system message, the tools, the schema and the examples.
    fixed: u128,
    /// How often the system message quotes the task.
    quotes: u128,
    tools: Option<Tools>,
    schema: Option<Form>,
    continuations: u128,
    /// How often a request is sent at most.
    attempts: u128,
    window: Window,
    /// How its history is compacted, if it is.
    summaries: Option<Summaries>,
}

/// The tools of an agent.
#[derive(Debug, Clone, Copy)]
struct Tools {
    /// Bytes of their descriptions.
    bytes: u128,
    rounds: u128,
    /// The most bytes of one result.
    result: u128,
    /// The most results of one round.
    calls: u128,
    /// Model calls for one call, if the model has no function calls.
    by_text: Option<u128>,
    /// Whether a result can be the message.
    ends_turn: bool,
    /// Whether calls can be in the message, for others to execute.
    suggests: bool,
}

/// The schema of the messages of an agent.
#[derive(Debug, Clone, Copy)]
struct Form {
    bytes: u128,
    retries: u128,
    /// Whether the model follows schemas: what it writes by one is not continued.
    is_native: bool,
}

pub(super) fn bytes(value: &impl Serialize) -> u128 {
    // A value of our types always serializes.
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len() as u128)
}

impl Speaker {
    /// An agent without tools: a selector or the author of a summary.
    pub(super) fn plain(model: AnyModel, params: Params, system: u128, continuations: u128) -> Self {
        let schema = params.schema.as_ref().map_or(0, |schema| SCHEMA + bytes(schema));
        let fixed = system.saturating_add(schema).saturating_add(REQUEST);
        let window = Window::All;
        let summaries = Some(Summaries::by_default(model.clone(), &params, 1));
        Self {
            model,
            params,
            fixed,
            quotes: 0,
            tools: None,
            schema: None,
            continuations,
            attempts: 1,
            window,
            summaries,
        }
    }

    /// The agent `agent` as `assistant`, with the model `model`.
    pub(super) fn of(
        agent: &Agent,
        keys: &ModelKeys,
        assistant: &Assistant,
        model: AnyModel,
    ) -> Result<Self> {
        let params = assistant.model_params().clone();
        let length = |task: &str| assistant.system_for(task).map_or(0, |text| text.len() as u128);
        let (system, quoting) = (length(""), length("x"));
        let examples: u128 = keys.examples.iter().map(case::example).sum();
        let default = if params.max_tokens.is_some() { 0 } else { Assistant::DEFAULT_MAX_CONTINUATIONS };
        let continuations = keys.parameters.max_continuations.unwrap_or(default).into();
        let plain = Self::plain(model, params, system.saturating_add(examples), continuations);
        let tools = Tools::of(agent, keys, assistant.specs(), &plain);
        let schema = keys.output_schema.as_ref().map(|schema| Form {
            bytes: bytes(&schema.0),
            retries: keys.output_retries.as_deref().copied().unwrap_or(Assistant::DEFAULT_REPAIRS).into(),
            is_native: plain.model.capabilities().has(Capability::Schema) == Some(true),
        });
        let fixed = plain.fixed.saturating_add(tools.map_or(0, |tools| TOOLS + tools.bytes));
        let quotes = quoting.saturating_sub(system);
        let window = assistant.view_options().window;
        Ok(Self { fixed, quotes, tools, schema, window, ..plain })
    }

    /// The same with another system message, of `system` bytes besides its own.
    pub(super) fn with_system(&self, system: u128) -> Self {
        Self { fixed: self.fixed.saturating_add(system), ..self.clone() }
    }

    /// The same, each of whose requests is sent at most `attempts` times.
    pub(super) fn with_attempts(self, attempts: u128) -> Self {
        let summaries = self.summaries.map(|summaries| summaries.with_attempts(attempts));
        Self { attempts, summaries, ..self }
    }

    /// The same, whose history is compacted in this way.
    pub(super) fn compacted(self, summaries: Option<Summaries>) -> Self {
        Self { summaries, ..self }
    }

    /// How its history is compacted by default.
    pub(super) fn default_summaries(&self) -> Summaries {
        Summaries::by_default(self.model.clone(), &self.params, self.attempts)
    }

    /// The same without an output schema.
    pub(super) fn without_form(mut self) -> Self {
        self.schema = None;
        self
    }

    /// Bytes of the descriptions of its tools.
    pub(super) fn tool_bytes(&self) -> u128 {
        self.tools.map_or(0, |tools| tools.bytes)
    }

    /// The context window of the model in tokens.
    fn context_window(&self) -> u128 {
        self.model.context_window().map_or(NO_LIMIT, u128::from)
    }

    /// The longest reply in tokens.
    pub(super) fn output(&self, case: Case) -> u128 {
        model::longest(&self.model, &self.params, case)
    }

    /// The longest reply in bytes.
    pub(super) fn reply(&self, case: Case) -> u128 {
        self.output(case).saturating_mul(case.bytes_per_token())
    }

    /// One call with a request of `context` bytes: as such a call is reserved.
    fn call(&self, case: Case, context: u128) -> Amount {
        model::call_of(&self.model, &self.params, case, context)
    }

    /// A call with a request of `context` bytes, unless the history may have been compacted before: that is asked for by other calls.
    pub(super) fn call_before_compaction(&self, case: Case, context: u128) -> Option<Amount> {
        let is_before = self.window != Window::All || case.tokens(context) <= self.compaction_limit(case);
        is_before.then(|| self.call(case, context))
    }

    /// The tokens of a request from which on a history is compacted.
    fn compaction_limit(&self, case: Case) -> u128 {
        let limit = |of: &Summaries| of.limit(self.context_window(), self.output(case));
        self.summaries.as_ref().map_or(NO_LIMIT, limit)
    }

    /// Its models: its own, and the one that summarizes, if another one does; with the parameters of requests.
    pub(super) fn models(&self) -> impl Iterator<Item = (&AnyModel, &Params)> {
        let author = self
            .summaries
            .as_ref()
            .map(|of| of.author())
            .filter(|(model, _)| model.name() != self.model.name());
        std::iter::once((&self.model, &self.params)).chain(author)
    }

    /// A turn with `context` bytes of history, in a chat with a task of `task` bytes.
    pub(super) fn turn(&self, case: Case, context: u128, task: u128) -> Effect {
        let mut calls = Calls::begin(self, case, context, task);
        if let Some(tools) = &self.tools {
            calls.make_tool_rounds(tools);
        }
        match self.schema.filter(|_| !case.is_typical()) {
            None => calls.say(1 + calls.continuations()),
            Some(form) => {
                if self.tools.is_some() {
                    calls.draft();
                }
                calls.make_form(form);
            }
        }
        calls.end()
    }

    /// A turn of `rounds` rounds of tools, and a summary at the end if it `summarizes`.
    pub(super) fn react(
        &self,
        case: Case,
        context: u128,
        task: u128,
        (rounds, sums_up): (u128, bool),
    ) -> Effect {
        let mut calls = Calls::begin(self, case, context, task);
        let tools = self.tools;
        let results = tools.map_or(0, |tools| tools.results(case));
        calls.make_rounds(case.times(rounds, 1), results);
        let last = 1 + u128::from(sums_up && !case.is_typical());
        calls.say(last.saturating_mul(1 + calls.continuations()));
        calls.end()
    }

    /// The bytes that its view can have, if a window limits it.
    fn viewed(&self, case: Case, context: u128, largest: u128) -> u128 {
        match self.window {
            Window::All => context,
            // A call and its results count as one entry, and the last exchange always stays.
            Window::Messages(count) => {
                context.min((count as u128).saturating_add(2).saturating_mul(largest.saturating_add(MESSAGE)))
            }
            Window::Tokens(count) => {
                let limit = (count as u128).saturating_mul(BYTES_PER_TOKEN).saturating_add(PROMPT);
                context.min(case.text(NO_LIMIT).min(limit.saturating_mul(8)).saturating_add(largest))
            }
        }
    }

    /// The history of `context` bytes in which no message has more than `largest` bytes, as the agent sees it.
    pub(super) fn view(&self, case: Case, context: u128, largest: u128) -> u128 {
        let largest = largest.max(self.reply(case));
        let results = self.tools.map_or(0, |tools| tools.results(case));
        self.viewed(case, context, largest.saturating_add(results))
    }
}

impl Tools {
    fn of(agent: &Agent, keys: &ModelKeys, specs: &[ToolSpec], speaker: &Speaker) -> Option<Self> {
        if specs.is_empty() {
            return None;
        }
        let asked = if agent.approval.is_some() { PERSON + PROMPT } else { 0 };
        let result = longest_result(agent, specs).saturating_add(asked);
        let one = speaker.params.parallel_tool_calls == Some(false);
        let calls = if one { 1 } else { (speaker.output(Case::Worst) / CALL_TOKENS).max(1) };
        let own = || keys.tools.iter().filter_map(|tool| ToolEntry::own(tool));
        let errors = own().map(|tool| u128::from(*tool.max_errors) + u128::from(*tool.max_call_errors)).max();
        let knows_calls = speaker.model.capabilities().has(Capability::Tools) == Some(true);
        let is_native = *keys.tool_calling == polylogue::agents::tooling::ToolCalling::Native;
        let by_text = (!knows_calls && !is_native).then(|| QUESTIONS + 1 + errors.unwrap_or(10));
        Some(Self {
            bytes: bytes(&specs),
            rounds: (*keys.max_tool_rounds).into(),
            result,
            calls,
            by_text,
            suggests: !keys.suggests_tools.is_empty(),
            ends_turn: by_text.is_some() || specs.iter().any(|spec| spec.ends_turn),
        })
    }

    /// The most bytes that one round of calls adds.
    fn results(&self, case: Case) -> u128 {
        let calls = case.times(self.calls, 1);
        calls.saturating_mul(case.text(self.result).saturating_add(CALL).saturating_add(MESSAGE))
    }
}

/// The most bytes of a result of one of `specs`, or of a call of another tool.
fn longest_result(agent: &Agent, specs: &[ToolSpec]) -> u128 {
    // A truncated result says how much is missing.
    let of = |spec: &ToolSpec| spec.max_bytes as u128 + NOTICE;
    let most = agent.tool_limits.max_output_bytes.into();
    let longest = specs.iter().map(of).max().unwrap_or_default().min(most);
    let names: u128 = specs.iter().map(|spec| spec.name.len() as u128 + 4).sum();
    longest.max(names.saturating_add(PROMPT))
}

/// The most bytes of a result of `tools`.
pub(super) fn longest_of(tools: &[AnyTool]) -> u128 {
    tools.iter().map(|tool| tool.spec().max_bytes as u128).max().unwrap_or_default().max(PROMPT) + NOTICE
}

/// The calls of one turn.
struct Calls<'s> {
    speaker: &'s Speaker,
    case: Case,
    /// Bytes of the next request.
    context: u128,
    /// Bytes of the task of the chat.
    task: u128,
    begun: u128,
    reply: u128,
    sum: Sum,
}

impl<'s> Calls<'s> {
    fn begin(speaker: &'s Speaker, case: Case, context: u128, task: u128) -> Self {
        let quoted = speaker.quotes.saturating_mul(task);
        let base = speaker.fixed.saturating_add(quoted).saturating_add(MESSAGE);
        let context = context.saturating_add(base);
        let reply = speaker.reply(case).saturating_add(MESSAGE);
        Self { speaker, case, context, task, begun: context, reply, sum: Sum { base, ..Sum::default() } }
    }

    fn continuations(&self) -> u128 {
        self.case.times(self.speaker.continuations, 0)
    }

    /// Adds `count` calls, each of which adds `growth` bytes to the view.
    fn make(&mut self, count: u128, growth: u128) {
        self.sum.growth = self.sum.growth.max(growth);
        for _ in 0..count.min(STEPS) {
            self.add(1);
            self.context = self.context.saturating_add(growth);
        }
        let more = count.saturating_sub(STEPS);
        if more > 0 {
            self.context = self.context.saturating_add(growth.saturating_mul(more));
            self.add(more);
        }
    }

    /// Adds `rounds` rounds of calls by tools, whose results have `results` bytes. In each, a text that is cut off can be continued, and end
    /// with calls.
    fn make_rounds(&mut self, rounds: u128, results: u128) {
        let (again, said) = (self.continuations(), self.reply.saturating_add(REST));
        let growth = said.saturating_add(results);
        // A request after rounds can have a prompt of the program.
        self.sum.growth = self.sum.growth.max(growth.saturating_add(PROMPT));
        if rounds > STEPS {
            return self.make(rounds.saturating_mul(1 + again), growth);
        }
        for _ in 0..rounds {
            self.make(again, said);
            self.make(1, growth);
        }
    }

    fn add(&mut self, count: u128) {
        let limit = self.speaker.compaction_limit(self.case);
        let is_larger = !self.case.is_typical() && self.may_be_compacted(limit);
        let summaries = self.speaker.summaries.as_ref().filter(|_| is_larger);
        let context = summaries.map_or(self.context, |of| of.context(self.context));
        let call = self.speaker.call(self.case, context);
        let attempts = match self.case {
            // Each attempt fails once without a reply, and a call that a provider cannot parse is asked for again.
            Case::Worst => self.speaker.attempts.saturating_mul(2),
            Case::WithoutFailures | Case::Typical => 1,
        };
        self.sum.add_calls(call, count.saturating_mul(attempts));
        self.add_compaction(count);
    }

    /// Adds the calls that summarize a history that nearly fills the window, or exceeds what the team sets.
    fn add_compaction(&mut self, count: u128) {
        let limit = self.speaker.compaction_limit(self.case);
        let Some(summaries) = self.speaker.summaries.as_ref().filter(|_| self.may_be_compacted(limit)) else {
            return;
        };
        let (call, calls) = summaries.calls(self.case, (summaries.context(self.context), self.task));
        if self.case.is_typical() {
            // A summary halves the history.
            self.sum.add_calls(call, 1);
            let whole = limit.saturating_mul(self.case.bytes_per_token());
            self.context = if whole == 0 { self.context } else { whole } / 2;
            return;
        }
        self.sum.add_calls(call, count.saturating_mul(calls));
    }

    fn may_be_compacted(&self, limit: u128) -> bool {
        self.speaker.window == Window::All && self.case.tokens(self.context) > limit
    }

    fn make_tool_rounds(&mut self, tools: &Tools) {
        let rounds = self.case.times(tools.rounds, 1);
        let results = tools.results(self.case);
        match tools.by_text.filter(|_| !self.case.is_typical()) {
            None => self.make_rounds(rounds, results),
            // The tools are described in each prompt.
            Some(each) => {
                let growth = self.reply.saturating_add(results).saturating_add(PROMPT + tools.bytes);
                self.make((rounds + 1).saturating_mul(each).saturating_mul(1 + self.continuations()), growth);
            }
        }
    }

    /// The calls of a text after tools that does not satisfy a schema.
    fn draft(&mut self) {
        self.make(1 + self.continuations(), self.reply.saturating_add(REST));
    }

    /// How often a reply by a schema can be continued.
    fn form_continuations(&self, form: Form) -> u128 {
        if form.is_native { 0 } else { self.continuations() }
    }

    /// The calls for a reply that satisfies a schema.
    fn make_form(&mut self, form: Form) {
        let (prompt, again) = (form.bytes.saturating_add(PROMPT), self.form_continuations(form));
        let more =
            form.bytes.saturating_mul(4).saturating_add(2 * PROMPT + REQUEST + 2 * SCHEMA + 3 * MESSAGE);
        self.sum.base = self.sum.base.saturating_add(more);
        // A value is in the turn, and in the message as text and as JSON.
        self.sum.growth = self.sum.growth.max(self.reply.saturating_mul(3).saturating_add(prompt));
        self.context = self.context.saturating_add(form.bytes).saturating_add(SCHEMA).saturating_add(prompt);
        self.make(1 + again, self.reply.saturating_add(prompt));
        // A repair is asked for alone: the schema, the reply and its errors.
        let context = form.bytes.saturating_mul(2).saturating_add(self.reply.saturating_mul(3));
        let view = std::mem::replace(
            &mut self.context,
            context.saturating_add(PROMPT + REQUEST + SCHEMA + 3 * MESSAGE),
        );
        self.make(form.retries.saturating_mul(1 + again), 0);
        self.context = view;
    }

    /// Adds the `count` calls of the message. Its pieces are one entry in later requests, and requests for the rest are gone.
    fn say(&mut self, count: u128) {
        let before = self.context;
        self.make(count, self.reply.saturating_add(REST));
        self.context = before;
    }

    fn end(mut self) -> Effect {
        let again = match self.speaker.schema {
            // A draft can satisfy the schema, too.
            Some(form) if self.speaker.tools.is_none() => self.form_continuations(form),
            _ => self.continuations(),
        };
        let whole = self.reply.saturating_mul(1 + again);
        // A value is in the message twice, as text and as JSON.
        let said = if self.speaker.schema.is_some() { whole.saturating_mul(2) } else { whole };
        let result = self.speaker.tools.filter(|tools| tools.ends_turn);
        let message = said.max(result.map_or(0, |tools| self.case.text(tools.result)));
        let suggesting = self.speaker.tools.filter(|tools| tools.suggests);
        let calls = suggesting.map_or(0, |tools| self.case.times(tools.calls, 1).saturating_mul(CALL));
        // One call can be a piece of the text, have the result that is the message, and suggest all calls.
        let piece = message.min(said.saturating_div(1 + again)).max(result.map_or(0, |_| message));
        self.sum.growth = self.sum.growth.max(piece.saturating_add(calls));
        let message = message.saturating_add(calls);
        let kept = self.context.saturating_sub(self.begun);
        Effect { sum: self.sum, message, kept, free: 0 }
    }
}
