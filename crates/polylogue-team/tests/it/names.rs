//! Names with spaces and of any script, wherever a file names participants.

use polylogue::{AnyModel, Log, Status};
use polylogue_core::Body;
use polylogue_team::{Overrides, Team, parse, schema};

use crate::common::{team, wrong};

/// Who said what in a run of `team` by its script, and its result.
async fn run(team: &Team) -> (Vec<String>, String) {
    let model = AnyModel::new(team.script.clone().model("script"));
    let chat = team.build(&|_| Ok(model.clone())).unwrap();
    let mut log = Log::in_memory();
    let mut status = chat.run_in(&mut log, "Begin").await.map(|run| run.status);
    if let Ok(Status::Waiting(questions)) = &status {
        let (at, question) = questions[0].clone();
        log.answer(&at, &question.who, "yes").await.unwrap();
        status = chat.resume(&mut log).await.map(|run| run.status);
    }
    let Ok(Status::Closed { summary, .. }) = status else { panic!("{status:?}") };
    let said = |event: &std::sync::Arc<polylogue_core::Event>| match &event.body {
        Body::Message(message) => Some(format!("{}{}: {}", event.chat, message.from, message.text())),
        _ => None,
    };
    (log.events().await.iter().filter_map(said).collect(), summary.to_string())
}

#[tokio::test]
async fn a_group_of_agents_with_names_of_any_script_is_picked_by_a_model() {
    let (said, _) = run(&team(
        "name: Ein Team
model: 'a:b'
agents:
  - {name: Ai assistant 1, description: Answers}
  - {name: Ai assistant 10}
  - {name: 研究员}
  - {name: Élodie, view: {prefix: {研究员: 'The researcher says:'}}}
chat:
  participants: [Ai assistant 1, Ai assistant 10, 研究员, Élodie]
  pattern:
    group:
      select: model
      transitions: {disallowed: {Ai assistant 1: [Ai assistant 1], 研究员: [研究员]}}
  stop: {says: {text: DONE, by: Élodie}, max_turns: 9}
script:
  - Ein Team_selector: Ai assistant 10
  - Ai assistant 10: one
  - Ein Team_selector: '**Ai_assistant_1** is next.'
  - Ai assistant 1: two
  - Ein Team_selector: 我选研究员来回答
  - 研究员: three
  - Ein Team_selector: \"E\u{301}lodie\"
  - Élodie: {say: DONE, expect: {last: 'The researcher says:'}}
",
    ))
    .await;
    let said: Vec<&str> =
        said.iter().map(String::as_str).filter(|line| !line.starts_with("Ein Team_selector")).collect();
    assert_eq!(said, ["Ai assistant 10: one", "Ai assistant 1: two", "研究员: three", "Élodie: DONE"]);
}

/// Tools are called after those who are asked; a script calls them by the names of the file.
#[tokio::test]
async fn tools_that_are_called_after_agents_work_with_any_name() {
    let team = team(
        "name: t
model: 'a:b'
agents:
  - {name: Ai assistant 1, handoffs: [研究员, Ai_assistant_1], agent_tools: [Old critic]}
  - {name: Ai_assistant_1}
  - {name: 研究员, description: Finds out., handoffs: [Ai_assistant_1], approval: {tools: [transfer_to_Ai_assistant_1]}}
  - {name: Old critic, description: Judges.}
chat:
  participants: [Ai assistant 1, 研究员, Ai_assistant_1]
  pattern: {handoffs: {start: Ai assistant 1, then: end}}
script:
  - Ai assistant 1: {calls: [{tool: Old critic, args: {task: Is it good?}}]}
  - Old critic: So so.
  - Ai assistant 1: {calls: [{tool: transfer_to_研究员, args: {note: Look closer}}], expect: {last: So so.}}
  - 研究员: {calls: [{tool: transfer_to_Ai_assistant_1, args: {}}]}
  - Ai_assistant_1: It is good.
",
    );
    let (said, summary) = run(&team).await;
    assert_eq!(summary, "It is good.");
    assert!(
        said.iter().any(|line| line.starts_with("/Ai assistant 1/Old criticOld critic: So so.")),
        "{said:?}"
    );
    assert!(said.iter().any(|line| line.contains("研究员: I hand over to Ai_assistant_1.")), "{said:?}");
}

#[tokio::test]
async fn an_approval_names_a_tool_by_the_agent_it_is_called_after() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A, handoffs: [Élodie], approval: {tools: [transfer_to_Élodie]}}, {name: Élodie}],
          chat: {participants: [A, Élodie], pattern: {handoffs: {start: A, then: end}}},
          script: [{A: {calls: [{tool: transfer_to_Élodie, args: {}}]}}, {Élodie: Here.}]}",
    );
    let model = AnyModel::new(team.script.clone().model("script"));
    let chat = team.build(&|_| Ok(model.clone())).unwrap();
    let mut log = Log::in_memory();
    let status = chat.run_in(&mut log, "Begin").await.map(|run| run.status);
    assert!(matches!(status, Ok(Status::Waiting(_))), "the transfer waits for approval: {status:?}");
    assert_eq!(run(&team).await.1, "Here.");
}

#[tokio::test]
async fn conditions_graphs_nested_chats_and_plans_name_such_agents() {
    let (said, summary) = run(&team(
        "name: t
model: 'a:b'
agents:
  - {name: Jean-Luc d’Arc}
  - {name: O'Brien}
  - {name: हिन्दी लेखक}
chat:
  participants: [first room, O'Brien]
  pattern:
    state_machine: {start: first room, after: {first room: [{when: \"last.from == 'first room'\", then: O'Brien}], O'Brien: end}}
chats:
  - name: first room
    participants: [Jean-Luc d’Arc, हिन्दी लेखक]
    pattern: {graph: {edges: {Jean-Luc d’Arc: [हिन्दी लेखक]}}}
script:
  - Jean-Luc d’Arc: one
  - हिन्दी लेखक: two
  - O'Brien: {say: three, expect: {last: two}}
",
    ))
    .await;
    let inner = ["/first room.1Jean-Luc d’Arc: one", "/first room.1हिन्दी लेखक: two"];
    assert_eq!(said[..2], inner);
    assert_eq!(summary, "three");
}

#[test]
fn a_name_in_another_normal_form_is_refused_with_the_one_to_use() {
    let text = "{name: t, model: 'a:b', agents: [{name: \"E\u{301}lodie\"}], chat: {participants: [\"E\u{301}lodie\"]}}";
    let error = wrong(text);
    assert!(
        error.contains("written with separate accents") && error.contains("copy it from here: `\u{c9}lodie`"),
        "{error}"
    );
}

#[test]
fn a_tool_of_an_agent_that_is_called_as_another_tool_is_refused() {
    let text = "{name: t, model: 'a:b', agents: [{name: A, handoffs: [B], agent_tools: [transfer_to_B]}, {name: B}, {name: transfer_to_B}],
                 chat: {participants: [A, B], pattern: {handoffs: {start: A, then: end}}}}";
    let error = wrong(text);
    assert!(error.contains("`A` already has a tool `transfer_to_B`"), "{error}");
    let text = "{name: t, model: 'a:b', agents: [{name: A, agent_tools: [{who: B, tool: find out}]}, {name: B}], chat: {participants: [A]}}";
    let error = wrong(text);
    assert!(error.contains("no tool can be called `find out`"), "{error}");
}

/// The schema and the program take the same names.
#[test]
fn the_schema_takes_the_names_that_the_program_takes() {
    let validator = jsonschema::draft202012::new(schema()).unwrap();
    for name in [
        "a",
        "Ai assistant 1",
        "研究员",
        "Élodie",
        "O'Brien",
        "हिन्दी लेखक",
        "ผู้ช่วย",
        "a b c",
        "アーサー·C",
        "",
        " a",
        "a ",
        "a  b",
        "a\tb",
        "a\u{a0}b",
        "1st",
        "a.b",
        "a/b",
        "a:b",
        "a\u{200b}b",
        "a\u{202e}b",
        "a\u{7}",
    ] {
        let team = serde_json::json!({
            "name": "t", "model": "a:b", "agents": [{"name": name}], "chat": {"participants": [name]},
        });
        let taken = parse(&team.to_string(), "t.yaml", &Overrides::default()).is_ok();
        assert_eq!(validator.is_valid(&team), taken, "{name:?}");
        assert_eq!(polylogue::Name::new(name).is_ok(), taken, "{name:?}");
    }
}
