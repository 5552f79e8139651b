use super::*;

#[test]
fn an_event_is_one_flat_json_object() {
    let event = Event {
        seq: 4,
        at: Path::root().child(&Name::new("critic").unwrap(), 2),
        time: Timestamp(7),
        ran_ms: 0,
        body: Body::Message(Message::text(Name::user(), "hi")),
    };
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(
        json,
        r#"{"seq":4,"at":"/critic.2","time_ms":7,"type":"message","from":"user","parts":[{"text":"hi"}]}"#
    );
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
}

#[test]
fn paths_know_their_ancestors() {
    let path = Path::root().child(&Name::new("a").unwrap(), 1).child(&Name::new("b").unwrap(), 2);
    let around: Vec<_> = path.ancestors().map(|p| p.to_string()).collect();
    assert_eq!(around, ["/a.1", ""]);
    assert_eq!(path.depth(), 2);
    assert_eq!(Path::root().ancestors().count(), 0);
}

#[test]
fn digests_are_32_hex_digits() {
    let digest = Digest([0xab; 16]);
    let json = serde_json::to_string(&digest).unwrap();
    assert_eq!(json, format!("\"{}\"", "ab".repeat(16)));
    assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
    assert!(serde_json::from_str::<Digest>("\"+b\"").is_err());
}
