//! W34: conversations that wait for a rate limit.

use std::net::Ipv4Addr;

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};

use crate::commands::TALK;
use crate::place::{Place, of_type, until};

/// W34: the provider asks for a wait of ten minutes. The only place of the worker is used by another conversation.
#[test]
fn a_conversation_that_waits_for_a_rate_limit_occupies_no_worker() {
    let Some(server) = PostgresServer::start() else { return };
    let book = Playbook::new(|_, nth| match nth {
        0 => Answer::status(429).retry_after_secs(600),
        _ => Answer::text("Here I am."),
    });
    let model = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), Behavior::from(book)).unwrap();
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    let waits = place.detach(&["team.yaml", "--model", "openai:test"]);
    let worker = place.worker(&["--at-once", "1"]);
    let state = |id: &str| {
        let (_, logs) = place.cluster();
        logs.into_iter().find(|log| log["id"] == id)
    };
    until("it is put back", || state(&waits).is_some_and(|log| log["state"] == "timed"));
    let overdue = state(&waits).unwrap()["overdue_ms"].as_i64().unwrap();
    // Until the end of the wait, of which this test has seen no more than its patience.
    assert!((-600_000..-420_000).contains(&overdue), "{overdue}: {}", worker.log());
    // It has not failed.
    let listed = place.run(&["runs", "--json", "--state", "failed"], 0);
    assert_eq!(listed.out, "", "{:?}", place.events(&waits));
    let shown = place.run(&["show", &waits], 0).out;
    assert!(shown.contains("Ann is put off: ") && !shown.contains("failed"), "{shown}");
    let other = place.detach(&["team.yaml"]);
    until("the other one has ended", || of_type(&place.events(&other), "closed").len() == 1);
    assert_eq!(state(&waits).unwrap()["state"], "timed", "it still waits");
    assert_eq!(model.count(), 1, "no other request was sent");
    let cluster = place.run(&["cluster"], 0).out;
    let row = cluster.lines().find(|line| line.starts_with("limit   openai:test  ")).unwrap();
    assert!(row.contains("the next call waits for ") && row.contains("asked to wait once"), "{row}");
    // Ten minutes later.
    let _ = server.sql(
        "UPDATE polylogue.rate_limits SET blocked_until = blocked_until - interval '10 minutes';
         UPDATE polylogue.logs SET due = due - interval '10 minutes' WHERE holder IS NULL",
    );
    until("it has ended", || of_type(&place.events(&waits), "closed").len() == 1);
    let events = place.events(&waits);
    assert_eq!(of_type(&events, "message").len(), 2, "{events:?}");
    assert_eq!(model.count(), 3, "nothing was sent twice");
}
