use super::*;

#[test]
fn an_event_is_one_flat_json_object() {
    let event = Event {
        seq: 4,
        at: Path::root().child(&Name::new("critic").unwrap(), 2),
        time: Timestamp(7),
        ran_ms: 0,
        inbox: None,
        body: Body::Message(Message::text(Name::user(), "hi")),
    };
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(
        json,
        r#"{"seq":4,"at":"/critic.2","time_ms":7,"type":"message","from":"user","parts":[{"text":"hi"}]}"#
    );
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
}
