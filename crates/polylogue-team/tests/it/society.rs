//! Societies of team files, as they talk.

use polylogue::stop::{LibraryStopReason, ModelMistake};
use polylogue::{AnyModel, Log, Status};
use polylogue_core::StopReason;
use polylogue_team::Team;

use crate::common;

/// A team of `Ann`, who instructs, `Bob`, who solves, and others, with `more` in its society and `chat` in its chat.
fn team(more: &str, chat: &str, script: &str) -> Team {
    let text = format!(
        "{{name: t, model: 'a:b', vars: {{user: 'Trader {{x}}', assistant: Coder}},
          agents: [{{name: Ann}}, {{name: Bob, system: 'About {{{{task}}}}:'}}, {{name: Spec}}, {{name: Plan}}, {{name: Judge}}, {{name: Zoe, human: true}}],
          chat: {{participants: [Ann, Bob], {chat} pattern: {{role_play: {{
            user: {{who: Ann, role: '{{{{user}}}}'}}, assistant: {{who: Bob, role: '{{{{assistant}}}}'}}, {more}}}}}}},
          script: [{script}]}}"
    );
    common::team(&text)
}

/// Why the conversation of `team` ended, and its summary. Its script holds what is expected of requests, and is used up.
async fn end(team: &Team, answers: &[&str]) -> (String, String) {
    let model = team.script.clone().model("script");
    let chat = team.build(&|_| Ok(AnyModel::new(model.clone()))).unwrap();
    let mut log = Log::in_memory();
    let mut status = chat.run_in(&mut log, "Trade {task} {{task}} {}").await.unwrap().status;
    for answer in answers {
        let Status::Waiting(questions) = &status else { panic!("no one is asked: {status:?}") };
        let (at, question) = &questions[0];
        log.answer(at, &question.who, *answer).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    model.finish().unwrap();
    let Status::Closed { reason, summary } = status else { panic!("{status:?}") };
    (reason.to_string(), summary.to_string())
}

async fn reason(more: &str, chat: &str, script: &str) -> String {
    end(&team(more, chat, script), &[]).await.0
}

#[tokio::test]
async fn a_specifier_a_planner_and_a_language_are_in_the_texts_of_both_roles() {
    let script = "{Spec: {say: Trade wheat {task}., expect: {last: at most 33 words}}},
        {Plan: {say: '1. Buy', expect: {last: 'Trade wheat {task}.'}}},
        {Ann: {say: 'Instruction: go', expect: {system: \"You are Trader {x}, and I am Coder.\", last: Begin with the first}}},
        {Bob: {say: 'Solution: gone', expect: {system: \"About Trade wheat {task}.\\n1. Buy:\\n\\nWhatever language you read, write in Greek\"}}},
        {Ann: <CAMEL_TASK_DONE>}";
    let script = script.replace("Trade wheat {task}.,", "'Trade wheat {task}.',");
    let team = team("specifier: {who: Spec, words: 33}, planner: Plan, language: Greek", "", &script);
    let (reason, summary) = end(&team, &[]).await;
    assert!(reason.contains("<CAMEL_TASK_DONE>"), "{reason}");
    assert_eq!(summary, "Solution: gone");
}

#[tokio::test]
async fn own_rules_take_the_place_of_the_usual_ones_and_braces_in_a_task_are_braces() {
    let script = "{Ann: {say: DONE, expect: {system: \"Buy! Trade {task} {{task}} {} {user}\"}}}";
    let text = "done: DONE, user: {who: Ann, rules: 'Buy! {{task}} {user}'}";
    let text = format!(
        "{{name: t, model: 'a:b', agents: [{{name: Ann}}, {{name: Bob}}],
          chat: {{participants: [Ann, Bob], pattern: {{role_play: {{assistant: Bob, {text}}}}}}}, script: [{script}]}}"
    );
    let team = common::team(&text);
    let stored = serde_json::from_str::<Team>(&serde_json::to_string(&team).unwrap()).unwrap();
    for team in [team, stored] {
        assert!(end(&team, &[]).await.0.contains("DONE"));
    }
}

#[tokio::test]
async fn a_marker_counts_alone_and_within_a_message_if_that_is_said() {
    let quoted = "{Ann: 'Instruction: I will say DONE'}, {Bob: 'Solution: DONE'}, {Ann: ' DONE '}";
    assert!(reason("done: DONE", "", quoted).await.contains("DONE"));
    let first = "{Ann: {think: DONE, say: 'Instruction: go'}}, {Bob: DONE}, {Ann: 'I say DONE.'}";
    assert!(reason("done: {text: DONE, anywhere: true}", "", first).await.contains("DONE"));
}

#[tokio::test]
async fn a_role_play_ends_when_roles_are_not_followed() {
    let aimless = "{Ann: Well}, {Bob: one}, {Ann: Hm}, {Bob: two}, {Ann: So}";
    assert_eq!(
        reason("", "", aimless).await,
        StopReason::from(LibraryStopReason::Errors {
            who: polylogue::Name::new("Ann").unwrap(),
            of: ModelMistake::Role,
            limit: 3
        })
        .to_string()
    );
    let two = "{Ann: Well}, {Bob: one}, {Ann: Hm}";
    assert!(reason("max_uninstructed: 2", "", two).await.contains("Ann"));
    let flipped = "{Ann: 'Instruction: go'}, {Bob: \"Sure.\\nInstruction: you go\"}";
    assert!(reason("", "", flipped).await.contains("Bob"));
    let allowed = "{Ann: 'Instruction: go'}, {Bob: 'Instruction: you go'}, {Ann: <CAMEL_TASK_DONE>}";
    assert!(reason("max_flips: 0", "", allowed).await.contains("DONE"));
}

#[tokio::test]
async fn rounds_messages_loops_and_conditions_of_the_chat_end_it() {
    let three = "{Ann: 'Instruction: a'}, {Bob: 'Solution: b'}, {Ann: 'Instruction: crimson'}";
    let two = "{Ann: 'Instruction: a'}, {Bob: 'Solution: b'}";
    assert_eq!(
        reason("max_rounds: 1", "", two).await,
        StopReason::from(LibraryStopReason::Rounds { limit: 1 }).to_string()
    );
    assert_eq!(
        reason("max_messages: 3", "", three).await,
        StopReason::from(LibraryStopReason::Messages { limit: 3 }).to_string()
    );
    assert!(
        reason("", "stop: {when: \"last.text.contains('crimson')\"},", three)
            .await
            .contains("contains('crimson')")
    );
    let circling = ["{Ann: 'Instruction: buy now'}", "{Bob: 'Solution: it is bought'}"];
    let circling: Vec<&str> = circling.into_iter().cycle().take(6).collect();
    let reason = reason("", "loop_detection: {repetition: 2},", &circling.join(", ")).await;
    assert!(reason.contains("loop detected"), "{reason}");
}

#[tokio::test]
async fn a_critic_chooses_among_proposals_and_may_be_a_person() {
    let script = "{Ann: 'Instruction: a'}, {Ann: 'Instruction: b'},
        {Judge: {say: 'none', expect: {system: by beauty}}}, {Judge: {say: 'I take 2', expect: {last: none of the options}}},
        {Bob: {say: 'Solution: b', expect: {last: 'Instruction: b'}}}, {Bob: 'Solution: other'}, {Judge: '1'}";
    let more = "max_rounds: 1, critic: {who: Judge, options: 2, criteria: by beauty, retries: 1}";
    let (_, summary) = end(&team(more, "", script), &[]).await;
    assert_eq!(summary, "Solution: b");
    // Texts that are not set name the language.
    let script = "{Ann: 'Instruction: a'}, {Ann: 'Instruction: b'}, {Judge: {say: none, expect: {last: 'Which of 2?'}}},
        {Judge: {say: '2', expect: {last: write in French}}}, {Bob: 'Solution: b'}, {Bob: 'Solution: other'}, {Judge: '1'}";
    let more = "max_rounds: 1, language: French, critic: {who: Judge, options: 2, texts: {prompt: 'Which of {count}? {options}'}}";
    let (_, summary) = end(&team(more, "", script), &[]).await;
    assert_eq!(summary, "Solution: b");
    let script =
        "{Ann: 'Instruction: a'}, {Ann: 'Instruction: b'}, {Bob: 'Solution: x'}, {Bob: 'Solution: y'}";
    let (_, summary) =
        end(&team("max_rounds: 1, critic: {who: Zoe, options: 2}", "", script), &["1", "2"]).await;
    assert_eq!(summary, "Solution: y");
}

#[tokio::test]
async fn the_summary_of_a_role_play_can_be_written_by_a_model() {
    let script = "{Ann: 'Instruction: a'}, {Bob: 'Solution: b'}, {t_summary: All is done.}";
    let (_, summary) = end(&team("max_rounds: 1", "summary: {reflect: {}},", script), &[]).await;
    assert_eq!(summary, "All is done.");
}

#[tokio::test]
async fn a_society_takes_part_in_another_chat_and_says_its_last_solution_there() {
    let text = "{name: t, model: 'a:b', agents: [{name: Ann}, {name: Bob}, {name: Eve}],
      chat: {participants: [work, Eve], pattern: sequential},
      chats: [{name: work, task_from: task, participants: [Ann, Bob], pattern: {role_play: {user: Ann, assistant: Bob, max_rounds: 1}}}],
      script: [{Ann: {say: 'Instruction: a', expect: {system: 'Trade {task} {{task}} {}'}}}, {Bob: 'Solution: b'},
        {Eve: {say: Fine., expect: {last: 'Solution: b'}}}]}";
    let team = common::team(text);
    assert_eq!(end(&team, &[]).await.1, "Fine.");
}
