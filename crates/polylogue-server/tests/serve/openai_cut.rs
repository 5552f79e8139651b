//! Chat completions whose client has cut the response off, and continues with what it has seen of it, or that speak into a run: S52, S53.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{LogId, Store as _};
use polylogue_server::ServerLimits;
use polylogue_test::server::{Answer, PieceGate, Playbook};
use serde_json::{Value, json};

use crate::client::{Request, Stream};
use crate::conversations::{PATH, begin, events, said, until};
use crate::openai::{
    COMPLETIONS, assistant, chunks, complete, content, conversation, stopped_before_its_last_turn, user,
};
use crate::world::{Gate, World, generous, place};

/// Its reply is streamed as the content.
const TALE: &str = "
name: tale
task: Tell.
agents: [{name: Ann, model: 'openai:gpt-4o-mini'}]
chat: {participants: [Ann], pattern: sequential}
";

/// The team, whose first reply comes as far as the gate lets it through.
async fn tale(gate: &PieceGate) -> World {
    World::with_playbook("tale", TALE, told(0, gate)).await
}

/// Replies, of which one comes as far as the gate lets it through.
fn told(gated: usize, gate: &PieceGate) -> Playbook {
    let gate = gate.clone();
    Playbook::new(move |_, number| match number == gated {
        true => Answer::text("Once upon a time").pieces(4).gated(&gate),
        false => Answer::text(format!("reply {number}")),
    })
}

/// A stream, the conversation that it is of, and the first text of this field of its chunks.
async fn begun(world: &World, body: &Value, show: &str, field: &str) -> (Stream, String, String) {
    let request = world.request("POST", COMPLETIONS).json(body).header("X-Polylogue-Show", show);
    let mut stream = request.open(world.address).await;
    loop {
        let chunk = stream.frame().await.unwrap().json();
        let text = chunk["choices"][0]["delta"][field].as_str().filter(|text| !text.is_empty());
        if let Some(text) = text {
            let id = chunk["id"].as_str().unwrap().split('-').nth(1).unwrap();
            return (stream, id.to_owned(), text.to_owned());
        }
    }
}

/// A run of the native API, whose reply is being written.
async fn running(world: &World) -> String {
    let id = begin(world, &json!({"team": "tale", "message": "Tell."})).await;
    let mut tail = world.tail(&id, 0).await;
    while tail.frame().await.unwrap().event != "delta" {}
    id
}

/// A request with a message to this conversation.
fn into(world: &World, id: &str, text: &str, streams: bool) -> Request {
    let body = json!({"model": "tale", "messages": [user(text)], "stream": streams});
    world.request("POST", COMPLETIONS).json(&body).header("X-Polylogue-Conversation", id)
}

#[tokio::test]
async fn s52_a_response_that_was_cut_off_while_it_was_written_is_continued() {
    let gate = PieceGate::new();
    // With the first piece of text.
    gate.open_until(2);
    let world = tale(&gate).await;
    let body = json!({"model": "tale", "messages": [user("Tell.")], "stream": true});
    let (stream, id, seen) = begun(&world, &body, "result", "content").await;
    assert!("Once upon a time".starts_with(&seen) && seen.len() < 16, "{seen}");
    drop(stream);
    let mut history = vec![user("Tell."), assistant(&seen), user("Shorter.")];
    let second = complete(&world, "tale", json!(history)).await;
    assert_eq!((conversation(&second), content(&second)), (id.as_str(), "reply 1"));
    // Its agent knows what was said until then, and that it was cut off.
    let request = world.model_requests().pop().unwrap();
    for text in [seen.as_str(), "[cut off by the user]", "Shorter."] {
        assert!(request.contains(text), "`{text}` is not in {request}");
    }
    history.extend([assistant(content(&second)), user("And then?")]);
    let third = complete(&world, "tale", json!(history)).await;
    assert_eq!((conversation(&third), content(&third)), (id.as_str(), "reply 2"));
    // Another message after the part of the response.
    history[2] = user("Longer.");
    let edited = complete(&world, "tale", json!(&history[..3])).await;
    let fork = world.get(&format!("{PATH}/{}", conversation(&edited))).await.json();
    assert_eq!((&fork["parent"]["id"], &fork["parent"]["edited"]), (&json!(id), &json!(true)));
    gate.lift();
}

#[tokio::test]
async fn s53_a_response_that_was_cut_off_is_ended_by_the_next_message_to_its_conversation() {
    let gate = PieceGate::new();
    gate.open_until(2);
    let world = tale(&gate).await;
    let body = json!({"model": "tale", "messages": [user("Tell.")], "stream": true});
    let (stream, id, seen) = begun(&world, &body, "result", "content").await;
    drop(stream);
    let second = world.send(into(&world, &id, "Shorter.", false)).await.json();
    assert_eq!((conversation(&second), content(&second)), (id.as_str(), "reply 1"));
    let request = world.model_requests().pop().unwrap();
    for text in [seen.as_str(), "[cut off by the user]", "Shorter."] {
        assert!(request.contains(text), "`{text}` is not in {request}");
    }
}

/// The text that comes in `stream` until the mark of its end.
async fn rest_of(stream: Stream) -> String {
    let (chunks, is_done) = chunks(stream).await;
    assert!(is_done, "{chunks:?}");
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
}

/// What `server` replies to a message into the run `id` of `holder`, the reply of which is then written to its end.
async fn replied((server, holder): (&World, &World), id: &str, gate: &PieceGate, streams: bool) -> String {
    let reply = async {
        let request = into(server, id, "Shorter.", streams);
        if !streams {
            return content(&server.send(request).await.json()).to_owned();
        }
        rest_of(request.open(server.address).await).await
    };
    let (store, log) = (holder.store().await, LogId::new(id).unwrap());
    let lifted = async {
        while store.inbox(&log, 0).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        gate.lift();
    };
    tokio::join!(reply, lifted).0
}

#[tokio::test]
async fn s53_a_message_that_comes_while_the_last_turn_of_others_is_written_has_the_reply_to_it() {
    for streams in [false, true] {
        let gate = PieceGate::new();
        gate.open_until(2);
        let world = tale(&gate).await;
        let id = running(&world).await;
        assert_eq!(replied((&world, &world), &id, &gate, streams).await, "reply 1", "streams: {streams}");
        assert_eq!(said(&events(&world, &id).await), ["Once upon a time", "Shorter.", "reply 1"]);
        let history = [user("Tell."), assistant("Once upon a time"), user("Shorter."), assistant("reply 1")];
        let history: Vec<Value> = history.into_iter().chain([user("And then?")]).collect();
        assert_eq!(conversation(&complete(&world, "tale", json!(history)).await), id);
    }
}

#[tokio::test]
async fn s53_a_message_into_a_run_of_another_server_has_the_reply_to_it() {
    for streams in [false, true] {
        let gate = PieceGate::new();
        let (first, second) = two_servers(&gate).await;
        let id = running(&first).await;
        assert_eq!(replied((&second, &first), &id, &gate, streams).await, "reply 1", "streams: {streams}");
        assert_eq!(said(&events(&first, &id).await), ["Once upon a time", "Shorter.", "reply 1"]);
        assert_eq!(second.model_requests().len(), 0, "the other one runs it");
    }
}

#[tokio::test]
async fn s53_a_limit_is_refused_while_another_server_runs_the_conversation() {
    let gate = PieceGate::new();
    let (first, second) = two_servers(&gate).await;
    let id = running(&first).await;
    let body = json!({"model": "tale", "messages": [user("Shorter.")], "max_tokens": 5});
    let request = second.request("POST", COMPLETIONS).json(&body).header("X-Polylogue-Conversation", &id);
    let refused = second.send(request).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("a limit is for what has not begun"), "{}", refused.body);
    gate.lift();
    until(&first, &id, "closed").await;
    assert_eq!(said(&events(&first, &id).await), ["Once upon a time"]);
}

#[tokio::test]
async fn s52_a_response_that_another_client_receives_was_not_cut_off() {
    let gate = PieceGate::new();
    gate.open_until(2);
    let world = tale(&gate).await;
    let body = json!({"model": "tale", "messages": [user("Tell.")], "stream": true});
    let (stream, id, seen) = begun(&world, &body, "result", "content").await;
    let history = json!([user("Tell."), assistant(&seen), user("Shorter.")]);
    let other = complete(&world, "tale", history).await;
    assert_ne!(conversation(&other), id);
    gate.lift();
    assert_eq!(seen + &rest_of(stream).await, "Once upon a time");
}

#[tokio::test]
async fn s52_a_run_that_others_have_begun_is_no_response_that_was_cut_off() {
    let gate = PieceGate::new();
    gate.open_until(2);
    let world = tale(&gate).await;
    let id = running(&world).await;
    for seen in ["", "Once"] {
        let history = json!([user("Tell."), assistant(seen), user("Shorter.")]);
        assert_ne!(conversation(&complete(&world, "tale", history).await), id, "{seen}");
    }
    gate.lift();
    let closed = until(&world, &id, "closed").await;
    assert_eq!(closed["ended"]["word"], "done");
    assert_eq!(said(&events(&world, &id).await), ["Once upon a time"]);
}

#[tokio::test]
async fn s52_the_beginning_of_a_response_that_has_ended_since_continues_it() {
    let gate = PieceGate::new();
    gate.lift();
    let world = tale(&gate).await;
    let first = complete(&world, "tale", json!([user("Tell.")])).await;
    assert_eq!(content(&first), "Once upon a time");
    let after = async |said: &str| {
        complete(&world, "tale", json!([user("Tell."), assistant(said), user("Shorter.")])).await
    };
    assert_ne!(conversation(&after("Once there").await), conversation(&first));
    assert_eq!(conversation(&after("Once up").await), conversation(&first));
}

#[tokio::test]
async fn s52_s57_a_conversation_that_was_stopped_for_a_lost_client_is_continued_by_what_it_has_seen() {
    // The client of results has seen no content, and that of a transcript the beginning.
    for (show, field) in [("result", "reasoning_content"), ("transcript", "content")] {
        let gate = Arc::new(Gate::until(1));
        let limits = ServerLimits { abandoned_time: Duration::from_millis(1), ..generous() };
        let world = World::with_gate("more", limits, Arc::clone(&gate)).await;
        let body = json!({"model": "long", "messages": [user("Talk.")], "stream": true});
        let (stream, id, seen) = begun(&world, &body, show, field).await;
        drop(stream);
        assert_eq!(stopped_before_its_last_turn(&world, &gate).await, id);
        gate.lift();
        let seen = if show == "result" { "" } else { seen.trim_end() };
        let next = async |messages: &[Value]| {
            let body = json!({"model": "long", "messages": messages});
            let request = world.request("POST", COMPLETIONS).json(&body).header("X-Polylogue-Show", show);
            world.send(request).await.json()
        };
        let mut history = vec![user("Talk."), assistant(seen), user("Go on.")];
        let second = next(&history).await;
        assert_eq!(conversation(&second), id, "{show}: {seen}");
        until(&world, &id, "closed").await;
        history.extend([assistant(content(&second)), user("Once more.")]);
        assert_eq!(conversation(&next(&history).await), id, "{show}");
    }
}

#[tokio::test]
async fn s52_an_edit_while_the_response_to_the_message_is_written_forks_before_the_message() {
    for is_connected in [true, false] {
        let gate = PieceGate::new();
        gate.open_until(2);
        let world = World::with_playbook("tale", TALE, told(1, &gate)).await;
        let first = complete(&world, "tale", json!([user("Tell.")])).await;
        let id = conversation(&first).to_owned();
        let with = |text: &str| vec![user("Tell."), assistant("reply 0"), user(text)];
        let body = json!({"model": "tale", "messages": with("More."), "stream": true});
        let (stream, of, _) = begun(&world, &body, "result", "content").await;
        assert_eq!(of, id);
        let stream = Some(stream).filter(|_| is_connected);
        // Another message, and another response to the same one.
        for (number, text, is_edited) in [(2, "Else.", json!(true)), (3, "More.", Value::Null)] {
            let other = complete(&world, "tale", json!(with(text))).await;
            assert_eq!(content(&other), format!("reply {number}"));
            let fork = world.get(&format!("{PATH}/{}", conversation(&other))).await.json();
            assert_eq!((&fork["parent"]["id"], &fork["parent"]["edited"]), (&json!(id), &is_edited));
            assert_eq!(said(&events(&world, conversation(&other)).await)[..2], ["reply 0", text]);
        }
        gate.lift();
        if let Some(stream) = stream {
            assert!(chunks(stream).await.1, "its client has the whole response");
        }
        until(&world, &id, "closed").await;
        assert_eq!(said(&events(&world, &id).await), ["reply 0", "More.", "Once upon a time"]);
    }
}

#[tokio::test]
async fn s52_an_edit_after_a_part_of_a_response_forks_with_that_part_and_without_its_turn() {
    let gate = PieceGate::new();
    gate.open_until(2);
    let world = tale(&gate).await;
    let id = running(&world).await;
    let stop = json!({"when": "now"});
    assert_eq!(world.post(&format!("{PATH}/{id}/stop"), &stop).await.status, 202);
    until(&world, &id, "halted").await;
    // The turn that was stopped continues here.
    assert_eq!(world.send(into(&world, &id, "Shorter.", false)).await.status, 200);
    let log = events(&world, &id).await;
    let cut = log.iter().find(|event| event["type"] == "reply_interrupted").unwrap();
    let (seen, calls) = (cut["text"].as_str().unwrap().trim(), world.model_requests().len());
    let history = json!([user("Tell."), assistant(seen), user("Longer.")]);
    let edited = complete(&world, "tale", history).await;
    let fork = world.get(&format!("{PATH}/{}", conversation(&edited))).await.json();
    assert_eq!((&fork["parent"]["id"], &fork["parent"]["edited"]), (&json!(id), &json!(true)));
    let requests = world.model_requests();
    assert_eq!(requests.len(), calls + 1, "what was stopped is not asked for again");
    for text in [seen, "[cut off by the user]", "Longer."] {
        assert!(requests[calls].contains(text), "`{text}` is not in {}", requests[calls]);
    }
    assert!(!requests[calls].contains("Shorter."), "{}", requests[calls]);
    gate.lift();
}

/// Waits until the log has that the client of a response has disconnected. Returns what it was sent.
async fn disconnected(world: &World, id: &str) -> String {
    loop {
        let log = events(world, id).await;
        if let Some(noted) = log.iter().find(|event| event["type"] == "client_disconnected") {
            return noted["received"].as_str().unwrap().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Replies whose first two come as far as their gates let them through.
fn told_twice(gates: [&PieceGate; 2]) -> Playbook {
    let [first, second] = gates.map(PieceGate::clone);
    Playbook::new(move |_, number| match number {
        0 => Answer::text("Once upon a time").pieces(4).gated(&first),
        1 => Answer::text("Another tale").pieces(4).gated(&second),
        _ => Answer::text(format!("reply {number}")),
    })
}

/// Waits until the run that a restart has interrupted continues.
async fn asked_again(world: &World) {
    while world.model_requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn s52_a_response_that_was_cut_off_before_a_restart_is_continued_after_it() {
    // The run continues after the restart, with another reply: it has ended, or is being written.
    for has_ended in [true, false] {
        let gates = [PieceGate::new(), PieceGate::new()];
        gates[0].open_until(2);
        let limits = ServerLimits { stop_time: Duration::from_millis(1), ..generous() };
        let play = told_twice([&gates[0], &gates[1]]);
        let world = World::with_playbook_and("tale", TALE, play, limits).await;
        let body = json!({"model": "tale", "messages": [user("Tell.")], "stream": true});
        let (stream, id, seen) = begun(&world, &body, "result", "content").await;
        drop(stream);
        assert!(disconnected(&world, &id).await.starts_with(&seen));
        let world = world.restart().await;
        asked_again(&world).await;
        if has_ended {
            gates[1].lift();
            assert_eq!(until(&world, &id, "closed").await["ended"]["word"], "done");
        }
        let mut history = vec![user("Tell."), assistant(&seen), user("Shorter.")];
        let second = complete(&world, "tale", json!(history)).await;
        assert_eq!((conversation(&second), content(&second)), (id.as_str(), "reply 2"));
        history.extend([assistant("reply 2"), user("And then?")]);
        let third = complete(&world, "tale", json!(history)).await;
        assert_eq!((conversation(&third), content(&third)), (id.as_str(), "reply 3"));
        gates.iter().for_each(PieceGate::lift);
    }
}

#[tokio::test]
async fn s57_a_run_whose_client_has_left_is_stopped_in_time_also_after_a_restart() {
    let gates = [PieceGate::new(), PieceGate::new()];
    gates[0].open_until(2);
    let limits = ServerLimits {
        stop_time: Duration::from_millis(1),
        abandoned_time: Duration::from_millis(1_500),
        ..generous()
    };
    let talk = TALE.replace("sequential}", "round_robin, stop: {max_turns: 4}}");
    let play = told_twice([&gates[0], &gates[1]]);
    let world = World::with_playbook_and("tale", &talk, play, limits).await;
    let body = json!({"model": "tale", "messages": [user("Tell.")], "stream": true});
    let (stream, id, _) = begun(&world, &body, "transcript", "content").await;
    drop(stream);
    disconnected(&world, &id).await;
    let world = world.restart().await;
    asked_again(&world).await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    gates[1].lift();
    assert_eq!(until(&world, &id, "halted").await["turns"], 1);
}

#[tokio::test]
async fn s52_a_response_that_a_server_breaks_off_when_it_stops_is_continued_after_its_restart() {
    let gates = [PieceGate::new(), PieceGate::new()];
    gates[0].open_until(2);
    let limits = ServerLimits { stop_time: Duration::from_millis(1), ..generous() };
    let play = told_twice([&gates[0], &gates[1]]);
    let world = World::with_playbook_and("tale", TALE, play, limits).await;
    let body = json!({"model": "tale", "messages": [user("Tell.")], "stream": true});
    let (stream, id, seen) = begun(&world, &body, "result", "content").await;
    let world = world.restart().await;
    drop(stream);
    asked_again(&world).await;
    let history = json!([user("Tell."), assistant(&seen), user("Shorter.")]);
    let second = complete(&world, "tale", history).await;
    assert_eq!((conversation(&second), content(&second)), (id.as_str(), "reply 2"));
    gates.iter().for_each(PieceGate::lift);
}

/// Two servers with a store that processes share. The first reply of the model of the first one comes as far as the gate lets it through.
async fn two_servers(gate: &PieceGate) -> (World, World) {
    let dir = tempfile::tempdir().unwrap();
    // A folder of JSON lines: locks of SQLite are those of a process, and both servers are in one here.
    std::fs::create_dir_all(place(dir.path()).path()).unwrap();
    gate.open_until(2);
    let first = World::with_playbook_in(dir, ("tale", TALE), told(0, gate), generous()).await;
    let other = Playbook::new(|_, number| Answer::text(format!("other {number}")));
    let second = first.twin(other).await;
    (first, second)
}

/// The same, and a stream of the first one.
async fn told_at_another_server(gate: &PieceGate) -> (World, World, (Stream, String, String)) {
    let (first, second) = two_servers(gate).await;
    let body = json!({"model": "tale", "messages": [user("Tell.")], "stream": true});
    let begun = begun(&first, &body, "result", "content").await;
    (first, second, begun)
}

#[tokio::test]
async fn s52_a_response_that_was_cut_off_is_continued_by_another_server() {
    let gate = PieceGate::new();
    let (first, second, (stream, id, seen)) = told_at_another_server(&gate).await;
    drop(stream);
    assert!(disconnected(&first, &id).await.starts_with(&seen));
    let history = json!([user("Tell."), assistant(&seen), user("Shorter.")]);
    let next = complete(&second, "tale", history).await;
    assert_eq!((conversation(&next), content(&next)), (id.as_str(), "other 0"));
    // The first server does not run it any more, and what it has written is there.
    let request = second.model_requests().pop().unwrap();
    for text in [seen.as_str(), "[cut off by the user]", "Shorter."] {
        assert!(request.contains(text), "`{text}` is not in {request}");
    }
    assert_eq!(first.model_requests().len(), 1);
    gate.lift();
}

#[tokio::test]
async fn s52_a_response_that_a_client_of_another_server_receives_was_not_cut_off() {
    let gate = PieceGate::new();
    let (_first, second, (stream, id, seen)) = told_at_another_server(&gate).await;
    let history = json!([user("Tell."), assistant(&seen), user("Shorter.")]);
    assert_ne!(conversation(&complete(&second, "tale", history).await), id);
    gate.lift();
    assert_eq!(seen + &rest_of(stream).await, "Once upon a time");
}

#[tokio::test]
async fn s53_a_message_to_a_named_conversation_ends_its_response_also_at_another_server() {
    let gate = PieceGate::new();
    let (first, second, (stream, id, seen)) = told_at_another_server(&gate).await;
    drop(stream);
    disconnected(&first, &id).await;
    let next = second.send(into(&second, &id, "Shorter.", false)).await.json();
    assert_eq!((conversation(&next), content(&next)), (id.as_str(), "other 0"));
    assert!(second.model_requests()[0].contains(&seen), "{:?}", second.model_requests());
    gate.lift();
}
