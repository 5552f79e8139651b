//! Ways to reason that cannot be gone, and blocks that nobody writes or reads.

use expect_test::{Expect, expect};

use super::check;

/// A team of A with `keys`, who alone takes part, of B, and of L, who replies in layers.
#[track_caller]
fn check_agent(keys: &str, expected: &Expect) {
    check(
        &format!(
            "name: t\nagents:\n  - {{name: A, {keys}}}\n  - {{name: B}}\n  - {{name: L, auto_reply: x}}\nchat: {{participants: [A, B, L], stop: {{max_turns: 2}}}}\n"
        ),
        expected,
    );
}

#[test]
fn whoever_is_named_is_another_agent_that_speaks_by_a_model() {
    check_agent(
        "reasons: {plan_and_solve: {planner: A, solver: L}}",
        &expect![[r#"
        error: `A` is the agent itself
         --> t.yaml:3:51
          |
        3 |   - {name: A, reasons: {plan_and_solve: {planner: A, solver: L}}}
          |                                                   ^
        hint: leave it out: then the agent does it itself; for criticism by a fresh mind, name another agent

        error: `L` cannot be asked for this: by its `auto_reply` it replies otherwise, too
         --> t.yaml:3:62
          |
        3 |   - {name: A, reasons: {plan_and_solve: {planner: A, solver: L}}}
          |                                                              ^
        hint: name an agent that speaks by a model and by nothing else
    "#]],
    );
    check_agent(
        "reasons: {best: {critic: C}}",
        &expect![[r#"
        error: there is no agent `C`
         --> t.yaml:3:40
          |
        3 |   - {name: A, reasons: {best: {critic: C}}}
          |                                        ^
        hint: there is `A`, `B`, `L`
    "#]],
    );
    check_agent(
        "reasons: best",
        &expect![[r#"
            error: `reasons` cannot be only `best`
             --> t.yaml:3:24
              |
            3 |   - {name: A, reasons: best}
              |                        ^^^^
            hint: it takes more than a word: `reasons: {best: ...}`
        "#]],
    );
}

#[test]
fn what_a_way_to_reason_has_no_use_for_is_refused() {
    check_agent(
        "reasons: react, answers: {type: object}, consults: [B]",
        &expect![[r#"
        error: `react` calls tools, and there are none
         --> t.yaml:3:15
          |
        3 |   - {name: A, reasons: react, answers: {type: object}, consults: [B]}
          |               ^^^^^^^
        hint: give it `tools`, or leave `reasons` out

        error: an agent that reasons by `react` has no `answers`
         --> t.yaml:3:31
          |
        3 |   - {name: A, reasons: react, answers: {type: object}, consults: [B]}
          |                               ^^^^^^^
        hint: leave it out, or `reasons`

        error: an agent that reasons by `react` has no `consults`
         --> t.yaml:3:56
          |
        3 |   - {name: A, reasons: react, answers: {type: object}, consults: [B]}
          |                                                        ^^^^^^^^
        hint: leave it out, or `reasons`
    "#]],
    );
    check_agent(
        "tools: [calculator], offers: [chess], reasons: {plan_and_solve: {planner: B, solver: B}}, system: x",
        &expect![[r#"
            error: the steps are solved by another, who uses none of its `tools`
             --> t.yaml:3:15
              |
            3 |   - {name: A, tools: [calculator], offers: [chess], reasons: {plan_and_solve: {planner: B, solver: B
              |               ^^^^^
            hint: give it to the `solver`

            error: an agent that `reasons` has no `offers`
             --> t.yaml:3:36
              |
            3 | - {name: A, tools: [calculator], offers: [chess], reasons: {plan_and_solve: {planner: B, solver: B}}
              |                                  ^^^^^^
            hint: leave it out, or `reasons`

            error: two others plan and solve, who have nothing of its `system`
             --> t.yaml:3:105
              |
            3 | solve: {planner: B, solver: B}}, system: x}
              |                                  ^^^^^^
            hint: give it to them
        "#]],
    );
}

#[test]
fn blocks_have_kinds_of_their_own_and_somebody_who_writes_them() {
    check_agent(
        "answers: {type: object}, blocks: [{kind: x, begin: a, end: b}, {kind: x, begin: c, end: d}]",
        &expect![[r#"
            error: all that it says is JSON then, and has no `blocks`
             --> t.yaml:3:15
              |
            3 |   - {name: A, answers: {type: object}, blocks: [{kind: x, begin: a, end: b}, {kind: x, begin: c, end
              |               ^^^^^^^
            hint: leave out one of them

            error: there are blocks of the kind `x` already
             --> t.yaml:3:85
              |
            3 | nd: x, begin: a, end: b}, {kind: x, begin: c, end: d}]}
              |                                  ^
        "#]],
    );
    check_agent(
        "runs_blocks: {code: {python: python}}",
        &expect![[r#"
            warning: nobody writes `blocks` of the kind `python`
             --> t.yaml:3:36
              |
            3 |   - {name: A, runs_blocks: {code: {python: python}}}
              |                                    ^^^^^^
            hint: give whoever writes them `blocks` of this kind, with a `begin` and an `end`
        "#]],
    );
    check_agent(
        "model: none, auto_reply: x, blocks: [{kind: x, begin: a, end: b}], examples: []",
        &expect![[r#"
            error: an agent without a model has no `blocks`
             --> t.yaml:3:43
              |
            3 |   - {name: A, model: none, auto_reply: x, blocks: [{kind: x, begin: a, end: b}], examples: []}
              |                                           ^^^^^^
            hint: leave out `blocks`, or `model: none`

            error: an agent without a model has no `examples`
             --> t.yaml:3:82
              |
            3 |   - {name: A, model: none, auto_reply: x, blocks: [{kind: x, begin: a, end: b}], examples: []}
              |                                                                                  ^^^^^^^^
            hint: leave out `examples`, or `model: none`
        "#]],
    );
}
