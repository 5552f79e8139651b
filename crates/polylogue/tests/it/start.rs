//! The first steps with the library: run, print, stream, wait, resume, ask a model.

use polylogue::policies::Selector;
use polylogue::stop::LibraryStopReason;
use polylogue::{Assistant, Chat, Group, Human, Log, Status, Update, models, round_robin, stop};
use polylogue_core::Body;

const COUNT: &str = r#"[{"Ann": "One."}, {"Bob": "Two. DONE"}]"#;

fn counting(script: &str) -> Chat {
    let model = models::scripted(script).unwrap();
    Chat::builder("counting")
        .participant(Assistant::new("Ann", &model).unwrap().system("Count on."))
        .participant(Assistant::new("Bob", &model).unwrap().system("Count on. Say DONE at two."))
        .policy(round_robin())
        .stop(stop::says("DONE") | stop::max_turns(10))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_run_returns_text_messages_stop_reason_and_usage() {
    let result = counting(COUNT).run("Count to two.").await.unwrap();
    assert_eq!(result.text(), "Two. DONE");
    assert_eq!(result.stop_reason().unwrap().to_string(), "Bob said `DONE`");
    assert_eq!(
        result.messages().map(|message| message.text()).collect::<Vec<_>>(),
        ["Count to two.", "One.", "Two. DONE"]
    );
    assert_eq!(result.usage.calls, 2);
    let printed = "user: Count to two.\n\nAnn: One.\n\nBob: Two. DONE\n\n(Bob said `DONE`)";
    assert_eq!(result.to_string(), printed);
}

#[tokio::test]
async fn a_streamed_run_yields_every_event_in_order_and_then_the_result() {
    let chat = counting(COUNT);
    let mut stream = chat.stream("Count to two.");
    let mut events = Vec::new();
    while let Some(update) = stream.next().await {
        if let Update::Event(event) = update.unwrap() {
            events.push(event);
        }
    }
    let result = stream.result().await.unwrap();
    assert_eq!(events, result.events());
    assert!(matches!(events.last().unwrap().body, Body::Closed { .. }));
}

#[tokio::test]
async fn the_error_of_a_streamed_run_is_its_last_item() {
    let chat = counting(r#"[{"Ann": {"error": {"message": "gone"}}}]"#);
    let mut stream = chat.stream("Count to two.");
    let mut last = None;
    while let Some(update) = stream.next().await {
        last = Some(update);
    }
    assert!(last.unwrap().unwrap_err().to_string().contains("gone"));
    assert!(chat.stream("Count to two.").result().await.is_err());
}

#[tokio::test]
async fn the_first_condition_that_holds_ends_the_chat_before_the_policy() {
    let model = models::scripted(r#"[{"Ann": "One."}, {"Bob": "Two."}]"#).unwrap();
    let chat = Chat::builder("pair")
        .participant(Assistant::new("Ann", &model).unwrap())
        .participant(Assistant::new("Bob", &model).unwrap())
        .policy(round_robin())
        .stop(stop::max_turns(2))
        .stop(stop::says("Two."));
    let result = chat.build().unwrap().run("Count.").await.unwrap();
    assert!(
        matches!(
            result.stop_reason().and_then(LibraryStopReason::of),
            Some(LibraryStopReason::CountReached { count: 2, .. })
        ),
        "{result}"
    );
}

#[tokio::test]
async fn a_waiting_run_names_the_person_and_continues_in_its_log() {
    let model = models::scripted(r#"[{"Clerk": "Which train?"}, {"Clerk": "Booked."}]"#).unwrap();
    let chat = Chat::builder("journey")
        .participant(Assistant::new("Clerk", &model).unwrap())
        .participant(Human::new("Traveler").unwrap())
        .policy(round_robin())
        .stop(stop::max_turns(3))
        .build()
        .unwrap();
    let mut log = Log::in_memory();
    let result = chat.run_in(&mut log, "To the sea").await.unwrap();
    assert!(result.to_string().contains("(waits for Traveler: "), "{result}");
    let [(at, question)] = result.questions() else { panic!("{result}") };
    log.answer(at, &question.who, "The later one").await.unwrap();
    let result = chat.resume(&mut log).await.unwrap();
    assert!(matches!(result.status, Status::Closed { .. }));
    assert_eq!(result.text(), "Booked.");
    let result = chat.continue_with(&mut log, "Thank you").await;
    assert!(result.unwrap_err().to_string().contains("Clerk"), "the script is over");
}

#[tokio::test]
async fn the_selector_of_a_group_comes_with_it() {
    let model = models::scripted(r#"[{"selector": "Bob"}, {"Bob": "DONE"}]"#).unwrap();
    let chat = Chat::builder("group")
        .participant(Assistant::new("Ann", &model).unwrap())
        .participant(Assistant::new("Bob", &model).unwrap())
        .policy(Group::select_by(Selector::new("selector", &model).unwrap()))
        .stop(stop::says("DONE"));
    let result = chat.build().unwrap().run("Who?").await.unwrap();
    assert_eq!(result.text(), "DONE");
}

#[tokio::test]
async fn a_model_alone_is_asked_in_three_lines() {
    let model = models::scripted(r#"[{"user": "Blue light scatters most."}]"#).unwrap();
    let reply = model.ask("Why is the sky blue?").await.unwrap();
    assert_eq!(reply.to_string(), "Blue light scatters most.");
}

/// The names that the root of the crate exports, read from its source.
fn root_names() -> Vec<String> {
    let source = include_str!("../../src/lib.rs");
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let exports = code.split(';').filter_map(|item| {
        let item = item.rsplit("pub ").next().filter(|_| item.contains("pub "))?;
        item.strip_prefix("mod ").or_else(|| item.strip_prefix("use ")).map(str::to_owned)
    });
    let leaf =
        |name: &str| name.rsplit("::").next().unwrap().rsplit(" as ").next().unwrap().trim().to_owned();
    exports
        .flat_map(|export| match export.split_once('{') {
            Some((_, names)) => names.trim_end_matches('}').split(',').map(leaf).collect::<Vec<_>>(),
            None => vec![leaf(&export)],
        })
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn the_root_has_at_most_forty_names() {
    let names = root_names();
    assert!(
        ["Chat", "Assistant", "stop", "models", "kernel", "toolkit"]
            .iter()
            .all(|name| { names.iter().any(|other| other == name) }),
        "{names:?}"
    );
    assert!(names.len() <= 40, "{} names: {names:?}", names.len());
}
