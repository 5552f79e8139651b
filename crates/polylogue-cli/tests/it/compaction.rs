//! A compaction is said when it happens, and `show` has its summary next to the original messages.

use polylogue_test::server::{Answer, Behavior, Playbook};

use crate::home::{Home, KEY, serve};

const TEAM: &str = r#"name: t
task: Talk.
agents:
  - {name: Ann, compaction: {at: {messages: 6}, keep_messages: 1, pin: ["RULE:"]}}
  - {name: Bob, compaction: false}
chat: {participants: [Ann, Bob], stop: {max_turns: 8}}
script:
  - Ann: "First of all, the port is 80."
  - Bob: "RULE: no guesses."
  - Ann: "Secondly, it is late."
  - Bob: "It is."
  - Ann: "Thirdly, it rains."
  - Bob: "It does."
  - Ann: '{"task": "talk", "decisions": [], "facts": ["The port is 80."], "done": ["greeted"], "open": [], "files": [], "outdated": []}'
  - Ann: "Finally, I am done."
  - Bob: "So am I."
"#;

#[test]
fn a_compaction_is_said_and_shown() {
    let home = Home::new().with_team(TEAM);
    let run = home.run(&["run", "team.yaml", "--offline"]).ok();
    assert!(run.out.contains("Ann compacted 3 messages of its history, about "), "{}", run.out);
    assert!(!run.out.contains("summary: "), "{}", run.out);
    for args in [&["show", "last"][..], &["show", "last", "--markdown"]] {
        let shown = home.run(args).ok().out;
        for text in [
            "Ann compacted 3 messages of its history, about ",
            "Ann reads this instead of its messages up to event ",
            ", but for 1 pinned message:",
            "- The port is 80.",
            "- greeted",
            // The original.
            "First of all, the port is 80.",
        ] {
            assert!(shown.contains(text), "{args:?}: `{text}` is not in:\n{shown}");
        }
    }
    let sent = home.run(&["show", "last", "--as", "Ann"]).ok().out;
    assert!(sent.contains("RULE: no guesses.") && sent.contains("- The port is 80."), "{sent}");
    assert!(!sent.contains("First of all"), "{sent}");
    let cost = home.run(&["show", "last", "--cost"]).ok().out;
    assert!(cost.contains("compaction"), "{cost}");
}

/// The same model would end the run in the same way again.
#[test]
fn after_a_full_context_window_the_command_names_another_model_which_helps() {
    let server = serve(
        Behavior::from(Playbook::new(|received, _| match received.model() {
            "small" => Answer::error(400, "This model's maximum context length is 9 tokens.")
                .code("context_length_exceeded"),
            _ => Answer::text("It fits."),
        }))
        .key(KEY),
    );
    let home = Home::at(&server);
    let team =
        "name: t\ntask: Talk.\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\n";
    home.file("team.yaml", team);
    let full = home.run(&["run", "team.yaml", "--model", "openai:small"]).exits(3);
    assert!(full.out.contains("Ann's history does not fit into the context window"), "{}", full.out);
    let command = format!("`polylogue resume {} --model PROVIDER:MODEL`", home.id());
    assert!(full.out.contains(&command), "{}", full.out);
    for again in [&["resume", "last"][..], &["resume", "last", "Continue."]] {
        let full = home.run(again).exits(3);
        assert!(full.out.contains(&command), "{}", full.out);
    }
    let larger = home.run(&["resume", "last", "--model", "openai:large"]).ok();
    assert!(larger.out.contains("It fits."), "{}", larger.out);
}
