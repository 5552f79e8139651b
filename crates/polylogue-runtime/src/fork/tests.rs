use polylogue_core::{Timestamp, ToolResult, ToolStatus};
use serde_json::json;

use super::*;

fn events() -> Vec<Event> {
    let name = |text: &str| Name::new(text).unwrap();
    let result: ToolResult = serde_json::from_value(json!({"status": "done", "parts": []})).unwrap();
    assert_eq!(result.status, ToolStatus::Done);
    let call: ToolCall = serde_json::from_value(json!({"id": "1", "tool": "add", "args": {}})).unwrap();
    let opened = json!({"type": "opened", "participants": ["Ann"], "task": "Add.",
        "messages": [{"from": "user", "parts": [{"text": "Add."}]}]});
    let bodies = [
        serde_json::from_value(opened).unwrap(),
        serde_json::from_value(json!({"type": "turn_started", "turns": [{"who": "Ann"}]})).unwrap(),
        Body::ToolCalled { who: name("Ann"), call },
        Body::ToolReturned { who: name("Ann"), id: "1".into(), result },
        Body::Message(Message::new(name("Ann"), "Two.")),
    ];
    let event =
        |(seq, body)| Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body };
    (0..).zip(bodies).map(event).collect()
}

fn forked(event: Option<u64>, text: Option<&str>) -> Result<Vec<Arc<Event>>> {
    let point = ForkPoint { event, text: text.map(str::to_owned), is_edited: false };
    copied(&LogId::new("a").unwrap(), &events(), &point, (&Meta::default(), None))
}

#[test]
fn the_events_before_the_point_are_copied_unchanged() {
    for at in [0, 1, 2, 4, 5] {
        let copied = forked(Some(at), None).unwrap();
        assert!(copied.iter().map(|event| &**event).eq(events().iter().take(at as usize)), "{at}");
    }
    assert_eq!(forked(None, None).unwrap().len(), 5);
}

#[test]
fn within_a_call_it_is_refused_by_name() {
    let error = forked(Some(3), None).unwrap_err();
    let why = "the call `add` of `Ann` at event 2 has no result before that event";
    assert_eq!(error.to_string(), format!("`a` cannot be forked before event 3: {why}"));
    assert_eq!(error.hint().as_deref(), Some("fork before event 2, or after event 3"));
}

#[test]
fn within_calls_that_overlap_the_places_before_and_after_all_of_them_are_named() {
    let mut events = events();
    let mut add = |seq: usize, like: usize, id: &str| {
        let mut event = events[like].clone();
        match &mut event.body {
            Body::ToolCalled { call, .. } => call.id = id.into(),
            Body::ToolReturned { id: of, .. } => *of = id.into(),
            _ => unreachable!(),
        }
        events.insert(seq, event);
    };
    add(3, 2, "2");
    add(5, 4, "2");
    (0..).zip(&mut events).for_each(|(seq, event)| event.seq = seq);
    let point = |event| ForkPoint { event: Some(event), text: None, is_edited: false };
    let fork = |event| copied(&LogId::new("a").unwrap(), &events, &point(event), (&Meta::default(), None));
    for event in 3..=5 {
        let hint = fork(event).unwrap_err().hint();
        assert_eq!(hint.as_deref(), Some("fork before event 2, or after event 5"), "{event}");
    }
    assert!(fork(2).is_ok() && fork(6).is_ok());
}

#[test]
fn a_message_and_the_task_are_reworded_and_nothing_else() {
    let copied = forked(Some(4), Some("Three.")).unwrap();
    let Body::Message(message) = &copied.last().unwrap().body else { panic!("no message") };
    assert_eq!((message.text().as_ref(), message.from.as_str(), copied.len()), ("Three.", "Ann", 5));
    let copied = forked(Some(0), Some("Multiply.")).unwrap();
    let Body::Opened(opening) = &copied.last().unwrap().body else { panic!("no opening") };
    assert_eq!((&*opening.task, opening.messages[0].text().as_ref()), ("Multiply.", "Multiply."));
    assert!(matches!(
        forked(Some(1), Some("x")),
        Err(Error::BadFork { why: ForkError::NoMessage { event: 1, .. }, .. })
    ));
}

#[test]
fn messages_before_the_first_turn_quote_the_new_task_and_are_otherwise_the_same() {
    let opening = json!({"participants": ["Ann"], "task": "Add.", "messages": [
        {"from": "user", "parts": [{"text": "The task: Add. Add."}, {"text": "Add."}]},
        {"from": "Ann", "parts": [{"text": "Add."}]},
        {"from": "Ann", "parts": [{"text": "Add. Nothing else."}]},
    ]});
    let texts = ["{{task}}", "The task: {{task}} Add."].map(Template::new);
    let opening = with_task(serde_json::from_value(opening).unwrap(), "Multiply.", &texts);
    let parts: Vec<_> = opening.messages.iter().flat_map(|message| message.parts.clone()).collect();
    let expected = ["The task: Multiply. Add.", "Add.", "Multiply.", "Add. Nothing else."].map(Part::text);
    assert_eq!((&*opening.task, parts.as_slice()), ("Multiply.", expected.as_slice()));
}

#[test]
fn a_limit_on_replies_stays_with_the_response_that_had_it() {
    let limits = |reply_tokens| LimitOverrides { turns: Some(3), reply_tokens, ..LimitOverrides::default() };
    let limited = |reply_tokens| {
        let mut copied = forked(Some(1), None).unwrap();
        let (limits, more) = (limits(reply_tokens), LimitOverrides::default());
        let body = Body::LimitsChanged { limits, more, changes: Vec::new(), by: None };
        copied.push(Arc::new(Event { seq: 1, body, ..Event::clone(&copied[0]) }));
        let meta = Meta { team: json!({"limits": {"turns": 4, "reply_tokens": 7}}), ..Meta::default() };
        let meta = without_reply_limit(meta, &mut copied);
        assert_eq!(meta.team, json!({"limits": {"turns": 4}}));
        copied
    };
    let any = Some(Conversation::ANY_REPLY_LENGTH);
    let copied = limited(Some(7));
    assert_eq!((copied.len(), copied[2].seq, LimitOverrides::last_of(&copied)), (3, 2, Some(limits(any))));
    for unlimited in [None, any] {
        assert_eq!(limited(unlimited).len(), 2, "{unlimited:?}");
    }
}

#[test]
fn an_event_that_is_not_there_is_refused() {
    for (event, text) in [(6, None), (5, Some("x"))] {
        let error = forked(Some(event), text).unwrap_err();
        assert!(error.to_string().ends_with("it has 5 events"), "{error}");
    }
}
