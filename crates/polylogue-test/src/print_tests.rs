use std::sync::Arc;

use polylogue_core::{
    Digest, Fault, Money, Name, Opening, Path, Question, StopReason, Timestamp, ToolResult, TurnRequest,
    Usage,
};
use serde_json::json;

use super::*;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn log(bodies: impl IntoIterator<Item = (Path, Body)>) -> String {
    let event = |(seq, (at, body))| Event { seq, chat: at, time: Timestamp(7), ran_ms: 0, inbox: None, body };
    let events: Vec<_> = (0..).zip(bodies).map(event).collect();
    let shared: Vec<_> = events.iter().cloned().map(Arc::new).collect();
    assert_eq!(transcript(&events), transcript(&shared));
    transcript(&events)
}

fn at_root(bodies: impl IntoIterator<Item = Body>) -> String {
    log(bodies.into_iter().map(|body| (Path::root(), body)))
}

fn model_reply_of(parts: Vec<Part>, finish: FinishReason, usage: Usage, cost: Option<Money>) -> Body {
    let request = Digest::try_from("0f".repeat(16)).unwrap();
    let reply = ModelReply::new(name("a"), "openai:x", request, parts);
    Body::ModelReplied(ModelReply { finish, usage, cost, ..reply })
}

#[test]
fn a_conversation_is_one_line_for_each_event() {
    let inner = Path::root().child(&name("critic"), 1);
    let opening = |with: &[&str], messages| {
        Body::Opened(Opening {
            participants: with.iter().map(|n| name(n)).collect(),
            task: "a poem".into(),
            messages,
            ..Opening::default()
        })
    };
    let first = vec![
        Message::new(Name::user(), "Be\nbrief"),
        Message::new(name("a"), "psst").to(Audience::Only(vec![name("critic")])),
    ];
    let text = log([
        (Path::root(), opening(&["a", "critic"], first)),
        (Path::root(), Body::TurnStarted { turns: vec![TurnRequest::to_all(name("a"))] }),
        (Path::root(), Body::Message(Message::new(name("a"), "Roses"))),
        (inner.clone(), opening(&["judge"], vec![])),
        (inner.clone(), Body::TurnStarted { turns: vec![TurnRequest::private(name("judge"), "Good?")] }),
        (inner, Body::Message(Message::new(name("judge"), "Yes").to(Audience::private()))),
        (
            Path::root(),
            Body::Closed { reason: StopReason::Turns { limit: 2, next: None }, summary: "Roses".into() },
        ),
    ]);
    let expected = r#"0 opened [a, critic] "a poem" | user: Be\nbrief | a to [critic]: psst
1 turn a
2 a says: Roses
3 /critic.1 opened [judge] "a poem"
4 /critic.1 turn judge in private "Good?"
5 /critic.1 judge says in private: Yes
6 closed (the limit of 2 turns): Roses
"#;
    assert_eq!(text, expected);
}

#[test]
fn model_and_tool_calls_show_their_cost_and_results() {
    let call = ToolCall { id: "a-0-0".into(), tool: "grade".into(), args: json!({"of": "poem"}) };
    let usage = Usage { input: Some(12), ..Usage::default() };
    let returned = |outcome| Body::ToolReturned { who: name("a"), id: "a-0-0".into(), result: outcome };
    let text = at_root([
        model_reply_of(
            vec![Part::Thought("hm".into()), Part::text("I look"), Part::ToolCall(call.clone())],
            FinishReason::Calls,
            usage,
            Some(Money::dollars(0.0012)),
        ),
        Body::ToolCalled { who: name("a"), call },
        returned(ToolResult::done("A\\B")),
        returned(ToolResult::failed("no grades")),
        returned(ToolResult::new(ToolStatus::Unknown, vec![Part::Data(json!({"x": 1}))])),
        model_reply_of(vec![], FinishReason::Length, Usage::default(), None),
    ]);
    let expected = r#"0 openai:x replies to a (calls, 12+? tokens, $0.0012): (hm) | I look | call grade {"of":"poem"} #a-0-0
1 a calls grade {"of":"poem"} #a-0-0
2 a gets #a-0-0: A\\B
3 a gets #a-0-0 failed: no grades
4 a gets #a-0-0 unknown: {"x":1}
5 openai:x replies to a (length): 
"#;
    assert_eq!(text, expected);
}

#[test]
fn other_events_are_one_line_each() {
    let media = Media {
        media_type: "image/png".into(),
        url: format!("data:image/png;base64,{}", "A".repeat(99)).into(),
    };
    let picture = Message { parts: vec![Part::Media(media)], ..Message::new(name("a"), "") };
    let error = Failure {
        fault: Fault::Provider,
        message: "no\nway".into(),
        hint: Some("wait".into()),
        unsent: false,
        postponed: false,
        permanent: false,
    };
    let text = at_root([
        Body::Prompted { who: name("a"), text: "No JSON".into() },
        Body::Passed { who: name("a") },
        Body::Left { who: name("a"), why: "tired".into() },
        Body::Posted(picture),
        Body::InputRequired(Question::new(name("h"), "Go on?")),
        Body::InputProvided { to: name("h"), text: "yes".into(), by: Default::default() },
        Body::Failed { who: name("a"), error },
        Body::reopened(None),
    ]);
    let expected = format!(
        "0 a is prompted: No JSON\n1 a passes\n2 a leaves: tired\n3 posted a: <image/png data:image/png;base64,{}…>\n\
         4 h asks: Go on?\n5 h is answered: yes\n6 a fails (provider): no\\nway (hint: wait)\n7 reopened\n",
        "A".repeat(38)
    );
    assert_eq!(text, expected);
}
