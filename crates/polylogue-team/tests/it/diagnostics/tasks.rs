//! Invalid tasks: without an agent, with an agent twice, of agents that cannot be asked, in a chat that could not end.

use expect_test::{Expect, expect};

use super::{check, check_used};

/// A team of A, B, C, Zoe (a person), P (who speaks by no model) and L (who replies in layers), with a chat of A and B of
/// this pattern.
#[track_caller]
fn check_pattern(pattern: &str, expected: &Expect) {
    check_chat(&format!("participants: [A, B], pattern: {pattern}"), expected);
}

#[track_caller]
fn check_chat(chat: &str, expected: &Expect) {
    let text = format!(
        "name: t\nagents: [{{name: A}}, {{name: B}}, {{name: C}}, {{name: Zoe, human: true}}, {{name: P, model: none, default_reply: x}}, {{name: L, default_reply: x}}]\nchat: {{{chat}}}\n"
    );
    check_used(&text, expected);
}

const TWO: &str = "{who: A, prompt: a}, {who: B, prompt: b}";

#[test]
fn every_agent_in_the_discussion_has_one_task() {
    check_pattern(
        "{group_solve: {tasks: [{who: A, prompt: a}, {who: C, prompt: c}]}}",
        &expect![[r#"
            error: the participant `B` has no task
             --> t.yaml:3:26
              |
            3 | chat: {participants: [A, B], pattern: {group_solve: {tasks: [{who: A, prompt: a}, {who: C, prompt: c
              |                          ^
            hint: give it a task, or remove it from `participants`

            error: `C` does not take part in this chat
             --> t.yaml:3:89
              |
            3 | sks: [{who: A, prompt: a}, {who: C, prompt: c}]}}}
              |                                  ^
            hint: there are `A`, `B`
        "#]],
    );
    check_pattern(
        &format!("{{group_solve: {{tasks: [{TWO}, {{who: A, prompt: again}}]}}}}"),
        &expect![[r#"
            error: `A` already has a task
             --> t.yaml:3:110
              |
            3 | : a}, {who: B, prompt: b}, {who: A, prompt: again}]}}}
              |                                  ^
            hint: put tasks that it solves alone in `before` or `after`
        "#]],
    );
    check_chat(
        "participants: [A], pattern: {group_solve: {tasks: [{who: A, prompt: ' '}]}}",
        &expect![[r#"
            error: a discussion needs at least two tasks
             --> t.yaml:3:59
              |
            3 | chat: {participants: [A], pattern: {group_solve: {tasks: [{who: A, prompt: ' '}]}}}
              |                                                           ^^^^^^^^^^^^^^^^^^^^^
            hint: for tasks that are solved alone use `pattern: {tasks: [...]}`

            error: `prompt` is empty
             --> t.yaml:3:76
              |
            3 | chat: {participants: [A], pattern: {group_solve: {tasks: [{who: A, prompt: ' '}]}}}
              |                                                                            ^^^
        "#]],
    );
    check_pattern(
        "{group_solve: {tasks: []}}",
        &expect![[r#"
            error: the participant `A` has no task
             --> t.yaml:3:23
              |
            3 | chat: {participants: [A, B], pattern: {group_solve: {tasks: []}}}
              |                       ^
            hint: give it a task, or remove it from `participants`

            error: the participant `B` has no task
             --> t.yaml:3:26
              |
            3 | chat: {participants: [A, B], pattern: {group_solve: {tasks: []}}}
              |                          ^
            hint: give it a task, or remove it from `participants`

            error: `tasks` is empty
             --> t.yaml:3:61
              |
            3 | chat: {participants: [A, B], pattern: {group_solve: {tasks: []}}}
              |                                                             ^^
        "#]],
    );
}

#[test]
fn tasks_before_and_after_have_an_agent() {
    check_pattern(
        &format!(
            "{{group_solve: {{tasks: [{TWO}], before: [{{who: C, prompt: x}}], after: [{{who: D, prompt: x}}]}}}}"
        ),
        &expect![[r#"
            error: there is no agent, chat or team `D`
             --> t.yaml:3:150
              |
            3 | o: C, prompt: x}], after: [{who: D, prompt: x}]}}}
              |                                  ^
            hint: there are `A`, `B`, `C`, `Zoe`, `P`, `L`
        "#]],
    );
}

#[test]
fn a_task_alone_is_not_asked_about() {
    check_pattern(
        &format!(
            "{{group_solve: {{tasks: [{TWO}], before: [{{who: C, prompt: x, self_terminating: true}}]}}}}"
        ),
        &expect![[r#"
            error: a task that is solved alone has no `self_terminating`: it is complete after one reply
             --> t.yaml:3:134
              |
            3 | }], before: [{who: C, prompt: x, self_terminating: true}]}}}
              |                                  ^^^^^^^^^^^^^^^^
            hint: it applies only to tasks that are discussed
        "#]],
    );
    check_pattern(
        "{tasks: [{who: A, prompt: a, keeps_reflections: true}, {who: Q, prompt: q}]}",
        &expect![[r#"
            error: the participant `B` has no task
             --> t.yaml:3:26
              |
            3 | chat: {participants: [A, B], pattern: {tasks: [{who: A, prompt: a, keeps_reflections: true}, {who: Q
              |                          ^
            hint: give it a task, or remove it from `participants`

            error: a task that is solved alone has no `keeps_reflections`: it is complete after one reply
             --> t.yaml:3:68
              |
            3 | rn: {tasks: [{who: A, prompt: a, keeps_reflections: true}, {who: Q, prompt: q}]}}
              |                                  ^^^^^^^^^^^^^^^^^
            hint: it applies only to tasks that are discussed

            error: there is no agent, chat or team `Q`
             --> t.yaml:3:100
              |
            3 |  keeps_reflections: true}, {who: Q, prompt: q}]}}
              |                                  ^
            hint: there are `A`, `B`, `C`, `Zoe`, `P`, `L`
        "#]],
    );
    check_pattern(
        "{tasks: [{who: A, prompt: a, self_terminating: false}, {who: B, prompt: b}]}",
        &expect![""],
    );
}

#[test]
fn an_end_by_completion_needs_a_self_terminating_task() {
    for end in ["first_completion", "one_last_chat", "one_last_group_chat", "all_complete"] {
        let text = format!(
            "name: t\nagents: [{{name: A}}, {{name: B}}]\nchat: {{participants: [A, B], pattern: {{group_solve: {{tasks: [{TWO}], end: {end}}}}}}}\n"
        );
        let error =
            polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()).unwrap_err();
        assert!(error.to_string().contains("no task has `self_terminating`"), "{error}");
    }
    check_pattern(
        &format!("{{group_solve: {{tasks: [{TWO}], end: all_complete}}}}"),
        &expect![[r#"
            error: the discussion ends when a task is complete, but no task has `self_terminating`
             --> t.yaml:3:110
              |
            3 | : a}, {who: B, prompt: b}], end: all_complete}}}
              |                                  ^^^^^^^^^^^^
            hint: give a task `self_terminating: true`, or end by `max_iterations`
        "#]],
    );
    check_pattern(
        &format!("{{group_solve: {{tasks: [{TWO}], end: first}}}}"),
        &expect![[r#"
            error: `end` cannot be `first`
             --> t.yaml:3:110
              |
            3 | : a}, {who: B, prompt: b}], end: first}}}
              |                                  ^^^^^
            hint: did you mean `first_completion`?
        "#]],
    );
    check_pattern(
        "{group_solve: {tasks: [{who: A, prompt: a, self_terminating: true}, {who: B, prompt: b}]}}",
        &expect![[r#"
            warning[no-effect]: the discussion ends by `max_iterations` alone: no agent is asked whether its task is complete
             --> t.yaml:3:82
              |
            3 | ve: {tasks: [{who: A, prompt: a, self_terminating: true}, {who: B, prompt: b}]}}}
              |                                  ^^^^^^^^^^^^^^^^
            hint: set `end`, such as `end: first_completion`, or remove it
        "#]],
    );
    check_pattern(
        &format!("{{group_solve: {{tasks: [{TWO}], max_iterations: 0}}}}"),
        &expect![[r#"
            error: `max_iterations` must be at least 1
             --> t.yaml:3:121
              |
            3 |  B, prompt: b}], max_iterations: 0}}}
              |                                  ^
        "#]],
    );
}

#[test]
fn a_discussed_task_cannot_be_forgotten() {
    check_pattern(
        "{group_solve: {tasks: [{who: A, prompt: a, forget: true}, {who: B, prompt: b, keeps_reflections: true}]}}",
        &expect![[r#"
            error: a discussed task cannot be forgotten
             --> t.yaml:3:82
              |
            3 | ve: {tasks: [{who: A, prompt: a, forget: true}, {who: B, prompt: b, keeps_reflections: true}]}}}
              |                                  ^^^^^^
            hint: `forget` is for tasks that are solved alone: those of `before` and `after`

            error: this task has no reflections to keep
             --> t.yaml:3:117
              |
            3 | rget: true}, {who: B, prompt: b, keeps_reflections: true}]}}}
              |                                  ^^^^^^^^^^^^^^^^^
            hint: add `self_terminating: true`
        "#]],
    );
}

#[test]
fn only_models_are_asked_for_what_models_can() {
    check_chat(
        "participants: [Zoe, P, L, A], pattern: {tasks: [{who: Zoe, prompt: a, forget: true}, {who: P, prompt: b, tools: [chess]}, {who: L, prompt: c, output_schema: {type: object}}, {who: A, prompt: d, forget: true}]}",
        &expect![[r#"
            error: a task of `Zoe` has no `forget`: it is a person
             --> t.yaml:3:78
              |
            3 | : {tasks: [{who: Zoe, prompt: a, forget: true}, {who: P, prompt: b, tools: [chess]}, {who: L, prompt
              |                                  ^^^^^^
            hint: give the task to an agent that replies only by a model

            error: a task of `P` has no `tools`: it has no model
             --> t.yaml:3:113
              |
            3 | rget: true}, {who: P, prompt: b, tools: [chess]}, {who: L, prompt: c, output_schema: {type: object}}
              |                                  ^^^^^
            hint: give the task to an agent that replies only by a model

            error: a task of `L` has no `output_schema`: its `default_reply` can also reply
             --> t.yaml:3:150
              |
            3 | s: [chess]}, {who: L, prompt: c, output_schema: {type: object}}, {who: A, prompt: d, forget: true}]}
              |                                  ^^^^^^^^^^^^^
            hint: give the task to an agent that replies only by a model
        "#]],
    );
}

#[test]
fn the_first_message_is_of_a_talk_of_two() {
    check_pattern(
        &format!("{{group_solve: {{tasks: [{TWO}], shift: {{to: C, says: ''}}}}}}"),
        &expect![[r#"
            error: `C` does not take part in this chat
             --> t.yaml:3:117
              |
            3 | who: B, prompt: b}], shift: {to: C, says: ''}}}}
              |                                  ^
            hint: there are `A`, `B`

            error: `says` is empty
             --> t.yaml:3:126
              |
            3 | rompt: b}], shift: {to: C, says: ''}}}}
              |                                  ^^
        "#]],
    );
    check_pattern(
        &format!("{{group_solve: {{tasks: [{TWO}], reconcile: true}}}}"),
        &expect![[r#"
            warning[no-effect]: both agents have the second agent's answer already, and the discussion begins with it
             --> t.yaml:3:105
              |
            3 | rompt: a}, {who: B, prompt: b}], reconcile: true}}}
              |                                  ^^^^^^^^^
            hint: set another first message: `shift: {says: ...}`
        "#]],
    );
    check_chat(
        &format!(
            "participants: [A, B, C], pattern: {{group_solve: {{tasks: [{TWO}, {{who: C, prompt: c}}], shift: {{to: A}}, reconcile: true}}}}"
        ),
        &expect![[r#"
            error: `shift` is for a discussion of two
             --> t.yaml:3:129
              |
            3 | rompt: b}, {who: C, prompt: c}], shift: {to: A}, reconcile: true}}}
              |                                  ^^^^^
            hint: in a larger discussion every participant sees all messages: remove it

            error: `reconcile` is for a discussion of two
             --> t.yaml:3:145
              |
            3 |  C, prompt: c}], shift: {to: A}, reconcile: true}}}
              |                                  ^^^^^^^^^
            hint: in a larger discussion every participant sees all messages: remove it
        "#]],
    );
}

#[test]
fn the_words_of_a_decision_are_distinct() {
    for words in ["{open: not yet, complete: 'no'}", "{open: 'NO', complete: 'no'}", "{open: 'yes'}"] {
        let check = format!("check: {{words: {words}}}");
        let text = format!(
            "name: t\nagents: [{{name: A}}, {{name: B}}]\nchat: {{participants: [A, B], pattern: {{group_solve: {{tasks: [{TWO}], {check}}}}}}}\n"
        );
        assert!(
            polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()).is_err(),
            "{words}"
        );
    }
    check_pattern(
        &format!(
            "{{group_solve: {{tasks: [{TWO}], check: {{words: {{open: not yet, complete: 'no'}}, temperature: warm, decision: ''}}}}}}"
        ),
        &expect![[r#"
            error: `not yet` must be one word of letters
             --> t.yaml:3:127
              |
            3 | ompt: b}], check: {words: {open: not yet, complete: 'no'}, temperature: warm, decision: ''}}}}
              |                                  ^^^^^^^
            hint: replies are searched for this word, such as `yes`

            error: `temperature` cannot be `warm`
             --> t.yaml:3:166
              |
            3 | t, complete: 'no'}, temperature: warm, decision: ''}}}}
              |                                  ^^^^
            hint: there is `own`

            error: `decision` is empty
             --> t.yaml:3:182
              |
            3 | '}, temperature: warm, decision: ''}}}}
              |                                  ^^
        "#]],
    );
    check_pattern(
        &format!(
            "{{group_solve: {{tasks: [{TWO}], check: {{words: {{open: 'No', complete: 'no'}}, temperature: 3}}}}}}"
        ),
        &expect![[r#"
            error: both words are the same
             --> t.yaml:3:143
              |
            3 | : {words: {open: 'No', complete: 'no'}, temperature: 3}}}}
              |                                  ^^^^

            error: `temperature` must be at most 2
             --> t.yaml:3:163
              |
            3 | ', complete: 'no'}, temperature: 3}}}}
              |                                  ^
        "#]],
    );
}

#[test]
fn a_chat_of_tasks_has_nothing_that_its_prompts_would_not_know_of() {
    check_chat(
        &format!(
            "participants: [A, B], pattern: {{group_solve: {{tasks: [{TWO}]}}}}, opening: hello, introductions: true, late_joiners: [{{who: C, when: turns > 1}}], loop_detection: off, max_turns: 9"
        ),
        &expect![[r#"
            error: a chat of tasks has no `opening`
             --> t.yaml:3:107
              |
            3 | mpt: a}, {who: B, prompt: b}]}}, opening: hello, introductions: true, late_joiners: [{who: C, when: 
              |                                  ^^^^^^^
            hint: leave it out: each agent receives its task by `prompt`

            error: a chat of tasks has no `introductions`
             --> t.yaml:3:123
              |
            3 | , prompt: b}]}}, opening: hello, introductions: true, late_joiners: [{who: C, when: turns > 1}], loo
              |                                  ^^^^^^^^^^^^^
            hint: leave it out: each agent receives its task by `prompt`

            error: a chat of tasks has no `late_joiners`
             --> t.yaml:3:144
              |
            3 | ing: hello, introductions: true, late_joiners: [{who: C, when: turns > 1}], loop_detection: off, max
              |                                  ^^^^^^^^^^^^
            hint: leave it out: give everyone a task from the beginning

            error: the participant `C` has no task
             --> t.yaml:3:165
              |
            3 | ions: true, late_joiners: [{who: C, when: turns > 1}], loop_detection: off, max_turns: 9}
              |                                  ^
            hint: give it a task, or remove it from `participants`

            error: a chat of tasks has no `loop_detection`
             --> t.yaml:3:187
              |
            3 | rs: [{who: C, when: turns > 1}], loop_detection: off, max_turns: 9}
              |                                  ^^^^^^^^^^^^^^
            hint: leave it out: the talk ends by `end` and `max_iterations`

            error: a chat of tasks has no `max_turns`
             --> t.yaml:3:208
              |
            3 | urns > 1}], loop_detection: off, max_turns: 9}
              |                                  ^^^^^^^^^
            hint: leave it out: the talk ends by `end` and `max_iterations`
        "#]],
    );
}

#[test]
fn pictures_are_on_the_web_or_in_the_file() {
    check_pattern(
        "{tasks: [{who: A, prompt: a, media: [{type: image/png, url: map.png}]}, {who: B, prompt: b, media: [{type: image/png, url: 'data:image/png;base64,AA=='}]}]}",
        &expect![[r#"
            error: `url` must begin with `https:` or `data:`
             --> t.yaml:3:99
              |
            3 | , media: [{type: image/png, url: map.png}]}, {who: B, prompt: b, media: [{type: image/png, url: 'dat
              |                                  ^^^^^^^
            hint: name a file with `file`, put it on the web, or into the address, as `data:image/png;base64,...`
        "#]],
    );
}

#[test]
fn tools_are_taught_and_answers_have_a_form() {
    check(
        "name: t
agents:
  - {name: A, tools: [chess, {tool: chess, mandatory: true}, {tool: ches}], suggests_tools: [chess], tool_calling: magic, tool_history: all}
  - {name: B, tools: [{tool: high_low, examples: [{user: x}, {user: '', args: []}], max_errors: -1}], output_retries: 2}
  - {name: C, output_schema: {}, parameters: {schema: {type: object}}, tool_calling: native, tool_history: full}
  - {name: D, human: true, tool_calling: text, output_schema: {type: object}}
chat: {participants: [A, B, C, D], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `chess` is already in `tools`
             --> t.yaml:3:30
              |
            3 |   - {name: A, tools: [chess, {tool: chess, mandatory: true}, {tool: ches}], suggests_tools: [chess],
              |                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: unknown tool `ches`
             --> t.yaml:3:69
              |
            3 |  chess, mandatory: true}, {tool: ches}], suggests_tools: [chess], tool_calling: magic, tool_history:
              |                                  ^^^^
            hint: did you mean `chess`?

            error: `chess` is already in `tools`
             --> t.yaml:3:94
              |
            3 |  {tool: ches}], suggests_tools: [chess], tool_calling: magic, tool_history: all}
              |                                  ^^^^^
            hint: `tools` are run by the agent itself, `suggests_tools` by another agent

            error: `tool_calling` cannot be `magic`
             --> t.yaml:3:116
              |
            3 | ts_tools: [chess], tool_calling: magic, tool_history: all}
              |                                  ^^^^^
            hint: there are `auto`, `native`, `schema`, `json`, `text`

            error: `tool_history` cannot be `all`
             --> t.yaml:3:137
              |
            3 | ol_calling: magic, tool_history: all}
              |                                  ^^^
            hint: there are `answer`, `full`

            error: an item of `examples` needs the key `args`
             --> t.yaml:4:52
              |
            4 | s: [{tool: high_low, examples: [{user: x}, {user: '', args: []}], max_errors: -1}], output_retries: 
              |                                  ^^^^

            error: `user` is empty
             --> t.yaml:4:69
              |
            4 | ow, examples: [{user: x}, {user: '', args: []}], max_errors: -1}], output_retries: 2}
              |                                  ^^

            error: `args` must be a mapping, not a list
             --> t.yaml:4:79
              |
            4 | es: [{user: x}, {user: '', args: []}], max_errors: -1}], output_retries: 2}
              |                                  ^^

            error: `max_errors` must be at least 0
             --> t.yaml:4:97
              |
            4 | ser: '', args: []}], max_errors: -1}], output_retries: 2}
              |                                  ^^

            error: `output_retries` also needs `output_schema`
             --> t.yaml:4:103
              |
            4 | ', args: []}], max_errors: -1}], output_retries: 2}
              |                                  ^^^^^^^^^^^^^^
            hint: add `output_schema`, or remove `output_retries`

            error: `output_schema` is empty
             --> t.yaml:5:30
              |
            5 |   - {name: C, output_schema: {}, parameters: {schema: {type: object}}, tool_calling: native, tool_hi
              |                              ^^

            error: `output_schema` already sets the schema
             --> t.yaml:5:47
              |
            5 |  output_schema: {}, parameters: {schema: {type: object}}, tool_calling: native, tool_history: full}
              |                                  ^^^^^^
            hint: remove `schema`: `output_schema` is sent to the model if it supports schemas, and every reply is checked

            error: `tool_history: full` applies only to prompted tool calls
             --> t.yaml:5:94
              |
            5 |  object}}, tool_calling: native, tool_history: full}
              |                                  ^^^^^^^^^^^^
            hint: native calls and their results always stay in the history; use `tool_calling: text`

            error: a person has no `tool_calling`
             --> t.yaml:6:28
              |
            6 |   - {name: D, human: true, tool_calling: text, output_schema: {type: object}}
              |                            ^^^^^^^^^^^^
            hint: remove `tool_calling`, or `human: true`; `human_input` lets a person reply for a model

            error: a person has no `output_schema`
             --> t.yaml:6:48
              |
            6 |   - {name: D, human: true, tool_calling: text, output_schema: {type: object}}
              |                                                ^^^^^^^^^^^^^
            hint: remove `output_schema`, or `human: true`; `human_input` lets a person reply for a model
        "#]],
    );
}

#[test]
fn what_models_can_do_is_said_by_a_few_words() {
    check(
        "name: t
endpoints:
  house: {base_url: 'http://127.0.0.1/v1', capabilities: nothing}
  other: {base_url: 'http://127.0.0.1/v1', capabilities: {tool: true}}
  third: {base_url: 'http://127.0.0.1/v1', capabilities: {}}
agents: [{name: A}]
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `capabilities` cannot be `nothing`
             --> t.yaml:3:58
              |
            3 |   house: {base_url: 'http://127.0.0.1/v1', capabilities: nothing}
              |                                                          ^^^^^^^
            hint: there is `text`

            error: unknown key `tool`
             --> t.yaml:4:59
              |
            4 |   other: {base_url: 'http://127.0.0.1/v1', capabilities: {tool: true}}
              |                                                           ^^^^
            hint: did you mean `tools`?

            error: `capabilities` is empty
             --> t.yaml:5:58
              |
            5 |   third: {base_url: 'http://127.0.0.1/v1', capabilities: {}}
              |                                                          ^^
            hint: there are `tools`, `schema`, `json`, `vision`, `system_role`, `null_content`, `user_after_tool`
        "#]],
    );
}

#[test]
fn examples_are_calls_and_forms_are_schemas() {
    check(
        "name: t
agents:
  - name: A
    tools: [{tool: high_low, examples: [{user: compare, args: {secret: 7, guessed_number: 3}}]}]
    output_schema:
      type: objct
      properties: {type: {type: strng}, of: {anyOf: [{type: [string, null]}, {const: {type: x}}]}}
  - {name: B}
chat:
  participants: [A, B]
  pattern:
    tasks:
      - {who: A, prompt: a}
      - {who: B, prompt: b, output_schema: {items: {type: text}}, tools: [{tool: chess, examples: [{user: e4, args: {moves: e4}}]}]}
",
        &expect![[r#"
            error: `high_low` needs the argument `secret_number`
             --> t.yaml:4:57
              |
            4 |     tools: [{tool: high_low, examples: [{user: compare, args: {secret: 7, guessed_number: 3}}]}]
              |                                                         ^^^^

            error: `high_low` takes no `secret`
             --> t.yaml:4:64
              |
            4 |     tools: [{tool: high_low, examples: [{user: compare, args: {secret: 7, guessed_number: 3}}]}]
              |                                                                ^^^^^^
            hint: did you mean `secret_number`?

            error: this is not a JSON Schema type
             --> t.yaml:6:13
              |
            6 |       type: objct
              |             ^^^^^
            hint: did you mean `object`?

            error: this is not a JSON Schema type
             --> t.yaml:7:33
              |
            7 |       properties: {type: {type: strng}, of: {anyOf: [{type: [string, null]}, {const: {type: x}}]}}
              |                                 ^^^^^
            hint: did you mean `string`?

            error: this is not a JSON Schema type
             --> t.yaml:7:70
              |
            7 |       properties: {type: {type: strng}, of: {anyOf: [{type: [string, null]}, {const: {type: x}}]}}
              |                                                                      ^^^^
            hint: the type of nothing is `"null"`, in quotes

            error: this is not a JSON Schema type
              --> t.yaml:14:59
               |
            14 | b, output_schema: {items: {type: text}}, tools: [{tool: chess, examples: [{user: e4, args: {moves: e
               |                                  ^^^^
            hint: there are `string`, `number`, `integer`, `boolean`, `object`, `array`, `null`

            error: `chess` takes no `moves`
              --> t.yaml:14:118
               |
            14 | ss, examples: [{user: e4, args: {moves: e4}}]}]}
               |                                  ^^^^^
            hint: did you mean `move`?
        "#]],
    );
}
