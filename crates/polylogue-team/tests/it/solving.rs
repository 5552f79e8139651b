//! Tasks of team files, as they are solved.

use polylogue::stop::LibraryStopReason;
use polylogue::tasks::GroupSolveResult;
use polylogue::{AnyModel, Log, Status, Transcript};
use polylogue_core::{Body, Event, Part, StopReason};
use polylogue_team::Team;
use std::sync::Arc;

use crate::common::team;

struct Ran {
    events: Vec<Arc<Event>>,
    status: Status,
}

/// A run of `team` by its script; questions are answered with `answers` in order.
async fn run(team: &Team, answers: &[&str]) -> Ran {
    let model = team.script.clone().model("script");
    let chat = team.build(&|_| Ok(AnyModel::new(model.clone()))).unwrap();
    let mut log = Log::in_memory();
    let mut status = chat.run_in(&mut log, "the sea").await.unwrap().status;
    for answer in answers {
        let Status::Waiting(questions) = &status else { panic!("no one is asked: {status:?}") };
        let (at, question) = &questions[0];
        log.answer(at, &question.who, *answer).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    model.finish().unwrap();
    Ran { events: log.events().await, status }
}

impl Ran {
    fn solved(&self) -> GroupSolveResult {
        GroupSolveResult::from_transcript(
            &Transcript::from_events(&polylogue_core::Path::root(), &self.events).unwrap(),
        )
    }

    /// The messages of the outermost chat that were sent to agents.
    fn said(&self) -> Vec<String> {
        let said = self.events.iter().filter(|event| event.chat.as_str().is_empty());
        let said = said.filter_map(|event| match &event.body {
            Body::Message(message) if !message.to.is_private() => Some(message),
            _ => None,
        });
        said.map(|message| format!("{}: {}", message.from, message.text())).collect()
    }

    fn end(&self) -> (&StopReason, &str) {
        let Status::Closed { reason, summary } = &self.status else { panic!("{:?}", self.status) };
        (reason, summary)
    }
}

#[tokio::test]
async fn a_person_talks_about_a_task_as_a_model_does() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: Keeper}, {name: Zoe, human: true}],
          chat: {participants: [Keeper, Zoe], pattern: {group_solve: {
            tasks: [{who: Keeper, prompt: Answer the guesses., self_terminating: true}, {who: Zoe, prompt: Guess a number.}],
            end: first_completion, shift: {says: Your guess?}}}},
          script: [{Keeper: ready}, {Keeper: You won}, {Keeper: nothing is left}, {Keeper: 'no'}]}",
    );
    let ran = run(&team, &["a number? 3!", "3"]).await;
    assert_eq!(ran.said(), ["Keeper: ready", "Zoe: a number? 3!", "Zoe: 3", "Keeper: You won"]);
    assert_eq!(ran.end().0.to_string(), "the task of Keeper is complete");
}

#[tokio::test]
async fn three_hear_everything_and_are_called_on_in_turn() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A}, {name: B}, {name: C}],
          chat: {participants: [A, B, C], pattern: {group_solve: {
            tasks: [{who: C, prompt: 'Speak about {{task}}.'}, {who: A, prompt: Ask.}, {who: B, prompt: Doubt., self_terminating: true}],
            end: first_completion, max_iterations: 2}}},
          script: [{C: c1}, {A: a1}, {B: b1}, {B: much is left}, {B: 'yes'},
            {C: c2}, {A: a2}, {B: {say: b2, expect: {last: your turn to speak}}}, {B: done}, {B: 'no'}]}",
    );
    let ran = run(&team, &[]).await;
    let spoken: Vec<String> =
        ran.said().into_iter().filter(|said| !said.starts_with("TaskManager")).collect();
    assert_eq!(spoken, ["C: c1", "A: a1", "B: b1", "C: c2", "A: a2", "B: b2"]);
    assert!(ran.solved().is_complete(&polylogue::Name::new("B").unwrap()));
    let posted = |text: &str| {
        ran.events.iter().any(|event| matches!(&event.body, Body::Posted(m) if m.text().contains(text)))
    };
    assert!(posted("C: this is your main task: `Speak about the sea.`"), "{:?}", ran.events);
}

#[tokio::test]
async fn a_chat_of_tasks_takes_part_in_another_and_a_chat_has_a_task() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A}, {name: B}, {name: C}],
          chat: {participants: [duty], pattern: sequential},
          chats: [
            {name: duty, task: 'the tides of {{task}}', participants: [A, panel], pattern: {group_solve: {
              tasks: [{who: A, prompt: 'Explain {{task}}.'}, {who: panel, prompt: Look for mistakes.}], max_iterations: 1,
              after: [{who: C, prompt: Say whether it was worth it., forget: true}]}}},
            {name: panel, participants: [B], pattern: sequential}],
          script: [{A: {say: the moon, expect: {last: Explain the tides of the sea.}}},
            {B: {say: none yet, expect: {last: Look for mistakes.}}},
            {B: {say: and the sun, expect: {last: the moon}}}, {A: {say: both, expect: {last: and the sun}}}, {C: It was.}]}",
    );
    let ran = run(&team, &[]).await;
    assert_eq!(ran.end().1, "It was.");
}

#[tokio::test]
async fn a_talk_is_ended_by_a_stop_too_and_summed_up_by_a_model() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A}, {name: B}],
          chat: {participants: [A, B], stop: {says: {text: STOP, by: B}}, summary: {reflect: {prompt: Sum up.}},
            pattern: {group_solve: {tasks: [{who: A, prompt: a}, {who: B, prompt: b}]}}},
          script: [{A: one}, {B: two}, {B: STOP}, {t_summary: {say: in short, expect: {last: Sum up.}}}]}",
    );
    let ran = run(&team, &[]).await;
    assert_eq!(ran.end().1, "in short");
    assert!(
        matches!(LibraryStopReason::of(ran.end().0), Some(LibraryStopReason::Mentioned { .. })),
        "{:?}",
        ran.end()
    );
}

/// Every agent is asked after every turn, and none is ever done: no other limit comes before that of the iterations.
#[tokio::test]
async fn the_limit_on_iterations_is_the_only_one_and_a_summary_follows() {
    let turns: String = (0..40)
        .map(|_| "{B: b}, {B: left}, {B: 'yes'}, {A: a}, {A: left}, {A: 'yes'}, ".to_owned())
        .collect();
    let text = "{name: t, model: 'a:b', agents: [{name: A}, {name: B}], limits: {calls: 1000},
          chat: {participants: [A, B], summary: {reflect: {}},
            pattern: {group_solve: {tasks: [{who: A, prompt: a, self_terminating: true}, {who: B, prompt: b, self_terminating: true}],
              end: all_complete, max_iterations: 40}}},
          script: [{A: one}, {B: two}, TURNS {t_summary: in short}]}";
    let ran = run(&team(&text.replace("TURNS", &turns)), &[]).await;
    assert_eq!(
        (ran.end().0, ran.end().1),
        (&StopReason::from(LibraryStopReason::Rounds { limit: 40 }), "in short")
    );
    assert_eq!(ran.solved().iterations, 40);
}

#[tokio::test]
async fn how_completion_is_asked_for_is_as_the_file_says() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A, parameters: {temperature: 0.9}}, {name: B}],
          chat: {participants: [A, B], pattern: {group_solve: {
            tasks: [{who: A, prompt: a, self_terminating: true}, {who: B, prompt: b}], end: first_completion,
            check: {reflection: Was fehlt?, decision: Fehlt etwas?, again: 'Ja oder nein?', words: {open: ja, complete: nein}, temperature: own, structured: false}}}},
          script: [{A: eins}, {B: zwei}, {B: drei}, {A: vier}, {A: {say: nichts, expect: {last: Was fehlt?}}},
            {A: {say: vielleicht, expect: {last: Fehlt etwas?}}}, {A: {say: Nein!, expect: {last: 'Ja oder nein?'}}}]}",
    );
    let solved = run(&team, &[]).await.solved();
    assert!(solved.checks[0].verdict.complete, "{solved:?}");
}

#[tokio::test]
async fn pictures_are_sent_with_the_prompt_and_a_task_alone_can_be_forgotten() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A}],
          chat: {participants: [A], pattern: {tasks: [
            {who: A, prompt: What is this?, media: [{type: image/png, url: 'data:image/png;base64,AA=='}], forget: true},
            {who: A, prompt: And now?}]}},
          script: [{A: a map}, {A: nothing}]}",
    );
    let ran = run(&team, &[]).await;
    let is_picture = |part: &Part| matches!(part, Part::Media(media) if media.media_type == "image/png");
    let posted = ran
        .events
        .iter()
        .any(|event| matches!(&event.body, Body::Posted(message) if message.parts.iter().any(is_picture)));
    assert!(posted);
    assert_eq!(ran.end().1, "nothing");
}

#[tokio::test]
async fn an_agent_answers_in_a_form_and_gives_up_when_it_cannot_be_repaired() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A, output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}, output_retries: 1}],
          chat: {participants: [A], pattern: sequential}, script: [{A: '{\"n\": \"x\"}'}, {A: still none}]}",
    );
    let ran = run(&team, &[]).await;
    assert!(
        matches!(LibraryStopReason::of(ran.end().0), Some(LibraryStopReason::Errors { .. })),
        "{:?}",
        ran.end()
    );
}

#[test]
fn agents_receive_the_tools_of_their_tasks() {
    let team = team(
        "{name: t, model: 'a:b', agents: [{name: A, tools: [chess]}, {name: B}],
          chat: {participants: [A, B], pattern: {tasks: [{who: A, prompt: a, tools: [high_low]}, {who: B, prompt: b}]}},
          script: [{A: x}]}",
    );
    let assistants = team.assistants(&|_| Ok(AnyModel::new(team.script.clone().model("script")))).unwrap();
    let shown: Vec<Vec<&str>> = assistants
        .iter()
        .map(|assistant| assistant.specs().iter().map(|spec| spec.name.as_str()).collect())
        .collect();
    assert_eq!(shown, [vec!["chess"], vec![], vec!["chess", "high_low"], vec![]]);
}
