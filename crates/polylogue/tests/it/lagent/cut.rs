//! A log cut after any event and run again becomes the same log, and no finished model call is repeated: for agents that
//! call others in ordinary Rust, in a session and in a chat, in memory and in a file.

use std::sync::Arc;

use polylogue::{AnyModel, Error, Human, Session};
use polylogue_core::{AnyAgent, AnyStore, Body, Event, Interrupt, Path};
use polylogue_store::{Memory, Sqlite};
use polylogue_test::cut::{Calls, uncharged};

use crate::common::{cut_everywhere, pair_chat, script, stored};
use crate::lagent::parts::{Blogger, House, NoTools, agent};

pub(crate) type Agents<'a> = &'a dyn Fn(&Calls) -> Vec<AnyAgent>;

/// The events of each chat, in their order: chats that are busy at the same time are interleaved as it comes.
fn by_chat(events: &[Arc<Event>]) -> Vec<(Path, Body)> {
    let mut all: Vec<(Path, Body)> =
        uncharged(events).iter().map(|event| (event.chat.clone(), event.body.clone())).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn is_call_end(event: &Event) -> bool {
    let outermost = event.chat.is_root() || event.chat.depth() == 1 && !event.chat.as_str().contains('.');
    outermost && matches!(event.body, Body::Closed { .. })
}

/// Makes the calls - which agent, and what it receives - in a session that begins with `prefix`, as a fresh process would.
async fn play(
    store: AnyStore,
    prefix: &[Arc<Event>],
    agents: Agents<'_>,
    calls: &[(usize, &str)],
) -> Vec<Arc<Event>> {
    let counter = Calls::default();
    let agents = agents(&counter);
    let mut session = Session::from_log(stored(store, "cut", prefix).await);
    let over = prefix.iter().filter(|event| is_call_end(event)).count();
    let mut resumes = true;
    for (agent, text) in &calls[over..] {
        let resumed = if resumes { session.resume(&agents[*agent]).await } else { Ok(None) };
        resumes = false;
        let mut reply = match resumed {
            Ok(None) => session.call(&agents[*agent], *text).await.map(Some),
            other => other,
        };
        while let Err(Error::Interrupt(Interrupt::Waiting)) = reply {
            let questions = session.log().questions().await.unwrap();
            if let Some((at, question)) = questions.first() {
                session.answer(at, &question.who, "an answer").await.unwrap();
            }
            reply = session.resume(&agents[*agent]).await;
        }
        reply.unwrap().unwrap();
    }
    let events = session.log().events().await;
    let sampled = |events: &[Arc<Event>]| {
        events.iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count() as u64
    };
    assert_eq!(counter.made(), sampled(&events) - sampled(prefix), "model calls");
    events
}

pub(crate) async fn cut(
    store: &dyn Fn() -> AnyStore,
    agents: Agents<'_>,
    calls: &[(usize, &str)],
) -> Vec<Arc<Event>> {
    let whole = play(store(), &[], agents, calls).await;
    for at in 0..whole.len() {
        let again = play(store(), &whole[..at], agents, calls).await;
        assert_eq!(by_chat(&again), by_chat(&whole), "cut before event {at}: {:?}", whole[at]);
    }
    whole
}

const HOUSE: &str = r#"[
    {"one": "o1"}, {"two": {"think": "hm", "say": "t1"}}, {"house": "h1"}, {"writer": "w1"}, {"critic": "c1"}, {"writer": "w2"},
    {"one": "o2"}, {"two": "t2"}, {"house": "h2"}, {"writer": "w3"}, {"critic": "c2"}, {"writer": "w4"},
    {"solo": "s1"}]"#;

/// Agents at the same time, one after the other, and nested, called twice, and another one: 90-item list, invariant 6.
#[tokio::test]
async fn composites_in_a_session_resume_at_every_cut() {
    let script = script(HOUSE);
    let agents = |calls: &Calls| {
        let model = calls.through(script.model("test"));
        vec![AnyAgent::new(House::new(&model)), AnyAgent::new(agent("solo", &model))]
    };
    let calls = [(0, "first"), (1, "other"), (0, "second")];
    let events = cut(&|| AnyStore::new(Memory::new()), &agents, &calls).await;
    let mut paths: Vec<&str> = events.iter().map(|event| event.chat.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let expected = [
        "", "/house/blogger", "/house/blogger/critic", "/house/blogger/writer", "/house/items/0",
        "/house/items/1", "/solo",
    ];
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn composites_in_a_file_resume_at_every_cut() {
    let script = script(HOUSE);
    let agents = |calls: &Calls| vec![AnyAgent::new(House::new(&calls.through(script.model("test"))))];
    let folder = tempfile::tempdir().unwrap();
    let nth = std::cell::Cell::new(0);
    let store = || {
        nth.set(nth.get() + 1);
        AnyStore::new(Sqlite::open(folder.path().join(format!("{}.db", nth.get()))).unwrap())
    };
    cut(&store, &agents, &[(0, "first"), (0, "second")]).await;
}

#[derive(Clone)]
struct Clerk {
    name: polylogue::Name,
    person: AnyAgent,
    writer: polylogue::Assistant,
}

impl polylogue::Agent for Clerk {
    fn name(&self) -> &polylogue::Name {
        &self.name
    }
    async fn act(&self, turn: &mut polylogue::Turn<'_>) -> polylogue::Result<polylogue::Act> {
        let draft = turn.ask(&self.writer, turn.message()).await?;
        let advice = turn.ask(&self.person, draft).await?;
        Ok(polylogue::Act::Say(turn.ask(&self.writer, advice).await?.parts))
    }
}

#[tokio::test]
async fn a_person_who_is_asked_answers_in_another_process() {
    let script = script(r#"[{"writer": "draft"}, {"writer": "final"}]"#);
    let agents = |calls: &Calls| {
        let writer = agent("writer", &calls.through(script.model("test")));
        let person = AnyAgent::new(Human::new("Pat").unwrap());
        vec![AnyAgent::new(Clerk { name: "clerk".try_into().unwrap(), person, writer })]
    };
    let events = cut(&|| AnyStore::new(Memory::new()), &agents, &[(0, "go")]).await;
    assert!(events.iter().any(|event| matches!(&event.body, Body::InputProvided { .. })));
}

#[tokio::test]
async fn composites_in_a_chat_resume_at_every_cut() {
    let script = script(
        r#"[{"writer": "w1"}, {"critic": "c1"}, {"writer": "w2"}, {"writer": "w3"}, {"critic": "c2"}, {"writer": "w4"},
            {"reader": "r1"}, {"reader": "r2"}]"#,
    );
    let chat = |calls: &Calls| {
        let model = calls.through(script.model("test"));
        pair_chat("desk", Blogger::new("blogger", &model, 1), agent("reader", &model), 4)
    };
    let events = cut_everywhere("roses", chat).await;
    assert!(events.iter().any(|event| event.chat.as_str() == "/blogger/critic"));
}

/// Agents made of agents at random: pipelines, branches, loops, graphs, hooks; with models, tools and people at the leaves.
struct Tree<'a> {
    seed: u64,
    leaves: usize,
    calls: &'a Calls,
}

impl Tree<'_> {
    fn chance(&mut self, of: u64) -> u64 {
        // Numerical Recipes' generator; the low bits are the bad ones.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % of
    }

    fn agent(&mut self, depth: u64) -> AnyAgent {
        use polylogue::layers::hook::MessageHooks;

        use crate::lagent::flows::{at_once, diamond, each_part, in_order, one_of, repeat};
        self.leaves += 1;
        let name = format!("n{}", self.leaves);
        if depth == 0 || self.leaves > 12 {
            return self.leaf(&name);
        }
        let (one, two) = (self.agent(depth - 1), self.agent(depth - 1));
        match self.chance(7) {
            0 => in_order(&name, [one, two], 3),
            1 => at_once(&name, [one, two]),
            2 => one_of(&name, [one, two], |text| Some(usize::from(text.len() <= 9))),
            3 => repeat(&name, one, 2, |_| false),
            4 => {
                let [last, first] = ["x", "y"].map(|end| self.leaf(&format!("{name}{end}")));
                diamond(&name, [first, one, two, last])
            }
            5 => each_part(&name, one, 1),
            _ => {
                let mut around = MessageHooks::new(one);
                around.before(|message| {
                    polylogue::Message::new(message.from.clone(), format!("{}!", message.text()))
                });
                AnyAgent::new(around)
            }
        }
    }

    fn leaf(&mut self, name: &str) -> AnyAgent {
        let steps = (0..9).map(|nth| match nth % 3 {
            0 => format!(r#"{{"{name}": {{"calls": [{{"tool": "get_history"}}]}}}}"#),
            _ => format!(r#"{{"{name}": "{name} says {nth}"}}"#),
        });
        let script = script(&format!("[{}]", steps.collect::<Vec<_>>().join(",")));
        match self.chance(4) {
            0 => AnyAgent::new(Human::new(name).unwrap()),
            _ => AnyAgent::new(
                agent(name, &self.calls.through(script.model("test")))
                    .tool(polylogue::tools::GetHistory::default()),
            ),
        }
    }
}

#[tokio::test]
async fn agents_at_random_resume_at_every_cut() {
    let mut longest = 0;
    for seed in 0..24 {
        let agents = |calls: &Calls| vec![Tree { seed, leaves: 0, calls }.agent(2)];
        let events = cut(&|| AnyStore::new(Memory::new()), &agents, &[(0, "go")]).await;
        longest = longest.max(events.len());
    }
    assert!(longest > 60, "{longest}");
}

/// Plans, evidence, rounds, criticism: all in one sequence.
#[tokio::test]
async fn agents_that_reason_resume_at_every_cut() {
    use polylogue::agents::reason::{BestOfN, PlanAndSolve, React, Refine, Rewoo};
    use polylogue::layers::parse::{ActionExecutor, Parsed, ToolBlock};
    let script = script(
        r##"[{"planner": "1. a\n2. b"}, {"solver": "s1"}, {"solver": "s2"},
            {"prover": "Plan: p\n#E1 = get_history[{}]\n#E2 = get_history[{}]"}, {"judge": "j"},
            {"bot": {"calls": [{"tool": "get_history"}, {"tool": "gone"}]}}, {"bot": "b"},
            {"texter": "Action: get_history\nAction Input: {}"}, {"texter": "Final Answer: t"},
            {"writer": "w1"}, {"critic": "c1"}, {"writer": "w2"},
            {"unable": "not asked"}, {"unable": "Action: get_history\nAction Input: {}"}, {"unable": "u"},
            {"coder": "```x\n{\"name\": \"get_history\", \"parameters\": {}}"},
            {"option": "o1"}, {"option": "o2"}, {"chooser": "hm"}, {"chooser": "2"}]"##,
    );
    let agents = |calls: &Calls| {
        let model = calls.through(script.model("test"));
        let of = |who: &str| agent(who, &model);
        let tool = || polylogue_core::AnyTool::new(polylogue::tools::GetHistory::default());
        let unable = AnyModel::new(NoTools(model.clone()));
        let block = ToolBlock::new("x").between("```x\n", "\n```").json();
        let all = [
            AnyAgent::new(PlanAndSolve::new("plan", of("planner"), of("solver")).unwrap()),
            AnyAgent::new(Rewoo::new("rewoo", of("prover"), of("judge")).unwrap().tool(tool())),
            AnyAgent::new(React::new(of("bot").tool(tool()))),
            AnyAgent::new(React::new(of("texter").tool(tool())).in_text()),
            AnyAgent::new(Refine::new("refine", of("writer"), of("critic")).unwrap().rounds(1)),
            AnyAgent::new(React::new(agent("unable", &unable).tool(tool()))),
            AnyAgent::new(Parsed::new(of("coder"), block)),
            AnyAgent::new(ActionExecutor::new("runner").unwrap().tool(tool())),
            AnyAgent::new(BestOfN::new(2, of("option"), of("chooser"))),
        ];
        vec![crate::lagent::flows::in_order("all", all, 9)]
    };
    cut(&|| AnyStore::new(Memory::new()), &agents, &[(0, "go")]).await;
}
