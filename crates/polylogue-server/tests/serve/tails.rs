//! Event streams: S9, S18 to S23.

use std::time::Duration;

use futures_util::future::join_all;
use polylogue_core::LogId;
use polylogue_server::{Scope, ServerLimits};
use polylogue_test::server::{Answer, PieceGate, Playbook, Quirk};
use serde_json::{Value, json};

use crate::client::{Frame, Request, Stream};
use crate::conversations::{begin, begin_until, events, said, until};
use crate::page_views::long_run;
use crate::typed::client;
use crate::world::{LONG, World, generous};

const PATH: &str = "/api/v1/conversations";

/// The entries of a conversation until the end of its tail.
async fn entries(world: &World, id: &str, from: u64) -> Vec<Value> {
    entries_of(world.tail(id, from).await).await
}

/// The entries of a tail until its end.
async fn entries_of(mut tail: Stream) -> Vec<Value> {
    let mut entries = Vec::new();
    while let Some(frame) = tail.frame().await {
        match frame.event.as_str() {
            "entry" => {
                let event = frame.json();
                assert_eq!(frame.id.as_deref(), Some(event["seq"].to_string().as_str()));
                entries.push(event);
            }
            "end" => return entries,
            _ => assert_eq!(frame.id, None, "{frame:?}"),
        }
    }
    panic!("the stream ended without `end`");
}

#[tokio::test]
async fn s18_a_tail_from_the_beginning_is_the_log() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "talk"})).await;
    let live = entries(&world, &id, 0).await;
    let later = entries(&world, &id, 0).await;
    let page = events(&world, &id).await;
    assert_eq!(live, page);
    assert_eq!(later, page);
    assert_eq!(said(&page), ["one", "two", "three", "four"]);
    let stored = world.store().await;
    let id = LogId::new(&id).unwrap();
    let stored = polylogue_core::Store::read(&stored, &id, 0).await.unwrap();
    assert_eq!(serde_json::to_value(stored).unwrap(), Value::from(page));
}

#[tokio::test]
async fn s18_a_log_of_several_pages_is_sent_as_a_whole() {
    let world = World::new().await;
    let id = long_run(&world, 1_300).await;
    let whole = entries(&world, &id, 0).await;
    assert_eq!(whole.len(), 2_602, "more than two pages");
    assert!((0..).zip(&whole).all(|(seq, event)| event["seq"] == seq));
    let client = client(&world);
    let key = LogId::new(&id).unwrap();
    assert_eq!(serde_json::to_value(client.all_events(&key, 0).await.unwrap()).unwrap(), json!(whole));
    // From the last event of a page, and from behind it.
    for from in [999, 1_000, 1_001, 2_601, 2_602] {
        let rest = whole.get(from..).unwrap_or_default();
        assert_eq!(entries(&world, &id, from as u64).await, rest, "from {from}");
    }
    for (from, limit, count, next) in [
        (0, None, 1_000, Some(1_000)),
        (998, Some(3), 3, Some(1_001)),
        (1_602, None, 1_000, None),
        (3_000, Some(1), 0, None),
    ] {
        let page = client.events(&key, from, limit).await.unwrap();
        assert_eq!((page.events.len(), page.next), (count, next), "{limit:?} from {from}");
        assert!((from..).zip(&page.events).all(|(seq, event)| event.seq == seq));
    }
}

#[tokio::test]
async fn s19_a_tail_that_was_cut_continues_without_a_gap() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "talk"})).await;
    let whole = entries(&world, &id, 0).await;
    for last in 0..whole.len() {
        // The header counts more than the parameter.
        let request = world.tail_request(&id, 1).header("Last-Event-ID", &last.to_string());
        let mut tail = request.open(world.address).await;
        let mut rest = Vec::new();
        while let Some(frame) = tail.frame().await {
            if frame.event == "entry" {
                rest.push(frame.json());
            }
        }
        assert_eq!(rest, whole[last + 1..], "after {last}");
    }
    let odd = world.tail_request(&id, 0).header("Last-Event-ID", "x");
    assert_eq!(world.send(odd).await.status, 400);
}

/// S19, while the conversation runs: the model replies once for each message that was received.
#[tokio::test]
async fn s19_a_live_tail_that_is_cut_after_each_event_has_no_gap() {
    let (gate, world) = World::gated("more", generous(), 0).await;
    let id = begin(&world, &json!({"team": "long", "limits": {"turns": 4}})).await;
    let (mut seen, mut is_over) = (Vec::<Value>::new(), false);
    while !is_over {
        let request = world.tail_request(&id, 0);
        let request = match seen.last() {
            Some(event) => request.header("Last-Event-ID", &event["seq"].to_string()),
            None => request,
        };
        let mut tail = request.open(world.address).await;
        gate.open_until(said(&seen).len() + 1);
        loop {
            let frame = tail.frame().await.expect("the stream ended without `end`");
            match frame.event.as_str() {
                "entry" => {
                    seen.push(frame.json());
                    break;
                }
                "end" => {
                    is_over = true;
                    break;
                }
                _ => {}
            }
        }
    }
    assert_eq!(said(&seen), ["more"; 4]);
    assert_eq!(seen, events(&world, &id).await);
}

#[tokio::test]
async fn s20_a_tail_continues_after_a_restart() {
    let world = World::new().await;
    let id = begin_until(&world, "ask", "waiting").await;
    let before = events(&world, &id).await;
    let mut tail = world.tail(&id, 0).await;
    let world = world.restart().await;
    // The stream has ended with a last `retry`, and without an `end`.
    let mut frames: Vec<Frame> = Vec::new();
    while let Some(frame) = tail.frame().await {
        frames.push(frame);
    }
    assert!(frames.iter().all(|frame| frame.event != "end"), "{frames:?}");
    let last = frames.iter().rev().find_map(|frame| frame.id.clone()).unwrap();
    assert_eq!(last, (before.len() - 1).to_string());
    let mut rest = world.tail_request(&id, 0).header("Last-Event-ID", &last).open(world.address).await;
    let answer = json!({"question": asked(&world, &id).await, "text": "I am stuck."});
    let path = format!("{PATH}/{id}/answers");
    assert_eq!(world.post(&path, &answer).await.status, 202);
    let mut entries = before;
    while let Some(frame) = rest.frame().await {
        if frame.event == "entry" {
            entries.push(frame.json());
        }
    }
    assert_eq!(entries, events(&world, &id).await);
}

/// The number of the open question.
pub(crate) async fn asked(world: &World, id: &str) -> Value {
    until(world, id, "waiting").await["questions"][0]["question"].clone()
}

#[tokio::test]
async fn s21_pieces_joined_are_the_message() {
    let (gate, world) = World::gated("one two three", generous(), 0).await;
    let id = begin(&world, &json!({"team": "long", "limits": {"turns": 3}})).await;
    // The first reply is not begun before the tail is there.
    while world.model_requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut tail = world.tail(&id, 0).await;
    while tail.frame().await.unwrap().event != "state" {}
    gate.lift();
    let (mut pieces, mut joined) = (String::new(), Vec::new());
    while let Some(frame) = tail.frame().await {
        let data = frame.json();
        match frame.event.as_str() {
            "delta" => {
                assert_eq!(frame.id, None, "{frame:?}");
                match data["type"].as_str() {
                    Some("text") => pieces += data["text"].as_str().unwrap(),
                    Some("restart") => pieces.clear(),
                    _ => {}
                }
            }
            "entry" if data["type"] == "message" => joined.push(std::mem::take(&mut pieces)),
            _ => {}
        }
    }
    assert_eq!(joined, ["one two three"; 3]);
    assert_eq!(joined, said(&events(&world, &id).await));
}

/// A person is asked before a model is, so that a tail is there before the first piece.
const ASKS: &str = "
name: asks
task: Help.
agents: [{name: Ann, model: 'openai:gpt-4o-mini'}, {name: Pat, human: true}]
chat: {participants: [Pat, Ann], pattern: sequential}
";

#[tokio::test]
async fn s21_pieces_of_a_reply_that_breaks_off_do_not_count() {
    let playbook = Playbook::new(|_, number| match number {
        0 => Answer::text("A reply that breaks off.").pieces(6).with(Quirk::Truncated),
        _ => Answer::text("And a whole one.").pieces(6),
    });
    let world = World::with_playbook("asks", ASKS, playbook).await;
    let id = begin(&world, &json!({"team": "asks"})).await;
    let question = asked(&world, &id).await;
    let mut tail = world.tail(&id, 0).await;
    while tail.frame().await.unwrap().event != "state" {}
    let answer = json!({"question": question, "text": "I am stuck."});
    let answered = world.post(&format!("{PATH}/{id}/answers"), &answer).await;
    assert_eq!(answered.status, 202, "{}", answered.body);
    let (mut pieces, mut taken_back) = (String::new(), Vec::new());
    while let Some(frame) = tail.frame().await {
        let data = frame.json();
        match data["type"].as_str() {
            Some("text") => pieces += data["text"].as_str().unwrap(),
            Some("restart") => taken_back.push(std::mem::take(&mut pieces)),
            _ => {}
        }
    }
    let [broken] = &taken_back[..] else { panic!("{taken_back:?}") };
    assert!(!broken.is_empty() && "A reply that breaks off.".starts_with(broken), "{broken}");
    assert_eq!(pieces, "And a whole one.");
    assert_eq!(said(&events(&world, &id).await), ["I am stuck.", "And a whole one."]);
}

#[tokio::test]
async fn a_tail_that_begins_in_the_middle_of_a_reply_has_what_was_written_before() {
    const WHOLE: &str = "alpha beta gamma";
    let gate = PieceGate::new();
    let first = gate.clone();
    let model = Playbook::new(move |_, number| match number {
        0 => Answer::text(WHOLE).pieces(3).gated(&first),
        _ => Answer::text("more"),
    });
    let world = World::with_playbook("long", LONG, model).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    let mut early = world.tail(&id, 0).await;
    // The first chunk has no text.
    gate.open_until(2);
    let begun = next_text(&mut early).await;
    assert!(WHOLE.starts_with(&begun) && begun.len() < WHOLE.len(), "{begun}");
    let mut late = world.tail(&id, 0).await;
    assert_eq!(next_piece(&mut late).await["type"], "restart");
    assert_eq!(next_text(&mut late).await, begun, "at once, although nothing new is written");
    gate.lift();
    let mut text = begun;
    while text != WHOLE {
        text += &next_text(&mut late).await;
        assert!(WHOLE.starts_with(&text), "{text}");
    }
    until(&world, &id, "closed").await;
}

/// The next piece of a reply.
pub(crate) async fn next_piece(tail: &mut Stream) -> Value {
    loop {
        let frame = tail.frame().await.unwrap();
        if frame.event == "delta" {
            return frame.json();
        }
    }
}

/// The next piece of the text of a reply.
pub(crate) async fn next_text(tail: &mut Stream) -> String {
    loop {
        if let Some(text) = next_piece(tail).await["text"].as_str() {
            return text.to_owned();
        }
    }
}

#[tokio::test]
async fn s23_many_tails_see_the_same_order() {
    let limits = ServerLimits { connections_per_address: 250, streams_per_token: 250, ..generous() };
    let (gate, world) = World::gated("more", limits, 0).await;
    let id = begin(&world, &json!({"team": "long", "limits": {"turns": 5}})).await;
    // All of them are open before the first reply.
    let tails = join_all((0..200).map(|_| world.tail(&id, 0))).await;
    gate.lift();
    let all = join_all(tails.into_iter().map(entries_of)).await;
    let stored = events(&world, &id).await;
    assert_eq!(said(&stored), ["more"; 5]);
    assert!(all.iter().all(|one| *one == stored));
}

#[tokio::test]
async fn s9_the_tail_of_a_revoked_token_ends() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    let (token, text) = world.new_token("local", &[Scope::Read]);
    let request = world.tail_request(&id, 0).token(&text);
    let mut tail = request.open(world.address).await;
    world.tokens().revoke(&token.id, |_| true).unwrap();
    // Waits for its end.
    while let Some(frame) = tail.frame().await {
        assert_ne!(frame.event, "end");
    }
    assert_eq!(request.send(world.address).await.status, 401);
}

#[tokio::test]
async fn a_stream_in_which_nothing_happens_has_comments_and_a_bound() {
    let limits =
        ServerLimits { comment_every: Duration::from_millis(20), streams_per_token: 2, ..generous() };
    let world = World::with(limits).await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    let mut tail = world.tail(&id, 0).await;
    while tail.frame().await.unwrap().event != "comment" {}
    let _second = world.tail(&id, 0).await;
    let third = world.tail_request(&id, 0).send(world.address).await;
    assert_eq!(third.status, 429);
    third.problem();
    let page = Request::new("GET", PATH).token(&world.token).send(world.address).await;
    assert_eq!(page.status, 200, "other requests are served");
}

#[tokio::test]
async fn a_script_keeps_its_pace_with_values_of_variables() {
    let team = "
name: paced
task: Greet {{who}}.
vars: {who: Pat}
agents: [{name: Pat, human: true}, {name: Ann}]
chat: {participants: [Pat, Ann], pattern: sequential}
script_pace: 50
script: [{Ann: one two three four}]
";
    let world = World::with_team("paced", team).await;
    let id = begin(&world, &json!({"team": "paced", "inputs": {"who": "Kim"}})).await;
    let question = until(&world, &id, "waiting").await["questions"][0]["question"].clone();
    let mut tail = world.tail(&id, 0).await;
    let answer = json!({"question": question, "text": "Hello."});
    assert_eq!(world.post(&format!("{PATH}/{id}/answers"), &answer).await.status, 202);
    let mut pieces = 0;
    while let Some(frame) = tail.frame().await {
        pieces += usize::from(frame.event == "delta" && frame.json()["type"] == "text");
    }
    // A script without a pace says all in one piece.
    assert!(pieces > 1, "{pieces}");
    assert_eq!(said(&events(&world, &id).await), ["Hello.", "one two three four"]);
}
