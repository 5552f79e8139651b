//! Names of other systems and guesses in team files, with their equivalents.

use polylogue_config::Foreign;

const CHATS: &[&str] = &["Chat", "InnerChat"];
const TEAM: &[&str] = &["Team"];
const AGENT: &[&str] = &["Agent"];
const TASK: &[&str] = &["Task"];
const GROUP: &[&str] = &["Group"];
const AGENT_AND_TEAM: &[&str] = &["Agent", "Team"];
const NESTED: &[&str] = &["NestedChat"];
const CODE: &[&str] = &["CodeExecution"];
const SANDBOX: &[&str] = &["Sandbox"];
const LIMITS: &[&str] = &["Limits", "UsageLimits"];
const ROLE_PLAY: &[&str] = &["RolePlay"];
const SOLVE: &[&str] = &["GroupSolve"];
const END: &[&str] = &["EndMode"];
const NAMED_TOOL: &[&str] = &["NamedTool"];
const CHATS_AND_NESTED: &[&str] = &["Chat", "InnerChat", "NestedChat"];
const AGENT_AND_TASK: &[&str] = &["Agent", "Task"];

const AUTOGEN: &str = "AutoGen";
const CAMEL: &str = "CAMEL";
const CREW_AI: &str = "CrewAI";
const LAGENT: &str = "Lagent";
const LANG_GRAPH: &str = "LangGraph";
const LAZY_LLM: &str = "LazyLLM";
const OPEN_AI: &str = "OpenAI";
const YACANA: &str = "Yacana";
/// A name that people guess, of no system.
const GUESS: &str = "";

const fn key(
    system: &'static str,
    name: &'static str,
    within: &'static [&'static str],
    here: &'static str,
) -> Foreign {
    Foreign { system, name, value: "", within, here }
}

const fn with_value(mut row: Foreign, value: &'static str) -> Foreign {
    row.value = value;
    row
}

/// Every name that is answered with its equivalent. The first row that fits counts.
pub(crate) const FOREIGN: &[Foreign] = &[
    // Agents.
    key(AUTOGEN, "system_message", AGENT, "`system`"),
    key(YACANA, "system_prompt", AGENT, "`system`"),
    key(OPEN_AI, "instructions", AGENT, "`system`"),
    key(GUESS, "prompt", AGENT, "`system`"),
    key(CREW_AI, "role", AGENT, "`description`, and a part of `system`"),
    key(CREW_AI, "goal", AGENT, "a part of `system`"),
    key(CREW_AI, "backstory", AGENT, "a part of `system`"),
    key(OPEN_AI, "handoff_description", AGENT, "`description`"),
    key(CREW_AI, "llm", AGENT_AND_TEAM, "`model`"),
    key(AUTOGEN, "llm_config", AGENT_AND_TEAM, "`model` with `parameters`"),
    key(AUTOGEN, "model_client", AGENT_AND_TEAM, "`model` with `parameters`"),
    key(YACANA, "model_name", AGENT_AND_TEAM, "`model`"),
    key(AUTOGEN, "config_list", AGENT_AND_TEAM, "`model`, which can be a list,"),
    key(OPEN_AI, "api_key", AGENT_AND_TEAM, "an environment variable, such as `OPENAI_API_KEY`,"),
    key(OPEN_AI, "base_url", AGENT_AND_TEAM, "`endpoints: {NAME: {base_url: ...}}` of the team"),
    key(OPEN_AI, "model_settings", AGENT, "`parameters`"),
    key(OPEN_AI, "response_format", AGENT_AND_TASK, "`output_schema`"),
    key(OPEN_AI, "output_type", AGENT_AND_TASK, "`output_schema`"),
    key(GUESS, "schema", AGENT_AND_TASK, "`output_schema`"),
    with_value(key(GUESS, "type", AGENT, "`human: true`"), "human"),
    key(GUESS, "nested", AGENT, "`nested_chats`"),
    key(GUESS, "mcp", AGENT, "`tools: [{mcp: NAME}]`"),
    key(OPEN_AI, "mcp_servers", AGENT, "`tools: [{mcp: NAME}]`, with the server in `mcp` of the team,"),
    key(OPEN_AI, "functions", AGENT, "`tools`"),
    key(AUTOGEN, "function_map", AGENT, "`executes_tools`"),
    with_value(key(AUTOGEN, "human_input_mode", AGENT, "`human_input: always`"), "ALWAYS"),
    with_value(key(AUTOGEN, "human_input_mode", AGENT, "`human_input: terminate`"), "TERMINATE"),
    with_value(key(AUTOGEN, "human_input_mode", AGENT, "`human_input: never`"), "NEVER"),
    key(AUTOGEN, "human_input_mode", AGENT, "`human_input`"),
    key(AUTOGEN, "max_consecutive_auto_reply", AGENT, "`max_auto_replies`"),
    key(AUTOGEN, "max_tool_iterations", AGENT, "`max_tool_rounds`"),
    key(AUTOGEN, "reflect_on_tool_use", AGENT, "always on"),
    key(AUTOGEN, "workbench", AGENT, "`tools`, with servers in `mcp` of the team,"),
    key(AUTOGEN, "is_termination_msg", AGENT, "`terminate_on`"),
    key(AUTOGEN, "default_auto_reply", AGENT, "`default_reply`"),
    key(AUTOGEN, "code_execution_config", AGENT, "`code_execution`, with `sandbox` of the team,"),
    key(LAGENT, "template", AGENT, "`system`"),
    key(LAGENT, "few_shot", AGENT, "`examples`"),
    key(LAGENT, "output_format", AGENT, "`output_blocks`, or `output_schema`,"),
    key(LAGENT, "aggregator", AGENT, "`view`"),
    key(LAGENT, "stop_words", AGENT, "`parameters: {stop: ...}`"),
    key(LAGENT, "actions", AGENT, "`tools`"),
    key(CREW_AI, "expected_output", AGENT, "a part of `system`, or `output_schema`,"),
    key(CREW_AI, "max_iter", AGENT, "`max_tool_rounds`"),
    key(CREW_AI, "allow_delegation", AGENT, "`agent_tools: [{who: NAME}]`"),
    key(CREW_AI, "verbose", AGENT_AND_TEAM, "the option -v of the command line"),
    key(AUTOGEN, "register_nested_chats", AGENT, "`nested_chats`"),
    key(AUTOGEN, "summary_method", AGENT, "`summary` of a chat"),
    key(GUESS, "stream", AGENT_AND_TEAM, "always on"),
    key(LANG_GRAPH, "interrupt_before", AGENT, "`approval`"),
    key(LAZY_LLM, "source", AGENT_AND_TEAM, "the part of `model` before the `:`,"),
    key(LAZY_LLM, "base_model", AGENT_AND_TEAM, "`model`"),
    key(LAZY_LLM, "instruction", AGENT, "`system`"),
    key(LAZY_LLM, "static_params", AGENT, "`parameters`"),
    key(YACANA, "structured_output", AGENT_AND_TASK, "`output_schema`"),
    key(YACANA, "endpoint", AGENT, "`endpoints: {NAME: {base_url: ...}}` of the team"),
    key(LAGENT, "hooks", AGENT, "a layer of the library, which team files do not have,"),
    key(CREW_AI, "context", AGENT_AND_TASK, "`carryover` of a chat in `chats`"),
    // What agents do.
    key(AUTOGEN, "trigger", NESTED, "`when`"),
    key(AUTOGEN, "recipient", NESTED, "`chat`"),
    key(AUTOGEN, "max_turns", NESTED, "`max_turns` of the chat in `chats`"),
    key(AUTOGEN, "summary_method", NESTED, "`summary` of the chat in `chats`"),
    key(AUTOGEN, "work_dir", CODE, "the folder of the option --dir of the command line"),
    key(AUTOGEN, "use_docker", CODE, "`sandbox: {backend: docker}` of the team"),
    key(AUTOGEN, "last_n_messages", CODE, "`last`"),
    key(AUTOGEN, "executor", CODE, "`sandbox` of the team"),
    // Teams.
    key(AUTOGEN, "use_docker", SANDBOX, "`backend: docker`"),
    key(GUESS, "docker", SANDBOX, "`backend: docker`"),
    key(GUESS, "venv", SANDBOX, "`python`"),
    key(GUESS, "max_turns", LIMITS, "`max_turns` of a chat"),
    key(GUESS, "max_cost", LIMITS, "`cost`"),
    key(GUESS, "max_tokens", LIMITS, "`tokens`"),
    key(GUESS, "max_calls", LIMITS, "`calls`"),
    key(GUESS, "timeout", LIMITS, "`time`"),
    key(AUTOGEN, "system_message", TEAM, "`system` of an agent"),
    key(AUTOGEN, "message", TEAM, "`task`"),
    key(GUESS, "prompt", TEAM, "`task`"),
    key(AUTOGEN, "human_input_mode", TEAM, "`human_input` of an agent"),
    key(AUTOGEN, "cache_seed", TEAM, "`cache: FILE`"),
    key(GUESS, "budget", TEAM, "`limits: {cost: ...}`"),
    key(LANG_GRAPH, "recursion_limit", TEAM, "`chat: {max_turns: ...}`"),
    key(GUESS, "temperature", TEAM, "`parameters: {temperature: ...}` of an agent"),
    key(GUESS, "max_tokens", TEAM, "`parameters: {max_tokens: ...}` of an agent"),
    key(GUESS, "members", TEAM, "`agents`"),
    key(GUESS, "variables", TEAM, "`vars`"),
    key(GUESS, "workflow", TEAM, "`chat: {pattern: ...}`"),
    key(GUESS, "version", TEAM, "not needed"),
    key(GUESS, "termination", TEAM, "`chat: {stop: ...}`"),
    key(AUTOGEN, "groupchat", TEAM, "`chat: {pattern: {group: ...}}`"),
    key(CREW_AI, "crew", TEAM, "`agents` with `chat`"),
    key(GUESS, "mcp_servers", TEAM, "`mcp`"),
    key(GUESS, "mcpServers", TEAM, "`mcp`"),
    key(GUESS, "functions", TEAM, "`commands`, which agents name in `tools`,"),
    key(GUESS, "tools", TEAM, "`commands`, which agents name in `tools`,"),
    key(AUTOGEN, "code_execution_config", TEAM, "`sandbox`, with `code_execution` of an agent,"),
    key(CREW_AI, "tasks", TEAM, "`chat: {pattern: {tasks: ...}}`"),
    key(CREW_AI, "process", TEAM, "`chat: {pattern: ...}`"),
    key(LANG_GRAPH, "edges", TEAM, "`chat: {pattern: {graph: {edges: ...}}}`"),
    key(LANG_GRAPH, "nodes", TEAM, "`agents`, with `chat: {pattern: {graph: {edges: ...}}}`,"),
    key(AUTOGEN, "termination_condition", TEAM, "`chat: {stop: ...}`"),
    key(AUTOGEN, "max_round", TEAM, "`chat: {max_turns: ...}`"),
    key(GUESS, "max_rounds", TEAM, "`chat: {max_turns: ...}`"),
    // Chats.
    key(AUTOGEN, "silent", CHATS_AND_NESTED, "the option -q of the command line"),
    key(AUTOGEN, "agents", CHATS, "`participants`"),
    key(GUESS, "members", CHATS, "`participants`"),
    key(GUESS, "selector", CHATS, "`pattern: {group: {select: ...}}`"),
    key(GUESS, "select", CHATS, "`pattern: {group: {select: ...}}`"),
    key(AUTOGEN, "speaker_selection_method", CHATS, "`pattern: {group: {select: ...}}`"),
    key(AUTOGEN, "selector_prompt", CHATS, "`pattern: {group: {select: {model: {prompt: ...}}}}`"),
    key(AUTOGEN, "allow_repeated_speaker", CHATS, "`pattern: {group: {allow_repeat_speaker: ...}}`"),
    key(AUTOGEN, "allow_repeat_speaker", CHATS, "`pattern: {group: {allow_repeat_speaker: ...}}`"),
    key(
        AUTOGEN,
        "allowed_or_disallowed_speaker_transitions",
        CHATS,
        "`pattern: {group: {transitions: ...}}`",
    ),
    key(
        AUTOGEN,
        "speaker_transitions_type",
        CHATS,
        "`allowed` or `disallowed` of `pattern: {group: {transitions: ...}}`",
    ),
    key(AUTOGEN, "admin_name", CHATS, "not needed"),
    key(AUTOGEN, "messages", CHATS, "`opening`"),
    key(AUTOGEN, "max_consecutive_auto_reply", CHATS, "`max_auto_replies` of an agent"),
    with_value(key(AUTOGEN, "type", CHATS, "`pattern: round_robin`"), "RoundRobinGroupChat"),
    with_value(key(AUTOGEN, "type", CHATS, "`pattern: {group: {select: model}}`"), "SelectorGroupChat"),
    with_value(key(AUTOGEN, "type", CHATS, "`pattern: {handoffs: {then: ...}}`"), "Swarm"),
    with_value(
        key(AUTOGEN, "type", CHATS, "`pattern: {orchestrator: {planner: ...}}`"),
        "MagenticOneGroupChat",
    ),
    with_value(key(AUTOGEN, "type", CHATS, "`pattern: {graph: {edges: ...}}`"), "GraphFlow"),
    key(LANG_GRAPH, "edges", CHATS, "`pattern: {graph: {edges: ...}}`"),
    key(LANG_GRAPH, "nodes", CHATS, "`participants`, with `pattern: {graph: {edges: ...}}`,"),
    key(CREW_AI, "process", CHATS, "`pattern`"),
    key(LANG_GRAPH, "conditional_edges", CHATS, "`when` of an edge of `pattern: {graph: {edges: ...}}`"),
    key(LANG_GRAPH, "recursion_limit", CHATS, "`max_turns`"),
    key(
        CREW_AI,
        "manager_llm",
        CHATS,
        "`model` of the planner of `pattern: {orchestrator: {planner: NAME}}`",
    ),
    key(CREW_AI, "manager_agent", CHATS, "`pattern: {orchestrator: {planner: NAME}}`"),
    key(GUESS, "manager", CHATS, "`pattern: {orchestrator: {planner: NAME}}`"),
    key(GUESS, "speakers", CHATS, "`participants`"),
    key(GUESS, "start", CHATS, "`start` of a `pattern`"),
    key(GUESS, "entry", CHATS, "`start` of a `pattern`"),
    key(GUESS, "start_agent", CHATS, "`start` of a `pattern`"),
    key(GUESS, "termination", CHATS, "`stop`"),
    key(AUTOGEN, "termination_condition", CHATS, "`stop`"),
    key(AUTOGEN, "is_termination_msg", CHATS, "`stop: {says: ...}`"),
    key(GUESS, "until", CHATS, "`stop`"),
    key(GUESS, "max_rounds", &["Chat", "InnerChat", "Stop"], "`max_turns`"),
    key(AUTOGEN, "max_round", &["Chat", "InnerChat", "Stop"], "`max_turns`"),
    key(YACANA, "max_iterations", &["Chat", "InnerChat", "Stop"], "`max_turns`"),
    key(LAGENT, "max_turn", &["Chat", "InnerChat", "Stop"], "`max_turns`"),
    key(GUESS, "max_steps", &["Chat", "InnerChat", "Stop"], "`max_turns`"),
    key(AUTOGEN, "send_introductions", CHATS, "`introductions`"),
    key(AUTOGEN, "summary_method", CHATS, "`summary`"),
    key(
        AUTOGEN,
        "clear_history",
        &["InnerChat"],
        "`continues: self` for `false`, and the default for `true`,",
    ),
    key(
        AUTOGEN,
        "clear_history",
        &["NestedChat"],
        "`continues: self` of the chat in `chats` for `false`, and the default for `true`,",
    ),
    key(
        AUTOGEN,
        "clear_history",
        AGENT,
        "`continues: self` of a chat in `chats` for `false`, and the default for `true`,",
    ),
    key(
        AUTOGEN,
        "clear_history",
        &["Chat"],
        "`continues` of a chat in `chats` for `false`, and the default for `true`,",
    ),
    key(AUTOGEN, "message", &["InnerChat"], "`task`"),
    key(AUTOGEN, "message", &["Chat"], "`opening`"),
    key(AUTOGEN, "text_mention", &["Stop"], "`says`"),
    key(AUTOGEN, "TextMentionTermination", &["Stop"], "`says`"),
    key(AUTOGEN, "max_message", &["Stop"], "`max_messages`"),
    key(AUTOGEN, "MaxMessageTermination", &["Stop"], "`max_messages`"),
    key(AUTOGEN, "token_usage", &["Stop"], "`max_tokens`"),
    key(AUTOGEN, "TokenUsageTermination", &["Stop"], "`max_tokens`"),
    key(AUTOGEN, "timeout", &["Stop"], "`max_time`"),
    key(AUTOGEN, "TimeoutTermination", &["Stop"], "`max_time`"),
    key(AUTOGEN, "is_termination_msg", &["Stop"], "`says`, or a condition in `when`,"),
    key(GUESS, "termination", &["Stop"], "`says`, or a condition in `when`,"),
    key(GUESS, "contains", &["Stop"], "`says`"),
    key(GUESS, "keyword", &["Stop"], "`says`"),
    key(GUESS, "mentions", &["Stop"], "`says`"),
    key(GUESS, "regex", &["Stop"], "`matches`"),
    key(GUESS, "or", &["Stop"], "`any`"),
    key(GUESS, "and", &["Stop"], "`all`"),
    key(GUESS, "by", &["Stop"], "`says: {text: ..., by: ...}`"),
    key(GUESS, "condition", &["Stop", "Edge", "Transition"], "`when`"),
    key(GUESS, "if", &["Stop", "Edge", "Transition"], "`when`"),
    // Patterns.
    key(AUTOGEN, "swarm", &["Pattern"], "`handoffs: {then: ...}`"),
    key(AUTOGEN, "selector", &["Pattern"], "`group: {select: model}`"),
    key(AUTOGEN, "selector_group_chat", &["Pattern"], "`group: {select: model}`"),
    key(AUTOGEN, "round_robin_group_chat", &["Pattern"], "`round_robin`"),
    key(AUTOGEN, "magentic_one", &["Pattern"], "`orchestrator: {planner: ...}`"),
    key(AUTOGEN, "graph_flow", &["Pattern"], "`graph: {edges: ...}`"),
    key(LANG_GRAPH, "nodes", &["Pattern"], "`participants` of the chat, with `graph: {edges: ...}`,"),
    key(LANG_GRAPH, "edges", &["Pattern"], "`graph: {edges: ...}`"),
    key(AUTOGEN, "RoundRobinGroupChat", &["Pattern"], "`round_robin`"),
    key(AUTOGEN, "SelectorGroupChat", &["Pattern"], "`group: {select: model}`"),
    key(AUTOGEN, "MagenticOneGroupChat", &["Pattern"], "`orchestrator: {planner: ...}`"),
    key(AUTOGEN, "GraphFlow", &["Pattern"], "`graph: {edges: ...}`"),
    key(AUTOGEN, "GroupChat", &["Pattern"], "`group`"),
    key(AUTOGEN, "auto", &["Pattern"], "`group: {select: model}`"),
    key(AUTOGEN, "random", &["Pattern"], "`group: {select: random}`"),
    key(AUTOGEN, "manual", &["Pattern"], "`group: {select: {human: NAME}}`"),
    key(AUTOGEN, "reflection_with_llm", &["Summary"], "`{reflect: {prompt: ...}}`"),
    key(AUTOGEN, "last_msg", &["Summary"], "`last`"),
    key(CREW_AI, "hierarchical", &["Pattern"], "`orchestrator: {planner: ...}`"),
    key(AUTOGEN, "auto", &["SelectSpeaker"], "`model`"),
    key(AUTOGEN, "manual", &["SelectSpeaker"], "`human: NAME`"),
    key(AUTOGEN, "speaker_selection_method", GROUP, "`select`"),
    key(GUESS, "selector", GROUP, "`select`"),
    key(AUTOGEN, "selector_prompt", GROUP, "`select: {model: {prompt: ...}}`"),
    key(AUTOGEN, "selector_prompt", &["Selector"], "`prompt`"),
    key(AUTOGEN, "allow_repeated_speaker", GROUP, "`allow_repeat_speaker`"),
    key(AUTOGEN, "allowed_or_disallowed_speaker_transitions", GROUP, "`transitions`"),
    key(AUTOGEN, "speaker_transitions_type", GROUP, "`allowed` or `disallowed` of `transitions`"),
    key(AUTOGEN, "admin_name", GROUP, "not needed"),
    key(AUTOGEN, "max_round", GROUP, "`max_turns` of the chat"),
    key(LANG_GRAPH, "conditional_edges", &["Graph"], "`when` of an edge"),
    key(LANG_GRAPH, "nodes", &["Graph"], "`participants` of the chat"),
    key(GUESS, "entry", &["Graph", "StateMachine", "Handoffs"], "`start`"),
    key(LANG_GRAPH, "entry_point", &["Graph", "StateMachine", "Handoffs"], "`start`"),
    key(GUESS, "start_agent", &["Graph", "StateMachine", "Handoffs"], "`start`"),
    key(CAMEL, "assistant_role_name", ROLE_PLAY, "`assistant: {role: ...}`"),
    key(CAMEL, "user_role_name", ROLE_PLAY, "`user: {role: ...}`"),
    key(CAMEL, "chat_turn_limit", ROLE_PLAY, "`max_rounds`"),
    key(CAMEL, "with_task_specify", ROLE_PLAY, "`specifier`"),
    key(CAMEL, "with_task_planner", ROLE_PLAY, "`planner`"),
    key(CAMEL, "with_critic_in_the_loop", ROLE_PLAY, "`critic`"),
    key(CAMEL, "output_language", ROLE_PLAY, "`language`"),
    key(CREW_AI, "tasks", CHATS, "`pattern: {tasks: ...}`"),
    key(CREW_AI, "agent", TASK, "`who`"),
    key(CREW_AI, "description", TASK, "`prompt`"),
    key(CREW_AI, "expected_output", TASK, "a part of `prompt`"),
    key(CREW_AI, "output_json", TASK, "`output_schema`"),
    key(CREW_AI, "output_pydantic", TASK, "`output_schema`"),
    key(YACANA, "llm_stops_by_itself", TASK, "`self_terminating`"),
    key(YACANA, "use_self_reflection", TASK, "`keeps_reflections`"),
    key(YACANA, "medias", TASK, "`media`"),
    key(YACANA, "shift_message_owner", SOLVE, "`shift: {to: NAME}`"),
    key(YACANA, "shift_message_content", SOLVE, "`shift: {says: ...}`"),
    key(YACANA, "reconcile_first_message", SOLVE, "`reconcile`"),
    key(YACANA, "end_chat", SOLVE, "`end`, with `max_iterations`,"),
    key(YACANA, "mode", SOLVE, "`end`"),
    key(YACANA, "MAX_ITERATIONS_ONLY", END, "`max_iterations`"),
    key(YACANA, "END_CHAT_AFTER_FIRST_COMPLETION", END, "`first_completion`"),
    key(YACANA, "ONE_LAST_CHAT_AFTER_FIRST_COMPLETION", END, "`one_last_chat`"),
    key(YACANA, "ONE_LAST_GROUP_CHAT_AFTER_FIRST_COMPLETION", END, "`one_last_group_chat`"),
    key(YACANA, "ALL_TASK_MUST_COMPLETE", END, "`all_complete`"),
    // Tools.
    key(YACANA, "optional", NAMED_TOOL, "the opposite of `mandatory`"),
    key(YACANA, "usage_examples", NAMED_TOOL, "`examples`"),
    key(YACANA, "max_custom_error", NAMED_TOOL, "`max_errors`"),
    key(YACANA, "max_call_error", NAMED_TOOL, "`max_call_errors`"),
    key(GUESS, "run", &["Command"], "`command`"),
    key(GUESS, "cmd", &["Command"], "`command`"),
    key(GUESS, "args", &["Command", "HttpCall"], "`arguments`"),
    key(GUESS, "params", &["Command", "HttpCall"], "`arguments`"),
    key(OPEN_AI, "parameters", &["Command", "HttpCall"], "`arguments`"),
];

/// The names of another system that errors answer with their equivalent, as a Markdown table: the name, the types of the
/// reference in which people write it, the equivalent. `system` is such as `AutoGen`; empty for guesses of no system.
#[must_use]
pub fn names_of(system: &str) -> String {
    let mut table = String::from("| name | in | here |\n|---|---|---|\n");
    for row in FOREIGN.iter().filter(|row| row.system == system) {
        let value = if row.value.is_empty() { String::new() } else { format!(": {}", row.value) };
        let types: Vec<String> = row.within.iter().map(|within| format!("`{within}`")).collect();
        let (types, here) = (types.join(", "), row.here.trim_end_matches(','));
        table += &format!("| `{}{value}` | {types} | {here} |\n", row.name);
    }
    table
}

#[cfg(test)]
#[path = "foreign_tests.rs"]
mod tests;
