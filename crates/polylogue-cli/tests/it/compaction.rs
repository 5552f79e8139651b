//! A compaction is said when it happens, and `show` has its summary next to the original messages.

use crate::home::Home;

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
    let home = Home::new();
    home.file("team.yaml", TEAM);
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
