//! Tasks that cannot be solved: nobody's, somebody's twice, of those who cannot be asked, in a talk that could not end.

use expect_test::{Expect, expect};

use super::check;

/// A team of A, B, C, Zoe (a person), P (who speaks by no model) and L (who replies in layers), with a chat of A and B of
/// this pattern.
#[track_caller]
fn check_pattern(pattern: &str, expected: &Expect) {
    check_chat(&format!("participants: [A, B], pattern: {pattern}"), expected);
}

#[track_caller]
fn check_chat(chat: &str, expected: &Expect) {
    let text = format!(
        "name: t\nagents: [{{name: A}}, {{name: B}}, {{name: C}}, {{name: Zoe, human: true}}, {{name: P, model: none, auto_reply: x}}, {{name: L, auto_reply: x}}]\nchat: {{{chat}}}\n"
    );
    let said = match polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()) {
        Ok(loaded) => loaded.warnings.to_string(),
        Err(diagnostics) => diagnostics.to_string(),
    };
    // That some take part in nothing is not what is looked at here.
    let said: Vec<&str> = said.split("\n\n").filter(|part| !part.contains("takes part in nothing")).collect();
    expected.assert_eq(&said.join("\n\n"));
}

const TWO: &str = "{who: A, prompt: a}, {who: B, prompt: b}";

#[test]
fn everybody_who_talks_has_one_task() {
    check_pattern(
        "{solve: {tasks: [{who: A, prompt: a}, {who: C, prompt: c}]}}",
        &expect![[r#"
        error: `B` takes part, and has no task
         --> t.yaml:3:26
          |
        3 | chat: {participants: [A, B], pattern: {solve: {tasks: [{who: A, prompt: a}, {who: C, prompt: c}]}}}
          |                          ^
        hint: give it a task, or take it out of `participants`

        error: `C` does not take part in this chat
         --> t.yaml:3:83
          |
        3 | chat: {participants: [A, B], pattern: {solve: {tasks: [{who: A, prompt: a}, {who: C, prompt: c}]}}}
          |                                                                                   ^
        hint: there is `A`, `B`
    "#]],
    );
    check_pattern(
        &format!("{{solve: {{tasks: [{TWO}, {{who: A, prompt: again}}]}}}}"),
        &expect![[r#"
        error: `A` has a task already
         --> t.yaml:3:104
          |
        3 | : a}, {who: B, prompt: b}, {who: A, prompt: again}]}}}
          |                                  ^
        hint: it would talk to itself: what it does alone stands in `before` or `after`
    "#]],
    );
    check_chat(
        "participants: [A], pattern: {solve: {tasks: [{who: A, prompt: ' '}]}}",
        &expect![[r#"
        error: a talk needs at least two tasks
         --> t.yaml:3:53
          |
        3 | chat: {participants: [A], pattern: {solve: {tasks: [{who: A, prompt: ' '}]}}}
          |                                                     ^^^^^^^^^^^^^^^^^^^^^
        hint: `pattern: {tasks: [...]}` has tasks solved alone

        error: `prompt` is empty
         --> t.yaml:3:70
          |
        3 | chat: {participants: [A], pattern: {solve: {tasks: [{who: A, prompt: ' '}]}}}
          |                                                                      ^^^
    "#]],
    );
    check_pattern(
        "{solve: {tasks: []}}",
        &expect![[r#"
        error: `A` takes part, and has no task
         --> t.yaml:3:23
          |
        3 | chat: {participants: [A, B], pattern: {solve: {tasks: []}}}
          |                       ^
        hint: give it a task, or take it out of `participants`

        error: `B` takes part, and has no task
         --> t.yaml:3:26
          |
        3 | chat: {participants: [A, B], pattern: {solve: {tasks: []}}}
          |                          ^
        hint: give it a task, or take it out of `participants`

        error: `tasks` is empty
         --> t.yaml:3:55
          |
        3 | chat: {participants: [A, B], pattern: {solve: {tasks: []}}}
          |                                                       ^^
    "#]],
    );
}

#[test]
fn tasks_before_and_after_are_of_somebody() {
    check_pattern(
        &format!(
            "{{solve: {{tasks: [{TWO}], before: [{{who: C, prompt: x}}], after: [{{who: D, prompt: x}}]}}}}"
        ),
        &expect![[r#"
            error: there is no agent, chat or team `D`
             --> t.yaml:3:144
              |
            3 | o: C, prompt: x}], after: [{who: D, prompt: x}]}}}
              |                                  ^
            hint: there is `A`, `B`, `C`, `Zoe`, `P`, `L`
        "#]],
    );
}

#[test]
fn a_task_alone_is_not_asked_about() {
    check_pattern(
        &format!("{{solve: {{tasks: [{TWO}], before: [{{who: C, prompt: x, stops_by_itself: true}}]}}}}"),
        &expect![[r#"
            error: a task that is solved alone has no `stops_by_itself`: nobody asks whether it is complete
             --> t.yaml:3:128
              |
            3 | }], before: [{who: C, prompt: x, stops_by_itself: true}]}}}
              |                                  ^^^^^^^^^^^^^^^
            hint: it is for the tasks of those who talk
        "#]],
    );
    check_pattern(
        "{tasks: [{who: A, prompt: a, keeps_reflections: true}, {who: Q, prompt: q}]}",
        &expect![[r#"
            error: `B` takes part, and has no task
             --> t.yaml:3:26
              |
            3 | chat: {participants: [A, B], pattern: {tasks: [{who: A, prompt: a, keeps_reflections: true}, {who: Q
              |                          ^
            hint: give it a task, or take it out of `participants`

            error: a task that is solved alone has no `keeps_reflections`: nobody asks whether it is complete
             --> t.yaml:3:68
              |
            3 | rn: {tasks: [{who: A, prompt: a, keeps_reflections: true}, {who: Q, prompt: q}]}}
              |                                  ^^^^^^^^^^^^^^^^^
            hint: it is for the tasks of those who talk

            error: `Q` does not take part in this chat
             --> t.yaml:3:100
              |
            3 |  keeps_reflections: true}, {who: Q, prompt: q}]}}
              |                                  ^
            hint: there is `A`, `B`
        "#]],
    );
    check_pattern(
        "{tasks: [{who: A, prompt: a, stops_by_itself: false}, {who: B, prompt: b}]}",
        &expect![[""]],
    );
}

#[test]
fn a_talk_that_ends_by_completion_has_somebody_who_says_so() {
    for end in ["first_completion", "one_last_chat", "one_last_group_chat", "all_complete"] {
        let text = format!(
            "name: t\nagents: [{{name: A}}, {{name: B}}]\nchat: {{participants: [A, B], pattern: {{solve: {{tasks: [{TWO}], end: {end}}}}}}}\n"
        );
        let error =
            polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()).unwrap_err();
        assert!(error.to_string().contains("nobody is asked whether one is"), "{error}");
    }
    check_pattern(
        &format!("{{solve: {{tasks: [{TWO}], end: all_complete}}}}"),
        &expect![[r#"
        error: the talk ends when a task is complete, and nobody is asked whether one is
         --> t.yaml:3:104
          |
        3 | : a}, {who: B, prompt: b}], end: all_complete}}}
          |                                  ^^^^^^^^^^^^
        hint: give a task `stops_by_itself: true`, or end by `max_iterations`
    "#]],
    );
    check_pattern(
        &format!("{{solve: {{tasks: [{TWO}], end: first}}}}"),
        &expect![[r#"
        error: `end` cannot be `first`
         --> t.yaml:3:104
          |
        3 | : a}, {who: B, prompt: b}], end: first}}}
          |                                  ^^^^^
        hint: did you mean `first_completion`?
    "#]],
    );
    check_pattern(
        "{solve: {tasks: [{who: A, prompt: a, stops_by_itself: true}, {who: B, prompt: b}]}}",
        &expect![[r#"
        warning: the talk ends by `max_iterations` alone, and nobody is asked whether a task is complete
         --> t.yaml:3:76
          |
        3 | ve: {tasks: [{who: A, prompt: a, stops_by_itself: true}, {who: B, prompt: b}]}}}
          |                                  ^^^^^^^^^^^^^^^
        hint: end the talk by it, such as `end: first_completion`, or leave it out
    "#]],
    );
    check_pattern(
        &format!("{{solve: {{tasks: [{TWO}], max_iterations: 0}}}}"),
        &expect![[r#"
            error: `max_iterations` must be at least 1
             --> t.yaml:3:115
              |
            3 |  B, prompt: b}], max_iterations: 0}}}
              |                                  ^
        "#]],
    );
}

#[test]
fn what_a_talk_needs_is_not_forgotten_and_what_is_kept_is_asked_for() {
    check_pattern(
        "{solve: {tasks: [{who: A, prompt: a, forgets: true}, {who: B, prompt: b, keeps_reflections: true}]}}",
        &expect![[r#"
            error: what is said in a talk is needed in it
             --> t.yaml:3:76
              |
            3 | ve: {tasks: [{who: A, prompt: a, forgets: true}, {who: B, prompt: b, keeps_reflections: true}]}}}
              |                                  ^^^^^^^
            hint: it is for tasks that are solved alone: those of `before` and `after`

            error: this task is never reflected on, so that no reflection can be kept
             --> t.yaml:3:112
              |
            3 | gets: true}, {who: B, prompt: b, keeps_reflections: true}]}}}
              |                                  ^^^^^^^^^^^^^^^^^
            hint: add `stops_by_itself: true`
        "#]],
    );
}

#[test]
fn only_models_are_asked_for_what_models_can() {
    check_chat(
        "participants: [Zoe, P, L, A], pattern: {tasks: [{who: Zoe, prompt: a, forgets: true}, {who: P, prompt: b, tools: [chess]}, {who: L, prompt: c, answers: {type: object}}, {who: A, prompt: d, forgets: true}]}",
        &expect![[r#"
            error: a task of `Zoe` has no `forgets`: it is a person
             --> t.yaml:3:78
              |
            3 | : {tasks: [{who: Zoe, prompt: a, forgets: true}, {who: P, prompt: b, tools: [chess]}, {who: L, promp
              |                                  ^^^^^^^
            hint: give the task to an agent that speaks by a model and by nothing else

            error: a task of `P` has no `tools`: it speaks by no model
             --> t.yaml:3:114
              |
            3 | gets: true}, {who: P, prompt: b, tools: [chess]}, {who: L, prompt: c, answers: {type: object}}, {who
              |                                  ^^^^^
            hint: give the task to an agent that speaks by a model and by nothing else

            error: a task of `L` has no `answers`: by its `auto_reply` it replies otherwise, too
             --> t.yaml:3:151
              |
            3 | s: [chess]}, {who: L, prompt: c, answers: {type: object}}, {who: A, prompt: d, forgets: true}]}}
              |                                  ^^^^^^^
            hint: give the task to an agent that speaks by a model and by nothing else
        "#]],
    );
}

#[test]
fn the_first_message_is_of_a_talk_of_two() {
    check_pattern(
        &format!("{{solve: {{tasks: [{TWO}], shift: {{to: C, says: ''}}}}}}"),
        &expect![[r#"
        error: `C` does not take part in this chat
         --> t.yaml:3:111
          |
        3 | who: B, prompt: b}], shift: {to: C, says: ''}}}}
          |                                  ^
        hint: there is `A`, `B`

        error: `says` is empty
         --> t.yaml:3:120
          |
        3 | rompt: b}], shift: {to: C, says: ''}}}}
          |                                  ^^
    "#]],
    );
    check_pattern(
        &format!("{{solve: {{tasks: [{TWO}], reconcile: true}}}}"),
        &expect![[r#"
        warning: both know the second's answer when the talk begins, and it begins with that answer
         --> t.yaml:3:99
          |
        3 | rompt: a}, {who: B, prompt: b}], reconcile: true}}}
          |                                  ^^^^^^^^^
        hint: say how it begins instead: `shift: {says: ...}`
    "#]],
    );
    check_chat(
        &format!(
            "participants: [A, B, C], pattern: {{solve: {{tasks: [{TWO}, {{who: C, prompt: c}}], shift: {{to: A}}, reconcile: true}}}}"
        ),
        &expect![[r#"
            error: `shift` is for a talk of two
             --> t.yaml:3:123
              |
            3 | rompt: b}, {who: C, prompt: c}], shift: {to: A}, reconcile: true}}}
              |                                  ^^^^^
            hint: in a larger one everybody hears everything from the beginning: leave it out

            error: `reconcile` is for a talk of two
             --> t.yaml:3:139
              |
            3 |  C, prompt: c}], shift: {to: A}, reconcile: true}}}
              |                                  ^^^^^^^^^
            hint: in a larger one everybody hears everything from the beginning: leave it out
        "#]],
    );
}

#[test]
fn the_words_of_a_decision_can_be_told_apart() {
    for words in ["{open: not yet, complete: 'no'}", "{open: 'NO', complete: 'no'}", "{open: 'yes'}"] {
        let check = format!("check: {{words: {words}}}");
        let text = format!(
            "name: t\nagents: [{{name: A}}, {{name: B}}]\nchat: {{participants: [A, B], pattern: {{solve: {{tasks: [{TWO}], {check}}}}}}}\n"
        );
        assert!(
            polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()).is_err(),
            "{words}"
        );
    }
    check_pattern(
        &format!(
            "{{solve: {{tasks: [{TWO}], check: {{words: {{open: not yet, complete: 'no'}}, temperature: warm, decision: ''}}}}}}"
        ),
        &expect![[r#"
            error: `not yet` is no word of letters alone
             --> t.yaml:3:121
              |
            3 | ompt: b}], check: {words: {open: not yet, complete: 'no'}, temperature: warm, decision: ''}}}}
              |                                  ^^^^^^^
            hint: an answer is searched for one word, such as `yes`

            error: `temperature` cannot be `warm`
             --> t.yaml:3:160
              |
            3 | t, complete: 'no'}, temperature: warm, decision: ''}}}}
              |                                  ^^^^
            hint: there is `own`

            error: `decision` is empty
             --> t.yaml:3:176
              |
            3 | '}, temperature: warm, decision: ''}}}}
              |                                  ^^
        "#]],
    );
    check_pattern(
        &format!(
            "{{solve: {{tasks: [{TWO}], check: {{words: {{open: 'No', complete: 'no'}}, temperature: 3}}}}}}"
        ),
        &expect![[r#"
            error: both words are the same: neither could be told from the other
             --> t.yaml:3:137
              |
            3 | : {words: {open: 'No', complete: 'no'}, temperature: 3}}}}
              |                                  ^^^^

            error: `temperature` must be at most 2
             --> t.yaml:3:157
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
            "participants: [A, B], pattern: {{solve: {{tasks: [{TWO}]}}}}, opening: hello, introductions: true, joins: [{{who: C, when: turns > 1}}], circles: off, max_turns_cap: 9"
        ),
        &expect![[r#"
            error: a chat of tasks has no `opening`
             --> t.yaml:3:101
              |
            3 | mpt: a}, {who: B, prompt: b}]}}, opening: hello, introductions: true, joins: [{who: C, when: turns >
              |                                  ^^^^^^^
            hint: leave it out: whoever has a task is told it by its `prompt`

            error: a chat of tasks has no `introductions`
             --> t.yaml:3:117
              |
            3 | , prompt: b}]}}, opening: hello, introductions: true, joins: [{who: C, when: turns > 1}], circles: o
              |                                  ^^^^^^^^^^^^^
            hint: leave it out: whoever has a task is told it by its `prompt`

            error: a chat of tasks has no `joins`
             --> t.yaml:3:138
              |
            3 | ing: hello, introductions: true, joins: [{who: C, when: turns > 1}], circles: off, max_turns_cap: 9}
              |                                  ^^^^^
            hint: leave it out: give everybody a task from the beginning

            error: `C` takes part, and has no task
             --> t.yaml:3:152
              |
            3 | troductions: true, joins: [{who: C, when: turns > 1}], circles: off, max_turns_cap: 9}
              |                                  ^
            hint: give it a task, or take it out of `participants`

            error: a chat of tasks has no `circles`
             --> t.yaml:3:174
              |
            3 | ns: [{who: C, when: turns > 1}], circles: off, max_turns_cap: 9}
              |                                  ^^^^^^^
            hint: leave it out: the talk ends by `end` and `max_iterations`

            error: a chat of tasks has no `max_turns_cap`
             --> t.yaml:3:188
              |
            3 | when: turns > 1}], circles: off, max_turns_cap: 9}
              |                                  ^^^^^^^^^^^^^
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
            hint: files are not read: put it on the web, or into the address, as `data:image/png;base64,...`
        "#]],
    );
}

#[test]
fn tools_are_taught_and_answers_have_a_form() {
    check(
        "name: t
agents:
  - {name: A, tools: [chess, {tool: chess, mandatory: true}, {tool: ches}], offers: [chess], tools_by: magic, trace: all}
  - {name: B, tools: [{tool: high_low, examples: [{asked: x}, {asked: '', args: []}], max_errors: -1}], repairs: 2}
  - {name: C, answers: {}, parameters: {schema: {type: object}}, tools_by: native, trace: five_messages}
  - {name: D, human: true, tools_by: text, answers: {type: object}}
chat: {participants: [A, B, C, D], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `chess` is in `tools` already
             --> t.yaml:3:30
              |
            3 |   - {name: A, tools: [chess, {tool: chess, mandatory: true}, {tool: ches}], offers: [chess], tools_b
              |                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: unknown tool `ches`
             --> t.yaml:3:69
              |
            3 |  chess, mandatory: true}, {tool: ches}], offers: [chess], tools_by: magic, trace: all}
              |                                  ^^^^
            hint: did you mean `chess`?

            error: `chess` is in `tools` already
             --> t.yaml:3:86
              |
            3 | : true}, {tool: ches}], offers: [chess], tools_by: magic, trace: all}
              |                                  ^^^^^
            hint: `tools` are run by the agent itself, `offers` by somebody else

            error: `tools_by` cannot be `magic`
             --> t.yaml:3:104
              |
            3 | es}], offers: [chess], tools_by: magic, trace: all}
              |                                  ^^^^^
            hint: there is `auto`, `native`, `schema`, `json`, `text`

            error: `trace` cannot be `all`
             --> t.yaml:3:118
              |
            3 | [chess], tools_by: magic, trace: all}
              |                                  ^^^
            hint: there is `answer`, `five_messages`

            error: an item of `examples` needs the key `args`
             --> t.yaml:4:52
              |
            4 | s: [{tool: high_low, examples: [{asked: x}, {asked: '', args: []}], max_errors: -1}], repairs: 2}
              |                                  ^^^^^

            error: `asked` is empty
             --> t.yaml:4:71
              |
            4 | , examples: [{asked: x}, {asked: '', args: []}], max_errors: -1}], repairs: 2}
              |                                  ^^

            error: `args` must be a mapping, not a list
             --> t.yaml:4:81
              |
            4 | : [{asked: x}, {asked: '', args: []}], max_errors: -1}], repairs: 2}
              |                                  ^^

            error: `max_errors` must be at least 0
             --> t.yaml:4:99
              |
            4 | ked: '', args: []}], max_errors: -1}], repairs: 2}
              |                                  ^^

            error: nothing is repaired where answers have no form
             --> t.yaml:4:105
              |
            4 | ', args: []}], max_errors: -1}], repairs: 2}
              |                                  ^^^^^^^
            hint: add `answers`, the JSON Schema of what it says, or leave `repairs` out

            error: `answers` is empty
             --> t.yaml:5:24
              |
            5 |   - {name: C, answers: {}, parameters: {schema: {type: object}}, tools_by: native, trace: five_messa
              |                        ^^

            error: `answers` is the schema already
             --> t.yaml:5:41
              |
            5 | me: C, answers: {}, parameters: {schema: {type: object}}, tools_by: native, trace: five_messages}
              |                                  ^^^^^^
            hint: leave out `schema`: `answers` holds the model to it where it can be, and is checked in any case

            error: five messages are left of a call in words only
             --> t.yaml:5:84
              |
            5 | ype: object}}, tools_by: native, trace: five_messages}
              |                                  ^^^^^
            hint: native calls and their results stay in the history anyway; `tools_by: text` talks about them

            error: a person has no `tools_by`
             --> t.yaml:6:28
              |
            6 |   - {name: D, human: true, tools_by: text, answers: {type: object}}
              |                            ^^^^^^^^
            hint: leave out `tools_by`, or `human: true`

            error: a person has no `answers`
             --> t.yaml:6:44
              |
            6 |   - {name: D, human: true, tools_by: text, answers: {type: object}}
              |                                            ^^^^^^^
            hint: leave out `answers`, or `human: true`
        "#]],
    );
}

#[test]
fn what_models_can_do_is_said_by_a_few_words() {
    check(
        "name: t
endpoints:
  house: {base_url: 'http://127.0.0.1/v1', skills: nothing}
  other: {base_url: 'http://127.0.0.1/v1', skills: {tool: true}}
  third: {base_url: 'http://127.0.0.1/v1', skills: {}}
agents: [{name: A}]
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `skills` cannot be `nothing`
             --> t.yaml:3:52
              |
            3 |   house: {base_url: 'http://127.0.0.1/v1', skills: nothing}
              |                                                    ^^^^^^^
            hint: there is `text`

            error: unknown key `tool`
             --> t.yaml:4:53
              |
            4 |   other: {base_url: 'http://127.0.0.1/v1', skills: {tool: true}}
              |                                                     ^^^^
            hint: did you mean `tools`?

            error: `skills` is empty
             --> t.yaml:5:52
              |
            5 |   third: {base_url: 'http://127.0.0.1/v1', skills: {}}
              |                                                    ^^
            hint: there is `tools`, `schema`, `json`, `vision`, `system_role`, `null_content`, `user_after_tool`
        "#]],
    );
}

#[test]
fn examples_are_calls_and_forms_are_schemas() {
    check(
        "name: t
agents:
  - name: A
    tools: [{tool: high_low, examples: [{asked: compare, args: {secret: 7, guessed_number: 3}}]}]
    answers:
      type: objct
      properties: {type: {type: strng}, of: {anyOf: [{type: [string, null]}, {const: {type: x}}]}}
  - {name: B}
chat:
  participants: [A, B]
  pattern:
    tasks:
      - {who: A, prompt: a}
      - {who: B, prompt: b, answers: {items: {type: text}}, tools: [{tool: chess, examples: [{asked: e4, args: {moves: e4}}]}]}
",
        &expect![[r#"
            error: `high_low` needs the argument `secret_number`
             --> t.yaml:4:58
              |
            4 |     tools: [{tool: high_low, examples: [{asked: compare, args: {secret: 7, guessed_number: 3}}]}]
              |                                                          ^^^^

            error: `high_low` takes no `secret`
             --> t.yaml:4:65
              |
            4 |     tools: [{tool: high_low, examples: [{asked: compare, args: {secret: 7, guessed_number: 3}}]}]
              |                                                                 ^^^^^^
            hint: did you mean `secret_number`?

            error: this is no type of JSON Schema
             --> t.yaml:6:13
              |
            6 |       type: objct
              |             ^^^^^
            hint: did you mean `object`?

            error: this is no type of JSON Schema
             --> t.yaml:7:33
              |
            7 |       properties: {type: {type: strng}, of: {anyOf: [{type: [string, null]}, {const: {type: x}}]}}
              |                                 ^^^^^
            hint: did you mean `string`?

            error: this is no type of JSON Schema
             --> t.yaml:7:70
              |
            7 |       properties: {type: {type: strng}, of: {anyOf: [{type: [string, null]}, {const: {type: x}}]}}
              |                                                                      ^^^^
            hint: the type of nothing is `"null"`, in quotes

            error: this is no type of JSON Schema
              --> t.yaml:14:53
               |
            14 | ompt: b, answers: {items: {type: text}}, tools: [{tool: chess, examples: [{asked: e4, args: {moves: 
               |                                  ^^^^
            hint: there is `string`, `number`, `integer`, `boolean`, `object`, `array`, `null`

            error: `chess` takes no `moves`
              --> t.yaml:14:113
               |
            14 | s, examples: [{asked: e4, args: {moves: e4}}]}]}
               |                                  ^^^^^
            hint: did you mean `move`?
        "#]],
    );
}
