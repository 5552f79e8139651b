//! Conversations that something has damaged in the database: no worker tries them again before they are repaired.

use polylogue_test::postgres::PostgresServer;

use crate::commands::TALK;
use crate::live::Client;
use crate::place::{Place, of_type, until};

#[test]
fn what_is_damaged_is_parked_at_its_first_try_until_it_is_repaired() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let [changed, torn, renamed, over] = [(); 4].map(|()| place.detach(&["team.yaml"]));
    let all = [&changed, &torn, &renamed, &over];
    for id in [&changed, &torn, &over] {
        place.run(&["worker", "--only", id], 0);
    }
    let of = |id: &str| format!("log = (SELECT nr FROM polylogue.logs WHERE id = '{id}')");
    for change in [
        format!(
            "UPDATE polylogue.events SET json = replace(json, 'Hello!', 'Farewell!') WHERE {}",
            of(&changed)
        ),
        format!(
            "DELETE FROM polylogue.events WHERE {0} AND seq = (SELECT max(seq) FROM polylogue.events WHERE {0})",
            of(&torn)
        ),
        format!("UPDATE polylogue.logs SET title = '\"another\"' WHERE id IN ('{renamed}', '{over}')"),
        // As after a message to those that had ended.
        "UPDATE polylogue.logs SET due = now()".to_owned(),
    ] {
        let _ = server.sql(&change);
    }
    let worker = place.worker(&["--metrics", "127.0.0.1:0"]);
    let parked = || place.cluster().1.iter().filter(|log| log["state"] == "parked").count();
    until("all are parked", || parked() == 4);
    assert_eq!(server.sql("SELECT DISTINCT tries, due IS NULL FROM polylogue.logs"), "1|t");
    let shown = place.run(&["cluster"], 0).out;
    for (id, why) in [
        (&changed, "is not what was written; "),
        (&torn, "were acknowledged: the last are lost; "),
        (&renamed, "its title, time, team or name is not what was written; 0 events"),
        (&over, "its title, time, team or name is not what was written; "),
    ] {
        let row = shown.lines().find(|line| line.contains(id.as_str())).unwrap();
        assert!(row.starts_with("parked") && row.contains("last run by process "), "{row}");
        assert!(row.contains(why), "{row}");
        let refused = place.run(&["resume", id, "--detach"], 1).err;
        assert!(refused.contains("is damaged: "), "{refused}");
    }
    let monitoring = Client::of_metrics(&worker);
    for sample in ["cluster_conversations{state=\"parked\"} 4", "worker_events_total{event=\"parked\"} 4"] {
        until(sample, || monitoring.text("/metrics").contains(&format!("polylogue_{sample}")));
    }
    for id in all {
        place.run(&["verify", id, "--repair"], 0);
    }
    assert_eq!(parked(), 4, "a repair runs nothing");
    for id in all {
        place.run(&["resume", id, "--detach"], 0);
        until("it has ended", || of_type(&place.events(id), "closed").len() == 1);
    }
    until("nothing waits", || place.cluster().1.is_empty());
}
