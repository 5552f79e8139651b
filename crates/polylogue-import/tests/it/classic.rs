//! Definitions of AutoGen 0.2.

use expect_test::expect;
use serde_json::json;

use crate::check;

#[test]
fn an_assistant_and_a_person() {
    check(
        &json!({
            "llm_config": {"config_list": [{"model": "gpt-4", "price": [0.03, 0.06]}], "temperature": 0, "cache_seed": 41, "timeout": 120},
            "agents": [
                {"name": "assistant", "type": "AssistantAgent", "max_consecutive_auto_reply": 5},
                {"name": "user_proxy", "type": "UserProxyAgent", "human_input_mode": "TERMINATE", "code_execution_config": {"work_dir": "x"},
                 "is_termination_msg": "lambda x: x['content'] == 'TERMINATE'", "default_auto_reply": "Go on"},
            ],
            "initiate_chat": {"sender": "user_proxy", "recipient": "assistant", "message": "What is 2 + 2?", "max_turns": 3, "silent": false},
        }),
        &expect![[r##"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.llm_config.cache_seed: left out: replies are not cached; `--record` stores the replies of a run, and `--replay` repeats it
            # - $.agents[0]: AutoGen's default system message is replaced by a short one with instructions for code that another agent runs
            # - $.agents[1].is_termination_msg: Python code is not converted, and nothing in a definition is executed: give the text as `terminate_on`, if it is not `TERMINATE`
            # - $.agents[1].code_execution_config.work_dir: left out: every conversation has its own work directory; `run --dir FOLDER` sets another

            name: team
            task: "What is 2 + 2?"
            model: openai:gpt-4
            endpoints: {openai: {timeouts: {total: "120 s"}}}
            prices: {openai:gpt-4: {input: 30, output: 60}}
            agents:
              - name: assistant
                system: |-
                  You are a helpful assistant. Solve the task step by step. Where code helps, to find something out or to do a part of the task, write Python (```python) or shell (```sh) in a fenced code block: it is run for you, and the next message holds its output.

                  - Write one code block in an answer, and make it complete: nobody changes it or fills anything in before it is run.
                  - Print what you need to know. Do not ask for output to be copied and pasted.
                  - To have the code saved in a file, make `# filename: NAME` the first line of the block.
                  - When the code fails, correct it and write all of it again. When it runs and the task is not solved, check your assumptions and try another way.

                  Verify the answer, with evidence where there is any. When everything is done, reply TERMINATE.
                parameters: {temperature: 0}
                human_input: never
                max_auto_replies: 5
              - name: user_proxy
                model: none
                human_input: terminate
                default_reply: Go on
                code_execution: true
            chat:
              participants: [user_proxy, assistant]
              opening: {from: user_proxy, text: "{{task}}"}
              stop: {max_turns: 5}
              summary: {without: TERMINATE}
            ---
            OPENAI_API_KEY
        "##]],
    );
}

#[test]
fn chats_one_after_the_other() {
    check(
        &json!({
            "name": "numbers",
            "llm_config": {"model": "gpt-4o-mini"},
            "agents": [
                {"name": "boss", "class": "autogen.ConversableAgent", "human_input_mode": "NEVER", "llm_config": false},
                {"name": "adder", "class": "ConversableAgent", "human_input_mode": "NEVER", "system_message": "Add 1.", "max_consecutive_auto_reply": 1},
                {"name": "doubler", "class": "ConversableAgent", "human_input_mode": "NEVER", "system_message": "Double."},
            ],
            "chats": [
                {"sender": "boss", "recipient": "adder", "message": "14", "max_turns": 1, "summary_method": "last_msg"},
                {"sender": "boss", "recipient": "doubler", "message": "Double it", "max_turns": 2, "carryover": "whole numbers",
                 "summary_method": "reflection_with_llm", "summary_args": {"summary_prompt": "Give the numbers."}},
                {"sender": "boss", "recipient": "adder", "message": "Again", "max_turns": 1, "clear_history": false,
                 "finished_chat_indexes_to_exclude_from_carryover": [0]},
            ],
        }),
        &expect![[r##"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.

            name: numbers
            model: openai:gpt-4o-mini
            agents:
              - name: boss
                model: none
                human_input: never
                default_reply: ""
              - name: adder
                system: Add 1.
                human_input: never
                max_auto_replies: 1
              - name: doubler
                system: Double.
                human_input: never
            chat:
              pattern: sequential
              participants: [chat_1, chat_2, chat_3]
            chats:
              - name: chat_1
                task: "14"
                participants: [boss, adder]
                opening: {from: boss, text: "{{task}}"}
                stop: {max_turns: 1}
                summary: {without: TERMINATE}
              - name: chat_2
                task: Double it
                carryover: {context: [whole numbers]}
                participants: [boss, doubler]
                opening: {from: boss, text: "{{task}}"}
                stop: {max_turns: 3}
                summary: {reflect: {prompt: Give the numbers.}}
              - name: chat_3
                task: Again
                carryover: {exclude: [chat_1]}
                continues: chat_1
                participants: [boss, adder]
                opening: {from: boss, text: "{{task}}"}
                stop: {max_turns: 1}
                summary: {without: TERMINATE}
            ---
            OPENAI_API_KEY
        "##]],
    );
}

#[test]
fn prerequisites_of_chats_become_a_dag() {
    let chat = |id: u32, before: &[u32]| json!({"chat_id": id, "prerequisites": before, "sender": "a", "recipient": "b", "message": format!("Do {id}"), "max_turns": 1});
    check(
        &json!({
            "agents": [{"name": "a", "human_input_mode": "NEVER"}, {"name": "b"}],
            "chats": [chat(1, &[]), chat(2, &[]), chat(3, &[1, 2])],
        }),
        &expect![[r##"
            # Imported from team.json.
            #
            # Not converted, or changed:
            # - $.agents[0]: AutoGen's default system message is replaced by a short one without instructions about code
            # - $.agents[1]: AutoGen's default system message is replaced by a short one without instructions about code

            name: team
            agents:
              - name: a
                system: "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE."
                human_input: never
              - name: b
                system: "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE."
                human_input: never
            chat:
              pattern: {dag: {chat_3: [chat_1, chat_2]}}
              participants: [chat_1, chat_2, chat_3]
            chats:
              - name: chat_1
                task: Do 1
                participants: [a, b]
                opening: {from: a, text: "{{task}}"}
                stop: {max_turns: 1}
                summary: {without: TERMINATE}
              - name: chat_2
                task: Do 2
                participants: [a, b]
                opening: {from: a, text: "{{task}}"}
                stop: {max_turns: 1}
                summary: {without: TERMINATE}
              - name: chat_3
                task: Do 3
                carryover: {include: [chat_1, chat_2]}
                participants: [a, b]
                opening: {from: a, text: "{{task}}"}
                stop: {max_turns: 1}
                summary: {without: TERMINATE}
            ---

        "##]],
    );
}

#[test]
fn a_group_whose_next_speaker_a_model_picks() {
    check(
        &json!({
            "llm_config": {"config_list": [{"model": "gpt-4o"}, {"model": "gpt-3.5"}]},
            "agents": [
                {"name": "User_proxy", "class": "UserProxyAgent", "human_input_mode": "ALWAYS"},
                {"name": "Coder", "system_message": "You code."},
                {"name": "Critic", "system_message": ["You", "criticize."], "description": "Criticizes"},
            ],
            "groupchat": {
                "agents": ["User_proxy", "Coder", "Critic"], "max_round": 12, "speaker_selection_method": "auto",
                "allowed_or_disallowed_speaker_transitions": {"User_proxy": ["Coder"], "Coder": ["Critic", "Unknown"], "Critic": []},
                "speaker_transitions_type": "allowed", "send_introductions": true, "enable_clear_history": true,
                "role_for_select_speaker_messages": "user", "max_retries_for_selecting_speaker": 1,
                "select_speaker_message_template": "Roles:\n{roles}", "messages": [],
            },
            "initiate_chat": {"sender": "User_proxy", "recipient": "chat_manager", "message": "Write a game"},
        }),
        &expect![[r##"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.agents[0]: it runs code in AutoGen, where nothing else is said, and so it does here, in the sandbox; without `code_execution` it runs none
            # - $.groupchat.allowed_or_disallowed_speaker_transitions.Coder: `Unknown` is left out: there is no such participant

            name: team
            task: Write a game
            model: [openai:gpt-4o, openai:gpt-3.5]
            agents:
              - name: User_proxy
                description: A person who answers questions and can run code
                model: none
                human_input: always
                code_execution: true
                clear_command: true
              - name: Coder
                description: You code.
                system: You code.
                human_input: never
              - name: Critic
                description: Criticizes
                system: |-
                  You
                  criticize.
                human_input: never
            chat:
              pattern:
                group:
                  select: {model: {system: "Roles:\n{roles}", role: user, attempts: 2}}
                  transitions: {allowed: {User_proxy: [Coder], Coder: [Critic], Critic: []}}
              participants: [User_proxy, Coder, Critic]
              introductions: true
              stop: {says: {text: TERMINATE, whole: true}, max_turns: 11}
              opening: {from: User_proxy, text: "{{task}}"}
              summary: {without: TERMINATE}
            ---
            OPENAI_API_KEY
        "##]],
    );
}

#[test]
fn groups_without_human_input() {
    let group = |method: &str| {
        json!({
            "agents": [{"name": "a", "llm_config": {"model": "m", "api_type": "ollama"}}, {"name": "b"}, {"name": "c"}],
            "group_chat": {"speaker_selection_method": method, "allow_repeat_speaker": ["a"]},
        })
    };
    check(
        &group("random"),
        &expect![[r##"
            # Imported from team.json.
            #
            # Not converted, or changed:
            # - $.agents[0]: AutoGen's default system message is replaced by a short one without instructions about code
            # - $.agents[1]: AutoGen's default system message is replaced by a short one without instructions about code
            # - $.agents[2]: AutoGen's default system message is replaced by a short one without instructions about code

            name: team
            model: ollama:m
            agents:
              - name: a
                system: "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE."
                human_input: never
              - name: b
                system: "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE."
                human_input: never
              - name: c
                system: "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE."
                human_input: never
            chat:
              pattern: {group: {select: random, allow_repeat_speaker: [a]}}
              participants: [a, b, c]
              stop: {says: {text: TERMINATE, whole: true}, max_turns: 9}
            ---

        "##]],
    );
    check(
        &group("manual"),
        &expect![[r##"
            # Imported from team.json.
            #
            # Not converted, or changed:
            # - $.agents[0]: AutoGen's default system message is replaced by a short one without instructions about code
            # - $.agents[1]: AutoGen's default system message is replaced by a short one without instructions about code
            # - $.agents[2]: AutoGen's default system message is replaced by a short one without instructions about code

            name: team
            model: ollama:m
            agents:
              - name: a
                system: "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE."
                human_input: never
              - name: b
                system: "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE."
                human_input: never
              - name: c
                system: "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE."
                human_input: never
              - name: Selector
                human: true
            chat:
              pattern: {group: {select: {human: Selector}, allow_repeat_speaker: [a]}}
              participants: [a, b, c]
              stop: {says: {text: TERMINATE, whole: true}, max_turns: 9}
            ---

        "##]],
    );
}

#[test]
fn a_team_that_an_agent_builder_saved() {
    check(
        &json!({
            "building_task": "Find papers", "coding": true,
            "agent_configs": [
                {"name": "Finder", "model": ["gpt-4"], "tags": [], "description": "Finds", "system_message": "Find."},
                {"name": "Reader", "model": ["gpt-4"], "tags": [], "description": "Reads", "system_message": "Read."},
                {"name": "Writer", "model": ["gpt-4"], "tags": [], "description": "Writes", "system_message": "Write."},
            ],
            "default_llm_config": {"temperature": 0}, "code_execution_config": {"work_dir": "groupchat"},
        }),
        &expect![[r#"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.coding: left out: give it to the agent that runs code, here as `code_execution: true`, in AutoGen as its `code_execution_config`
            # - $.code_execution_config: left out: give it to the agent that runs code, here as `code_execution: true`, in AutoGen as its `code_execution_config`
            # - $.default_llm_config: no model is named: `--model` gives one

            name: team
            task: Find papers
            model: openai:gpt-4
            agents:
              - name: Finder
                description: Finds
                system: Find.
                parameters: {temperature: 0}
                human_input: never
              - name: Reader
                description: Reads
                system: Read.
                parameters: {temperature: 0}
                human_input: never
              - name: Writer
                description: Writes
                system: Write.
                parameters: {temperature: 0}
                human_input: never
            chat:
              pattern:
                group:
                  select: {model: {parameters: {temperature: 0}}}
              participants: [Finder, Reader, Writer]
              stop: {says: {text: TERMINATE, whole: true}, max_turns: 9}
            ---
            OPENAI_API_KEY
        "#]],
    );
}
