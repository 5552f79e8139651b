//! MCP servers that cannot be as they are meant.

use expect_test::expect;

use super::check;

#[test]
fn servers_are_there_and_are_named_once() {
    check(
        "name: t
mcp:
  clock: {command: python3, args: [clock.py]}
  both: {command: x, url: http://x}
  none: {}
agents:
  - name: A
    tools: [{mcp: clok}, {mcp: clock, include: [a]}, {mcp: clock, exclude: [b]}, {mcp: both, include: [a], exclude: [b]}]
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: the MCP server `both` has both a `command` and a `url`: which is it?
             --> t.yaml:4:3
              |
            4 |   both: {command: x, url: http://x}
              |   ^^^^

            error: the MCP server `none` has neither a `command` nor a `url`
             --> t.yaml:5:3
              |
            5 |   none: {}
              |   ^^^^

            warning[unused]: no agent has tools of the MCP server `none`
             --> t.yaml:5:3
              |
            5 |   none: {}
              |   ^^^^
            hint: add `{mcp: none}` to the `tools` of an agent, or leave it out

            error: there is no MCP server `clok`
             --> t.yaml:8:19
              |
            8 |     tools: [{mcp: clok}, {mcp: clock, include: [a]}, {mcp: clock, exclude: [b]}, {mcp: both, include
              |                   ^^^^
            hint: did you mean `clock`?

            error: tools of `clock` are already listed
             --> t.yaml:8:60
              |
            8 | mcp: clock, include: [a]}, {mcp: clock, exclude: [b]}, {mcp: both, include: [a], exclude: [b]}]
              |                                  ^^^^^
            hint: put them together, in one `include` or one `exclude`

            error: `include` and `exclude` cannot both be given
             --> t.yaml:8:108
              |
            8 |  [b]}, {mcp: both, include: [a], exclude: [b]}]
              |                                  ^^^^^^^
            hint: remove one of them: `include` names the tools to use, `exclude` those not to use
        "#]],
    );
}

#[test]
fn wrong_keys_of_mcp_servers_are_reported_at_their_lines() {
    check(
        "name: t
mcp: {clock: {comand: x, cwd: 7}}
agents:
  - name: A
    tools: [{mcp: clock, onyl: [a]}, {mcp: clock, include: []}]
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: unknown key `comand`
             --> t.yaml:2:15
              |
            2 | mcp: {clock: {comand: x, cwd: 7}}
              |               ^^^^^^
            hint: did you mean `command`?

            error: `cwd` must be a text, not a number
             --> t.yaml:2:31
              |
            2 | mcp: {clock: {comand: x, cwd: 7}}
              |                               ^
            hint: put it in quotes: "7"

            error: unknown key `onyl`
             --> t.yaml:5:26
              |
            5 |     tools: [{mcp: clock, onyl: [a]}, {mcp: clock, include: []}]
              |                          ^^^^
            hint: there are `mcp`, `include`, `exclude`, `max_cost`

            error: `include` is empty
             --> t.yaml:5:60
              |
            5 |     tools: [{mcp: clock, onyl: [a]}, {mcp: clock, include: []}]
              |                                                            ^^
        "#]],
    );
}

#[test]
fn secrets_have_no_place_in_a_file_and_are_not_shown() {
    check(
        "name: t
mcp:
  clock: {command: x, args: [--key, sk-proj-abcdefgh], env: {CLOCK_TOKEN: hunter22, PLAIN: yes}}
  far: {url: https://x.example, headers: {Authorization: '${KEY}'}}
agents: [{name: A, tools: [{mcp: clock}]}]
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: the MCP server `clock` has a secret, `CLOCK_TOKEN`, in a file
             --> t.yaml:3:3
              |
            3 |   clock: {command: x, args: [--key, ****************], env: {CLOCK_TOKEN: ********, PLAIN: yes}}
              |   ^^^^^
            hint: write `${NAME}` instead, the name of an environment variable that has it

            error: the MCP server `clock` has a secret in a file
             --> t.yaml:3:3
              |
            3 |   clock: {command: x, args: [--key, ****************], env: {CLOCK_TOKEN: ********, PLAIN: yes}}
              |   ^^^^^
            hint: write `${NAME}` instead, the name of an environment variable that has it

            warning[unused]: no agent has tools of the MCP server `far`
             --> t.yaml:4:3
              |
            4 |   far: {url: https://x.example, headers: {Authorization: '${KEY}'}}
              |   ^^^
            hint: add `{mcp: far}` to the `tools` of an agent, or leave it out
        "#]],
    );
}
