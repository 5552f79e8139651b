//! Keys, types and values that are none.

use expect_test::expect;

use super::check;

#[test]
fn all_mistakes_of_a_file_are_found_at_once() {
    check(
        r#"
name: Stock@Trading
modle: openai:gpt-4o
vars: {role: Trader}
agents:
  - name: Trader
    sytem: You are a {{rolle}}.
    parameters: {temperature: hot, top_p: 2, stop: X}
  - name: Trader
    system: "{{rolle}} and {{role}}"
    tools: [get_histroy]
  - description: absent
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
    stop: {says: {text: DONE, by: Absent}}
"#,
        &expect![[r#"
            error: the name `Stock@Trading` has characters other than letters, digits, spaces, `_`, `-`, `'`, `’` and `·`
             --> t.yaml:2:7
              |
            2 | name: Stock@Trading
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

            error: `temperature` must be a number, not a text
             --> t.yaml:8:31
              |
            8 |     parameters: {temperature: hot, top_p: 2, stop: X}
              |                               ^^^

            error: `top_p` must be at most 1
             --> t.yaml:8:43
              |
            8 |     parameters: {temperature: hot, top_p: 2, stop: X}
              |                                           ^

            error: `stop` must be a list, not a text
             --> t.yaml:8:52
              |
            8 |     parameters: {temperature: hot, top_p: 2, stop: X}
              |                                                    ^
            hint: write a list: `[X]`

            error: an agent `Trader` is already defined in line 6
             --> t.yaml:9:11
              |
            9 |   - name: Trader
              |           ^^^^^^
            hint: remove one of them, or give it another name

            error: unknown variable `rolle`
              --> t.yaml:10:14
               |
            10 |     system: "{{rolle}} and {{role}}"
               |              ^^^^^^^^^
            hint: did you mean `role`?

            error: unknown tool `get_histroy`
              --> t.yaml:11:13
               |
            11 |     tools: [get_histroy]
               |             ^^^^^^^^^^^
            hint: did you mean `get_history`?

            error: an item of `agents` needs the key `name`
              --> t.yaml:12:5
               |
            12 |   - description: absent
               |     ^^^^^^^^^^^

            error: `pattern` cannot be `in_trun`
              --> t.yaml:14:12
               |
            14 |   pattern: in_trun
               |            ^^^^^^^
            hint: there are `round_robin`, `sequential`, `parallel`, `group`, `state_machine`, `dag`, `handoffs`, `debate`, `orchestrator`, `graph`, `role_play`, `group_solve`, `tasks`

            error: there is no agent, chat or team `Tradr`
              --> t.yaml:15:18
               |
            15 |   participants: [Tradr, work]
               |                  ^^^^^
            hint: did you mean `Trader`?

            error: `(unclosed` is not a valid regular expression: unclosed group
              --> t.yaml:18:14
               |
            18 |     matches: "(unclosed"
               |              ^^^^^^^^^^^

            error: `max_turns` must be at least 1
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
            hint: it belongs in `parameters`

            error: unknown key `participants`
             --> t.yaml:3:1
              |
            3 | participants: [A]
              | ^^^^^^^^^^^^
            hint: it belongs in `chat`

            error: unknown key `max_cost`
             --> t.yaml:4:27
              |
            4 | chat: {participants: [A], max_cost: 1}
              |                           ^^^^^^^^
            hint: it belongs in `stop`
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
  stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time: soon}
  loop_detection: {repetition: 0, similarity: 2}
  summary: reflect
  max_turns: 99999999999999999999
limits:
"#,
        &expect![[r#"
            error: `name` must be a text, not a number
             --> t.yaml:2:7
              |
            2 | name: 42
              |       ^^
            hint: put it in quotes: "42"

            error: `task` must be a text, not `true`
             --> t.yaml:4:7
              |
            4 | task: true
              |       ^^^^
            hint: put it in quotes: "true"

            error: `gpt` is not a model
             --> t.yaml:5:8
              |
            5 | model: gpt
              |        ^^^
            hint: write `provider:model`, such as `openai:gpt-4o-mini`

            error: `vars` must be a mapping, not a list
             --> t.yaml:6:7
              |
            6 | vars: [a]
              |       ^^^
            hint: write a mapping with names as keys: `{NAME: ...}`

            error: `agents` must be a list, not a mapping
             --> t.yaml:7:9
              |
            7 | agents: {name: A}
              |         ^^^^^^^^^
            hint: write a list: `[{name: ..., ...}]`

            error: `participants` must be a list, not a text
             --> t.yaml:9:17
              |
            9 |   participants: A
              |                 ^
            hint: write a list: `[A]`

            error: `max_turns` must be a whole number, not a text
              --> t.yaml:10:21
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time: soon}
               |                     ^^^^
            hint: remove the quotation marks

            error: `max_tokens` must be a whole number
              --> t.yaml:10:39
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time: soon}
               |                                       ^^^

            error: `says` must be a text or a mapping, not a list
              --> t.yaml:10:50
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time: soon}
               |                                                  ^^^

            error: `max_cost` must be at least 0
              --> t.yaml:10:65
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time: soon}
               |                                                                 ^^

            error: `soon` is not a time
              --> t.yaml:10:79
               |
            10 |   stop: {max_turns: "10", max_tokens: 1.5, says: [x], max_cost: -1, max_time: soon}
               |                                                                               ^^^^
            hint: write a number and its unit: `500 ms`, `10 s`, `2 min` or `1 h`

            error: `repetition` must be at least 2
              --> t.yaml:11:32
               |
            11 |   loop_detection: {repetition: 0, similarity: 2}
               |                                ^

            error: `similarity` must be at most 1
              --> t.yaml:11:47
               |
            11 |   loop_detection: {repetition: 0, similarity: 2}
               |                                               ^

            error: `max_turns` must be at most 1000000
              --> t.yaml:13:14
               |
            13 |   max_turns: 99999999999999999999
               |              ^^^^^^^^^^^^^^^^^^^^

            error: `limits` is empty
              --> t.yaml:14:7
               |
            14 | limits:
               |       ^
            hint: give it a mapping, or remove it
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
            error: a team must be a mapping, not a list
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
fn a_longer_request_costs_no_less() {
    check(
        r"
name: t
prices:
  'a:b': {input: 2, output: 2, tiers: [{over: 100, input: 4}, {over: 200, output: 1}]}
  'c:d': {input: 2, output: 2, tiers: [{over: 100, input: 4}, {over: 200, output: 8}]}
agents: [{name: A}]
chat: {participants: [A], stop: {max_turns: 1}}
",
        &expect![[r#"
            error: a request of more than 200 tokens costs less than a shorter one, for some kind of token
             --> t.yaml:4:10
              |
            4 |   'a:b': {input: 2, output: 2, tiers: [{over: 100, input: 4}, {over: 200, output: 1}]}
              |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: what a call costs at most is computed from its longest request: give a longer one no lower prices

            error: a request of more than 200 tokens costs less than a shorter one, for some kind of token
             --> t.yaml:5:10
              |
            5 |   'c:d': {input: 2, output: 2, tiers: [{over: 100, input: 4}, {over: 200, output: 8}]}
              |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: what a call costs at most is computed from its longest request: give a longer one no lower prices
        "#]],
    );
}

#[test]
fn a_day_has_one_price() {
    check(
        r"
name: t
prices:
  'a:b': {input: 1, output: 2, from: 2027-02-01, until: 2027-01-31}
  'c:d': [{input: 1, output: 2, until: 2026-12-31}, {input: 2, output: 2, from: 2026-12-31}]
  'e:f': {input: 1, output: 2, until: 2026-02-30}
  'g:h': {input: -1, output: 2000000}
  'i:j': [{input: 1, output: 2}, free]
agents: [{name: A}]
chat: {participants: [A], stop: {max_turns: 1}}
",
        &expect![[r#"
            error: the price ends before it begins
             --> t.yaml:4:10
              |
            4 |   'a:b': {input: 1, output: 2, from: 2027-02-01, until: 2027-01-31}
              |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: `from` is the first day on which it counts, `until` the last

            error: two prices count on the same day
             --> t.yaml:5:53
              |
            5 |   'c:d': [{input: 1, output: 2, until: 2026-12-31}, {input: 2, output: 2, from: 2026-12-31}]
              |                                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            hint: give each price a `from` after the `until` of the one before

            error: `2026-02-30` is not a day
             --> t.yaml:6:39
              |
            6 |   'e:f': {input: 1, output: 2, until: 2026-02-30}
              |                                       ^^^^^^^^^^
            hint: write year, month and day, such as `2026-12-31`

            error: `input` must be at least 0
             --> t.yaml:7:18
              |
            7 |   'g:h': {input: -1, output: 2000000}
              |                  ^^

            error: `output` must be at most 1000000
             --> t.yaml:7:30
              |
            7 |   'g:h': {input: -1, output: 2000000}
              |                              ^^^^^^^

            error: an item of `i:j` must be a mapping, not a text
             --> t.yaml:8:34
              |
            8 |   'i:j': [{input: 1, output: 2}, free]
              |                                  ^^^^
        "#]],
    );
}

#[test]
fn prices_and_windows_take_one_of_several_forms() {
    check(
        r"
name: t
prices: {'a:b': fre, 'c:d': {input: 1}, 'e:f': {input: 1, output: 2, cache: 1}, 'g:h': 3}
agents: [{name: A, view: {window: {message: 3}, names: sometimes}}, {name: B, view: {window: {messages: 0, tokens: 5}}}]
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

            error: `g:h` must be `free`, a mapping or a list, not a number
             --> t.yaml:3:88
              |
            3 | prices: {'a:b': fre, 'c:d': {input: 1}, 'e:f': {input: 1, output: 2, cache: 1}, 'g:h': 3}
              |                                                                                        ^

            error: unknown key `message`
             --> t.yaml:4:36
              |
            4 | ents: [{name: A, view: {window: {message: 3}, names: sometimes}}, {name: B, view: {window: {messages
              |                                  ^^^^^^^
            hint: did you mean `messages`?

            error: `names` cannot be `sometimes`
             --> t.yaml:4:56
              |
            4 | w: {window: {message: 3}, names: sometimes}}, {name: B, view: {window: {messages: 0, tokens: 5}}}]
              |                                  ^^^^^^^^^
            hint: there are `auto`, `always`, `never`

            error: `messages` must be at least 1
             --> t.yaml:4:105
              |
            4 | me: B, view: {window: {messages: 0, tokens: 5}}}]
              |                                  ^

            error: `window` takes one key only, and `tokens` is another
             --> t.yaml:4:108
              |
            4 |  B, view: {window: {messages: 0, tokens: 5}}}]
              |                                  ^^^^^^
        "#]],
    );
}

/// Item 57 of the list of AutoGen's behavior, whose sequences read over such a key in silence.
#[test]
fn an_unknown_key_in_a_chat_entry_is_an_error_that_names_the_key() {
    check(
        "name: t
agents: [{name: A}]
chat: {pattern: sequential, participants: [one]}
chats:
  - {name: one, mesage: x, max_turns: 2, pattern: sequential, participants: [A]}
",
        &expect![[r#"
            error: unknown key `mesage`
             --> t.yaml:5:17
              |
            5 |   - {name: one, mesage: x, max_turns: 2, pattern: sequential, participants: [A]}
              |                 ^^^^^^
            hint: AutoGen's `message` is `task` here
        "#]],
    );
}

/// What was probably meant is written in the hint, and what could not be read is not missing elsewhere.
#[test]
fn a_value_of_another_shape_has_the_right_one_in_its_hint() {
    check(
        "name: t\ntask: Go.\nagents:\n  Ann: {system: a}\nchat: {participants: \"Ann, Bob\", stop: 5}\n",
        &expect![[r#"
            error: `agents` must be a list, not a mapping
             --> t.yaml:4:3
              |
            4 |   Ann: {system: a}
              |   ^^^^^^^^^^^^^^^^
            hint: write a list whose items have the key `name`: `[{name: Ann, ...}]`

            error: `participants` must be a list, not a text
             --> t.yaml:5:22
              |
            5 | chat: {participants: "Ann, Bob", stop: 5}
              |                      ^^^^^^^^^^
            hint: write a list: `[Ann, Bob]`

            error: `stop` must be a mapping, not a number
             --> t.yaml:5:40
              |
            5 | chat: {participants: "Ann, Bob", stop: 5}
              |                                        ^
            hint: write `{max_turns: 5}`
        "#]],
    );
    check(
        "name: t\ntask: Go.\nagents: [Ann, Bob]\nchat: [Ann, Bob]\n",
        &expect![[r#"
        error: an item of `agents` must be a mapping, not a text
         --> t.yaml:3:10
          |
        3 | agents: [Ann, Bob]
          |          ^^^
        hint: write `{name: Ann, ...}`

        error: an item of `agents` must be a mapping, not a text
         --> t.yaml:3:15
          |
        3 | agents: [Ann, Bob]
          |               ^^^
        hint: write `{name: Bob, ...}`

        error: `chat` must be a mapping, not a list
         --> t.yaml:4:7
          |
        4 | chat: [Ann, Bob]
          |       ^^^^^^^^^^
        hint: write `{participants: [Ann, Bob]}`
    "#]],
    );
    check(
        "name: t\ntask: Go.\nagents: [{name: A, model: {name: gpt-4o}}, {name: B}]\nchat: {participants: [A, B], stop: DONE}\n",
        &expect![[r#"
            error: `model` must be a text, not a mapping
             --> t.yaml:3:27
              |
            3 | agents: [{name: A, model: {name: gpt-4o}}, {name: B}]
              |                           ^^^^^^^^^^^^^^
            hint: write a text such as `openai:gpt-4o-mini`

            error: `stop` must be a mapping, not a text
             --> t.yaml:4:36
              |
            4 | chat: {participants: [A, B], stop: DONE}
              |                                    ^^^^
            hint: write `{says: DONE}`
        "#]],
    );
    // `Ann` may be one of the agents that could not be read; `Inner` is known.
    check(
        "name: t\ntask: Go.\nagents:\n  Ann: {system: a}\nchat: {participants: [Ann, Inner]}\nchats: [{name: Inner, participants: [Ann, Bob]}]\n",
        &expect![[r#"
            error: `agents` must be a list, not a mapping
             --> t.yaml:4:3
              |
            4 |   Ann: {system: a}
              |   ^^^^^^^^^^^^^^^^
            hint: write a list whose items have the key `name`: `[{name: Ann, ...}]`
        "#]],
    );
    check(
        "name: t\ntask: Go.\nagents: [{name: A}, {name: B}]\nchat:\n  participants: [A, B]\n  stop: Thanks, bye\n",
        &expect![[r#"
            error: `stop` must be a mapping, not a text
             --> t.yaml:6:9
              |
            6 |   stop: Thanks, bye
              |         ^^^^^^^^^^^
            hint: write `{says: "Thanks, bye"}`
        "#]],
    );
    check(
        "name: t\ntask: Go.\nagents: {system: You help.}\nchat: {participants: [A, B], stop: 0.5}\n",
        &expect![[r#"
            error: `agents` must be a list, not a mapping
             --> t.yaml:3:9
              |
            3 | agents: {system: You help.}
              |         ^^^^^^^^^^^^^^^^^^^
            hint: write a list: `[{name: ..., ...}]`

            error: `stop` must be a mapping, not a number
             --> t.yaml:4:36
              |
            4 | chat: {participants: [A, B], stop: 0.5}
              |                                    ^^^
        "#]],
    );
}
