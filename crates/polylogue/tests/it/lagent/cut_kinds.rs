//! Every kind of composite, cut after every event and run again in fresh agents: the log is the same, and no finished model call is
//! made again. Each is called twice in one session, so that inner chats are reopened.

use polylogue::agents::reason::{BestOfN, PlanAndSolve, React, Refine, Rewoo};
use polylogue::layers::hook::MessageHooks;
use polylogue::layers::parse::{ActionExecutor, CallRecord, Parsed, ParsedBlock, RunState, ToolBlock};
use polylogue::tools::GetHistory;
use polylogue::tools::tool::Finish;
use polylogue::{Act, Agent, AnyModel, Assistant, Message, Name, Result, Turn};
use polylogue_core::{AgentCall, AnyAgent, AnyStore, Body, ModelCall, ToolCall};
use polylogue_store::Memory;
use polylogue_test::cut::Calls;
use serde_json::json;

use crate::common::script;
use crate::lagent::cut::cut;
use crate::lagent::flows::{Panel, at_once, diamond, each_part, in_order, one_of, repeat};
use crate::lagent::parts::agent;

/// Calls what `make` makes of a model that speaks by `steps` twice, and cuts it everywhere; how often its model is asked is counted
/// there. A text after `!` is a tool that is called. Returns how many events there were.
async fn plays(kind: &str, steps: &[(&str, &str)], make: impl Fn(&AnyModel) -> AnyAgent) -> usize {
    let step = |(who, text): &(&str, &str)| match text.strip_prefix('!') {
        Some(tool) => json!({*who: {"calls": [{"tool": tool, "args": {}}]}}),
        None => json!({*who: text}),
    };
    let script = script(&json!(steps.iter().map(step).collect::<Vec<_>>()).to_string());
    let agents = |calls: &Calls| vec![make(&AnyModel::new(calls.through(script.model("test"))))];
    let events = cut(&|| AnyStore::new(Memory::new()), &agents, &[(0, "first"), (0, "second")]).await;
    let sampled = events.iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count();
    assert_eq!(sampled, steps.len(), "{kind}: all of the script is played");
    events.len()
}

/// As [`plays`], with the same steps in both calls.
async fn resumes(kind: &str, steps: &[(&str, &str)], make: impl Fn(&AnyModel) -> AnyAgent) -> usize {
    plays(kind, &[steps, steps].concat(), make).await
}

const AB: [(&str, &str); 2] = [("a", "from a"), ("b", "from b")];

fn agents<const N: usize>(names: [&str; N], model: &AnyModel) -> [AnyAgent; N] {
    names.map(|who| AnyAgent::new(agent(who, model)))
}

#[tokio::test]
async fn a_sequence_resumes() {
    let steps = [("a", "one"), ("b", "two"), ("a", "three")];
    let make = |model: &AnyModel| in_order("seq", agents(["a", "b"], model), 3);
    assert!(resumes("sequence", &steps, make).await > 20);
    resumes("sequence in a sequence", &AB, |model| {
        let [a, b] = agents(["a", "b"], model);
        in_order("outer", [a, in_order("inner", [b], 1)], 2)
    })
    .await;
}

#[tokio::test]
async fn a_list_and_a_map_resume() {
    let steps = [("b", "one"), ("a", "two"), ("b", "three")];
    resumes("list and map", &steps, |model| {
        let [a, b] = agents(["a", "b"], model);
        let (items, desks) = (vec![a.clone(), b.clone()], vec![("news", a), ("sport", b)]);
        AnyAgent::new(Panel { name: Name::new("panel").unwrap(), items, desks })
    })
    .await;
}

#[tokio::test]
async fn branches_at_the_same_time_resume() {
    resumes("parallel", &AB, |model| at_once("both", agents(["a", "b"], model))).await;
    resumes("for each part", &[("a", "one")], |model| each_part("warp", AnyAgent::new(agent("a", model)), 8))
        .await;
}

#[tokio::test]
async fn cases_and_loops_resume() {
    plays("switch", &AB, |model| {
        one_of("switch", agents(["a", "b"], model), |text| Some(usize::from(text != "first")))
    })
    .await;
    let rounds = [("a", "go on"), ("a", "go on, too"), ("a", "DONE")];
    resumes("loop", &rounds, |model| {
        repeat("loop", AnyAgent::new(agent("a", model)), 5, |text| text == "DONE")
    })
    .await;
}

#[tokio::test]
async fn a_graph_resumes() {
    let steps = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    resumes("graph", &steps, |model| diamond("graph", agents(["a", "b", "c", "d"], model))).await;
}

#[tokio::test]
async fn rounds_with_tools_resume() {
    let bot = |model: &AnyModel| agent("a", model).tool(GetHistory::default());
    let native = [("a", "!get_history"), ("a", "!gone"), ("a", "done")];
    resumes("react", &native, |model| AnyAgent::new(React::new(bot(model)))).await;
    let text = [("a", "Action: get_history\nAction Input: {}"), ("a", "Final Answer: done")];
    resumes("react in text", &text, |model| AnyAgent::new(React::new(bot(model)).in_text())).await;
    let forced = [("a", "!get_history"), ("a", "!get_history"), ("a", "in sum")];
    resumes("react, summed up", &forced, |model| {
        AnyAgent::new(React::new(bot(model)).max_rounds(1).summarize())
    })
    .await;
    let ends =
        |model: &AnyModel| React::new(agent("a", model).tool(Finish::default()).tool(GetHistory::default()));
    resumes("react, finished", &native, |model| AnyAgent::new(ends(model))).await;
}

#[tokio::test]
async fn plans_evidence_and_criticism_resume() {
    let steps = [("planner", "1. a\n2. b"), ("solver", "s1"), ("solver", "s2")];
    resumes("plan and solve", &steps, |model| {
        AnyAgent::new(PlanAndSolve::new("plan", agent("planner", model), agent("solver", model)).unwrap())
    })
    .await;
    // The second plan uses a label twice.
    for plan in [
        "Plan: p\n#E1 = get_history[{}]\n#E2 = get_history[{\"limit\": 1}]",
        "Plan: p\n#E1 = get_history[{}]\n#E1 = get_history[{\"limit\": 1}]\n#E1 = get_history[{}]",
    ] {
        resumes("rewoo", &[("prover", plan), ("judge", "j")], |model| {
            let rewoo = Rewoo::new("rewoo", agent("prover", model), agent("judge", model)).unwrap();
            AnyAgent::new(rewoo.tool(polylogue_core::AnyTool::new(GetHistory::default())))
        })
        .await;
    }
    let steps = [("writer", "w1"), ("critic", "worse"), ("writer", "w2")];
    resumes("refine", &steps, |model| {
        AnyAgent::new(
            Refine::new("refine", agent("writer", model), agent("critic", model)).unwrap().rounds(1),
        )
    })
    .await;
    let steps = [("a", "o1"), ("a", "o2"), ("critic", "hm"), ("critic", "2")];
    resumes("critic", &steps, |model| {
        AnyAgent::new(BestOfN::new(2, agent("a", model), agent("critic", model)))
    })
    .await;
}

/// Ordinary Rust: a condition, a loop, several at once, its own model, a word to it, a tool, an error it survives.
#[derive(Clone)]
struct Ordinary {
    name: Name,
    model: AnyModel,
    a: Assistant,
    b: Assistant,
}

impl Agent for Ordinary {
    fn name(&self) -> &Name {
        &self.name
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let mut message = turn.message();
        while !message.text().contains("enough") {
            message = turn.ask(&self.a, message).await?;
        }
        let both = [AgentCall::of(&self.a, &message), AgentCall::labeled("items.0", &self.b, &message)];
        let all: Result<Vec<Message>> = turn.ask_all(both).await.into_iter().collect();
        turn.prompt(format!("{} replied.", all?.len())).await?;
        let own = turn.ask_model(ModelCall::of(&self.model)).await?;
        let call = ToolCall {
            id: format!("look-{}", turn.transcript().turns_begun_by(turn.me())),
            tool: "get_history".into(),
            args: json!({}),
        };
        let looked = turn.call_tools(&[polylogue_core::AnyTool::new(GetHistory::default())], &[call]).await?;
        if looked.iter().any(|outcome| outcome.text().contains("second")) {
            return Ok(Act::Say(turn.ask(&self.b, own.text().into_owned()).await?.parts));
        }
        Ok(Act::Say(turn.ask_as("items.0", &self.b, own.text().into_owned()).await?.parts))
    }
}

#[tokio::test]
async fn ordinary_rust_resumes() {
    let steps =
        [("a", "more"), ("a", "enough"), ("a", "a3"), ("b", "b1"), ("ordinary", "of both"), ("b", "b2")];
    let make = |model: &AnyModel| Ordinary {
        name: Name::new("ordinary").unwrap(),
        model: model.clone(),
        a: agent("a", model),
        b: agent("b", model),
    };
    assert!(resumes("ordinary Rust", &steps, |model| AnyAgent::new(make(model))).await > 60);
    let hooked = |model: &AnyModel| {
        let mut around = MessageHooks::new(make(model));
        around.before(|message| Message::new(message.from.clone(), format!("please: {}", message.text())));
        around.after(|reply| Message::new(reply.from.clone(), format!("{}!", reply.text())));
        AnyAgent::new(around)
    };
    resumes("hooked", &steps, hooked).await;
}

/// Writes calls, and has them run until one finishes.
#[derive(Clone)]
struct Runs(Name, Parsed, ActionExecutor);

impl Agent for Runs {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let mut message = turn.message();
        for _ in 0..5 {
            message = turn.ask(&self.1, message).await?;
            if ParsedBlock::calls(&message).is_none() {
                break;
            }
            message = turn.ask(&self.2, message).await?;
            if CallRecord::from_message(&message).is_some_and(|ran| ran.state == RunState::Finished) {
                break;
            }
        }
        Ok(Act::Say(message.parts))
    }
}

#[tokio::test]
async fn calls_in_blocks_that_are_run_resume() {
    let steps = [
        ("a", "Look:\n```\n{\"name\": \"Log.get_history\", \"parameters\": {}}\n```\n"),
        ("a", "```\nno JSON"),
        ("a", "```\n{\"name\": \"gone\"}"),
        ("a", "```\n{\"name\": \"finish\", \"parameters\": {\"response\": \"done\"}}"),
    ];
    let make = |model: &AnyModel| {
        let block = ToolBlock::new("tools").between("```\n", "\n```\n").json().restore();
        let tools = [polylogue_core::AnyTool::new(GetHistory::default())];
        let runner = ActionExecutor::new("runner").unwrap().toolkit("Log", tools).tool(Finish::default());
        AnyAgent::new(Runs(Name::new("runs").unwrap(), Parsed::new(agent("a", model), block), runner))
    };
    assert!(resumes("blocks that are run", &steps, make).await > 50);
}
