//! Invalid ways of reasoning, and blocks that no agent writes or reads.

use expect_test::{Expect, expect};

use super::check;

/// A team of A with `keys`, who alone takes part, of B, and of L, who replies in layers.
#[track_caller]
fn check_agent(keys: &str, expected: &Expect) {
    check(
        &format!(
            "name: t\nagents:\n  - {{name: A, {keys}}}\n  - {{name: B}}\n  - {{name: L, default_reply: x}}\nchat: {{participants: [A, B, L], stop: {{max_turns: 2}}}}\n"
        ),
        expected,
    );
}

#[test]
fn named_agents_are_others_with_a_model() {
    check_agent(
        "reasoning: {plan_and_solve: {planner: A, solver: L}}",
        &expect![[r#"
            error: `A` is the agent itself
             --> t.yaml:3:53
              |
            3 |   - {name: A, reasoning: {plan_and_solve: {planner: A, solver: L}}}
              |                                                     ^
            hint: leave it out: then the agent does it itself; for criticism by a fresh mind, name another agent

            error: `L` cannot be asked for this: its `default_reply` can also reply
             --> t.yaml:3:64
              |
            3 |   - {name: A, reasoning: {plan_and_solve: {planner: A, solver: L}}}
              |                                                                ^
            hint: name an agent that replies only by a model
        "#]],
    );
    check_agent(
        "reasoning: {best: {critic: C}}",
        &expect![[r#"
            error: there is no agent `C`
             --> t.yaml:3:42
              |
            3 |   - {name: A, reasoning: {best: {critic: C}}}
              |                                          ^
            hint: there are `A`, `B`, `L`
        "#]],
    );
    check_agent(
        "reasoning: best",
        &expect![[r#"
            error: `reasoning` cannot be only `best`
             --> t.yaml:3:26
              |
            3 |   - {name: A, reasoning: best}
              |                          ^^^^
            hint: it takes more than a word: `reasoning: {best: {critic: ...}}`
        "#]],
    );
}

#[test]
fn what_a_way_to_reason_has_no_use_for_is_refused() {
    check_agent(
        "reasoning: react, output_schema: {type: object}, agent_tools: [B]",
        &expect![[r#"
            error: `react` calls tools, but the agent has none
             --> t.yaml:3:15
              |
            3 |   - {name: A, reasoning: react, output_schema: {type: object}, agent_tools: [B]}
              |               ^^^^^^^^^
            hint: give it `tools`, or leave `reasoning` out

            error: an agent that reasons by `react` has no `output_schema`
             --> t.yaml:3:33
              |
            3 |   - {name: A, reasoning: react, output_schema: {type: object}, agent_tools: [B]}
              |                                 ^^^^^^^^^^^^^
            hint: leave it out, or `reasoning`

            error: an agent that reasons by `react` has no `agent_tools`
             --> t.yaml:3:64
              |
            3 |   - {name: A, reasoning: react, output_schema: {type: object}, agent_tools: [B]}
              |                                                                ^^^^^^^^^^^
            hint: leave it out, or `reasoning`
        "#]],
    );
    check_agent(
        "tools: [calculator], suggests_tools: [chess], reasoning: {plan_and_solve: {planner: B, solver: B}}, system: x",
        &expect![[r#"
            error: the steps are solved by another, who uses none of its `tools`
             --> t.yaml:3:15
              |
            3 |   - {name: A, tools: [calculator], suggests_tools: [chess], reasoning: {plan_and_solve: {planner: B,
              |               ^^^^^
            hint: give it to the `solver`

            error: an agent with `reasoning` has no `suggests_tools`
             --> t.yaml:3:36
              |
            3 | - {name: A, tools: [calculator], suggests_tools: [chess], reasoning: {plan_and_solve: {planner: B, s
              |                                  ^^^^^^^^^^^^^^
            hint: leave it out, or `reasoning`

            error: two others plan and solve, who have nothing of its `system`
             --> t.yaml:3:115
              |
            3 | solve: {planner: B, solver: B}}, system: x}
              |                                  ^^^^^^
            hint: give it to them
        "#]],
    );
}

#[test]
fn output_blocks_have_distinct_kinds_and_an_author() {
    check_agent(
        "output_schema: {type: object}, output_blocks: [{kind: x, begin: a, end: b}, {kind: x, begin: c, end: d}]",
        &expect![[r#"
            error: all that it says is JSON then, and has no `output_blocks`
             --> t.yaml:3:15
              |
            3 |   - {name: A, output_schema: {type: object}, output_blocks: [{kind: x, begin: a, end: b}, {kind: x, 
              |               ^^^^^^^^^^^^^
            hint: leave out one of them

            error: blocks of the kind `x` already exist
             --> t.yaml:3:98
              |
            3 | nd: x, begin: a, end: b}, {kind: x, begin: c, end: d}]}
              |                                  ^
        "#]],
    );
    check_agent(
        "runs_output_blocks: {code: {python: python}}",
        &expect![[r#"
            warning[no-effect]: no agent writes `output_blocks` of the kind `python`
             --> t.yaml:3:43
              |
            3 |   - {name: A, runs_output_blocks: {code: {python: python}}}
              |                                           ^^^^^^
            hint: add `output_blocks` of this kind to their author, with a `begin` and an `end`
        "#]],
    );
    check_agent(
        "model: none, default_reply: x, output_blocks: [{kind: x, begin: a, end: b}], examples: []",
        &expect![[r#"
            error: an agent without a model has no `output_blocks`
             --> t.yaml:3:46
              |
            3 | , model: none, default_reply: x, output_blocks: [{kind: x, begin: a, end: b}], examples: []}
              |                                  ^^^^^^^^^^^^^
            hint: remove `output_blocks`, or `model: none`

            error: an agent without a model has no `examples`
             --> t.yaml:3:92
              |
            3 | : [{kind: x, begin: a, end: b}], examples: []}
              |                                  ^^^^^^^^
            hint: remove `examples`, or `model: none`
        "#]],
    );
}
