//! What `check` says of who speaks when.

use expect_test::expect;

use crate::common;

/// A chat of A, B, and C of this pattern, in words.
fn words(pattern: &str) -> String {
    let text = format!(
        "name: t\nagents: [{{name: A, handoffs: [B]}}, {{name: B}}, {{name: C}}, {{name: Zoe, human: true}}]\nchat: {{participants: [A, B, C], pattern: {pattern}}}\n"
    );
    let team = common::team(&text);
    team.chats_in_words().remove(0).1
}

#[test]
fn a_single_participant_has_no_order() {
    for pattern in ["sequential", "parallel"] {
        let text =
            format!("name: t\nagents: [{{name: A}}]\nchat: {{participants: [A], pattern: {pattern}}}\n");
        let team = common::team(&text);
        assert_eq!(team.chats_in_words()[0].1, "A, once");
    }
}

#[test]
fn every_pattern_is_said_in_words() {
    let tasks = "{who: A, prompt: a, self_terminating: true}, {who: B, prompt: b}, {who: C, prompt: c}";
    let talk = |end: &str| format!("{{group_solve: {{tasks: [{tasks}], end: {end}}}}}");
    let patterns = [
        "round_robin".to_owned(),
        "sequential".to_owned(),
        "parallel".to_owned(),
        "{group: {select: round_robin}}".to_owned(),
        "{group: {select: random, transitions: {disallowed: {A: [A]}}}}".to_owned(),
        "{group: {select: model}}".to_owned(),
        "{group: {select: {human: Zoe}}}".to_owned(),
        "{state_machine: {start: B, after: {A: B}}}".to_owned(),
        "{state_machine: {start: [{when: turns > 1, then: C}, {then: B}], after: {A: B}}}".to_owned(),
        "{dag: {C: [A, B]}}".to_owned(),
        "{handoffs: {then: stay}}".to_owned(),
        "{handoffs: {start: B, then: end}}".to_owned(),
        "{handoffs: {then: C}}".to_owned(),
        "{debate: {options: [x, y]}}".to_owned(),
        "{debate: {options: [x, y, z], rounds: 2}}".to_owned(),
        "{orchestrator: {planner: Zoe}}".to_owned(),
        "{graph: {edges: {A: [B, C]}}}".to_owned(),
        "{graph: {start: A, edges: {A: [B, C]}}}".to_owned(),
        talk("max_iterations"),
        talk("first_completion"),
        talk("one_last_chat"),
        talk("one_last_group_chat"),
        talk("all_complete"),
        format!("{{tasks: [{tasks}]}}").replace(", self_terminating: true", ""),
    ];
    let said: Vec<String> = patterns.iter().map(|pattern| words(pattern)).collect();
    expect![[r#"
        A, B, and C, in turn
        A, B, and C, each once, in their order
        A, B, and C, each once, at the same time
        A, B, and C, in turn
        A, B, and C, selected at random, within what the transitions allow
        A, B, and C, selected by a model
        A, B, and C, selected by Zoe
        A, B, and C, state machine, starting with B
        A, B, and C, state machine, starting with C or B by conditions
        A, B, and C, each when its dependencies are finished
        A, B, and C, handoffs, starting with A; without a handoff the speaker stays
        A, B, and C, handoffs, starting with B; without a handoff it ends
        A, B, and C, handoffs, starting with A; without a handoff C is next
        A, B, and C, 1 round of arguments, then a vote on x and y
        A, B, and C, 2 rounds of arguments, then a vote on x, y, and z
        A, B, and C, as Zoe plans
        A, B, and C, along a graph
        A, B, and C, along a graph from A on
        A, B, and C, each with a task, talking for 5 iterations
        A, B, and C, each with a task, talking for 5 iterations, or until the first is complete
        A, B, and C, each with a task, talking for 5 iterations, or until the first is complete and one more has spoken
        A, B, and C, each with a task, talking for 5 iterations, or until the first is complete and every participant has spoken once more
        A, B, and C, each with a task, talking for 5 iterations, or until all are complete
        A, B, and C, 3 tasks alone, one after the other"#]].assert_eq(&said.join("\n"));
}

#[test]
fn a_society_is_said_in_words() {
    let text = "{name: t, agents: [{name: A}, {name: B}, {name: C}, {name: D}, {name: E}], chat: {participants: [A, B],
        pattern: {role_play: {user: B, assistant: A, specifier: C, planner: D, critic: {who: E}}}}}";
    let team = common::team(text);
    let words = "A and B, B instructs; C makes the task definite; D divides it; E chooses among proposals";
    assert_eq!(team.chats_in_words()[0].1, words);
}

#[test]
fn participants_who_join_are_named_or_counted() {
    let text = "{name: t, agents: [{name: A}, {name: B}],
        chat: {participants: [A], late_joiners: [{who: B, when: turns > 1}], stop: {max_turns: 2}}}";
    let team = common::team(text);
    assert_eq!(team.chats_in_words()[0].1, "A, in turn; B may join later");

    let names: Vec<String> = (1..=30).map(|n| format!("A{n}")).collect();
    let agents: Vec<String> = names.iter().map(|name| format!("{{name: {name}}}")).collect();
    let text = format!(
        "{{name: t, agents: [{}], chat: {{participants: [{}], pattern: sequential}}}}",
        agents.join(", "),
        names.join(", ")
    );
    let team = common::team(&text);
    let words = &team.chats_in_words()[0].1;
    assert!(words.ends_with("A11, A12, and 18 others, each once, in their order"), "{words}");
}
