//! Teams over HTTP.

use serde_json::Value;

use crate::home::{Home, of_type, serve};
use crate::models::{CALLS, SAID, TALK, said, talk};

#[test]
fn a_team_runs_over_http_streaming_and_not() {
    let runs = [("", true), ("--no-stream", false)].map(|(option, streams)| {
        let server = serve(talk());
        let home = Home::at(&server).with_team(TALK);
        let args = ["run", "team.yaml", "--model", "openai:test", option];
        let ran = home.run(args.strip_suffix(&[""]).unwrap_or(&args)).ok();
        assert!(ran.out.contains("\ndone: Bob said `GOODBYE` · 4 turns · "), "{}", ran.out);
        let requests = server.requests();
        assert_eq!(requests.len(), CALLS);
        assert!(requests.iter().all(|request| request.streams() == streams && request.model() == "test"));
        assert_eq!(server.violations(), [""; 0]);
        home.events()
    });
    for events in &runs {
        assert_eq!(said(events), SAID);
        assert_eq!(of_type(events, "tool_returned").len(), 2);
    }
    let kinds = |events: &[Value]| events.iter().map(|event| event["type"].clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&runs[0]), kinds(&runs[1]));
}

#[test]
fn usage_and_prices_of_the_team_become_cost() {
    let server = serve(talk());
    let home = Home::at(&server);
    let prices = "prices: {openai:test: {input: 1000000, output: 0}}\n";
    home.file("team.yaml", &format!("{TALK}{prices}"));
    home.file("free.yaml", &format!("{TALK}prices: {{openai:test: free}}\n"));
    // A dollar a token, so that the first call is over any budget of cents: it is not sent.
    let ran = home.run(&["run", "team.yaml", "-m", "openai:test", "--max-cost", "0.50"]).exits(4);
    let shown = "\nlimit: $0.50 ($0.00 spent, and the next call could cost up to $";
    assert!(ran.out.contains(shown), "{}", ran.out);
    assert_eq!(server.count(), 0);
    let ran = home.run(&["resume", "last", "--max-cost", "100000", "--max-tokens", "60"]).exits(4);
    let shown = "limit: 60 tokens (0 used, and the next call could take up to ";
    assert!(ran.out.contains(shown) && server.count() == 0, "{}", ran.out);
    let ran = home.run(&["resume", "last", "--max-tokens", "1000000"]).ok();
    assert!(ran.out.contains("\ndone: Bob said `GOODBYE` · 4 turns · "), "{}", ran.out);
    assert_eq!(server.count(), CALLS, "what was paid for was not asked again");
    let ran = home.run(&["run", "free.yaml", "-m", "openai:test", "--max-cost", "0.01"]).ok();
    assert!(ran.out.contains(" tokens · $0 · "), "{}", ran.out);
}

#[test]
fn a_budget_refuses_models_of_unknown_price_before_anything_is_sent() {
    let server = serve(talk());
    let home = Home::at(&server).with_team(TALK);
    let ran = home.run(&["run", "team.yaml", "-m", "openai:test", "--max-cost", "1"]).exits(2);
    assert!(ran.err.contains("there is a limit on cost, but its price is unknown"), "{}", ran.err);
    assert!(
        ran.err.contains("hint: add `prices: {\"openai:test\": {input: ..., output: ...}}`"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("or count its calls as free: `--allow unknown-price`"), "{}", ran.err);
    assert_eq!((server.count(), home.listed().len()), (0, 0));
    // So does the limit of an agent or of a chat.
    let limited = TALK.replacen("name: Alice", "name: Alice, limits: {cost: 1}", 1);
    assert_ne!(limited, TALK);
    home.file("agent.yaml", &limited);
    let ran = home.run(&["run", "agent.yaml", "-m", "openai:test"]).exits(2);
    assert!(ran.err.contains("there is a limit on cost, but its price is unknown"), "{}", ran.err);
    assert_eq!(server.count(), 0);
    // So does a cost at which a chat ends.
    home.file(
        "stop.yaml",
        "name: t\nmodel: openai:test\nagents: [{name: A}]\nchat: {participants: [A], stop: {any: [{max_turns: 2}, {max_cost: 1}]}}\n",
    );
    let checked = home.run(&["check", "stop.yaml"]).exits(2);
    assert!(checked.err.contains("there is a limit on cost, but its price is unknown"), "{}", checked.err);
    // So does a model that makes embeddings.
    home.file(
        "embeds.yaml",
        "name: t\nlimits: {cost: 1}\nmodel: openai:gpt-4o-mini\nmemory: {embed: 'openai:vectors'}\nagents: [{name: A, memory: true}]\n\
         chat: {participants: [A], stop: {max_turns: 2}}\n",
    );
    let checked = home.run(&["check", "embeds.yaml"]).exits(2);
    let line =
        "error: `openai:vectors`: there is a limit on cost, but its price is unknown\n --> embeds.yaml:4:";
    assert!(checked.err.contains(line), "{}", checked.err);
    home.file(
        "named.yaml",
        "name: t\nlimits: {cost: 1}\nmodel: openai:test\nagents: [{name: A}]\nchat: {participants: [A], stop: {max_turns: 2}}\n",
    );
    let checked = home.run(&["check", "named.yaml"]).exits(2);
    let line =
        "error: `openai:test`: there is a limit on cost, but its price is unknown\n --> named.yaml:3:8\n";
    assert!(checked.err.contains(line), "{}", checked.err);
    // Also the models of selectors, of summaries, and of teams within the team.
    home.file(
        "within.yaml",
        "name: w\nlimits: {cost: 1}\nmodel: openai:gpt-4o-mini\nagents: [{name: A}]\nteams: [{name: sub, file: named.yaml}]\n\
         chat:\n  participants: [A, sub]\n  pattern: {group: {select: {model: {model: 'openai:one'}}}}\n  stop: {max_turns: 2}\n  \
         summary: {reflect: {model: 'openai:two'}}\n",
    );
    let checked = home.run(&["check", "within.yaml"]).exits(2);
    for (model, place) in
        [("one", "within.yaml:8:"), ("two", "within.yaml:10:"), ("test", "named.yaml:3:8\n")]
    {
        let line =
            format!("`openai:{model}`: there is a limit on cost, but its price is unknown\n --> {place}");
        assert!(checked.err.replace("  --> ", " --> ").contains(&line), "{line}\n{}", checked.err);
    }
    home.run(&["check", "named.yaml", "--allow", "unknown-price"]).ok();
    for team in ["team.yaml", "agent.yaml"] {
        let before = server.count();
        home.run(&["run", team, "-m", "openai:test", "--max-cost", "1", "--allow", "unknown-price"]).ok();
        assert_eq!(server.count(), before + CALLS, "{team}");
    }
}
