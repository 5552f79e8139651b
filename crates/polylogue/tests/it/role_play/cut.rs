//! A log cut after any event and run again becomes the same log, and no finished model call is repeated (invariant 6).

use polylogue::tasks::RolePlay;
use polylogue::tasks::role_play::Critic;
use polylogue::tools::GetHistory;
use polylogue::{AnyModel, Chat};
use polylogue_core::AnyStore;
use polylogue_models::Script;
use polylogue_store::{Memory, Sqlite};
use polylogue_test::cut::{Calls, Cut};

use crate::role_play::set::agent;

/// All that there is: a task specified at the second asking, a plan, a critic who is asked again, blank replies, a
/// tool.
const ALL: &str = r#"[
    {"Specifier": ""}, {"Specifier": "Trade {wheat}."}, {"Planner": "1. Buy"},
    {"Trader": "Instruction: a"}, {"Trader": "Instruction: b"}, {"Critic": "?"}, {"Critic": "2"},
    {"Python_programmer": {"calls": [{"tool": "get_history", "args": {}}]}}, {"Python_programmer": "Solution: c"},
    {"Python_programmer": {"think": "hm", "say": "Solution: d"}}, {"Critic": "1"},
    {"Trader": " "}, {"Trader": ""}, {"Trader": "Hello"}, {"Trader": "Instruction: e"}, {"Critic": "none"},
    {"Critic": "none"}, {"Critic": "none"}, {"Python_programmer": "Solution: f"}, {"Python_programmer": ""},
    {"Trader": "<CAMEL_TASK_DONE>"}, {"Trader": "  "}]"#;

fn all(model: &AnyModel) -> Chat {
    let programmer = agent("Python_programmer", model).tool(GetHistory::default());
    RolePlay::new(programmer, agent("Trader", model))
        .specify(agent("Specifier", model))
        .plan(agent("Planner", model))
        .critic(Critic::new(agent("Critic", model), 2))
        .language("French")
        .build("role_play")
        .unwrap()
}

/// Without a critic: the rules end it, or a blank reply does.
fn plain(model: &AnyModel) -> Chat {
    let role_play = RolePlay::new(agent("Python_programmer", model), agent("Trader", model));
    role_play.specify(agent("Specifier", model)).build("role_play").unwrap()
}

const FLIPPED: &str = r#"[{"Specifier": "Trade wheat."}, {"Trader": "Hello"}, {"Python_programmer": ""},
    {"Python_programmer": "Solution: a"}, {"Trader": "Instruction: b"}, {"Python_programmer": "Instruction: c"}]"#;
const BLANK: &str = r#"[{"Specifier": "Trade wheat."}, {"Trader": "Hello"}, {"Python_programmer": ""},
    {"Python_programmer": {"think": "hm", "say": " "}}]"#;

/// Each thing once: every cut of a file is a file.
const SHORT: &str = r#"[{"Specifier": ""}, {"Specifier": "Trade."}, {"Planner": "1. Buy"}, {"Trader": "Instruction: a"}, {"Trader": ""},
    {"Python_programmer": "Solution: b"}, {"Python_programmer": "Solution: c"}, {"Critic": "?"}, {"Critic": "2"},
    {"Trader": "<CAMEL_TASK_DONE>"}, {"Trader": " "}]"#;

async fn cut(json: &str, chat: impl Fn(&AnyModel) -> Chat, store: &dyn Fn() -> AnyStore) -> usize {
    let script: Script = serde_json::from_str(json).unwrap();
    let chat = |calls: &Calls| chat(&calls.through(script.model("test")));
    let cut = Cut { task: "Trade", chat: &chat, store, answer: &|_, _, _| panic!("no person is asked") };
    cut.everywhere().await.unwrap().len()
}

#[tokio::test]
async fn a_role_play_in_memory_resumes_at_every_cut() {
    let memory = || AnyStore::new(Memory::new());
    assert!(cut(ALL, all, &memory).await > 60);
    assert!(cut(FLIPPED, plain, &memory).await > 12);
    assert!(cut(BLANK, plain, &memory).await > 8);
}

#[tokio::test]
async fn a_role_play_in_a_file_resumes_at_every_cut() {
    let folder = tempfile::tempdir().unwrap();
    let nth = std::cell::Cell::new(0);
    let store = || {
        nth.set(nth.get() + 1);
        AnyStore::new(Sqlite::open(folder.path().join(format!("{}.db", nth.get()))).unwrap())
    };
    assert!(cut(SHORT, all, &store).await > 30);
}

/// A role-play as a participant of another chat, called twice, starts again each time; its log is cut everywhere, too.
#[tokio::test]
async fn a_nested_role_play_resumes_at_every_cut() {
    use polylogue::policies::with_termination;
    use polylogue::round_robin;
    use polylogue::stop::max_turns;
    let script = r#"[{"Boss": "Trade wheat"}, {"Specifier": "Trade wheat in May"}, {"Trader": "Instruction: a"}, {"Trader": ""},
        {"Python_programmer": "Solution: b"}, {"Python_programmer": "Solution: c"}, {"Critic": "2"},
        {"Trader": "<CAMEL_TASK_DONE>"}, {"Trader": ""}, {"Boss": "Trade oats"}, {"Specifier": "Trade oats in June"},
        {"Trader": "<CAMEL_TASK_DONE>"}, {"Trader": ""}]"#;
    let script: Script = serde_json::from_str(script).unwrap();
    let chat = |calls: &Calls| {
        let model = calls.through(script.model("test"));
        let role_play = RolePlay::new(agent("Python_programmer", &model), agent("Trader", &model))
            .specify(agent("Specifier", &model))
            .critic(Critic::new(agent("Critic", &model), 2));
        let chat = Chat::builder("office")
            .participant(agent("Boss", &model))
            .participant(role_play.build("workers").unwrap());
        chat.policy(with_termination(round_robin(), max_turns(4))).build().unwrap()
    };
    let store = || AnyStore::new(Memory::new());
    let cut =
        Cut { task: "Earn", chat: &chat, store: &store, answer: &|_, _, _| panic!("no person is asked") };
    let events = cut.everywhere().await.unwrap();
    let log = crate::stage::printed(&events);
    assert!(log.contains("workers says: Solution: c"), "{log}");
    assert!(log.contains("/workers.1 opened [Trader, Python_programmer] \"Trade wheat\""), "{log}");
    assert!(log.contains("/workers.2 opened [Trader, Python_programmer] \"Trade oats\""), "{log}");
}
