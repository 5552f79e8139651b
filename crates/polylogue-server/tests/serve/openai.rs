//! OpenAI's chat completions: S44 to S61.

use std::sync::Arc;
use std::time::Duration;

use polylogue_server::{NewToken, Scope, ServerLimits};
use serde_json::{Value, json};

use crate::client::{Request, Response, Stream};
use crate::conversations::{events, until};
use crate::mcp_client::{called, elicitation};
use crate::world::{Gate, World, generous};

pub(crate) const COMPLETIONS: &str = "/v1/chat/completions";
const PATH: &str = "/api/v1/conversations";

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub(crate) fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

pub(crate) async fn complete(world: &World, model: &str, messages: Value) -> Value {
    let response = world.post(COMPLETIONS, &json!({"model": model, "messages": messages})).await;
    assert_eq!(response.status, 200, "{}", response.body);
    response.json()
}

pub(crate) fn content(completion: &Value) -> &str {
    completion["choices"][0]["message"]["content"].as_str().unwrap()
}

pub(crate) fn conversation(completion: &Value) -> &str {
    completion["polylogue"]["conversation"].as_str().unwrap()
}

/// The chunks of a stream until its end, and whether that was `[DONE]`.
pub(crate) async fn chunks(mut stream: Stream) -> (Vec<Value>, bool) {
    let (mut chunks, mut is_done) = (Vec::new(), false);
    while let Some(frame) = stream.frame().await {
        assert!(!is_done, "nothing follows the end");
        match frame.event.as_str() {
            "comment" => {}
            "" if frame.data == "[DONE]" => is_done = true,
            "" => chunks.push(frame.json()),
            other => panic!("a frame of another kind: {other}"),
        }
    }
    (chunks, is_done)
}

pub(crate) async fn streamed(world: &World, body: &Value) -> (Vec<Value>, bool) {
    chunks(world.request("POST", COMPLETIONS).json(body).open(world.address).await).await
}

async fn count(world: &World) -> usize {
    world.get(PATH).await.json()["conversations"].as_array().unwrap().len()
}

#[tokio::test]
async fn s44_teams_are_models() {
    let world = World::new().await;
    let listed = world.get("/v1/models").await.json();
    let ids: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!((&listed["object"], ids), (&json!("list"), vec!["ask", "short", "talk", "whisper"]));
    for model in listed["data"].as_array().unwrap() {
        let id = model["id"].as_str().unwrap();
        let keys: Vec<&String> = model.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["id", "object", "created", "owned_by"], "{model}");
        assert_eq!((&model["object"], &model["owned_by"]), (&json!("model"), &json!("polylogue")));
        assert!(model["created"].as_u64() > Some(1_700_000_000), "{model}");
        assert_eq!(world.get(&format!("/v1/models/{id}")).await.json(), *model);
    }
    let new = NewToken { teams: Some(vec!["talk".into()]), ..NewToken::local("one team") };
    let (_, text) = world.tokens().create(new).unwrap();
    let get = |path: &str| Request::new("GET", path).token(text.reveal());
    assert_eq!(get("/v1/models").send(world.address).await.json()["data"].as_array().unwrap().len(), 1);
    let unknown = get("/v1/models/short").send(world.address).await;
    assert_eq!((unknown.status, &unknown.problem()["error"]["code"]), (404, &json!("model_not_found")));
}

#[tokio::test]
async fn s45_s49_a_plain_call_has_the_result_and_no_invented_usage() {
    let world = World::new().await;
    let completion = complete(&world, "talk", json!([user("Count.")])).await;
    assert_eq!((content(&completion), &completion["choices"][0]["finish_reason"]), ("four", &json!("stop")));
    assert_eq!((&completion["object"], &completion["model"]), (&json!("chat.completion"), &json!("talk")));
    assert_eq!(completion.get("usage"), None, "scripted models have no tokens");
    assert_eq!(completion["polylogue"]["state"], "closed");
    let usage = &completion["polylogue"]["usage"];
    assert_eq!((&usage["calls"], &usage["unmetered"]), (&json!(4), &json!(4)));
    assert_eq!((usage.get("input"), usage.get("output")), (None, None), "they are not known, and not 0");
    assert_eq!((&usage["unpriced"], &usage["cost"]), (&json!(0), &json!(0)), "a script costs nothing");
    let log = events(&world, conversation(&completion)).await;
    assert_eq!(log[0]["task"], "Count.");
    // A model with tokens: the sums of the log.
    let world = World::with_model("more", generous()).await;
    let completion = complete(&world, "long", json!([user("Talk.")])).await;
    let one = until(&world, conversation(&completion), "closed").await;
    let usage = &completion["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&one["usage"]["input"], &one["usage"]["output"])
    );
    let tokens = |kind: &str| usage[kind].as_u64().unwrap();
    assert!(tokens("prompt_tokens") > 0 && tokens("completion_tokens") > 0, "{completion}");
    assert_eq!(tokens("total_tokens"), tokens("prompt_tokens") + tokens("completion_tokens"));
}

#[tokio::test]
async fn s46_s47_s48_a_stream_has_the_same_content_and_one_end() {
    let world = World::with_model("more", generous()).await;
    let plain = complete(&world, "long", json!([user("Talk.")])).await;
    for usage in [true, false] {
        let mut body = json!({"model": "long", "messages": [user("Talk.")], "stream": true});
        if usage {
            body["stream_options"] = json!({"include_usage": true});
        }
        let (chunks, is_done) = streamed(&world, &body).await;
        assert!(is_done);
        for name in ["id", "created", "model", "object"] {
            assert!(chunks.iter().all(|chunk| chunk[name] == chunks[0][name]), "{name}");
        }
        assert!(chunks[0]["id"].is_string() && chunks[0]["created"].is_u64(), "{}", chunks[0]);
        assert_eq!(
            (&chunks[0]["object"], &chunks[0]["model"]),
            (&json!("chat.completion.chunk"), &json!("long"))
        );
        let choices: Vec<&Value> =
            chunks.iter().flat_map(|chunk| chunk["choices"].as_array().unwrap()).collect();
        assert!(choices.iter().all(|choice| choice["index"] == 0));
        let reasons = choices.iter().map(|choice| choice.get("finish_reason").unwrap());
        let reasons: Vec<&Value> = reasons.filter(|reason| !reason.is_null()).collect();
        assert_eq!(reasons, [&plain["choices"][0]["finish_reason"]]);
        let roles: Vec<&Value> = choices.iter().filter_map(|choice| choice["delta"].get("role")).collect();
        assert_eq!((roles, &choices[0]["delta"]["role"]), (vec![&json!("assistant")], &json!("assistant")));
        let join = |name: &str| {
            choices.iter().filter_map(|choice| choice["delta"][name].as_str()).collect::<String>()
        };
        assert_eq!((join("content").as_str(), content(&plain)), ("more", "more"));
        assert!(join("reasoning_content").starts_with("**Ann:** more\n\n**Bob:** more\n\n"));
        let with: Vec<&Value> = chunks.iter().filter(|chunk| chunk["usage"].is_object()).collect();
        assert_eq!(with.len(), usize::from(usage));
        assert_eq!(chunks.iter().all(|chunk| chunk.get("usage").is_some()), usage);
        if usage {
            assert_eq!((&chunks.last().unwrap()["choices"], with[0]), (&json!([]), chunks.last().unwrap()));
            assert_eq!(with[0]["usage"], plain["usage"], "that of an equal conversation");
        }
    }
}

#[tokio::test]
async fn s50_a_limit_of_the_run_is_a_length_with_content() {
    let world = World::new().await;
    let completion = complete(&world, "short", json!([user("Count.")])).await;
    assert_eq!(completion["choices"][0]["finish_reason"], "length", "{completion}");
    assert!(!content(&completion).trim().is_empty());
    assert_eq!(completion["polylogue"]["ended"]["word"], "limit");
}

#[tokio::test]
async fn s51_a_question_is_content_and_the_next_message_answers_it() {
    let world = World::new().await;
    let asked = complete(&world, "ask", json!([user("Help.")])).await;
    assert_eq!(
        (&asked["choices"][0]["finish_reason"], &asked["polylogue"]["state"]),
        (&json!("stop"), &json!("waiting"))
    );
    assert!(!asked["polylogue"]["questions"].as_array().unwrap().is_empty());
    let history = json!([user("Help."), assistant(content(&asked)), user("I am stuck.")]);
    let answered = complete(&world, "ask", history).await;
    assert_eq!((conversation(&answered), content(&answered)), (conversation(&asked), "Thanks."));
    assert_eq!(answered["polylogue"]["state"], "closed", "{answered}");
}

#[tokio::test]
async fn s51_a_token_without_the_scope_answers_no_question() {
    let world = World::new().await;
    let asked = complete(&world, "ask", json!([user("Help.")])).await;
    let (_, text) = world.new_token("local", &[Scope::Run]);
    let body =
        json!({"model": "ask", "messages": [user("Help."), assistant(content(&asked)), user("I am stuck.")]});
    let refused = Request::new("POST", COMPLETIONS).token(&text).json(&body).send(world.address).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert_eq!(until(&world, conversation(&asked), "waiting").await["state"], "waiting");
    complete(&world, "ask", body["messages"].clone()).await;
    let edited = json!([user("Help."), assistant(content(&asked)), user("All is well.")]);
    let body = json!({"model": "ask", "messages": edited});
    let refused = Request::new("POST", COMPLETIONS).token(&text).json(&body).send(world.address).await;
    assert_eq!((refused.status, count(&world).await), (403, 1), "nothing is forked: {}", refused.body);
}

#[tokio::test]
async fn s52_a_history_continues_its_conversation_and_an_edited_one_forks_it() {
    let world = World::with_model("more", generous()).await;
    let first = complete(&world, "long", json!([user("Talk.")])).await;
    let mut history = vec![user("Talk."), assistant(content(&first)), user("Again.")];
    let second = complete(&world, "long", json!(history)).await;
    history.extend([assistant(content(&second)), user("Once more.")]);
    let third = complete(&world, "long", json!(history)).await;
    let id = conversation(&first);
    assert_eq!((conversation(&second), conversation(&third)), (id, id));
    let before = events(&world, id).await;
    // The second message is edited.
    history[2] = user("Otherwise.");
    let edited = complete(&world, "long", json!(&history[..3])).await;
    let fork = world.get(&format!("{PATH}/{}", conversation(&edited))).await.json();
    assert_eq!((&fork["parent"]["id"], &fork["parent"]["edited"]), (&json!(id), &json!(true)), "S30");
    assert_eq!(events(&world, id).await, before, "the source is unchanged");
    // The same message again asks for another reply: a fork that is not edited.
    history[2] = user("Again.");
    let regenerated = complete(&world, "long", json!(&history[..3])).await;
    let fork = world.get(&format!("{PATH}/{}", conversation(&regenerated))).await.json();
    assert_eq!(fork["parent"], json!({"id": id, "seq": fork["parent"]["seq"]}), "{fork}");
    // An unknown history begins a conversation, with what was said.
    let unknown = json!([user("Sing."), assistant("La."), user("More.")]);
    let unknown = complete(&world, "long", unknown).await;
    assert_ne!(conversation(&unknown), id);
    assert_eq!(
        events(&world, conversation(&unknown)).await[0]["task"],
        "user: Sing.\n\nassistant: La.\n\nMore."
    );
    assert_eq!(count(&world).await, 4);
}

#[tokio::test]
async fn s53_a_named_conversation_continues_whatever_the_history_says() {
    let world = World::with_model("more", generous()).await;
    let first = complete(&world, "long", json!([user("Talk.")])).await;
    let id = conversation(&first);
    let body = json!({"model": "long", "messages": [user("And now?")]});
    let by_header = world.request("POST", COMPLETIONS).json(&body).header("X-Polylogue-Conversation", id);
    assert_eq!(conversation(&world.send(by_header.clone()).await.json()), id);
    let mut by_metadata = body.clone();
    by_metadata["metadata"] = json!({"conversation": id});
    assert_eq!(conversation(&world.post(COMPLETIONS, &by_metadata).await.json()), id);
    // Another team does not continue it, and does not say that it has.
    let of_other = json!({"model": "talk", "messages": [user("And now?")]});
    let by_other = world.request("POST", COMPLETIONS).json(&of_other).header("X-Polylogue-Conversation", id);
    let unknown =
        world.request("POST", COMPLETIONS).json(&of_other).header("X-Polylogue-Conversation", "none");
    let (by_other, unknown) = (world.send(by_other).await, world.send(unknown).await);
    assert_eq!((by_other.status, &by_other.body), (404, &unknown.body));
    assert!(unknown.body.contains("(hint: use an id that an earlier reply had"), "{}", unknown.body);
    // Another tenant gets what an unknown id gets.
    let (_, foreign) = world.new_token("other", &Scope::ALL);
    let refused = world.send(by_header.token(&foreign)).await;
    assert_eq!(refused.status, 404, "{}", refused.body);
    refused.problem();
}

#[tokio::test]
async fn s51_a_person_is_asked_with_the_last_message_and_without_the_words_of_a_terminal() {
    let team = "
name: turns
task: Help.
agents: [{name: Ann}, {name: Pat, human: true}]
chat: {participants: [Ann, Pat], pattern: round_robin, stop: {max_turns: 4}}
script: [{Ann: 'What is wrong?'}, {Ann: 'I see.'}]
";
    let turn = "Pat, it is your turn. The answer is your message, and the answer `exit` leaves the chat.";
    check_last_message(team, turn).await;
    // So is a person who speaks in the name of an agent.
    let team = team.replace("human: true", "human: true, human_input: always");
    let reply = "You speak as `Pat` to `Ann`. The answer is the reply; `exit` ends the conversation.";
    check_last_message(&team, reply).await;
}

/// Checks that Pat is asked with `own` and the last message of Ann.
async fn check_last_message(team: &str, own: &str) {
    let world = World::with_team("turns", team).await;
    let after = |said: &str| format!("{own}\n\nThe last message, from Ann:\n\n{said}");
    let mut history = vec![user("Help.")];
    let asked = complete(&world, "turns", json!(history)).await;
    assert_eq!(content(&asked), after("What is wrong?"));
    history.extend([assistant(content(&asked)), user("It is stuck.")]);
    let again = complete(&world, "turns", json!(history)).await;
    assert_eq!((conversation(&again), content(&again)), (conversation(&asked), after("I see.").as_str()));
    // A transcript has the message once.
    let body = json!({"model": "turns", "messages": [user("Help.")]});
    let request = world.request("POST", COMPLETIONS).json(&body).header("X-Polylogue-Show", "transcript");
    assert_eq!(content(&world.send(request).await.json()), format!("**Ann:** What is wrong?\n\n{own}"));
    // So it is in MCP, as the result and as a form.
    let result = called(&world, "turns", json!({}), &json!({})).await;
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("Pat is asked: {}\n(", after("What is wrong?"))), "{text}");
    let question = result["structuredContent"]["questions"][0]["text"].as_str().unwrap();
    assert!(own.starts_with(&format!("{question} The answer is ")), "{question}");
    let form = called(&world, "turns", json!({}), &elicitation()).await;
    let (_, form) = form["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(form["params"]["message"], format!("Pat is asked: {}", after("What is wrong?")));
}

/// A team that waits for its model behind the gate, a request for a stream, and its stream after the first chunk.
async fn stream_that_waits() -> (Arc<Gate>, World, Request, Stream) {
    let (gate, world) = World::gated("more", generous(), 0).await;
    let body = json!({"model": "long", "messages": [user("Talk.")], "stream": true});
    let request = world.request("POST", COMPLETIONS).json(&body);
    let mut stream = request.open(world.address).await;
    stream.frame().await.unwrap();
    (gate, world, request, stream)
}

#[tokio::test]
async fn s9_the_stream_of_a_revoked_token_ends_and_has_no_mark_of_an_end() {
    let world = World::with_gate("more", generous(), Arc::new(Gate::until(0))).await;
    let (token, text) = world.new_token("local", &Scope::ALL);
    let body = json!({"model": "long", "messages": [user("Talk.")], "stream": true});
    let request = world.request("POST", COMPLETIONS).json(&body).token(&text);
    let mut stream = request.open(world.address).await;
    stream.frame().await.unwrap();
    assert!(world.tokens().revoke(&token.id, |_| true).unwrap());
    let (chunks, is_done) = chunks(stream).await;
    assert!(
        !is_done && chunks.iter().all(|chunk| chunk["choices"][0]["finish_reason"].is_null()),
        "{chunks:?}"
    );
    assert_eq!(request.send(world.address).await.status, 401);
}

#[tokio::test]
async fn s55_s56_a_retry_joins_and_two_equal_requests_are_two_runs() {
    let (gate, world, request, first) = stream_that_waits().await;
    drop(first);
    let retry = request.clone().header("x-stainless-retry-count", "1").open(world.address).await;
    gate.lift();
    let (joined, is_done) = chunks(retry).await;
    assert!(is_done && joined.len() > 3, "{joined:?}");
    assert_eq!(count(&world).await, 1, "one log");
    assert_eq!(world.model_requests().len(), 8, "each call once, until the loop detection ends it");
    let (one, two) = tokio::join!(request.send(world.address), request.send(world.address));
    assert_eq!((one.status, two.status), (200, 200));
    assert_eq!(count(&world).await, 3, "two more");
}

#[tokio::test]
async fn s55_s56_a_retry_joins_no_run_whose_client_is_there_or_has_the_whole_answer() {
    let (gate, world, request, first) = stream_that_waits().await;
    let again = request.clone().header("x-stainless-retry-count", "1");
    let second = again.open(world.address).await;
    assert_eq!(count(&world).await, 2, "the first is still connected");
    gate.lift();
    let (whole, is_done) = chunks(first).await;
    assert!(is_done && chunks(second).await.1);
    // Streams, and whole responses.
    let (third, _) = chunks(again.open(world.address).await).await;
    assert_ne!(third[0]["id"], whole[0]["id"]);
    assert_eq!(count(&world).await, 3, "what was received is asked for again");
    let body = json!({"model": "long", "messages": [user("Talk.")]});
    let request = world.request("POST", COMPLETIONS).json(&body);
    let first = request.send(world.address).await.json();
    let again = request.header("x-stainless-retry-count", "1").send(world.address).await.json();
    assert_ne!(conversation(&first), conversation(&again));
}

/// A request whose run a restart interrupts is the same afterwards, with a key and, of an SDK that tries again, without.
#[tokio::test]
async fn s24_s55_a_repeated_chat_completion_joins_its_run_across_a_restart() {
    for (header, value) in [("Idempotency-Key", "once"), ("x-stainless-retry-count", "1")] {
        let gate = Arc::new(Gate::until(1));
        // The call in flight is given up.
        let limits = ServerLimits { stop_time: Duration::from_millis(10), ..generous() };
        let world = World::with_gate("more", limits, Arc::clone(&gate)).await;
        let body = json!({"model": "long", "messages": [user("Talk.")], "stream": true});
        let begin = world.request("POST", COMPLETIONS).json(&body);
        let begin = if header == "Idempotency-Key" { begin.header(header, value) } else { begin };
        let mut first = begin.open(world.address).await;
        let id = first.frame().await.unwrap().json()["id"].clone();
        while world.model_requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let world = world.restart().await;
        gate.lift();
        let again = world.request("POST", COMPLETIONS).json(&body).header(header, value);
        let (joined, is_done) = chunks(again.open(world.address).await).await;
        assert!(is_done && joined[0]["id"] == id, "{header}: {joined:?}");
        assert_eq!(count(&world).await, 1, "{header}");
        // Of the eight calls, that in flight came again.
        assert_eq!(world.model_requests().len(), 9, "{header}");
    }
}

#[tokio::test]
async fn s24_one_key_makes_one_chat_completion() {
    let world = World::with_model("more", generous()).await;
    let keyed = |body: &Value, key: &str| {
        world.request("POST", COMPLETIONS).json(body).header("Idempotency-Key", key)
    };
    let mut history = vec![user("Talk.")];
    let mut id = None;
    for key in ["one", "two", "three"] {
        let body = json!({"model": "long", "messages": history});
        let request = keyed(&body, key);
        let (first, second) = tokio::join!(request.send(world.address), request.send(world.address));
        let third = request.send(world.address).await;
        assert_eq!(third.header("idempotent-replayed"), Some("true"), "{key}");
        let replayed = [&first, &second].map(|one| one.header("idempotent-replayed").is_some());
        assert_ne!(replayed[0], replayed[1], "{key}: one of them waited");
        for other in [&second, &third] {
            assert_eq!((other.status, &other.json()["id"]), (200, &first.json()["id"]), "{key}");
            assert_eq!(content(&other.json()), content(&first.json()));
        }
        let first = first.json();
        let of = id.get_or_insert_with(|| conversation(&first).to_owned());
        assert_eq!(conversation(&first), of, "{key}");
        history.extend([assistant(content(&first)), user(&format!("And after {key}?"))]);
        let other = json!({"model": "long", "messages": [user("Something else.")]});
        let refused = keyed(&other, key).send(world.address).await;
        assert_eq!(refused.status, 422, "{key}: {}", refused.body);
    }
    assert_eq!(count(&world).await, 1);
    let said = events(&world, &id.unwrap()).await;
    assert_eq!(said.iter().filter(|event| event["type"] == "reopened").count(), 2, "each message once");
}

/// Waits until the only conversation is stopped, whose first client is gone and whose model has replied once. Returns its id.
pub(crate) async fn stopped_before_its_last_turn(world: &World, gate: &Gate) -> String {
    let id = world.get(PATH).await.json()["conversations"][0]["id"].as_str().unwrap().to_owned();
    // The model replies slowly: the server has noticed that the client is gone long before the last of the twelve turns.
    for open in 2..12 {
        gate.open_until(open);
        tokio::time::sleep(Duration::from_millis(300)).await;
        if world.get(&format!("{PATH}/{id}")).await.json()["state"] != "running" {
            break;
        }
    }
    let stopped = until(world, &id, "halted").await;
    assert!(stopped["turns"].as_u64() < Some(12), "{stopped}");
    id
}

#[tokio::test]
async fn s57_a_run_that_no_client_waits_for_is_stopped_and_can_be_resumed() {
    let gate = Arc::new(Gate::until(1));
    let limits = ServerLimits { abandoned_time: Duration::from_millis(1), ..generous() };
    let world = World::with_gate("more", limits, Arc::clone(&gate)).await;
    let body = json!({"model": "long", "messages": [user("Talk.")], "stream": true});
    let mut stream = world.request("POST", COMPLETIONS).json(&body).open(world.address).await;
    // The first message; the second call is in flight.
    while stream.frame().await.unwrap().json()["choices"][0]["delta"].get("reasoning_content").is_none() {}
    drop(stream);
    let id = stopped_before_its_last_turn(&world, &gate).await;
    gate.lift();
    assert_eq!(world.post(&format!("{PATH}/{id}/resume"), &json!({})).await.status, 202);
    until(&world, &id, "closed").await;
}

#[tokio::test]
async fn s59_chores_of_user_interfaces_begin_no_run() {
    let world = World::new().await;
    let text = "### Task:\nGenerate a title { \"title\": \"\" }\nUSER: How are you?";
    let title = complete(&world, "talk", json!([user(text)])).await;
    assert_eq!(content(&title), r#"{"title":"How are you?"}"#);
    let body = json!({"model": "talk", "messages": [user(text)], "stream": true});
    let (chunks, is_done) = streamed(&world, &body).await;
    assert!(is_done && chunks.len() == 2, "{chunks:?}");
    for answer in [&title, &chunks[0], &chunks[1]] {
        assert_eq!(answer["polylogue"], json!({"chore": "title"}), "it says that no team has answered");
    }
    assert_eq!(count(&world).await, 0);
    // What only resembles one reaches the team.
    for text in [
        "### Task:\nSummarize this incident report in one sentence: the pump failed.",
        "Please write a title for my podcast about conversation design, and choose each word with care.",
    ] {
        assert_eq!(content(&complete(&world, "talk", json!([user(text)])).await), "four");
    }
    assert_eq!(count(&world).await, 2);
}

#[tokio::test]
async fn s60_s61_what_is_refused_has_four_keys_and_what_is_not_used_is_named() {
    let world = World::new().await;
    let post = async |body: &Value| world.post(COMPLETIONS, body).await;
    let two = post(&json!({"model": "talk", "messages": [user("x")], "n": 2})).await;
    assert_eq!((two.status, &two.problem()["error"]["param"]), (400, &json!("n")));
    assert_eq!(two.header("x-should-retry"), Some("false"));
    let streams = post(&json!({"model": "talk", "messages": [user("x")], "stream": "yes"})).await;
    assert_eq!((streams.status, &streams.problem()["error"]["param"]), (400, &json!("stream")));
    let tool = json!({"role": "tool", "tool_call_id": "a", "content": "42"});
    let of_tool =
        post(&json!({"model": "talk", "messages": [user("x"), assistant(""), tool, user("and?")]})).await;
    assert_eq!((of_tool.status, &of_tool.problem()["error"]["param"]), (400, &json!("messages.2.role")));
    let unknown = post(&json!({"model": "none", "messages": [user("x")]})).await;
    assert_eq!((unknown.status, &unknown.problem()["error"]["code"]), (404, &json!("model_not_found")));
    let body = json!({"model": "talk", "messages": [user("x")], "temperature": 0.5, "new_field": {"a": 1}});
    let named = post(&body).await;
    assert_eq!((named.status, named.header("x-polylogue-ignored")), (200, Some("new_field, temperature")));
    let wrong: [(Response, u16); 4] = [
        (world.send(Request::new("GET", "/v1/models")).await, 401),
        (world.get("/v1/none").await, 404),
        (world.send(world.request("DELETE", "/v1/models")).await, 405),
        (
            world
                .send(Request { body: b"{".to_vec(), ..world.request("POST", COMPLETIONS).json(&json!({})) })
                .await,
            400,
        ),
    ];
    for (response, status) in wrong {
        assert_eq!(response.status, status, "{}", response.body);
        assert!(response.problem()["error"].is_object(), "{}", response.body);
    }
    assert_eq!(count(&world).await, 1);
}
