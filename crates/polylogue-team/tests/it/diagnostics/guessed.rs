//! Names of other systems, and names that people guess: each is answered with its equivalent.

use crate::common;

/// The hint about `key` in a team file with these entries of an agent, of the chat and of the team.
fn hint(agent: &str, chat: &str, team: &str, key: &str) -> String {
    let text = format!(
        "name: t\nagents:\n  - {{name: A, {agent}}}\n  - {{name: B}}\nchat: {{participants: [A, B], {chat}}}\n{team}\n"
    );
    let found = common::wrong(&text);
    let mistake = found.split("\n\n").find(|one| one.starts_with(&format!("error: unknown key `{key}`\n")));
    let mistake = mistake.unwrap_or_else(|| panic!("nothing about {key}:\n{found}"));
    mistake.split_once("hint: ").map(|(_, hint)| hint.trim().to_owned()).unwrap_or_default()
}

fn key(entry: &str) -> &str {
    entry.split(':').next().unwrap()
}

#[test]
fn keys_of_agents_that_people_guess_are_answered() {
    for (entry, expected) in [
        ("system_message: x", "AutoGen's `system_message` is `system` here"),
        ("system_prompt: x", "Yacana's `system_prompt` is `system` here"),
        ("instructions: x", "OpenAI's `instructions` is `system` here"),
        ("prompt: x", "`prompt` is `system` here"),
        ("temperature: 0", "it belongs in `parameters`"),
        ("max_tokens: 9", "it belongs in `parameters`"),
        ("type: human", "`type: human` is `human: true` here"),
        ("response_format: {}", "OpenAI's `response_format` is `output_schema` here"),
        ("output_type: {}", "OpenAI's `output_type` is `output_schema` here"),
        ("schema: {}", "`schema` is `output_schema` here"),
        ("nested: []", "`nested` is `nested_chats` here"),
        ("mcp: x", "`mcp` is `tools: [{mcp: NAME}]` here"),
        (
            "mcp_servers: [x]",
            "OpenAI's `mcp_servers` is `tools: [{mcp: NAME}]`, with the server in `mcp` of the team, here",
        ),
        ("functions: [x]", "OpenAI's `functions` is `tools` here"),
        ("llm: x", "CrewAI's `llm` is `model` here"),
        ("llm_config: {}", "AutoGen's `llm_config` is `model` with `parameters` here"),
        ("model_name: x", "Yacana's `model_name` is `model` here"),
        ("role: x", "CrewAI's `role` is `description`, and a part of `system` here"),
        ("goal: x", "CrewAI's `goal` is a part of `system` here"),
        ("backstory: x", "CrewAI's `backstory` is a part of `system` here"),
        ("human_input_mode: ALWAYS", "AutoGen's `human_input_mode: ALWAYS` is `human_input: always` here"),
        (
            "clear_history: true",
            "AutoGen's `clear_history` is `continues: self` of a chat in `chats` for `false`, and the default for `true`, here",
        ),
        (
            "nested_chats: [{chat: c, when: B, clear_history: true}]",
            "AutoGen's `clear_history` is `continues: self` of the chat in `chats` for `false`, and the default for `true`, here",
        ),
        ("human_input_mode: 3", "AutoGen's `human_input_mode` is `human_input` here"),
        (
            "max_consecutive_auto_reply: 1",
            "AutoGen's `max_consecutive_auto_reply` is `max_auto_replies` here",
        ),
        ("is_termination_msg: x", "AutoGen's `is_termination_msg` is `terminate_on` here"),
        (
            "code_execution_config: {}",
            "AutoGen's `code_execution_config` is `code_execution`, with `sandbox` of the team, here",
        ),
    ] {
        let unknown = if entry.starts_with("nested_chats") { "clear_history" } else { key(entry) };
        assert_eq!(hint(entry, "max_turns: 2", "", unknown), expected);
    }
}

#[test]
fn keys_of_chats_that_people_guess_are_answered() {
    for (entry, expected) in [
        ("agents: [A]", "AutoGen's `agents` is `participants` here"),
        ("members: [A]", "`members` is `participants` here"),
        ("selector: x", "`selector` is `pattern: {group: {select: ...}}` here"),
        (
            "speaker_selection_method: auto",
            "AutoGen's `speaker_selection_method` is `pattern: {group: {select: ...}}` here",
        ),
        ("pattern: {group: {}}, select: model", "`select` is `pattern: {group: {select: ...}}` here"),
        (
            "pattern: {group: {allow_repeated_speaker: true}}",
            "AutoGen's `allow_repeated_speaker` is `allow_repeat_speaker` here",
        ),
        (
            "selector_prompt: x",
            "AutoGen's `selector_prompt` is `pattern: {group: {select: {model: {prompt: ...}}}}` here",
        ),
        ("group: {}", "it belongs in `pattern`"),
        ("pattern: {graph: {edges: {A: B}, entry: A}}", "`entry` is `start` here"),
        ("pattern: {handoffs: {then: end, start_agent: A}}", "`start_agent` is `start` here"),
        ("termination: x", "`termination` is `stop` here"),
        ("termination_condition: x", "AutoGen's `termination_condition` is `stop` here"),
        ("until: x", "`until` is `stop` here"),
        ("max_rounds: 3", "`max_rounds` is `max_turns` here"),
        ("max_round: 3", "AutoGen's `max_round` is `max_turns` here"),
        (
            "clear_history: false",
            "AutoGen's `clear_history` is `continues` of a chat in `chats` for `false`, and the default for `true`, here",
        ),
        ("max_iterations: 3", "Yacana's `max_iterations` is `max_turns` here"),
        ("max_steps: 3", "`max_steps` is `max_turns` here"),
        ("stop: {says: x, by: A}", "`by` is `says: {text: ..., by: ...}` here"),
        ("tasks: []", "CrewAI's `tasks` is `pattern: {tasks: ...}` here"),
        ("pattern: {tasks: [{who: A, prompt: x, agent: B}]}", "CrewAI's `agent` is `who` here"),
        (
            "pattern: {tasks: [{who: A, prompt: x, expected_output: y}]}",
            "CrewAI's `expected_output` is a part of `prompt` here",
        ),
        ("edges: []", "LangGraph's `edges` is `pattern: {graph: {edges: ...}}` here"),
        ("nodes: []", "LangGraph's `nodes` is `participants`, with `pattern: {graph: {edges: ...}}`, here"),
    ] {
        let unknown =
            expected.split('`').nth(1).filter(|_| !expected.starts_with("it")).unwrap_or(key(entry));
        assert_eq!(hint("", entry, "", unknown), expected);
    }
}

#[test]
fn keys_of_teams_that_people_guess_are_answered() {
    let command = |entry: &str| format!("commands: [{{name: c, description: d, command: [ls], {entry}}}]");
    let of_functions = "is `commands`, which agents name in `tools`, here";
    for (entry, unknown, expected) in [
        ("mcp_servers: {}".to_owned(), "mcp_servers", "`mcp_servers` is `mcp` here".to_owned()),
        ("functions: []".to_owned(), "functions", format!("`functions` {of_functions}")),
        ("tools: []".to_owned(), "tools", format!("`tools` {of_functions}")),
        (command("args: {}"), "args", "`args` is `arguments` here".to_owned()),
        (command("params: {}"), "params", "`params` is `arguments` here".to_owned()),
        ("llm: x".to_owned(), "llm", "CrewAI's `llm` is `model` here".to_owned()),
        (
            "tasks: []".to_owned(),
            "tasks",
            "CrewAI's `tasks` is `chat: {pattern: {tasks: ...}}` here".to_owned(),
        ),
        (
            "edges: []".to_owned(),
            "edges",
            "LangGraph's `edges` is `chat: {pattern: {graph: {edges: ...}}}` here".to_owned(),
        ),
        (
            "code_execution_config: {}".to_owned(),
            "code_execution_config",
            "AutoGen's `code_execution_config` is `sandbox`, with `code_execution` of an agent, here"
                .to_owned(),
        ),
    ] {
        assert_eq!(hint("", "max_turns: 2", &entry, unknown), expected);
    }
}

#[test]
fn words_that_people_guess_are_answered() {
    for (chat, expected) in [
        ("pattern: handoffs", "it takes more than a word: `pattern: {handoffs: {then: ...}}`"),
        (
            "pattern: role_play",
            "it takes more than a word: `pattern: {role_play: {user: ..., assistant: ...}}`",
        ),
        ("pattern: tasks", "it takes more than a word: `pattern: {tasks: ...}`"),
        (
            "pattern: {graph: {edges: [{source: A, target: B}]}}",
            "write a mapping with names as keys: `{A: ...}`",
        ),
        ("pattern: {graph: {edges: [[A, B]]}}", "write a mapping with names as keys: `{A: ...}`"),
        ("pattern: group_chat", "AutoGen's `group_chat` is `group` here"),
        ("pattern: selector_group_chat", "AutoGen's `selector_group_chat` is `group: {select: model}` here"),
        (
            "pattern: {nodes: [A]}",
            "LangGraph's `nodes` is `participants` of the chat, with `graph: {edges: ...}`, here",
        ),
        ("stop: {text_mention: DONE}", "AutoGen's `text_mention` is `says` here"),
        ("stop: {MaxMessageTermination: 3}", "AutoGen's `MaxMessageTermination` is `max_messages` here"),
        ("stop: {timeout: 3}", "AutoGen's `timeout` is `max_time` here"),
        (
            "temperature: 0}\ntemperature: {x: 0",
            "`temperature` is `parameters: {temperature: ...}` of an agent here",
        ),
        ("begin: A", "there are `"),
        ("stop: {text: DONE}", "it belongs in `says`"),
        ("pattern: swarm", "AutoGen's `swarm` is `handoffs: {then: ...}` here"),
        ("pattern: {group: {select: auto}}", "AutoGen's `auto` is `model` here"),
    ] {
        let text =
            format!("name: t\nagents: [{{name: A}}]\nchat: {{participants: [A], max_turns: 2, {chat}}}\n");
        let found = common::wrong(&text);
        assert!(found.contains(&format!("hint: {expected}")), "{found}");
    }
}

#[test]
fn values_that_people_guess_are_answered() {
    let graph = |edges: &str| format!("max_turns: 2, pattern: {{graph: {{edges: {edges}}}}}");
    for (agent, chat, expected) in [
        (
            "tools: [get_weather]",
            "max_turns: 2".to_owned(),
            "define a function of yours in `commands`, or a server in `mcp`; there are `get_history`, ",
        ),
        ("model: gpt-4o", "max_turns: 2".to_owned(), "write `openai:gpt-4o`\n"),
        (
            "output_schema: {answer: string}",
            "max_turns: 2".to_owned(),
            "write `{type: object, properties: {answer: {type: string}}}`\n",
        ),
        (
            "output_schema: {answer: {type: integer}, why: string}",
            "max_turns: 2".to_owned(),
            "write `{type: object, properties: {answer: ...}}`\n",
        ),
        ("system: x", "stop: {max_time: 60}".to_owned(), "add the unit, such as `60 s`\n"),
        ("system: x", graph("[A, B]"), "write a mapping with names as keys: `{NAME: ...}`\n"),
        ("system: x", graph("{A: [B, END]}"), "leave it out: a graph ends where no edge leads on\n"),
        ("system: x", graph("{START: A, A: B}"), "the key `start` names who speaks first\n"),
        ("system: x", "pattern: {handoffs: {then: END}}".to_owned(), "did you mean `end`?\n"),
    ] {
        let text = format!(
            "name: t\nagents:\n  - {{name: A, {agent}}}\n  - {{name: B}}\nchat: {{participants: [A, B], {chat}}}\n"
        );
        let found = common::wrong(&text);
        assert!(found.contains(&format!("hint: {expected}")), "{found}");
    }
}

#[test]
fn names_that_only_resemble_others_are_not_answered_with_these() {
    for (entry, expected) in [
        ("silent: true", "AutoGen's `silent` is the option -q of the command line here"),
        ("entity: x", "there are `pattern`, "),
        ("steps: []", "there are `pattern`, "),
        ("maxround: 3", "AutoGen's `max_round` is `max_turns` here"),
        ("member: A", "`members` is `participants` here"),
    ] {
        let found = hint("", entry, "", key(entry));
        assert!(found.starts_with(expected), "{entry}: {found}");
    }
    for (entry, expected) in [
        ("hooks: []", "Lagent's `hooks` is a layer of the library, which team files do not have, here"),
        ("context: x", "CrewAI's `context` is `carryover` of a chat in `chats` here"),
        ("rolls: x", "there are `name`, "),
        ("gaol: x", "CrewAI's `goal` is a part of `system` here"),
    ] {
        let found = hint(entry, "max_turns: 2", "", key(entry));
        assert!(found.starts_with(expected), "{entry}: {found}");
    }
}

#[test]
fn names_of_systems_that_belong_elsewhere_here_are_answered() {
    for (chat, unknown, expected) in [
        ("sender: A", "sender", "AutoGen's `sender` is the first of `participants` here"),
        (
            "checkpointer: x",
            "checkpointer",
            "LangGraph's `checkpointer` is the option --store of the command line here",
        ),
        ("entry_point: A", "entry_point", "LangGraph's `entry_point` is `start` of a `pattern` here"),
        ("task_prompt: x", "task_prompt", "CAMEL's `task_prompt` is `task` of the team here"),
        ("carryover: x", "carryover", "AutoGen's `carryover` is `carryover` of a chat in `chats` here"),
        (
            "stop: {source_match: A}",
            "source_match",
            "AutoGen's `source_match` is `matches: {pattern: ^, by: NAME}` here",
        ),
    ] {
        assert_eq!(hint("", chat, "", unknown), expected);
    }
    for (agent, unknown, expected) in [
        ("model_context: x", "model_context", "AutoGen's `model_context` is `view: {window: ...}` here"),
        ("token_limit: 9", "token_limit", "CAMEL's `token_limit` is `view: {window: {tokens: ...}}` here"),
        (
            "parameters: {max_completion_tokens: 5}",
            "max_completion_tokens",
            "OpenAI's `max_completion_tokens` is `max_tokens` here",
        ),
    ] {
        assert_eq!(hint(agent, "max_turns: 2", "", unknown), expected);
    }
}
