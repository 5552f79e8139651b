//! The model calls of one turn of an agent.

mod calls;
mod tools;

use std::rc::Rc;

use polylogue::agents::compaction::Compaction;
use polylogue::agents::tooling::{PromptedTool, ToolCalling, ToolHistory};
use polylogue::{Assistant, Result};
use polylogue_core::{AnyModel, Capabilities, Capability, Model as _, Params, ToolResult, ToolSpec, Window};
use serde::Serialize;
use serde_json::Value;

pub(super) use self::tools::of_others;
use super::amount::{Amount, NO_LIMIT};
use super::case::{self, BYTES_PER_TOKEN, Case, MESSAGE, PROMPT, REQUEST, SCHEMA, TOOLS};
use super::model;
use super::scene::Scene;
use super::summaries::Summaries;
use crate::agent::{Agent, ModelKeys};
use crate::tooling::{NamedTool, ToolEntry, ToolExample};

/// Loops longer than this are computed from their last step.
const STEPS: u128 = 1_024;

/// The most replies that are asked for a choice: of a tool, and in an object that says something or calls a tool.
const CHOICES: u128 = 5;

/// An open question, a yes-or-no question, and that once more.
const DECISION: u128 = 3;

/// Bytes of the request for the rest of a reply that was cut off.
const REST: u128 = 160 + MESSAGE;

/// The fewest tokens that a message counts in a window.
const WEIGHT: u128 = 4;

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
    /// The capabilities on which this rests: without one of them, it takes more calls.
    expects: Capabilities,
    /// Whether its replies can have seals.
    can_seal: bool,
}

/// The tools of an agent.
#[derive(Debug, Clone, Copy)]
struct Tools {
    /// Bytes of their descriptions.
    bytes: u128,
    rounds: u128,
    /// The most bytes of one result.
    result: u128,
    /// The same without replies of agents that are tools, and without results of background tasks: these are counted where they are
    /// asked.
    result_without_agents: u128,
    /// The most results of one round.
    calls: u128,
    /// The most picodollars that one call costs.
    cost: u128,
    /// How they are called, if not by function calls.
    by_text: Option<Dialog>,
    /// Whether a result can be the message.
    ends_turn: bool,
    /// Whether calls can be in the message, for others to execute.
    suggests: bool,
}

/// Calls of tools in plain text, or by objects.
#[derive(Debug, Clone, Copy)]
struct Dialog {
    /// The most replies in free text, which can be continued.
    replies: u128,
    /// The most replies that are JSON, which are continued if the model has no JSON mode.
    objects: u128,
    is_continued: bool,
    /// The most calls that succeed.
    calls: u128,
    /// How often the message that is answered is quoted before the answer is asked for.
    quotes: u128,
    /// Whether the result of the one tool is the message, for which the model is not asked.
    says_result: bool,
    /// Whether an explanation of each call stays in the history, too.
    explains: bool,
    /// Bytes of the examples of the tools.
    examples: u128,
    /// Whether calls stay in the history, and not only the answer.
    keeps_calls: bool,
    /// Whether no call is made in another way.
    is_certain: bool,
}

/// The schema of the messages of an agent.
#[derive(Debug, Clone, Copy)]
struct Form {
    bytes: u128,
    retries: u128,
    /// Whether replies are written by a schema or in JSON mode: these are not continued.
    is_native: bool,
    /// Whether it is asked for in the text of a prompt, which the agent forgets.
    is_prompted: bool,
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
            can_seal: model.returns_seals(&params),
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
            expects: Capabilities::default(),
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
        let expects = expected_of(keys, &plain, !assistant.specs().is_empty());
        let plain = Self { expects, ..plain };
        let tools = Tools::of(agent, keys, assistant, &plain);
        let schema = keys.output_schema.as_ref().map(|schema| Form {
            bytes: bytes(&schema.0),
            retries: keys
                .output_retries
                .as_deref()
                .copied()
                .unwrap_or(Assistant::DEFAULT_OUTPUT_RETRIES)
                .into(),
            is_native: writes_json(keys, &plain) || expects.has(Capability::Schema) == Some(true),
            is_prompted: matches!(*keys.tool_calling, ToolCalling::Json | ToolCalling::Text),
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

    /// The same in a history of at most `messages`: by default, the latest ones stay, and nothing is compacted where there are no others.
    pub(super) fn in_a_history_of(self: Rc<Self>, messages: u128) -> Rc<Self> {
        // A round of function calls is one message with its results, each piece of a text comes after a request for it, and a prompt of the
        // program can follow.
        let own = match &self.tools {
            None => 0,
            Some(tools) if tools.by_text.is_none() && !tools.suggests => {
                let each = self.continuations.saturating_mul(2).saturating_add(1);
                tools.rounds.saturating_mul(each).saturating_add(1)
            }
            Some(_) => NO_LIMIT,
        };
        let by_default = self.schema.is_none() && self.summaries.as_ref().is_some_and(|of| !of.is_set());
        if by_default && messages.saturating_add(own) <= Compaction::DEFAULT_KEEP_MESSAGES as u128 {
            return Rc::new(Self::clone(&self).compacted(None));
        }
        self
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

    /// Whether its replies can have seals.
    pub(super) const fn can_seal(&self) -> bool {
        self.can_seal
    }

    /// The capabilities of its model on which this rests.
    pub(super) const fn expects(&self) -> Capabilities {
        self.expects
    }

    /// Bytes of the descriptions of its tools.
    pub(super) fn tool_bytes(&self) -> u128 {
        self.tools.map_or(0, |tools| tools.bytes)
    }

    /// The most bytes of one result of its tools.
    pub(super) fn tool_result(&self) -> u128 {
        self.tools.map_or(ToolResult::MAX_BYTES as u128, |tools| tools.result)
    }

    /// The most picodollars that one call of a tool of its own costs.
    pub(super) fn tool_cost(&self) -> u128 {
        self.tools.map_or(0, |tools| tools.cost)
    }

    /// Whether its model calls functions. Then what agents reply that are tools, and results of background tasks, are counted apart from
    /// [rounds of calls](Self::turn): each of them is read once.
    pub(super) fn calls_functions(&self, case: Case) -> bool {
        !case.is_typical() && self.tools.is_some_and(|tools| tools.by_text.is_none())
    }

    /// Whether it sees the whole history.
    pub(super) fn sees_all(&self) -> bool {
        self.window == Window::All
    }

    /// The context window of the model in tokens.
    fn context_window(&self) -> u128 {
        self.model.context_window().map_or(NO_LIMIT, u128::from)
    }

    /// The longest reply in tokens.
    pub(super) fn output(&self, case: Case) -> u128 {
        model::longest(&self.model, &self.params, case)
    }

    /// The longest reply in bytes, with the seals that are sent again with it. Only the agent itself sends them;
    /// counting them for all that read the reply is more.
    pub(super) fn reply(&self, case: Case) -> u128 {
        case.read_again(self.output(case), self.can_seal)
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

    /// The history of `context` bytes in `scene`, as far as its window leaves it.
    pub(super) fn view(&self, case: Case, scene: &Scene, context: u128) -> u128 {
        let results = self.tools.map_or(0, |tools| tools.results(case));
        let largest = scene.entry.max(self.reply(case)).saturating_add(results);
        let kept = match self.window {
            Window::All => return context,
            // A call and its results count as one entry, and the last exchange always stays.
            Window::Messages(count) => {
                (count as u128).saturating_add(2).saturating_mul(largest.saturating_add(MESSAGE))
            }
            Window::Tokens(count) => {
                let limit = (count as u128).saturating_mul(BYTES_PER_TOKEN).saturating_add(PROMPT);
                let texts = case.text(NO_LIMIT).min(limit.saturating_mul(8)).saturating_add(largest);
                // Seals have no weight in a window, and each message can have some.
                let unsealed = case.read_again(self.output(case), false);
                let seals = self.reply(case).saturating_sub(unsealed);
                texts.saturating_add(seals.saturating_mul(count as u128 / WEIGHT))
            }
        };
        context.min(kept.saturating_add(scene.pinned()))
    }
}

/// The capabilities that an agent with these `keys` uses if `speaker` has them, and that its model is expected to have.
fn expected_of(keys: &ModelKeys, speaker: &Speaker, has_tools: bool) -> Capabilities {
    let schema = keys.output_schema.as_ref().map(|schema| Value::Object(schema.0.clone()));
    let needs = [(Capability::Tools, has_tools), (Capability::Schema, schema.is_some())];
    // In the other ways, a missing capability is an error.
    let is_auto = *keys.tool_calling == ToolCalling::Auto;
    let params = Params { schema, ..speaker.params.clone() };
    let expected = speaker.model.expected_capabilities(&params);
    let used =
        needs.into_iter().filter(|(of, is_used)| is_auto && *is_used && expected.has(*of) == Some(true));
    used.fold(Capabilities::default(), |all, (of, _)| all.with(of))
}

/// Whether what `speaker` writes as JSON is written by a schema or in JSON mode, because the agent calls tools in that way, and is not
/// continued.
fn writes_json(keys: &ModelKeys, speaker: &Speaker) -> bool {
    match *keys.tool_calling {
        ToolCalling::Native | ToolCalling::Schema | ToolCalling::Json => true,
        ToolCalling::Text => speaker.model.capabilities().has(Capability::Json) == Some(true),
        _ => false,
    }
}

impl Dialog {
    /// How `agent` calls tools of `specs`; `None` by function calls.
    fn of(agent: &Agent, keys: &ModelKeys, specs: &[ToolSpec], speaker: &Speaker) -> Option<Self> {
        let calls_functions = speaker.expects.has(Capability::Tools) == Some(true);
        let (text, objects) = (Self::of_text(agent, keys, specs, speaker), Self::of_objects(keys, specs));
        match *keys.tool_calling {
            ToolCalling::Native => None,
            ToolCalling::Schema => Some(objects),
            ToolCalling::Json | ToolCalling::Text => Some(text),
            _ if calls_functions => None,
            // What the provider refuses decides: it can change within a turn.
            _ => Some(Self {
                replies: text.replies.saturating_add(u128::from(*keys.max_tool_rounds)).saturating_add(1),
                objects: text.objects.saturating_add(objects.objects),
                is_continued: true,
                calls: text.calls.saturating_add(objects.calls),
                quotes: text.quotes.saturating_add(objects.quotes),
                says_result: false,
                explains: true,
                is_certain: false,
                ..text
            }),
        }
    }

    /// What a tool is defined with, whether any helps, which one, its arguments, and whether another call is needed.
    fn of_text(agent: &Agent, keys: &ModelKeys, specs: &[ToolSpec], speaker: &Speaker) -> Self {
        let must = own(keys).any(|tool| *tool.mandatory);
        let rounds: u128 = (*keys.max_tool_rounds).into();
        let (replies, calls) = match specs.len() as u128 {
            // How it is called is asked about where that stays in the history.
            1 => (1 + u128::from(keeps_calls(keys)) + if must { 0 } else { DECISION }, 1),
            count => {
                let rounds = if must { rounds.max(count) } else { rounds };
                (1 + DECISION + rounds.saturating_mul(CHOICES + DECISION), rounds)
            }
        };
        // A result that is rejected, or that another agent is asked for, is no message; and a message by a schema is asked for. Without `approval`, a
        // person can be asked about programs, and not about tools that only compute, whose results are short.
        let most = |spec: &ToolSpec| spec.max_bytes as u128;
        let only_computes = specs.iter().all(|spec| most(spec) <= PROMPT)
            && u128::from(agent.tool_limits.max_output_bytes) > PROMPT;
        let is_sure = only_computes
            && agent.approval.is_none()
            && keys.suggests_tools.is_empty()
            && keys.output_schema.is_none();
        Self {
            replies,
            objects: calls.saturating_mul(tries(keys, specs)),
            is_continued: !writes_json(keys, speaker),
            calls,
            quotes: calls.saturating_add(u128::from(!must)),
            says_result: must && specs.len() == 1 && keeps_calls(keys) && is_sure,
            explains: specs.len() > 1,
            ..Self::new(keys)
        }
    }

    /// An object for each call and for the answer, each of which can be asked for again.
    fn of_objects(keys: &ModelKeys, specs: &[ToolSpec]) -> Self {
        let calls: u128 = (*keys.max_tool_rounds).into();
        let objects = (calls + 1).saturating_mul(tries(keys, specs) + CHOICES - 1);
        Self { objects, calls, quotes: calls.saturating_add(1), explains: true, ..Self::new(keys) }
    }

    fn new(keys: &ModelKeys) -> Self {
        let example = |example: &ToolExample| {
            let args = example.args.iter().map(|(name, value)| name.len() + value.to_string().len() + 8);
            args.chain([example.user.len()]).sum::<usize>() as u128 + PROMPT
        };
        Self {
            replies: 0,
            objects: 0,
            is_continued: false,
            calls: 0,
            quotes: 0,
            says_result: false,
            explains: false,
            examples: own(keys).flat_map(|tool| tool.examples.iter().map(example)).sum(),
            keeps_calls: keeps_calls(keys),
            is_certain: true,
        }
    }
}

fn keeps_calls(keys: &ModelKeys) -> bool {
    *keys.tool_history != ToolHistory::Answer
}

fn own(keys: &ModelKeys) -> impl Iterator<Item = &NamedTool> {
    keys.tools.iter().filter_map(|tool| ToolEntry::own(tool))
}

/// How often the arguments of one call are asked for at most.
fn tries(keys: &ModelKeys, specs: &[ToolSpec]) -> u128 {
    let default = PromptedTool::DEFAULT_MAX_ERRORS;
    // The others have the default.
    let other = if specs.len() > own(keys).count() { default } else { 0 };
    let most = |of: fn(&NamedTool) -> u32| own(keys).map(of).chain([other]).max().map_or(0, u128::from);
    1 + most(|tool| *tool.max_errors) + most(|tool| *tool.max_call_errors)
}
