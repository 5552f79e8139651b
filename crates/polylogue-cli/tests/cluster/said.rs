//! What commands say of conversations that workers run, or do not.

use std::net::Ipv4Addr;
use std::time::Duration;

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};

use crate::commands::TALK;
use crate::place::{Place, WorkerProcess, until};
use polylogue_test::teams::OFFICE;

/// A database, if there is one, and a file.
fn stores(server: Option<&PostgresServer>) -> impl Iterator<Item = String> {
    server.map(PostgresServer::url).into_iter().chain([String::from("runs.db")])
}

/// Starts a worker, and waits until others see it.
fn seen_worker(place: &Place, args: &[&str]) -> WorkerProcess {
    let before = place.cluster().0.len();
    let worker = place.worker(args);
    until("the worker is seen", || place.cluster().0.len() > before);
    worker
}

#[test]
fn what_is_handed_over_says_for_what_it_waits() {
    let server = PostgresServer::start();
    for store in stores(server.as_ref()) {
        let place = Place::new(&store).with_team(TALK);
        let said = |args: &[&str]| {
            let ran = place.run(&[&["run", "team.yaml", "--detach"], args].concat(), 0);
            (ran.out.trim().to_owned(), ran.err)
        };
        let (first, alone) = said(&[]);
        assert!(alone.contains("none runs now: start one with `polylogue worker`"), "{store}: {alone}");
        let listed = place.run(&["runs"], 0).out;
        assert!(listed.contains("waiting for a worker  Say hello."), "{store}: {listed}");
        let shown = place.run(&["show", &first], 0).err;
        assert!(shown.contains("It waits for a worker: `polylogue cluster"), "{store}: {shown}");
        for args in [&["send", &first, "Hello?"][..], &["pause", &first]] {
            let refused = place.run(args, 2).err;
            assert!(refused.contains("has not begun: it waits for a worker"), "{store}: {refused}");
        }
        let _worker = seen_worker(&place, &[]);
        let (second, lacking) = said(&["--needs", "gpu"]);
        place.run(&["cancel", &second], 0);
        let shown = place.run(&["show", &second], 0).err;
        assert!(shown.contains("It has not begun: `polylogue resume"), "{store}: {shown}");
        assert!(lacking.contains("it waits for a worker that offers gpu"), "{store}: {lacking}");
        let (_, taken) = said(&[]);
        assert!(taken.contains("a worker takes it; "), "{store}: {taken}");
    }
}

/// Its exit code is that of a run of it.
#[test]
fn what_is_over_is_not_handed_over() {
    let place = Place::new("runs.db").with_team(TALK);
    for (limit, exit, said) in
        [(&[][..], 0, "is over: "), (&["--max-turns", "1"], 3, "would end again at once: ")]
    {
        place.run(&[&["run", "team.yaml"], limit].concat(), exit);
        for json in [&[][..], &["--json"]] {
            let ran = place.run(&[&["resume", "last", "--detach"], json].concat(), exit);
            assert!(ran.out.is_empty() && ran.err.contains(said), "{}{}", ran.out, ran.err);
            assert!(!ran.err.contains("worker"), "{}", ran.err);
        }
    }
    assert!(place.cluster().1.is_empty());
}

#[test]
fn an_answer_says_whether_a_worker_continues_the_conversation() {
    let server = PostgresServer::start();
    for store in stores(server.as_ref()) {
        let place = Place::new(&store).with_team(OFFICE);
        place.run(&["run", "team.yaml"], 5);
        let answered = place.run(&["answer", "last", "Why not?"], 0).err;
        assert!(answered.contains("answered; `polylogue resume "), "{store}: {answered}");
        let _worker = seen_worker(&place, &[]);
        until("it is asked again", || {
            !place.run(&["waiting", "--json"], 0).out.is_empty() && place.cluster().1.is_empty()
        });
        let answered = place.run(&["answer", "last", "agreed"], 0).err;
        assert!(
            answered.contains("answered") && !answered.contains("polylogue resume"),
            "{store}: {answered}"
        );
    }
}

#[test]
fn a_conversation_that_runs_or_whose_process_has_died_is_said_to_be_such() {
    let Some(server) = PostgresServer::start() else { return };
    let behavior = Behavior::from(Playbook::new(|_, _| Answer::text("Hello.")));
    let slow = behavior.latency(Duration::from_secs(3600));
    let slow = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), slow).unwrap();
    let place = Place::new(&server.url()).with_model(&slow).with_team(TALK.split("script").next().unwrap());
    let run = ["run", "team.yaml", "--model", "openai:test"];
    let mut running = place.begin(&run, "first.out");
    until("its model is called", || slow.count() == 1);
    let cancelled = place.run(&["cancel", "last", "--now"], 0).err;
    assert!(cancelled.contains("cancelled"), "{cancelled}");
    running.end();
    let running = place.begin(&run, "second.out");
    until("the model of the other one is called", || slow.count() == 2);
    running.kill();
    let raised = place.run(&["raise", "last", "--max-turns", "50"], 0).err;
    assert!(raised.contains("stored; ") && raised.contains("if it has died"), "{raised}");
}
