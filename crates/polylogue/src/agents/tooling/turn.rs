//! One turn of an assistant: model calls, tool calls, and the final message.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::stop::{LibraryStopReason, ModelMistake};
use polylogue_core::{
    Act, Agent, AnyAgent, AnyTool, Body, Capability, ConfigError, Error, FinishReason, HistoryEntry,
    Interrupt, Model, ModelAttempt, ModelCall, Name, Params, Part, Reply, Result, StopReason, Tool as _,
    ToolCall, ToolResult, ToolSpec, Turn, ViewOptions, text_of,
};
use serde_json::Value;

use super::support::{CallMode, ToolSupport};
use super::words;
use crate::agents::assistant::Assistant;
use crate::agents::compaction::{self, Ask};
use crate::agents::prompted::{PromptedTool, ToolHistory};
use crate::tools::agent_tool::AgentTool;
use crate::tools::background;
use crate::tools::known::known;
use crate::tools::runner::Finished;

/// One turn of an assistant.
pub(crate) struct AssistantTurn<'w, 't> {
    pub(super) agent: &'w Assistant,
    pub(super) turn: &'w mut Turn<'t>,
    pub(super) support: ToolSupport,
    system: Option<Arc<str>>,
    /// The view when calls are shown as text.
    worded: ViewOptions,
    /// Number of tools called by text.
    called: u64,
    /// Number of calls of each agent tool.
    agent_calls: BTreeMap<&'w str, u32>,
    /// Whether the prompts of this turn stay out of the agent's history.
    pub(super) forgets: bool,
    /// The history entries that stay instead, besides the answer.
    trace: Vec<HistoryEntry>,
    /// Sent before the next prompt.
    preface: Option<&'static str>,
    /// Whether a private turn is about a task, and not only a question of the policy.
    is_task: bool,
    /// How it calls tools.
    mode: Option<CallMode>,
    /// Why the last reply was truncated, if it was.
    cut: Option<FinishReason>,
    /// The act that ends the turn while an approval is pending.
    ends: Option<Act>,
}

/// An available tool: the agent's own, or one that other participants run.
#[derive(Clone, Copy)]
pub(super) struct OfferedTool<'w> {
    pub(super) spec: &'w ToolSpec,
    pub(super) prompted: Option<&'w PromptedTool>,
}

impl<'w> OfferedTool<'w> {
    pub(super) fn own(prompted: &'w PromptedTool) -> Self {
        Self { spec: prompted.tool().spec(), prompted: Some(prompted) }
    }

    pub(super) fn must(&self) -> bool {
        self.prompted.is_some_and(|prompted| prompted.must)
    }
}

impl Agent for Assistant {
    fn name(&self) -> &Name {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        let tools = self.agent_tools.iter().filter(|tool| tool.is_background());
        tools.into_iter().find(|tool| tool.name() == target).map(AgentTool::worker)
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        AssistantTurn::begin(self, turn).act().await
    }
}

impl<'w, 't> AssistantTurn<'w, 't> {
    pub(crate) fn begin(agent: &'w Assistant, turn: &'w mut Turn<'t>) -> Self {
        let transcript = turn.transcript();
        let support = ToolSupport::of(agent, transcript.missing_capabilities(turn.me(), agent.model.name()));
        let worded = ViewOptions { calls_as_text: true, ..agent.view.clone() };
        let system = agent.system_for(transcript.task());
        Self {
            agent,
            turn,
            support,
            system,
            worded,
            called: 0,
            agent_calls: BTreeMap::new(),
            forgets: false,
            trace: Vec::new(),
            preface: None,
            is_task: false,
            mode: None,
            cut: None,
            ends: None,
        }
    }

    /// Treats the turn as one about a task, with prompted tools, even if it is private.
    pub(crate) fn about_a_task(self) -> Self {
        Self { is_task: true, ..self }
    }

    /// Runs the turn.
    pub(crate) async fn act(mut self) -> Result<Act> {
        let done = self.speak().await;
        match (done, self.ends) {
            (Err(Error::Interrupt(Interrupt::Waiting)), Some(act)) => Ok(act),
            (done, _) => done,
        }
    }

    async fn speak(&mut self) -> Result<Act> {
        loop {
            let mode = self.call_mode();
            self.mode = mode;
            // Boxed, so that a turn without tools, the most frequent one, does not allocate the space of these.
            let done = match mode {
                None => return self.answer().await,
                Some(CallMode::Native) => Box::pin(self.native()).await?,
                Some(CallMode::Object) => Box::pin(self.object()).await?,
                Some(CallMode::Text) => return Box::pin(self.by_text()).await,
            };
            // A missing capability: continue in the next way.
            if let Some(act) = done {
                return Ok(act);
            }
            if self.call_mode() == mode {
                let (model, who) = (self.agent.model.name().into(), self.turn.me().clone());
                return Err(ConfigError::UnsupportedParameters { model, who }.into());
            }
        }
    }

    /// How tools are called, if there are any. In a private turn, an agent whose model has no function calls answers at
    /// once: a question of the policy is not a task.
    fn call_mode(&self) -> Option<CallMode> {
        let mode = self.begun().unwrap_or_else(|| self.support.calls());
        let quick = mode != CallMode::Native && self.is_private_question();
        (self.has_tools() && !quick).then_some(mode)
    }

    /// The way that this turn used in an earlier run: since then the model or its known capabilities can have changed.
    fn begun(&self) -> Option<CallMode> {
        match self.turn.next_logged()? {
            Body::Prompted { text, .. } if words::begins_objects(text) => Some(CallMode::Object),
            Body::Prompted { text, .. } if words::begins_text(text) => Some(CallMode::Text),
            Body::ModelReplied(reply) if !self.is_private_question() || has_calls(&reply.parts) => {
                Some(CallMode::Native)
            }
            Body::CapabilityMissing { capability: Capability::Tools, .. } => Some(CallMode::Native),
            _ => None,
        }
    }

    /// On replay: whether a model call comes next, and not a prompt.
    pub(super) fn asks_next(&self) -> Option<bool> {
        self.turn
            .next_logged()
            .map(|next| matches!(next, Body::ModelReplied(_) | Body::CapabilityMissing { .. }))
    }

    /// Whether this is a private question and not a task.
    pub(super) fn is_private_question(&self) -> bool {
        self.is_private() && !self.is_task
    }

    pub(super) fn is_private(&self) -> bool {
        self.turn.request().to.is_private()
    }

    pub(super) fn tools(&self) -> Vec<OfferedTool<'w>> {
        let own = self.agent.offered().map(OfferedTool::own);
        // In a private turn, no other participant could run its tools.
        let others = self.agent.advertised.iter().filter(|_| !self.is_private());
        own.chain(others.map(|spec| OfferedTool { spec, prompted: None })).collect()
    }

    fn has_tools(&self) -> bool {
        self.agent.offered().next().is_some() || !self.is_private() && !self.agent.advertised.is_empty()
    }

    /// The task of the turn, as text.
    pub(super) fn task(&self) -> String {
        if let Some(prompt) = &self.turn.request().prompt {
            return prompt.as_ref().to_owned();
        }
        let last = self.turn.last_message().map(|line| line.message.text().into_owned());
        last.filter(|text| !text.trim().is_empty())
            .unwrap_or_else(|| self.turn.transcript().task().to_owned())
    }

    /// Whether the five messages stay in the history.
    pub(super) fn keeps_trace(&self) -> bool {
        self.agent.tool_history == ToolHistory::Full
    }

    /// Whether the output of the single tool is the message.
    pub(super) fn says_outcome(&self) -> bool {
        self.keeps_trace() && self.agent.output_schema.is_none()
    }

    pub(super) fn keep(&mut self, words: impl IntoIterator<Item = HistoryEntry>) {
        if self.keeps_trace() {
            self.trace.extend(words);
        }
    }

    /// Adds a call to the history as the five messages have it.
    pub(super) fn keep_call(&mut self, tool: &str, args: &Value, outcome: &str) {
        self.keep([
            HistoryEntry::Received(words::output_json(tool).into()),
            HistoryEntry::Sent(args.to_string().into()),
            HistoryEntry::Received(outcome.into()),
        ]);
    }

    /// Sends `text` before the next prompt.
    pub(super) const fn preface(&mut self, text: &'static str) {
        self.preface = Some(text);
    }

    /// Sends the model a prompt.
    pub(super) async fn prompt(&mut self, text: impl Into<String>) -> Result<()> {
        let text = text.into();
        let text = self.preface.take().map_or_else(|| text.clone(), |preface| format!("{preface}\n\n{text}"));
        self.turn.prompt(text).await
    }

    /// Sends the model a prompt, and returns its free-text reply.
    pub(super) async fn ask(&mut self, text: impl Into<String>) -> Result<Reply> {
        self.prompt(text).await?;
        self.free().await
    }

    /// A free-text reply.
    pub(super) async fn free(&mut self) -> Result<Reply> {
        let params = Params { schema: None, json: false, ..self.agent.params.clone() };
        self.reply(&params).await
    }

    /// The reply of the model with the agent's parameters.
    pub(super) async fn own(&mut self) -> Result<Reply> {
        let agent = self.agent;
        self.reply(&agent.params).await
    }

    /// A reply in JSON mode, if the model supports it.
    pub(super) async fn json(&mut self) -> Result<Reply> {
        if self.support.json() {
            let params = Params { schema: None, json: true, ..self.agent.params.clone() };
            if let Some(reply) = self.attempt(&[], &params).await? {
                return Ok(reply);
            }
        }
        self.free().await
    }

    /// A reply that satisfies the schema; `None` if the model does not support schemas.
    pub(super) async fn with_schema(&mut self, schema: Value) -> Result<Option<Reply>> {
        let params = Params { schema: Some(schema), json: false, ..self.agent.params.clone() };
        self.attempt(&[], &params).await
    }

    async fn reply(&mut self, params: &Params) -> Result<Reply> {
        let compaction = self.agent.active_compaction();
        let (turn, ask) = self.asking(&[], params);
        // Other missing capabilities do not matter here.
        let reply = loop {
            let is_missing = matches!(turn.next_logged(), Some(Body::CapabilityMissing { .. }));
            let how = if is_missing { Ask::Try } else { Ask::Plain };
            if let ModelAttempt::Reply(reply) = compaction::ask(compaction, turn, ask, how).await? {
                break reply;
            }
        };
        self.whole(reply, &[], params).await
    }

    /// The reply, continued where it was truncated, and marked if it still is.
    async fn whole(&mut self, reply: Reply, tools: &[ToolSpec], params: &Params) -> Result<Reply> {
        let limit = self.agent.continuations(params);
        let (turn, ask) = self.asking(tools, params);
        let reply = continued(turn, ask, reply, limit).await?;
        self.cut = Some(reply.finish.clone()).filter(FinishReason::is_cut);
        Ok(reply)
    }

    /// Calls the model; `None` if a capability is missing that can be worked around.
    pub(super) async fn attempt(&mut self, tools: &[ToolSpec], params: &Params) -> Result<Option<Reply>> {
        let how = if self.support.is_auto() { Ask::Try } else { Ask::Plain };
        let compaction = self.agent.active_compaction();
        let (turn, ask) = self.asking(tools, params);
        match compaction::ask(compaction, turn, ask, how).await? {
            ModelAttempt::Reply(reply) => self.whole(reply, tools, params).await.map(Some),
            ModelAttempt::Unsupported(capability) => {
                self.support.lose(capability);
                Ok(None)
            }
        }
    }

    fn asking<'a>(
        &'a mut self,
        tools: &'a [ToolSpec],
        params: &'a Params,
    ) -> (&'a mut Turn<'t>, ModelCall<'a>) {
        let mode = self.mode.unwrap_or_else(|| self.support.calls());
        let has_words = !self.agent.specs.is_empty() && mode != CallMode::Native;
        let view = if has_words { &self.worded } else { &self.agent.view };
        let ask = ModelCall {
            model: &self.agent.model,
            system: self.system.as_deref(),
            tools,
            params,
            view,
            compaction: None,
        };
        (&mut *self.turn, ask)
    }

    /// Runs one of the agent's tools, called by text. Returns its result and whether a person rejected it.
    pub(super) async fn run(&mut self, call: ToolCall) -> Result<(ToolResult, bool)> {
        let finished = self.call(std::slice::from_ref(&call)).await?.pop();
        let Finished { outcome, is_rejected, .. } =
            finished.ok_or_else(|| Error::Bug("a call has no outcome".into()))?;
        Ok((outcome, is_rejected))
    }

    /// Runs calls of the agent's own tools, except for those that a person rejects. While an approval is pending it is
    /// an error, and the turn ends with the noted act.
    pub(super) async fn call(&mut self, calls: &[ToolCall]) -> Result<Vec<Finished>> {
        let me = self.turn.me().clone();
        let calls = calls.iter().map(|call| (me.clone(), call.clone())).collect();
        let runner = self.agent.runner(self.agent.own_tools());
        match runner.decide(self.turn, calls).await {
            ControlFlow::Continue(decided) => {
                let tools = self.agent_tool(&decided.made()).await?;
                let me = self.turn.me().clone();
                decided.run(self.turn, &tools, &me).await
            }
            ControlFlow::Break(act) => {
                self.ends = Some(act);
                Err(Error::Interrupt(Interrupt::Waiting))
            }
        }
    }

    /// Runs the called agent tools one after the other; returns the tools, of which those return the results.
    async fn agent_tool(&mut self, calls: &[ToolCall]) -> Result<Vec<AnyTool>> {
        let mut tools = self.agent.callable.clone();
        for agent_tool in &self.agent.agent_tools {
            let mut outcomes = Vec::new();
            for call in calls.iter().filter(|call| call.tool == agent_tool.name()) {
                let asked = self.agent_calls.entry(agent_tool.name()).or_default();
                let outcome = agent_tool.ask(self.turn, call, *asked, self.agent.max_background).await?;
                *asked += 1;
                outcomes.push((call.id.clone(), outcome));
            }
            let others = |tool: &AnyTool| tool.spec().name != agent_tool.name();
            tools.retain(others);
            tools.push(agent_tool.found(outcomes));
        }
        for spec in self.agent.task_specs() {
            let mut outcomes = Vec::new();
            for call in calls.iter().filter(|call| call.tool == spec.name && call.args.is_object()) {
                outcomes.push((call.id.clone(), background::run(self.turn, call).await?));
            }
            tools.retain(|tool| tool.spec().name != spec.name);
            tools.push(known(spec.clone(), outcomes, "nothing was done"));
        }
        Ok(tools)
    }

    /// A call made by text, with a generated id.
    pub(super) fn new_call(&mut self, tool: &str, args: Value) -> ToolCall {
        self.called += 1;
        let turn = self.turn.transcript().turns_begun_by(self.turn.me());
        ToolCall { id: format!("text-{turn}-{}", self.called), tool: tool.to_owned(), args }
    }

    /// Makes `parts` the message, and keeps only what should stay of the turn in the history.
    pub(super) async fn say(&mut self, parts: Vec<Part>) -> Result<Act> {
        if self.keeps_trace() && !self.trace.is_empty() {
            self.trace.push(HistoryEntry::Sent(parts_text(&parts).into()));
        }
        self.end(parts).await
    }

    /// Makes the output of a tool the message; with a full tool history it is the last entry.
    pub(super) async fn say_outcome(&mut self, parts: Vec<Part>) -> Result<Act> {
        // This text is not from the model.
        self.cut = None;
        self.end(parts).await
    }

    async fn end(&mut self, parts: Vec<Part>) -> Result<Act> {
        if self.forgets {
            let mut words = std::mem::take(&mut self.trace);
            if words.is_empty() {
                words.push(HistoryEntry::Sent(parts_text(&parts).into()));
            }
            words.retain(|words| !entry_text(words).trim().is_empty());
            self.turn.remember(words).await?;
        }
        Ok(marked(parts, self.cut.clone()))
    }

    /// Ends the chat because of repeated errors of the model. Nothing of the turn stays in the history.
    pub(super) async fn give_up(&mut self, of: ModelMistake, limit: u32) -> Result<Act> {
        self.turn.remember(Vec::new()).await?;
        let (who, limit) = (self.turn.me().clone(), u64::from(limit));
        Ok(Act::Stop(StopReason::from(LibraryStopReason::Errors { who, of, limit })))
    }
}

/// Asks for the rest of a text that reached the token limit, at most `limit` times.
pub(crate) async fn continued(
    turn: &mut Turn<'_>,
    ask: ModelCall<'_>,
    mut reply: Reply,
    limit: u32,
) -> Result<Reply> {
    for _ in 0..limit {
        let is_text = reply.calls().is_empty() && !reply.text().trim().is_empty();
        if reply.finish != FinishReason::Length || !is_text {
            break;
        }
        match Box::pin(turn.continue_reply(ask)).await? {
            Some(rest) if !rest.text().trim().is_empty() || !rest.calls().is_empty() => {
                reply = reply.continued(rest);
            }
            _ => break,
        }
    }
    Ok(reply)
}

/// Makes `parts` the message, marked if it was truncated; blank ones are a pass.
pub(crate) fn marked(mut parts: Vec<Part>, cut: Option<FinishReason>) -> Act {
    if parts.iter().all(Part::is_blank) {
        return Act::Pass;
    }
    parts.extend(cut.map(Part::Cut));
    Act::Say(parts)
}

fn has_calls(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::ToolCall(_)))
}

fn entry_text(words: &HistoryEntry) -> &str {
    match words {
        HistoryEntry::Received(text) | HistoryEntry::Sent(text) => text,
    }
}

/// The message of a reply: no reasoning, and no calls except `others`, which other participants run.
pub(super) fn spoken(reply: &Reply, others: &[ToolCall]) -> Vec<Part> {
    let said = |part: &&Part| match part {
        Part::ToolCall(call) => others.iter().any(|other| other.id == call.id),
        Part::Thought(_) => false,
        part => !part.is_blank(),
    };
    let said = reply.parts.iter().filter(said);
    // Sized exactly, because it is kept as long as the conversation.
    let mut parts = Vec::with_capacity(said.clone().count());
    parts.extend(said.cloned());
    parts
}

/// `parts` as one text, with values as JSON.
pub(super) fn parts_text(parts: &[Part]) -> String {
    let text = text_of(parts);
    if !text.trim().is_empty() {
        return text.into_owned();
    }
    let value = |part: &Part| match part {
        Part::Data(value) => Some(value.to_string()),
        Part::Media(media) => Some(format!("({}: {})", media.media_type, media.url)),
        _ => None,
    };
    parts.iter().filter_map(value).collect::<Vec<_>>().join("\n\n")
}
