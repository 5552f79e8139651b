//! Handing over.

use expect_test::expect;
use polylogue::Act;
use polylogue::policies::handoff::{AfterHandoff, Handoff, handoffs};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{Chat, Function, Human, Message, Name, Tool};
use polylogue_core::Chooser;
use polylogue_core::{Part, ToolResult, ToolSpec, ToolStatus};
use polylogue_test::tool::tool_of;
use serde_json::json;

use crate::beyond::stage::{Cast, events, events_with, fails, log, name, play, print};

fn desk(cast: &Cast<'_>, after: AfterHandoff) -> Chat {
    let transfer = |who: &str| Handoff::to(who, "When it is theirs.").unwrap();
    Chat::builder("desk")
        .participant(cast.assistant("Front").tool(transfer("Billing")).tool(transfer("Tech")))
        .participant(
            cast.assistant("Billing")
                .tool(transfer("Front"))
                .tool(transfer("Ghost"))
                .tool(transfer("Billing")),
        )
        .participant(cast.assistant("Tech"))
        .policy(with_termination(handoffs(name("Front"), after), max_turns(6)))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_note_is_posted_in_the_chat_whether_or_not_the_agent_sends_a_message() {
    let script = r#"[
        {"Front": {"say": "One moment", "calls": [{"tool": "transfer_to_Billing", "args": {"note": "invoice 7"}}]}},
        {"Billing": {"calls": [{"tool": "transfer_to_Front", "args": {"note": "it is paid"}}]}},
        {"Front": {"calls": [{"tool": "transfer_to_Tech"}]}},
        {"Tech": {"say": "Done", "expect": {"last": "I hand over to Tech."}}}]"#;
    let said = play(script, |cast| desk(cast, AfterHandoff::End)).await;
    expect![[r#"
        opened [Front, Billing, Tech] "task" | user: task
        turn Front
        Front calls transfer_to_Billing {"note":"invoice 7"} #Front-0-0
        Front gets #Front-0-0: invoice 7
        Front says: One moment
        posted Front: invoice 7
        turn Billing (of [Billing, Tech] by handoff)
        Billing calls transfer_to_Front {"note":"it is paid"} #Billing-0-0
        Billing gets #Billing-0-0: it is paid
        Billing says: it is paid
        turn Front (of [Front, Tech] by handoff)
        Front calls transfer_to_Tech {} #Front-1-0
        Front gets #Front-1-0: I hand over to Tech.
        Front says: I hand over to Tech.
        turn Tech (of [Billing, Tech] by handoff)
        Tech says: Done
        closed (Tech replied without a handoff): Done"#]]
    .assert_eq(&said);
}

// Trap T41: of parallel handoffs all but one were dropped without a word.
#[tokio::test]
async fn of_several_handoffs_in_a_reply_only_the_first_succeeds() {
    let script = r#"[
        {"Front": {"calls": [{"tool": "transfer_to_Tech", "args": {"note": "a"}}, {"tool": "transfer_to_Billing"},
            {"tool": "transfer_to_Tech", "args": {"note": "b"}}]}},
        {"Tech": "Done"}]"#;
    let said = play(script, |cast| desk(cast, AfterHandoff::End)).await;
    let refusal = "failed: this was not done: a reply can hand over once, and `transfer_to_Tech` came first";
    assert_eq!(said.matches(refusal).count(), 2, "{said}");
    assert!(said.contains("Front says: a\nturn Tech"), "{said}");
}

#[tokio::test]
async fn a_failed_handoff_returns_an_error_to_the_model_and_the_turn_continues() {
    let script = r#"[
        {"Front": {"calls": [{"tool": "transfer_to_Billing"}]}},
        {"Billing": {"calls": [{"tool": "transfer_to_Ghost"}]}},
        {"Billing": {"calls": [{"tool": "transfer_to_Billing"}]}},
        {"Billing": {"calls": [{"tool": "transfer_to_Absent"}]}},
        {"Billing": {"calls": [{"tool": "transfer_to_Front", "args": {"note": 7}}]}},
        {"Billing": "I do it myself"}]"#;
    let said = play(script, |cast| desk(cast, AfterHandoff::End)).await;
    let failures: Vec<_> =
        said.lines().filter_map(|line| line.split_once(" failed: ")).map(|(_, why)| why).collect();
    expect![[r#"
        `Ghost` is not here, so continue without them; here: `Front`, `Tech`
        you have the conversation already
        There is no tool `transfer_to_Absent`. There are `transfer_to_Front`, `transfer_to_Ghost`, and `transfer_to_Billing`.
        `note` must be a text; got 7"#]]
    .assert_eq(&failures.join("\n"));
    assert!(said.ends_with(
        "Billing says: I do it myself\nclosed (Billing replied without a handoff): I do it myself"
    ));
}

#[tokio::test]
async fn the_current_agent_continues_until_it_is_silent() {
    let script = r#"[{"Front": "one"}, {"Front": {"calls": [{"tool": "transfer_to_Tech"}]}}, {"Tech": "two"}, {"Tech": ""}]"#;
    let said = play(script, |cast| desk(cast, AfterHandoff::Stay)).await;
    assert!(
        said.ends_with("Tech says: two\nturn Tech\nTech passes\nclosed (Tech has no reply): two"),
        "{said}"
    );
}

#[tokio::test]
async fn a_person_talks_with_the_current_agent_and_can_leave() {
    let script = r#"[
        {"Front": "What is it?"}, {"Front": {"calls": [{"tool": "transfer_to_Tech"}]}},
        {"Tech": {"say": "Is it plugged in?", "expect": {"last": "I hand over to Tech."}}},
        {"Tech": {"say": "Then plug it in", "expect": {"last": "No"}}}]"#;
    let events = events_with(script, &|nth| ["It is broken", "No", "exit"][nth], |cast| {
        Chat::builder("desk")
            .participant(cast.assistant("Front").tool(Handoff::to("Tech", "").unwrap()))
            .participant(cast.assistant("Tech"))
            .participant(Human::new("Customer").unwrap())
            .policy(handoffs(name("Front"), AfterHandoff::To(name("Customer"))))
            .build()
            .unwrap()
    })
    .await;
    let said = print(&events);
    let speakers: Vec<_> =
        said.lines().filter_map(|line| line.strip_prefix("turn ")?.split(' ').next()).collect();
    assert_eq!(speakers, ["Front", "Customer", "Front", "Tech", "Customer", "Tech", "Customer"]);
    assert!(said.ends_with("closed (Customer left: said `exit`): Then plug it in"), "{said}");
}

#[tokio::test]
async fn no_handoff_to_a_participant_who_left_or_has_not_joined() {
    let script = r#"[{"Front": {"calls": [{"tool": "transfer_to_Later"}]}}, {"Front": "alone"}]"#;
    let said = play(script, |cast| {
        Chat::builder("desk")
            .participant(cast.assistant("Front").tool(Handoff::to("Later", "").unwrap()))
            .late_joiner(cast.assistant("Later"))
            .policy(handoffs(name("Front"), AfterHandoff::To(name("Later"))))
            .build()
            .unwrap()
    })
    .await;
    assert!(
        said.contains("failed: `Later` is not here, so continue without them; here: no other participant is"),
        "{said}"
    );
    assert!(said.ends_with("closed (no participant may speak after Front): alone"), "{said}");
}

#[tokio::test]
async fn a_custom_tool_hands_over() {
    let script = r#"[{"Front": {"calls": [{"tool": "route", "args": {"to": "Tech"}}]}}, {"Front": "Wait"}, {"Tech": "Hello"}]"#;
    let events = events(script, |cast| {
        let spec = ToolSpec::new("route", "", json!({"type": "object"})).repeatable();
        let route = tool_of(spec, |args| {
            let parts = vec![Part::text("Routed"), Part::Data(json!({"handoff": args["to"]}))];
            Ok(ToolResult::new(ToolStatus::Done, parts))
        });
        let chat = Chat::builder("desk")
            .participant(cast.assistant("Front").tool(route))
            .participant(cast.assistant("Tech"));
        chat.policy(handoffs(name("Front"), AfterHandoff::End)).build().unwrap()
    })
    .await;
    assert!(print(&events).contains("Front says: Wait\nturn Tech (of [Tech] by handoff)\nTech says: Hello"));
    let chosen = events.iter().filter_map(|event| match &event.body {
        polylogue_core::Body::TurnStarted { turns } => turns[0].choice.as_ref(),
        _ => None,
    });
    assert_eq!(chosen.map(|choice| choice.by.clone()).collect::<Vec<_>>(), [Chooser::Handoff]);
}

#[tokio::test]
async fn names_that_no_provider_accepts_get_other_tool_names() {
    let long = "L".repeat(Name::MAX_CHARS);
    let names = ["Köchin", "Kächin", "翻译", &long];
    let tools: Vec<String> =
        names.iter().map(|who| Handoff::to(who, "").unwrap().spec().name.clone()).collect();
    for (index, tool) in tools.iter().enumerate() {
        assert!(tool.len() <= 64 && tool.is_ascii() && !tools[..index].contains(tool), "{tools:?}");
    }
    assert!(Handoff::to("no/name", "").is_err());
    let script = serde_json::json!([{"Front": {"calls": [{"tool": tools[0]}]}}, {"Köchin": "Suppe"}]);
    let said = play(&script.to_string(), |cast| {
        let chat = Chat::builder("desk")
            .participant(cast.assistant("Front").tool(Handoff::to("Köchin", "").unwrap()));
        chat.participant(cast.assistant("Köchin"))
            .policy(handoffs(name("Front"), AfterHandoff::End))
            .build()
            .unwrap()
    })
    .await;
    assert!(said.ends_with("closed (Köchin replied without a handoff): Suppe"), "{said}");
}

#[tokio::test]
async fn a_reopened_conversation_continues_with_the_current_agent() {
    let script: polylogue_models::Script = serde_json::from_str(
        r#"[{"Front": {"calls": [{"tool": "transfer_to_Tech"}]}}, {"Tech": "one"}, {"Tech": "two"}]"#,
    )
    .unwrap();
    let model = polylogue::AnyModel::new(script.model("test"));
    let front = polylogue::Assistant::new("Front", model.clone()).unwrap();
    let chat = Chat::builder("desk")
        .participant(front.tool(Handoff::to("Tech", "").unwrap()))
        .participant(polylogue::Assistant::new("Tech", model).unwrap())
        .policy(handoffs(name("Front"), AfterHandoff::End))
        .build()
        .unwrap();
    let mut log = log().await;
    chat.run_in(&mut log, "task").await.unwrap();
    let status = chat.continue_with(&mut log, Message::new(Name::user(), "and?")).await.unwrap().status;
    assert!(matches!(status, polylogue::Status::Closed { summary, .. } if &*summary == "two"));
}

#[tokio::test]
async fn an_unknown_participant_as_start_is_a_configuration_error() {
    let error = fails("[]", |cast| {
        let policy = handoffs(name("Absent"), AfterHandoff::Stay);
        let idle = Function::new("Idle", |_| Ok(Act::Pass)).unwrap();
        cast.chat(&[]).participant(idle).policy(policy).build().unwrap()
    })
    .await;
    assert!(error.contains("`Absent`, who is not a participant"), "{error}");
}

#[tokio::test]
async fn a_chat_is_handed_over_to_and_reads_the_note() {
    let script = r#"[{"Front": {"calls": [{"tool": "transfer_to_Experts", "args": {"note": "error 7"}}]}},
        {"One": {"say": "a fuse", "expect": {"last": "error 7"}}}, {"Two": "change the fuse"}]"#;
    let said = play(script, |cast| {
        let experts = cast.chat(&["One", "Two"]).policy(polylogue::sequential());
        let experts =
            Chat::builder("Experts").participant(experts.build().unwrap()).policy(polylogue::sequential());
        let front = cast.assistant("Front").tool(Handoff::to("Experts", "").unwrap());
        let chat = Chat::builder("desk").participant(front).participant(experts.build().unwrap());
        chat.policy(handoffs(name("Front"), AfterHandoff::End)).build().unwrap()
    })
    .await;
    assert!(
        said.ends_with(
            "Experts says: change the fuse\nclosed (Experts replied without a handoff): change the fuse"
        ),
        "{said}"
    );
}

#[tokio::test]
async fn a_call_in_a_private_turn_is_no_handoff() {
    let script = r#"[{"Front": "Hello"}, {"Front": {"calls": [{"tool": "transfer_to_Tech"}]}}]"#;
    let said = play(script, |cast| {
        let policy = polylogue::policies::with_summary_by(
            handoffs(name("Front"), AfterHandoff::End),
            name("Front"),
            |_| "And?".into(),
        );
        let front = cast.assistant("Front").tool(Handoff::to("Tech", "").unwrap());
        Chat::builder("desk")
            .participant(front)
            .participant(cast.assistant("Tech"))
            .policy(policy)
            .build()
            .unwrap()
    })
    .await;
    assert!(
        said.ends_with(
            "Front says in private: I hand over to Tech.\nclosed (Front replied without a handoff): I hand over to Tech."
        ),
        "{said}"
    );
}
