//! Objects keep their keys in the order in which they were written: a model that is to reason before it answers has to be sent
//! the two in this order, and to find its own words in it.

use polylogue_test::server::{Answer, Behavior, Playbook, Received};
use serde_json::{Value, json};

use crate::home::{Home, serve};

/// Every order in it is another than that of the alphabet.
const TEAM: &str = r#"
name: order
task: Which is larger, 9.9 or 9.11?
agents:
  - name: Judge
    model: openai:judge
    system: You are Judge.
    tools: [high_low, weigh]
    output_schema: &form
      type: object
      properties:
        reasoning: {type: string}
        answer: {type: string}
        certainty: {type: object, properties: {what: {type: string}, how: {type: string}}}
      required: [reasoning, answer]
  - {name: Reader, model: "openai:reader", system: You are Reader., output_schema: *form}
commands:
  - name: weigh
    description: Weighs two numbers.
    command: [echo, "{right}", "{left}"]
    arguments: {right: {type: number}, left: {type: number}}
chat: {pattern: sequential, participants: [Judge, Reader]}
"#;

const ANSWER: &str =
    r#"{"reasoning":"9.9 is 9.90.","certainty":{"what":"sure","how":"by digits"},"answer":"9.9"}"#;

fn behavior() -> Behavior {
    let call = Answer::text("").call_raw("high_low", r#"{"secret_number":9,"guessed_number":8}"#);
    let judge = vec![call, Answer::text(ANSWER)];
    let reader = vec![Answer::text(ANSWER)];
    Playbook::by_agent([("You are Judge", judge), ("You are Reader", reader)]).into()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// What the server got, byte for byte.
fn text(request: &Received) -> String {
    String::from_utf8(request.bytes.clone()).unwrap()
}

#[test]
fn objects_reach_the_model_with_their_keys_in_the_order_of_the_file() {
    let server = serve(behavior());
    let home = Home::at(&server);
    home.run(&["run", home.file("team.yaml", TEAM)]).ok();
    let requests = server.requests();
    let schema =
        requests.iter().find_map(|request| request.body.pointer("/response_format/json_schema/schema"));
    let schema = &schema.unwrap()["properties"];
    assert_eq!(keys(schema), ["reasoning", "answer", "certainty"]);
    assert_eq!(keys(&schema["certainty"]["properties"]), ["what", "how"]);
    let tools = requests[0].body["tools"].as_array().unwrap().iter();
    let tools: Vec<_> = tools.map(|tool| keys(&tool["function"]["parameters"]["properties"])).collect();
    assert_eq!(tools, [["secret_number", "guessed_number"], ["right", "left"]]);
}

#[test]
fn what_a_model_wrote_is_sent_again_with_its_keys_in_its_order() {
    let server = serve(behavior());
    let home = Home::at(&server);
    home.run(&["run", home.file("team.yaml", TEAM)]).ok();
    let requests = server.requests();
    let [_, after_call, .., reader] = requests.as_slice() else { panic!("{}", requests.len()) };
    let call =
        after_call.messages().iter().find_map(|message| message.pointer("/tool_calls/0/function")).unwrap();
    assert_eq!(call["arguments"], r#"{"secret_number":9,"guessed_number":8}"#);
    let escaped = json!(ANSWER).to_string();
    assert!(text(reader).contains(escaped.trim_matches('"')), "{}", text(reader));
    let shown = home.run(&["show", "last", "--json"]).ok().out;
    assert!(shown.contains(r#"{"secret_number":9,"guessed_number":8}"#), "{shown}");
}

#[test]
fn a_recording_is_replayed_by_the_digests_of_the_same_order() {
    let server = serve(behavior());
    let home = Home::at(&server).with_team(TEAM);
    home.run(&["run", "team.yaml", "--record", "calls.jsonl"]).ok();
    let digests = |home: &Home| -> Vec<Value> {
        home.events()
            .iter()
            .filter_map(|event| event.get("digest").or_else(|| event.get("request")).cloned())
            .collect()
    };
    let recorded = digests(&home);
    assert_eq!(recorded.len(), server.count(), "{:?}", home.events());
    home.run(&["run", "team.yaml", "--replay", "calls.jsonl"]).ok();
    assert_eq!(digests(&home), recorded);
}
