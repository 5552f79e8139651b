use super::*;

#[test]
fn an_event_is_one_flat_json_object() {
    let event = Event {
        seq: 4,
        chat: Path::root().child(&Name::new("critic").unwrap(), 2),
        time: Timestamp(7),
        ran_ms: 0,
        inbox: None,
        body: Body::Message(Message::new(Name::user(), "hi")),
    };
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(
        json,
        r#"{"seq":4,"chat":"/critic.2","time_ms":7,"type":"message","from":"user","parts":[{"text":"hi"}]}"#
    );
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
}

#[test]
fn no_field_of_a_change_of_limits_is_one_of_the_event() {
    let limits = LimitOverrides {
        turns: Some(1),
        calls: Some(2),
        tokens: Some(3),
        cost: Some(crate::Money::dollars(4.0)),
        time_ms: Some(5),
        reply_tokens: Some(6),
        on_limit: None,
    };
    let (at, time) = (Path::root(), Timestamp(7));
    let (changes, by) = (vec!["turns from 1 to 2".into()], Some("pat".into()));
    let body = Body::LimitsChanged { limits, more: limits, changes, by };
    let event = Event { seq: 4, chat: at, time, ran_ms: 0, inbox: None, body };
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
}

#[test]
fn all_types_are_known_and_no_others() {
    let unknown = serde_json::json!({"type": "hologram_shown"});
    let error = serde_json::from_value::<Body>(unknown).unwrap_err().to_string();
    let (_, known) = error.split_once("expected one of ").unwrap();
    let known: Vec<&str> = known.split(", ").map(|name| name.trim_matches('`')).collect();
    assert!(known.contains(&"message") && known.len() > 20, "{known:?}");
    assert_eq!(known.iter().find(|name| !Body::has_type(name)), None);
    assert!(!["hologram_shown", "", "Message", "message "].into_iter().any(Body::has_type));
}
