//! What changes a conversation: S26 to S30, S32.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use polylogue_core::{LogId, Store as _, StoreError};
use polylogue_server::{Scope, ServerLimits};
use polylogue_test::server::Answer;
use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::conversations::{begin, begin_until, events, position, said, until};
use crate::tails::asked;
use crate::world::{Gate, World, generous, place};

const PATH: &str = "/api/v1/conversations";

async fn post(world: &World, id: &str, what: &str, body: Value) -> Response {
    world.post(&format!("{PATH}/{id}/{what}"), &body).await
}

#[tokio::test]
async fn s26_the_first_answer_counts() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    let question = asked(&world, &id).await;
    let waiting = world.get(&format!("{PATH}/{id}")).await.json();
    assert_eq!((&waiting["state"], &waiting["questions"][0]["who"]), (&json!("waiting"), &json!("Pat")));
    let open = &waiting["questions"][0];
    assert_eq!((&open["text"], &open["kind"]), (&json!("Pat, it is your turn."), &json!("turn")), "{open}");
    let choices = json!([{"answer": "", "effect": "pass"}, {"answer": "exit", "effect": "leave"}]);
    assert_eq!(open["choices"], choices);
    let unknown = post(&world, &id, "answers", json!({"question": 999, "text": "x"})).await;
    assert_eq!(unknown.status, 404);
    unknown.problem();
    let answer = json!({"question": question, "text": "I am stuck."});
    let first = post(&world, &id, "answers", answer.clone()).await;
    assert_eq!(first.status, 202, "{}", first.body);
    let second = post(&world, &id, "answers", answer).await;
    assert_eq!((second.status, &second.problem()["type"]), (409, &json!("/problems/answered")));
    until(&world, &id, "closed").await;
    let events = events(&world, &id).await;
    assert_eq!(said(&events), ["I am stuck.", "Thanks."]);
    let provided = events.iter().find(|event| event["type"] == "input_provided").unwrap();
    assert_eq!(provided["seq"], first.json()["seq"]);
}

#[tokio::test]
async fn s26_of_answers_at_the_same_time_one_counts() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    let question = asked(&world, &id).await;
    let texts: Vec<String> = (0..5).map(|nth| format!("Answer {nth}.")).collect();
    let answers =
        texts.iter().map(|text| post(&world, &id, "answers", json!({"question": question, "text": text})));
    let responses = join_all(answers).await;
    let accepted: Vec<usize> = (0..5).filter(|nth| responses[*nth].status == 202).collect();
    let [accepted] = accepted[..] else { panic!("{responses:?}") };
    for (nth, response) in responses.iter().enumerate().filter(|(nth, _)| *nth != accepted) {
        let problem = response.problem();
        assert_eq!((response.status, &problem["type"]), (409, &json!("/problems/answered")), "{nth}");
    }
    until(&world, &id, "closed").await;
    let events = events(&world, &id).await;
    assert_eq!(said(&events), [texts[accepted].as_str(), "Thanks."]);
    let provided: Vec<&Value> = events.iter().filter(|event| event["type"] == "input_provided").collect();
    assert_eq!(provided.len(), 1, "{provided:?}");
    assert_eq!(provided[0]["seq"], responses[accepted].json()["seq"]);
}

/// How often the store has done this since the server started.
async fn operations(world: &World, name: &str) -> u64 {
    let text = world.get("/metrics").await.body;
    let sample = format!("polylogue_store_seconds_count{{op=\"{name}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&sample)).map_or(0, |count| count.parse().unwrap())
}

/// Waits until no process has the conversation open.
async fn left(world: &World, id: &str) {
    while world.get(&format!("{PATH}/{id}")).await.json()["node"].is_string() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_answer_and_a_message_open_their_conversation_once() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    let question = asked(&world, &id).await;
    for (what, body) in
        [("answers", json!({"question": question, "text": "Hm."})), ("messages", json!({"text": "And now?"}))]
    {
        left(&world, &id).await;
        let before = operations(&world, "claim").await;
        let seq = events(&world, &id).await.len();
        let sent = post(&world, &id, what, body).await;
        assert_eq!((sent.status, &sent.json()["seq"]), (202, &json!(seq)), "{}", sent.body);
        until(&world, &id, if what == "answers" { "closed" } else { "waiting" }).await;
        assert_eq!(operations(&world, "claim").await, before + 1, "{what}");
    }
}

/// Kim is asked, and Bot speaks at the same time.
const BOARD: &str = "
name: board
task: Decide.
agents: [{name: Kim, human: true}, {name: Bot, model: 'openai:gpt-4o-mini'}]
chat: {participants: [Kim, Bot], pattern: parallel}
";

/// A server with [`BOARD`], whose model replies to the requests that `gate` lets through.
pub(crate) async fn board(limits: ServerLimits, gate: &Arc<Gate>) -> World {
    board_of(BOARD, limits, gate).await
}

/// The same with another text of that team.
async fn board_of(team: &str, limits: ServerLimits, gate: &Arc<Gate>) -> World {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("board.yaml"), team).unwrap();
    World::with_gate_in(dir, "I agree.", limits, Arc::clone(gate)).await
}

#[tokio::test]
async fn a_question_is_shown_and_answered_while_another_turn_is_in_progress() {
    let gate = Arc::new(Gate::until(0));
    let world = board(generous(), &gate).await;
    let id = begin(&world, &json!({"team": "board"})).await;
    let mut tail = world.tail(&id, 0).await;
    let mut question = Value::Null;
    for wanted in ["waiting", "running"] {
        let state = async {
            loop {
                let frame = tail.frame().await.unwrap();
                if frame.event == "state" && frame.json()["state"] == wanted {
                    return frame.json();
                }
            }
        };
        let state = tokio::time::timeout(Duration::from_secs(20), state).await.expect(wanted);
        if wanted == "waiting" {
            question = state["questions"][0]["question"].clone();
            let answer = json!({"question": question, "text": "Yes."});
            let answered = post(&world, &id, "answers", answer).await;
            assert_eq!(answered.status, 202, "{}", answered.body);
            assert!(answered.json()["seq"].is_u64(), "it is in the log while Bot speaks: {}", answered.body);
        }
    }
    let again = post(&world, &id, "answers", json!({"question": question, "text": "No."})).await;
    assert_eq!((again.status, &again.problem()["type"]), (409, &json!("/problems/answered")));
    gate.lift();
    until(&world, &id, "closed").await;
    assert_eq!(said(&events(&world, &id).await), ["Yes.", "I agree."]);
}

#[tokio::test]
async fn the_state_says_how_long_other_turns_are_in_progress_next_to_a_question() {
    // In a turn of the same step, and in a background task.
    let in_background =
        BOARD.replace("pattern: parallel", "pattern: sequential, background: {participants: [Kim]}");
    for team in [BOARD, &in_background] {
        let gate = Arc::new(Gate::until(0));
        let world = board_of(team, generous(), &gate).await;
        let id = begin(&world, &json!({"team": "board"})).await;
        let mut tail = world.tail(&id, 0).await;
        for in_progress in [json!(true), Value::Null] {
            let state = async {
                loop {
                    let frame = tail.frame().await.unwrap();
                    let state = frame.json();
                    let is_waiting = frame.event == "state" && state["state"] == "waiting";
                    if is_waiting && state["in_progress"] == in_progress {
                        return;
                    }
                }
            };
            tokio::time::timeout(Duration::from_secs(20), state).await.expect("such a state");
            gate.lift();
        }
    }
}

/// A person who is asked, and the default answer after a time.
pub(crate) fn asking_for(time: &str) -> String {
    format!(
        "
name: soon
task: Help.
agents:
  - {{name: Ann}}
  - {{name: Pat, human: true, default_answer: {{timeout: {time}, text: Not today.}}}}
chat: {{participants: [Pat, Ann], pattern: sequential}}
script: [{{Ann: Thanks.}}]
"
    )
}

/// Who gave the answers.
fn responders(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|event| event["type"] == "input_provided").map(|event| &event["by"]).collect()
}

#[tokio::test]
async fn s26_a_default_answer_comes_in_time() {
    let world = World::with_team("soon", &asking_for("300 ms")).await;
    let id = begin_until(&world, "soon", "closed").await;
    let events = events(&world, &id).await;
    assert_eq!(said(&events), ["Not today.", "Thanks."]);
    assert_eq!(responders(&events), ["timeout"]);
}

#[tokio::test]
async fn s26_a_default_answer_comes_also_after_another_process_had_the_conversation_when_its_time_was_up() {
    let world = World::with_team("soon", &asking_for("2 s")).await;
    let id = begin(&world, &json!({"team": "soon"})).await;
    asked(&world, &id).await;
    let (store, log) = (world.store().await, LogId::new(&id).unwrap());
    let claim = loop {
        match store.claim(&log).await {
            Ok(claim) => break claim,
            // Its run is just leaving it.
            Err(error) => assert!(matches!(error, StoreError::Busy { .. }), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(responders(&events(&world, &id).await).len(), 0);
    store.release(claim).await.unwrap();
    until(&world, &id, "closed").await;
    assert_eq!(responders(&events(&world, &id).await), ["timeout"]);
}

#[tokio::test]
async fn s26_what_was_stopped_does_not_continue_with_a_default_answer_and_a_late_answer_does_not_count() {
    let world = World::with_team("soon", &asking_for("1 s")).await;
    let id = begin(&world, &json!({"team": "soon"})).await;
    let question = asked(&world, &id).await;
    // Its run may be just leaving it, and have it continue in time.
    tokio::time::sleep(Duration::from_millis(200)).await;
    for continues in [true, false] {
        let stopped = post(&world, &id, "stop", json!({})).await;
        assert_eq!(
            (stopped.status, &stopped.json()["stopped"]),
            (202, &json!(continues)),
            "{}",
            stopped.body
        );
    }
    let before = events(&world, &id).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let late = post(&world, &id, "answers", json!({"question": question, "text": "Yes."})).await;
    assert_eq!((late.status, &late.problem()["type"]), (409, &json!("/problems/answered")));
    assert!(late.body.contains("is up"), "{}", late.body);
    assert_eq!(events(&world, &id).await, before, "it was stopped");
    assert_eq!(post(&world, &id, "resume", json!({})).await.status, 202);
    until(&world, &id, "closed").await;
    assert_eq!(responders(&events(&world, &id).await), ["timeout"]);
}

#[tokio::test]
async fn a_repeated_answer_and_message_count_once() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    let question = asked(&world, &id).await;
    let send = async |what: &str, body: &Value| {
        let request = world.request("POST", &format!("{PATH}/{id}/{what}")).json(body);
        world.send(request.header("Idempotency-Key", what)).await
    };
    for (what, body, other) in [
        (
            "answers",
            json!({"question": question, "text": "Hm."}),
            json!({"question": question, "text": "Ha."}),
        ),
        ("messages", json!({"text": "And now?"}), json!({"text": "And then?"})),
    ] {
        let first = send(what, &body).await;
        assert_eq!((first.status, first.header("idempotent-replayed")), (202, None), "{}", first.body);
        let again = send(what, &body).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (202, Some("true")));
        assert_eq!(send(what, &other).await.status, 422);
        until(&world, &id, if what == "answers" { "closed" } else { "waiting" }).await;
    }
    let said = said(&events(&world, &id).await);
    assert_eq!(said.iter().filter(|text| *text == "And now?").count(), 1, "{said:?}");
    assert_eq!(said.iter().filter(|text| *text == "Hm.").count(), 1, "{said:?}");
}

#[tokio::test]
async fn a_repeated_resume_and_token_count_once() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "short"})).await;
    assert_eq!(until(&world, &id, "closed").await["turns"], 3);
    let path = format!("{PATH}/{id}/resume");
    let resume = async |world: &World, key: &str, calls: u64| {
        let request = world.request("POST", &path).json(&json!({"limits": {"calls": calls}}));
        world.send(request.header("Idempotency-Key", key)).await
    };
    let first = resume(&world, "r1", 1).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (202, None), "{}", first.body);
    assert_eq!(until(&world, &id, "closed").await["turns"], 4);
    let world = world.restart().await;
    let again = resume(&world, "r1", 1).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (202, Some("true")), "{}", again.body);
    assert_eq!(again.json()["turns"], 4, "it has not run again");
    assert_eq!(resume(&world, "r1", 2).await.status, 422);
    assert_eq!(resume(&world, "r2", 1).await.status, 202);
    assert_eq!(until(&world, &id, "closed").await["turns"], 5, "another key allows more");

    let make = async |name: &str| {
        let request =
            world.request("POST", "/api/v1/tokens").json(&json!({"name": name, "scopes": ["read"]}));
        world.send(request.header("Idempotency-Key", "t1")).await
    };
    let first = make("one").await;
    assert_eq!(first.status, 201, "{}", first.body);
    let again = make("one").await;
    assert_eq!((again.status, &again.problem()["type"]), (409, &json!("/problems/token-made")));
    assert!(again.body.contains(first.json()["id"].as_str().unwrap()), "{}", again.body);
    assert_eq!(make("two").await.status, 422);
    let tokens = world.tokens().all().unwrap();
    assert_eq!(tokens.iter().filter(|token| token.name == "one" || token.name == "two").count(), 1);
}

/// Asks for more calls.
const ASKS: &str = "
name: asks
task: Count.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}
limits: {calls: 2, on_limit: ask}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}]
";

#[tokio::test]
async fn a_raise_continues_what_waits_for_it_and_counts_once() {
    let world = World::with_team("asks", ASKS).await;
    let id = begin(&world, &json!({"team": "asks"})).await;
    let open = until(&world, &id, "waiting").await["questions"][0].clone();
    assert!(open["limit"].is_object() && open["kind"] == "limit", "{open}");
    let text = "The run has reached the limit of 2 model calls. Allow 2 more model calls?";
    assert_eq!(open["text"], text, "without what can be answered");
    assert_eq!(open["choices"][0], json!({"answer": "yes", "effect": "raise"}));
    let other = post(&world, &id, "raise", json!({"limits": {"cost": 1_000_000}})).await;
    assert_eq!(
        (other.status, &other.problem()["type"]),
        (409, &json!("/problems/refused")),
        "{}",
        other.body
    );
    let nothing = post(&world, &id, "raise", json!({"limits": {}})).await;
    assert_eq!((nothing.status, &nothing.problem()["errors"][0]["pointer"]), (400, &json!("/limits")));
    let raise = async |calls: u64| {
        let request = world.request("POST", &format!("{PATH}/{id}/raise"));
        let request = request.json(&json!({"limits": {"calls": calls}}));
        world.send(request.header("Idempotency-Key", "more")).await
    };
    let first = raise(2).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (202, None), "{}", first.body);
    assert_eq!(until(&world, &id, "closed").await["turns"], 4);
    let again = raise(2).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (202, Some("true")), "{}", again.body);
    assert_eq!(raise(3).await.status, 422);
    let events = events(&world, &id).await;
    let raised: Vec<_> = events.iter().filter(|event| event["type"] == "limits_changed").collect();
    assert_eq!((raised.len(), &raised[0]["changes"]), (1, &json!(["model calls from 2 to 4"])));
    assert!(raised[0]["by"].is_string(), "the name of the token: {}", raised[0]);
}

#[tokio::test]
async fn what_waits_at_a_limit_ends_there_when_limits_are_to_end_it() {
    let world = World::with_team("asks", ASKS).await;
    for route in ["resume", "raise"] {
        let id = begin_until(&world, "asks", "waiting").await;
        let stopped = post(&world, &id, route, json!({"limits": {"on_limit": "stop"}})).await;
        assert_eq!(stopped.status, 202, "{route}: {}", stopped.body);
        let ended = until(&world, &id, "closed").await;
        assert_eq!(
            (&ended["ended"]["word"], &ended["turns"]),
            (&json!("limit"), &json!(2)),
            "{route}: {ended}"
        );
        let events = events(&world, &id).await;
        let answers: Vec<_> = events.iter().filter(|event| event["type"] == "input_provided").collect();
        assert!(matches!(answers.as_slice(), [answer] if answer["text"] == "stop"), "{route}: {answers:?}");
    }
}

#[tokio::test]
async fn a_raise_of_an_agent_counts_for_its_own_limits() {
    let team = "
name: few
task: Count.
agents: [{name: Ann, limits: {calls: 1}}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}]
";
    let world = World::with_team("few", team).await;
    let id = begin(&world, &json!({"team": "few"})).await;
    assert_eq!(until(&world, &id, "closed").await["turns"], 2);
    let raise =
        async |agent: &str| post(&world, &id, "raise", json!({"limits": {"calls": 1}, "agent": agent})).await;
    let other = raise("Bob").await;
    assert_eq!((other.status, &other.problem()["type"]), (409, &json!("/problems/refused")));
    let wrong = raise("Bob.").await;
    assert_eq!((wrong.status, &wrong.problem()["errors"][0]["pointer"]), (400, &json!("/agent")));
    let raised = raise("Ann").await;
    assert_eq!(raised.status, 202, "{}", raised.body);
    assert_eq!(post(&world, &id, "resume", json!({})).await.status, 202);
    assert_eq!(until(&world, &id, "closed").await["turns"], 4);
}

#[tokio::test]
async fn a_raise_of_an_agent_continues_what_waits_for_it() {
    let team = "
name: own
task: Count.
agents: [{name: Ann, limits: {calls: 1}}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}
limits: {on_limit: ask}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}]
";
    let world = World::with_team("own", team).await;
    let id = begin(&world, &json!({"team": "own"})).await;
    let open = until(&world, &id, "waiting").await["questions"][0].clone();
    let no = json!({"answer": "no", "effect": "end", "label": "the chat in which it has its turn"});
    let choices = json!([{"answer": "yes", "effect": "raise"}, no]);
    assert_eq!((&open["kind"], &open["choices"]), (&json!("limit"), &choices), "{open}");
    let raised = post(&world, &id, "raise", json!({"limits": {"calls": 1}, "agent": "Ann"})).await;
    assert_eq!(raised.status, 202, "{}", raised.body);
    assert_eq!(until(&world, &id, "closed").await["turns"], 4);
}

#[tokio::test]
async fn a_raise_of_a_nested_chat_continues_what_waits_for_it() {
    let team = "
name: office
task: Count.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [desk], pattern: sequential}
chats: [{name: desk, participants: [Ann, Bob], limits: {calls: 1}, stop: {max_turns: 4}}]
limits: {on_limit: ask}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}]
";
    let world = World::with_team("office", team).await;
    let id = begin_until(&world, "office", "waiting").await;
    let unknown = post(&world, &id, "raise", json!({"limits": {"calls": 3}, "chat": "office"})).await;
    assert_eq!((unknown.status, &unknown.problem()["type"]), (409, &json!("/problems/refused")));
    let both =
        post(&world, &id, "raise", json!({"limits": {"calls": 3}, "agent": "Ann", "chat": "desk"})).await;
    assert_eq!((both.status, &both.problem()["errors"][0]["pointer"]), (400, &json!("/chat")));
    let raised = post(&world, &id, "raise", json!({"limits": {"calls": 3}, "chat": "desk"})).await;
    assert_eq!(raised.status, 202, "{}", raised.body);
    until(&world, &id, "closed").await;
    let events = events(&world, &id).await;
    let raised: Vec<_> = events.iter().filter(|event| event["type"] == "own_limits_raised").collect();
    assert_eq!((raised.len(), &raised[0]["changes"]), (1, &json!(["model calls from 1 to 4"])));
    assert_eq!(events.iter().filter(|event| event["type"] == "model_replied").count(), 4);
}

#[tokio::test]
async fn a_raise_of_a_conversation_that_runs_also_counts_for_its_own_limit() {
    // All differ: nearly the same messages repeatedly are a loop, which ends the chat.
    const WORDS: [&str; 14] = [
        "oak", "river", "lamp", "copper", "violin", "seven", "harbor", "mustard", "glove", "echo", "birch",
        "plum", "zebra", "quiet",
    ];
    let gate = Arc::new(Gate::until(2));
    let held = Arc::clone(&gate);
    let play = move |number: usize| {
        held.pass(number);
        Answer::text(WORDS[number])
    };
    let world = World::with_answers(play).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    let mut tail = world.tail(&id, 0).await;
    for _ in 0..2 {
        while tail.frame().await.unwrap().json()["type"] != "message" {}
    }
    let lower = post(&world, &id, "raise", json!({"limits": {"turns": 1}})).await;
    assert_eq!(
        (lower.status, &lower.problem()["type"]),
        (409, &json!("/problems/refused")),
        "{}",
        lower.body
    );
    let raised = post(&world, &id, "raise", json!({"limits": {"turns": 12}})).await;
    assert_eq!((raised.status, &raised.json()["state"]), (202, &json!("running")), "{}", raised.body);
    gate.lift();
    assert_eq!(until(&world, &id, "closed").await["turns"], 14, "it ends after 12 turns by itself");
}

#[tokio::test]
async fn a_message_is_of_the_system_or_where_the_token_may_answer_of_a_participant() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    asked(&world, &id).await;
    let said = |from: &str| json!({"text": format!("I am {from}."), "from": from});
    for from in ["Pat", "system"] {
        let sent = post(&world, &id, "messages", said(from)).await;
        assert_eq!(sent.status, 202, "{}", sent.body);
    }
    let unknown = post(&world, &id, "messages", said("Eve")).await;
    assert_eq!((unknown.status, &unknown.problem()["errors"][0]["pointer"]), (400, &json!("/from")));
    assert!(unknown.problem()["hint"].as_str().unwrap().contains("`Pat`, `Ann`"), "{}", unknown.body);
    let (_, token) = world.new_token("local", &[Scope::Run]);
    for (from, status) in [("Pat", 403), ("system", 202)] {
        let request = Request::new("POST", &format!("{PATH}/{id}/messages")).token(&token);
        let sent = request.json(&said(from)).send(world.address).await;
        assert_eq!(sent.status, status, "{}", sent.body);
    }
    let events = events(&world, &id).await;
    let sent = events.iter().filter(|event| event["type"] == "sent");
    assert_eq!(sent.map(|event| &event["from"]).collect::<Vec<_>>(), ["Pat", "system", "system"]);
}

/// The run that has ended the conversation may not have left it yet.
#[tokio::test]
async fn a_resume_right_after_the_end_continues_it() {
    const ROUNDS: usize = 30;
    let script: Vec<String> =
        (0..ROUNDS + 3).map(|turn| format!("{{{}: number {turn}}}", ["Ann", "Bob"][turn % 2])).collect();
    let team = format!(
        "
name: count
task: Count.
agents: [{{name: Ann}}, {{name: Bob}}]
chat: {{participants: [Ann, Bob], pattern: round_robin}}
limits: {{calls: 3}}
script: [{}]
",
        script.join(", ")
    );
    let world = World::with_team("count", &team).await;
    let id = begin(&world, &json!({"team": "count"})).await;
    let mut from = 0;
    for round in 0..ROUNDS {
        let mut tail = world.tail(&id, from).await;
        loop {
            let frame = tail.frame().await.unwrap_or_else(|| panic!("round {round} has not continued it"));
            if frame.event == "entry" {
                let event = frame.json();
                from = event["seq"].as_u64().unwrap() + 1;
                if event["type"] == "closed" {
                    break;
                }
            }
        }
        let resumed = post(&world, &id, "resume", json!({"limits": {"calls": 1}})).await;
        assert_eq!(resumed.status, 202, "round {round}: {}", resumed.body);
    }
    assert_eq!(until(&world, &id, "closed").await["turns"], ROUNDS + 3);
}

/// A new route must be put into one of these lists, and into the test that shows it.
#[tokio::test]
async fn each_post_route_is_known_to_replay_a_key_or_to_have_no_second_effect() {
    let document = World::new().await.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    let mut posts: Vec<&str> =
        paths.iter().filter(|(_, of)| of.get("post").is_some()).map(|(path, _)| path.as_str()).collect();
    let keyed = ["messages", "answers", "pause", "next", "resume", "raise", "fork"];
    let keyed = keyed.map(|what| format!("{PATH}/{{id}}/{what}"));
    let others = [PATH, "/api/v1/imports", "/api/v1/tokens", "/v1/chat/completions", "/mcp", "/mcp/{team}"];
    // A link logs in once, and what is stopped is stopped.
    let harmless = ["/api/v1/conversations/{id}/stop", "/api/v1/session", "/api/v1/teams/check"];
    let mut known: Vec<&str> = keyed.iter().map(String::as_str).chain(others).chain(harmless).collect();
    posts.sort_unstable();
    known.sort_unstable();
    assert_eq!(posts, known);
}

#[tokio::test]
async fn s27_a_message_is_said_into_a_running_chat_and_reopens_a_closed_one() {
    let (gate, world) = World::gated("more", generous(), 2).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    let (store, log) = (world.store().await, LogId::new(&id).unwrap());
    let sent = async {
        // A model is at work when the message comes.
        let mut tail = world.tail(&id, 0).await;
        while tail.frame().await.unwrap().json()["type"] != "message" {}
        post(&world, &id, "messages", json!({"text": "Louder, please."})).await
    };
    let lifted = async {
        while store.inbox(&log, 0).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        gate.lift();
    };
    let (sent, ()) = tokio::join!(sent, lifted);
    assert_eq!(sent.status, 202, "{}", sent.body);
    until(&world, &id, "closed").await;
    let before = events(&world, &id).await;
    let place = before.iter().position(|event| event["type"] == "sent").unwrap();
    let replies = before[..place].iter().filter(|event| event["type"] == "model_replied").count();
    let knows: Vec<bool> =
        world.model_requests().iter().map(|text| text.contains("Louder, please.")).collect();
    // The turns before it in the log do not know it, and all after it do.
    assert!(knows.len() > replies, "{replies} of {knows:?}");
    assert!(
        knows.iter().enumerate().all(|(turn, knows)| *knows == (turn >= replies)),
        "{replies} of {knows:?}"
    );
    assert_eq!(said(&before).iter().filter(|text| *text == "Louder, please.").count(), 1);
    let again = post(&world, &id, "messages", json!({"text": "Once more."})).await;
    assert_eq!(again.json()["seq"], before.len());
    assert_eq!(events(&world, &id).await[before.len()]["type"], "reopened");
    assert_eq!(post(&world, &id, "messages", json!({"text": " "})).await.status, 400);
    until(&world, &id, "closed").await;
    let requests = world.model_requests();
    assert!(requests.len() > knows.len(), "it continues");
    assert!(requests[knows.len()..].iter().all(|text| text.contains("Once more.")), "and has the message");
    let said = said(&events(&world, &id).await);
    assert_eq!(said.iter().filter(|text| *text == "Once more.").count(), 1, "{said:?}");
}

#[tokio::test]
async fn s28_a_run_stops_and_continues_without_paying_again() {
    for (when, turns) in [("after_step", 4), ("now", 3)] {
        let (gate, world) = World::gated("more", generous(), 3).await;
        let id = begin(&world, &json!({"team": "long"})).await;
        let mut tail = world.tail(&id, 0).await;
        for _ in 0..3 {
            while tail.frame().await.unwrap().json()["type"] != "message" {}
        }
        // The fourth call is in flight.
        let stopped = post(&world, &id, "stop", json!({"when": when})).await;
        assert_eq!((stopped.status, &stopped.json()["stopped"]), (202, &json!(true)), "{}", stopped.body);
        assert_eq!(post(&world, &id, "stop", json!({"when": when})).await.status, 202, "again");
        if when == "after_step" {
            gate.lift();
        }
        let halted = until(&world, &id, "halted").await;
        assert_eq!(halted["turns"], turns, "{halted}");
        gate.lift();
        let before = events(&world, &id).await;
        let stopped = post(&world, &id, "stop", json!({})).await;
        assert_eq!((stopped.status, &stopped.json()["stopped"]), (202, &json!(false)), "{}", stopped.body);
        let resumed = post(&world, &id, "resume", json!({})).await;
        assert_eq!(resumed.status, 202, "{}", resumed.body);
        let closed = until(&world, &id, "closed").await;
        assert!(closed["turns"].as_u64() > halted["turns"].as_u64(), "{closed}");
        assert_eq!(post(&world, &id, "stop", json!({})).await.json()["stopped"], false, "it is over");
        let after = events(&world, &id).await;
        assert_eq!(after[..before.len()], before);
        let replies = after.iter().filter(|event| event["type"] == "model_replied").count();
        assert_eq!(closed["turns"], replies, "no finished call is paid again");
    }
}

#[tokio::test]
async fn s28_a_stop_right_after_a_message_stops_the_run_that_this_begins() {
    let (gate, world) = World::gated("more", generous(), 1).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    while world.model_requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(post(&world, &id, "stop", json!({"when": "now"})).await.status, 202);
    let turns = until(&world, &id, "halted").await["turns"].clone();
    gate.lift();
    // The run is being opened when the stop comes.
    for text in ["Louder.", "Slower.", "Faster."] {
        let sent = post(&world, &id, "messages", json!({"text": text})).await;
        assert_eq!(sent.status, 202, "{}", sent.body);
        assert_eq!(post(&world, &id, "stop", json!({"when": "now"})).await.status, 202);
        until(&world, &id, "halted").await;
    }
    assert_eq!(post(&world, &id, "resume", json!({})).await.status, 202);
    assert!(until(&world, &id, "closed").await["turns"].as_u64() > turns.as_u64());
}

#[tokio::test]
async fn a_run_is_paused_between_turns_and_the_next_speaker_is_chosen() {
    let (gate, world) = World::gated("more", generous(), 2).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    let mut tail = world.tail(&id, 0).await;
    let mut messages = async |count: usize| {
        for _ in 0..count {
            while tail.frame().await.unwrap().json()["type"] != "message" {}
        }
    };
    messages(2).await;
    // The third call is in flight.
    let request = world.request("POST", &format!("{PATH}/{id}/pause")).json(&json!({}));
    let request = request.header("Idempotency-Key", "p");
    for replayed in [None, Some("true")] {
        let paused = world.send(request.clone()).await;
        assert_eq!((paused.status, paused.header("idempotent-replayed")), (202, replayed), "{}", paused.body);
        assert_eq!((&paused.json()["paused"], &paused.json()["state"]), (&json!(true), &json!("running")));
    }
    gate.lift();
    messages(1).await;
    // The turn that had begun has ended.
    assert_eq!(until(&world, &id, "halted").await["paused"], true);
    for (state, count) in [("halted", 1), ("paused", 1), ("running", 0)] {
        let listed = world.get(&format!("{PATH}?state={state}")).await.json();
        assert_eq!(listed["conversations"].as_array().unwrap().len(), count, "{state}: {listed}");
    }
    let unknown = post(&world, &id, "next", json!({"who": "Eve"})).await;
    assert_eq!(unknown.status, 400, "{}", unknown.body);
    assert!(unknown.problem()["hint"].as_str().unwrap().contains("`Ann`, `Bob`"), "{}", unknown.body);
    // Without this it would be Bob's turn.
    let chosen = post(&world, &id, "next", json!({"who": "Ann"})).await;
    assert_eq!(chosen.status, 202, "{}", chosen.body);
    let resumed = post(&world, &id, "resume", json!({})).await;
    assert_eq!((resumed.status, resumed.json()["paused"].as_bool()), (202, None), "{}", resumed.body);
    until(&world, &id, "closed").await;
    let events = events(&world, &id).await;
    let at = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap();
    let (paused, resumed) = (at("paused"), at("resumed"));
    assert_eq!(events.iter().filter(|event| event["type"] == "paused").count(), 1);
    let between = &events[paused..resumed];
    assert!(between.iter().any(|event| event["type"] == "message"), "the turn that had begun ended");
    assert!(between.iter().all(|event| event["type"] != "turn_started"), "{between:?}");
    let next = events[resumed..].iter().find(|event| event["type"] == "turn_started").unwrap();
    assert_eq!(next["turns"][0]["who"], "Ann");
    let over = post(&world, &id, "pause", json!({})).await;
    assert_eq!((over.status, &over.problem()["type"]), (409, &json!("/problems/over")));
}

#[tokio::test]
async fn a_pause_that_a_request_with_a_key_ends_ends_once() {
    let gate = Arc::new(Gate::until(1));
    let world = World::with_gate("more", generous(), Arc::clone(&gate)).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    asked_model(&world, 2).await;
    assert_eq!(post(&world, &id, "pause", json!({})).await.status, 202);
    let request = world.request("POST", &format!("{PATH}/{id}/resume")).json(&json!({}));
    let request = request.header("Idempotency-Key", "r");
    for replayed in [None, Some("true")] {
        let resumed = world.send(request.clone()).await;
        let (header, paused) = (resumed.header("idempotent-replayed"), resumed.json()["paused"].as_bool());
        assert_eq!((resumed.status, header, paused), (202, replayed, None), "{}", resumed.body);
    }
    gate.lift();
    until(&world, &id, "closed").await;
    let events = events(&world, &id).await;
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(["paused", "resumed"].map(count), [1, 1], "{events:?}");
}

#[tokio::test]
async fn a_paused_conversation_is_removed_once_its_turns_have_ended() {
    let (gate, world) = World::gated("more", generous(), 1).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    while world.model_requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The second call is in flight.
    assert_eq!(post(&world, &id, "pause", json!({})).await.status, 202);
    let remove = async || world.send(world.request("DELETE", &format!("{PATH}/{id}"))).await;
    let refused = remove().await;
    assert_eq!((refused.status, &refused.problem()["type"]), (409, &json!("/problems/busy")));
    assert!(refused.problem()["detail"].as_str().unwrap().contains("is paused"), "{}", refused.body);
    assert!(refused.problem()["hint"].as_str().unwrap().contains("/stop"), "{}", refused.body);
    gate.open_until(2);
    until(&world, &id, "halted").await;
    let removed = remove().await;
    assert_eq!((removed.status, removed.json()), (200, json!({"removed": true})), "{}", removed.body);
    assert_eq!(remove().await.status, 404);
    assert_eq!(world.get(PATH).await.json()["conversations"], json!([]));
    assert_eq!(world.model_requests().len(), 2, "it has not continued");
}

#[tokio::test]
async fn a_conversation_that_does_not_run_is_paused_until_it_is_resumed() {
    let world = World::new().await;
    let id = begin_until(&world, "talk", "closed").await;
    let fork = post(&world, &id, "fork", json!({"seq": 3})).await.json()["id"].as_str().unwrap().to_owned();
    let paused = post(&world, &fork, "pause", json!({})).await;
    assert_eq!((paused.status, &paused.json()["paused"]), (202, &json!(true)), "{}", paused.body);
    assert_eq!(paused.json()["state"], "halted");
    // A restart leaves it alone.
    let world = world.restart().await;
    assert_eq!(until(&world, &fork, "halted").await["paused"], true);
    assert_eq!(post(&world, &fork, "resume", json!({})).await.status, 202);
    let closed = until(&world, &fork, "closed").await;
    assert_eq!(closed.get("paused"), None, "{closed}");
}

#[tokio::test]
async fn an_answer_and_a_message_do_not_end_a_pause() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    let question = asked(&world, &id).await;
    assert_eq!(post(&world, &id, "pause", json!({})).await.status, 202);
    let answer = json!({"question": question, "text": "Hm."});
    assert_eq!(post(&world, &id, "answers", answer).await.status, 202);
    assert_eq!(post(&world, &id, "messages", json!({"text": "And now?"})).await.status, 202);
    let world = world.restart().await;
    let halted = until(&world, &id, "halted").await;
    assert_eq!(halted["paused"], true, "{halted}");
    let before = events(&world, &id).await;
    assert!(before.iter().any(|event| event["type"] == "input_provided"), "the answer is there");
    assert!(!said(&before).contains(&"Thanks.".to_owned()), "{before:?}");
    assert_eq!(post(&world, &id, "resume", json!({})).await.status, 202);
    until(&world, &id, "closed").await;
    assert!(said(&events(&world, &id).await).contains(&"Thanks.".to_owned()));
}

#[tokio::test]
async fn a_conversation_is_verified_and_damage_is_named_without_the_path_of_the_store() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "talk"})).await;
    let events = until(&world, &id, "closed").await["seq"].clone();
    let path = format!("{PATH}/{id}/verify");
    let intact = world.get(&path).await.json();
    assert_eq!(intact, json!({"id": id, "state": "intact", "events": events, "intact": events}));
    let sql = "UPDATE events SET json = replace(json, 'two', 'ten') WHERE json LIKE '%\"two\"%'";
    world.change_store(sql);
    let damaged = world.get(&path).await.json();
    assert_eq!(damaged["state"], "damaged", "{damaged}");
    assert!(damaged["intact"].as_u64() < events.as_u64() && damaged["events"].as_u64() < events.as_u64());
    let why = damaged["why"].as_str().unwrap();
    assert!(why.contains("is not what was written") && !why.contains('/'), "{why}");
    assert_eq!(world.get(&format!("{PATH}/nothing/verify")).await.status, 404);
}

#[tokio::test]
async fn a_run_that_is_over_says_what_continues_it() {
    let world = World::new().await;
    let id = begin_until(&world, "short", "closed").await;
    let over = post(&world, &id, "resume", json!({})).await;
    assert_eq!((over.status, &over.problem()["type"]), (409, &json!("/problems/over")));
    let resumed = post(&world, &id, "resume", json!({"limits": {"calls": 2}})).await;
    assert_eq!(resumed.status, 202, "{}", resumed.body);
    until(&world, &id, "closed").await;
    assert_eq!(said(&events(&world, &id).await), ["one", "two", "three", "four", "five"]);
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_half_done() {
    let world = World::new().await;
    let id = begin_until(&world, "short", "closed").await;
    let resume = |calls: u32| {
        let body = json!({"limits": {"calls": calls}});
        world.request("POST", &format!("{PATH}/{id}/resume")).json(&body)
    };
    // All of them can be carried out: the script has six replies, three of which are given.
    for _ in 0..2 {
        resume(1).leave(world.address).await;
        // Whether the request was still carried out or not: the next one is.
        until(&world, &id, "closed").await;
    }
    let turns = until(&world, &id, "closed").await["turns"].as_u64();
    while until(&world, &id, "closed").await["turns"].as_u64() == turns {
        // An earlier one may be just stopping.
        let status = world.send(resume(1)).await.status;
        assert!([202, 409].contains(&status), "{status}");
    }
}

#[tokio::test]
async fn a_client_that_goes_away_keeps_no_conversation_from_continuing() {
    let world = World::new().await;
    let id = begin_until(&world, "short", "closed").await;
    let path = format!("{PATH}/{id}/continuation");
    for round in 0..20 {
        world.request("GET", &path).leave(world.address).await;
        let way = world.get(&path).await.json();
        assert_eq!(way["limits"]["calls"], 3, "round {round}: {way}");
    }
    let resumed = post(&world, &id, "resume", json!({"limits": {"calls": 3}})).await;
    assert_eq!(resumed.status, 202, "{}", resumed.body);
}

#[tokio::test]
async fn s29_s30_a_fork_has_the_same_beginning_and_leaves_its_source() {
    let world = World::new().await;
    let id = begin_until(&world, "talk", "closed").await;
    let source = events(&world, &id).await;
    for seq in 1..=source.len() {
        let fork = post(&world, &id, "fork", json!({"seq": seq})).await;
        assert_eq!(fork.status, 201, "{}", fork.body);
        assert_eq!(fork.json()["parent"], json!({"id": id, "seq": seq}));
        let fork = fork.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(events(&world, &fork).await, source[..seq]);
    }
    let second = source.iter().position(|event| event["type"] == "message").unwrap();
    let body = json!({"seq": second, "text": "eins", "run": true});
    let request = world.request("POST", &format!("{PATH}/{id}/fork")).json(&body);
    let request = request.header("Idempotency-Key", "f");
    let made = world.send(request.clone()).await.json();
    assert_eq!(made["parent"], json!({"id": id, "seq": second, "edited": true}));
    let fork = made["id"].as_str().unwrap().to_owned();
    assert_eq!(world.send(request).await.json()["id"], fork.as_str());
    let ended = until(&world, &fork, "closed").await;
    assert_eq!(ended["parent"]["edited"], true);
    assert_eq!(said(&events(&world, &fork).await)[..2], ["eins", "two"]);
    let sent = world.get(&format!("{PATH}/{fork}/views/Bob?call=1")).await.json();
    assert!(
        sent["request"]["entries"].to_string().contains("eins"),
        "its first request has the text: {sent}"
    );
    assert_eq!(events(&world, &id).await, source, "the source is unchanged");
    let none = post(&world, &id, "fork", json!({"seq": 999})).await;
    assert_eq!(none.status, 409);
    none.problem();
    let forks = world.get(&format!("{PATH}?parent={id}")).await.json();
    assert_eq!(forks["conversations"].as_array().unwrap().len(), source.len() + 1);
}

/// With a tool.
const LOOKS: &str = "
name: looks
task: Look.
agents: [{name: Ann, tools: [get_history]}, {name: Bob}]
chat: {participants: [Bob, Ann], pattern: round_robin, stop: {max_turns: 3}}
script: [{Bob: hi}, {Ann: {calls: [{tool: get_history}]}}, {Ann: I have looked.}, {Bob: bye}]
";

/// S29: of all places, only that between a call and its result is refused.
#[tokio::test]
async fn s29_a_fork_within_a_call_is_refused() {
    let world = World::with_team("looks", LOOKS).await;
    let id = begin_until(&world, "looks", "closed").await;
    let source = events(&world, &id).await;
    let called = source.iter().position(|event| event["type"] == "tool_called").unwrap();
    for seq in 1..=source.len() {
        let fork = post(&world, &id, "fork", json!({"seq": seq})).await;
        if seq != called + 1 {
            assert_eq!(fork.status, 201, "{seq}: {}", fork.body);
            continue;
        }
        let problem = fork.problem();
        assert_eq!((fork.status, &problem["type"]), (409, &json!("/problems/refused")), "{problem}");
        assert_eq!(problem["hint"], format!("fork before event {called}, or after event {seq}"));
    }
    let forks = world.get(&format!("{PATH}?parent={id}")).await.json();
    assert_eq!(forks["conversations"].as_array().unwrap().len(), source.len() - 1, "it made none");
    assert_eq!(events(&world, &id).await, source, "the source is unchanged");
}

/// Its task is in the system message and in the first message, next to other words.
const QUOTING: &str = "
name: quoting
task: Count.
agents: [{name: Ann, system: 'You serve: {{task}}'}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, opening: 'The task: {{task}} Begin.', stop: {max_turns: 2}}
script: [{Ann: one}, {Bob: two}]
";

#[tokio::test]
async fn s30_a_fork_with_another_task_is_a_run_of_the_same_team_from_its_beginning() {
    let world = World::with_team("quoting", QUOTING).await;
    let id = begin_until(&world, "quoting", "closed").await;
    let made = post(&world, &id, "fork", json!({"seq": 0, "text": "Sing.", "run": true})).await.json();
    assert_eq!(made["parent"], json!({"id": id, "seq": 0, "edited": true}));
    let fork = made["id"].as_str().unwrap();
    let ended = until(&world, fork, "closed").await;
    assert_eq!((&ended["task"], &ended["turns"]), (&json!("Sing."), &json!(2)));
    let opened = &events(&world, fork).await[0];
    assert_eq!(opened["messages"][0]["parts"][0]["text"], "The task: Sing. Begin.");
    let sent = world.get(&format!("{PATH}/{fork}/views/Ann?call=1")).await.json();
    assert_eq!((&sent["exact"], &sent["request"]["system"]), (&json!(true), &json!("You serve: Sing.")));
    let store = world.store().await;
    let team = async |id: &str| store.meta(&LogId::new(id).unwrap()).await.unwrap().team["digest"].clone();
    assert_eq!(team(fork).await, team(id.as_str()).await);
    // As at the beginning of a conversation, and in a message.
    for empty in [json!({"seq": 0, "text": " "}), json!({"text": ""})] {
        let refused = post(&world, &id, "fork", empty).await;
        assert_eq!((refused.status, &refused.problem()["errors"][0]["pointer"]), (400, &json!("/text")));
    }
}

#[tokio::test]
async fn s30_a_fork_of_a_fork_with_another_task_begins_with_that_task() {
    let world = World::with_team("quoting", QUOTING).await;
    let id = begin_until(&world, "quoting", "closed").await;
    let forked = async |id: &str, body: Value| {
        let made = post(&world, id, "fork", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        made.json()
    };
    let mut source = forked(id.as_str(), json!({"seq": 0, "text": "Sing."})).await["id"].clone();
    // Whether the source has run or not.
    for _ in 0..2 {
        let fork = forked(source.as_str().unwrap(), json!({"seq": 0})).await;
        assert_eq!((&fork["task"], &fork["parent"]), (&json!("Sing."), &json!({"id": source, "seq": 0})));
        source = fork["id"].clone();
        let fork = source.as_str().unwrap();
        assert_eq!(post(&world, fork, "resume", json!({})).await.status, 202);
        until(&world, fork, "closed").await;
        let opened = &events(&world, fork).await[0];
        assert_eq!(opened["messages"][0]["parts"][0]["text"], "The task: Sing. Begin.");
    }
    let plain = forked(id.as_str(), json!({"seq": 0})).await;
    assert_eq!(plain["seq"], 0, "what begins by itself is not copied");
}

/// The message of a person follows their answer, and an executor runs code in the message of an agent.
#[tokio::test]
async fn a_token_without_the_scope_changes_no_answer_and_no_message_of_a_participant_by_a_fork() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    let answer = json!({"question": asked(&world, &id).await, "text": "I am stuck."});
    let seq = post(&world, &id, "answers", answer).await.json()["seq"].clone();
    until(&world, &id, "closed").await;
    let from_user = json!({"text": "Try again."});
    let sent = post(&world, &id, "messages", from_user).await.json()["seq"].clone();
    until(&world, &id, "waiting").await;
    let (_, text) = world.new_token("local", &[Scope::Read, Scope::Run]);
    let fork = async |body: Value| {
        let request = world.request("POST", &format!("{PATH}/{id}/fork")).json(&body);
        (world.send(request.clone().token(&text)).await, world.send(request).await)
    };
    let of_participants: Vec<Value> = events(&world, &id)
        .await
        .into_iter()
        .filter(|event| event["type"] == "message")
        .map(|event| event["seq"].clone())
        .collect();
    assert!(!of_participants.is_empty());
    for seq in of_participants.into_iter().chain([seq]) {
        let (refused, forked) = fork(json!({"seq": seq, "text": "All is well."})).await;
        assert_eq!((refused.status, forked.status), (403, 201), "event {seq}: {}", refused.body);
        assert!(refused.problem()["detail"].as_str().unwrap().contains("`answer`"));
    }
    for (seq, text) in [(json!(0), "Another task."), (sent, "Try something else.")] {
        let (forked, _) = fork(json!({"seq": seq, "text": text})).await;
        assert_eq!(forked.status, 201, "event {seq}: {}", forked.body);
    }
}

/// A call that a person must approve.
const PAYS: &str = r#"
name: pays
task: Pay.
agents: [{name: Ops, tools: [calculator], approval: always}]
chat: {participants: [Ops], pattern: sequential}
script: [{Ops: {calls: [{tool: calculator, args: {expression: "1+1"}}]}}, {Ops: Paid.}]
"#;

#[tokio::test]
async fn a_fork_makes_no_call_that_a_person_has_approved_in_its_source() {
    let world = World::with_team("pays", PAYS).await;
    let id = begin(&world, &json!({"team": "pays"})).await;
    let question = asked(&world, &id).await.as_u64().unwrap();
    let answer = json!({"question": question, "text": "yes"});
    assert_eq!(post(&world, &id, "answers", answer).await.status, 202);
    until(&world, &id, "closed").await;
    let source = events(&world, &id).await;
    let answered = source.iter().position(|event| event["type"] == "input_provided").unwrap() as u64;
    let (_, text) = world.new_token("local", &[Scope::Read, Scope::Run]);
    let fork = async |seq: u64| {
        let body = json!({"seq": seq, "run": true});
        world.send(world.request("POST", &format!("{PATH}/{id}/fork")).json(&body).token(&text)).await
    };
    let refused = fork(answered + 1).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let problem = refused.problem();
    assert!(problem["detail"].as_str().unwrap().contains("was approved at event"), "{problem}");
    assert_eq!(
        problem["hint"],
        format!("fork before event {question}, and the question is asked again").as_str()
    );
    let made = fork(question).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let again = asked(&world, made.json()["id"].as_str().unwrap()).await;
    assert_eq!(again, question, "it is asked again");
}

#[tokio::test]
async fn a_fork_continues_with_another_team_of_the_same_participants() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "talk", "title": "numbers"})).await;
    until(&world, &id, "closed").await;
    let source = events(&world, &id).await;
    let at = position(&source, "two") + 1;
    let fork = post(&world, &id, "fork", json!({"seq": at, "team": "short", "run": true})).await;
    assert_eq!(fork.status, 201, "{}", fork.body);
    let fork = fork.json();
    assert_eq!((&fork["team"], &fork["title"]), (&json!("short"), &json!("numbers")));
    let fork = fork["id"].as_str().unwrap().to_owned();
    let closed = until(&world, &fork, "closed").await;
    assert_eq!((&closed["ended"]["word"], &closed["turns"]), (&json!("limit"), &json!(3)), "{closed}");
    assert_eq!(events(&world, &fork).await[..at], source[..at]);
    let other = post(&world, &id, "fork", json!({"seq": at, "team": "ask"})).await;
    assert_eq!(other.status, 409);
    assert_eq!(other.problem()["hint"], "choose a team with the same participants");
    assert_eq!(post(&world, &id, "fork", json!({"team": "none"})).await.status, 404);
}

/// A server with [`BOARD`], and another one with its store, to which it is another process.
async fn two_servers(gate: &Arc<Gate>) -> (World, World) {
    two_servers_of(generous(), gate).await
}

/// The same with these limits.
async fn two_servers_of(limits: ServerLimits, gate: &Arc<Gate>) -> (World, World) {
    let dir = tempfile::tempdir().unwrap();
    // A folder of JSON lines: locks of SQLite are those of a process, and both servers are in one here.
    std::fs::create_dir_all(place(dir.path()).path()).unwrap();
    std::fs::write(dir.path().join("board.yaml"), BOARD).unwrap();
    let holder = World::with_gate_in(dir, "I agree.", limits, Arc::clone(gate)).await;
    let front = holder.second_server("It is mine.", Arc::new(Gate::open())).await;
    (holder, front)
}

/// Waits until the model of `world` was asked so often.
async fn asked_model(world: &World, times: usize) {
    while world.model_requests().len() < times {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn s32_a_conversation_of_another_process_is_followed_and_steered() {
    let gate = Arc::new(Gate::until(0));
    let (holder, front) = two_servers(&gate).await;
    let id = begin(&holder, &json!({"team": "long"})).await;
    asked_model(&holder, 1).await;
    let mut tail = front.tail(&id, 0).await;
    let sent = post(&front, &id, "messages", json!({"text": "Take an umbrella."})).await;
    assert_eq!(sent.status, 202, "{}", sent.body);
    assert!(sent.json()["node"].is_string(), "who carries it out: {}", sent.body);
    let paused = post(&front, &id, "pause", json!({})).await;
    assert_eq!((paused.status, &paused.json()["paused"]), (202, &json!(true)), "{}", paused.body);
    assert!(paused.json()["node"].is_string(), "{}", paused.body);
    // Only this needs it free.
    let removed = front.send(front.request("DELETE", &format!("{PATH}/{id}"))).await;
    assert_eq!((removed.status, &removed.problem()["type"]), (409, &json!("/problems/busy")));
    gate.lift();
    // The tail has what the other process writes: the turn that had begun ends.
    let turn_ends = async {
        loop {
            let frame = tail.frame().await.unwrap();
            if frame.event == "entry" && frame.json()["type"] == "message" {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), turn_ends).await.expect("the turn ends");
    let resumed = post(&front, &id, "resume", json!({})).await;
    assert_eq!((resumed.status, resumed.json()["paused"].as_bool()), (202, None), "{}", resumed.body);
    until(&front, &id, "closed").await;
    let events = events(&holder, &id).await;
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(["sent", "paused", "resumed", "refused"].map(count), [1, 1, 1, 0], "{events:?}");
    assert!(holder.model_requests().last().unwrap().contains("umbrella"));
    assert_eq!(front.model_requests().len(), 0, "the other one runs it");
}

#[tokio::test]
async fn s24_one_key_sends_one_message_at_two_servers() {
    let (holder, front) = two_servers(&Arc::new(Gate::open())).await;
    let id = begin(&holder, &json!({"team": "ask"})).await;
    until(&holder, &id, "waiting").await;
    let count = async |texts: [&str; 2]| {
        let said = said(&events(&holder, &id).await);
        said.iter().filter(|text| texts.contains(&text.as_str())).count()
    };
    for nth in 0..4 {
        let send = async |world: &World, text: &str, of: &str| {
            let request = world.request("POST", &format!("{PATH}/{id}/messages"));
            let request =
                request.json(&json!({"text": text})).header("Idempotency-Key", &format!("{of} {nth}"));
            world.send(request).await
        };
        let same = format!("Hello {nth}.");
        let (one, other) = tokio::join!(send(&holder, &same, "same"), send(&front, &same, "same"));
        assert_eq!([one.status, other.status], [202, 202], "{} {}", one.body, other.body);
        assert_eq!(count([same.as_str(), ""]).await, 1);
        let texts = ["Come", "Go"].map(|text| format!("{text} {nth}."));
        let (one, other) = tokio::join!(send(&holder, &texts[0], "two"), send(&front, &texts[1], "two"));
        let (sent, refused) = if one.status == 202 { (one, other) } else { (other, one) };
        assert_eq!([sent.status, refused.status], [202, 422], "{} {}", sent.body, refused.body);
        assert_eq!(refused.problem()["type"], "/problems/idempotency-mismatch");
        assert_eq!(count(texts.each_ref().map(String::as_str)).await, 1);
    }
}

#[tokio::test]
async fn s24_a_resume_that_is_repeated_at_another_server_counts_once() {
    let (holder, front) = two_servers(&Arc::new(Gate::open())).await;
    let id = begin(&holder, &json!({"team": "short"})).await;
    assert_eq!(until(&holder, &id, "closed").await["turns"], 3);
    let resume = async |world: &World, calls: u64| {
        let request = world.request("POST", &format!("{PATH}/{id}/resume"));
        let request = request.json(&json!({"limits": {"calls": calls}}));
        world.send(request.header("Idempotency-Key", "more")).await
    };
    let first = resume(&holder, 1).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (202, None), "{}", first.body);
    assert_eq!(until(&holder, &id, "closed").await["turns"], 4);
    let before = events(&holder, &id).await;
    let again = resume(&front, 1).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (202, Some("true")), "{}", again.body);
    assert_eq!(again.json()["turns"], 4, "{}", again.body);
    assert_eq!(resume(&front, 2).await.status, 422);
    assert_eq!(events(&front, &id).await, before);
    assert_eq!(front.model_requests().len(), 0);
}

#[tokio::test]
async fn s32_a_conversation_of_another_process_is_answered_and_stopped() {
    let gate = Arc::new(Gate::until(0));
    let (holder, front) = two_servers(&gate).await;
    // The first request that the model receives keeps it busy.
    let other = begin(&holder, &json!({"team": "long"})).await;
    asked_model(&holder, 1).await;
    let stopped = post(&front, &other, "stop", json!({"when": "now"})).await;
    assert_eq!((stopped.status, &stopped.json()["stopped"]), (202, &json!(true)), "{}", stopped.body);
    until(&holder, &other, "halted").await;
    // It is open while Bot speaks.
    let id = begin(&holder, &json!({"team": "board"})).await;
    let question = asked(&holder, &id).await;
    let answer = |text: &str| json!({"question": question, "text": text});
    let yes = async |world: &World| {
        let request = world.request("POST", &format!("{PATH}/{id}/answers")).json(&answer("Yes."));
        world.send(request.header("Idempotency-Key", "yes")).await
    };
    let first = yes(&front).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (202, None), "{}", first.body);
    assert!(first.json()["seq"].is_u64() && first.json()["node"].is_string(), "{}", first.body);
    for world in [&front, &holder] {
        // The same again, and another one.
        let again = yes(world).await;
        assert_eq!(
            (again.status, again.header("idempotent-replayed")),
            (202, Some("true")),
            "{}",
            again.body
        );
        assert_eq!(again.json()["seq"], first.json()["seq"], "{}", again.body);
        let second = post(world, &id, "answers", answer("No.")).await;
        assert_eq!((second.status, &second.problem()["type"]), (409, &json!("/problems/answered")));
    }
    gate.lift();
    until(&holder, &id, "closed").await;
    assert_eq!(said(&events(&holder, &id).await), ["Yes.", "I agree."]);
    let of_stopped = events(&holder, &other).await;
    let cancelled = of_stopped.iter().filter(|event| event["type"] == "cancelled").count();
    assert_eq!((cancelled, said(&of_stopped).len()), (1, 0), "{of_stopped:?}");
    assert_eq!(front.model_requests().len(), 0, "the other one ran them");
}

#[tokio::test]
async fn s32_what_waits_to_run_in_another_process_is_paused_before_it_has_a_turn() {
    let gate = Arc::new(Gate::until(0));
    let (holder, front) = two_servers_of(ServerLimits { running_per_token: 1, ..generous() }, &gate).await;
    let ended = begin(&holder, &json!({"team": "talk"})).await;
    until(&holder, &ended, "closed").await;
    let body = json!({"team": "long", "limits": {"turns": 2}});
    let first = begin(&holder, &body).await;
    asked_model(&holder, 1).await;
    // One that has begun, and is open while it waits; and one that is to continue.
    let new = begin(&holder, &body).await;
    assert_eq!(post(&holder, &ended, "messages", json!({"text": "Go on."})).await.status, 202);
    let last = begin(&holder, &json!({"team": "talk"})).await;
    for id in [&new, &ended] {
        let paused = post(&front, id, "pause", json!({})).await;
        assert_eq!((paused.status, &paused.json()["paused"]), (202, &json!(true)), "{}", paused.body);
        assert_eq!(until(&holder, id, "halted").await["paused"], true);
    }
    gate.lift();
    until(&holder, &first, "closed").await;
    // The places are taken in order.
    until(&holder, &last, "closed").await;
    for (id, turns) in [(&new, 2), (&ended, 8)] {
        let events = events(&holder, id).await;
        assert_eq!(events.last().unwrap()["type"], "paused", "{events:?}");
        assert_eq!(post(&holder, id, "resume", json!({})).await.status, 202);
        assert_eq!(until(&holder, id, "closed").await["turns"], turns);
    }
}
