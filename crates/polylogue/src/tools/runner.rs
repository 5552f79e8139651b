//! Runs tool calls, after approval where it is needed: those of an assistant's own model, of reasoning agents, and those
//! that other agents asked for.

use std::ops::ControlFlow;

use polylogue_core::{
    Act, AnyTool, InputRequest, Name, Part, QuestionKind, Result, Tool, ToolCall, ToolCx, ToolError,
    ToolResult, ToolSpec, Turn,
};
use serde_json::Value;

use crate::json_schema::check;

use super::approval::{
    Approval, ApprovalRequest, Verdict, asked, is_code, rejected, request, visible, was_asked,
};
use super::known::known;
use super::search::{is_harmless, unwrapped};

/// Arguments up to this length, in characters, are on the line of the question.
const SHORT: usize = 160;

/// Tools, and which calls of them need approval.
#[derive(Clone, Copy)]
pub(crate) struct Runner<'a> {
    pub(crate) tools: &'a [AnyTool],
    pub(crate) approval: &'a Approval<ApprovalRequest>,
    /// Whether the model [searches](super::search) its tools.
    pub(crate) searches: bool,
}

/// A call that was run, or rejected.
pub(crate) struct Finished {
    /// As it was made: with the arguments of the person, if they edited them.
    pub(crate) call: ToolCall,
    pub(crate) outcome: ToolResult,
    pub(crate) is_rejected: bool,
}

impl Runner<'_> {
    /// Runs calls of `who`, and returns them finished, in order; breaks with the act that ends the turn while an
    /// approval is pending.
    pub(crate) async fn run(
        &self,
        turn: &mut Turn<'_>,
        who: &Name,
        calls: &[ToolCall],
    ) -> Result<ControlFlow<Act, Vec<Finished>>> {
        let calls = calls.iter().map(|call| (who.clone(), call.clone())).collect();
        self.run_logging(turn, calls, who).await
    }

    /// As [`run`](Self::run), for calls of several agents.
    pub(crate) async fn run_for(
        &self,
        turn: &mut Turn<'_>,
        calls: Vec<(Name, ToolCall)>,
    ) -> Result<ControlFlow<Act, Vec<Finished>>> {
        let me = turn.me().clone();
        self.run_logging(turn, calls, &me).await
    }

    async fn run_logging(
        &self,
        turn: &mut Turn<'_>,
        calls: Vec<(Name, ToolCall)>,
        logged: &Name,
    ) -> Result<ControlFlow<Act, Vec<Finished>>> {
        Ok(match self.decide(turn, calls).await {
            ControlFlow::Continue(decided) => {
                ControlFlow::Continue(decided.run(turn, self.tools, logged).await?)
            }
            ControlFlow::Break(act) => ControlFlow::Break(act),
        })
    }

    /// Asks about each call of its tools that needs approval. None runs before all are decided. A call by the tool of a
    /// [search](super::search) is one of the named tool from here on.
    pub(crate) async fn decide(
        &self,
        turn: &mut Turn<'_>,
        calls: Vec<(Name, ToolCall)>,
    ) -> ControlFlow<Act, Decided> {
        let mut decided = Vec::with_capacity(calls.len());
        let outside = turn.outside().await;
        for (who, call) in calls {
            let call = if self.searches { unwrapped(call, self.tools) } else { call };
            let is_harmless = self.searches && is_harmless(&call.tool);
            let tool = self.tools.iter().find(|tool| tool.spec().name == call.tool);
            let tool = tool.filter(|_| !is_harmless && call.args.is_object());
            let mut wanted = ApprovalRequest { who, call, outside: outside.clone() };
            match tool
                .map_or(Ok(Decision::Made), |tool| decide(self.approval, turn, tool.spec(), &mut wanted))
            {
                Ok(decision) => decided.push((wanted.who, wanted.call, decision)),
                Err(act) => return ControlFlow::Break(act),
            }
        }
        ControlFlow::Continue(Decided(decided))
    }
}

/// Calls with decisions.
pub(crate) struct Decided(Vec<(Name, ToolCall, Decision)>);

enum Decision {
    Made,
    /// With arguments edited by the person.
    Edited,
    /// Not made, with the reason.
    Rejected(String),
    /// Not made, with what is wrong with its arguments: a person would approve what cannot run.
    Invalid(String),
}

impl Decision {
    /// Why the call is not made.
    fn why_not(&self) -> Option<&str> {
        match self {
            Self::Rejected(why) | Self::Invalid(why) => Some(why),
            Self::Made | Self::Edited => None,
        }
    }
}

impl Decided {
    /// The calls that are made.
    pub(crate) fn made(&self) -> Vec<ToolCall> {
        let made = self.0.iter().filter(|(.., decision)| decision.why_not().is_none());
        made.map(|(_, call, _)| call.clone()).collect()
    }

    /// Makes the approved calls with `tools`. The other calls of the agent `logged` get results in the log, too, which the
    /// history of every call needs; those of others are answered in the agent's message alone.
    pub(crate) async fn run(
        self,
        turn: &mut Turn<'_>,
        tools: &[AnyTool],
        logged: &Name,
    ) -> Result<Vec<Finished>> {
        let unmade = self.unmade(logged);
        if !unmade.is_empty() {
            let calls: Vec<ToolCall> = unmade.iter().map(|(call, _)| call.clone()).collect();
            turn.call_tools(&refusals(&unmade), &calls).await?;
        }
        let mut made = turn.call_tools(&self.noting(tools), &self.made()).await?.into_iter();
        let finished = self.0.into_iter().filter_map(|(_, call, decision)| {
            let (outcome, is_rejected) = match decision {
                Decision::Rejected(why) => (ToolResult::failed(why), true),
                Decision::Invalid(why) => (ToolResult::failed(why), false),
                Decision::Made | Decision::Edited => (made.next()?, false),
            };
            Some(Finished { call, outcome, is_rejected })
        });
        Ok(finished.collect())
    }

    /// The calls of `whose` that are not made, with reasons.
    fn unmade(&self, whose: &Name) -> Vec<(ToolCall, String)> {
        let own = self.0.iter().filter(|(who, ..)| who == whose);
        let unmade =
            own.filter_map(|(_, call, decision)| Some((call.clone(), decision.why_not()?.to_owned())));
        unmade.collect()
    }

    /// `tools` that add a note to the result when the call was edited.
    fn noting(&self, tools: &[AnyTool]) -> Vec<AnyTool> {
        let edited = self.0.iter().filter(|(.., decision)| matches!(decision, Decision::Edited));
        let edited: Vec<&ToolCall> = edited.map(|(_, call, _)| call).collect();
        let noting = |tool: &AnyTool| {
            let of_it = edited.iter().filter(|call| call.tool == tool.spec().name);
            let ids: Vec<String> = of_it.map(|call| call.id.clone()).collect();
            if ids.is_empty() { tool.clone() } else { AnyTool::new(EditNoteTool { tool: tool.clone(), ids }) }
        };
        tools.iter().map(noting).collect()
    }
}

fn decide(
    approval: &Approval<ApprovalRequest>,
    turn: &mut Turn<'_>,
    spec: &ToolSpec,
    wanted: &mut ApprovalRequest,
) -> Result<Decision, Act> {
    if approval.asks(wanted)
        && !was_asked(turn, || question(wanted))
        && let Err(flaw) = check(&wanted.call.args, &spec.parameters)
    {
        return Ok(Decision::Invalid(wrong_arguments(spec, &flaw)));
    }
    let mut args = None;
    let takes = |text: &str, _: bool| {
        args = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
        let Some(args) = &args else { return Ok(false) };
        check(args, &spec.parameters).map_err(|flaw| wrong_arguments(spec, &flaw))?;
        let call = ToolCall { args: args.clone(), ..wanted.call.clone() };
        approval.check_edited(&ApprovalRequest { call, ..wanted.clone() }).map(|()| true)
    };
    let verdict = approval.of(turn, wanted, || question(wanted), takes)?;
    Ok(match (verdict, args) {
        (Verdict::Rejected(why), _) => Decision::Rejected(rejected("This call was not made", &why)),
        (Verdict::Edited(_), Some(args)) => {
            wanted.call.args = args;
            Decision::Edited
        }
        (Verdict::Run | Verdict::Edited(_), _) => Decision::Made,
    })
}

fn wrong_arguments(spec: &ToolSpec, flaw: &str) -> String {
    format!("The arguments of `{}` are wrong: {flaw}", spec.name)
}

fn question(ApprovalRequest { who, call, .. }: &ApprovalRequest) -> InputRequest {
    let calls = format!("`{who}` calls `{}`", visible(&call.tool));
    if call.args.as_object().is_some_and(serde_json::Map::is_empty) {
        return request(format!("{calls} without arguments."), QuestionKind::Approval, call.clone());
    }
    let (rest, code) = with_code_apart(&call.args);
    let mut blocks: Vec<(String, String)> = code;
    if let Some(rest) = rest {
        let brief = rest.to_string();
        // Long arguments are easier to read and edit on several lines.
        let args = if brief.chars().count() <= SHORT { brief } else { format!("{rest:#}") };
        blocks.insert(0, (String::new(), args));
    }
    request(asked(&format!("{calls} with"), &blocks), QuestionKind::Approval, call.clone())
}

/// The arguments without those that are [code](is_code) or another text that JSON would escape, and these, each with its name.
fn with_code_apart(args: &Value) -> (Option<Value>, Vec<(String, String)>) {
    let Some(fields) = args.as_object() else { return (Some(args.clone()), Vec::new()) };
    let is_escaped = |value: &Value| value.as_str().is_some_and(|text| text.contains(['\n', '"', '\\']));
    let (code, rest): (Vec<_>, Vec<_>) =
        fields.iter().partition(|(name, value)| is_code(name, value) || is_escaped(value));
    let rest: serde_json::Map<_, _> =
        rest.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let code = code
        .into_iter()
        .filter_map(|(name, value)| Some((format!("`{}`", visible(name)), value.as_str()?.to_owned())));
    let code: Vec<_> = code.collect();
    ((code.is_empty() || !rest.is_empty()).then(|| rest.into()), code)
}

/// A tool that adds a note to the results of edited calls.
struct EditNoteTool {
    tool: AnyTool,
    /// The edited calls.
    ids: Vec<String>,
}

impl Tool for EditNoteTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        if !self.ids.iter().any(|id| id == cx.id) {
            return self.tool.call(args, cx).await;
        }
        let note = format!("(Before it was made, its arguments were changed to: {args})");
        match self.tool.call(args, cx).await {
            Ok(mut outcome) => {
                outcome.parts.push(Part::text(note));
                Ok(outcome)
            }
            Err(error) => Err(ToolError(format!("{error}\n{note}"))),
        }
    }
}

/// Tools that return the results of calls that are not made, so that every call of a model has a result in the log.
fn refusals(rejected: &[(ToolCall, String)]) -> Vec<AnyTool> {
    let outcome = |(call, why): &(ToolCall, String)| (call.id.clone(), ToolResult::failed(why.clone()));
    let refusal = |(call, _): &(ToolCall, String)| {
        // A rejection has no side effects.
        let spec = ToolSpec::new(call.tool.as_str(), "", Value::Null).repeatable();
        known(spec, rejected.iter().map(outcome).collect(), "This call was not made.")
    };
    rejected.iter().map(refusal).collect()
}
