//! ReAct: reasoning and tool calls in rounds.

use std::ops::ControlFlow;

use crate::stop::LibraryStopReason;
use polylogue_core::{
    Act, Agent, Capability, Error, FinishReason, Model, ModelAttempt, ModelCall, Name, Params, Part, Reply,
    Result, StopReason, ToolCall, ToolResult, ToolSpec, ToolStatus, Turn,
};
use serde_json::Value;

use crate::Assistant;
use crate::agents::compaction::{self, Ask};
use crate::agents::tooling::{continued, marked};
use crate::tools::runner::Finished;

/// An agent that calls tools in rounds until it has an answer.
///
/// A model without function calls writes its calls as text; any other does so with [`in_text`](Self::in_text).
///
/// It uses the model, tools, parameters and view of an [`Assistant`]. After the last round it ends the chat with
/// [`LibraryStopReason::Rounds`], or, with [`summarize`](Self::summarize), calls the model once more without tools. The result of
/// a tool that [ends the turn](ToolSpec::ends_turn) is the message.
#[derive(Debug, Clone)]
#[must_use]
pub struct React {
    agent: Assistant,
    rounds: u32,
    summarize: bool,
    in_text: bool,
}

const SUM_UP: &str = "You cannot call any more tools. Answer now with what you know.";
const OBSERVED: &str = "Observation:";

impl React {
    /// Default limit on rounds of tool calls per turn.
    pub const DEFAULT_MAX_ROUNDS: u32 = 5;

    /// Runs `agent` in rounds.
    pub const fn new(agent: Assistant) -> Self {
        Self { agent, rounds: Self::DEFAULT_MAX_ROUNDS, summarize: false, in_text: false }
    }

    /// Sets the limit on rounds of tool calls per turn; the model is called once more than that. 0 is allowed.
    pub fn max_rounds(self, rounds: u32) -> Self {
        Self { rounds, ..self }
    }

    /// Calls the model once more after the last round, without tools, for an answer.
    pub fn summarize(self) -> Self {
        Self { summarize: true, ..self }
    }

    /// Makes the model write `Action:` and `Action Input:`, and sends it `Observation:`, instead of native function
    /// calls. The format and the tools are described at the end of the system message.
    pub fn in_text(self) -> Self {
        Self { in_text: true, ..self }
    }

    /// Returns the assistants by which its model is called: with tools, in text, and without tools. For inspection.
    pub fn assistants(&self) -> [Assistant; 3] {
        let textual = self.clone();
        let params = self.call_mode("", true).params;
        let in_text = self.agent.clone().without_tools().params(params);
        let in_text =
            in_text.system_from(move |task| textual.call_mode(task, true).system.unwrap_or_default());
        [self.agent.clone(), in_text, self.agent.clone().without_tools()]
    }

    fn call_mode(&self, task: &str, in_text: bool) -> CallMode {
        let own = self.agent.system_for(task).map(|text| text.to_string());
        let mut params = self.agent.model_params().clone();
        if !in_text {
            return CallMode { in_text, system: own, params };
        }
        if !params.stop.iter().any(|stop| stop == OBSERVED) {
            params.stop.push(OBSERVED.into());
        }
        let form = instruction(self.agent.specs());
        let system = own.map_or_else(|| form.clone(), |own| format!("{own}\n\n{form}"));
        CallMode { in_text, system: Some(system), params }
    }

    /// Calls the model; switches to text if it has no function calls.
    async fn ask(&self, turn: &mut Turn<'_>, mode: &mut CallMode, with_tools: bool) -> Result<Reply> {
        loop {
            let tools = if with_tools && !mode.in_text { self.agent.specs() } else { &[] };
            let (system, params, view) = (mode.system.as_deref(), &mode.params, self.agent.view_options());
            let ask = ModelCall { model: &self.agent.model, system, tools, params, view, compaction: None };
            match compaction::ask(self.agent.active_compaction(), turn, ask, Ask::Try).await? {
                ModelAttempt::Reply(reply) => {
                    return continued(turn, ask, reply, self.agent.continuations(params)).await;
                }
                ModelAttempt::Unsupported(Capability::Tools) if !mode.in_text => {
                    *mode = self.call_mode(turn.transcript().task(), true)
                }
                ModelAttempt::Unsupported(lacks) => {
                    let (who, model) = (self.name(), self.agent.model.name());
                    return Err(Error::agent(format!("the model `{model}` of `{who}` is unable of {lacks}")));
                }
            }
        }
    }

    /// Whether the model is known to lack function calls.
    fn lacks_tools(&self, turn: &Turn<'_>) -> bool {
        let known = self.agent.model.capabilities().has(Capability::Tools) == Some(false);
        let mut found = turn.transcript().missing_capabilities(turn.me(), self.agent.model.name());
        !self.agent.specs().is_empty() && (known || found.any(|lacks| lacks == Capability::Tools))
    }

    /// Runs the calls. Returns the act that ends the turn, if a tool ends it or an approval is pending.
    async fn act_on(&self, turn: &mut Turn<'_>, mode: &CallMode, calls: &[ToolCall]) -> Result<Option<Act>> {
        let runner = self.agent.runner(&self.agent.callable);
        let finished = match runner.run(turn, self.name(), calls).await? {
            ControlFlow::Continue(finished) => finished,
            ControlFlow::Break(act) => return Ok(Some(act)),
        };
        if mode.in_text {
            let texts: Vec<_> = finished.iter().map(|call| observed(&call.outcome)).collect();
            turn.prompt(format!("{OBSERVED} {}", texts.join("\n"))).await?;
        }
        let ends = |tool: &str| self.agent.specs().iter().any(|spec| spec.name == *tool && spec.ends_turn);
        let is_last = |done: &Finished| ends(&done.call.tool) && done.outcome.status == ToolStatus::Done;
        Ok(finished.into_iter().find(is_last).map(|done| Act::Say(done.outcome.for_model())))
    }
}

impl Agent for React {
    fn name(&self) -> &Name {
        Agent::name(&self.agent)
    }

    fn description(&self) -> &str {
        Agent::description(&self.agent)
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let in_text = self.in_text || self.lacks_tools(turn);
        let mut mode = self.call_mode(turn.transcript().task(), in_text);
        for round in 0..=self.rounds {
            let reply = self.ask(turn, &mut mode, true).await?;
            let id = format!("act-{}-{round}", turn.transcript().turns_begun_by(turn.me()));
            let calls =
                if mode.in_text { written(&reply.text(), &id).into_iter().collect() } else { reply.calls() };
            if calls.is_empty() {
                return Ok(said(reply, mode.in_text));
            }
            if round < self.rounds
                && let Some(act) = self.act_on(turn, &mode, &calls).await?
            {
                return Ok(act);
            }
        }
        if !self.summarize {
            return Ok(Act::Stop(StopReason::from(LibraryStopReason::Rounds {
                limit: u64::from(self.rounds),
            })));
        }
        turn.prompt(SUM_UP).await?;
        let reply = self.ask(turn, &mut mode, false).await?;
        Ok(said(reply, mode.in_text))
    }
}

/// How the model is called in this turn.
struct CallMode {
    in_text: bool,
    system: Option<String>,
    params: Params,
}

/// The message of a reply: no calls, and of a text only the answer.
fn said(reply: Reply, in_text: bool) -> Act {
    let cut = Some(reply.finish.clone()).filter(FinishReason::is_cut);
    if in_text {
        let text = reply.text();
        let answer = text.rsplit_once("Final Answer:").map_or(&*text, |(_, answer)| answer).trim();
        return marked(vec![Part::text(answer)], cut);
    }
    let is_said = |part: &Part| !matches!(part, Part::ToolCall(_));
    marked(reply.parts.into_iter().filter(is_said).collect(), cut)
}

fn observed(outcome: &ToolResult) -> String {
    let words = |part: &Part| match part {
        Part::Text(text) => text.to_string(),
        Part::Data(value) => value.to_string(),
        _ => String::new(),
    };
    outcome.for_model().iter().map(words).collect::<Vec<_>>().join("\n")
}

fn instruction(tools: &[ToolSpec]) -> String {
    let tool = |spec: &ToolSpec| format!("- {}: {} Input: {}", spec.name, spec.description, spec.parameters);
    let tools: Vec<String> = tools.iter().map(tool).collect();
    format!(
        "You can use these tools:\n{}\n\nTo use one, write:\nThought: what you think\nAction: the name of the tool\n\
         Action Input: its input, a JSON object\n\nThen you are told its `{OBSERVED}`. When you know the answer, write:\n\
         Thought: what you think\nFinal Answer: the answer",
        tools.join("\n")
    )
}

/// The call written in a text. Input that is not a JSON object stays a string, and is refused when the call runs.
fn written(text: &str, id: &str) -> Option<ToolCall> {
    let (_, action) = text.split_once("Action:").filter(|(before, _)| !before.contains("Final Answer:"))?;
    let (tool, rest) = action.split_once('\n').unwrap_or((action, ""));
    let input = rest.split_once("Action Input:").map_or("{}", |(_, input)| input);
    let input = input.split(OBSERVED).next().unwrap_or_default().trim();
    let bare = input.trim_start_matches("```json").trim_matches('`').trim();
    let args = serde_json::from_str::<Value>(bare).ok().filter(Value::is_object);
    let args = args.unwrap_or_else(|| Value::from(input));
    Some(ToolCall { id: id.to_owned(), tool: tool.trim().trim_matches('`').to_owned(), args })
}
