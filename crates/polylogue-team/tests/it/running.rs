//! What cannot be seen in a file, and goes wrong when a team runs: the conversation is kept, and says what it was.

use polylogue::{AnyModel, Error, Log, Status};
use polylogue_core::{Body, StopReason};
use polylogue_team::Team;

use crate::common::team;

/// A run of `team` by its script; questions are answered with `answers` in order.
async fn run(team: &Team, answers: &[&str]) -> (Log, Result<Status, Error>, Vec<String>) {
    let model = AnyModel::new(team.script.clone().model("script"));
    let chat = team.build(&|_| Ok(model.clone())).unwrap();
    let mut log = Log::in_memory();
    let mut status = chat.run_in(&mut log, "Begin").await.map(|run| run.status);
    let mut asked = Vec::new();
    for answer in answers {
        let Ok(Status::Waiting(questions)) = &status else { break };
        let (at, question) = &questions[0];
        asked.push(question.text.to_string());
        log.answer(at, &question.who, *answer).await.unwrap();
        status = chat.resume(&mut log).await.map(|run| run.status);
    }
    (log, status, asked)
}

/// A state that is not there: the file cannot know which keys agents will note.
fn with_condition(chat: &str) -> Team {
    team(&format!(
        "{{name: t, model: 'a:b', agents: [{{name: A}}, {{name: B}}], chat: {{participants: [A, B], {chat}}},
          script: [{{A: one}}, {{B: two}}, {{A: three}}]}}"
    ))
}

#[tokio::test]
async fn a_condition_that_cannot_be_evaluated_stops_the_run_names_itself_and_loses_nothing() {
    for chat in [
        "stop: {when: state.approved}",
        "pattern: {state_machine: {after: {A: [{when: state.approved, then: end}, {then: B}], B: A}}}",
        "pattern: {graph: {edges: {A: [{to: B, when: state.approved}]}}}",
    ] {
        let (log, status, _) = run(&with_condition(chat), &[]).await;
        let error = status.unwrap_err().to_string();
        assert!(error.contains("`state.approved`") && error.contains("cannot be evaluated"), "{error}");
        let said = log.events().await.iter().filter(|event| matches!(event.body, Body::Message(_))).count();
        assert!(said >= usize::from(!chat.starts_with("stop")), "{chat}: what was said before is kept");
    }
}

#[tokio::test]
async fn a_condition_of_a_nested_chat_that_cannot_be_evaluated_names_whose_it_is() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A, nested_chats: [{chat: inner, when: {when: state.ready}}]}, {name: B}],
          chat: {participants: [A], pattern: sequential},
          chats: [{name: inner, participants: [B], pattern: sequential}], script: [{A: one}, {B: two}]}",
    );
    let error = run(&team, &[]).await.1.unwrap_err().to_string();
    assert!(
        error.starts_with("the condition `state.ready` of `A` is invalid: it cannot be evaluated"),
        "{error}"
    );
}

#[tokio::test]
async fn a_nested_chat_receives_a_reflected_summary_of_the_conversation() {
    let team = team(
        "{name: t, model: 'a:b',
          agents: [{name: A}, {name: C, model: none, nested_chats: [{chat: inner, context: {reflect: {by: Scribe, prompt: In short?}}}]},
                   {name: B}, {name: Scribe}],
          chat: {participants: [A, C], pattern: sequential},
          chats: [{name: inner, task: Judge it., participants: [B], pattern: sequential}],
          script: [{A: A long story.}, {Scribe: {say: A story., expect: {last: In short?}}},
                   {B: {say: Good., expect: {last: A story.}}}]}",
    );
    let (_, status, _) = run(&team, &[]).await;
    let Ok(Status::Closed { summary, .. }) = status else { panic!("{status:?}") };
    assert_eq!(&*summary, "Good.");
}

#[tokio::test]
async fn a_person_who_answers_garbage_is_asked_once_more_and_then_the_order_decides() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A}, {name: B}, {name: Zoe, human: true}],
          chat: {participants: [A, B], pattern: {group: {select: {human: Zoe}}}, stop: {max_turns: 1}},
          script: [{A: hello}]}",
    );
    let (log, status, asked) = run(&team, &["\u{1b}[2J\u{0}7; rm -rf", "Another one"]).await;
    assert!(matches!(status, Ok(Status::Closed { .. })), "{status:?}");
    assert!(asked[0].starts_with("Who speaks next?") && asked[1].contains("is none of them"), "{asked:?}");
    let choice = log.events().await.iter().find_map(|event| match &event.body {
        Body::TurnStarted { turns } => {
            turns.iter().find(|turn| turn.who.as_str() == "A").and_then(|turn| turn.choice.clone())
        }
        _ => None,
    });
    let choice = format!("{:?}", choice.unwrap());
    assert!(choice.contains("`Zoe` selected no participant who may speak, twice"), "{choice}");
}

#[tokio::test]
async fn a_default_answer_counts_for_a_person_who_selects_speakers_and_for_one_who_is_a_critic() {
    for (pattern, script) in [
        ("{group: {select: {human: Zoe}}}", "{A: hello}"),
        (
            "{role_play: {user: {who: A}, assistant: {who: B}, max_rounds: 1, critic: {who: Zoe, options: 2}}}",
            "{A: 'Instruction: sing'}, {A: 'Instruction: dance'}",
        ),
    ] {
        let team = team(&format!(
            "{{name: t, model: 'a:b',
              agents: [{{name: A}}, {{name: B}}, {{name: Zoe, human: true, default_answer: {{timeout: 1 h, text: '2'}}}}],
              chat: {{participants: [A, B], pattern: {pattern}}}, script: [{script}]}}"
        ));
        let (_, status, _) = run(&team, &[]).await;
        let Ok(Status::Waiting(questions)) = status else { panic!("{status:?}") };
        let default = questions[0].1.default.as_ref().map(|default| (default.after_ms, &*default.text));
        assert_eq!(default, Some((3_600_000, "2")), "{pattern}");
    }
}

#[tokio::test]
async fn a_model_that_names_unknown_participants_is_asked_again_and_then_the_order_decides() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A}, {name: B}],
          chat: {participants: [A, B], pattern: {group: {select: {model: {attempts: 2}}}}, stop: {max_turns: 1}},
          script: [{t_selector: Absent}, {t_selector: A and B}, {A: hello}]}",
    );
    let (_, status, _) = run(&team, &[]).await;
    assert!(matches!(status, Ok(Status::Closed { .. })), "{status:?}");
}

/// One that takes part, and one that is asked for this alone.
#[tokio::test]
async fn an_agent_writes_the_summary_by_its_own_system_text() {
    for by in ["B", "C"] {
        let team = team(&format!(
            "{{name: t, model: 'a:b', agents: [{{name: A}}, {{name: B, system: I am B.}}, {{name: C, system: I am C.}}],
              chat: {{participants: [A, B], stop: {{max_turns: 2}}, summary: {{reflect: {{by: {by}, prompt: 'Sum up {{{{task}}}}.'}}}}}},
              script: [{{A: one}}, {{B: two}}, {{{by}: {{say: in short, expect: {{last: Sum up Begin., system: I am {by}.}}}}}}]}}"
        ));
        assert_eq!(team.answering_models().len(), 3, "there is no other author");
        let (_, status, _) = run(&team, &[]).await;
        assert!(
            matches!(&status, Ok(Status::Closed { summary, .. }) if &**summary == "in short"),
            "{status:?}"
        );
    }
}

#[tokio::test]
async fn a_chat_that_ends_at_its_max_turns_has_the_result_that_its_file_asks_for() {
    let limit = |turns: u64| StopReason::Turns { limit: turns, next: None }.to_string();
    for (chat, script, reason, result) in [
        ("max_turns: 2, summary: {reflect: {}}", "{A: one}, {B: two}, {t_summary: sum}", limit(2), "sum"),
        ("max_turns: 2, summary: {reflect: {by: B}}", "{A: one}, {B: two}, {B: sum}", limit(2), "sum"),
        (
            "max_turns: 3, pattern: sequential, summary: {reflect: {}}",
            "{A: one}, {B: two}, {C: three}, {t_summary: sum}",
            "every participant has spoken".to_owned(),
            "sum",
        ),
        // The selector is not asked for a turn that cannot follow: the script has no reply for it.
        (
            "max_turns: 1, pattern: {group: {select: {model: {}}}}, summary: {reflect: {}}",
            "{t_selector: A}, {A: one}, {t_summary: sum}",
            limit(1),
            "sum",
        ),
        ("max_turns: 2, summary: none", "{A: one}, {B: two}", limit(2), ""),
        ("max_turns: 2, summary: {without: END}", "{A: one}, {B: two END}", limit(2), "two"),
    ] {
        let team = team(&format!(
            "{{name: t, model: 'a:b', agents: [{{name: A}}, {{name: B}}, {{name: C}}],
              chat: {{participants: [A, B, C], {chat}}}, script: [{script}]}}"
        ));
        let (_, status, _) = run(&team, &[]).await;
        let Ok(Status::Closed { reason: ended, summary }) = status else { panic!("{chat}: {status:?}") };
        assert_eq!((ended.to_string(), &*summary), (reason, result), "{chat}");
    }
}

#[tokio::test]
async fn a_participant_of_a_discussion_can_write_its_summary() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A}, {name: B}, {name: C}],
          chat: {participants: [A, B], summary: {reflect: {by: B}},
            pattern: {group_solve: {tasks: [{who: A, prompt: a}, {who: B, prompt: b}], before: [{who: C, prompt: c}], max_iterations: 1}}},
          script: [{C: zero}, {A: one}, {B: two}, {B: three}, {A: four}, {B: {say: in short, expect: {last: Summarize}}}]}",
    );
    let (_, status, _) = run(&team, &[]).await;
    assert!(matches!(&status, Ok(Status::Closed { summary, .. }) if &**summary == "in short"), "{status:?}");
}

#[tokio::test]
async fn states_begin_as_conditions_on_the_task_say() {
    let of = |start: &str, script: &str| {
        team(&format!(
            "{{name: t, model: 'a:b', agents: [{{name: A}}, {{name: B}}], chat: {{participants: [A, B],
              pattern: {{state_machine: {{start: {start}, after: {{A: end, B: end}}}}}}}}, script: [{script}]}}"
        ))
    };
    let said = async |team: &Team| {
        let (_, status, _) = run(team, &[]).await;
        let Ok(Status::Closed { summary, .. }) = status else { panic!("{status:?}") };
        summary.to_string()
    };
    let switch = "[{when: \"task.contains('Begin')\", then: B}, {then: A}]";
    assert_eq!(said(&of(switch, "{B: it is B}")).await, "it is B");
    let other = "[{when: \"task.contains('?')\", then: B}, {then: A}]";
    assert_eq!(said(&of(other, "{A: it is A}")).await, "it is A");
    assert_eq!(said(&of("B", "{B: B alone}")).await, "B alone");
    let none = of("[{when: \"task.contains('?')\", then: B}]", "{A: a}, {B: b}");
    let (log, status, _) = run(&none, &[]).await;
    assert!(matches!(status, Ok(Status::Closed { .. })), "{status:?}");
    assert!(!log.events().await.iter().any(|event| matches!(event.body, Body::Message(_))));
}

#[tokio::test]
async fn chats_of_a_sequence_without_results_do_not_keep_the_next_from_its_turn() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A}, {name: B}, {name: C}],
          chat: {participants: [one, two, three], pattern: sequential},
          chats: [
            {name: one, participants: [A], pattern: sequential, summary: {without: DONE}},
            {name: two, participants: [B], pattern: sequential, summary: {without: DONE}},
            {name: three, participants: [C], pattern: sequential}],
          script: [{A: DONE}, {B: DONE}, {C: the result}]}",
    );
    let (log, status, _) = run(&team, &[]).await;
    assert!(
        matches!(&status, Ok(Status::Closed { summary, .. }) if &**summary == "the result"),
        "{status:?}"
    );
    let asked = log.events().await.iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count();
    assert_eq!(asked, 3);
}

/// The agent who runs the tool says to what its state belongs, as the one who calls it by itself does.
#[tokio::test]
async fn state_of_one_chat_is_not_seen_around_it_with_any_agent_that_runs_the_tool() {
    let state = |scope: &str| format!("{{tool: set_state, scope: {scope}}}");
    for scope in ["chat", "team"] {
        let state = state(scope);
        for (ann, run) in [
            ("suggests_tools: [set_state]".to_owned(), format!("model: none, executes_tools: [{state}]")),
            (format!("tools: [{state}]"), "model: none, default_reply: Well.".to_owned()),
        ] {
            let team = team(&format!(
                "{{name: t, model: 'a:b', agents: [{{name: Ann, {ann}}}, {{name: Run, {run}}}, {{name: Seen}}, {{name: Unseen}}],
                  chats: [{{name: inner, participants: [Ann, Run], pattern: sequential}}],
                  chat: {{participants: [inner, Seen, Unseen], pattern: {{state_machine: {{start: inner, after:
                    {{inner: [{{when: has(state.done), then: Seen}}, {{then: Unseen}}], Seen: end, Unseen: end}}}}}}}},
                  script: [{{Ann: {{say: Set., calls: [{{tool: set_state, args: {{key: done, value: 'yes'}}}}]}}}}, {{Ann: Done.}},
                    {{Seen: seen}}, {{Unseen: unseen}}]}}"
            ));
            let (_, status, _) = self::run(&team, &[]).await;
            let Ok(Status::Closed { summary, .. }) = status else { panic!("{status:?}") };
            let expected = if scope == "chat" { "unseen" } else { "seen" };
            assert_eq!(&*summary, expected, "{scope} {ann} {run}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_sets_some_keys_of_the_state_refuses_others() {
    for (key, expected) in [("done", "seen"), ("dome", "unseen")] {
        let team = team(&format!(
            "{{name: t, model: 'a:b', agents: [{{name: Ann, tools: [{{tool: set_state, keys: [done]}}]}}, {{name: Seen}}, {{name: Unseen}}],
              chat: {{participants: [Ann, Seen, Unseen], pattern: {{state_machine: {{start: Ann, after:
                {{Ann: [{{when: size(state) > 0, then: Seen}}, {{then: Unseen}}], Seen: end, Unseen: end}}}}}}}},
              script: [{{Ann: {{say: Set., calls: [{{tool: set_state, args: {{key: {key}, value: 'yes'}}}}]}}}}, {{Ann: Done.}},
                {{Seen: seen}}, {{Unseen: unseen}}]}}"
        ));
        let (_, status, _) = self::run(&team, &[]).await;
        let Ok(Status::Closed { summary, .. }) = status else { panic!("{status:?}") };
        assert_eq!(&*summary, expected, "{key}");
    }
}

#[tokio::test]
async fn max_tool_rounds_limits_the_tool_calls_of_a_turn() {
    let call = "{A: {calls: [{tool: calculator, args: {expression: '1+1'}}]}}";
    for (rounds, calls) in [(1, 1), (2, 2)] {
        let team = team(&format!(
            "{{name: t, model: 'a:b', agents: [{{name: A, tools: [calculator], max_tool_rounds: {rounds}}}],
              chat: {{participants: [A], pattern: sequential}}, script: [{call}, {call}, {call}]}}"
        ));
        let (log, status, _) = run(&team, &[]).await;
        let events = log.events().await;
        let called = events.iter().filter(|event| matches!(event.body, Body::ToolCalled { .. })).count();
        assert_eq!(called, calls, "{status:?}");
        let Ok(Status::Closed { reason, .. }) = status else { panic!("{status:?}") };
        let expected = format!("A's limit of {rounds} round");
        assert!(reason.to_string().starts_with(&expected), "{reason}");
    }
}

#[tokio::test]
async fn tool_search_offers_a_search_and_what_is_always_offered() {
    let offered = async |search: &str| {
        let team = team(&format!(
            "{{name: t, model: 'a:b', agents: [{{name: A, tools: [calculator, chess, get_history]{search}}}],
              chat: {{participants: [A], pattern: sequential}},
              script: [{{A: {{calls: [{{tool: nothing}}]}}}}, {{A: Done.}}]}}"
        ));
        let (log, _, _) = run(&team, &[]).await;
        let events = log.events().await;
        let found = events.iter().find_map(|event| match &event.body {
            Body::ToolReturned { result: outcome, .. } => Some(outcome.text().into_owned()),
            _ => None,
        });
        found.unwrap()
    };
    let all = "There are `calculator`, `chess`, and `get_history`.";
    let searched = "There are `calculator`, `chess`, `get_history`, `search_tools`, and `call_tool`.";
    for (search, tools) in [
        ("", all),
        (", tool_search: false", all),
        (", tool_search: true", all),
        (", tool_search: {above: 2}", searched),
        (", tool_search: {above: 0, always: [chess, calculator, get_history]}", all),
    ] {
        let error = offered(search).await;
        assert!(error.ends_with(tools), "{search}: {error}");
    }
}

/// Whether it can be seen in the file or not: no run waits for a participant that never joins.
#[tokio::test]
async fn a_late_joiner_that_waits_for_itself_holds_up_no_run() {
    let next = "no participant may speak after A";
    for (pattern, reason) in [
        ("round_robin", "2 of 2 turns"),
        ("sequential", "2 of 2 turns"),
        ("parallel", "2 of 2 turns"),
        ("{dag: {B: [A]}}", "2 of 2 turns"),
        ("{group: {select: random}}", "2 of 2 turns"),
        ("{group: {select: round_robin, transitions: {allowed: {A: [P], B: [P], P: [A]}}}}", next),
        ("{state_machine: {after: {A: P, B: P, P: A}}}", next),
        ("{state_machine: {start: P, after: {P: A, A: P}}}", "no participant may begin"),
        ("{handoffs: {then: P}}", next),
        ("{handoffs: {start: P, then: stay}}", "no participant may begin"),
    ] {
        let team = team(&format!(
            "{{name: t, model: 'a:b', agents: [{{name: A}}, {{name: B, handoffs: [P]}}, {{name: P}}],
              chat: {{participants: [A, B], late_joiners: [{{who: P, when: \"last.from == 'P'\"}}], pattern: {pattern},
                      stop: {{max_turns: 2}}}},
              script: [{{A: one}}, {{B: two}}, {{A: three}}, {{B: four}}]}}"
        ));
        let (log, status, _) = run(&team, &[]).await;
        let Ok(Status::Closed { reason: ended, .. }) = status else { panic!("{pattern}: {status:?}") };
        assert!(ended.to_string().contains(reason), "{pattern}: {ended}");
        let joins = log.events().await.iter().any(|event| matches!(event.body, Body::Joined { .. }));
        assert!(!joins, "{pattern}");
    }
}
