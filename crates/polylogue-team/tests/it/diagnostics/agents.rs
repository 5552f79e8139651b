//! Agents that cannot reply as they are meant to, and chats within them.

use expect_test::expect;

use super::check;

#[test]
fn more_tools_than_a_request_to_the_model_can_have_are_an_error() {
    let names: Vec<String> = (0..129).map(|n| format!("c{n}")).collect();
    let commands: Vec<String> =
        names.iter().map(|name| format!("{{name: {name}, description: d, command: [ls]}}")).collect();
    let (commands, names) = (commands.join(", "), names.join(", "));
    let refused = "can have at most 128 tools, and the agent has 129";
    for (model, keys, is_refused) in [
        ("openai:gpt-4o", ", tool_search: false", true),
        ("openai:gpt-4o", ", tool_search: {above: 200}", true),
        ("openai:gpt-4o", "", false),
        ("openai:gpt-4o", ", tool_search: false, tool_calling: text", false),
        ("anthropic:claude-opus-4-1", ", tool_search: false", false),
    ] {
        let text = format!(
            "name: t\nagents: [{{name: Ann, model: '{model}', tools: [{names}]{keys}}}]\n\
             commands: [{commands}]\nchat: {{participants: [Ann], pattern: sequential}}\n"
        );
        let said = match polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()) {
            Ok(_) => String::new(),
            Err(diagnostics) => diagnostics.to_string(),
        };
        assert_eq!(said.contains(refused), is_refused, "{model}{keys}: {said}");
        assert_eq!(said.is_empty(), !is_refused, "{model}{keys}: {said}");
    }
}

#[test]
fn tools_of_a_server_count_as_far_as_the_file_names_them() {
    let names = |count: usize| (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>().join(", ");
    let refused = "can have at most 128 tools, and the agent has 129";
    for (tools, is_refused) in [
        (format!("{{mcp: server, include: [{}]}}", names(129)), true),
        (format!("chess, {{mcp: server, include: [{}]}}", names(128)), true),
        (format!("{{mcp: server, include: [{}]}}", names(128)), false),
        (format!("{{mcp: server, exclude: [{}]}}", names(129)), false),
        ("{mcp: server}".to_owned(), false),
    ] {
        let text = format!(
            "name: t\nagents: [{{name: Ann, model: 'openai:gpt-4o', tools: [{tools}], tool_search: false}}]\n\
             mcp: {{server: {{command: serve}}}}\nchat: {{participants: [Ann], pattern: sequential}}\n"
        );
        let said = match polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()) {
            Ok(_) => String::new(),
            Err(diagnostics) => diagnostics.to_string(),
        };
        assert_eq!(said.contains(refused), is_refused, "{tools}: {said}");
        assert_eq!(said.is_empty(), !is_refused, "{tools}: {said}");
    }
}

#[test]
fn an_agent_without_a_model_has_nothing_of_one() {
    check(
        "name: t
agents:
  - {name: A, model: none, system: x, tools: [chess], suggests_tools: [chess], handoffs: [B], default_reply: x}
  - {name: B, human: true, handoffs: [A], executes_tools: [ches]}
chat: {participants: [A, B], stop: {max_turns: 2}}
script: [{A: x}]
",
        &expect![[r#"
            error: an agent without a model has no `system`
             --> t.yaml:3:28
              |
            3 |   - {name: A, model: none, system: x, tools: [chess], suggests_tools: [chess], handoffs: [B], defaul
              |                            ^^^^^^
            hint: remove `system`, or `model: none`

            error: an agent without a model has no `tools`
             --> t.yaml:3:39
              |
            3 | name: A, model: none, system: x, tools: [chess], suggests_tools: [chess], handoffs: [B], default_rep
              |                                  ^^^^^
            hint: remove `tools`, or `model: none`

            error: an agent without a model has no `suggests_tools`
             --> t.yaml:3:55
              |
            3 | none, system: x, tools: [chess], suggests_tools: [chess], handoffs: [B], default_reply: x}
              |                                  ^^^^^^^^^^^^^^
            hint: remove `suggests_tools`, or `model: none`

            error: an agent without a model has no `handoffs`
             --> t.yaml:3:80
              |
            3 | chess], suggests_tools: [chess], handoffs: [B], default_reply: x}
              |                                  ^^^^^^^^
            hint: remove `handoffs`, or `model: none`

            error: a person has no `handoffs`
             --> t.yaml:4:28
              |
            4 |   - {name: B, human: true, handoffs: [A], executes_tools: [ches]}
              |                            ^^^^^^^^
            hint: remove `handoffs`, or `human: true`; `human_input` lets a person reply for a model

            error: unknown tool `ches`
             --> t.yaml:4:60
              |
            4 |   - {name: B, human: true, handoffs: [A], executes_tools: [ches]}
              |                                                            ^^^^
            hint: did you mean `chess`?

            error: `A` is an agent without a model, and has no part in a script
             --> t.yaml:6:11
              |
            6 | script: [{A: x}]
              |           ^
            hint: it replies by `default_reply`, `executes_tools`, `nested_chats` and `human_input`
        "#]],
    );
}

#[test]
fn who_sums_up_for_a_nested_chat_is_an_agent_with_a_model() {
    let team = |by: &str| {
        format!(
            "name: t\nmodel: a:b\nagents:\n  - {{name: A, nested_chats: [{{chat: c, context: {{reflect: {{by: {by}}}}}}}]}}\n  - {{name: Bob}}\n\
             chat: {{participants: [A], pattern: sequential}}\nchats: [{{name: c, task: m, participants: [Bob], pattern: sequential}}]\n"
        )
    };
    let wrong =
        |by: &str| polylogue_team::parse(&team(by), "t.yaml", &Default::default()).unwrap_err().to_string();
    assert!(wrong("Bo").contains("there is no agent `Bo`") && wrong("Bo").contains("did you mean `Bob`?"));
    assert!(wrong("c").contains("`c` cannot write the summary"), "{}", wrong("c"));
    assert!(
        polylogue_team::parse(&team("Bob"), "t.yaml", &Default::default())
            .unwrap()
            .warnings
            .iter()
            .next()
            .is_none()
    );
}

#[test]
fn a_tool_is_run_by_one() {
    check(
        "name: t\nagents: [{name: A, tools: [chess, chess], suggests_tools: [chess]}]\nchat: {participants: [A], stop: {max_turns: 2}}\n",
        &expect![[r#"
            error: `chess` is already in `tools`
             --> t.yaml:2:35
              |
            2 | agents: [{name: A, tools: [chess, chess], suggests_tools: [chess]}]
              |                                   ^^^^^

            error: `chess` is already in `tools`
             --> t.yaml:2:60
              |
            2 | agents: [{name: A, tools: [chess, chess], suggests_tools: [chess]}]
              |                                                            ^^^^^
            hint: `tools` are run by the agent itself, `suggests_tools` by another agent
        "#]],
    );
}

#[test]
fn invalid_modes_limits_and_terminations_are_errors() {
    check(
        "name: t
agents:
  - {name: A, human_input: sometimes, max_auto_replies: -1, terminate_on: ''}
  - {name: B, terminate_on: {says: {text: x, by: Q}}, clear_command: true}
chat: {participants: [A, B], stop: {max_turns: 2}}
",
        &expect![[r#"
            error: `human_input` cannot be `sometimes`
             --> t.yaml:3:28
              |
            3 |   - {name: A, human_input: sometimes, max_auto_replies: -1, terminate_on: ''}
              |                            ^^^^^^^^^
            hint: there are `always`, `terminate`, `never`

            error: `max_auto_replies` must be at least 0
             --> t.yaml:3:57
              |
            3 |   - {name: A, human_input: sometimes, max_auto_replies: -1, terminate_on: ''}
              |                                                         ^^

            error: `terminate_on` is empty
             --> t.yaml:3:75
              |
            3 |   - {name: A, human_input: sometimes, max_auto_replies: -1, terminate_on: ''}
              |                                                                           ^^

            error: there is no agent, chat or team `Q`
             --> t.yaml:4:50
              |
            4 |   - {name: B, terminate_on: {says: {text: x, by: Q}}, clear_command: true}
              |                                                  ^
            hint: there are `A`, `B`, `user`

            error: no person is asked for `B`
             --> t.yaml:4:55
              |
            4 |   - {name: B, terminate_on: {says: {text: x, by: Q}}, clear_command: true}
              |                                                       ^^^^^^^^^^^^^
            hint: a person gives the command: add `human_input: always`, or remove `clear_command`
        "#]],
    );
}

#[test]
fn agents_without_a_reply_are_warned_of() {
    check(
        "name: t\nagents: [{name: A, model: none}, {name: B, human: true, human_input: never}]\nchat: {participants: [A, B], stop: {max_turns: 2}}\n",
        &expect![[r#"
            warning[no-reply]: `A` has nothing to reply with
             --> t.yaml:2:17
              |
            2 | agents: [{name: A, model: none}, {name: B, human: true, human_input: never}]
              |                 ^
            hint: give it `default_reply`, `executes_tools`, `nested_chats` or `human_input`

            warning[no-reply]: `B` has nothing to reply with
             --> t.yaml:2:41
              |
            2 | agents: [{name: A, model: none}, {name: B, human: true, human_input: never}]
              |                                         ^
            hint: give it `default_reply`, `executes_tools`, `nested_chats` or `human_input`
        "#]],
    );
}

#[test]
fn a_nested_chat_is_a_chat() {
    check(
        "name: t
agents: [{name: A, nested_chats: [{chat: B}, {chat: inne, when: {from: Q, matches: '('}}]}, {name: B}]
chat: {participants: [A, B], stop: {max_turns: 2}}
chats: [{name: inner, pattern: sequential, participants: [B]}]
",
        &expect![[r#"
            error: the agent `B` is not a chat
             --> t.yaml:2:42
              |
            2 | [{name: A, nested_chats: [{chat: B}, {chat: inne, when: {from: Q, matches: '('}}]}, {name: B}]
              |                                  ^
            hint: name one of `chats`; it can have a single participant

            error: there is no chat `inne`
             --> t.yaml:2:53
              |
            2 | nested_chats: [{chat: B}, {chat: inne, when: {from: Q, matches: '('}}]}, {name: B}]
              |                                  ^^^^
            hint: did you mean `inner`?

            error: there is no agent, chat or team `Q`
             --> t.yaml:2:72
              |
            2 | t: B}, {chat: inne, when: {from: Q, matches: '('}}]}, {name: B}]
              |                                  ^
            hint: there are `A`, `B`, `inner`, `user`

            error: `(` is not a valid regular expression: unclosed group
             --> t.yaml:2:84
              |
            2 | : inne, when: {from: Q, matches: '('}}]}, {name: B}]
              |                                  ^^^
        "#]],
    );
}

/// In its own chats an agent has none; only another agent could lead back into them.
#[test]
fn a_nested_chat_does_not_lead_back_into_itself() {
    check(
        "name: t
agents: [{name: A, nested_chats: [{chat: one}]}, {name: B, nested_chats: [{chat: two}]}]
chat: {participants: [A, B], stop: {max_turns: 2}}
chats:
  - {name: one, participants: [A, B], stop: {max_turns: 2}}
  - {name: two, participants: [B, A], stop: {max_turns: 2}}
",
        &expect![""],
    );
    check(
        "name: t
agents: [{name: A, nested_chats: [{chat: one}]}, {name: B}]
chat: {participants: [A, B], stop: {max_turns: 2}}
chats: [{name: one, participants: [A, B], stop: {max_turns: 2}}]
",
        &expect![""],
    );
    check(
        "name: t
agents: [{name: A, nested_chats: [{chat: one}]}, {name: B, nested_chats: [{chat: one}]}]
chat: {participants: [A], stop: {max_turns: 2}}
chats: [{name: one, participants: [B], stop: {max_turns: 2}}]
",
        &expect![[r#"
            error: the chat `one` takes part in itself: one > one
             --> t.yaml:2:82
              |
            2 | agents: [{name: A, nested_chats: [{chat: one}]}, {name: B, nested_chats: [{chat: one}]}]
              |                                                                                  ^^^
            hint: remove `one` here: it would wait for its own end
        "#]],
    );
}

#[test]
fn what_is_carried_over_comes_from_next_to() {
    check(
        "name: t
agents: [{name: A}]
chat: {pattern: sequential, participants: [one, two, A]}
chats:
  - {name: one, task: x, task_from: all, pattern: sequential, participants: [A]}
  - {name: two, task_from: all, carryover: {include: Q, exclude: [one, A, three]}, continues: A, pattern: sequential, participants: [three]}
  - {name: three, carryover: some, continues: two, pattern: sequential, participants: [A]}
",
        &expect![[r#"
            error: `task` and `task_from` cannot both be given
             --> t.yaml:5:26
              |
            5 |   - {name: one, task: x, task_from: all, pattern: sequential, participants: [A]}
              |                          ^^^^^^^^^
            hint: `task` is the whole task; remove one of them

            error: `task_from: all` already includes all results
             --> t.yaml:6:33
              |
            6 |   - {name: two, task_from: all, carryover: {include: Q, exclude: [one, A, three]}, continues: A, pat
              |                                 ^^^^^^^^^
            hint: remove `carryover`, or `task_from`

            error: `Q` takes part in no chat together with `two`
             --> t.yaml:6:54
              |
            6 | _from: all, carryover: {include: Q, exclude: [one, A, three]}, continues: A, pattern: sequential, pa
              |                                  ^
            hint: name a participant of the same chat

            error: `three` takes part in no chat together with `two`
             --> t.yaml:6:75
              |
            6 | : {include: Q, exclude: [one, A, three]}, continues: A, pattern: sequential, participants: [three]}
              |                                  ^^^^^
            hint: name a participant of the same chat

            error: the agent `A` has no conversation of its own
             --> t.yaml:6:95
              |
            6 | de: [one, A, three]}, continues: A, pattern: sequential, participants: [three]}
              |                                  ^
            hint: name a chat, or `self`

            error: `carryover` cannot be `some`
             --> t.yaml:7:30
              |
            7 |   - {name: three, carryover: some, continues: two, pattern: sequential, participants: [A]}
              |                              ^^^^
            hint: there are `all`, `none`

            error: `two` takes part in no chat together with `three`
             --> t.yaml:7:47
              |
            7 |   - {name: three, carryover: some, continues: two, pattern: sequential, participants: [A]}
              |                                               ^^^
            hint: name a participant of the same chat
        "#]],
    );
}

/// It decides which keys the agent can have, so that a wrong one was once read by none of its kinds.
#[test]
fn what_decides_whether_an_agent_is_a_person_must_be_a_switch() {
    for (keys, wrong) in [
        ("human: 7", "`human` must be `true` or `false`, not a number"),
        ("human: yes", "`human` must be `true` or `false`, not a text"),
        ("model: none, default_reply: Go on., human: [x]", "`human` must be `true` or `false`, not a list"),
        ("human: true, model: ['openai:a', 'openai:b']", "a person has no `model`"),
    ] {
        let text = format!(
            "name: t\nagents: [{{name: A}}, {{name: B, {keys}}}]\nchat: {{participants: [A, B], stop: {{max_turns: 4}}}}\n"
        );
        let Err(said) = polylogue_team::parse(&text, "t.yaml", &polylogue_team::Overrides::default()) else {
            panic!("{keys} is accepted");
        };
        let said = said.to_string();
        assert!(said.contains(wrong) && said.matches("error: ").count() == 1, "{keys}: {said}");
    }
}
