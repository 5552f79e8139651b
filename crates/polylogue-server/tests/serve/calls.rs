//! The timeline of calls, what models were sent, and graphs: S31.

use serde_json::{Value, json};

use crate::conversations::{begin, begin_until, events, until};
use crate::world::World;

const PATH: &str = "/api/v1/conversations";

/// The texts of a list, in its order.
fn texts(list: &Value, text: impl Fn(&Value) -> String) -> String {
    list.as_array().unwrap().iter().map(text).collect::<Vec<_>>().join("\n\n")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn s31_the_view_of_each_call_is_what_was_sent_by_its_digest() {
    let world = World::with_model("so it goes", crate::world::generous()).await;
    for team in ["talk", "long"] {
        let id = begin(&world, &json!({"team": team, "message": "Count on."})).await;
        until(&world, &id, "closed").await;
        let replies: Vec<Value> =
            events(&world, &id).await.into_iter().filter(|event| event["type"] == "model_replied").collect();
        let calls = world.get(&format!("{PATH}/{id}/calls")).await.json();
        let rows = calls["calls"].as_array().unwrap();
        assert_eq!((rows.len(), &calls["next"]), (replies.len(), &Value::Null));
        // The model of the other team is a script, which is sent nothing.
        let sent = world.model_requests();
        assert_eq!(sent.len(), if team == "long" { rows.len() } else { 0 });
        for (nth, (row, reply)) in rows.iter().zip(&replies).enumerate() {
            assert_eq!(
                (&row["kind"], &row["seq"], &row["who"]),
                (&json!("model"), &reply["seq"], &reply["who"])
            );
            assert!(row["start_ms"].as_u64() <= row["end_ms"].as_u64() && row["end_ms"] == reply["time_ms"]);
            let who = row["who"].as_str().unwrap();
            let view = world.get(&format!("{PATH}/{id}/views/{who}?call={}", row["call"])).await.json();
            assert_eq!(view["exact"], true, "{view:#}");
            assert_eq!((&view["request"]["digest"], &view["seq"]), (&reply["request"], &reply["seq"]));
            let shown = texts(&view["request"]["entries"], |entry| {
                texts(&entry["parts"], |part| text(&part["text"]))
            });
            assert!(shown.starts_with("Count on."), "{view:#}");
            if let Some(sent) = sent.get(nth) {
                let sent: Value = serde_json::from_str(sent).unwrap();
                assert_eq!(texts(&sent["messages"], |message| text(&message["content"])), shown);
            }
        }
        let last = world.get(&format!("{PATH}/{id}/views/Bob")).await.json();
        assert_eq!((&last["call"], &last["calls"]), (&json!(rows.len() / 2), &json!(rows.len() / 2)));
        let page = world.get(&format!("{PATH}/{id}/calls?from=1&limit=2")).await.json();
        assert_eq!((page["calls"].as_array().unwrap().as_slice(), &page["next"]), (&rows[1..3], &json!(3)));
    }
}

#[tokio::test]
async fn a_view_that_there_is_not_is_404_with_what_there_is() {
    let world = World::new().await;
    let id = begin_until(&world, "talk", "closed").await;
    for (path, hint) in [("Zoe", "there are `Ann`, `Bob`"), ("%2e%2e", "there are `Ann`, `Bob`")] {
        let response = world.get(&format!("{PATH}/{id}/views/{path}")).await;
        assert_eq!((response.status, &response.problem()["hint"]), (404, &json!(hint)), "{path}");
    }
    for call in ["0", "3", "18446744073709551615"] {
        let response = world.get(&format!("{PATH}/{id}/views/Ann?call={call}")).await;
        assert_eq!((response.status, &response.problem()["type"]), (404, &json!("/problems/unknown-call")));
        assert_eq!(response.problem()["detail"], "`Ann` has made 2 model calls");
    }
    assert_eq!(world.get(&format!("{PATH}/{id}/views/Ann?call=x")).await.status, 400);
    assert_eq!(world.get(&format!("{PATH}/nothing/calls")).await.status, 404);
}

#[tokio::test]
async fn the_graph_of_a_team_is_that_of_its_conversations_and_of_its_text() {
    let world = World::new().await;
    let graph = world.get("/api/v1/teams/talk/graph").await.json();
    let names = |graph: &Value| {
        let names = graph["nodes"].as_array().unwrap().iter().map(|node| node["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&graph), ["start", "Ann", "Bob"]);
    let id = begin(&world, &json!({"team": "talk"})).await;
    assert_eq!(world.get(&format!("{PATH}/{id}/graph")).await.json(), graph);
    let text = std::fs::read_to_string(world.dir.path().join("talk.yaml")).unwrap();
    let checked = world.post("/api/v1/teams/check", &json!({"text": text})).await.json();
    // A text that was checked has no script yet that speaks for its models.
    let checked = &checked["team"]["graph"];
    assert_eq!((names(checked), &checked["edges"][1]["kind"]), (names(&graph), &graph["edges"][1]["kind"]));
    assert_eq!(world.get("/api/v1/teams/nothing/graph").await.status, 404);
}

#[tokio::test]
async fn a_team_has_its_participants_and_who_follows_whom() {
    let world = World::new().await;
    let team = world.get("/api/v1/teams/talk").await.json();
    let participants = team["participants"].as_array().unwrap().iter();
    let participants: Vec<Value> =
        participants.map(|one| json!([one["name"], one["kind"], one["color"]])).collect();
    assert_eq!(participants, [json!(["Ann", "model", 0]), json!(["Bob", "model", 1])]);
    let edge = |from: Option<&str>, to: &str| json!({"from": from, "to": to, "when": null});
    assert_eq!(team["edges"], json!([edge(None, "Ann"), edge(Some("Ann"), "Bob"), edge(Some("Bob"), "Ann")]));
    assert_eq!(team["selected_by"], Value::Null);
    let listed = world.get("/api/v1/teams").await.json();
    assert!(listed["teams"].as_array().unwrap().contains(&team), "{listed}");
    // The person speaks first, and the agent ends the chat.
    let ask = world.get("/api/v1/teams/ask").await.json();
    assert_eq!(ask["participants"][0]["kind"], "person", "{ask}");
    assert_eq!(
        ask["edges"].as_array().unwrap().last(),
        Some(&json!({"from": "Ann", "to": null, "when": null}))
    );
}
