//! What a model refuses permanently, such as a wrong key: no worker tries it again before a person has changed something.

use std::net::Ipv4Addr;

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};

use crate::commands::TALK;
use crate::place::{Place, of_type, until};

fn server(behavior: impl Into<Behavior>) -> Server {
    Server::bind((Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap()
}

/// Without its script.
fn team() -> &'static str {
    TALK.split("script").next().unwrap()
}

fn state(place: &Place, id: &str) -> String {
    let (_, logs) = place.cluster();
    let log = logs.iter().find(|log| log["id"] == id);
    log.map_or_else(|| "idle".to_owned(), |log| log["state"].as_str().unwrap().to_owned())
}

#[test]
fn what_a_model_refuses_permanently_is_parked_with_its_hint_until_it_is_resumed() {
    let database = PostgresServer::start();
    for store in database.iter().map(PostgresServer::url).chain([String::from("runs.db")]) {
        let model = server(Playbook::new(|_, nth| match nth {
            0..3 => Answer::error(401, "no such key"),
            _ => Answer::text("Hello."),
        }));
        let place = Place::new(&store).with_model(&model).with_team(team());
        place.file("new.yaml", &team().replace("You are brief.", "You are polite."));
        let workers = [(); 3].map(|()| place.worker(&[]));
        let id = place.detach(&["team.yaml", "--model", "openai:test"]);
        until("it is parked", || state(&place, &id) == "parked");
        assert_eq!(model.count(), 3, "{store}: each worker has tried it once, or one of them again");
        assert_eq!(of_type(&place.events(&id), "failed").len(), 3, "{store}");
        let shown = place.run(&["cluster"], 0);
        let row = shown.out.lines().find(|line| line.starts_with("parked")).unwrap();
        for part in
            ["last run by process ", "status 401: no such key", "; hint: check the key in `OPENAI_API_KEY`"]
        {
            assert!(row.contains(part), "{store}: {part}: {row}");
        }
        assert!(shown.err.contains("`polylogue resume ID --detach`"), "{store}: {}", shown.err);
        let listed = place.run(&["runs"], 0).out;
        assert!(listed.contains("parked: ") && listed.contains("hint: check the key"), "{store}: {listed}");
        // That alone has no worker run it.
        let moved = place.run(&["move", &id, "--team", "new.yaml"], 0).err;
        assert!(
            moved.contains(&format!("it is parked: `polylogue resume {id} --detach`")),
            "{store}: {moved}"
        );
        assert_eq!(state(&place, &id), "parked", "{store}");
        // Neither have limits that are raised, nor a pause; both leave what is shown.
        for command in [&["raise", &id, "--max-calls", "2000"][..], &["pause", &id]] {
            place.run(command, 0);
            let shown = place.run(&["cluster"], 0).out;
            let now = shown.lines().find(|line| line.starts_with("parked"));
            assert_eq!(now, Some(row), "{store}: {command:?}: {shown}");
        }
        place.run(&["resume", &id, "--detach"], 0);
        until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
        until("nothing waits", || place.cluster().1.is_empty());
        assert!(!place.run(&["runs"], 0).out.contains("parked"), "{store}");
        drop(workers);
    }
}

/// The key of the first worker is wrong, and that of the second one is right.
#[test]
fn a_worker_with_a_wrong_key_parks_nothing_that_another_one_can_run() {
    let Some(database) = PostgresServer::start() else { return };
    let model = server(Behavior::from(Playbook::always(Answer::text("Hello."))).key("right"));
    let place = |key: &str| {
        Place::new(&database.url()).with_model(&model).with_var("OPENAI_API_KEY", key).with_team(team())
    };
    let (wrong, right) = (place("wrong"), place("right"));
    let first = wrong.worker(&[]);
    let id = wrong.detach(&["team.yaml", "--model", "openai:test"]);
    until("the first worker has left it", || first.log().contains("is left to other workers"));
    let _second = right.worker(&[]);
    until("it has ended", || of_type(&right.events(&id), "closed").len() == 1);
    until("nothing waits", || right.cluster().1.is_empty());
}

/// The budget with which a worker was started is removed while the worker runs nothing.
#[test]
fn a_worker_whose_budget_was_removed_leaves_conversations_to_others_and_parks_none() {
    let Some(database) = PostgresServer::start() else { return };
    let place = Place::new(&database.url());
    place.file("team.yaml", TALK);
    // Before its first conversation, and after one.
    for is_used in [false, true] {
        let worker = place.worker(&["--budget-calls", "team=100"]);
        until("the budget is there", || {
            place.run(&["cluster", "--json"], 0).out.contains("\"budget\":\"team\"")
        });
        if is_used {
            let first = place.detach(&["team.yaml"]);
            until("it has ended", || of_type(&place.events(&first), "closed").len() == 1);
            until("nothing runs", || place.cluster().1.is_empty());
        }
        let _ = database.sql("DELETE FROM polylogue.budget_logs; DELETE FROM polylogue.budgets");
        let id = place.detach(&["team.yaml"]);
        let is_left = |line: &str| line.contains("is left to other workers") && line.contains(&id);
        until("it is left to others", || worker.log().lines().any(is_left));
        assert_eq!(state(&place, &id), "ready", "{}", worker.log());
        assert_eq!(database.sql("SELECT count(*) FROM polylogue.logs WHERE is_parked OR tries > 0"), "0");
        assert!(worker.log().contains("shared budget `team`"), "{}", worker.log());
        let _other = place.worker(&[]);
        until("another worker runs it", || of_type(&place.events(&id), "closed").len() == 1);
        until("it has released it", || place.cluster().1.is_empty());
    }
}
