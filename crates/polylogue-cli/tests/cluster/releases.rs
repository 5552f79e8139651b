//! W43: workers of two releases on one database, as while a cluster is updated.

use std::net::Ipv4Addr;
use std::time::Duration;

use polylogue_core::chain::Link;
use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use rustix::process::Signal;
use serde_json::Value;

use crate::commands::TALK;
use crate::earlier;
use crate::place::{Place, WorkerProcess, held_by, of_type, until};

/// Appends an event with these fields, which only a later release understands, as a process of that release does.
fn append_of_later_release(server: &PostgresServer, id: &str, fields: &str) -> String {
    let end =
        server.sql(&format!("SELECT nr, events, encode(chain, 'hex') FROM polylogue.logs WHERE id = '{id}'"));
    let columns: Vec<&str> = end.split('|').collect();
    let [nr, seq, chain] = columns.as_slice() else { panic!("{end}") };
    let json = format!(r#"{{"seq":{seq},"time_ms":0,{fields}}}"#);
    let link = Link::parse(chain.as_bytes()).unwrap().next(json.as_bytes());
    let _ = server.sql(&format!(
        "INSERT INTO polylogue.events(log, seq, json, chain) VALUES({nr}, {seq}, '{json}', '\\x{link}');
        UPDATE polylogue.logs SET events = events + 1, chain = '\\x{link}' WHERE nr = {nr}"
    ));
    json
}

/// A worker that does not know an event leaves its conversation to those that do, however often it tries, and runs all others.
#[test]
fn what_a_later_release_has_written_is_left_to_its_workers() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let id = place.detach(&["team.yaml"]);
    let json = append_of_later_release(&server, &id, r#""type":"hologram_shown","of":"Ann""#);
    let worker = place.worker(&[]);
    until("it has tried twice", || worker.log().matches("is left to other workers").count() > 1);
    let other = place.detach(&["team.yaml"]);
    until("another one has ended", || of_type(&place.events(&other), "closed").len() == 1);
    let shown = place.run(&["cluster"], 0).out;
    let row = shown.lines().find(|line| line.contains(&id)).unwrap();
    assert!(row.starts_with("ready") && row.contains("hologram_shown"), "{row}");
    let stored = format!(
        "SELECT tries, is_parked, json FROM polylogue.logs JOIN polylogue.events ON log = nr WHERE id = '{id}'"
    );
    assert_eq!(server.sql(&stored), format!("0|f|{json}"), "it is kept, and not parked");
}

/// The same for a conversation that was moved to a team with a key that only a later release knows.
#[test]
fn what_a_later_release_has_moved_to_its_own_team_is_left_to_its_workers() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let id = place.detach(&["team.yaml"]);
    let team = server.sql("SELECT json FROM polylogue.teams");
    let with_key = team.replacen("name: talk", r"name: talk\nholograms: 3", 1);
    assert_ne!(with_key, team);
    let changed = format!(r#""type":"team_changed","digest":"later","changes":[],"team":{with_key}"#);
    let json = append_of_later_release(&server, &id, &changed);
    let worker = place.worker(&[]);
    until("it has tried", || worker.log().contains("is left to other workers"));
    let other = place.detach(&["team.yaml"]);
    until("another one has ended", || of_type(&place.events(&other), "closed").len() == 1);
    let shown = place.run(&["cluster"], 0).out;
    let row = shown.lines().find(|line| line.contains(&id)).unwrap();
    assert!(row.contains("unknown key `holograms`"), "{row}");
    let stored = format!(
        "SELECT tries, is_parked, json FROM polylogue.logs JOIN polylogue.events ON log = nr WHERE id = '{id}'"
    );
    assert_eq!(server.sql(&stored), format!("0|f|{json}"), "it is kept, and not parked");
}

/// Posts an instruction that only a later release knows, and which has workers look at the conversation, as a command of that release does.
fn post_of_later_release(server: &PostgresServer, id: &str) {
    let json = r#"{"key":"later","posted_ms":1,"instruction":{"dim":{"by":3}}}"#;
    let _ = server.sql(&format!(
        r#"WITH log AS (UPDATE polylogue.logs SET posted = posted + 1,
                unread = CASE WHEN holder IS NULL THEN unread ELSE unread || (posted + 1) END,
                due = CASE WHEN holder IS NULL THEN now() ELSE due END WHERE id = '{id}' RETURNING nr, posted)
            INSERT INTO polylogue.inbox(log, nr, key, json) SELECT nr, posted, '"later"', '{json}' FROM log"#
    ));
}

/// The same for an instruction that only a later release knows, also if it comes while a worker runs the conversation: its step ends, and it
/// waits for workers of that release.
#[test]
fn what_a_later_release_has_posted_is_left_to_its_workers() {
    let Some(server) = PostgresServer::start() else { return };
    let model = counting_model();
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    place.file("long.yaml", LONG);
    let waits = place.detach(&["team.yaml"]);
    post_of_later_release(&server, &waits);
    let runs = place.detach(&["long.yaml", "--model", "openai:test"]);
    let mut worker = place.worker(&[]);
    until("one of them runs", || model.count() > 2);
    post_of_later_release(&server, &runs);
    until("both wait for a later release", || {
        let (_, logs) = place.cluster();
        [&waits, &runs].iter().all(|id| {
            let log = logs.iter().find(|log| log["id"] == id.as_str());
            log.is_some_and(|log| log["why"].as_str().is_some_and(|why| why.contains("`dim`")))
        })
    });
    let events = place.events(&runs);
    assert!(of_type(&events, "reply_interrupted").is_empty(), "its step has ended");
    let tried = worker.log().matches("is left to other workers").count();
    until("it has tried again", || worker.log().matches("is left to other workers").count() > tried + 1);
    let other = place.detach(&["team.yaml"]);
    until("another one has ended", || of_type(&place.events(&other), "closed").len() == 1);
    worker.signal(Signal::TERM);
    assert_eq!(worker.end(), 0, "{}", worker.log());
    assert_eq!(place.events(&runs), events, "nothing more has run");
    assert!(place.events(&waits).is_empty(), "nothing has run");
    let shown = place.run(&["cluster"], 0).out;
    for id in [&waits, &runs] {
        let row = shown.lines().find(|line| line.contains(id.as_str())).unwrap();
        assert!(row.starts_with("ready") && row.contains("only a later version"), "{row}");
    }
    let stored =
        "SELECT max(tries), bool_or(is_parked), (SELECT count(*) FROM polylogue.inbox WHERE NOT taken)
        FROM polylogue.logs";
    assert_eq!(server.sql(stored), "0|f|2", "they are kept, and nothing is parked");
}

/// Each of its replies is another one.
fn counting_model() -> Server {
    let book = Playbook::new(|_, number| Answer::text(format!("number {number}")));
    let behavior = Behavior::from(book).latency(Duration::from_millis(200));
    Server::bind((Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap()
}

/// It takes minutes.
const LONG: &str = "
name: long
task: Count.
agents: [{name: Ann, system: You are Ann.}, {name: Bob, system: You are Bob.}]
chat: {participants: [Ann, Bob], max_turns: 1000, stop: {max_turns: 900}, loop_detection: off}
limits: {calls: 1000}
";

/// Two releases on one database.
struct Pair<'p> {
    server: &'p PostgresServer,
    place: &'p Place,
}

impl Pair<'_> {
    fn said(&self, id: &str) -> usize {
        of_type(&self.place.events(id), "message").len()
    }

    /// Waits until the worker has these conversations, and continues each of them.
    fn progress(&self, worker: &WorkerProcess, ids: &[&str]) {
        until("it has them", || {
            let held = held_by(self.server, worker);
            ids.iter().all(|id| held.iter().any(|held| held == id))
        });
        let before: Vec<usize> = ids.iter().map(|id| self.said(id)).collect();
        until("it continues them", || ids.iter().zip(&before).all(|(id, before)| self.said(id) > *before));
    }

    /// Why a conversation is left to other workers.
    fn why(&self, id: &str) -> String {
        let (_, logs) = self.place.cluster();
        let log = logs.iter().find(|log| log["id"] == id);
        log.and_then(|log| log["why"].as_str()).unwrap_or_default().to_owned()
    }
}

/// Workers of an earlier release and of this one are drained in turn. The earlier one leaves a conversation whose limits this release has raised,
/// and one that needs what only this release offers.
#[test]
fn conversations_move_both_ways_between_workers_of_two_releases() {
    const OFFERS: &[&str] = &["--offers", "later"];
    let Some(server) = PostgresServer::start() else { return };
    let model = counting_model();
    let place = Place::new(&server.url()).with_model(&model);
    place.file("long.yaml", LONG);
    let detach = |task: &str, needs: &[&str]| {
        place.detach(&[&["long.yaml", task, "--model", "openai:test"], needs].concat())
    };
    let (moves, raised) = (detach("Count apples.", &[]), detach("Count pears.", &[]));
    let needs = detach("Count plums.", &["--needs", "later"]);
    let pair = Pair { server: &server, place: &place };
    let mut earlier = place.process(earlier::WORKER);
    pair.progress(&earlier, &[&moves, &raised]);
    place.run(&["raise", &raised, "--max-calls", "2000"], 0);
    until("it is left to this release", || pair.why(&raised).contains("only a later version"));
    let left = place.events(&raised);
    pair.progress(&earlier, &[&moves]);
    assert_eq!(place.events(&raised), left, "nothing more has run");
    assert!(place.events(&needs).is_empty(), "nothing has run");
    let mut later = place.worker(OFFERS);
    pair.progress(&later, &[&raised, &needs]);
    assert_eq!(of_type(&place.events(&raised), "limits_changed").len(), 1);
    pair.progress(&earlier, &[&moves]);
    earlier.drain();
    pair.progress(&later, &[&moves, &raised, &needs]);
    earlier = place.process(earlier::WORKER);
    until("both are seen", || place.cluster().0.len() == 2);
    later.drain();
    pair.progress(&earlier, &[&moves]);
    until("the event is not known", || pair.why(&raised).contains("`limits_changed`"));
    let left = [&raised, &needs].map(|id| place.events(id));
    pair.progress(&earlier, &[&moves]);
    assert_eq!([&raised, &needs].map(|id| place.events(id)), left, "nothing more has run");
    later = place.worker(OFFERS);
    pair.progress(&later, &[&raised, &needs]);
    [earlier, later].iter_mut().for_each(WorkerProcess::drain);
    let mut replies = 0;
    for id in [&moves, &raised, &needs] {
        let events = place.events(id);
        let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (0..events.len() as u64).collect::<Vec<_>>(), "{id}");
        let broken = ["reply_interrupted", "failed"].map(|kind| of_type(&events, kind).len());
        assert_eq!(broken, [0, 0], "{id}: no call was in flight");
        replies += of_type(&events, "model_replied").len();
    }
    assert_eq!(replies, model.count(), "each call was made once");
    let stored = "SELECT sum(takeovers), max(tries), bool_or(is_parked) FROM polylogue.logs";
    assert_eq!(server.sql(stored), "0|0|f");
}

/// Conversations with two versions of a team run with the version that each has, whichever release runs it; one of them is moved from one to the
/// other. The files are not read again.
#[test]
fn conversations_keep_their_teams_on_workers_of_both_releases() {
    let Some(server) = PostgresServer::start() else { return };
    let book = Playbook::new(|received, number| {
        let is_new = received.body.to_string().contains("You are new");
        Answer::text(format!("{} {number}", if is_new { "new" } else { "old" }))
    });
    let behavior = Behavior::from(book).latency(Duration::from_millis(200));
    let model = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap();
    let place = Place::new(&server.url()).with_model(&model);
    place.file("old.yaml", LONG);
    place.file("new.yaml", &LONG.replace("You are", "You are new"));
    let detach = |team: &str, task: &str| place.detach(&[team, task, "--model", "openai:test"]);
    let old = detach("old.yaml", "Count apples.");
    let (moved, new) = (detach("old.yaml", "Count pears."), detach("new.yaml", "Count plums."));
    let (pair, all) = (Pair { server: &server, place: &place }, [old.as_str(), &moved, &new]);
    let mut earlier = place.process(earlier::WORKER);
    pair.progress(&earlier, &all);
    place.run(&["pause", &moved], 0);
    until("its worker has released it", || !held_by(&server, &earlier).contains(&moved));
    place.run(&["move", &moved, "--team", "new.yaml"], 0);
    place.run(&["resume", &moved, "--detach"], 0);
    place.file("old.yaml", &LONG.replace("You are", "You are newer"));
    pair.progress(&earlier, &all);
    let mut later = place.worker(&[]);
    until("both are seen", || place.cluster().0.len() == 2);
    earlier.drain();
    pair.progress(&later, &all);
    earlier = place.process(earlier::WORKER);
    until("both are seen", || place.cluster().0.len() == 2);
    later.drain();
    pair.progress(&earlier, &all);
    earlier.drain();
    let versions = |events: &[Value]| {
        let texts = of_type(events, "message").into_iter().map(|said| said["parts"][0]["text"].to_string());
        let mut versions: Vec<String> = texts.map(|text| text[1..4].to_owned()).collect();
        versions.dedup();
        versions
    };
    assert_eq!(versions(&place.events(&old)), ["old"]);
    assert_eq!(versions(&place.events(&new)), ["new"]);
    let events = place.events(&moved);
    let (before, after) =
        events.split_at(events.iter().position(|event| event["type"] == "team_changed").unwrap());
    assert_eq!((versions(before), versions(after)), (vec!["old".to_owned()], vec!["new".to_owned()]));
    assert_eq!(
        server.sql("SELECT sum(takeovers), max(tries), bool_or(is_parked) FROM polylogue.logs"),
        "0|0|f"
    );
}

/// As `polylogue migrate` of a later release does. What the logs had then is in the table `before`.
const MIGRATE: &str = "BEGIN;
    LOCK TABLE polylogue.logs IN ACCESS EXCLUSIVE MODE;
    UPDATE polylogue.logs SET holder = NULL, lease = NULL, claim_key = NULL, due = now() WHERE holder IS NOT NULL;
    UPDATE polylogue.format SET format = format + 1;
    CREATE TABLE before AS SELECT id, events, fence FROM polylogue.logs;
    COMMIT";

/// A later release migrates the tables while processes of this one run. A worker ends with an error, and so does a server that is one; none of
/// them writes anything more.
#[test]
fn workers_end_when_a_later_release_has_migrated_the_tables() {
    let Some(server) = PostgresServer::start() else { return };
    let model = counting_model();
    let place = Place::new(&server.url()).with_model(&model);
    place.file("long.yaml", LONG);
    assert!(
        place.run(&["migrate"], 0).out.contains("nothing is migrated"),
        "a new database has the format of this release"
    );
    let ids = ["Count apples.", "Count pears.", "Count plums."]
        .map(|task| place.detach(&["long.yaml", task, "--model", "openai:test"]));
    let mut full = place.worker(&["--at-once", "1"]);
    until("it runs one", || held_by(&server, &full).len() == 1);
    let mut other = place.worker(&[]);
    until("it runs the others", || held_by(&server, &other).len() == 2);
    let serve = ["serve", "long.yaml", "--model", "openai:test", "--listen", "127.0.0.1:0", "--worker"];
    let mut served = place.begin(&serve, "served");
    until("all are seen", || place.cluster().0.len() == 3);
    until("all have begun", || ids.iter().all(|id| !place.events(id).is_empty()));
    let _ = server.sql(MIGRATE);
    for process in [&mut full, &mut other, &mut served] {
        let (exit, log) = (process.end(), process.log());
        assert_eq!(exit, 1, "{log}");
        assert!(log.contains("this version knows up to") && log.contains("hint: "), "{log}");
    }
    let unchanged =
        "SELECT bool_and(logs.events = before.events AND logs.fence = before.fence AND holder IS NULL), count(*)
        FROM polylogue.logs JOIN before USING (id)";
    assert_eq!(server.sql(unchanged), "t|3");
    assert!(place.run(&["migrate"], 1).err.contains("this version knows up to"));
    assert!(ids.iter().all(|id| !place.events(id).is_empty()), "they are still read");
}

/// Tables of a later format are read if that format permits it. This release writes nothing there, and no worker of it starts.
#[test]
fn tables_of_a_later_release_are_read_and_not_written() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    place.run(&["run", "team.yaml"], 0);
    let events = place.events("last");
    let refused = |args: &[&str]| {
        let refused = place.run(args, 1).err;
        assert!(refused.contains("this version knows up to") && refused.contains("hint: "), "{refused}");
    };
    let _ = server.sql("UPDATE polylogue.format SET format = format + 1");
    assert_eq!(place.events("last"), events);
    for args in [
        &["worker"][..],
        &["worker", "--only", "last"],
        &["run", "team.yaml", "--detach"],
        &["raise", "last", "--max-turns", "9"],
        &["rm", "last"],
    ] {
        refused(args);
    }
    assert_eq!(place.events("last"), events);
    let _ = server.sql("UPDATE polylogue.format SET oldest_reader = format");
    refused(&["show", "last"]);
}
