//! Every kind of composite, cut after every event and run again in fresh agents: the log is the same, and no finished model call is
//! made again. Each is called twice in one session, so that rooms are entered anew.

use polylogue::compose::{Graph, Many, Parallel, Pipeline, Repeat, Switch, Warp};
use polylogue::hook::Around;
use polylogue::parse::{Actions, Block, Parsed, Ran, RunState, ToolBlock};
use polylogue::reason::{Best, PlanAndSolve, React, Refine, Rewoo};
use polylogue::tool::Finish;
use polylogue::{
    Act, Agent, AgentCall, AnyAgent, AnyModel, AnyStore, Assistant, Body, Call, GetHistory, Layer, Message,
    ModelCall, Name, Part, Result, Turn,
};
use polylogue_store::Memory;
use polylogue_test::cut::Calls;
use serde_json::json;

use crate::cut::{cut, script};
use crate::parts::agent;

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

#[tokio::test]
async fn a_sequence_resumes() {
    let steps = [("a", "one"), ("b", "two"), ("a", "three")];
    let make = |model: &AnyModel| {
        Pipeline::new("seq").unwrap().then(agent("a", model)).then(agent("b", model)).exit_at(2)
    };
    assert!(resumes("sequence", &steps, |model| AnyAgent::new(make(model))).await > 20);
    resumes("pipeline in a pipeline", &AB, |model| {
        let inner = Pipeline::new("inner").unwrap().then(agent("b", model));
        AnyAgent::new(Pipeline::new("outer").unwrap().then_as("first", agent("a", model)).then(inner))
    })
    .await;
}

/// Asks one of many, then all of them.
#[derive(Clone)]
struct Panel(Name, Many);

impl Agent for Panel {
    fn name(&self) -> &Name {
        &self.0
    }
    fn layers(&self) -> Vec<Layer> {
        self.1.layers()
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let all = self.1.ask_all(turn, turn.message()).await?;
        let texts: Vec<String> = all.iter().map(|reply| reply.plain().into_owned()).collect();
        let key = self.1.layers().first().and_then(|layer| layer.label.rsplit('.').next().map(str::to_owned));
        Ok(Act::Say(self.1.ask(turn, key.unwrap_or_default(), texts.join("+")).await?.parts))
    }
}

#[tokio::test]
async fn a_list_and_a_map_resume() {
    let steps = [("a", "one"), ("b", "two"), ("a", "three")];
    let agents = |model: &AnyModel| [agent("a", model), agent("b", model)].map(AnyAgent::new);
    let name = || Name::new("panel").unwrap();
    resumes("list", &steps, |model| {
        AnyAgent::new(Panel(name(), Many::list("items", agents(model)).unwrap()))
    })
    .await;
    resumes("map", &steps, |model| {
        let desks = ["news", "sport"].into_iter().zip(agents(model));
        AnyAgent::new(Panel(name(), Many::map("desks", desks).unwrap()))
    })
    .await;
}

#[tokio::test]
async fn branches_at_the_same_time_resume() {
    let both =
        |model: &AnyModel| Parallel::new("both").unwrap().with(agent("a", model)).with(agent("b", model));
    resumes("parallel", &AB, |model| AnyAgent::new(both(model))).await;
    resumes("joined", &AB, |model| {
        let join = |replies: &[(&str, Message)]| vec![Part::text(format!("{} replies", replies.len()))];
        AnyAgent::new(both(model).joins(join))
    })
    .await;
    resumes("warp", &[("a", "one")], |model| AnyAgent::new(Warp::new("warp", agent("a", model)).unwrap()))
        .await;
}

#[tokio::test]
async fn cases_and_loops_resume() {
    let switch = |model: &AnyModel| {
        let which = |message: &Message| if message.plain() == "first" { "a" } else { "b" };
        let switch = Switch::new("switch", which).unwrap().case("a", agent("a", model));
        AnyAgent::new(switch.otherwise(agent("b", model)))
    };
    plays("switch", &AB, switch).await;
    let rounds = [("a", "go on"), ("a", "go on, too"), ("a", "DONE")];
    resumes("loop", &rounds, |model| {
        let done = |message: &Message| message.plain() == "DONE";
        AnyAgent::new(Repeat::new("loop", agent("a", model), 5).unwrap().until(done))
    })
    .await;
}

#[tokio::test]
async fn a_graph_resumes() {
    let steps = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    let make = |model: &AnyModel| {
        let graph = ["a", "b", "c", "d"]
            .into_iter()
            .fold(Graph::named("graph"), |graph, who| graph.node(agent(who, model)));
        AnyAgent::new(graph.edge("a", "b").edge("a", "c").edge("b", "d").edge("c", "d").build().unwrap())
    };
    resumes("graph", &steps, make).await;
}

#[tokio::test]
async fn rounds_with_tools_resume() {
    let bot = |model: &AnyModel| agent("a", model).tool(GetHistory::default());
    let native = [("a", "!get_history"), ("a", "!gone"), ("a", "done")];
    resumes("react", &native, |model| AnyAgent::new(React::new(bot(model)))).await;
    let text = [("a", "Action: get_history\nAction Input: {}"), ("a", "Final Answer: done")];
    resumes("react in text", &text, |model| AnyAgent::new(React::new(bot(model)).in_text())).await;
    let forced = [("a", "!get_history"), ("a", "!get_history"), ("a", "in sum")];
    resumes("react, summed up", &forced, |model| AnyAgent::new(React::new(bot(model)).rounds(1).sums_up()))
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
    let steps =
        [("prover", "Plan: p\n#E1 = get_history[{}]\n#E2 = get_history[{\"limit\": 1}]"), ("judge", "j")];
    resumes("rewoo", &steps, |model| {
        let rewoo = Rewoo::new("rewoo", agent("prover", model), agent("judge", model)).unwrap();
        AnyAgent::new(rewoo.tool(polylogue::AnyTool::new(GetHistory::default())))
    })
    .await;
    let steps = [("writer", "w1"), ("critic", "worse"), ("writer", "w2")];
    resumes("refine", &steps, |model| {
        AnyAgent::new(
            Refine::new("refine", agent("writer", model), agent("critic", model)).unwrap().rounds(1),
        )
    })
    .await;
    let steps = [("a", "o1"), ("a", "o2"), ("critic", "hm"), ("critic", "2")];
    resumes("critic", &steps, |model| AnyAgent::new(Best::of(2, agent("a", model), agent("critic", model))))
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
        while !message.plain().contains("enough") {
            message = turn.ask(&self.a, message).await?;
        }
        let both = [AgentCall::of(&self.a, &message), AgentCall::labelled("items.0", &self.b, &message)];
        let all: Result<Vec<Message>> = turn.ask_all(both).await.into_iter().collect();
        turn.prompt(format!("{} replied.", all?.len())).await?;
        let own = turn.ask_model(ModelCall::of(&self.model)).await?;
        let call = Call {
            id: format!("look-{}", turn.transcript().turns_begun_by(turn.me())),
            tool: "get_history".into(),
            args: json!({}),
        };
        let looked = turn.call(&[polylogue::AnyTool::new(GetHistory::default())], &[call]).await?;
        if looked.iter().any(|outcome| outcome.plain().contains("second")) {
            return Ok(Act::Say(turn.ask(&self.b, own.plain().into_owned()).await?.parts));
        }
        Ok(Act::Say(turn.ask_as("items.0", &self.b, own.plain().into_owned()).await?.parts))
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
        let mut around = Around::new(make(model));
        around.before(|message| Message::text(message.from.clone(), format!("please: {}", message.plain())));
        around.after(|reply| Message::text(reply.from.clone(), format!("{}!", reply.plain())));
        AnyAgent::new(around)
    };
    resumes("hooked", &steps, hooked).await;
}

/// Writes calls, and has them run until one finishes.
#[derive(Clone)]
struct Runs(Name, Parsed, Actions);

impl Agent for Runs {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let mut message = turn.message();
        for _ in 0..5 {
            message = turn.ask(&self.1, message).await?;
            if Block::calls(&message).is_none() {
                break;
            }
            message = turn.ask(&self.2, message).await?;
            if Ran::of(&message).is_some_and(|ran| ran.state == RunState::Finished) {
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
        let tools = [polylogue::AnyTool::new(GetHistory::default())];
        let runner = Actions::new("runner").unwrap().toolkit("Log", tools).tool(Finish::default());
        AnyAgent::new(Runs(Name::new("runs").unwrap(), Parsed::new(agent("a", model), block), runner))
    };
    assert!(resumes("blocks that are run", &steps, make).await > 50);
}
