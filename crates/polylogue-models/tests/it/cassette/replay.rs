//! What is replayed is what was recorded.

use polylogue_core::{Delta, Model, ModelErrorKind, Name, Path, Price, Usage};
use polylogue_models::{Cassette, Recorder, Recording};

use super::{Asked, Fake, Fresh, error, reply, rich_answer};

#[tokio::test]
async fn a_reply_is_replayed_in_the_same_pieces_and_an_error_is_the_same_error() {
    let file = Fresh::new();
    let broken = (vec![Delta::Text("Half a sen".into())], Err(error()));
    let model = Recorder::new(Fake::new([rich_answer(), broken.clone()]), &Cassette::create(&file).unwrap());
    let (first, second) = (Asked::new("A", 0), Asked::new("A", 1));
    assert_eq!(first.received(&model).await, flip(rich_answer()), "recording changes nothing");
    assert_eq!(second.received(&model).await, flip(broken.clone()));

    let recording = Recording::open(&file).unwrap();
    let replayer = recording.model("fake:model");
    assert_eq!(second.received(&replayer).await, flip(broken));
    assert_eq!(recording.unplayed(), ["call 1 of `A`"]);
    assert_eq!(first.received(&replayer).await, flip(rich_answer()));
    assert_eq!(recording.unplayed(), [""; 0]);
}

fn flip<A, B>((a, b): (A, B)) -> (B, A) {
    (b, a)
}

#[tokio::test]
async fn calls_are_found_by_chat_agent_and_number_in_whatever_order_they_are_asked() {
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(&["a0", "b0", "a1", "inner"]), &Cassette::create(&file).unwrap());
    let mut inner = Asked::new("A", 2);
    inner.at = Path::root().child(&Name::new("work").unwrap(), 1);
    let asked = [Asked::new("A", 0), Asked::new("B", 0), Asked::new("A", 1), inner];
    for asked in &asked {
        asked.of(&model).await.unwrap();
    }
    let replayer = Recording::open(&file).unwrap().model("fake:model");
    for (asked, text) in asked.iter().zip(["a0", "b0", "a1", "inner"]).rev() {
        assert_eq!(asked.of(&replayer).await.unwrap(), reply(text));
    }
}

#[tokio::test]
async fn an_agent_in_two_chats_at_once_may_be_counted_in_another_order() {
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(&["in x", "in y"]), &Cassette::create(&file).unwrap());
    let asked = |chat: &str, nth: u64| {
        let at = Path::root().child(&Name::new(chat).unwrap(), 1);
        Asked { at, nth, ..Asked::new("A", 0) }
    };
    asked("x", 0).of(&model).await.unwrap();
    asked("y", 1).of(&model).await.unwrap();
    let recording = Recording::open(&file).unwrap();
    let replayer = recording.model("fake:model");
    assert_eq!(asked("y", 0).of(&replayer).await.unwrap(), reply("in y"));
    assert_eq!(asked("x", 1).of(&replayer).await.unwrap(), reply("in x"));
    assert_eq!(recording.unplayed(), [""; 0]);
}

#[tokio::test]
async fn a_call_that_was_not_recorded_is_refused() {
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(&["a0"]), &Cassette::create(&file).unwrap());
    Asked::new("A", 0).of(&model).await.unwrap();
    let replayer = Recording::open(&file).unwrap().model("fake:model");

    let error = Asked::new("A", 1).of(&replayer).await.unwrap_err();
    assert_eq!((error.kind, &*error.message), (ModelErrorKind::Script, "call 2 of `A` was not recorded"));
    assert!(error.hint.unwrap().contains("c.jsonl"));

    let mut inner = Asked::new("A", 0);
    inner.at = Path::root().child(&Name::new("work").unwrap(), 1);
    let error = inner.of(&replayer).await.unwrap_err();
    assert_eq!(error.message, "call 1 of `A` in `/work.1` was not recorded");
}

#[tokio::test]
async fn a_call_that_failed_and_was_made_again_fails_and_is_made_again() {
    let file = Fresh::new();
    let answers = [(vec![], Err(error())), (vec![], Err(error())), (vec![], Ok(reply("at last")))];
    let model = Recorder::new(Fake::new(answers), &Cassette::create(&file).unwrap());
    let asked = Asked::new("A", 0);
    for _ in 0..3 {
        let _ = asked.of(&model).await;
    }
    let replayer = Recording::open(&file).unwrap().model("fake:model");
    assert_eq!(asked.of(&replayer).await, Err(error()));
    assert_eq!(asked.of(&replayer).await, Err(error()));
    assert_eq!(asked.of(&replayer).await, Ok(reply("at last")));
    assert_eq!(asked.of(&replayer).await, Ok(reply("at last")), "the last answer stays");
}

#[tokio::test]
async fn conversations_in_one_cassette_are_distinguished_by_their_requests() {
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(&["x0", "y0", "x1", "y1"]), &Cassette::create(&file).unwrap());
    let conversation = |task: &str, nth: u64| {
        let mut asked = Asked::new("A", nth);
        asked.entries.insert(0, polylogue_core::Entry::user(task));
        asked
    };
    let asked = [conversation("x", 0), conversation("y", 0), conversation("x", 1), conversation("y", 1)];
    for asked in &asked {
        asked.of(&model).await.unwrap();
    }
    let replayer = Recording::open(&file).unwrap().model("fake:model");
    for (asked, text) in asked.iter().zip(["x0", "y0", "x1", "y1"]).rev() {
        assert_eq!(asked.of(&replayer).await.unwrap(), reply(text));
    }
}

#[tokio::test]
async fn every_model_of_a_run_has_its_name_and_its_prices() {
    let file = Fresh::new();
    let cassette = Cassette::create(&file).unwrap();
    let dear = Recorder::new(Fake::saying(&["a0", "a1!"]), &cassette);
    let free = Fake { name: "local:free", price: Some(Price::FREE), ..Fake::saying(&["b0"]) };
    let free = Recorder::new(free, &cassette);
    let unknown = Fake { name: "other:unknown", price: None, ..Fake::saying(&["c0"]) };
    let unknown = Recorder::new(unknown, &cassette);
    assert_eq!((dear.name(), free.name(), unknown.name()), ("fake:model", "local:free", "other:unknown"));
    for nth in 0..2 {
        Asked::new("A", nth).of(&dear).await.unwrap();
    }
    Asked::new("B", 0).of(&free).await.unwrap();
    Asked::new("C", 0).of(&unknown).await.unwrap();

    let recording = Recording::open(&file).unwrap();
    assert_eq!(
        recording.models().into_iter().collect::<Vec<_>>(),
        ["fake:model", "local:free", "other:unknown"]
    );
    assert_eq!(recording.calls(), 4);
    for usage in [reply("a0").usage, reply("a1!").usage] {
        let replayed = recording.model("fake:model");
        assert_eq!((replayed.name(), replayed.cost(&usage)), (dear.name(), dear.cost(&usage)));
        assert!(replayed.cost(&usage).unwrap().picodollars > 0);
    }
    assert_eq!(recording.model("fake:model").cost(&Usage::default()), None, "no call used this");
    assert_eq!(recording.model("local:free").cost(&reply("b0").usage), free.cost(&reply("b0").usage));
    assert_eq!(recording.model("other:unknown").cost(&reply("c0").usage), None);
}

#[tokio::test]
async fn a_recording_grows_with_the_conversation_and_not_with_its_square() {
    let size = async |calls: u64| {
        let file = Fresh::new();
        let texts = vec!["answer"; usize::try_from(calls).unwrap()];
        let model = Recorder::new(Fake::saying(&texts), &Cassette::create(&file).unwrap());
        for nth in 0..calls {
            Asked::new("A", nth).of(&model).await.unwrap();
        }
        let replayer = Recording::open(&file).unwrap().model("fake:model");
        for nth in 0..calls {
            Asked::new("A", nth).of(&replayer).await.unwrap();
        }
        std::fs::metadata(&file).unwrap().len()
    };
    let (short, long) = (size(50).await, size(100).await);
    assert!(long < short * 21 / 10, "{short} bytes for 50 calls, {long} for 100");
}
