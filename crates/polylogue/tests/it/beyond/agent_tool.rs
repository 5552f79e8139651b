//! Agents and chats as tools.

use polylogue::agents::ToolCalling;
use polylogue::policies::{with_summary, with_termination};
use polylogue::stop::{max_turns, says};
use polylogue::tools::agent_tool::AgentTool;
use polylogue::{Act, Chat, Function, Human, round_robin, sequential};
use polylogue_core::StopReason;

use crate::beyond::stage::{Cast, events_with, fails, name, play, print};
use crate::common::solo_chat;

/// Eve and Max talk until one has enough, or both spoke.
fn research(cast: &Cast<'_>) -> Chat {
    Chat::builder("research")
        .participant(cast.assistant("Eve"))
        .participant(cast.assistant("Max"))
        .policy(with_termination(round_robin(), says("ENOUGH") | max_turns(2)))
        .description("Finds out.")
        .build()
        .unwrap()
}

/// Ann alone, who speaks `turns` times.
fn alone(ann: polylogue::Assistant, turns: u64) -> Chat {
    solo_chat("main", ann, turns)
}

#[tokio::test]
async fn a_chat_is_asked_and_its_summary_is_the_outcome() {
    let script = r#"[
        {"Ann": {"say": "Let me ask.", "calls": [{"tool": "research", "args": {"task": "cats?"}, "id": "c1"}]}},
        {"Eve": "Cats purr."}, {"Max": "And sleep."}, {"Ann": "They purr and sleep."},
        {"Ann": {"calls": [{"tool": "research", "args": {"task": "dogs?"}, "id": "c2"},
                           {"tool": "research", "args": {"task": "birds?"}, "id": "c3"}]}},
        {"Eve": "ENOUGH of dogs."}, {"Eve": "Birds sing."}, {"Max": "All day."}, {"Ann": "So it is."}]"#;
    let text =
        play(script, |cast| alone(cast.assistant("Ann").agent_tool(AgentTool::chat(research(cast))), 2))
            .await;
    assert!(text.contains("Ann calls research {\"task\":\"cats?\"} #c1\nAnn gets #c1: And sleep."), "{text}");
    assert!(text.contains("Ann gets #c2: ENOUGH of dogs.\n"), "{text}");
    assert!(text.contains("Ann gets #c3: All day.\nAnn says: So it is."), "{text}");
    // It starts again each time, in its own inner chat, with its own limit of turns.
    assert!(
        text.contains("opened [Eve, Max] \"dogs?\"") && text.contains("opened [Eve, Max] \"birds?\""),
        "{text}"
    );
}

#[tokio::test]
async fn an_agent_is_asked_and_remembers() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "critic", "args": {"task": "one"}, "id": "c1"}]}},
        {"Ann": {"calls": [{"tool": "critic", "args": {"task": "two"}, "id": "c2"}]}},
        {"Ann": "Done."},
        {"Ann": {"calls": [{"tool": "critic", "args": {"task": "three"}, "id": "c3"}]}},
        {"Ann": "Done again."}]"#;
    let text = play(script, |cast| {
        let bob = Function::new("Bob", |turn| {
            let received: Vec<_> =
                turn.transcript().messages().map(|line| line.message.text().into_owned()).collect();
            Ok(Act::say(received.join(", ")))
        });
        let critic = AgentTool::agent(bob.unwrap()).named("critic").description("Says what is wrong.");
        alone(cast.assistant("Ann").agent_tool(critic), 2)
    })
    .await;
    assert!(text.contains("Ann gets #c1: one\n"), "{text}");
    assert!(text.contains("Ann gets #c2: one, one, two\n"), "{text}");
    assert!(text.contains("Ann gets #c3: one, one, two, one, one, two, three\n"), "{text}");
}

#[tokio::test]
async fn a_person_within_is_waited_for() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "office", "args": {"task": "May I?"}, "id": "c1"},
                           {"tool": "boss", "args": {"task": "Really?"}, "id": "c2"}]}},
        {"Ann": "I may."}]"#;
    let answers = ["Yes.", "Really."];
    let events = events_with(script, &|nth| answers[nth], |cast| {
        let person = |who| Human::new(who).unwrap();
        let office =
            Chat::builder("office").participant(person("Boss")).policy(sequential()).build().unwrap();
        let ann = cast.assistant("Ann").agent_tool(AgentTool::chat(office));
        alone(ann.agent_tool(AgentTool::agent(person("Boss")).named("boss")), 1)
    })
    .await;
    let text = print(&events);
    assert!(text.contains("Ann gets #c1: Yes.") && text.contains("Ann gets #c2: Really."), "{text}");
}

#[tokio::test]
async fn an_empty_result_is_reported() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "silent", "args": {"task": "Well?"}, "id": "c1"},
                           {"tool": "leaver", "args": {"task": "Well?"}, "id": "c2"},
                           {"tool": "mute", "args": {"task": "Well?"}, "id": "c3"},
                           {"tool": "mute", "args": {"task": " "}, "id": "c4"},
                           {"tool": "mute", "args": {"question": "Well?"}, "id": "c5"},
                           {"tool": "mute", "args": "Well?", "id": "c6"}]}},
        {"Ann": "No one knows."}]"#;
    let text = play(script, |cast| {
        let mute = |who| Function::new(who, |_| Ok(Act::Pass)).unwrap();
        let leaver = Function::new("leaver", |_| {
            Ok(Act::Stop(StopReason::Left { who: name("leaver"), why: "had enough".into() }))
        });
        let silent = Chat::builder("silent")
            .participant(mute("x"))
            .policy(with_summary(with_termination(round_robin(), max_turns(1)), |_| "".into()))
            .build()
            .unwrap();
        let ann = cast.assistant("Ann").agent_tool(AgentTool::chat(silent));
        alone(ann.agent_tool(AgentTool::agent(leaver.unwrap())).agent_tool(AgentTool::agent(mute("mute"))), 1)
    })
    .await;
    for shown in [
        "#c1 failed: It ended without a result: no participant said anything; 1 of 1 turn",
        "#c2 failed: It ended without a result: leaver left: had enough",
        "#c3 failed: It ended without a result\n",
        "#c4 failed: `task` must be a text that says what is to be done",
        "#c5 failed: `task` must be a text that says what is to be done",
        "#c6 failed: The arguments of `mute` must be a JSON object",
    ] {
        assert!(text.contains(shown), "{shown}\n{text}");
    }
}

#[tokio::test]
async fn an_agent_tool_has_a_maximum_of_calls_in_a_turn() {
    let ask = |nth: u32| {
        format!(r#"{{"Ann": {{"calls": [{{"tool": "bob", "args": {{"task": "{nth}"}}, "id": "c{nth}"}}]}}}}"#)
    };
    let script =
        format!(r#"[{}, {}, {}, {{"Ann": "Two."}}, {}, {{"Ann": "One."}}]"#, ask(1), ask(2), ask(3), ask(4));
    let text = play(&script, |cast| {
        let bob = Function::new("bob", |turn| Ok(Act::say(turn.message().text().into_owned()))).unwrap();
        alone(cast.assistant("Ann").agent_tool(AgentTool::agent(bob).max_calls(2)), 2)
    })
    .await;
    assert!(
        text.contains("gets #c1: 1") && text.contains("gets #c2: 2") && text.contains("gets #c4: 4"),
        "{text}"
    );
    assert!(text.contains("gets #c3 failed: `bob` is asked at most 2 times before you answer"), "{text}");
}

// Models without function calls are prompted with it as text, as with any tool.
#[tokio::test]
async fn a_model_without_function_calls_asks_by_text() {
    let script = r#"[
        {"Ann": "I see."}, {"Ann": "It helps."}, {"Ann": "yes"}, {"Ann": "{\"task\": \"cats?\"}"},
        {"Eve": "ENOUGH of cats."}, {"Ann": "They say enough."}]"#;
    let text = play(script, |cast| {
        let ann = cast.assistant("Ann").tool_calling(ToolCalling::Text);
        alone(ann.agent_tool(AgentTool::chat(research(cast))), 1)
    })
    .await;
    assert!(text.contains("Ann gets #text-1-1: ENOUGH of cats."), "{text}");
    assert!(text.ends_with("They say enough."), "{text}");
}

// What fails within fails the turn, which can be tried again; and a tool given later takes the place of an earlier one.
#[tokio::test]
async fn failures_within_are_failures_of_the_run() {
    let script = r#"[{"Ann": {"calls": [{"tool": "research", "args": {"task": "cats?"}}]}}]"#;
    let why =
        fails(script, |cast| alone(cast.assistant("Ann").agent_tool(AgentTool::chat(research(cast))), 1))
            .await;
    assert!(why.contains("Eve"), "{why}");
    let text = play(
        r#"[{"Ann": {"calls": [{"tool": "research", "args": {"task": "x"}, "id": "c1"}]}}, {"Ann": "ok"}]"#,
        |cast| {
            let other = Function::new("research", |_| Ok(Act::say("the other"))).unwrap();
            alone(
                cast.assistant("Ann")
                    .agent_tool(AgentTool::chat(research(cast)))
                    .agent_tool(AgentTool::agent(other)),
                1,
            )
        },
    )
    .await;
    assert!(text.contains("gets #c1: the other"), "{text}");
}
