//! Invariants 6 and 7: a log cut anywhere and run again becomes the same log, and no finished model call is repeated.

use crate::common::{name, pair_chat, script};
use polylogue::policies::{with_summary_by, with_termination};
use polylogue::stop::{max_turns, says};
use polylogue::tools::GetHistory;
use polylogue::{
    Assistant, Chat, Function, Human, Name, Policy, Step, Transcript, parallel, round_robin, sequential,
};
use polylogue_core::{Act, Message};
use polylogue_core::{AnyStore, TaskFrom};
use polylogue_models::Script;
use polylogue_store::Memory;
use polylogue_test::cut::{Calls, Cut};

async fn check(task: &str, chat: impl Fn(&Calls) -> Chat) -> Vec<String> {
    check_with_people(task, chat, &|_| unreachable!("no one is asked")).await
}

async fn check_with_people(
    task: &str,
    chat: impl Fn(&Calls) -> Chat,
    answer: &(dyn Fn(u64) -> &'static str + Sync),
) -> Vec<String> {
    let cut = Cut {
        task,
        chat: &chat,
        store: &|| AnyStore::new(Memory::default()),
        answer: &|_, _, nth| answer(nth).to_owned(),
    };
    let events = cut.everywhere().await.unwrap_or_else(|flaw| panic!("{flaw}"));
    events.iter().map(|event| serde_json::to_string(&event.body).unwrap()).collect()
}

fn assistant(who: &str, calls: &Calls, script: &Script) -> Assistant {
    Assistant::new(who, calls.through(script.model("test"))).unwrap().tool(GetHistory::default())
}

#[tokio::test]
async fn two_agents_in_turn_with_a_tool_and_a_reflected_summary() {
    let script = script(
        r#"[{"A": {"say": "Let me look", "calls": [{"tool": "get_history", "args": {"limit": 2}}, {"tool": "gone"}]}},
            {"A": {"think": "hm", "say": "one"}}, {"B": "two"}, {"A": ""}, {"B": "DONE"}, {"Judge": "They counted."}]"#,
    );
    let log = check("count", |calls| {
        let policy = with_termination(round_robin(), says("DONE").whole() | max_turns(9));
        Chat::builder("pair")
            .participant(assistant("A", calls, &script))
            .participant(assistant("B", calls, &script))
            .private_agent(assistant("Judge", calls, &script))
            .policy(with_summary_by(policy, name("Judge"), |_| "Sum up.".into()))
            .build()
            .unwrap()
    })
    .await;
    assert!(
        log.last().unwrap().contains(r#""details":{"text":"DONE","by":"B"}}},"summary":"They counted.""#)
    );
}

#[tokio::test(start_paused = true)]
async fn parallel_turns_are_logged_in_the_order_of_their_requests() {
    let script = script(
        r#"[{"A": {"calls": [{"tool": "get_history"}], "delay_ms": 30}}, {"A": {"say": "slow", "delay_ms": 30}},
            {"B": "fast"}, {"C": {"say": "middle", "delay_ms": 10}}]"#,
    );
    let log = check("all", |calls| {
        Chat::builder("panel")
            .participant(assistant("A", calls, &script))
            .participant(assistant("B", calls, &script))
            .participant(assistant("C", calls, &script))
            .policy(parallel())
            .build()
            .unwrap()
    })
    .await;
    let said: Vec<_> = log.iter().filter(|body| body.contains(r#""type":"message""#)).collect();
    assert!(said[0].contains("slow") && said[1].contains("fast") && said[2].contains("middle"), "{said:?}");
}

#[tokio::test]
async fn chats_within_chats_at_several_depths() {
    let script = script(
        r#"[{"Writer": "draft 1"}, {"X": "x1"}, {"Y": "y1"}, {"Deep": "d1"}, {"Writer": "draft 2"}, {"X": "x2"},
            {"Y": "y2"}, {"Deep": "d2"}]"#,
    );
    let log = check("write", |calls| {
        let deep = Chat::builder("deep")
            .participant(assistant("Deep", calls, &script))
            .policy(sequential())
            .task_from(TaskFrom::All)
            .build()
            .unwrap();
        let critics = Chat::builder("critics")
            .participant(assistant("X", calls, &script))
            .participant(assistant("Y", calls, &script))
            .participant(deep)
            .policy(sequential())
            .build()
            .unwrap();
        pair_chat("desk", assistant("Writer", calls, &script), critics, 4)
    })
    .await;
    assert!(log.last().unwrap().contains(r#""code":"count_reached","text":"4 of 4 turns","outcome":"done","details":{"count":4,"of":"turns"}"#), "{log:#?}");
}

#[tokio::test]
async fn people_who_answer_pass_and_leave_also_within_a_chat_within_a_chat() {
    let script = script(r#"[{"A": "one"}, {"A": "two"}, {"A": "three"}]"#);
    let answers = |nth| ["hello", "  ", " EXIT "][usize::try_from(nth).unwrap()];
    let chat = |calls: &Calls| {
        let desk = Chat::builder("desk")
            .participant(Human::new("Me").unwrap())
            .participant(assistant("A", calls, &script));
        let desk = desk.policy(round_robin()).build().unwrap();
        Chat::builder("house").participant(desk).policy(sequential()).build().unwrap()
    };
    let log = check_with_people("talk", chat, &answers).await;
    assert!(log.iter().any(|body| body.contains(r#""left":{"who":"Me","why":"said `exit`"}"#)), "{log:#?}");
}

#[tokio::test]
async fn functions_posts_and_private_messages() {
    fn policy() -> impl Policy {
        with_termination(
            |chat: &Transcript| match chat.turns() {
                1 if chat.message_count() == 2 => Step::Post(Message::new(Name::user(), "a word between")),
                _ => round_robin().next(chat),
            },
            max_turns(3),
        )
    }
    let script = script(r#"[{"A": "first"}, {"A": "second"}]"#);
    let log = check("mixed", |calls| {
        let counter =
            Function::new("Counter", |turn| Ok(Act::say(turn.transcript().message_count().to_string())))
                .unwrap();
        Chat::builder("mixed")
            .participant(assistant("A", calls, &script))
            .participant(counter)
            .policy(policy())
            .opening(|task| {
                vec![Message::new(Name::user(), task).to(polylogue_core::Audience::Only(vec![name("A")]))]
            })
            .build()
            .unwrap()
    })
    .await;
    assert!(log.iter().any(|body| body.contains("a word between")));
    assert!(log.iter().any(|body| body.contains(r#""from":"Counter","parts":[{"text":"3"}]"#)), "{log:#?}");
}
