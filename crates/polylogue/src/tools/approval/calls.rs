//! Approval of tool calls.

use polylogue_core::{Act, AnyTool, Call, Outcome, Part, Tool, ToolCx, ToolError, ToolSpec, Turn};
use serde_json::Value;

use super::{Approval, Verdict, Wanted, asked, choices, rejected, visible};

/// Arguments up to this length, in characters, are on the line of the question.
const SHORT: usize = 160;

/// Calls with decisions.
pub(crate) struct Decided(Vec<(Call, Decision)>);

enum Decision {
    Made,
    /// With arguments edited by the person.
    Edited,
    /// Not made, with the reason.
    Rejected(String),
}

impl Decided {
    /// Asks about each call that `can_be_made` and needs approval; `Err` is how the turn ends while an answer is
    /// pending.
    pub(crate) async fn of(
        approval: &Approval<Wanted>,
        turn: &mut Turn<'_>,
        wanted: Vec<Wanted>,
        can_be_made: impl Fn(&Call) -> bool,
    ) -> Result<Self, Act> {
        let mut decided = Vec::with_capacity(wanted.len());
        let outside = turn.outside().await;
        for mut wanted in wanted {
            wanted.outside.clone_from(&outside);
            let fate = if can_be_made(&wanted.call) && wanted.call.args.is_object() {
                decide(approval, turn, &mut wanted)?
            } else {
                Decision::Made
            };
            decided.push((wanted.call, fate));
        }
        Ok(Self(decided))
    }

    /// Makes the approved calls with `tools`, and returns the outcomes of all calls. Rejected calls get outcomes in the
    /// log, too.
    pub(crate) async fn carry_out(
        self,
        turn: &mut Turn<'_>,
        tools: &[AnyTool],
    ) -> polylogue_core::Result<Vec<Outcome>> {
        let rejected = self.rejected();
        if !rejected.is_empty() {
            let calls: Vec<Call> = rejected.iter().map(|(call, _)| call.clone()).collect();
            turn.call(&refusals(&rejected), &calls).await?;
        }
        let made = turn.call(&self.noting(tools), &self.made()).await?;
        Ok(self.outcomes(made))
    }

    /// The calls that are made.
    pub(crate) fn made(&self) -> Vec<Call> {
        let made = self.0.iter().filter(|(_, fate)| !matches!(fate, Decision::Rejected(_)));
        made.map(|(call, _)| call.clone()).collect()
    }

    /// The rejected calls, with reasons.
    fn rejected(&self) -> Vec<(Call, String)> {
        let rejected = self.0.iter().filter_map(|(call, fate)| match fate {
            Decision::Rejected(why) => Some((call.clone(), why.clone())),
            Decision::Made | Decision::Edited => None,
        });
        rejected.collect()
    }

    /// `tools` that add a note to the outcome when the call was edited.
    pub(crate) fn noting(&self, tools: &[AnyTool]) -> Vec<AnyTool> {
        let edited = self.0.iter().filter(|(_, fate)| matches!(fate, Decision::Edited));
        let edited: Vec<&Call> = edited.map(|(call, _)| call).collect();
        let noting = |tool: &AnyTool| {
            let of_it = edited.iter().filter(|call| call.tool == tool.spec().name);
            let ids: Vec<String> = of_it.map(|call| call.id.clone()).collect();
            if ids.is_empty() { tool.clone() } else { AnyTool::new(Noting { tool: tool.clone(), ids }) }
        };
        tools.iter().map(noting).collect()
    }

    /// The outcomes of all calls, given those of the calls that were made.
    pub(crate) fn outcomes(self, made: Vec<Outcome>) -> Vec<Outcome> {
        let mut made = made.into_iter();
        let outcomes = self.0.into_iter().filter_map(|(_, fate)| match fate {
            Decision::Rejected(why) => Some(Outcome::failed(why)),
            Decision::Made | Decision::Edited => made.next(),
        });
        outcomes.collect()
    }
}

fn decide(approval: &Approval<Wanted>, turn: &mut Turn<'_>, wanted: &mut Wanted) -> Result<Decision, Act> {
    let mut args = None;
    let takes = |text: &str, _: bool| {
        args = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
        args.is_some()
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

fn question(Wanted { who, call, .. }: &Wanted) -> (String, Call) {
    let choices = choices("a JSON object takes the place of its arguments");
    let (tool, brief) = (visible(&call.tool), call.args.to_string());
    // Long arguments are easier to read and edit on several lines.
    let args = if brief.chars().count() <= SHORT { brief } else { format!("{:#}", call.args) };
    (asked(&format!("`{who}` calls `{tool}` with"), &args, &choices), call.clone())
}

/// A tool that adds a note to the outcomes of edited calls.
struct Noting {
    tool: AnyTool,
    /// The edited calls.
    ids: Vec<String>,
}

impl Tool for Noting {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<Outcome, ToolError> {
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

/// Tools that return the outcomes of rejected calls, so that every call of a model has an outcome in the log.
fn refusals(rejected: &[(Call, String)]) -> Vec<AnyTool> {
    let refusal = |(call, _): &(Call, String)| {
        // A rejection has no side effects.
        let spec = ToolSpec::new(call.tool.as_str(), "", Value::Null).repeatable();
        AnyTool::new(Refusal { spec, rejected: rejected.to_vec() })
    };
    rejected.iter().map(refusal).collect()
}

struct Refusal {
    spec: ToolSpec,
    rejected: Vec<(Call, String)>,
}

impl Tool for Refusal {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Value, cx: &ToolCx<'_>) -> Result<Outcome, ToolError> {
        let why = self.rejected.iter().find(|(call, _)| call.id == cx.id).map(|(_, why)| why.clone());
        Err(ToolError(why.unwrap_or_else(|| "This call was not made.".into())))
    }
}
