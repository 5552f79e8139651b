//! Options of `worker` and `move`: what would have no effect, or could run no conversation, is refused at the start.

use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use rustix::process::Signal;

use crate::commands::TALK;
use crate::place::{Place, until};

#[test]
fn what_would_have_no_effect_or_could_run_nothing_is_refused_at_the_start() {
    let place = Place::new("runs.db").with_team(TALK);
    let id = place.detach(&["team.yaml"]);
    let one = "`polylogue worker --only ID --record FILE` records one";
    for (args, wrong) in [
        (&["worker", "--max-calls", "1"][..], "'--max-calls'"),
        (&["worker", "--on-limit", "ask"], "'--on-limit'"),
        (&["worker", "--record", "calls.jsonl"], one),
        (&["serve", "team.yaml", "--worker", "--record", "calls.jsonl"], one),
        (&["run", "team.yaml", "--detach", "--record", "calls.jsonl"], one),
        (&["worker", "--replay", "team.yaml"], "is not a recording"),
        // Of the port that is listened at, nothing is known.
        (&["worker", "--advertise", "10.0.0.7:9100"], "--internal-listen"),
        (&["worker", "--metrics", "9100"], "it is not an address with a port: write `127.0.0.1:9100`"),
        (&["worker", "--model", "gpt-4o"], "has no provider"),
        (&["move", &*id, "--team", "team.yaml", "--max-cost", "1"], "'--max-cost'"),
        (&["move", &*id, "--team", "team.yaml", "--timeout", "5"], "`--timeout` has no effect with `move`"),
    ] {
        let refused = place.run(args, 2);
        assert!(refused.err.contains(wrong), "{args:?}: {}", refused.err);
    }
    assert!(place.events(&id).is_empty(), "no worker has begun it");
    // An endpoint of a team can have this name.
    let worker = place.worker(&["--model", "house:big", "--at-once", "1"]);
    until("it warns", || worker.log().contains("warning: there is no provider `house`"));
    until("it says how many it runs", || worker.log().contains("up to 1 conversation at once"));
}

/// What a signal has stopped is run again by its scheduler; what a person has stopped is not.
#[test]
fn a_worker_of_one_conversation_says_by_its_exit_code_whether_to_run_it_again() {
    let behavior = Behavior::from(Playbook::new(|_, _| Answer::text("Hello.")));
    let behavior = behavior.latency(std::time::Duration::from_millis(100));
    let model = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap();
    let place = Place::new("runs.db").with_model(&model);
    let team = "
name: talk
task: Talk.
agents: [{name: Ann, system: You are Ann.}, {name: Bob, system: You are Bob.}]
chat: {participants: [Ann, Bob], max_turns: 1000, stop: {max_turns: 900}, loop_detection: off}
";
    place.file("team.yaml", team);
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let only = || {
        let calls = model.count();
        let worker = place.begin(&["worker", "--only", &id], "only.out");
        until("they talk", || model.count() > calls);
        worker
    };
    let mut worker = only();
    worker.signal(Signal::TERM);
    assert_eq!(worker.end(), 1, "{}", worker.log());
    assert!(worker.log().contains(&format!("`{id}` continues when it is run again")), "{}", worker.log());
    assert_eq!(place.cluster().1[0]["state"], "ready");
    let mut worker = only();
    place.run(&["cancel", &id], 0);
    assert_eq!(worker.end(), 6, "{}", worker.log());
    assert!(place.cluster().1.is_empty(), "{:?}", place.cluster());
}
