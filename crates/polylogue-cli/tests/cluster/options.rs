//! Options of `worker` and `move`: what would have no effect, or could run no conversation, is refused at the start.

use crate::commands::TALK;
use crate::place::{Place, until};

#[test]
fn what_would_have_no_effect_or_could_run_nothing_is_refused_at_the_start() {
    let place = Place::new("runs.db");
    place.file("team.yaml", TALK);
    let id = place.detach(&["team.yaml"]);
    let one = "`polylogue worker --only ID --record FILE` records one";
    for (args, wrong) in [
        (&["worker", "--max-calls", "1"][..], "'--max-calls'"),
        (&["worker", "--on-limit", "ask"], "'--on-limit'"),
        (&["worker", "--record", "calls.jsonl"], one),
        (&["serve", "team.yaml", "--worker", "--record", "calls.jsonl"], one),
        (&["run", "team.yaml", "--detach", "--record", "calls.jsonl"], one),
        (&["worker", "--replay", "team.yaml"], "is not a recording"),
        (&["worker", "--model", "gpt-4o"], "has no provider"),
        (&["move", &*id, "--team", "team.yaml", "--max-cost", "1"], "'--max-cost'"),
        (&["move", &*id, "--team", "team.yaml", "--timeout", "5"], "`--timeout` has no effect with `move`"),
    ] {
        let refused = place.run(args, 2);
        assert!(refused.err.contains(wrong), "{args:?}: {}", refused.err);
    }
    assert!(place.events(&id).is_empty(), "no worker has begun it");
    // An endpoint of a team can have this name.
    let worker = place.worker(&["--model", "house:big"]);
    until("it warns", || worker.log().contains("warning: there is no provider `house`"));
}
