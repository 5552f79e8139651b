//! A conversation that is resumed after its team file has changed.

use std::time::Duration;

use polylogue_test::server::{Answer, Playbook, Quirk};
use rustix::process::Signal;

use crate::home::{Home, of_type, serve, until};

const TEAM: &str = "name: t
task: Talk.
agents: [{name: Ann, system: You are brief.}, {name: Bob}]
chat: {participants: [Ann, Bob], stop: {max_turns: 2}}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}]
";

/// A conversation that has ended after two turns, whose team file now has `text`.
fn changed(text: &str) -> Home {
    let home = Home::new().with_team(TEAM);
    home.run(&["run", "team.yaml", "--offline", "--max-turns", "2"]).ok();
    home.file("team.yaml", text);
    home
}

const RESUME: [&str; 4] = ["resume", "last", "--max-turns", "2"];

#[test]
fn a_file_with_other_layout_is_not_another_version() {
    let home = changed(&format!("# A comment\n{TEAM}"));
    let resumed = home.run(&RESUME);
    assert!(!resumed.err.contains("has changed"), "{}", resumed.err);
    assert!(resumed.out.contains("three") && resumed.out.contains("four"), "{}", resumed.out);
}

#[test]
fn a_change_is_said_and_has_to_be_accepted() {
    let text = TEAM.replace("You are brief.", "You are long.").replace("{Ann: three}", "{Ann: drei}");
    let home = changed(&text);
    let refused = home.run(&RESUME).exits(2);
    for line in [
        "the team file `team.yaml` has changed since",
        "agent `Ann`: `system`: \"You are brief.\" -> \"You are long.\"",
        "`script` has changed",
        "--accept-changes",
        "--pinned",
    ] {
        assert!(refused.err.contains(line), "`{line}` is not in:\n{}", refused.err);
    }
    let pinned = home.run(&[&RESUME[..], &["--pinned"]].concat());
    assert!(pinned.out.contains("three"), "{}{}", pinned.out, pinned.err);

    let home = changed(&text);
    let accepted = home.run(&[&RESUME[..], &["--accept-changes"]].concat());
    assert!(accepted.out.contains("drei"), "{}{}", accepted.out, accepted.err);
    assert!(accepted.err.contains("`script` has changed"), "{}", accepted.err);
}

#[test]
fn an_accepted_change_is_in_the_log_and_not_asked_about_again() {
    let first = TEAM.replace("You are brief.", "You are long.");
    let home = changed(&first);
    home.run(&[&RESUME[..], &["--accept-changes"]].concat());
    let events = home.events();
    let logged = of_type(&events, "team_changed");
    assert_eq!(logged.len(), 1, "{events:?}");
    assert_eq!(logged[0]["changes"][0], "agent `Ann`: `system`: \"You are brief.\" -> \"You are long.\"");
    let shown = home.run(&["show", "last"]).ok().out;
    assert!(shown.contains("the team has changed: agent `Ann`: `system`: "), "{shown}");
    // It stands before what the changed team said.
    let place = |text: &str| shown.find(text).unwrap_or_else(|| panic!("no {text} in {shown}"));
    assert!(place("two") < place("the team has changed") && place("the team has changed") < place("three"));
    let again = home.run(&["resume", "last", "--max-turns", "2"]);
    assert!(!again.err.contains("has changed"), "{}", again.err);
    // Another change is listed alone: the accepted team is the one that it is compared with.
    home.file("team.yaml", &first.replace("{name: Bob}", "{name: Bob, system: You are new.}"));
    let refused = home.run(&RESUME).exits(2);
    assert!(refused.err.contains("agent `Bob`") && !refused.err.contains("agent `Ann`"), "{}", refused.err);
    let version = logged[0]["digest"].as_str().unwrap().get(..12).unwrap();
    let since = format!(
        "the team file `team.yaml` has changed since `{}` continued with its version {version} on 2",
        home.id()
    );
    assert!(refused.err.contains(&since) && refused.err.contains(" UTC:\n"), "{since}: {}", refused.err);
    assert!(refused.err.contains("`--pinned` with that version"), "{}", refused.err);
}

#[test]
fn a_call_in_flight_at_a_crash_counts_as_the_team_made_it_that_was_changed_since() {
    let words: String = (0..3_000).map(|n| format!("word{n} ")).collect();
    let server = serve(Playbook::new(move |_, earlier| match earlier {
        // Half a minute.
        0 => Answer::text(words.as_str()).with(Quirk::Pace(Duration::from_millis(10))),
        _ => Answer::text("Done."),
    }));
    let home = Home::at(&server);
    let team = "name: t\ntask: Talk.\nagents: [{name: Ann, system: You are brief., parameters: {max_tokens: 100}}]\n\
                chat: {participants: [Ann], stop: {max_turns: 1}}\n";
    home.file("team.yaml", team);
    let running = home.start(&["run", "team.yaml", "-m", "openai:test"]);
    until("a model is asked", || server.count() == 1);
    until("the turn is in the log", || !of_type(&home.events(), "turn_started").is_empty());
    running.signal(Signal::KILL);
    running.end();
    home.file("team.yaml", &team.replace("You are brief.", &"You are long. ".repeat(1_000)));
    home.run(&["resume", "last", "--accept-changes"]).ok();
    let events = home.events();
    let at = |is: &dyn Fn(&serde_json::Value) -> bool| events.iter().position(is).unwrap();
    let charged = at(&|event| event["type"] == "charged" && event["why"] == "crashed");
    assert!(events[charged]["tokens"].as_u64().unwrap() < 10_000, "{}", events[charged]);
    assert!(charged < at(&|event| event["type"] == "team_changed"), "{events:?}");
    let crashed = of_type(&events, "charged").iter().filter(|event| event["why"] == "crashed").count();
    assert_eq!(crashed, 1, "{events:?}");
}

#[test]
fn a_file_without_a_participant_of_the_conversation_is_refused_and_the_log_stays_unchanged() {
    let renamed = TEAM.replace("Bob", "Rob");
    let removed = TEAM.replace(", {name: Bob}", "").replace("[Ann, Bob]", "[Ann]");
    let removed = removed.replace(" {Bob: two},", "").replace(", {Bob: four}", "");
    for text in [renamed, removed] {
        let home = changed(&text);
        let before = home.events();
        let refused = home.run(&[&RESUME[..], &["--accept-changes"]].concat()).exits(2);
        let why = format!("`{}` cannot continue with `t`, which has no `Bob`", home.id());
        for part in [why.as_str(), "`--pinned` continues with the stored team"] {
            assert!(refused.err.contains(part), "`{part}` is not in:\n{}", refused.err);
        }
        assert_eq!(home.events(), before);
        let pinned = home.run(&[&RESUME[..], &["--pinned"]].concat());
        assert!(pinned.out.contains("three"), "{}{}", pinned.out, pinned.err);
    }
}

#[test]
fn a_harmless_change_is_said_and_accepted() {
    let home = changed(&TEAM.replace("task: Talk.", "task: Speak.\ndescription: Two talk."));
    let resumed = home.run(&RESUME);
    assert!(resumed.err.contains("`task`: \"Talk.\" -> \"Speak.\" (harmless)"), "{}", resumed.err);
    assert!(resumed.out.contains("three"), "{}", resumed.out);
}

#[test]
fn a_file_with_errors_or_without_a_file_leaves_the_stored_team() {
    let home = changed("name: t\nagent: []\nsecret: sk-abc\n");
    let refused = home.run(&RESUME).exits(2);
    assert!(refused.err.contains("and has errors") && !refused.err.contains("sk-abc"), "{}", refused.err);
    let pinned = home.run(&[&RESUME[..], &["--pinned"]].concat());
    assert!(pinned.out.contains("three"), "{}{}", pinned.out, pinned.err);

    let home = changed(TEAM);
    std::fs::remove_file(home.path("team.yaml")).unwrap();
    let refused = home.run(&[&RESUME[..], &["--accept-changes"]].concat()).exits(2);
    assert!(refused.err.contains("the team file `team.yaml` is gone"), "{}", refused.err);
    let resumed = home.run(&RESUME);
    assert!(resumed.out.contains("three"), "{}{}", resumed.out, resumed.err);
}

#[test]
fn a_change_is_said_also_if_another_file_of_the_team_is_gone() {
    let home = Home::new();
    let desk = "{name: desk, agents: [{name: Cy}], chat: {participants: [Cy], pattern: sequential}}";
    home.file("desk.yaml", desk);
    let team = TEAM
        .replace("agents:", "teams: [{name: desk, file: desk.yaml}]\nagents:")
        .replace("{name: Bob}", "{name: Bob, agent_tools: [desk]}");
    home.file("team.yaml", &team);
    home.run(&["run", "team.yaml", "--offline", "--max-turns", "2"]).ok();
    home.file("team.yaml", &team.replace("You are brief.", "You are long."));
    std::fs::remove_file(home.path("desk.yaml")).unwrap();
    let accepting = [&RESUME[..], &["--accept-changes"]].concat();
    for options in [&RESUME[..], &accepting] {
        let refused = home.run(options).exits(2);
        assert!(refused.err.contains("or a file that it names, has changed since"), "{}", refused.err);
    }
    let pinned = home.run(&[&RESUME[..], &["--pinned"]].concat());
    assert!(pinned.out.contains("three"), "{}{}", pinned.out, pinned.err);
}
