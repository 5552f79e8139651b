//! Programs, commands and consultations that cannot be as they are meant.

use expect_test::expect;

use super::check;

#[test]
fn agent_tools_are_known_unique_and_other_agents() {
    check(
        "name: t
agents:
  - name: A
    tools: [chess]
    agent_tools: [A, Bob, {who: B, tool: chess}, {who: B, max_calls: 0}, {whom: B}]
  - {name: B, model: none, default_reply: x, agent_tools: [A]}
chat: {participants: [A, B], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `A` would ask itself
             --> t.yaml:5:19
              |
            5 |     agent_tools: [A, Bob, {who: B, tool: chess}, {who: B, max_calls: 0}, {whom: B}]
              |                   ^

            error: there is no agent, chat or team `Bob`
             --> t.yaml:5:22
              |
            5 |     agent_tools: [A, Bob, {who: B, tool: chess}, {who: B, max_calls: 0}, {whom: B}]
              |                      ^^^
            hint: there are `A`, `B`

            error: `A` already has a tool `chess`
             --> t.yaml:5:42
              |
            5 |     agent_tools: [A, Bob, {who: B, tool: chess}, {who: B, max_calls: 0}, {whom: B}]
              |                                          ^^^^^
            hint: give one of them another name with `tool`

            error: `max_calls` must be at least 1
             --> t.yaml:5:70
              |
            5 |     agent_tools: [A, Bob, {who: B, tool: chess}, {who: B, max_calls: 0}, {whom: B}]
              |                                                                      ^

            error: unknown key `whom`
             --> t.yaml:5:75
              |
            5 |     agent_tools: [A, Bob, {who: B, tool: chess}, {who: B, max_calls: 0}, {whom: B}]
              |                                                                           ^^^^
            hint: did you mean `who`?

            error: an agent without a model has no `agent_tools`
             --> t.yaml:6:46
              |
            6 |   - {name: B, model: none, default_reply: x, agent_tools: [A]}
              |                                              ^^^^^^^^^^^
            hint: remove `agent_tools`, or `model: none`
        "#]],
    );
}

#[test]
fn mistakes_in_code_execution_are_reported_with_the_allowed_values() {
    check(
        "name: t
agents:
  - {name: A, code_execution: {languages: [], approval: sometimes}}
  - {name: B, code_execution: {languages: [python, pyhton], approval: {when: 'codes.size() > 3'}, timeout: 10, last: 0}}
  - {name: C, code_execution: {approval: {when: 'code.size()'}}}
  - {name: D, code_execution: yes please}
chat: {participants: [A, B, C, D], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `languages` is empty
             --> t.yaml:3:43
              |
            3 |   - {name: A, code_execution: {languages: [], approval: sometimes}}
              |                                           ^^

            error: `approval` cannot be `sometimes`
             --> t.yaml:3:57
              |
            3 |   - {name: A, code_execution: {languages: [], approval: sometimes}}
              |                                                         ^^^^^^^^^
            hint: there are `never`, `always`, `when`, `matches`

            error: an item of `languages` cannot be `pyhton`
             --> t.yaml:4:52
              |
            4 | _execution: {languages: [python, pyhton], approval: {when: 'codes.size() > 3'}, timeout: 10, last: 0
              |                                  ^^^^^^
            hint: did you mean `python`?

            error: `codes.size() > 3` is not a condition: `codes` is unknown
             --> t.yaml:4:78
              |
            4 | ython, pyhton], approval: {when: 'codes.size() > 3'}, timeout: 10, last: 0}}
              |                                  ^^^^^^^^^^^^^^^^^^
            hint: did you mean `code`?

            error: `timeout` must be a text, not a number
             --> t.yaml:4:108
              |
            4 | n: 'codes.size() > 3'}, timeout: 10, last: 0}}
              |                                  ^^
            hint: add the unit, such as `10 s`

            error: `last` must be at least 1
             --> t.yaml:4:118
              |
            4 | size() > 3'}, timeout: 10, last: 0}}
              |                                  ^

            error: `code.size()` is not a condition: it gives a number, and neither `true` nor `false`
             --> t.yaml:5:49
              |
            5 |   - {name: C, code_execution: {approval: {when: 'code.size()'}}}
              |                                                 ^^^^^^^^^^^^^

            error: `code_execution` must be `true` or `false` or a mapping, not a text
             --> t.yaml:6:31
              |
            6 |   - {name: D, code_execution: yes please}
              |                               ^^^^^^^^^^
        "#]],
    );
}

#[test]
fn approval_names_tools_that_there_are() {
    check(
        "name: t
agents:
  - {name: A, tools: [chess, files], agent_tools: [B], approval: {tools: [ches, write_file, B, 'read_*', list_file]}}
  - {name: B, approval: always}
  - {name: C, tools: [chess], approval: {when: 'arg.path == 1'}}
  - {name: D, tools: [chess], approval: {when: args.path}}
  - {name: E, tools: [chess], approval: {when: size(tool)}}
  - {name: F, tools: [chess], approval: {tools: [], matches: '('}}
chat: {participants: [A, B, C, D, E, F], stop: {max_turns: 2}}
",
        &expect![[r#"
            warning[unknown-tool]: `A` has no tool `ches`
             --> t.yaml:3:75
              |
            3 | t_tools: [B], approval: {tools: [ches, write_file, B, 'read_*', list_file]}}
              |                                  ^^^^
            hint: did you mean `chess`?

            warning[unknown-tool]: `A` has no tool `list_file`
             --> t.yaml:3:106
              |
            3 |  [ches, write_file, B, 'read_*', list_file]}}
              |                                  ^^^^^^^^^
            hint: did you mean `list_files`?

            warning[no-effect]: `B` has no tools that a person could be asked about
             --> t.yaml:4:15
              |
            4 |   - {name: B, approval: always}
              |               ^^^^^^^^
            hint: give it `tools` or `executes_tools`; code that it runs has an `approval` in `code_execution`

            error: `arg.path == 1` is not a condition: `arg` is unknown
             --> t.yaml:5:48
              |
            5 |   - {name: C, tools: [chess], approval: {when: 'arg.path == 1'}}
              |                                                ^^^^^^^^^^^^^^^
            hint: did you mean `args`?

            error: `size(tool)` is not a condition: it gives a number, and neither `true` nor `false`
             --> t.yaml:7:48
              |
            7 |   - {name: E, tools: [chess], approval: {when: size(tool)}}
              |                                                ^^^^^^^^^^

            error: `tools` is empty
             --> t.yaml:8:49
              |
            8 |   - {name: F, tools: [chess], approval: {tools: [], matches: '('}}
              |                                                 ^^

            error: `approval` takes one key only, and `matches` is another
             --> t.yaml:8:53
              |
            8 |   - {name: F, tools: [chess], approval: {tools: [], matches: '('}}
              |                                                     ^^^^^^^
        "#]],
    );
}

/// Users who write this expect to see code before it runs.
#[test]
fn approval_of_calls_is_not_taken_for_approval_of_code() {
    check(
        "name: t
agents:
  - {name: A, approval: always, code_execution: true}
  - {name: B, tools: [chess], approval: always, code_execution: {languages: [python]}}
  - {name: C, tools: [chess], approval: always, code_execution: {approval: never}}
  - {name: D, tools: [chess], approval: {tools: [chess]}, code_execution: true}
chat: {participants: [A, B, C, D], stop: {max_turns: 4}}
",
        &expect![[r#"
            error: this approval is not for the code that `A` runs
             --> t.yaml:3:15
              |
            3 |   - {name: A, approval: always, code_execution: true}
              |               ^^^^^^^^
            hint: write `code_execution: {approval: always}`; `{approval: never}` there runs it without a question

            error: this approval is not for the code that `B` runs
             --> t.yaml:4:31
              |
            4 |   - {name: B, tools: [chess], approval: always, code_execution: {languages: [python]}}
              |                               ^^^^^^^^
            hint: write `code_execution: {approval: always}`; `{approval: never}` there runs it without a question
        "#]],
    );
}

/// Without a sandbox, code is asked about by default.
#[test]
fn without_a_sandbox_approval_of_calls_is_no_mistake_next_to_code() {
    check(
        "name: t
sandbox: {backend: none}
agents: [{name: A, tools: [chess], approval: always, code_execution: true}, {name: B}]
chat: {participants: [A, B], stop: {max_turns: 4}}
",
        &expect![""],
    );
}

#[test]
fn a_sandbox_fits_together() {
    check(
        "name: t
agents: [{name: A, tools: [python]}]
sandbox: {backend: docker, network: ['https://example.org', '*.example.org:80'], readable: [data], memory_mib: 1}
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `backend: docker` needs an image
             --> t.yaml:3:20
              |
            3 | sandbox: {backend: docker, network: ['https://example.org', '*.example.org:80'], readable: [data], m
              |                    ^^^^^^
            hint: add `image`, such as `image: python:3.12-slim`

            error: only the native sandbox lets single hosts through, not with `backend: docker`
             --> t.yaml:3:28
              |
            3 | sandbox: {backend: docker, network: ['https://example.org', '*.example.org:80'], readable: [data], m
              |                            ^^^^^^^
            hint: leave out `network`, or `backend`

            error: `https://example.org` is not a host
             --> t.yaml:3:38
              |
            3 | box: {backend: docker, network: ['https://example.org', '*.example.org:80'], readable: [data], memor
              |                                  ^^^^^^^^^^^^^^^^^^^^^
            hint: name a host, such as `example.org`, `*.example.org` or `example.org:8080`

            error: this path must be absolute
             --> t.yaml:3:93
              |
            3 |  '*.example.org:80'], readable: [data], memory_mib: 1}
              |                                  ^^^^
            hint: write the whole path, or bring the file along with `files`

            error: `memory_mib` must be at least 16
             --> t.yaml:3:112
              |
            3 | ], readable: [data], memory_mib: 1}
              |                                  ^
        "#]],
    );
    check(
        "name: t
agents: [{name: A, tools: [python]}]
sandbox: {backend: unsafe_host, image: python}
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `backend` cannot be `unsafe_host`
             --> t.yaml:3:20
              |
            3 | sandbox: {backend: unsafe_host, image: python}
              |                    ^^^^^^^^^^^
            hint: there are `native`, `docker`, `podman`, `none`

            error: `image` applies only to containers
             --> t.yaml:3:33
              |
            3 | sandbox: {backend: unsafe_host, image: python}
              |                                 ^^^^^
            hint: add `backend: docker` or `backend: podman`, or leave it out
        "#]],
    );
    check(
        "name: t
agents: [{name: A, tools: [python]}]
sandbox: {backend: docker, image: '--volume=/:/host'}
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `--volume=/:/host` is not the name of an image
             --> t.yaml:3:35
              |
            3 | sandbox: {backend: docker, image: '--volume=/:/host'}
              |                                   ^^^^^^^^^^^^^^^^^^
            hint: write it as `python:3.12-slim`
        "#]],
    );
}

#[test]
fn mistakes_in_commands_are_errors() {
    check(
        "name: t
agents: [{name: A, tools: [count, python, {tool: files, mandatory: true}, read_file]}]
commands:
  - {name: python, description: x, command: [python3]}
  - {name: count, description: x, command: [wc, '{file}']}
  - {name: count, description: x, command: [wc]}
  - {name: other, command: []}
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `files` stands for several tools
             --> t.yaml:2:57
              |
            2 | agents: [{name: A, tools: [count, python, {tool: files, mandatory: true}, read_file]}]
              |                                                         ^^^^^^^^^
            hint: name the one that is meant, such as `read_file`

            error: `read_file` is already included in `files`
             --> t.yaml:2:75
              |
            2 | agents: [{name: A, tools: [count, python, {tool: files, mandatory: true}, read_file]}]
              |                                                                           ^^^^^^^^^

            error: a tool `python` already exists
             --> t.yaml:4:12
              |
            4 |   - {name: python, description: x, command: [python3]}
              |            ^^^^^^

            error: a command `count` already exists
             --> t.yaml:6:12
              |
            6 |   - {name: count, description: x, command: [wc]}
              |            ^^^^^

            error: an item of `commands` needs the key `description`
             --> t.yaml:7:6
              |
            7 |   - {name: other, command: []}
              |      ^^^^
        "#]],
    );
    check(
        "name: t
agents: [{name: A, tools: [count]}]
commands:
  - {name: count, description: x, command: [wc, '{file}']}
  - {name: 'a b', description: x, command: [wc]}
  - {name: idle, description: x, command: [wc]}
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: the command `count`: there is no argument `file`; declare it in `arguments`
             --> t.yaml:4:12
              |
            4 |   - {name: count, description: x, command: [wc, '{file}']}
              |            ^^^^^

            error: the command `a b`: a name is 1 to 64 ASCII letters, digits, `_` and `-`
             --> t.yaml:5:12
              |
            5 |   - {name: 'a b', description: x, command: [wc]}
              |            ^^^^^

            warning[unused]: no agent has the command `idle`
             --> t.yaml:6:12
              |
            6 |   - {name: idle, description: x, command: [wc]}
              |            ^^^^
            hint: name it among the `tools` of an agent, or leave it out
        "#]],
    );
}

#[test]
fn a_text_that_stands_alone_brings_no_files_along() {
    check(
        "name: t
agents: [{name: A, tools: [files]}]
files: [data.csv, ../secret, /etc/passwd, '']
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: the file `data.csv` cannot be included: files are not read here
             --> t.yaml:3:9
              |
            3 | files: [data.csv, ../secret, /etc/passwd, '']
              |         ^^^^^^^^

            error: the file `../secret` cannot be included: it is not below the folder of the team file
             --> t.yaml:3:19
              |
            3 | files: [data.csv, ../secret, /etc/passwd, '']
              |                   ^^^^^^^^^

            error: the file `/etc/passwd` cannot be included: it is not below the folder of the team file
             --> t.yaml:3:30
              |
            3 | files: [data.csv, ../secret, /etc/passwd, '']
              |                              ^^^^^^^^^^^

            error: the path is empty
             --> t.yaml:3:43
              |
            3 | files: [data.csv, ../secret, /etc/passwd, '']
              |                                           ^^
        "#]],
    );
}

#[test]
fn a_participant_can_call_its_chat_as_a_tool_but_a_chat_cannot_contain_itself() {
    let text = "name: t
agents: [{name: A, agent_tools: [work]}, {name: B}]
chat: {participants: [A], pattern: sequential}
chats:
  - {name: work, participants: [A, B], pattern: sequential}
";
    check(text, &expect![[r#""#]]);
    let team = polylogue_team::parse(text, "t.yaml", &polylogue_team::Overrides::default()).unwrap().team;
    let model = |_: &str| Ok(polylogue::AnyModel::new(polylogue_models::Script::default().model("x")));
    assert!(team.build(&model).is_err_and(|error| error.to_string() == "`A` has no model"));
    let mut team = team;
    team.use_model("any");
    team.build(&model).unwrap();
    check(
        "name: t
agents: [{name: A, agent_tools: [work]}, {name: B, agent_tools: [work]}, {name: C, agent_tools: [B]}]
chat: {participants: [A], pattern: sequential}
chats:
  - {name: work, participants: [C], pattern: sequential}
",
        &expect![[r#"
            error: the chat `work` takes part in itself: work > work
             --> t.yaml:2:66
              |
            2 | [work]}, {name: B, agent_tools: [work]}, {name: C, agent_tools: [B]}]
              |                                  ^^^^
            hint: remove `work` here: it would wait for its own end
        "#]],
    );
}

#[test]
fn chains_of_agent_tools_are_bounded() {
    let names: Vec<String> = (0..9).map(|n| format!("A{n}")).collect();
    let agent = |name: &String| {
        let others: Vec<&str> = names.iter().filter(|other| *other != name).map(String::as_str).collect();
        format!("  - {{name: {name}, agent_tools: [{}]}}\n", others.join(", "))
    };
    let agents: String = names.iter().map(agent).collect();
    let text = format!("name: t\nagents:\n{agents}chat: {{participants: [A0], stop: {{max_turns: 2}}}}\n");
    let errors = polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()).unwrap_err();
    assert!(errors.to_string().contains("can ask one another in more than 500 ways"), "{errors}");
}

#[test]
fn tool_limits_are_within_bounds_and_need_tools() {
    let with = |limits: &str| {
        format!(
            "name: t\nagents:\n  - {{name: A, tools: [chess], tool_limits: {limits}}}\nchat: {{participants: [A], stop: {{max_turns: 1}}}}\n"
        )
    };
    check(
        &with("{timeout: 20, max_output_bytes: 99, size: 4}"),
        &expect![[r#"
            error: `timeout` must be a text, not a number
             --> t.yaml:3:54
              |
            3 |   - {name: A, tools: [chess], tool_limits: {timeout: 20, max_output_bytes: 99, size: 4}}
              |                                                      ^^
            hint: add the unit, such as `20 s`

            error: `max_output_bytes` must be at least 100
             --> t.yaml:3:76
              |
            3 |   - {name: A, tools: [chess], tool_limits: {timeout: 20, max_output_bytes: 99, size: 4}}
              |                                                                            ^^

            error: unknown key `size`
             --> t.yaml:3:80
              |
            3 |   - {name: A, tools: [chess], tool_limits: {timeout: 20, max_output_bytes: 99, size: 4}}
              |                                                                                ^^^^
            hint: there are `timeout`, `max_output_bytes`, `large_results`
        "#]],
    );
    check(
        &with("{timeout: 2 d}"),
        &expect![[r#"
            error: `2 d` is not a time
             --> t.yaml:3:54
              |
            3 |   - {name: A, tools: [chess], tool_limits: {timeout: 2 d}}
              |                                                      ^^^
            hint: write a number and its unit: `500 ms`, `10 s`, `2 min` or `1 h`
        "#]],
    );
    check(
        &with("{}"),
        &expect![[r#"
            error: `tool_limits` is empty
             --> t.yaml:3:44
              |
            3 |   - {name: A, tools: [chess], tool_limits: {}}
              |                                            ^^
            hint: there are `timeout`, `max_output_bytes`, `large_results`
        "#]],
    );
    let none = with("{timeout: 20 s}").replace("tools: [chess], ", "");
    check(
        &none,
        &expect![[r#"
            warning[no-effect]: `A` has no tools to limit
             --> t.yaml:3:15
              |
            3 |   - {name: A, tool_limits: {timeout: 20 s}}
              |               ^^^^^^^^^^^
            hint: give it `tools` or `executes_tools`; code that it executes has a `timeout` in `code_execution`
        "#]],
    );
    check(&none.replace("tool_limits", "memory: true, tool_limits"), &expect![""]);
}
