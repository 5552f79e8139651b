//! Pictures and forms of results in OpenAI's chat completions: S60.

use polylogue_test::server::{Answer, Playbook};
use serde_json::{Value, json};

use crate::conversations::{begin_until, events, until};
use crate::openai::{COMPLETIONS, assistant, complete, content, conversation, user};
use crate::world::World;

pub(crate) const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const DOT: &str = "data:image/gif;base64,R0lGODlhAgADAAAA";

pub(crate) const LOOK: &str = "
name: look
task: Look.
agents: [{name: Ann, model: 'openai:gpt-4o-mini'}]
chat: {participants: [Ann], pattern: sequential}
";

const SUMS: &str = "
name: sums
task: Add.
agents:
  - name: Ann
    model: 'openai:gpt-4o-mini'
    output_schema: {type: object, required: [answer], properties: {answer: {type: integer}}}
chat: {participants: [Ann], pattern: sequential}
";

pub(crate) fn with_picture(text: &str, url: &str) -> Value {
    let picture = json!({"type": "image_url", "image_url": {"url": url}});
    json!({"role": "user", "content": [{"type": "text", "text": text}, picture]})
}

fn replies(text: &'static str) -> Playbook {
    Playbook::new(move |_, _| Answer::text(text))
}

#[tokio::test]
async fn s60_pictures_reach_the_model_and_belong_to_the_history() {
    let world = World::with_playbook("look", LOOK, replies("A dot.")).await;
    let mut history = vec![with_picture("What is this?", PIXEL)];
    let first = complete(&world, "look", json!(history)).await;
    let id = conversation(&first);
    assert_eq!(content(&first), "A dot.");
    assert!(world.model_requests()[0].contains(PIXEL), "the model has received it");
    let opened = &events(&world, id).await[0];
    assert_eq!(opened["messages"][0]["parts"][1]["media"], json!({"type": "image/png", "url": PIXEL}));
    // The next message has another one, and continues the same log.
    history.extend([assistant("A dot."), with_picture("And this?", DOT)]);
    let second = complete(&world, "look", json!(history)).await;
    assert_eq!(conversation(&second), id);
    let last = world.model_requests().pop().unwrap();
    assert!(last.contains(PIXEL) && last.contains(DOT), "{last}");
    history.extend([assistant("A dot."), user("Sure?")]);
    assert_eq!(conversation(&complete(&world, "look", json!(history)).await), id);
    // With another first picture, it is another history.
    history[0] = with_picture("What is this?", DOT);
    assert_ne!(conversation(&complete(&world, "look", json!(history)).await), id);
    let begun = world.model_requests().pop().unwrap();
    assert_eq!(begun.matches(DOT).count(), 2, "it begins with both: {begun}");
}

#[tokio::test]
async fn s60_a_large_picture_is_taken_and_no_address_is_loaded() {
    let world = World::with_playbook("look", LOOK, replies("A dot.")).await;
    // Above the limit of other bodies.
    let large = format!("{PIXEL}{}", "A".repeat(2 << 20)).replace('=', "A");
    complete(&world, "look", json!([with_picture("What is this?", &large)])).await;
    let loopback = format!("http://{}/healthz", world.address);
    for url in ["https://example.org/a.png", loopback.as_str(), "http://[::1]/", "http://169.254.1.1/"] {
        let body = json!({"model": "look", "messages": [user("x"), assistant("y"), with_picture("z", url)]});
        let refused = world.post(COMPLETIONS, &body).await;
        let error = &refused.problem()["error"];
        assert_eq!((refused.status, &error["param"]), (400, &json!("messages.2.content.1")), "{url}");
        assert!(error["message"].as_str().unwrap().contains("hint: send the picture itself"), "{error}");
    }
    assert_eq!(world.model_requests().len(), 1, "nothing was asked");
    // So many are too many.
    let all: Vec<Value> = (0..51).map(|_| with_picture("x", DOT)).collect();
    let refused = world.post(COMPLETIONS, &json!({"model": "look", "messages": all})).await;
    let error = &refused.problem()["error"];
    assert_eq!((refused.status, &error["param"]), (400, &json!("messages.50.content.1")), "{}", refused.body);
    assert_eq!(world.model_requests().len(), 1, "nothing was asked");
}

#[tokio::test]
async fn s60_a_question_is_not_answered_by_a_picture() {
    let world = World::new().await;
    let id = begin_until(&world, "ask", "waiting").await;
    let body =
        json!({"model": "ask", "messages": [with_picture("Hm.", PIXEL)], "metadata": {"conversation": id}});
    let refused = world.post(COMPLETIONS, &body).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body.contains("waits for an answer"), "{}", refused.body);
    assert_eq!(until(&world, &id, "waiting").await["state"], "waiting");
}

#[tokio::test]
async fn s60_the_form_of_the_team_can_be_asked_for_and_no_other() {
    let world = World::with_playbook("sums", SUMS, replies(r#"{"answer": 4}"#)).await;
    let schema =
        json!({"type": "object", "required": ["answer"], "properties": {"answer": {"type": "integer"}}});
    let ask = async |model: &str, format: Value| {
        let body = json!({"model": model, "messages": [user("2 + 2?")], "response_format": format});
        world.post(COMPLETIONS, &body).await
    };
    let own =
        json!({"type": "json_schema", "json_schema": {"name": "sum", "strict": true, "schema": schema}});
    for format in [own.clone(), json!({"type": "json_object"}), json!({"type": "text"}), json!(null)] {
        let response = ask("sums", format.clone()).await;
        assert_eq!(
            (response.status, response.header("x-polylogue-ignored")),
            (200, None),
            "{}",
            response.body
        );
        let result: Value = serde_json::from_str(content(&response.json())).unwrap();
        assert_eq!(result, json!({"answer": 4}), "{format}");
    }
    let calls = world.model_requests().len();
    let other = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}});
    for (model, format) in [("sums", other), ("talk", own), ("talk", json!({"type": "json_object"}))] {
        let refused = ask(model, format).await;
        assert_eq!((refused.status, &refused.problem()["error"]["param"]), (400, &json!("response_format")));
    }
    assert_eq!(world.model_requests().len(), calls, "nothing was asked");
}
