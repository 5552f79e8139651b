//! `--record` and `--replay`.

use serde_json::Value;

use crate::home::{Home, serve, undated};
use crate::models::{CALLS, SAID, TALK, said, talk};

/// A home with a recording of the talk in `talk.jsonl`, made with a server that is gone.
fn recorded() -> (Home, Vec<Value>) {
    let server = serve(talk());
    let home = Home::at(&server).with_team(TALK);
    home.run(&["run", "team.yaml", "-m", "openai:test", "--record", "talk.jsonl"]).ok();
    assert_eq!(server.count(), CALLS);
    let events = home.events();
    (home, events)
}

#[test]
fn a_recording_plays_the_same_transcript_without_a_server() {
    let (home, before) = recorded();
    let ran = home.run(&["run", "team.yaml", "--replay", "talk.jsonl"]).ok();
    assert!(!ran.err.contains("demonstration"), "{}", ran.err);
    assert_eq!(crate::home::timeless(&home.events()), crate::home::timeless(&before));
    assert_eq!(home.listed().len(), 2);
}

#[test]
fn a_changed_team_fails_naming_the_first_difference() {
    let (home, _) = recorded();
    home.file("changed.yaml", &TALK.replace("You are Bob.", "You are Bob the brave."));
    let ran = home.run(&["run", "changed.yaml", "--replay", "talk.jsonl"]).exits(1);
    expect_test::expect![[r#"
        participants: Alice, Bob

        user -> all:
        Talk about the weather.

        Alice -> Bob:
        It rains today.

        ✗ Bob failed (config): openai:test: call 1 of `Bob` is not the recorded one: `system` differs at character 12: it was `You are Bob.`, and is `You are Bob the brave.`
          hint: record it again; replayed was `talk.jsonl`

        failed: it can be resumed · 1 turn · 58 tokens · cost unknown · TIME
        `polylogue show ID` / `polylogue resume ID`
        --- 1
        talk: at most 100 turns a chat and 1000 model calls; no bound on tokens and cost: the length of a reply of `openai:test` has no known limit: set `max_tokens` in `parameters`. `polylogue check --price` has the parts.
        error (config): openai:test: call 1 of `Bob` is not the recorded one: `system` differs at character 12: it was `You are Bob.`, and is `You are Bob the brave.`
          hint: record it again; replayed was `talk.jsonl`
    "#]].assert_eq(&ran.masked(&home));
    assert_eq!(said(&home.events()), SAID[..2], "what was before it is kept");
    home.file("shorter.yaml", &TALK.replace("tools: [get_history]", "description: x"));
    let ran = home.run(&["run", "shorter.yaml", "--replay", "talk.jsonl"]).exits(1);
    expect_test::expect![[r#"
        talk: at most 100 turns a chat and 400 model calls; no bound on tokens and cost: the length of a reply of `openai:test` has no known limit: set `max_tokens` in `parameters`. `polylogue check --price` has the parts.
        error (config): openai:test: call 1 of `Bob` is not the recorded one: `tools` had 1 item, and has 0; the first without a counterpart was `{"name":"get_history","description":"Returns the last messages of this conversat…`
          hint: record it again; replayed was `talk.jsonl`
    "#]].assert_eq(&undated(&ran.err));
}

#[test]
fn a_recording_continues_with_its_run() {
    let server = serve(talk());
    let home = Home::at(&server).with_team(TALK);
    home.run(&["run", "team.yaml", "-m", "openai:test", "--record", "talk.jsonl", "--max-turns", "1"])
        .exits(3);
    home.run(&["resume", "last", "--record", "talk.jsonl", "--max-turns", "100"]).ok();
    drop(server);
    home.run(&["run", "team.yaml", "--replay", "talk.jsonl"]).ok();
    assert_eq!(said(&home.events()), SAID);
}

#[test]
fn a_recording_is_never_overwritten_and_one_that_is_none_is_refused() {
    let (home, _) = recorded();
    let before = std::fs::read(home.path("talk.jsonl")).unwrap();
    let ran = home.run(&["run", "team.yaml", "-m", "openai:test", "--record", "talk.jsonl"]).exits(2);
    expect_test::expect![[r#"
        error (config): the file `talk.jsonl` already exists
          hint: record to another file, or remove this one
    "#]]
    .assert_eq(&ran.err);
    assert_eq!(std::fs::read(home.path("talk.jsonl")).unwrap(), before);
    home.file("other.jsonl", "{\"hello\": 1}\n");
    let ran = home.run(&["run", "team.yaml", "--replay", "other.jsonl"]).exits(2);
    expect_test::expect![[r#"
        error (config): the file `other.jsonl` is not a recording
    "#]]
    .assert_eq(&ran.err);
    let ran = home.run(&["run", "team.yaml", "--replay", "missing.jsonl"]).exits(1);
    expect_test::expect![[r#"
        error (system): the recording `missing.jsonl` cannot be read: No such file or directory (os error 2)
    "#]]
    .assert_eq(&ran.err);
    assert_eq!(home.listed().len(), 1, "nothing was begun");
}

#[test]
fn a_recording_with_other_words_is_not_replayed_and_verify_says_where() {
    let (home, _) = recorded();
    let ran = home.run(&["verify", "--recording", "talk.jsonl"]).ok();
    assert_eq!(ran.out, format!("talk.jsonl intact {CALLS} calls\n"));
    let text = std::fs::read_to_string(home.path("talk.jsonl")).unwrap();
    let changed = text.replacen("It rains today.", "It snows today.", 1);
    assert_ne!(text, changed);
    home.file("talk.jsonl", &changed);
    let ran = home.run(&["verify", "--recording", "talk.jsonl"]).exits(1);
    assert!(
        ran.out.starts_with(
            "talk.jsonl damaged 0 calls are intact; line 2 of the recording `talk.jsonl` is damaged: "
        ),
        "{}",
        ran.out
    );
    let row = &home.run(&["verify", "--recording", "talk.jsonl", "--json"]).exits(1).lines()[0];
    assert_eq!((&row["state"], &row["calls"]), (&"damaged".into(), &0.into()));
    let ran = home.run(&["run", "team.yaml", "--replay", "talk.jsonl"]).exits(1);
    assert!(ran.err.contains("it is not what was written"), "{}", ran.err);
    assert!(!ran.out.contains("snows"), "{}", ran.out);
    home.file("talk.jsonl", &text[..text.len() - 10]);
    let ran = home.run(&["verify", "--recording", "talk.jsonl"]).ok();
    assert_eq!(
        ran.out,
        format!("talk.jsonl intact {} calls; the last line was cut off, and is left out\n", CALLS - 1)
    );
}
