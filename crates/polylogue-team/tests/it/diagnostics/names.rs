//! Unknown names, duplicate names, and chats without a termination condition or a start.

use expect_test::expect;
use polylogue_team::{Overrides, parse};

use super::check;

#[test]
fn the_error_for_the_selector_of_a_renamed_team_names_the_selector_that_there_is() {
    check(
        r"
name: launch
agents: [{name: A, description: a}, {name: B, description: b}]
chat: {participants: [A, B], pattern: {group: {select: model}}, stop: {max_turns: 1}}
script:
  - group_selector: A
  - A: Hi
",
        &expect![[r#"
            error: no agent is called `group_selector`
             --> t.yaml:6:5
              |
            6 |   - group_selector: A
              |     ^^^^^^^^^^^^^^
            hint: did you mean `launch_selector`? This agent is named after `launch`
        "#]],
    );
}

#[test]
fn names_are_legal_unique_and_not_the_users() {
    check(
        r"
name: t
agents: [{name: user}, {name: a@b}, {name: A}, {name: A}, {name: t_summary}]
chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
chats:
  - {name: A, participants: [A], stop: {max_turns: 1}}
",
        &expect![[r#"
            error: no agent can be called `user`
             --> t.yaml:3:17
              |
            3 | agents: [{name: user}, {name: a@b}, {name: A}, {name: A}, {name: t_summary}]
              |                 ^^^^
            hint: `user` is the person who gives the task; give a person who takes part another name

            error: the name `a@b` has characters other than letters, digits, spaces, `_`, `-`, `'`, `’` and `·`
             --> t.yaml:3:31
              |
            3 | agents: [{name: user}, {name: a@b}, {name: A}, {name: A}, {name: t_summary}]
              |                               ^^^
            hint: use `a_b`

            error: an agent `A` is already defined in line 3
             --> t.yaml:3:55
              |
            3 | agents: [{name: user}, {name: a@b}, {name: A}, {name: A}, {name: t_summary}]
              |                                                       ^
            hint: remove one of them, or give it another name

            error: a participant `A` is already defined in line 4
             --> t.yaml:4:26
              |
            4 | chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
              |                          ^
            hint: remove one of them, or give it another name

            error: `t` cannot take part in a chat
             --> t.yaml:4:29
              |
            4 | chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
              |                             ^
            hint: it is the outermost chat; chats that take part in others are in `chats`

            error: the chat `t` takes part in itself: t > t
             --> t.yaml:4:29
              |
            4 | chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
              |                             ^
            hint: remove `t` here: it would wait for its own end

            error: the author of its summary is called `t_summary`, and so is an agent
             --> t.yaml:4:68
              |
            4 | chat: {participants: [A, A, t, B], stop: {max_turns: 1}, summary: {reflect: {}}}
              |                                                                    ^^^^^^^

            error: an agent `A` is already defined in line 3
             --> t.yaml:6:12
              |
            6 |   - {name: A, participants: [A], stop: {max_turns: 1}}
              |            ^
            hint: remove one of them, or give it another name

            error: the agent `A` cannot take part in the chat `A`
             --> t.yaml:6:30
              |
            6 |   - {name: A, participants: [A], stop: {max_turns: 1}}
              |                              ^
            hint: give them different names; the outermost chat has that of the team
        "#]],
    );
}

#[test]
fn an_agent_has_another_name_than_its_team() {
    check(
        "name: bot\nagents: [{name: bot}]\nchat: {participants: [bot], pattern: sequential}\n",
        &expect![[r#"
            error: the agent `bot` cannot take part in the chat `bot`
             --> t.yaml:3:23
              |
            3 | chat: {participants: [bot], pattern: sequential}
              |                       ^^^
            hint: give them different names; the outermost chat has that of the team
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
            hint: remove `one` here: it would wait for its own end

            error: the chat `four` takes part in itself: four > four
             --> t.yaml:9:33
              |
            9 |   - {name: four, participants: [four], stop: {max_turns: 1}}
              |                                 ^^^^
            hint: remove `four` here: it would wait for its own end
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
            hint: there are `Ann`, `Bob`

            error: `user` does not take part in this chat
             --> t.yaml:6:80
              |
            6 | i}, '{{task}}', {from: user, to: user, text: '{{task}} {{name}}'}]
              |                                  ^^^^
            hint: there are `Ann`, `Bob`

            error: unknown variable `name`
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
            hint: there are `Ann`, `Bob`, `user`

            error: `[` is not a valid regular expression: unclosed character class
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
            hint: there are `says`, `matches`, `when`, `max_turns`, `max_messages`, `max_tokens`, `max_cost`, `max_time`, `all`, `any`
        "#]],
    );
}

#[test]
fn people_have_no_model_and_no_script() {
    check(
        r"
name: t
agents: [{name: Me, human: true, model: openai:x, tools: []}, {name: A, view: {prefix: {Mee: x, user: y, Me: z}}}]
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
            3 | agents: [{name: Me, human: true, model: openai:x, tools: []}, {name: A, view: {prefix: {Mee: x, user
              |                                  ^^^^^
            hint: remove `model`, or `human: true`; `human_input` lets a person reply for a model

            error: a person has no `tools`
             --> t.yaml:3:51
              |
            3 | e, human: true, model: openai:x, tools: []}, {name: A, view: {prefix: {Mee: x, user: y, Me: z}}}]
              |                                  ^^^^^
            hint: remove `tools`, or `human: true`; `human_input` lets a person reply for a model

            error: there is no agent, chat or team `Mee`
             --> t.yaml:3:89
              |
            3 | : []}, {name: A, view: {prefix: {Mee: x, user: y, Me: z}}}]
              |                                  ^^^
            hint: did you mean `Me`?

            error: `Me` is a person and cannot have a script
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
            hint: there are `say`, `think`, `calls`, `delay_ms`, `pace`, `expect`, `usage`, `error`, `finish`

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

            error: an item of `script` must be a mapping, not a text
              --> t.yaml:15:5
               |
            15 |   - hello
               |     ^^^^^

            error: an item of `calls` needs the key `tool`
              --> t.yaml:16:62
               |
            16 |   - A: {calls: [{tool: x, args: {limit: 2, deep: '{{x}}'}}, {args: []}]}
               |                                                              ^^^^

            error: `args` must be a text or a mapping, not a list
              --> t.yaml:16:68
               |
            16 |   - A: {calls: [{tool: x, args: {limit: 2, deep: '{{x}}'}}, {args: []}]}
               |                                                                    ^^
        "#]],
    );
}

#[test]
fn a_probable_mistake_is_a_warning() {
    check(
        r"
name: t
vars: {a: 1, unused: 2}
agents: [{name: A, system: '{{a}}'}, {name: Idle}]
chat: {participants: [A]}
chats: [{name: lonely, participants: [Idle], stop: {max_turns: 1}}]
",
        &expect![[r#"
            warning[unused]: the variable `unused` is not used
             --> t.yaml:3:14
              |
            3 | vars: {a: 1, unused: 2}
              |              ^^^^^^
            hint: write `{{unused}}` where it belongs, or leave it out

            warning[unreachable]: the agent `Idle` takes part in nothing
             --> t.yaml:4:45
              |
            4 | agents: [{name: A, system: '{{a}}'}, {name: Idle}]
              |                                             ^^^^
            hint: name it among the `participants` of a chat that is reached from `chat`, or leave it out

            warning[no-stop]: nothing ends the chat `t` before its 100th turn
             --> t.yaml:5:8
              |
            5 | chat: {participants: [A]}
              |        ^^^^^^^^^^^^
            hint: give it `pattern: sequential`, for one turn, or a `stop`, such as `stop: {max_turns: 20}`

            warning[unreachable]: the chat `lonely` takes part in nothing
             --> t.yaml:6:16
              |
            6 | chats: [{name: lonely, participants: [Idle], stop: {max_turns: 1}}]
              |                ^^^^^^
            hint: name it among the `participants` of a chat that is reached from `chat`, or leave it out
        "#]],
    );
}

#[test]
fn a_chat_whose_summary_has_an_author_has_a_shorter_name() {
    let long = "x".repeat(57);
    let text = format!(
        "name: {long}\nagents: [{{name: A}}]\nchat: {{participants: [A], stop: {{max_turns: 1}}, summary: {{reflect: {{}}}}}}\n"
    );
    check(
        &text,
        &expect![[r#"
            error: the name of this chat can have at most 56 characters
             --> t.yaml:3:59
              |
            3 | chat: {participants: [A], stop: {max_turns: 1}, summary: {reflect: {}}}
              |                                                           ^^^^^^^
            hint: the author of its summary gets this name with `_summary` appended
        "#]],
    );
}

#[test]
fn the_author_of_a_summary_is_an_agent() {
    check(
        "name: t
agents: [{name: A}, {name: Zoe, human: true}]
chat: {participants: [A, x, y], stop: {max_turns: 2}, summary: {reflect: {by: Q, model: 'a:b'}}}
chats:
  - {name: x, participants: [A], stop: {max_turns: 2}, summary: {reflect: {by: Zoe}}}
  - {name: y, participants: [Zoe], stop: {max_turns: 2}, summary: {reflect: {by: A, parameters: {seed: 1}}}}
",
        &expect![[r#"
            error: there is no agent `Q`
             --> t.yaml:3:79
              |
            3 | chat: {participants: [A, x, y], stop: {max_turns: 2}, summary: {reflect: {by: Q, model: 'a:b'}}}
              |                                                                               ^
            hint: there are `A`, `Zoe`, `x`, `y`

            error: `Q` uses its own `model`
             --> t.yaml:3:82
              |
            3 | chat: {participants: [A, x, y], stop: {max_turns: 2}, summary: {reflect: {by: Q, model: 'a:b'}}}
              |                                                                                  ^^^^^
            hint: remove it, or remove `by` for a private author

            error: `Zoe` cannot write the summary: it is a person
             --> t.yaml:5:80
              |
            5 |   - {name: x, participants: [A], stop: {max_turns: 2}, summary: {reflect: {by: Zoe}}}
              |                                                                                ^^^
            hint: name an agent that replies only by a model

            error: `A` uses its own `parameters`
             --> t.yaml:6:85
              |
            6 | : 2}, summary: {reflect: {by: A, parameters: {seed: 1}}}}
              |                                  ^^^^^^^^^^
            hint: remove it, or remove `by` for a private author
        "#]],
    );
}

#[test]
fn a_keyword_as_a_name_is_reported_where_it_is_used_as_one() {
    let text = "name: t\nagents: [{name: A}, {name: end}]\nchat:\n  participants: [A, end]\n  \
                pattern: {state_machine: {start: A, after: {A: end, end: A}}}\n  stop: {max_turns: 2}\n";
    let found = parse(text, "t.yaml", &Overrides::default()).unwrap_err();
    assert_eq!(found.errors(), 1, "{found}");
    let found = found.to_string();
    assert!(found.contains("error: `end` is a keyword here and cannot be a participant"), "{found}");
    assert!(found.contains(" --> t.yaml:5:50\n"), "{found}");
}
