//! What is said of team files that are wrong: every mistake at its place, all at once.

use expect_test::{Expect, expect};
use polylogue_team::{Overrides, parse};

/// Compares what is said of a file with what is expected.
fn check(text: &str, expected: &Expect) {
    let said = match parse(text, "t.yaml", &Overrides::default()) {
        Ok(loaded) => loaded.warnings.to_string(),
        Err(diagnostics) => diagnostics.to_string(),
    };
    expected.assert_eq(&said);
}

/// A file that is right but for `more`, which is put behind it.
fn check_with(more: &str, expected: &Expect) {
    let text = format!(
        "name: t\nagents: [{{name: A}}, {{name: B}}]\nchat: {{participants: [A, B], stop: {{max_turns: 4}}}}\n{more}"
    );
    check(&text, expected);
}

#[test]
fn all_mistakes_of_a_file_are_found_at_once() {
    check(
        r#"
name: Stock Trading
modle: openai:gpt-4o
vars: {role: Trader}
agents:
  - name: Trader
    sytem: You are a {{rolle}}.
    parameters: {temperature: hot, top_p: 2, stop: X}
  - name: Trader
    system: "{{rolle}} and {{role}}"
    tools: [get_histroy]
  - description: nobody
chat:
  pattern: in_trun
  participants: [Tradr, work]
  max_turns: 5
  stop:
    matches: "(unclosed"
    max_turns: -1
chats:
  - name: work
    participants: []
    stop: {says: {text: DONE, by: Nobody}}
"#,
        &expect![[r#"
            error: the name `Stock Trading` has characters other than letters, digits, `_` and `-`
             --> t.yaml:2:7
              |
            2 | name: Stock Trading
              |       ^^^^^^^^^^^^^
            hint: use `Stock_Trading`

            error: unknown key `modle`
             --> t.yaml:3:1
              |
            3 | modle: openai:gpt-4o
              | ^^^^^
            hint: did you mean `model`?

            error: unknown key `sytem`
             --> t.yaml:7:5
              |
            7 |     sytem: You are a {{rolle}}.
              |     ^^^^^
            hint: did you mean `system`?

            error: `temperature` has to be a number, not a text
             --> t.yaml:8:31
              |
            8 |     parameters: {temperature: hot, top_p: 2, stop: X}
              |                               ^^^

            error: `top_p` has to be at most 1
             --> t.yaml:8:43
              |
            8 |     parameters: {temperature: hot, top_p: 2, stop: X}
              |                                           ^

            error: `stop` has to be a list, not a text
             --> t.yaml:8:52
              |
            8 |     parameters: {temperature: hot, top_p: 2, stop: X}
              |                                                    ^

            error: there is an agent `Trader` already, in line 6
             --> t.yaml:9:11
              |
            9 |   - name: Trader
              |           ^^^^^^

            error: there is no variable `rolle`
              --> t.yaml:10:14
               |
            10 |     system: "{{rolle}} and {{role}}"
               |              ^^^^^^^^^
            hint: did you mean `role`?

            error: there is no tool `get_histroy`
              --> t.yaml:11:13
               |
            11 |     tools: [get_histroy]
               |             ^^^^^^^^^^^
            hint: did you mean `get_history`?

            error: an item of `agents` needs the key `name`
              --> t.yaml:12:5
               |
            12 |   - description: nobody
               |     ^^^^^^^^^^^

            error: `pattern` cannot be `in_trun`
              --> t.yaml:14:12
               |
            14 |   pattern: in_trun
               |            ^^^^^^^
            hint: did you mean `in_turn`?

            error: there is no agent, chat or team `Tradr`
              --> t.yaml:15:18
               |
            15 |   participants: [Tradr, work]
               |                  ^^^^^
            hint: did you mean `Trader`?

            error: unknown key `max_turns`
              --> t.yaml:16:3
               |
            16 |   max_turns: 5
               |   ^^^^^^^^^
            hint: it goes into `stop`

            error: `(unclosed` is no regular expression: unclosed group
              --> t.yaml:18:14
               |
            18 |     matches: "(unclosed"
               |              ^^^^^^^^^^^

            error: `max_turns` has to be at least 1
              --> t.yaml:19:16
               |
            19 |     max_turns: -1
               |                ^^

            error: `participants` is empty
              --> t.yaml:22:19
               |
            22 |     participants: []
               |                   ^^
        "#]],
    );
}

#[test]
fn keys_that_are_misplaced_are_sent_where_they_belong() {
    check(
        "name: t\nagents: [{name: A, temperature: 1}]\nparticipants: [A]\nchat: {participants: [A], max_cost: 1}\n",
        &expect![[r#"
            error: unknown key `temperature`
             --> t.yaml:2:20
              |
            2 | agents: [{name: A, temperature: 1}]
              |                    ^^^^^^^^^^^
            hint: it goes into `parameters`

            error: unknown key `participants`
             --> t.yaml:3:1
              |
            3 | participants: [A]
              | ^^^^^^^^^^^^
            hint: it goes into `chat`

            error: unknown key `max_cost`
             --> t.yaml:4:27
              |
            4 | chat: {participants: [A], max_cost: 1}
              |                           ^^^^^^^^
            hint: it goes into `stop`
        "#]],
    );
}

#[test]
fn values_of_the_wrong_type() {
    check(
        r#"
name: 42
description: yes
task: true
model: gpt
vars: [a]
agents: {name: A}
chat:
  participants: A
  stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time_s: .inf}
  circles: {repetition: 0, similarity: 2}
  summary: reflect
  max_turns_cap: 99999999999999999999
limits:
"#,
        &expect![[r#"
            error: `name` has to be a text, not a number
             --> t.yaml:2:7
              |
            2 | name: 42
              |       ^^
            hint: put it in quotes: "42"

            error: `task` has to be a text, not `true`
             --> t.yaml:4:7
              |
            4 | task: true
              |       ^^^^
            hint: put it in quotes: "true"

            error: `gpt` is no model
             --> t.yaml:5:8
              |
            5 | model: gpt
              |        ^^^
            hint: write `provider:model`, such as `openai:gpt-4o-mini`

            error: `vars` has to be a mapping, not a list
             --> t.yaml:6:7
              |
            6 | vars: [a]
              |       ^^^

            error: `agents` has to be a list, not a mapping
             --> t.yaml:7:9
              |
            7 | agents: {name: A}
              |         ^^^^^^^^^

            error: `participants` has to be a list, not a text
             --> t.yaml:9:17
              |
            9 |   participants: A
              |                 ^

            error: `max_turns` has to be a whole number, not a text
              --> t.yaml:10:21
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time_s: .inf}
               |                     ^^^^
            hint: leave out the quotation marks

            error: `max_tokens` has to be a whole number
              --> t.yaml:10:39
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time_s: .inf}
               |                                       ^^^

            error: `says` has to be a text or a mapping, not a list
              --> t.yaml:10:50
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time_s: .inf}
               |                                                  ^^^

            error: `max_cost` has to be at least 0
              --> t.yaml:10:65
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time_s: .inf}
               |                                                                 ^^

            error: `max_time_s` has to be a number, not a text
              --> t.yaml:10:81
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time_s: .inf}
               |                                                                                 ^^^^

            error: `repetition` has to be at least 2
              --> t.yaml:11:25
               |
            11 |   circles: {repetition: 0, similarity: 2}
               |                         ^

            error: `similarity` has to be at most 1
              --> t.yaml:11:40
               |
            11 |   circles: {repetition: 0, similarity: 2}
               |                                        ^

            error: `summary` cannot be `reflect`
              --> t.yaml:12:12
               |
            12 |   summary: reflect
               |            ^^^^^^^
            hint: it takes more than a word: `summary: {reflect: ...}`

            error: `max_turns_cap` has to be at most 1000000
              --> t.yaml:13:18
               |
            13 |   max_turns_cap: 99999999999999999999
               |                  ^^^^^^^^^^^^^^^^^^^^

            error: `limits` is empty
              --> t.yaml:14:7
               |
            14 | limits:
               |       ^
            hint: give it a mapping, or leave it out
        "#]],
    );
}

#[test]
fn a_missing_key_is_shown_where_it_is_missing() {
    check(
        "agents:\n  - human: true\n",
        &expect![[r#"
        error: a team needs the key `name`
         --> t.yaml:1:1
          |
        1 | agents:
          | ^^^^^^

        error: a team needs the key `chat`
         --> t.yaml:1:1
          |
        1 | agents:
          | ^^^^^^

        error: an item of `agents` needs the key `name`
         --> t.yaml:2:5
          |
        2 |   - human: true
          |     ^^^^^
    "#]],
    );
    check(
        "[]",
        &expect![[r#"
        error: a team has to be a mapping, not a list
         --> t.yaml:1:1
          |
        1 | []
          | ^^
    "#]],
    );
    check(
        "",
        &expect![[r#"
        error: the file is empty
         --> t.yaml:1:1
          |
        1 | 
          | ^
        hint: a team has at least `name`, `agents` and `chat`
    "#]],
    );
    check(
        "# nothing but a comment\n",
        &expect![[r#"
        error: the file is empty
         --> t.yaml:1:1
          |
        1 | # nothing but a comment
          | ^
        hint: a team has at least `name`, `agents` and `chat`
    "#]],
    );
}

#[test]
fn names_are_legal_unique_and_not_the_users() {
    check(
        r"
name: t
agents: [{name: user}, {name: a b}, {name: A}, {name: A}, {name: t_summary}]
chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
chats:
  - {name: A, participants: [A], stop: {max_turns: 1}}
",
        &expect![[r#"
            error: no agent can be called `user`
             --> t.yaml:3:17
              |
            3 | agents: [{name: user}, {name: a b}, {name: A}, {name: A}, {name: t_summary}]
              |                 ^^^^
            hint: `user` is whoever gives the task; a person in the chat has a name of their own

            error: the name `a b` has characters other than letters, digits, `_` and `-`
             --> t.yaml:3:31
              |
            3 | agents: [{name: user}, {name: a b}, {name: A}, {name: A}, {name: t_summary}]
              |                               ^^^
            hint: use `a_b`

            error: there is an agent `A` already, in line 3
             --> t.yaml:3:55
              |
            3 | agents: [{name: user}, {name: a b}, {name: A}, {name: A}, {name: t_summary}]
              |                                                       ^

            error: `A` takes part already
             --> t.yaml:4:26
              |
            4 | chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
              |                          ^

            error: `t` cannot take part in a chat
             --> t.yaml:4:29
              |
            4 | chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
              |                             ^
            hint: it is the outermost chat; one that takes part in others stands in `chats`

            error: there is no agent, chat or team `B`
             --> t.yaml:4:32
              |
            4 | chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
              |                                ^
            hint: there is `user`, `A`, `A`, `t_summary`, `A`

            error: the author of this summary is called `t_summary`, and so is an agent
             --> t.yaml:4:68
              |
            4 | chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
              |                                                                    ^^^^^^^

            error: there is an agent `A` already, in line 3
             --> t.yaml:6:12
              |
            6 |   - {name: A, participants: [A], stop: {max_turns: 1}}
              |            ^

            error: the chat `A` takes part in itself: A > A
             --> t.yaml:6:30
              |
            6 |   - {name: A, participants: [A], stop: {max_turns: 1}}
              |                              ^
        "#]],
    );
}

#[test]
fn chats_do_not_contain_themselves() {
    check(
        r"
name: t
agents: [{name: A}]
chat: {participants: [one], stop: {max_turns: 1}}
chats:
  - {name: one, participants: [A, two], stop: {max_turns: 1}}
  - {name: two, participants: [three, A], stop: {max_turns: 1}}
  - {name: three, participants: [one], stop: {max_turns: 1}}
  - {name: four, participants: [four], stop: {max_turns: 1}}
",
        &expect![[r#"
            error: the chat `one` takes part in itself: one > two > three > one
             --> t.yaml:8:34
              |
            8 |   - {name: three, participants: [one], stop: {max_turns: 1}}
              |                                  ^^^

            error: the chat `four` takes part in itself: four > four
             --> t.yaml:9:33
              |
            9 |   - {name: four, participants: [four], stop: {max_turns: 1}}
              |                                 ^^^^
        "#]],
    );
}

#[test]
fn openings_and_stops_name_participants() {
    check(
        r"
name: t
agents: [{name: Ann}, {name: Bob}, {name: Cyd}]
chat:
  participants: [Ann, Bob]
  opening: [{from: An, to: [Bob, Cyd], text: hi}, '{{task}}', {from: user, to: user, text: '{{task}} {{name}}'}]
  stop: {all: [{says: {text: x, by: [Cyd, user]}}, {any: [{matches: {pattern: '[', by: Bobby}}]}, {}]}
",
        &expect![[r#"
            error: `An` does not take part in this chat
             --> t.yaml:6:20
              |
            6 |   opening: [{from: An, to: [Bob, Cyd], text: hi}, '{{task}}', {from: user, to: user, text: '{{task}}
              |                    ^^
            hint: did you mean `Ann`?

            error: `Cyd` does not take part in this chat
             --> t.yaml:6:34
              |
            6 |   opening: [{from: An, to: [Bob, Cyd], text: hi}, '{{task}}', {from: user, to: user, text: '{{task}}
              |                                  ^^^
            hint: there is `Ann`, `Bob`

            error: `user` does not take part in this chat
             --> t.yaml:6:80
              |
            6 | i}, '{{task}}', {from: user, to: user, text: '{{task}} {{name}}'}]
              |                                  ^^^^
            hint: there is `Ann`, `Bob`

            error: there is no variable `name`
             --> t.yaml:6:102
              |
            6 |  user, to: user, text: '{{task}} {{name}}'}]
              |                                  ^^^^^^^^
            hint: define it: `vars: {name: ...}`

            error: `Cyd` does not take part in this chat
             --> t.yaml:7:38
              |
            7 | op: {all: [{says: {text: x, by: [Cyd, user]}}, {any: [{matches: {pattern: '[', by: Bobby}}]}, {}]}
              |                                  ^^^
            hint: there is `Ann`, `Bob`

            error: `[` is no regular expression: unclosed character class
             --> t.yaml:7:79
              |
            7 | r]}}, {any: [{matches: {pattern: '[', by: Bobby}}]}, {}]}
              |                                  ^^^

            error: `Bobby` does not take part in this chat
             --> t.yaml:7:88
              |
            7 | y: [{matches: {pattern: '[', by: Bobby}}]}, {}]}
              |                                  ^^^^^
            hint: did you mean `Bob`?

            error: an item of `all` is empty
             --> t.yaml:7:99
              |
            7 | s: {pattern: '[', by: Bobby}}]}, {}]}
              |                                  ^^
            hint: there is `all`, `any`, `matches`, `max_cost`, `max_messages`, `max_time_s`, `max_tokens`, `max_turns`, `says`
        "#]],
    );
}

#[test]
fn people_have_no_model_and_no_script() {
    check(
        r"
name: t
agents: [{name: Me, human: true, model: openai:x, tools: []}, {name: A, sees: {prefix: {Mee: x, user: y, Me: z}}}]
chat: {participants: [Me, A], stop: {max_turns: 2}}
script:
  - Me: hello
  - t: hello
  - B: hello
  - t_summary: hello
  - A: {say: hi, sayy: x}
  - A: {delay_ms: 3}
  - A: {}
  - A: one
    B: two
  - hello
  - A: {calls: [{tool: x, args: {limit: 2, deep: '{{x}}'}}, {args: []}]}
",
        &expect![[r#"
            error: a person has no `model`
             --> t.yaml:3:34
              |
            3 | agents: [{name: Me, human: true, model: openai:x, tools: []}, {name: A, sees: {prefix: {Mee: x, user
              |                                  ^^^^^
            hint: leave out `model`, or `human: true`

            error: a person has no `tools`
             --> t.yaml:3:51
              |
            3 | e, human: true, model: openai:x, tools: []}, {name: A, sees: {prefix: {Mee: x, user: y, Me: z}}}]
              |                                  ^^^^^
            hint: leave out `tools`, or `human: true`

            error: nobody is called `Mee`
             --> t.yaml:3:89
              |
            3 | : []}, {name: A, sees: {prefix: {Mee: x, user: y, Me: z}}}]
              |                                  ^^^
            hint: did you mean `Me`?

            error: `Me` is a person, and speaks for themselves
             --> t.yaml:6:5
              |
            6 |   - Me: hello
              |     ^^

            error: no agent is called `t`
             --> t.yaml:7:5
              |
            7 |   - t: hello
              |     ^
            hint: there is `A`

            error: no agent is called `B`
             --> t.yaml:8:5
              |
            8 |   - B: hello
              |     ^
            hint: there is `A`

            error: no agent is called `t_summary`
             --> t.yaml:9:5
              |
            9 |   - t_summary: hello
              |     ^^^^^^^^^
            hint: there is `A`

            error: unknown key `sayy`
              --> t.yaml:10:18
               |
            10 |   - A: {say: hi, sayy: x}
               |                  ^^^^
            hint: did you mean `say`?

            error: this step needs one of `say`, `think`, `calls` and `error`
              --> t.yaml:11:5
               |
            11 |   - A: {delay_ms: 3}
               |     ^

            error: `A` is empty
              --> t.yaml:12:8
               |
            12 |   - A: {}
               |        ^^
            hint: there is `calls`, `delay_ms`, `error`, `expect`, `finish`, `pace`, `say`, `think`, `usage`

            error: an item of `script` takes one key only, and `B` is another
              --> t.yaml:14:5
               |
            14 |     B: two
               |     ^

            error: no agent is called `B`
              --> t.yaml:14:5
               |
            14 |     B: two
               |     ^
            hint: there is `A`

            error: an item of `script` has to be a mapping, not a text
              --> t.yaml:15:5
               |
            15 |   - hello
               |     ^^^^^

            error: an item of `calls` needs the key `tool`
              --> t.yaml:16:62
               |
            16 |   - A: {calls: [{tool: x, args: {limit: 2, deep: '{{x}}'}}, {args: []}]}
               |                                                              ^^^^

            error: `args` has to be a text or a mapping, not a list
              --> t.yaml:16:68
               |
            16 |   - A: {calls: [{tool: x, args: {limit: 2, deep: '{{x}}'}}, {args: []}]}
               |                                                                    ^^
        "#]],
    );
}

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
            hint: it is in system texts, prompts and openings: the task is given when a chat begins

            error: there is no variable `zz`
             --> t.yaml:4:27
              |
            4 | description: "{{a}} \u0041{{zz}}"
              |                           ^^^^^^
            hint: there is `2c`, `a`, `b`, `task`, `unused`

            error: no variable can be called `task`
             --> t.yaml:5:20
              |
            5 | vars: {a: 1, b: x, task: y, 2c: z, unused: 5}
              |                    ^^^^
            hint: the task is known as `{{task}}` anyway; its default stands in `task`

            error: no variable can be called `2c`
             --> t.yaml:5:29
              |
            5 | vars: {a: 1, b: x, task: y, 2c: z, unused: 5}
              |                             ^^
            hint: a name begins with a letter and goes on with letters, digits, `_` and `-`

            error: there is no variable `B`
             --> t.yaml:6:37
              |
            6 | agents: [{name: A, system: "{{ a }} {{B}} {{task}} {b} {{{b}}}"}]
              |                                     ^^^^^
            hint: did you mean `b`?

            error: the name `{{a}}` does not begin with a letter
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
            hint: it is in system texts, prompts and openings: the task is given when a chat begins
        "#]],
    );
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    check(
        r"
name: t
vars: {a: 1, unused: 2}
agents: [{name: A, system: '{{a}}'}, {name: Idle}]
chat: {participants: [A]}
chats: [{name: lonely, participants: [Idle], stop: {max_turns: 1}}]
",
        &expect![[r#"
            warning: the variable `unused` is not used
             --> t.yaml:3:14
              |
            3 | vars: {a: 1, unused: 2}
              |              ^^^^^^
            hint: write `{{unused}}` where it belongs, or leave it out

            warning: the agent `Idle` takes part in nothing
             --> t.yaml:4:45
              |
            4 | agents: [{name: A, system: '{{a}}'}, {name: Idle}]
              |                                             ^^^^
            hint: name it among the `participants` of a chat that is reached from `chat`, or leave it out

            warning: nothing ends the chat `t` before its 100th turn
             --> t.yaml:5:8
              |
            5 | chat: {participants: [A]}
              |        ^^^^^^^^^^^^
            hint: give it a `stop`, such as `stop: {max_turns: 20}`

            warning: the chat `lonely` takes part in nothing
             --> t.yaml:6:16
              |
            6 | chats: [{name: lonely, participants: [Idle], stop: {max_turns: 1}}]
              |                ^^^^^^
            hint: name it among the `participants` of a chat that is reached from `chat`, or leave it out
        "#]],
    );
}

#[test]
fn yaml_that_is_broken() {
    check(
        "name: t\n\tagents: []\n",
        &expect![[r#"
            error: this is no YAML: while scanning a plain scalar, found a tab
             --> t.yaml:1:7
              |
            1 | name: t
              |       ^
            hint: indent with spaces, not with tabs
        "#]],
    );
    check(
        "name: note: this\n",
        &expect![[r#"
            error: this is no YAML: mapping values are not allowed in this context
             --> t.yaml:1:11
              |
            1 | name: note: this
              |           ^
            hint: a text that holds `: ` has to be in quotes, and the keys of one mapping begin in the same column
        "#]],
    );
    check(
        "name: t\nagents: [\n",
        &expect![[r#"
        error: this is no YAML: unclosed bracket '['
         --> t.yaml:2:9
          |
        2 | agents: [
          |         ^
    "#]],
    );
    check(
        "name: 'abc\n",
        &expect![[r#"
            error: this is no YAML: invalid indentation in multiline quoted scalar
             --> t.yaml:2:1
              |
            2 | 
              | ^
            hint: close the quotation mark, or write `|` and the text on lines of its own
        "#]],
    );
    check(
        "name: t\n description: x\n",
        &expect![[r#"
            error: this is no YAML: mapping values are not allowed in this context
             --> t.yaml:2:13
              |
            2 |  description: x
              |             ^
            hint: a text that holds `: ` has to be in quotes, and the keys of one mapping begin in the same column
        "#]],
    );
    check(
        "a: 1\n---\nb: 2\n",
        &expect![[r#"
        error: a second document begins here
         --> t.yaml:2:1
          |
        2 | ---
          | ^^^
        hint: a file holds one team: leave out the `---`
    "#]],
    );
    check(
        "%YAML 1.2\n---\nname: t\n",
        &expect![[r#"
        error: this is no YAML: YAML directives are disallowed
         --> t.yaml:1:1
          |
        1 | %YAML 1.2
          | ^
        hint: leave out the line that begins with `%`
    "#]],
    );
    check(
        "name: \u{7}\n",
        &expect![[r#"
            error: this is no YAML: unexpected character: `\u{7}'
             --> t.yaml:1:7
              |
            1 | name: �
              |       ^
            hint: take it out
        "#]],
    );
}

#[test]
fn yaml_that_means_something_else_than_it_seems_to() {
    check_with(
        "task: {{topic}}\n",
        &expect![[r#"
            error: a text that begins with `{{` has to be in quotes
             --> t.yaml:4:7
              |
            4 | task: {{topic}}
              |       ^^^^^^^^
            hint: write "{{topic}}"
        "#]],
    );
    check_with(
        "task: *important*\n",
        &expect![[r#"
        error: there is no anchor `&important*` before this
         --> t.yaml:4:7
          |
        4 | task: *important*
          |       ^^^^^^^^^^^
        hint: a text that begins with `*` has to be in quotes: "*important*"
    "#]],
    );
    check_with(
        "task: !python/object:os.system ls\n",
        &expect![[r#"
            error: the tag `!python/object:os.system` means nothing here
             --> t.yaml:4:7
              |
            4 | task: !python/object:os.system ls
              |       ^^^^^^^^^^^^^^^^^^^^^^^^
            hint: leave it out
        "#]],
    );
    check_with(
        "model: openai:a\nmodel: openai:b\n",
        &expect![[r#"
        error: `model` is there already, in line 4
         --> t.yaml:5:1
          |
        5 | model: openai:b
          | ^^^^^
    "#]],
    );
    check_with(
        "? [a, b]\n: x\n",
        &expect![[r#"
            error: a list or mapping cannot be a key
             --> t.yaml:4:3
              |
            4 | ? [a, b]
              |   ^^^^^^
            hint: put it in quotes if it is a text

            error: unknown key `[a, b]`
             --> t.yaml:4:3
              |
            4 | ? [a, b]
              |   ^^^^^^
            hint: there is `agents`, `chat`, `chats`, `description`, `limits`, `model`, `name`, `prices`, `script`, `script_pace`, `task`, `teams`, `vars`
        "#]],
    );
}

#[test]
fn prices_and_windows_take_one_of_several_forms() {
    check(
        r"
name: t
prices: {'a:b': fre, 'c:d': {input: 1}, 'e:f': {input: 1, output: 2, cache: 1}, 'g:h': 3}
agents: [{name: A, sees: {window: {message: 3}, names: sometimes}}, {name: B, sees: {window: {messages: 0, tokens: 5}}}]
chat: {participants: [A, B], stop: {max_turns: 1}}
",
        &expect![[r#"
            error: `a:b` cannot be `fre`
             --> t.yaml:3:17
              |
            3 | prices: {'a:b': fre, 'c:d': {input: 1}, 'e:f': {input: 1, output: 2, cache: 1}, 'g:h': 3}
              |                 ^^^
            hint: did you mean `free`?

            error: `c:d` needs the key `output`
             --> t.yaml:3:30
              |
            3 | prices: {'a:b': fre, 'c:d': {input: 1}, 'e:f': {input: 1, output: 2, cache: 1}, 'g:h': 3}
              |                              ^^^^^

            error: unknown key `cache`
             --> t.yaml:3:70
              |
            3 | prices: {'a:b': fre, 'c:d': {input: 1}, 'e:f': {input: 1, output: 2, cache: 1}, 'g:h': 3}
              |                                                                      ^^^^^
            hint: did you mean `cached`?

            error: `g:h` has to be `free` or a mapping, not a number
             --> t.yaml:3:88
              |
            3 | prices: {'a:b': fre, 'c:d': {input: 1}, 'e:f': {input: 1, output: 2, cache: 1}, 'g:h': 3}
              |                                                                                        ^

            error: unknown key `message`
             --> t.yaml:4:36
              |
            4 | ents: [{name: A, sees: {window: {message: 3}, names: sometimes}}, {name: B, sees: {window: {messages
              |                                  ^^^^^^^
            hint: did you mean `messages`?

            error: `names` cannot be `sometimes`
             --> t.yaml:4:56
              |
            4 | s: {window: {message: 3}, names: sometimes}}, {name: B, sees: {window: {messages: 0, tokens: 5}}}]
              |                                  ^^^^^^^^^
            hint: there is `auto`, `always`, `never`

            error: `messages` has to be at least 1
             --> t.yaml:4:105
              |
            4 | me: B, sees: {window: {messages: 0, tokens: 5}}}]
              |                                  ^

            error: `messages` and `tokens` cannot both be given
             --> t.yaml:4:108
              |
            4 |  B, sees: {window: {messages: 0, tokens: 5}}}]
              |                                  ^^^^^^
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
        error: a value is given for `nmae`, which is no variable of this team
         --> t.yaml:2:1
          |
        2 | vars: {name: y}
          | ^^^^
        hint: did you mean `name`?
    "#]]
    .assert_eq(&errors.to_string());
}
