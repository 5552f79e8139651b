//! Termination.

use polylogue::stop::LoopDetector;
use polylogue::stop::max_tokens;
use polylogue::stop::{LibraryStopReason, ModelMistake};
use polylogue::{AnyModel, Name, Status};
use polylogue_core::{Cancellation, DeltaSink, Model, ModelError, Reply, Request, RunOutcome, StopReason};

use crate::common::name;
use crate::role_play::set::{Came, DONE, play, role_play, said, talk, work};
use crate::stage::{log, script};

fn done() -> StopReason {
    StopReason::from(LibraryStopReason::Mentioned { text: DONE.into(), by: name("Trader") })
}

fn erred(who: &str, limit: u64) -> StopReason {
    StopReason::from(LibraryStopReason::Errors { who: name(who), of: ModelMistake::Role, limit })
}

fn silent(who: &str) -> StopReason {
    StopReason::from(LibraryStopReason::Errors { who: name(who), of: ModelMistake::Reply, limit: 1 })
}

/// Models decorate the marker; it is found all the same, and nothing else is.
#[tokio::test]
async fn a_decorated_marker_ends_it() {
    for marker in [
        "<CAMEL_TASK_DONE>.",
        "**<CAMEL_TASK_DONE>**",
        "`<CAMEL_TASK_DONE>`",
        "<camel_task_done>",
        "```\n<CAMEL_TASK_DONE>\n```",
        "\"<Camel_Task_Done>\"!",
        "> __<CAMEL_TASK_DONE>__\n",
    ] {
        let came = said(&[DO, DID, marker], |role_play| role_play).await;
        assert_eq!((came.said().len(), came.reason), (3, done()), "{marker}");
    }
    for other in ["<CAMEL_TASK_DONE> is not yet true", "CAMEL TASK DONE?", "***"] {
        let came = said(&[DO, DID, other, DID, DONE], |role_play| role_play).await;
        assert_eq!(came.said().len(), 5, "{other}");
    }
    let came = said(&[DO, DID, "so: **finis!**"], |role_play| role_play.done("FINIS").lenient()).await;
    assert_eq!(came.said().len(), 3);
}

/// A role that says nothing has not done the task.
#[tokio::test]
async fn blank_replies_are_no_success() {
    for script in [
        r#"[{"Trader": "Instruction: x"}, {"Python_programmer": ""}, {"Python_programmer": " "}]"#,
        r#"[{"Trader": ""}, {"Trader": {"think": "hm", "say": ""}}]"#,
    ] {
        let came = play(script, "Trade", |model| role_play(model).build("role_play").unwrap()).await;
        assert_ne!(came.reason.outcome(), RunOutcome::Done, "{}", came.reason);
    }
}

fn last(came: &Came) -> (String, String) {
    came.said().pop().unwrap()
}

const DO: &str = "Instruction: add the fees\nInput: None";
const DID: &str = "Solution: the fees are added. Next request.";

/// C04 (75)
#[tokio::test]
async fn the_marker_alone_ends_it_before_the_assistant_is_asked() {
    let came = said(&[DO, DID, " <CAMEL_TASK_DONE>\n"], |role_play| role_play).await;
    assert_eq!(came.reason, done());
    assert_eq!(last(&came).1.trim(), DONE);
    assert_eq!(came.asked("Python_programmer").len(), 1);
    assert_eq!(came.summary, DID);
}

/// C05 (76)
#[tokio::test]
async fn a_quoted_marker_ends_nothing() {
    let quoted = format!("Instruction: I shall write {DONE} when I am content\nInput: None");
    let came = said(&[&quoted, DID, DONE], |role_play| role_play).await;
    assert_eq!(came.said().len(), 3);
    assert_eq!(came.reason, done());
}

/// C05 (76)
#[tokio::test]
async fn a_marker_that_is_thought_ends_nothing() {
    for change in [|role_play| role_play, polylogue::tasks::RolePlay::lenient] {
        let script = format!(
            r#"[{{"Trader": {{"think": "{DONE}", "say": "Instruction: go on"}}}}, {{"Python_programmer": "{DID}"}},
                {{"Trader": "{DONE}"}}]"#
        );
        let came = play(&script, "Trade", |model| change(role_play(model)).build("role_play").unwrap()).await;
        assert_eq!(came.said().len(), 3);
    }
}

/// C05 (76)
#[tokio::test]
async fn a_lenient_role_play_accepts_the_marker_within_a_message() {
    let came = said(&["That is all, thanks. <CAMEL_TASK_DONE>"], polylogue::tasks::RolePlay::lenient).await;
    assert_eq!(came.reason, done());
    assert_eq!(came.said().len(), 1);
    assert_eq!(came.summary, "");
}

/// What the assistant says is not an end, though it is the marker.
#[tokio::test]
async fn only_the_user_role_ends_it() {
    let came = said(&[DO, DONE, DONE], |role_play| role_play.lenient()).await;
    assert_eq!(came.said().len(), 3);
}

#[tokio::test]
async fn the_marker_can_be_another() {
    let came = said(&[DO, DID, "FINIS"], |role_play| role_play.done("FINIS")).await;
    assert_eq!(
        came.reason,
        StopReason::from(LibraryStopReason::Mentioned { text: "FINIS".into(), by: name("Trader") })
    );
    assert!(came.asked[0].system.as_ref().unwrap().contains("nothing else: FINIS"));
    let blank = role_play(&script("[]")).done(" ").build("role_play").unwrap_err();
    assert!(blank.to_string().contains("blank"), "{blank}");
}

/// C06 (77)
#[tokio::test]
async fn limits_are_exact() {
    let work = work(5);
    let texts: Vec<&str> = work.iter().map(String::as_str).collect();
    for limit in 1..=5 {
        let came = said(&texts, |role_play| role_play.max_rounds(limit)).await;
        assert_eq!(came.reason, StopReason::from(LibraryStopReason::Rounds { limit }));
        assert_eq!(came.said().len() as u64, 2 * limit);
        let came = said(&texts, |role_play| role_play.max_messages(limit)).await;
        assert_eq!(came.reason, StopReason::from(LibraryStopReason::Messages { limit }));
        assert_eq!(came.said().len() as u64, limit);
        assert_eq!(came.asked.len() as u64, limit);
    }
}

/// C06 (77): a limit of many rounds is one, too, though a chat has its own limit.
#[tokio::test]
async fn one_hundred_rounds_are_played_in_full() {
    let texts: Vec<String> = (0..130)
        .flat_map(|n| [format!("Instruction: {n} {}", n * 7), format!("Solution: {n} {}", n * 11)])
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let came = said(&texts, |role_play| role_play.max_rounds(130)).await;
    assert_eq!(came.reason, StopReason::from(LibraryStopReason::Rounds { limit: 130 }));
    assert_eq!(came.said().len(), 260);
}

/// C07 (78)
#[tokio::test]
async fn three_messages_without_an_instruction_end_it() {
    let came = said(&["Hello", "Solution: a.", "What now", "Solution: bc", "Well", "no more"], |s| s).await;
    assert_eq!(came.reason, erred("Trader", 3));
    assert_eq!(came.said().len(), 5);
    assert_eq!(came.reason.outcome(), RunOutcome::Limit);
    assert_eq!(came.reason.to_string(), "Trader's limit of 3 errors in keeping to its role");
}

/// C07 (78)
#[tokio::test]
async fn an_instruction_resets_the_count() {
    let texts = [
        "Hello", "Solution: a.", "What now", "Solution: bc", DO, DID, "One", "Solution: d e", "Two",
        "Solution: f", "**Instruction:** bold", "Solution: g", DONE,
    ];
    let came = said(&texts, |role_play| role_play).await;
    assert_eq!(came.reason, done());
    let came = said(&texts[..4], |role_play| role_play.max_uninstructed(0).max_rounds(2)).await;
    assert_eq!(came.reason, StopReason::from(LibraryStopReason::Rounds { limit: 2 }));
    let came = said(&texts, |role_play| role_play.max_uninstructed(2)).await;
    assert_eq!((came.reason.clone(), came.said().len()), (erred("Trader", 2), 3));
}

/// C08 (79)
#[tokio::test]
async fn an_assistant_who_instructs_ends_it() {
    let flipped = "Solution: none.\n  Instruction: you write it\nInput: None";
    let came = said(&[DO, DID, "Instruction: go on", flipped, DONE], |role_play| role_play).await;
    assert_eq!(came.reason, erred("Python_programmer", 1));
    assert_eq!(came.said().len(), 4);
    let came = said(&[DO, flipped, DONE], |role_play| role_play.max_flips(0)).await;
    assert_eq!(came.reason, done());
    let came = said(&[DO, flipped, "Instruction: go on", DID, DO, flipped, DONE], |s| s.max_flips(2)).await;
    assert_eq!(came.reason, done());
}

/// C08 (79): only a line that begins so is an instruction.
#[tokio::test]
async fn an_assistant_may_write_of_instructions() {
    let came =
        said(&[DO, "Solution: as in `Instruction: x`. Next request.", DONE], |role_play| role_play).await;
    assert_eq!(came.reason, done());
}

/// C07, C08 (78, 79): models set `Instruction:` in bold letters, as a heading, and with the colon of Chinese texts.
#[tokio::test]
async fn an_instruction_is_one_however_it_is_set() {
    let forms = ["**Instruction**: a", "### Instruction: bc", "__Instruction:__ def", "Instruction：做"];
    let texts = [
        forms[0], "Solution: 1", forms[1], "Solution: 23", forms[2], "Solution: 456", forms[3],
        "Solution: 7", DONE,
    ];
    assert_eq!(said(&texts, |role_play| role_play).await.reason, done());
    for form in forms {
        assert_eq!(
            said(&[DO, form], |role_play| role_play).await.reason,
            erred("Python_programmer", 1),
            "{form}"
        );
    }
}

/// C09 (80)
#[tokio::test]
async fn near_repetitions_end_a_role_play() {
    let repeated: Vec<&str> = [DO, DID].into_iter().cycle().take(12).collect();
    let came = said(&repeated, |role_play| role_play).await;
    assert!(
        matches!(&came.reason, StopReason::LoopDetected { pattern, .. } if &**pattern == "repetition"),
        "{:?}",
        came.reason
    );
    assert_eq!(came.said().len(), 2 + 2 * 3);
    let patient = LoopDetector { repetition: 0, ..LoopDetector::default() };
    let came = said(&repeated, |role_play| role_play.loop_detector(patient).max_rounds(6)).await;
    assert_eq!(came.reason, StopReason::from(LibraryStopReason::Rounds { limit: 6 }));
}

/// C09 (80): counted across phrases, and reset by a message that is none.
#[tokio::test]
async fn farewells_of_both_sides_end_the_role_play() {
    let texts =
        ["Thank you!", "You are welcome!", DO, DID, "Goodbye!", "Take care!", "Thanks again!", "Bye!"];
    let came = said(&texts, |role_play| role_play.max_uninstructed(0)).await;
    assert!(
        matches!(&came.reason, StopReason::LoopDetected { pattern, .. } if &**pattern == "farewells"),
        "{:?}",
        came.reason
    );
    assert_eq!(came.said().len(), 8);
}

/// C16 (87)
#[tokio::test]
async fn a_blank_reply_is_asked_for_again_and_then_ends_it() {
    let came = said(&[DO, DID], |role_play| role_play.max_rounds(1)).await;
    assert_eq!(came.asked.len(), 2);
    let twice = r#"[{"Trader": "  "}, {"Trader": "Instruction: x"}, {"Python_programmer": {"think": "hm", "say": ""}},
                    {"Python_programmer": "\n"}]"#;
    let came = play(twice, "Trade", |model| role_play(model).build("role_play").unwrap()).await;
    assert_eq!(came.reason, silent("Python_programmer"));
    assert_eq!(came.asked.len(), 4);
    let once = r#"[{"Trader": "Instruction: x"}, {"Python_programmer": ""}, {"Python_programmer": "Solution: y"},
                   {"Trader": ""}, {"Trader": "<CAMEL_TASK_DONE>"}]"#;
    let came = play(once, "Trade", |model| role_play(model).build("role_play").unwrap()).await;
    assert_eq!((came.reason, came.summary.as_str()), (done(), "Solution: y"));
}

/// C06 (77), C16 (87): blank replies are no messages.
#[tokio::test]
async fn blank_replies_do_not_count() {
    let script = r#"[{"Trader": ""}, {"Trader": "Instruction: x"}, {"Python_programmer": {"think": "hm", "say": ""}},
                     {"Python_programmer": "Solution: y"}]"#;
    let came =
        play(script, "Trade", |model| role_play(model).max_rounds(1).build("role_play").unwrap()).await;
    assert_eq!(came.reason, StopReason::from(LibraryStopReason::Rounds { limit: 1 }));
    let came =
        play(script, "Trade", |model| role_play(model).max_messages(2).build("role_play").unwrap()).await;
    assert_eq!(came.reason, StopReason::from(LibraryStopReason::Messages { limit: 2 }));
}

/// A role-play that reached a limit continues under a higher one, and one that got no reply asks again.
#[tokio::test]
async fn a_closed_role_play_can_continue() {
    let steps = r#"[{"Trader": "Instruction: x"}, {"Python_programmer": ""}, {"Python_programmer": ""},
                    {"Python_programmer": "Solution: y"}, {"Trader": "<CAMEL_TASK_DONE>"}]"#;
    let model = script(steps);
    let chat = |rounds| role_play(&model).max_rounds(rounds).build("role_play").unwrap();
    let mut log = log().await;
    let mut reasons = Vec::new();
    let mut status = chat(1).run_in(&mut log, "Trade").await.unwrap().status;
    for rounds in [1, 2] {
        let Status::Closed { reason, .. } = status else { panic!("{status:?}") };
        reasons.push(reason);
        log.reopen().await.unwrap();
        status = chat(rounds).resume(&mut log).await.unwrap().status;
    }
    let Status::Closed { reason, summary } = status else { panic!("{status:?}") };
    assert_eq!(
        reasons,
        [silent("Python_programmer"), StopReason::from(LibraryStopReason::Rounds { limit: 1 })]
    );
    assert_eq!((reason, &*summary), (done(), "Solution: y"));
}

#[tokio::test]
async fn custom_conditions_are_added() {
    let script = r#"[{"Trader": {"say": "Instruction: x", "usage": {"input": 60, "output": 50}}}]"#;
    let make = |model: &AnyModel| {
        let role_play = role_play(model).stop(max_tokens(1000)).stop(max_tokens(100));
        role_play.build("role_play").unwrap()
    };
    let came = play(script, "Trade", make).await;
    assert_eq!(came.reason, StopReason::Tokens { limit: 100, used: 110, next: None, cut: None });
}

/// A model that stops the run while one agent is asked.
struct Stops {
    model: AnyModel,
    at: Name,
    cancel: Cancellation,
}

impl Model for Stops {
    fn name(&self) -> &str {
        self.model.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        if *request.origin.who == self.at {
            self.cancel.cancel_after_step();
        }
        self.model.complete(request, deltas).await
    }
}

/// C15 (86)
#[tokio::test]
async fn a_stop_leaves_the_transcript_and_asks_no_other_agent() {
    let mut log = log().await;
    let cancel = log.cancellation();
    let model =
        Stops { model: script(&talk(&[], &[DO, DID, DONE])), at: name("Trader"), cancel: cancel.clone() };
    let chat = role_play(&AnyModel::new(model)).build("role_play").unwrap();
    let status = chat.run_in(&mut log, "Trade").await.unwrap().status;
    assert_eq!(status, Status::Cancelled);
    let said: Vec<_> =
        log.transcript().await.unwrap().messages().map(|line| line.message.from.clone()).collect();
    assert_eq!(said, [Name::user(), name("Trader")]);
    let calls = log.transcript().await.unwrap().usage().calls;
    assert_eq!(calls, 1);
    cancel.clear();
    let status = chat.resume(&mut log).await.unwrap().status;
    assert_eq!(status, Status::Cancelled, "the trader stops it again");
    let said = log.transcript().await.unwrap().turns();
    assert_eq!(said, 3);
}
