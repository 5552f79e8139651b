//! Variables that are not there, and places where none can be.

use expect_test::expect;
use polylogue_team::{Overrides, parse};

use super::check;
use crate::common;

#[test]
fn variables_are_defined_and_used_where_they_can_be() {
    check(
        r#"
name: t
task: About {{task}}
description: "{{a}} \u0041{{zz}}"
vars: {a: 1, b: x, task: y, 2c: z, unused: 5}
agents: [{name: A, system: "{{ a }} {{B}} {{task}} {b} {{{b}}}"}]
chat: {participants: ["{{a}}"], stop: {says: "{{task}}", max_turns: 1}}
"#,
        &expect![[r#"
            error: `{{task}}` is not known here
             --> t.yaml:3:13
              |
            3 | task: About {{task}}
              |             ^^^^^^^^
            hint: its value is known only when a chat begins

            error: unknown variable `zz`
             --> t.yaml:4:27
              |
            4 | description: "{{a}} \u0041{{zz}}"
              |                           ^^^^^^
            hint: there are `2c`, `a`, `b`, `task`, `unused`

            error: no variable can be called `task`
             --> t.yaml:5:20
              |
            5 | vars: {a: 1, b: x, task: y, 2c: z, unused: 5}
              |                    ^^^^
            hint: the task is available as `{{task}}` anyway; set its default in `task`

            error: no variable can be called `2c`
             --> t.yaml:5:29
              |
            5 | vars: {a: 1, b: x, task: y, 2c: z, unused: 5}
              |                             ^^
            hint: a name begins with a letter, followed by letters, digits, `_` and `-`

            error: unknown variable `B`
             --> t.yaml:6:37
              |
            6 | agents: [{name: A, system: "{{ a }} {{B}} {{task}} {b} {{{b}}}"}]
              |                                     ^^^^^
            hint: did you mean `b`?

            error: the name `{{a}}` has characters other than letters, digits, spaces, `_`, `-`, `'`, `’` and `·`
             --> t.yaml:7:23
              |
            7 | chat: {participants: ["{{a}}"], stop: {says: "{{task}}", max_turns: 1}}
              |                       ^^^^^^^
            hint: use `a`

            error: `{{task}}` is not known here
             --> t.yaml:7:47
              |
            7 | chat: {participants: ["{{a}}"], stop: {says: "{{task}}", max_turns: 1}}
              |                                               ^^^^^^^^
            hint: its value is known only when a chat begins
        "#]],
    );
}

#[test]
fn values_that_the_caller_gives_are_checked_too() {
    let vars = [("nmae".to_owned(), "x".to_owned())].into();
    let overrides = Overrides { vars, ..Overrides::default() };
    let text = "name: t\nvars: {name: y}\nagents: [{name: A, system: '{{name}}'}]\nchat: {participants: [A], stop: {max_turns: 1}}";
    let errors = parse(text, "t.yaml", &overrides).unwrap_err();
    expect![[r#"
        error: a value is given for `nmae`, which is not a variable of this team
         --> t.yaml:2:1
          |
        2 | vars: {name: y}
          | ^^^^
        hint: did you mean `name`?
    "#]]
    .assert_eq(&errors.to_string());
    let errors = parse(&text.replace("vars: {name: y}\n", "").replace("{{name}}", "x"), "t.yaml", &overrides);
    let hint = "hint: it has none: leave the value out, or declare the variable under `vars`";
    assert!(errors.unwrap_err().to_string().contains(hint));
}

#[test]
fn what_a_missing_variable_would_be_is_not_guessed_at() {
    for key in ["model: '{{x}}'", "human_input: '{{x}}'", "terminate_on: {matches: '({{x}}'}"] {
        let team = format!(
            "{{name: t, task: go, agents: [{{name: A, {key}}}],
               chat: {{participants: [A], pattern: sequential}}}}"
        );
        let errors = common::wrong(&team);
        assert_eq!(errors.matches("error: ").count(), 1, "{errors}");
        assert!(errors.contains("unknown variable `x`"), "{errors}");
    }
}
