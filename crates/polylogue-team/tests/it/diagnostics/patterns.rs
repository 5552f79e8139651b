//! Invalid patterns: unknown participants, circles, no speaker, conditions that are none.

use expect_test::{Expect, expect};

use super::{check, check_used};

/// A team of A, B, Zoe (a person) and the chat `inner`, with this pattern.
fn check_pattern(pattern: &str, expected: &Expect) {
    let text = format!(
        "name: t\nagents: [{{name: A}}, {{name: B}}, {{name: Zoe, human: true}}]\nchat:\n  participants: [A, B]\n  stop: {{max_turns: 4}}\n  pattern: {pattern}\nchats: [{{name: inner, pattern: sequential, participants: [Zoe]}}]\n"
    );
    check_used(&text, expected);
}

#[test]
fn a_group_speaks_of_its_members_only() {
    check_pattern(
        "{group: {transitions: {allowed: {A: [B, C, B], D: []}}, allow_repeat_speaker: [E], select: {human: F}}}",
        &expect![[r#"
            error: `C` does not take part in this chat
             --> t.yaml:6:52
              |
            6 |  {transitions: {allowed: {A: [B, C, B], D: []}}, allow_repeat_speaker: [E], select: {human: F}}}
              |                                  ^
            hint: there are `A`, `B`

            warning[no-effect]: `B` is listed twice
             --> t.yaml:6:55
              |
            6 | ransitions: {allowed: {A: [B, C, B], D: []}}, allow_repeat_speaker: [E], select: {human: F}}}
              |                                  ^
            hint: list it once

            error: `D` does not take part in this chat
             --> t.yaml:6:59
              |
            6 | itions: {allowed: {A: [B, C, B], D: []}}, allow_repeat_speaker: [E], select: {human: F}}}
              |                                  ^
            hint: there are `A`, `B`

            error: `transitions` already define who can speak twice in a row
             --> t.yaml:6:68
              |
            6 | allowed: {A: [B, C, B], D: []}}, allow_repeat_speaker: [E], select: {human: F}}}
              |                                  ^^^^^^^^^^^^^^^^^^^^
            hint: to let a participant repeat, add it to its own list in `transitions`

            error: `E` does not take part in this chat
             --> t.yaml:6:91
              |
            6 |  D: []}}, allow_repeat_speaker: [E], select: {human: F}}}
              |                                  ^
            hint: there are `A`, `B`

            error: there is no agent, chat or team `F`
             --> t.yaml:6:111
              |
            6 | at_speaker: [E], select: {human: F}}}
              |                                  ^
            hint: there are `A`, `B`, `Zoe`, `inner`
        "#]],
    );
}

#[test]
fn a_human_selector_is_a_person_and_no_participant() {
    check_pattern(
        "{group: {select: {human: A}}}",
        &expect![[r#"
            error: the agent `A` is not a person
             --> t.yaml:6:37
              |
            6 |   pattern: {group: {select: {human: A}}}
              |                                     ^
            hint: use `select: model` for a model; a person has `human: true`
        "#]],
    );
    check_pattern(
        "{group: {select: {human: inner}}}",
        &expect![[r#"
            error: the chat `inner` is not a person
             --> t.yaml:6:37
              |
            6 |   pattern: {group: {select: {human: inner}}}
              |                                     ^^^^^
            hint: use `select: model` for a model; a person has `human: true`
        "#]],
    );
    check_pattern(
        "{group: {select: person}}",
        &expect![[r#"
            error: `select` cannot be `person`
             --> t.yaml:6:29
              |
            6 |   pattern: {group: {select: person}}
              |                             ^^^^^^
            hint: there are `round_robin`, `random`, `model`, `human`
        "#]],
    );
    check_pattern(
        "{group: {select: auto}}",
        &expect![[r#"
            error: `select` cannot be `auto`
             --> t.yaml:6:29
              |
            6 |   pattern: {group: {select: auto}}
              |                             ^^^^
            hint: AutoGen's `auto` is `model` here
        "#]],
    );
    check_pattern(
        "{group: {select: {model: {attempts: 0, role: assistant}}}}",
        &expect![[r#"
            error: `attempts` must be at least 1
             --> t.yaml:6:48
              |
            6 |   pattern: {group: {select: {model: {attempts: 0, role: assistant}}}}
              |                                                ^

            error: `role` cannot be `assistant`
             --> t.yaml:6:57
              |
            6 |   pattern: {group: {select: {model: {attempts: 0, role: assistant}}}}
              |                                                         ^^^^^^^^^
            hint: there are `system`, `user`
        "#]],
    );
}

#[test]
fn transitions_are_allowed_or_disallowed_and_lead_to_names() {
    check_pattern(
        "{group: {transitions: {A: [B]}}}",
        &expect![[r#"
            error: unknown key `A`
             --> t.yaml:6:35
              |
            6 |   pattern: {group: {transitions: {A: [B]}}}
              |                                   ^
            hint: there are `allowed`, `disallowed`
        "#]],
    );
    check_pattern(
        "{group: {transitions: {allowed: {A: {B: 1}, B: [A]}}}}",
        &expect![[r#"
            error: `A` must be a text, not a mapping
             --> t.yaml:6:48
              |
            6 |   pattern: {group: {transitions: {allowed: {A: {B: 1}, B: [A]}}}}
              |                                                ^^^^^^
        "#]],
    );
    // One name needs no list.
    check_pattern("{group: {transitions: {allowed: {A: B, B: A}}}}", &expect![""]);
}

#[test]
fn a_participant_that_transitions_do_not_name_is_a_warning() {
    check_pattern(
        "{group: {transitions: {allowed: {A: [A]}}}}",
        &expect![[r#"
            warning[unreachable]: no transition of the chat `t` leads to `B`
             --> t.yaml:4:21
              |
            4 |   participants: [A, B]
              |                     ^
            hint: add a transition to it, or remove it from `participants`"#]],
    );
}

#[test]
fn a_group_has_members() {
    check(
        "name: t\nagents: [{name: A}]\nchat: {participants: [], pattern: {group: {select: model}}, stop: {max_turns: 2}}\n",
        &expect![[r#"
            error: `participants` is empty
             --> t.yaml:3:22
              |
            3 | chat: {participants: [], pattern: {group: {select: model}}, stop: {max_turns: 2}}
              |                      ^^
        "#]],
    );
}

#[test]
fn states_lead_to_members_or_to_the_end() {
    check_pattern(
        "{state_machine: {start: Ann, after: {A: [{then: B}, {when: 'turns > 3', then: end}], B: stop, C: A}}}",
        &expect![[r#"
            error: `Ann` does not take part in this chat
             --> t.yaml:6:36
              |
            6 | pattern: {state_machine: {start: Ann, after: {A: [{then: B}, {when: 'turns > 3', then: end}], B: sto
              |                                  ^^^
            hint: there are `A`, `B`, `end`

            warning[never-holds]: this transition is unreachable
             --> t.yaml:6:64
              |
            6 | art: Ann, after: {A: [{then: B}, {when: 'turns > 3', then: end}], B: stop, C: A}}}
              |                                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: a transition without `when` is always taken: put it last

            error: `stop` does not take part in this chat
             --> t.yaml:6:100
              |
            6 | en: 'turns > 3', then: end}], B: stop, C: A}}}
              |                                  ^^^^
            hint: there are `A`, `B`, `end`

            error: `C` does not take part in this chat
             --> t.yaml:6:106
              |
            6 | urns > 3', then: end}], B: stop, C: A}}}
              |                                  ^
            hint: there are `A`, `B`
        "#]],
    );
}

#[test]
fn an_exit_after_one_that_is_always_taken_is_never_taken() {
    check_pattern(
        "{state_machine: {after: {A: [{then: B}, {when: 'turns > 3', then: end}]}}}",
        &expect![[r#"
            warning[dead-end]: no transition leads from `B` to another participant: the chat `t` ends after its turn
             --> t.yaml:6:41
              |
            6 |   pattern: {state_machine: {after: {A: [{then: B}, {when: 'turns > 3', then: end}]}}}
              |                                         ^^^^^^^^^
            hint: add a transition to `after`, or `B: end` if it is meant

            warning[never-holds]: this transition is unreachable
             --> t.yaml:6:52
              |
            6 |   pattern: {state_machine: {after: {A: [{then: B}, {when: 'turns > 3', then: end}]}}}
              |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: a transition without `when` is always taken: put it last"#]],
    );
}

#[test]
fn a_condition_that_cannot_hold_is_said_to_be_false_or_to_contradict_itself() {
    for (when, said) in [
        ("false", "this condition never holds: it is the constant `false`"),
        ("1 > 2", "this condition never holds: it is the constant `false`"),
        ("turns > 2 && false", "this condition never holds: a part of it is the constant `false`"),
        ("messages == -1", "this condition never holds: `messages` is a number, and never below 0"),
        (
            "speaker == 3",
            "this condition never holds: `speaker` is a text, and is compared with what is none",
        ),
        ("turns > 3 && turns < 2", "this condition contradicts itself: its parts exclude each other"),
    ] {
        let text = format!(
            "name: t\nagents: [{{name: A}}, {{name: B}}]\nchat: {{participants: [A, B], stop: {{when: '{when}', max_turns: 4}}}}\n"
        );
        let loaded = polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()).unwrap();
        let found: Vec<&str> = loaded.warnings.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(found, [said], "{when}");
    }
}

#[test]
fn a_condition_is_compiled_and_looked_through_when_the_file_is_read() {
    check_pattern(
        "{state_machine: {after: {A: [{when: 'turns >> 3', then: B}]}}}",
        &expect![[r#"
            error: `turns >> 3` is not a condition: unexpected '>'
             --> t.yaml:6:56
              |
            6 |   pattern: {state_machine: {after: {A: [{when: 'turns >> 3', then: B}]}}}
              |                                                        ^
        "#]],
    );
    check_pattern(
        "{state_machine: {after: {A: [{when: turn > 3, then: B}]}}}",
        &expect![[r#"
            error: `turn > 3` is not a condition: `turn` is unknown
             --> t.yaml:6:48
              |
            6 |   pattern: {state_machine: {after: {A: [{when: turn > 3, then: B}]}}}
              |                                                ^^^^^^^^
            hint: did you mean `turns`?
        "#]],
    );
    check_pattern(
        "{state_machine: {after: {A: [{when: last.text, then: B}]}}}",
        &expect![[r#"
            error: `last.text` is not a condition: it gives a text, and neither `true` nor `false`
             --> t.yaml:6:48
              |
            6 |   pattern: {state_machine: {after: {A: [{when: last.text, then: B}]}}}
              |                                                ^^^^^^^^^
        "#]],
    );
    check_pattern(
        "{state_machine: {after: {A: [{when: '', then: B}]}}}",
        &expect![[r#"
            error: `when` is empty
             --> t.yaml:6:48
              |
            6 |   pattern: {state_machine: {after: {A: [{when: '', then: B}]}}}
              |                                                ^^
        "#]],
    );
}

#[test]
fn a_condition_over_several_lines_has_its_mistake_at_its_place() {
    check(
        "name: t
agents: [{name: A}]
chat:
  participants: [A]
  stop:
    when: \"turns > 3 &&
      nosuch(turns)\"
    any:
      - when: |
          turns > 3 &&
          )
",
        &expect![[r#"
            error: `turns > 3 && nosuch(turns)` is not a condition: there is no function `nosuch`
             --> t.yaml:6:11
              |
            6 |     when: "turns > 3 &&
              |           ^^^^^^^^^^^^^
            hint: there are `contains`, `startsWith`, `endsWith`, `matches`, `size`, `int`, `double`, `string`, `has`

            error: this is not a condition: unexpected ')'
              --> t.yaml:10:11
               |
            10 |           turns > 3 &&
               |           ^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn a_participant_cannot_follow_itself() {
    check_pattern(
        "{dag: {A: [B], B: [A, C]}}",
        &expect![[r#"
            error: `A` depends on itself: A after B after A
             --> t.yaml:6:19
              |
            6 |   pattern: {dag: {A: [B], B: [A, C]}}
              |                   ^
            hint: remove one of these dependencies

            error: `C` does not take part in this chat
             --> t.yaml:6:34
              |
            6 |   pattern: {dag: {A: [B], B: [A, C]}}
              |                                  ^
            hint: there are `A`, `B`
        "#]],
    );
    check_pattern(
        "{dag: {A: [A, B, B]}}",
        &expect![[r#"
            error: `A` depends on itself: A after A
             --> t.yaml:6:19
              |
            6 |   pattern: {dag: {A: [A, B, B]}}
              |                   ^
            hint: remove one of these dependencies

            error: `B` is listed twice
             --> t.yaml:6:29
              |
            6 |   pattern: {dag: {A: [A, B, B]}}
              |                             ^
        "#]],
    );
    check_pattern(
        "{dag: {}}",
        &expect![[r#"
            error: `dag` is empty
             --> t.yaml:6:18
              |
            6 |   pattern: {dag: {}}
              |                  ^^
        "#]],
    );
}

#[test]
fn handoffs_need_an_agent_with_handoffs() {
    check_pattern(
        "{handoffs: {start: C, then: absent}}",
        &expect![[r#"
            error: no participant of this chat has `handoffs`
             --> t.yaml:6:13
              |
            6 |   pattern: {handoffs: {start: C, then: absent}}
              |             ^^^^^^^^
            hint: give an agent `handoffs`, such as `handoffs: [NAME]`

            error: `C` does not take part in this chat
             --> t.yaml:6:31
              |
            6 |   pattern: {handoffs: {start: C, then: absent}}
              |                               ^
            hint: there are `A`, `B`

            error: `absent` does not take part in this chat
             --> t.yaml:6:40
              |
            6 |   pattern: {handoffs: {start: C, then: absent}}
              |                                        ^^^^^^
            hint: there are `A`, `B`, `stay`, `end`
        "#]],
    );
    check_pattern(
        "{handoffs: {}}",
        &expect![[r#"
            error: no participant of this chat has `handoffs`
             --> t.yaml:6:13
              |
            6 |   pattern: {handoffs: {}}
              |             ^^^^^^^^
            hint: give an agent `handoffs`, such as `handoffs: [NAME]`

            error: `handoffs` needs the key `then`
             --> t.yaml:6:23
              |
            6 |   pattern: {handoffs: {}}
              |                       ^^
        "#]],
    );
    check(
        "name: t\nagents: [{name: A, handoffs: [A, C]}, {name: B}]\nchat: {participants: [A, B], pattern: {handoffs: {then: end}}}\n",
        &expect![[r#"
            error: `A` cannot hand over to itself
             --> t.yaml:2:31
              |
            2 | agents: [{name: A, handoffs: [A, C]}, {name: B}]
              |                               ^

            error: there is no agent, chat or team `C`
             --> t.yaml:2:34
              |
            2 | agents: [{name: A, handoffs: [A, C]}, {name: B}]
              |                                  ^
            hint: there are `A`, `B`
        "#]],
    );
    check(
        "name: t\nagents: [{name: A, handoffs: [B]}, {name: B}]\nchat: {participants: [A, B], stop: {max_turns: 3}}\n",
        &expect![[r#"
            warning[no-effect]: `A` takes part in no chat with the pattern `handoffs`
             --> t.yaml:2:20
              |
            2 | agents: [{name: A, handoffs: [B]}, {name: B}]
              |                    ^^^^^^^^
            hint: add it to a chat with the pattern `handoffs`, or remove `handoffs`
        "#]],
    );
}

#[test]
fn a_vote_has_options_and_voters() {
    check_pattern(
        "{debate: {options: [x, X], voters: [Q], tie: {chair: Z}}}",
        &expect![[r#"
        error: the option `X` is listed twice
         --> t.yaml:6:35
          |
        6 |   pattern: {debate: {options: [x, X], voters: [Q], tie: {chair: Z}}}
          |                                   ^

        error: there is no agent, chat or team `Q`
         --> t.yaml:6:48
          |
        6 |   pattern: {debate: {options: [x, X], voters: [Q], tie: {chair: Z}}}
          |                                                ^
        hint: there are `A`, `B`, `Zoe`, `inner`

        error: there is no agent, chat or team `Z`
         --> t.yaml:6:65
          |
        6 |   pattern: {debate: {options: [x, X], voters: [Q], tie: {chair: Z}}}
          |                                                                 ^
        hint: there are `A`, `B`, `Zoe`, `inner`
    "#]],
    );
    check_pattern(
        "{debate: {options: [x], tie: {again: 0}}}",
        &expect![[r#"
            error: a vote needs at least two options
             --> t.yaml:6:32
              |
            6 |   pattern: {debate: {options: [x], tie: {again: 0}}}
              |                                ^

            error: `again` must be at least 1
             --> t.yaml:6:49
              |
            6 |   pattern: {debate: {options: [x], tie: {again: 0}}}
              |                                                 ^
        "#]],
    );
}

#[test]
fn a_planner_takes_no_other_part() {
    check_pattern(
        "{orchestrator: {planner: A, progress_agent: P, max_stalls: 0}}",
        &expect![[r#"
            error: `A` is a participant and cannot be the planner
             --> t.yaml:6:37
              |
            6 |   pattern: {orchestrator: {planner: A, progress_agent: P, max_stalls: 0}}
              |                                     ^
            hint: remove it from `participants`: it does not take part in the chat

            error: there is no agent, chat or team `P`
             --> t.yaml:6:56
              |
            6 |   pattern: {orchestrator: {planner: A, progress_agent: P, max_stalls: 0}}
              |                                                        ^
            hint: there are `A`, `B`, `Zoe`, `inner`

            error: `max_stalls` must be at least 1
             --> t.yaml:6:71
              |
            6 |   pattern: {orchestrator: {planner: A, progress_agent: P, max_stalls: 0}}
              |                                                                       ^
        "#]],
    );
}

#[test]
fn a_graph_has_a_beginning_and_an_end_and_no_loop_without_one() {
    check_pattern(
        "{graph: {start: C, edges: {A: [B, {to: D}], E: A}, join: {F: any}}}",
        &expect![[r#"
            error: `C` does not take part in this chat
             --> t.yaml:6:28
              |
            6 |   pattern: {graph: {start: C, edges: {A: [B, {to: D}], E: A}, join: {F: any}}}
              |                            ^
            hint: there are `A`, `B`

            error: `D` does not take part in this chat
             --> t.yaml:6:51
              |
            6 |   pattern: {graph: {start: C, edges: {A: [B, {to: D}], E: A}, join: {F: any}}}
              |                                                   ^
            hint: there are `A`, `B`

            error: `E` does not take part in this chat
             --> t.yaml:6:56
              |
            6 |   pattern: {graph: {start: C, edges: {A: [B, {to: D}], E: A}, join: {F: any}}}
              |                                                        ^
            hint: there are `A`, `B`

            error: `F` does not take part in this chat
             --> t.yaml:6:70
              |
            6 |   pattern: {graph: {start: C, edges: {A: [B, {to: D}], E: A}, join: {F: any}}}
              |                                                                      ^
            hint: there are `A`, `B`
        "#]],
    );
    check_pattern(
        "{graph: {start: A, edges: {A: B, B: A}}}",
        &expect![[r#"
            error: the graph has no end: edges lead on from every node
             --> t.yaml:6:13
              |
            6 |   pattern: {graph: {start: A, edges: {A: B, B: A}}}
              |             ^^^^^
            hint: leave a node without edges to others"#]],
    );
    check_pattern(
        "{graph: {edges: {A: [{to: B, says: x, when: 'turns > 1'}]}}}",
        &expect![[r#"
            error: `says` and `when` cannot both be given
             --> t.yaml:6:50
              |
            6 |   pattern: {graph: {edges: {A: [{to: B, says: x, when: 'turns > 1'}]}}}
              |                                                  ^^^^
        "#]],
    );
    check_pattern(
        "{graph: {start: A, edges: {A: [A, {to: B, says: x}]}}}",
        &expect![[r#"
            error: `A` has edges with a condition, but also edges without one
             --> t.yaml:6:13
              |
            6 |   pattern: {graph: {start: A, edges: {A: [A, {to: B, says: x}]}}}
              |             ^^^^^
            hint: give each a condition, or use `otherwise`"#]],
    );
}

#[test]
fn late_joiners_are_not_participants_before() {
    check(
        "name: t
agents: [{name: A}, {name: B}]
chat:
  participants: [A]
  late_joiners: [{who: A, when: turns > 1}, {who: C, when: {says: {text: x, by: D}}}, {who: B, when: {}}, {who: B, when: 'x', history: some}]
  stop: {max_turns: 3}
",
        &expect![[r#"
            error: a participant `A` is already defined in line 4
             --> t.yaml:5:24
              |
            5 |   late_joiners: [{who: A, when: turns > 1}, {who: C, when: {says: {text: x, by: D}}}, {who: B, when:
              |                        ^
            hint: remove one of them, or give it another name

            error: there is no agent, chat or team `C`
             --> t.yaml:5:51
              |
            5 | {who: A, when: turns > 1}, {who: C, when: {says: {text: x, by: D}}}, {who: B, when: {}}, {who: B, wh
              |                                  ^
            hint: there are `A`, `B`

            error: `D` does not take part in this chat
             --> t.yaml:5:81
              |
            5 | o: C, when: {says: {text: x, by: D}}}, {who: B, when: {}}, {who: B, when: 'x', history: some}]
              |                                  ^
            hint: there are `A`, `C`, `B`, `user`

            error: `when` is empty
             --> t.yaml:5:102
              |
            5 | ext: x, by: D}}}, {who: B, when: {}}, {who: B, when: 'x', history: some}]
              |                                  ^^
            hint: there are `says`, `matches`, `when`, `max_turns`, `max_messages`, `max_tokens`, `max_cost`, `max_time`, `all`, `any`

            error: a participant `B` is already defined in line 5
             --> t.yaml:5:113
              |
            5 |  D}}}, {who: B, when: {}}, {who: B, when: 'x', history: some}]
              |                                  ^
            hint: remove one of them, or give it another name

            error: `x` is not a condition: `x` is unknown
             --> t.yaml:5:122
              |
            5 | ho: B, when: {}}, {who: B, when: 'x', history: some}]
              |                                  ^^^
            hint: there are `last`, `turns`, `messages`, `task`, `state`, `speaker`, `participants`

            error: `history` cannot be `some`
             --> t.yaml:5:136
              |
            5 | }}, {who: B, when: 'x', history: some}]
              |                                  ^^^^
            hint: there are `all`, `new`
        "#]],
    );
}

#[test]
fn a_name_made_of_a_chats_is_free() {
    check(
        "name: t\nagents: [{name: A}, {name: t_selector}]\nchat: {participants: [A, t_selector], pattern: {group: {select: {model: {}}}}, stop: {max_turns: 2}}\n",
        &expect![[r#"
            error: its speaker selector is called `t_selector`, and so is an agent
             --> t.yaml:3:66
              |
            3 | chat: {participants: [A, t_selector], pattern: {group: {select: {model: {}}}}, stop: {max_turns: 2}}
              |                                                                  ^^^^^
        "#]],
    );
}
