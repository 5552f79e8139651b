//! Societies that cannot be: of others than two, of those who cannot play a role, with parts given twice.

use expect_test::{Expect, expect};

use super::check;

/// A team of A, B, C, Zoe (a person) and L (who replies in layers), with a society of A and B.
#[track_caller]
fn check_society(chat: &str, society: &str, expected: &Expect) {
    check(
        &format!(
            "name: t\nagents: [{{name: A}}, {{name: B}}, {{name: C}}, {{name: Zoe, human: true, human_input: always}}, {{name: L, default_reply: x}}]\nchat:\n  {chat}\n  pattern: {{role_play: {{{society}}}}}\n"
        ),
        expected,
    );
}

#[test]
fn two_have_the_two_roles() {
    check_society(
        "participants: [A, B, C]",
        "user: A, assistant: A",
        &expect![[r#"
            error: `B` takes part, and has no role
             --> t.yaml:4:21
              |
            4 |   participants: [A, B, C]
              |                     ^
            hint: a role-play has two participants: the user role and the assistant role

            error: `C` takes part, and has no role
             --> t.yaml:4:24
              |
            4 |   participants: [A, B, C]
              |                        ^
            hint: a role-play has two participants: the user role and the assistant role

            error: `A` cannot have both roles
             --> t.yaml:5:45
              |
            5 |   pattern: {role_play: {user: A, assistant: A}}
              |                                             ^
        "#]],
    );
    check_society(
        "participants: [A]",
        "user: A, assistant: {who: Bo}",
        &expect![[r#"
            error: `Bo` does not take part in this chat
             --> t.yaml:5:51
              |
            5 |   pattern: {role_play: {user: A, assistant: {who: Bo}}}
              |                                                   ^^
            hint: there is `A`
        "#]],
    );
    check_society(
        "participants: [A, B]",
        "user: A",
        &expect![[r#"
            error: `role_play` needs the key `assistant`
             --> t.yaml:5:25
              |
            5 |   pattern: {role_play: {user: A}}
              |                         ^^^^
        "#]],
    );
}

#[test]
fn roles_need_distinct_suitable_agents() {
    check_society(
        "participants: [A, L]",
        "user: A, assistant: L, specifier: Zoe, planner: A, critic: {who: Absent}",
        &expect![[r#"
            error: `L` cannot take a role in a role-play: its `default_reply` can also reply
             --> t.yaml:5:45
              |
            5 |   pattern: {role_play: {user: A, assistant: L, specifier: Zoe, planner: A, critic: {who: Absent}}}
              |                                             ^
            hint: name an agent that replies only by a model

            error: `Zoe` cannot take a role in a role-play: it is a person
             --> t.yaml:5:59
              |
            5 |   pattern: {role_play: {user: A, assistant: L, specifier: Zoe, planner: A, critic: {who: Absent}}}
              |                                                           ^^^
            hint: name an agent that replies only by a model

            error: `A` takes part, and has no other role besides
             --> t.yaml:5:73
              |
            5 |   pattern: {role_play: {user: A, assistant: L, specifier: Zoe, planner: A, critic: {who: Absent}}}
              |                                                                         ^
            hint: remove it from `participants`: it does not take part in the chat

            error: there is no agent `Absent`
             --> t.yaml:5:90
              |
            5 |   pattern: {role_play: {user: A, assistant: L, specifier: Zoe, planner: A, critic: {who: Absent}}}
              |                                                                                          ^^^^^^
            hint: there are `A`, `B`, `C`, `Zoe`, `L`
        "#]],
    );
    check_society(
        "participants: [A, B]",
        "user: A, assistant: B, specifier: {who: C}, planner: C, critic: {who: Zoe}, done: ' '",
        &expect![[r#"
            error: `C` already has a role
             --> t.yaml:5:78
              |
            5 | B, specifier: {who: C}, planner: C, critic: {who: Zoe}, done: ' '}}
              |                                  ^

            error: a marker must not be blank
             --> t.yaml:5:107
              |
            5 | er: C, critic: {who: Zoe}, done: ' '}}
              |                                  ^^^
        "#]],
    );
}

#[test]
fn settings_that_the_pattern_makes_itself_are_refused_elsewhere() {
    check_society(
        "opening: x\n  introductions: true\n  late_joiners: [{who: C, when: {max_turns: 1}}]\n  max_turns: 3\n  participants: [A, B]",
        "user: A, assistant: B, max_round: 3",
        &expect![[r#"
            error: a role-play has no `opening`
             --> t.yaml:4:3
              |
            4 |   opening: x
              |   ^^^^^^^
            hint: leave it out: the user role receives the opening of `texts`

            error: a role-play has no `introductions`
             --> t.yaml:5:3
              |
            5 |   introductions: true
              |   ^^^^^^^^^^^^^
            hint: leave it out: the rules of the roles say who the other one is

            error: a role-play has no `late_joiners`
             --> t.yaml:6:3
              |
            6 |   late_joiners: [{who: C, when: {max_turns: 1}}]
              |   ^^^^^^^^^^^^
            hint: leave it out: two talk, from the beginning to the end

            error: a role-play has no `max_turns`
             --> t.yaml:7:3
              |
            7 |   max_turns: 3
              |   ^^^^^^^^^
            hint: leave it out: it ends by `max_rounds`

            error: unknown key `max_round`
             --> t.yaml:9:48
              |
            9 |   pattern: {role_play: {user: A, assistant: B, max_round: 3}}
              |                                                ^^^^^^^^^
            hint: did you mean `max_rounds`?
        "#]],
    );
}
