//! Chat completions that are repeated later, come at the same time, or lose their clients: S24, S57.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{ListQuery, Store as _};
use polylogue_server::{ChatOptions, ServerLimits, ServerOptions};
use polylogue_test::server::{Answer, Playbook};
use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::conversations::{PATH, begin, events, said, until};
use crate::openai::{
    COMPLETIONS, assistant, chunks, complete, content, conversation, stopped_before_its_last_turn, user,
};
use crate::openai_content::{LOOK, PIXEL, with_picture};
use crate::world::{Gate, World, change_store, generous, loopback, place};

fn keyed(world: &World, model: &str, history: &[Value], key: &str, streams: bool) -> Request {
    let body = json!({"model": model, "messages": history, "stream": streams,
        "stream_options": if streams { json!({"include_usage": true}) } else { Value::Null }});
    world.request("POST", COMPLETIONS).json(&body).header("Idempotency-Key", key)
}

/// What a response says, but for when it was sent and in how many pieces.
async fn answer(world: &World, request: &Request, streams: bool) -> Value {
    if !streams {
        let response = request.send(world.address).await;
        assert_eq!(response.status, 200, "{}", response.body);
        let mut body = response.json();
        body["created"] = Value::Null;
        return body;
    }
    let (all, is_done) = chunks(request.open(world.address).await).await;
    assert!(is_done, "{all:?}");
    let joined = |name: &str| -> String {
        all.iter().filter_map(|chunk| chunk["choices"][0]["delta"][name].as_str()).collect()
    };
    let of_end = all.iter().find(|chunk| chunk.get("polylogue").is_some()).unwrap();
    json!({"id": all[0]["id"], "choices": [{"message": {"content": joined("content")}}], "reasoning": joined("reasoning_content"),
        "usage": all.last().unwrap()["usage"], "polylogue": of_end["polylogue"], "reason": of_end["choices"][0]["finish_reason"]})
}

#[tokio::test]
async fn s24_a_repeated_chat_completion_has_the_outcome_of_its_own_turn() {
    let world = World::with_answers(|number| Answer::text(format!("reply {number}"))).await;
    let mut history = vec![user("Talk.")];
    let mut sent = Vec::new();
    for (nth, streams) in [false, true, false, true].into_iter().enumerate() {
        let request = keyed(&world, "long", &history, &format!("key {nth}"), streams);
        let first = answer(&world, &request, streams).await;
        history.extend([assistant(content(&first)), user(&format!("And after {nth}?"))]);
        sent.push((request, streams, first));
    }
    for (request, streams, first) in &sent {
        assert_eq!(conversation(first), conversation(&sent[0].2), "one conversation");
        assert_eq!(answer(&world, request, *streams).await, *first);
    }
}

/// A process that is killed between the conversation and its opening leaves one without events.
fn lose_the_opening(dir: &Path) {
    for sql in [
        "DELETE FROM events",
        "UPDATE heads SET events = 0, summary = '{}', chain = (SELECT chain FROM logs WHERE nr = log)",
    ] {
        change_store(dir, sql);
    }
}

#[tokio::test]
async fn s24_a_repeated_chat_completion_has_its_pictures_if_none_was_stored() {
    for remembers in [true, false] {
        let world = World::with_playbook("look", LOOK, Playbook::new(|_, _| Answer::text("A dot."))).await;
        let request = keyed(&world, "look", &[with_picture("What is this?", PIXEL)], "once", false);
        let id = conversation(&answer(&world, &request, false).await).to_owned();
        let world = world
            .restart_after(|dir| {
                lose_the_opening(dir);
                if !remembers {
                    fs::remove_file(dir.join("data/conversations.db.server/requests.jsonl")).unwrap();
                }
            })
            .await;
        assert_eq!(events(&world, &id).await, Vec::<Value>::new());
        let again = answer(&world, &request, false).await;
        assert_eq!((conversation(&again), content(&again)), (id.as_str(), "A dot."));
        let opened = &events(&world, &id).await[0];
        assert_eq!(opened["messages"][0]["parts"][1]["media"], json!({"type": "image/png", "url": PIXEL}));
        let requests = world.model_requests();
        assert!(requests.len() == 2 && requests[1].contains(PIXEL), "{requests:?}");
    }
}

#[tokio::test]
async fn s24_a_repeated_chat_completion_has_the_question_that_it_had() {
    for streams in [false, true] {
        let world = World::new().await;
        let request = keyed(&world, "ask", &[user("Help.")], "first", streams);
        let asked = answer(&world, &request, streams).await;
        assert_eq!(asked["polylogue"]["state"], "waiting");
        assert_eq!(asked["polylogue"]["questions"].as_array().unwrap().len(), 1);
        let history = [user("Help."), assistant(content(&asked)), user("I am stuck.")];
        let request_of_answer = keyed(&world, "ask", &history, "second", streams);
        let answered = answer(&world, &request_of_answer, streams).await;
        assert_eq!((content(&answered), &answered["polylogue"]["state"]), ("Thanks.", &json!("closed")));
        assert_eq!(answer(&world, &request, streams).await, asked);
        assert_eq!(answer(&world, &request_of_answer, streams).await, answered);
    }
}

/// It neither waits for the later turn nor stops it, as one does whose client goes away.
#[tokio::test]
async fn s24_a_repeated_chat_completion_leaves_a_later_turn_alone() {
    for streams in [false, true] {
        // The eight calls of the first turn, until the loop detection ends it.
        let gate = Arc::new(Gate::until(8));
        let limits = ServerLimits { abandoned_time: Duration::from_millis(1), ..generous() };
        let world = World::with_gate("more", limits, Arc::clone(&gate)).await;
        let request = keyed(&world, "long", &[user("Talk.")], "first", streams);
        let first = answer(&world, &request, streams).await;
        let id = conversation(&first).to_owned();
        let later = world.request("POST", &format!("{PATH}/{id}/messages")).json(&json!({"text": "Go on."}));
        assert_eq!(world.send(later).await.status, 202);
        while world.model_requests().len() < 9 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let repeated = tokio::time::timeout(Duration::from_secs(20), answer(&world, &request, streams));
        assert_eq!(repeated.await.unwrap(), first, "it does not wait for the later turn");
        tokio::time::sleep(Duration::from_millis(200)).await;
        gate.lift();
        let closed = until(&world, &id, "closed").await;
        assert!(closed["turns"].as_u64() > Some(9), "it is not stopped after its step: {closed}");
    }
}

/// Two servers with a store that processes share. Replies of the model of the first one wait for the gate.
async fn two_servers(limits: ServerLimits, gate: &Arc<Gate>) -> (World, World) {
    let dir = tempfile::tempdir().unwrap();
    // A folder of JSON lines: locks of SQLite are those of a process, and both servers are in one here.
    fs::create_dir_all(place(dir.path()).path()).unwrap();
    let first = World::with_gate_in(dir, "more", limits, Arc::clone(gate)).await;
    let second = first.second_server("more", Arc::new(Gate::open())).await;
    (first, second)
}

#[tokio::test]
async fn s24_one_key_makes_one_chat_completion_at_two_servers() {
    let (first, second) = two_servers(generous(), &Arc::new(Gate::open())).await;
    for nth in 0..4 {
        let ask = async |world: &World| {
            answer(world, &keyed(world, "long", &[user("Talk.")], &format!("key {nth}"), false), false).await
        };
        let (one, other) = tokio::join!(ask(&first), ask(&second));
        assert_eq!(one, other);
        assert_eq!((content(&one), &one["polylogue"]["state"]), ("more", &json!("closed")));
    }
    assert_eq!(first.get(PATH).await.json()["conversations"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn s24_a_chat_completion_that_is_repeated_at_another_server_joins_its_run() {
    for streams in [false, true] {
        let gate = Arc::new(Gate::open());
        let (first, second) = two_servers(generous(), &gate).await;
        let begun = answer(&first, &keyed(&first, "long", &[user("Talk.")], "one", false), false).await;
        let history = |last: &str| [user("Talk."), assistant(content(&begun)), user(last)];
        let ask = async |world: &World| {
            answer(world, &keyed(world, "long", &history("Go on."), "two", streams), streams).await
        };
        let calls = first.model_requests().len();
        gate.open_until(calls + 1);
        let joins = async {
            until_asked(&first, calls + 2).await;
            gate.lift();
            ask(&second).await
        };
        let (own, joined) = tokio::join!(ask(&first), joins);
        assert_eq!((conversation(&own), &joined), (conversation(&begun), &own));
        assert_eq!(ask(&second).await, own, "it has ended");
        let other = keyed(&second, "long", &history("Stop."), "two", streams).send(second.address).await;
        assert_eq!((other.status, &other.problem()["error"]["code"]), (422, &json!("idempotency_mismatch")));
        assert_eq!(second.model_requests().len(), 0);
        assert_eq!(first.get(PATH).await.json()["conversations"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn s24_a_key_of_another_history_is_a_conflict_at_another_server() {
    let (first, second) = two_servers(generous(), &Arc::new(Gate::open())).await;
    let begun = answer(&first, &keyed(&first, "long", &[user("Talk.")], "one", false), false).await;
    let history = [user("Talk."), assistant(content(&begun)), user("Go on.")];
    let continued = answer(&first, &keyed(&first, "long", &history, "two", false), false).await;
    assert_eq!(conversation(&continued), conversation(&begun), "the key is in its inbox");
    let others = [vec![user("Sing.")], vec![user("Sing."), assistant("La."), user("Louder.")]];
    for history in others {
        let refused = keyed(&second, "long", &history, "two", false).send(second.address).await;
        let problem = refused.problem();
        assert_eq!((refused.status, &problem["error"]["code"]), (422, &json!("idempotency_mismatch")));
    }
    assert_eq!(second.model_requests().len(), 0);
    assert_eq!(first.get(PATH).await.json()["conversations"].as_array().unwrap().len(), 1);
}

/// One of the requests has had its effect, and the other one is refused, because it has the same key.
#[track_caller]
fn assert_one_refused(responses: [&Response; 2]) {
    let mut codes = responses.map(|response| response.status);
    codes.sort_unstable();
    assert_eq!(codes, [200, 422], "{} {}", responses[0].body, responses[1].body);
    let refused = responses.into_iter().find(|response| response.status == 422).unwrap();
    assert_eq!(refused.problem()["error"]["code"], "idempotency_mismatch");
}

#[tokio::test]
async fn s24_one_key_with_two_histories_has_one_effect_at_two_servers() {
    let (first, second) = two_servers(generous(), &Arc::new(Gate::open())).await;
    let mut histories = Vec::new();
    for text in ["Talk.", "Sing."] {
        let begun = complete(&first, "long", json!([user(text)])).await;
        histories.push([user(text), assistant(content(&begun)), user("Go on.")]);
    }
    // Each history continues a conversation, and forks it once that was continued.
    for nth in 0..4 {
        let ask = async |world: &World, history: &[Value]| {
            keyed(world, "long", history, &format!("key {nth}"), false).send(world.address).await
        };
        let (one, other) =
            tokio::join!(ask(&first, histories[0].as_slice()), ask(&second, histories[1].as_slice()));
        assert_one_refused([&one, &other]);
    }
    let (store, mut messages) = (first.store().await, 0);
    for log in store.list(&ListQuery::default()).await.unwrap().logs {
        messages += store.inbox(&log.id, 0).await.unwrap().len();
    }
    assert_eq!(messages, 4, "one for each key");
}

#[tokio::test]
async fn s24_one_key_with_one_history_has_one_effect_at_two_servers() {
    let (first, second) = two_servers(generous(), &Arc::new(Gate::open())).await;
    for nth in 0..4 {
        let talk = format!("Talk {nth}.");
        let begun = complete(&first, "long", json!([user(&talk)])).await;
        let history = [user(&talk), assistant(content(&begun)), user("Go on.")];
        // The first continues the conversation, and the second forks it.
        for key in [format!("end {nth}"), format!("fork {nth}")] {
            let ask =
                async |world: &World| keyed(world, "long", &history, &key, false).send(world.address).await;
            let (one, other) = tokio::join!(ask(&first), ask(&second));
            assert_eq!([one.status, other.status], [200, 200], "{}\n{}", one.body, other.body);
            assert_eq!(conversation(&one.json()), conversation(&other.json()), "{key}");
        }
    }
    let (store, mut messages) = (first.store().await, 0);
    for log in store.list(&ListQuery::default()).await.unwrap().logs {
        messages += store.inbox(&log.id, 0).await.unwrap().len();
    }
    assert_eq!(messages, 8, "one for each key");
}

#[tokio::test]
async fn s24_one_key_with_two_chats_of_a_client_has_one_effect_at_two_servers() {
    const CHAT: &str = "X-Chat";
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(place(dir.path()).path()).unwrap();
    let chat = ChatOptions { conversation_headers: vec![CHAT.into()], ..ChatOptions::default() };
    let options =
        ServerOptions { chat, limits: generous(), ..ServerOptions::new(loopback(), place(dir.path())) };
    let first = World::start(dir, options).await;
    let second = first.second_server("more", Arc::new(Gate::open())).await;
    let ask = async |world: &World, key: &str, chat: &str| {
        keyed(world, "talk", &[user("Count.")], key, false).header(CHAT, chat).send(world.address).await
    };
    let made = ask(&first, "key", "a").await;
    assert_one_refused([&made, &ask(&second, "key", "b").await]);
    let again = ask(&second, "key", "a").await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")), "{}", again.body);
    assert_eq!(conversation(&again.json()), conversation(&made.json()));
    for nth in 0..4 {
        let [key, chat, other_chat] = ["key", "chat", "other chat"].map(|what| format!("{what} {nth}"));
        let (one, other) = tokio::join!(ask(&first, &key, &chat), ask(&second, &key, &other_chat));
        assert_one_refused([&one, &other]);
    }
    assert_eq!(first.get(PATH).await.json()["conversations"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn s24_a_key_that_was_reserved_by_a_server_that_was_killed_has_its_effect_once() {
    let dir = tempfile::tempdir().unwrap();
    // A folder of JSON lines, in which each conversation has its own files.
    fs::create_dir_all(place(dir.path()).path()).unwrap();
    let world = World::with_gate_in(dir, "more", generous(), Arc::new(Gate::open())).await;
    let ask = async |world: &World, text: &str| {
        keyed(world, "long", &[user(text)], "once", false).send(world.address).await
    };
    assert_eq!(ask(&world, "Talk.").await.status, 200);
    // A process that is killed once the key is reserved leaves nothing else.
    let world = world
        .restart_after(|dir| {
            for entry in fs::read_dir(place(dir).path()).unwrap().map(Result::unwrap) {
                match entry.path() {
                    path if entry.file_name() == ".keys" => assert!(path.is_file()),
                    path if path.is_dir() => fs::remove_dir_all(path).unwrap(),
                    path => fs::remove_file(path).unwrap(),
                }
            }
            fs::remove_file(dir.join("data/conversations.db.server/requests.jsonl")).unwrap();
        })
        .await;
    assert_eq!(world.get(PATH).await.json()["conversations"], json!([]));
    let refused = ask(&world, "Sing.").await;
    let (one, other) = tokio::join!(ask(&world, "Talk."), ask(&world, "Talk."));
    assert_one_refused([&one, &refused]);
    assert_eq!((other.status, conversation(&other.json())), (200, conversation(&one.json())));
    assert_eq!(world.get(PATH).await.json()["conversations"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn s55_a_retry_at_another_server_joins_the_run_that_its_client_has_lost() {
    let gate = Arc::new(Gate::until(1));
    let (first, second) = two_servers(generous(), &gate).await;
    let id = lost(&first, streamed(&first, "Talk.")).await;
    until_asked(&first, 2).await;
    while events(&first, &id).await.iter().all(|event| event["type"] != "client_disconnected") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut retry =
        streamed(&second, "Talk.").header("x-stainless-retry-count", "1").open(second.address).await;
    // With the id of its conversation: before, that could have ended.
    let begins = retry.frame().await.unwrap().json();
    assert!(begins["id"].as_str().unwrap().contains(&id), "{begins}");
    gate.lift();
    let (joined, is_done) = chunks(retry).await;
    assert!(is_done, "{joined:?}");
    assert_eq!(second.model_requests().len(), 0);
    // The first server knows that someone waits for it again.
    let log = events(&first, &id).await;
    assert!(log.iter().any(|event| event["type"] == "resumed"), "{log:?}");
    // Another one is none that comes again.
    let (other, _) = chunks(streamed(&second, "Talk.").open(second.address).await).await;
    assert!(!other[0]["id"].as_str().unwrap().contains(&id), "{other:?}");
}

#[tokio::test]
async fn two_messages_that_continue_one_history_at_once_are_in_two_conversations() {
    let world = World::with_answers(|number| Answer::text(format!("reply {number}"))).await;
    let first = complete(&world, "long", json!([user("Hi.")])).await;
    let ask = async |text: &str| {
        complete(&world, "long", json!([user("Hi."), assistant(content(&first)), user(text)])).await
    };
    let (salary, poem) = tokio::join!(ask("What is my salary?"), ask("Write a poem."));
    let of = [conversation(&salary), conversation(&poem)];
    assert!(of[0] != of[1] && of.contains(&conversation(&first)), "one continues, and one is a fork: {of:?}");
    for (id, own, other) in [(of[0], "salary", "poem"), (of[1], "poem", "salary")] {
        let said = said(&events(&world, id).await).join(" ");
        assert!(said.contains(own) && !said.contains(other), "{said}");
    }
}

/// Limits under which a run is stopped this soon after its client has gone away.
fn abandoned_after(ms: u64) -> ServerLimits {
    ServerLimits { abandoned_time: Duration::from_millis(ms), running_per_token: 1, ..generous() }
}

/// A request for a stream whose client goes away after the first chunk. Returns the conversation.
async fn lost(world: &World, request: Request) -> String {
    let mut stream = request.open(world.address).await;
    let chunk = stream.frame().await.unwrap().json();
    chunk["id"].as_str().unwrap().split('-').nth(1).unwrap().to_owned()
}

fn streamed(world: &World, text: &str) -> Request {
    let body = json!({"model": "long", "messages": [user(text)], "stream": true});
    world.request("POST", COMPLETIONS).json(&body)
}

/// The conversation once it does not run.
async fn at_rest(world: &World, id: &str) -> Value {
    loop {
        let about = world.get(&format!("{PATH}/{id}")).await.json();
        if about["state"] != "running" {
            return about;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until_asked(world: &World, calls: usize) {
    while world.model_requests().len() < calls {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn s57_one_that_waits_for_its_turn_does_not_run_for_a_client_that_is_gone() {
    let (gate, world) = World::gated("more", abandoned_after(1), 0).await;
    let first = begin(&world, &json!({"team": "long"})).await;
    let id = lost(&world, streamed(&world, "Talk.")).await;
    until(&world, &id, "halted").await;
    gate.lift();
    until(&world, &first, "closed").await;
    let log = events(&world, &id).await;
    assert!(log.iter().all(|event| event["type"] != "turn_started"), "{log:?}");
    // Its client tries again.
    let retry = streamed(&world, "Talk.").header("x-stainless-retry-count", "1");
    let (joined, is_done) = chunks(retry.open(world.address).await).await;
    assert!(is_done && joined[0]["id"].as_str().unwrap().contains(&id), "{joined:?}");
}

#[tokio::test]
async fn s57_a_run_into_which_a_client_has_spoken_that_is_gone_is_stopped_once_and_for_all() {
    let (gate, world) = World::gated("more", abandoned_after(1), 1).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    until_asked(&world, 2).await;
    let into = streamed(&world, "Louder.").header("X-Polylogue-Conversation", &id);
    assert_eq!(lost(&world, into).await, id);
    assert_eq!(stopped_before_its_last_turn(&world, &gate).await, id);
}

#[tokio::test]
async fn s57_a_run_that_a_person_has_resumed_is_not_stopped_for_an_earlier_client() {
    let (gate, world) = World::gated("more", abandoned_after(1_500), 1).await;
    let id = lost(&world, streamed(&world, "Talk.")).await;
    until_asked(&world, 2).await;
    let post = async |what: &str, body: Value| world.post(&format!("{PATH}/{id}/{what}"), &body).await.status;
    assert_eq!(post("stop", json!({"when": "now"})).await, 202);
    until(&world, &id, "halted").await;
    assert_eq!(post("resume", json!({})).await, 202);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    gate.lift();
    let rest = at_rest(&world, &id).await;
    assert_eq!(rest["state"], "closed", "{rest}");
}

#[tokio::test]
async fn s57_a_run_that_another_process_has_steered_is_not_stopped_for_an_earlier_client() {
    let gate = Arc::new(Gate::until(1));
    let (first, second) = two_servers(abandoned_after(1_500), &gate).await;
    let id = lost(&first, streamed(&first, "Talk.")).await;
    until_asked(&first, 2).await;
    while events(&first, &id).await.iter().all(|event| event["type"] != "client_disconnected") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (path, body) = (format!("{PATH}/{id}/messages"), json!({"text": "Go on."}));
    let (sent, ()) =
        tokio::join!(second.post(&path, &body), tokio::time::sleep(Duration::from_millis(2_500)));
    assert_eq!(sent.status, 202, "{}", sent.body);
    gate.lift();
    assert_eq!(at_rest(&first, &id).await["state"], "closed");
}
