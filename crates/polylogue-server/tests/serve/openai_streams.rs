//! What streams of chat completions show while a team talks, and limits of one request: S46, S48, S50, S58, S63.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use polylogue_server::ServerLimits;
use polylogue_test::random::Random;
use polylogue_test::server::{Answer, Quirk};
use serde_json::{Value, json};

use crate::client::{Request, Stream};
use crate::conversations::{PATH, begin, until};
use crate::openai::{COMPLETIONS, assistant, chunks, complete, content, conversation, streamed, user};
use crate::world::{Gate, World, generous};

fn joined(chunks: &[Value], name: &str) -> String {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"][name].as_str()).collect()
}

async fn open(world: &World, request: Request) -> Stream {
    request.open(world.address).await
}

#[tokio::test]
async fn s58_a_silent_model_is_kept_alive() {
    assert_eq!(ServerLimits::default().comment_every, Duration::from_secs(15), "the real interval");
    let gate = Arc::new(Gate::until(0));
    // A minute of silence is four intervals, here 80 ms.
    let limits = ServerLimits { comment_every: Duration::from_millis(20), ..generous() };
    let world = World::with_gate("more", limits, Arc::clone(&gate)).await;
    let body = json!({"model": "long", "messages": [user("Talk.")], "stream": true});
    let request = world.request("POST", COMPLETIONS).json(&body);
    let mut comments = open(&world, request.clone()).await;
    let by_chunks = request.clone().header("X-Polylogue-Keep-Alive", "chunks");
    let mut empty = open(&world, by_chunks).await;
    let (first, same) = (comments.frame().await.unwrap().json(), empty.frame().await.unwrap().json());
    assert_eq!(first["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(first["choices"], same["choices"]);
    for _ in 0..4 {
        assert_eq!(comments.frame().await.unwrap().event, "comment");
        let chunk = empty.frame().await.unwrap().json();
        assert_eq!(chunk["choices"], json!([{"index": 0, "delta": {}, "finish_reason": null}]));
        assert_eq!(chunk["id"], same["id"]);
    }
    gate.lift();
    for stream in [comments, empty] {
        let (chunks, is_done) = chunks(stream).await;
        assert!(is_done && joined(&chunks, "content") == "more", "{chunks:?}");
    }
    let wrong = world.send(request.header("X-Polylogue-Keep-Alive", "often")).await;
    assert_eq!(wrong.status, 400, "{}", wrong.body);
}

const NAMES: [&str; 4] = ["Ann", "Bob", "Cleo", "Dan"];

/// A team whose participants and chats speak at the same time, now and then.
fn team(name: &str, random: &mut Random) -> String {
    let mut text =
        format!("name: {name}\nagents: [{{name: Ann}}, {{name: Bob}}, {{name: Cleo}}, {{name: Dan}}]\n");
    let pattern = |random: &mut Random| ["parallel", "sequential"][random.index(2)];
    let (one, two) = (pattern(random), pattern(random));
    let outer = ["parallel", "sequential", "round_robin"][random.index(3)];
    write!(
        text,
        "chats:\n  - {{name: one, participants: [Ann, Bob], pattern: {one}}}\n  - {{name: two, participants: [Cleo, Dan], pattern: {two}}}\n\
         chat: {{participants: [one, two], pattern: {outer}, stop: {{max_turns: {}}}}}\nscript_pace: {}\nscript:\n",
        1 + random.below(4),
        200 + random.below(2000),
    )
    .unwrap();
    let mut word = 0;
    for _ in 0..8 {
        for name in NAMES {
            word += 1;
            let mut said = format!("w{word}@{name}");
            for _ in 0..random.below(5) {
                word += 1;
                said += &format!("{}w{word}@{name}", [" ", "\\n", "\\n\\n"][random.index(3)]);
            }
            writeln!(text, "  - {name}: \"{said}\"").unwrap();
        }
    }
    text
}

/// A line has words of one participant alone, and that is the one that the paragraph names.
fn check_lines(text: &str) {
    let mut speaker = "";
    for line in text.lines() {
        if let Some((name, _)) = line.strip_prefix("**").and_then(|line| line.split_once(":** ")) {
            speaker = name;
        }
        for word in line.split_whitespace().filter_map(|word| word.split_once('@')) {
            assert_eq!(word.1, speaker, "{text}");
        }
    }
}

#[tokio::test]
async fn s46_s48_s63_streams_of_random_teams_are_those_of_their_finished_logs() {
    let mut random = Random::new(7);
    let teams: Vec<(String, String)> =
        (0..12).map(|nth| (format!("team{nth}"), team(&format!("team{nth}"), &mut random))).collect();
    let world = World::with_teams(&teams).await;
    for (name, _) in &teams {
        for show in ["result", "transcript"] {
            let body = json!({"model": name, "messages": [user("Talk.")], "stream": true});
            let request = world.request("POST", COMPLETIONS).json(&body).header("X-Polylogue-Show", show);
            let request = request.header("Idempotency-Key", &format!("{name} {show}"));
            let (live, is_done) = chunks(open(&world, request.clone()).await).await;
            assert!(is_done);
            // A repeated request joins the run, which has ended: nothing is live any more.
            let (stored, _) = chunks(open(&world, request.clone()).await).await;
            for name in ["reasoning_content", "content"] {
                assert_eq!(joined(&live, name), joined(&stored, name), "{name} of {show}");
            }
            check_lines(&joined(&live, if show == "result" { "reasoning_content" } else { "content" }));
            for name in ["id", "model", "object"] {
                assert!(live.iter().chain(&stored).all(|chunk| chunk[name] == live[0][name]), "{name}");
            }
            let ends = live.iter().filter(|chunk| !chunk["choices"][0]["finish_reason"].is_null());
            assert_eq!(ends.count(), 1);
            // The response that is no stream says the same.
            let plain = json!({"model": name, "messages": [user("Talk.")]});
            let plain = Request { body: plain.to_string().into_bytes(), ..request };
            let plain = plain.header("Idempotency-Key", &format!("{name} {show} whole"));
            let plain = world.send(plain).await.json();
            assert_eq!(content(&plain), joined(&live, "content").trim_end());
        }
    }
}

#[tokio::test]
async fn of_background_tasks_the_beginning_and_the_result_are_in_the_stream() {
    let desk = include_str!("../../../../teams/travel-desk.yaml");
    let world = World::with_team("travel-desk", desk).await;
    let body = json!({"model": "travel-desk", "messages": [user("Plan it.")], "stream": true});
    let request = world.request("POST", COMPLETIONS).json(&body).header("Idempotency-Key", "desk");
    let (live, is_done) = chunks(open(&world, request.clone()).await).await;
    assert!(is_done);
    let text = joined(&live, "reasoning_content");
    for line in [
        "**Host:** [starts the background task `forecast-1`: Marlow Bay, next Saturday and Sunday]\n\n",
        "**Host:** [background task `forecast-1`: completed: Marlow Bay is dry on Saturday, with 17 degrees, and ",
        "**Host:** [background task `find_hotel-2`: completed: The Harbor Inn costs $140 for two, with breakfast",
        "**Traveler:** We would rather walk, if it stays dry.\n\n",
    ] {
        assert_eq!(text.matches(line).count(), 1, "{line}: {text}");
    }
    // What is said within a task is in the log only: it would delay the conversation next to it.
    assert!(!text.contains("**Forecaster:**") && !text.contains("**Finder:**"), "{text}");
    assert!(joined(&live, "content").starts_with("Walk along the cliffs on Saturday"), "{live:?}");
    let (stored, _) = chunks(open(&world, request).await).await;
    assert_eq!(joined(&stored, "reasoning_content"), text, "it depends on the events alone");
}

#[tokio::test]
async fn pieces_are_streamed_and_a_broken_reply_is_marked() {
    let broken = |number| match number {
        0 => Answer::text("A reply that breaks off.").pieces(6).with(Quirk::Truncated),
        _ => Answer::text("And a whole one, in pieces.").pieces(6),
    };
    let world = World::with_answers(broken).await;
    let body = json!({"model": "long", "messages": [user("Talk.")], "stream": true});
    let transcript = world.request("POST", COMPLETIONS).json(&body).header("X-Polylogue-Show", "transcript");
    let (live, is_done) = chunks(open(&world, transcript).await).await;
    assert!(is_done);
    let text = joined(&live, "content");
    let (before, after) = text.split_once("\n\n[The ").unwrap();
    assert!(before.starts_with("**Ann:** A "), "{text}");
    let (count, after) = after.split_once(" characters before this do not count").unwrap();
    assert_eq!(count.parse::<usize>().unwrap(), before.chars().count(), "{text}");
    assert!(after.contains("**Ann:** And a whole one, in pieces.\n\n**Bob:** And a"), "{text}");
    assert!(live.len() > 40, "twelve messages of several pieces: {}", live.len());
    // The client sends back what it was shown, which continues the conversation.
    let history = json!([user("Talk."), assistant(&text), user("Again.")]);
    let again = world.request("POST", COMPLETIONS).json(&json!({"model": "long", "messages": history}));
    let again = world.send(again.header("X-Polylogue-Show", "transcript")).await.json();
    assert_eq!(conversation(&again), live.last().unwrap()["polylogue"]["conversation"]);
}

/// Before the first message and after it, in a stream and without one. The first conversation and the third have a reply.
#[tokio::test]
async fn s54_a_model_that_fails_is_an_error_frame_without_an_end_or_a_status() {
    let world = World::with_answers(|number| match number {
        0 | 3 => Answer::text("more"),
        _ => Answer::status(400),
    })
    .await;
    for shown in [Some("**Ann:** more\n\n"), None, None, Some("")] {
        let body = json!({"model": "long", "messages": [user("Talk.")], "stream": shown.is_some()});
        let request = world.request("POST", COMPLETIONS).json(&body);
        let failure = if let Some(shown) = shown {
            let (mut live, is_done) = chunks(open(&world, request).await).await;
            assert!(!is_done, "{live:?}");
            let failure = live.pop().unwrap();
            assert_eq!(joined(&live, "reasoning_content"), shown);
            assert!(live.iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null()), "{live:?}");
            failure
        } else {
            let response = world.send(request).await;
            assert_eq!(response.status, 500, "{}", response.body);
            response.problem();
            response.json()
        };
        let error = failure["error"].as_object().unwrap();
        let keys: BTreeSet<&str> = error.keys().map(String::as_str).collect();
        assert_eq!(keys, BTreeSet::from(["code", "message", "param", "type"]));
        assert_eq!(error["type"], "server_error");
        assert!(error["message"].as_str().unwrap().contains("status 400"), "{failure}");
    }
    assert_eq!(world.model_requests().len(), 6, "each failed once");
}

#[tokio::test]
async fn s50_a_limit_of_the_request_is_one_on_each_reply_until_the_next_request() {
    // Replies that resemble one another would be a loop.
    let word = |number: usize| blake3::hash(&number.to_le_bytes()).to_hex()[..14].to_owned();
    let world = World::with_answers(move |number| match number {
        // The last reply of the second response is cut off.
        23 => Answer::text("mo").finish("length"),
        _ => Answer::text(word(number)),
    })
    .await;
    let ask = async |messages: Value, limit: Value| {
        let mut body = json!({"model": "long", "messages": messages});
        body.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
        let response = world.post(COMPLETIONS, &body).await;
        assert_eq!(response.status, 200, "{}", response.body);
        response.json()
    };
    let end = |completion: &Value| completion["choices"][0]["finish_reason"].as_str().unwrap().to_owned();
    let first = ask(json!([user("Talk.")]), json!({"max_completion_tokens": 10})).await;
    let said = word(11);
    assert_eq!((&*end(&first), content(&first)), ("stop", &*said), "{first}");
    let mut history = vec![user("Talk."), assistant(&said), user("Again.")];
    let second = ask(json!(history), json!({"max_tokens": 20, "max_completion_tokens": 30})).await;
    assert_eq!((&*end(&second), content(&second)), ("length", "mo"), "{second}");
    history.extend([assistant("mo"), user("Once more.")]);
    // One without a limit has that of the team alone.
    let third = ask(json!(history), json!({})).await;
    assert_eq!((&*end(&third), conversation(&third)), ("stop", conversation(&first)), "{third}");
    let sent: Vec<Value> =
        world.model_requests().iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    let limit = |body: &Value| body["max_completion_tokens"].as_u64().or(body["max_tokens"].as_u64());
    let limits: Vec<Option<u64>> = sent.iter().map(limit).collect();
    let expected = [Some(10), Some(20), None].map(|limit| [limit; 12]).concat();
    assert_eq!(limits, expected);
    // What models were sent is known exactly.
    for call in 1..=18 {
        let path = format!("/api/v1/conversations/{}/views/Ann?call={call}", conversation(&first));
        assert_eq!(world.get(&path).await.json()["exact"], true, "call {call}");
    }
}

#[tokio::test]
async fn s50_a_limit_of_the_request_is_none_on_what_others_continue() {
    let world = World::with_model("more", generous()).await;
    let body = json!({"model": "long", "messages": [user("Talk.")], "max_tokens": 7});
    let first = world.post(COMPLETIONS, &body).await.json();
    let path = format!("/api/v1/conversations/{}", conversation(&first));
    let limits = |from: usize| -> BTreeSet<Option<u64>> {
        let sent: Vec<Value> =
            world.model_requests()[from..].iter().map(|body| serde_json::from_str(body).unwrap()).collect();
        let limit = |body: &Value| body["max_completion_tokens"].as_u64().or(body["max_tokens"].as_u64());
        sent.iter().map(limit).collect()
    };
    assert_eq!(limits(0), BTreeSet::from([Some(7)]));
    // From the middle of the response, when the limit was in force.
    let fork = json!({"seq": 4, "run": true});
    let mut from = world.model_requests().len();
    for (what, body) in [("fork", fork), ("messages", json!({"text": "More."}))] {
        let changed = world.post(&format!("{path}/{what}"), &body).await;
        assert!([201, 202].contains(&changed.status), "{what}: {}", changed.body);
        let id = changed.json()["id"].as_str().unwrap_or(conversation(&first)).to_owned();
        while world.model_requests().len() == from {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        until(&world, &id, "closed").await;
        assert_eq!(limits(from), BTreeSet::from([None]), "{what}");
        from = world.model_requests().len();
    }
}

#[tokio::test]
async fn a_transcript_is_the_content_and_its_history_continues_it() {
    let world = World::new().await;
    let show = async |messages: &Value| {
        let body = json!({"model": "talk", "messages": messages});
        let request = world.request("POST", COMPLETIONS).json(&body).header("X-Polylogue-Show", "transcript");
        world.send(request).await.json()
    };
    let first = show(&json!([user("Count.")])).await;
    assert_eq!(content(&first), "**Ann:** one\n\n**Bob:** two\n\n**Ann:** three\n\n**Bob:** four");
    let second = show(&json!([user("Count."), assistant(content(&first)), user("More.")])).await;
    assert_eq!(content(&second), "**Ann:** five\n\n**Bob:** six\n\n**Ann:** seven\n\n**Bob:** eight");
    assert_eq!(conversation(&second), conversation(&first));
    // To a client that was shown only results, the same history is unknown.
    let other =
        complete(&world, "talk", json!([user("Count."), assistant(content(&first)), user("More.")])).await;
    assert_ne!(conversation(&other), conversation(&first));
    let (silent, _) =
        streamed(&world, &json!({"model": "talk", "messages": [user("x")], "stream": true})).await;
    assert!(joined(&silent, "reasoning_content").ends_with("**Bob:** four\n\n"));
}

#[tokio::test]
async fn a_stream_that_is_refused_begins_nothing() {
    let world = World::with(ServerLimits { streams_per_token: 1, ..generous() }).await;
    let waiting = begin(&world, &json!({"team": "ask"})).await;
    let tail = world.tail(&waiting, 0).await;
    assert_eq!(tail.status, 200);
    let body = json!({"model": "talk", "messages": [user("Count.")], "stream": true});
    let refused = world.post(COMPLETIONS, &body).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{}", refused.body);
    assert_eq!(refused.problem()["error"]["code"], "too_many_requests");
    let listed = world.get(PATH).await.json();
    let ids: Vec<&Value> = listed["conversations"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&json!(waiting)], "no conversation was begun");
    // Without a stream, it needs no place among the streams.
    complete(&world, "talk", json!([user("Count.")])).await;
    drop(tail);
}
