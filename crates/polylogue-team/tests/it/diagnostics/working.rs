//! Programs, commands and consultations that cannot be as they are meant.

use expect_test::expect;

use super::check;

#[test]
fn who_is_asked_is_there_once_and_somebody_else() {
    check(
        "name: t
agents:
  - name: A
    tools: [chess]
    consults: [A, Bob, {who: B, tool: chess}, {who: B, at_most: 0}, {whom: B}]
  - {name: B, model: none, auto_reply: x, consults: [A]}
chat: {participants: [A, B], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `A` would ask itself
             --> t.yaml:5:16
              |
            5 |     consults: [A, Bob, {who: B, tool: chess}, {who: B, at_most: 0}, {whom: B}]
              |                ^

            error: there is no agent, chat or team `Bob`
             --> t.yaml:5:19
              |
            5 |     consults: [A, Bob, {who: B, tool: chess}, {who: B, at_most: 0}, {whom: B}]
              |                   ^^^
            hint: there is `A`, `B`

            error: `A` has a tool `chess` already
             --> t.yaml:5:39
              |
            5 |     consults: [A, Bob, {who: B, tool: chess}, {who: B, at_most: 0}, {whom: B}]
              |                                       ^^^^^
            hint: give one of them another name with `tool`

            error: `at_most` must be at least 1
             --> t.yaml:5:65
              |
            5 |     consults: [A, Bob, {who: B, tool: chess}, {who: B, at_most: 0}, {whom: B}]
              |                                                                 ^

            error: unknown key `whom`
             --> t.yaml:5:70
              |
            5 |     consults: [A, Bob, {who: B, tool: chess}, {who: B, at_most: 0}, {whom: B}]
              |                                                                      ^^^^
            hint: did you mean `who`?

            error: an item of `consults` needs the key `who`
             --> t.yaml:5:70
              |
            5 |     consults: [A, Bob, {who: B, tool: chess}, {who: B, at_most: 0}, {whom: B}]
              |                                                                      ^^^^

            error: an agent without a model has no `consults`
             --> t.yaml:6:43
              |
            6 |   - {name: B, model: none, auto_reply: x, consults: [A]}
              |                                           ^^^^^^^^
            hint: leave out `consults`, or `model: none`
        "#]],
    );
}

#[test]
fn what_runs_code_is_said_in_full() {
    check(
        "name: t
agents:
  - {name: A, runs_code: {languages: [], approve: sometimes}}
  - {name: B, runs_code: {languages: [python, pyhton], approve: {when: 'codes.size() > 3'}, time: 10, last: 0}}
  - {name: C, runs_code: {approve: {when: 'code.size()'}}}
  - {name: D, runs_code: yes please}
chat: {participants: [A, B, C, D], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `languages` is empty
             --> t.yaml:3:38
              |
            3 |   - {name: A, runs_code: {languages: [], approve: sometimes}}
              |                                      ^^

            error: `approve` cannot be `sometimes`
             --> t.yaml:3:51
              |
            3 |   - {name: A, runs_code: {languages: [], approve: sometimes}}
              |                                                   ^^^^^^^^^
            hint: there is `never`, `always`, `when`, `matches`

            error: an item of `languages` cannot be `pyhton`
             --> t.yaml:4:47
              |
            4 |  runs_code: {languages: [python, pyhton], approve: {when: 'codes.size() > 3'}, time: 10, last: 0}}
              |                                  ^^^^^^
            hint: did you mean `python`?

            error: `codes.size() > 3` is not a condition: there is nothing called `codes`
             --> t.yaml:4:72
              |
            4 | python, pyhton], approve: {when: 'codes.size() > 3'}, time: 10, last: 0}}
              |                                  ^^^^^^^^^^^^^^^^^^
            hint: did you mean `code`?

            error: `time` must be a text, not a number
             --> t.yaml:4:99
              |
            4 | when: 'codes.size() > 3'}, time: 10, last: 0}}
              |                                  ^^
            hint: write a text such as `500 ms`

            error: `last` must be at least 1
             --> t.yaml:4:109
              |
            4 | es.size() > 3'}, time: 10, last: 0}}
              |                                  ^

            error: `code.size()` is not a condition: it gives a number, and neither `true` nor `false`
             --> t.yaml:5:43
              |
            5 |   - {name: C, runs_code: {approve: {when: 'code.size()'}}}
              |                                           ^^^^^^^^^^^^^

            error: `runs_code` must be `true` or `false` or a mapping, not a text
             --> t.yaml:6:26
              |
            6 |   - {name: D, runs_code: yes please}
              |                          ^^^^^^^^^^
        "#]],
    );
}

#[test]
fn whoever_is_asked_before_a_tool_is_called_is_asked_of_one_that_is_there() {
    check(
        "name: t
agents:
  - {name: A, tools: [chess, files], consults: [B], approve: {tools: [ches, write_file, B, 'read_*', list_file]}}
  - {name: B, approve: always}
  - {name: C, tools: [chess], approve: {when: 'arg.path == 1'}}
  - {name: D, tools: [chess], approve: {when: args.path}}
  - {name: E, tools: [chess], approve: {when: size(tool)}}
  - {name: F, tools: [chess], approve: {tools: [], matches: '('}}
chat: {participants: [A, B, C, D, E, F], stop: {max_turns: 2}}
",
        &expect![[r#"
            warning: `A` has no tool `ches`
             --> t.yaml:3:71
              |
            3 | consults: [B], approve: {tools: [ches, write_file, B, 'read_*', list_file]}}
              |                                  ^^^^
            hint: did you mean `chess`?

            warning: `A` has no tool `list_file`
             --> t.yaml:3:102
              |
            3 |  [ches, write_file, B, 'read_*', list_file]}}
              |                                  ^^^^^^^^^
            hint: did you mean `list_files`?

            warning: `B` has no tools that a person could be asked about
             --> t.yaml:4:15
              |
            4 |   - {name: B, approve: always}
              |               ^^^^^^^
            hint: give it `tools` or `runs`; code that it runs has an `approve` in `runs_code`

            error: `arg.path == 1` is not a condition: there is nothing called `arg`
             --> t.yaml:5:47
              |
            5 |   - {name: C, tools: [chess], approve: {when: 'arg.path == 1'}}
              |                                               ^^^^^^^^^^^^^^^
            hint: did you mean `args`?

            error: `size(tool)` is not a condition: it gives a number, and neither `true` nor `false`
             --> t.yaml:7:47
              |
            7 |   - {name: E, tools: [chess], approve: {when: size(tool)}}
              |                                               ^^^^^^^^^^

            error: `tools` is empty
             --> t.yaml:8:48
              |
            8 |   - {name: F, tools: [chess], approve: {tools: [], matches: '('}}
              |                                                ^^

            error: `approve` takes one key only, and `matches` is another
             --> t.yaml:8:52
              |
            8 |   - {name: F, tools: [chess], approve: {tools: [], matches: '('}}
              |                                                    ^^^^^^^
        "#]],
    );
}

#[test]
fn a_sandbox_fits_together() {
    check(
        "name: t
agents: [{name: A, tools: [python]}]
sandbox: {place: docker, network: ['https://example.org', '*.example.org:80'], readable: [data], memory_mib: 1}
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `place: docker` needs an image
             --> t.yaml:3:18
              |
            3 | sandbox: {place: docker, network: ['https://example.org', '*.example.org:80'], readable: [data], mem
              |                  ^^^^^^
            hint: add `image`, such as `image: python:3.12-slim`

            error: hosts are let through for enclosed programs only, not with `place: docker`
             --> t.yaml:3:26
              |
            3 | sandbox: {place: docker, network: ['https://example.org', '*.example.org:80'], readable: [data], mem
              |                          ^^^^^^^
            hint: leave out `network`, or `place`

            error: `https://example.org` is not a host
             --> t.yaml:3:36
              |
            3 | ndbox: {place: docker, network: ['https://example.org', '*.example.org:80'], readable: [data], memor
              |                                  ^^^^^^^^^^^^^^^^^^^^^
            hint: name a host, such as `example.org`, `*.example.org` or `example.org:8080`

            error: this path does not begin at the root
             --> t.yaml:3:91
              |
            3 |  '*.example.org:80'], readable: [data], memory_mib: 1}
              |                                  ^^^^
            hint: write the whole path, or bring the file along with `files`

            error: `memory_mib` must be at least 16
             --> t.yaml:3:110
              |
            3 | ], readable: [data], memory_mib: 1}
              |                                  ^
        "#]],
    );
    check(
        "name: t
agents: [{name: A, tools: [python]}]
sandbox: {place: unsafe_host, image: python}
chat: {participants: [A], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `place` cannot be `unsafe_host`
             --> t.yaml:3:18
              |
            3 | sandbox: {place: unsafe_host, image: python}
              |                  ^^^^^^^^^^^
            hint: did you mean `unsafe-host`?

            error: there is an `image` for containers only
             --> t.yaml:3:31
              |
            3 | sandbox: {place: unsafe_host, image: python}
              |                               ^^^^^
            hint: add `place: docker` or `place: podman`, or leave it out
        "#]],
    );
}

#[test]
fn commands_have_names_of_their_own_and_hold_what_they_name() {
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

            error: `read_file` is among `files` already
             --> t.yaml:2:75
              |
            2 | agents: [{name: A, tools: [count, python, {tool: files, mandatory: true}, read_file]}]
              |                                                                           ^^^^^^^^^

            error: there is a tool `python` already
             --> t.yaml:4:12
              |
            4 |   - {name: python, description: x, command: [python3]}
              |            ^^^^^^

            error: there is a command `count` already
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
            error: the command `count`: there is no argument `file`
             --> t.yaml:4:12
              |
            4 |   - {name: count, description: x, command: [wc, '{file}']}
              |            ^^^^^

            error: the command `a b`: a name is 1 to 64 ASCII letters, digits, `_` and `-`
             --> t.yaml:5:12
              |
            5 |   - {name: 'a b', description: x, command: [wc]}
              |            ^^^^^

            warning: nobody may call the command `idle`
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
            error: the file `data.csv` cannot be brought along: files are not read here
             --> t.yaml:3:9
              |
            3 | files: [data.csv, ../secret, /etc/passwd, '']
              |         ^^^^^^^^

            error: the file `../secret` cannot be brought along: it is not below the folder of the team file
             --> t.yaml:3:19
              |
            3 | files: [data.csv, ../secret, /etc/passwd, '']
              |                   ^^^^^^^^^

            error: the file `/etc/passwd` cannot be brought along: it is not below the folder of the team file
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
fn a_chat_may_be_asked_by_somebody_in_it_but_not_take_part_in_itself() {
    let text = "name: t
agents: [{name: A, consults: [work]}, {name: B}]
chat: {participants: [A], pattern: once_each}
chats:
  - {name: work, participants: [A, B], pattern: once_each}
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
agents: [{name: A, consults: [work]}, {name: B, consults: [work]}, {name: C, consults: [B]}]
chat: {participants: [A], pattern: once_each}
chats:
  - {name: work, participants: [C], pattern: once_each}
",
        &expect![[r#"
            error: the chat `work` takes part in itself: work > work
             --> t.yaml:2:60
              |
            2 | agents: [{name: A, consults: [work]}, {name: B, consults: [work]}, {name: C, consults: [B]}]
              |                                                            ^^^^
        "#]],
    );
}

#[test]
fn who_asks_whom_is_bounded() {
    let names: Vec<String> = (0..9).map(|n| format!("A{n}")).collect();
    let agent = |name: &String| {
        let others: Vec<&str> = names.iter().filter(|other| *other != name).map(String::as_str).collect();
        format!("  - {{name: {name}, consults: [{}]}}\n", others.join(", "))
    };
    let agents: String = names.iter().map(agent).collect();
    let text = format!("name: t\nagents:\n{agents}chat: {{participants: [A0], stop: {{max_turns: 2}}}}\n");
    let errors = polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()).unwrap_err();
    assert!(errors.to_string().contains("can ask one another in more than 500 ways"), "{errors}");
}

#[test]
fn limits_of_tools_are_within_their_bounds_and_of_somebody_with_tools() {
    let with = |limits: &str| {
        format!(
            "name: t\nagents:\n  - {{name: A, tools: [chess], tool_limits: {limits}}}\nchat: {{participants: [A], stop: {{max_turns: 1}}}}\n"
        )
    };
    check(
        &with("{time: 20, bytes: 99, size: 4}"),
        &expect![[r#"
            error: `time` must be a text, not a number
             --> t.yaml:3:51
              |
            3 |   - {name: A, tools: [chess], tool_limits: {time: 20, bytes: 99, size: 4}}
              |                                                   ^^
            hint: write a text such as `500 ms`

            error: `bytes` must be at least 100
             --> t.yaml:3:62
              |
            3 |   - {name: A, tools: [chess], tool_limits: {time: 20, bytes: 99, size: 4}}
              |                                                              ^^

            error: unknown key `size`
             --> t.yaml:3:66
              |
            3 |   - {name: A, tools: [chess], tool_limits: {time: 20, bytes: 99, size: 4}}
              |                                                                  ^^^^
            hint: there is `time`, `bytes`
        "#]],
    );
    check(
        &with("{time: 2 d}"),
        &expect![[r#"
            error: `2 d` is not a time
             --> t.yaml:3:51
              |
            3 |   - {name: A, tools: [chess], tool_limits: {time: 2 d}}
              |                                                   ^^^
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
            hint: there is `time`, `bytes`
        "#]],
    );
    let none = with("{time: 20 s}").replace("tools: [chess], ", "");
    check(
        &none,
        &expect![[r#"
        warning: `A` has no tools to limit
         --> t.yaml:3:15
          |
        3 |   - {name: A, tool_limits: {time: 20 s}}
          |               ^^^^^^^^^^^
        hint: give it `tools` or `runs`; code that it runs has a `time` in `runs_code`
    "#]],
    );
    check(&none.replace("tool_limits", "memory: true, tool_limits"), &expect![[""]]);
}
