//! Teams of AgentChat in which it is decided who speaks.

use expect_test::expect;
use serde_json::{Value, json};

use crate::component::{assistant, component, openai, team};
use crate::{check, imported};

fn members(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| assistant(name, json!({}))).collect()
}

#[test]
fn a_model_picks_who_speaks() {
    let prompt = "Pick one of {roles}.\n\n{history}\n\nName one of {participants}.";
    check(
        &team(
            "SelectorGroupChat",
            json!({
                "participants": members(&["a", "b", "c"]), "model_client": openai("gpt-4o-mini"), "selector_prompt": prompt,
                "allow_repeated_speaker": false, "max_selector_attempts": 5, "termination_condition": null, "max_turns": 6,
            }),
        ),
        &expect![[r##"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.config.selector_prompt: cut in two at `{history}`: the model reads the conversation between `system` and `prompt`

            name: SelectorGroupChat
            model: openai:gpt-4o
            agents:
              - name: a
                system: You are a.
              - name: b
                system: You are b.
              - name: c
                system: You are c.
            chat:
              pattern:
                group:
                  select:
                    model:
                      model: openai:gpt-4o-mini
                      system: "Pick one of {roles}."
                      prompt: "Name one of {agentlist}."
                      attempts: 5
                  allow_repeat_speaker: false
              participants: [a, b, c]
              stop: {max_turns: 6}
            ---
            OPENAI_API_KEY
        "##]],
    );
}

#[test]
fn the_usual_texts_of_a_selector_stay_as_they_are_here() {
    let prompt = "You are in a role play game. The following roles are available:\n{roles}.\nRead the following conversation. \
                  Then select the next role from {participants} to play. Only return the role.\n\n{history}\n\nRead the above \
                  conversation. Then select the next role from {participants} to play. Only return the role.\n";
    check(
        &team(
            "SelectorGroupChat",
            json!({
                "participants": members(&["a", "b"]), "selector_prompt": prompt, "allow_repeated_speaker": true, "max_turns": 6,
            }),
        ),
        &expect![[r#"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.

            name: SelectorGroupChat
            model: openai:gpt-4o
            agents:
              - name: a
                system: You are a.
              - name: b
                system: You are b.
            chat:
              pattern: {group: {select: model}}
              participants: [a, b]
              stop: {max_turns: 6}
            ---
            OPENAI_API_KEY
        "#]],
    );
}

#[test]
fn a_text_that_begins_as_the_usual_one_is_kept() {
    let prompt = "You are in a role play game. The following roles are available:\n{roles}.\nRead the following conversation. \
                  Then select the next role from {participants} to play. Prefer a.";
    let definition = team(
        "SelectorGroupChat",
        json!({"participants": members(&["a", "b"]), "selector_prompt": prompt, "max_turns": 6}),
    );
    let yaml = imported(&definition).yaml;
    assert!(yaml.contains("from {agentlist} to play. Prefer a."), "{yaml}");
}

#[test]
fn agents_hand_over_and_an_undefined_target_becomes_a_person() {
    let handoff = json!({"target": "user", "description": "Asks the user", "name": "transfer_to_user", "message": "Over to you"});
    let participants = [
        assistant("triage", json!({"handoffs": ["refunds", handoff]})),
        assistant("refunds", json!({"handoffs": ["triage"]})),
    ];
    let ending = component(
        "autogen_agentchat.conditions.TextMentionTermination",
        "termination",
        json!({"text": "TERMINATE"}),
    );
    check(
        &team("Swarm", json!({"participants": participants, "termination_condition": ending})),
        &expect![[r#"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.config.participants: `User` is added as a person: agents hand over to `user`
            # - $.config.participants[0].config.handoffs[1].description: left out: the tool of a handoff is described by the description of its target
            # - $.config.participants[0].config.handoffs[1].message: left out: the next agent reads the conversation, and the note of the agent that hands over

            name: Swarm
            model: openai:gpt-4o
            agents:
              - name: triage
                system: You are triage.
                handoffs: [refunds, User]
              - name: refunds
                system: You are refunds.
                handoffs: [triage]
              - name: User
                human: true
            chat:
              pattern: {handoffs: {start: triage, then: stay}}
              participants: [triage, refunds, User]
              stop: {says: TERMINATE}
            ---
            OPENAI_API_KEY
        "#]],
    );
}

fn flow(nodes: Value, start: Option<&str>) -> Value {
    let names: Vec<&str> = nodes.as_object().unwrap().keys().map(String::as_str).collect();
    let graph = json!({"nodes": nodes, "default_start_node": start});
    team(
        "GraphFlow",
        json!({"participants": members(&names), "graph": graph, "max_turns": 20, "termination_condition": null}),
    )
}

fn node(name: &str, edges: &[(&str, Option<&str>)]) -> Value {
    let edge = |(target, condition): &(&str, Option<&str>)| json!({"target": target, "condition": condition, "activation_group": target, "activation_condition": "all"});
    let activation = if name == "any" { "any" } else { "all" };
    json!({"name": name, "edges": edges.iter().map(edge).collect::<Vec<_>>(), "activation": activation})
}

#[test]
fn a_flow_with_a_loop() {
    let nodes = json!({
        "writer": node("writer", &[("reviewer", None)]),
        "reviewer": node("reviewer", &[("end", Some("APPROVE \"it\"")), ("writer", Some("REVISE"))]),
        "end": node("end", &[]),
    });
    let mut team = flow(nodes, Some("writer"));
    // Without it, the checker warns that no prompt asks for the texts of its edges.
    team["config"]["participants"][1]["config"]["system_message"] = r#"Reply APPROVE "it" or REVISE."#.into();
    check(
        &team,
        &expect![[r##"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.config.participants[2]: renamed to `End`: it is a keyword of team files

            name: GraphFlow
            model: openai:gpt-4o
            agents:
              - name: writer
                system: You are writer.
              - name: reviewer
                system: "Reply APPROVE \"it\" or REVISE."
              - name: End
                system: You are end.
            chat:
              pattern:
                graph:
                  start: writer
                  edges:
                    writer: reviewer
                    reviewer: [{to: End, says: "APPROVE \"it\""}, {to: writer, says: REVISE}]
              participants: [writer, reviewer, End]
              stop: {max_turns: 20}
            ---
            OPENAI_API_KEY
        "##]],
    );
}

#[test]
fn a_flow_that_forks_and_joins() {
    let nodes = json!({
        "a": node("a", &[("b", None), ("c", None)]), "b": node("b", &[("d", None)]),
        "c": node("c", &[("d", None)]), "d": node("d", &[]),
    });
    check(
        &flow(nodes, None),
        &expect![[r#"
        # Imported from team.json.
        # Keys are not allowed in team files; they are read from OPENAI_API_KEY.

        name: GraphFlow
        model: openai:gpt-4o
        agents:
          - name: a
            system: You are a.
          - name: b
            system: You are b.
          - name: c
            system: You are c.
          - name: d
            system: You are d.
        chat:
          pattern:
            graph: {edges: {a: [b, c], b: d, c: d}}
          participants: [a, b, c, d]
          stop: {max_turns: 20}
        ---
        OPENAI_API_KEY
    "#]],
    );
}

#[test]
fn a_flow_in_which_one_of_two_is_enough() {
    let mut nodes = json!({
        "a": node("a", &[("any", None)]), "b": node("b", &[("any", None), ("c", None)]),
        "any": node("any", &[]), "c": node("c", &[]), "absent": node("absent", &[]),
    });
    nodes["b"]["edges"][1]["activation_group"] = "other".into();
    nodes["b"]["edges"][1]["target"] = "absent".into();
    let mut definition = flow(nodes, None);
    definition["config"]["participants"]
        .as_array_mut()
        .unwrap()
        .retain(|one| one["config"]["name"] != "absent");
    check(
        &definition,
        &expect![[r#"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.
            #
            # Not converted, or changed:
            # - $.config.graph.nodes.b.edges[1].target: left out: there is no such participant
            # - $.config.graph.nodes.absent: left out: there is no such participant

            name: GraphFlow
            model: openai:gpt-4o
            agents:
              - name: a
                system: You are a.
              - name: b
                system: You are b.
              - name: any
                system: You are any.
              - name: c
                system: You are c.
            chat:
              pattern: {graph: {edges: {a: any, b: any}, join: {any: any}}}
              participants: [a, b, any, c]
              stop: {max_turns: 20}
            ---
            OPENAI_API_KEY
        "#]],
    );
}

#[test]
fn a_planner_keeps_a_ledger() {
    check(
        &team(
            "MagenticOneGroupChat",
            json!({
                "participants": members(&["a", "b"]), "model_client": openai("gpt-4o-mini"), "max_turns": 30, "max_stalls": 2,
                "final_answer_prompt": "Answer {task}.", "termination_condition": null,
            }),
        ),
        &expect![[r##"
            # Imported from team.json.
            # Keys are not allowed in team files; they are read from OPENAI_API_KEY.

            name: MagenticOneGroupChat
            agents:
              - name: a
                system: You are a.
                model: openai:gpt-4o
              - name: b
                system: You are b.
                model: openai:gpt-4o
              - name: Planner
                model: openai:gpt-4o-mini
            chat:
              pattern:
                orchestrator:
                  planner: Planner
                  max_turns: 30
                  max_stalls: 2
                  prompts: {answer: "Answer {task}."}
              participants: [a, b]
              stop: {max_turns: 30}
            ---
            OPENAI_API_KEY
        "##]],
    );
}
