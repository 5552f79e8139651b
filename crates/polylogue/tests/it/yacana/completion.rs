//! Deciding whether a task is complete. Items 32 and 37 to 41.

use polylogue::tasks::group_solve::Check;
use polylogue::tasks::{EndMode, GroupSolve};
use polylogue::{AnyModel, Status};
use polylogue_core::{Capabilities, DeltaSink, Model, ModelError, Params, Reply, Request};

use crate::stage::{Spy, log, name, script};
use crate::yacana::table::{Played, agent, lines, lists, one, two};

/// One iteration in which `one` is asked, and replies this to the question for a decision, one after the other.
async fn decided(replies: &[&str], check: Check) -> Played {
    let spy = lists(&[&["A1", "A2", "RA2"], replies].concat(), &["B1", "B2"]);
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
    Played::of(spy, solve.max_iterations(1).check(check)).await
}

#[track_caller]
fn complete(played: &Played) -> bool {
    !played.solved.complete.is_empty()
}

// Item 32: the temperature is that of one request.
#[tokio::test]
async fn the_decision_is_asked_for_at_a_low_temperature() {
    let temperatures = async |check: Check| {
        let spy = lists(&["A1", "A2", "RA2", "yes", "A3", "RA3", "no"], &["B1", "B2", "B3"]);
        let warm = agent("one", spy.model()).params(Params { temperature: Some(0.9), ..Params::default() });
        let task = polylogue::tasks::Task::new(warm, "P1").self_terminating();
        let solve = GroupSolve::new([task, two(&spy)], EndMode::FirstCompletion).check(check);
        let played = Played::of(spy, solve).await;
        let asked = played.spy.asked();
        asked
            .iter()
            .filter(|a| a.who.as_str() == "one")
            .map(|a| a.params.temperature.unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(temperatures(Check::default()).await, [0.9, 0.9, 0.9, 0.3, 0.9, 0.9, 0.3]);
    // For models that take no other.
    assert_eq!(temperatures(Check::default().temperature(None)).await, [0.9; 7]);
}

/// Fails once, when it is asked for a decision.
struct Shaky {
    model: AnyModel,
    failed: std::sync::atomic::AtomicBool,
}

impl Model for Shaky {
    fn name(&self) -> &str {
        self.model.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let decides = request.params.temperature == Some(Check::TEMPERATURE);
        if decides && !self.failed.swap(true, std::sync::atomic::Ordering::SeqCst) {
            return Err(ModelError::new(polylogue_core::ModelErrorKind::Connection, self.name(), "gone"));
        }
        self.model.complete(request, deltas).await
    }
}

// Item 32, defect 6: a failure in the middle of it leaves only the failure, and the run continues.
#[tokio::test]
async fn a_failure_while_asked_changes_nothing() {
    // A failed turn counts as a call, so the script has a place for it.
    let steps = r#"[{"one": "A1"}, {"one": "A2"}, {"one": "RA2"}, {"one": "gone"}, {"one": "yes"}, {"one": "A3"},
                    {"one": "RA3"}, {"one": "no"}, {"two": "B1"}, {"two": "B2"}, {"two": "B3"}]"#;
    let spy = Spy::on(AnyModel::new(Shaky { model: script(steps), failed: false.into() }));
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
    let chat = solve.build("group").unwrap();
    let mut log = log().await;
    assert!(chat.run_in(&mut log, "").await.unwrap_err().to_string().contains("gone"));
    let Status::Closed { reason, .. } = chat.resume(&mut log).await.unwrap().status else {
        panic!("it is over")
    };
    assert_eq!(reason.to_string(), "the task of one is complete");
    let last = spy.asked().into_iter().rev().find(|asked| asked.who.as_str() == "one").unwrap();
    let shown =
        ["user P1", "assistant A1", "user B2", "assistant A2", "user B3", "assistant A3", "user REFL"];
    assert_eq!(lines(&last.entries)[..7], shown);
}

// Items 37 and 38.
#[tokio::test]
async fn yes_continues_and_no_completes() {
    for reply in ["Yes", "yes.", "YES, two left"] {
        assert!(!complete(&decided(&[reply], Check::default()).await), "{reply}");
    }
    for reply in ["no", "No."] {
        assert!(complete(&decided(&[reply], Check::default()).await), "{reply}");
    }
}

// Items 39 and 40, defect 5: what is not a decision is asked for once more, and then counts as not complete.
#[tokio::test]
async fn a_verdict_that_is_neither_yes_nor_no_is_requested_once_more_and_completes_no_task() {
    for reply in ["", "maybe", "not sure", "I know it", "none of your business", "I know nothing", "nope"] {
        let played = decided(&[reply, reply], Check::default()).await;
        assert!(!complete(&played), "{reply}");
        assert!(played.solved.checks[0].verdict.unclear);
        assert_eq!(played.requests().last().unwrap(), "one: AGAIN");
    }
    let played = decided(&["hard to say", "no"], Check::default()).await;
    assert!(complete(&played));
    // A reply of white space stays as unclear as it was, and no request ends in the agent's own words.
    assert!(!complete(&decided(&["", " \n"], Check::default()).await));
}

// Item 41.
#[tokio::test]
async fn reasoning_is_not_read_as_a_decision() {
    assert!(complete(&decided(&["<think>yes</think>no"], Check::default()).await));
    assert!(!complete(&decided(&["<think>no</think>Yes"], Check::default()).await));
    let spy = Spy::on(script(
        r#"[{"one": "A1"}, {"one": "A2"}, {"one": "RA2"}, {"one": {"think": "yes", "say": "no"}}, {"two": "B1"}, {"two": "B2"}]"#,
    ));
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
    assert!(complete(&Played::of(spy, solve).await));
}

// A boolean, where the model supports schemas.
#[tokio::test]
async fn the_decision_can_be_structured() {
    let played = decided(&[r#"{"objectives_left": false}"#], Check::default().structured()).await;
    assert!(complete(&played));
    assert_eq!(schemas(&played), [false, false, false, false, false, true]);
    assert!(!complete(&decided(&[r#"{"objectives_left": true}"#], Check::default().structured()).await));
    // Who has no such answer is asked for a word, and nothing else happens.
    let played = decided(&["no", "no"], Check::default().structured()).await;
    assert!(complete(&played));
    assert_eq!(played.requests().last().unwrap(), "one: AGAIN");
}

fn schemas(played: &Played) -> Vec<bool> {
    played.spy.asked().iter().map(|asked| asked.params.schema.is_some()).collect()
}

// A model that is known to support schemas gets one, unless a custom question is asked.
#[tokio::test]
async fn the_decision_is_structured_where_the_model_is_known_to_support_schemas() {
    let decided = async |reply: &str, check: Check| {
        let steps =
            [("one", "A1"), ("one", "A2"), ("one", "RA2"), ("one", reply), ("two", "B1"), ("two", "B2")];
        let steps = steps.map(|(who, text)| polylogue_models::ScriptStep::say(name(who), text));
        let capabilities = Capabilities::TEXT.with(polylogue_core::Capability::Schema);
        let spy = Spy::on(AnyModel::new(
            polylogue_models::Script::new(steps).model("test").with_capabilities(capabilities),
        ));
        let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
        Played::of(spy, solve.max_iterations(1).check(check)).await
    };
    let json = r#"{"objectives_left": false}"#;
    for (reply, check, is_held) in [
        (json, Check::default(), true),
        ("no", Check::default().in_a_word(), false),
        ("no", Check::default().decision("Is anything left?"), false),
        (json, Check::default().decision("Is anything left?").structured(), true),
    ] {
        let played = decided(reply, check.clone()).await;
        assert!(complete(&played), "{check:?}");
        assert_eq!(schemas(&played)[5], is_held, "{check:?}");
    }
}

#[tokio::test]
async fn the_questions_can_be_ones_own() {
    let check = Check::default()
        .reflection("Was fehlt noch?")
        .decision("Fehlt noch etwas? Ja oder Nein.")
        .again("Nur ein Wort.")
        .words("ja", "nein");
    let played = decided(&["no", "Nein"], check).await;
    assert!(complete(&played));
    let requests = ["one: Was fehlt noch?", "one: Fehlt noch etwas? Ja oder Nein.", "one: Nur ein Wort."];
    assert_eq!(played.requests()[4..], requests);
}

// A form of what the agent says about its task is none of what it is asked about it, and the reverse.
#[tokio::test]
async fn the_form_of_answers_is_not_that_of_reflections() {
    let spy = lists(&["{\"n\":1}", "{\"n\":2}", "RA2", "no"], &["B1", "B2"]);
    let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let task = one(&spy).output_schema(schema).self_terminating();
    let played = Played::of(spy.clone(), GroupSolve::new([task, two(&spy)], EndMode::FirstCompletion)).await;
    assert!(complete(&played));
    let formed: Vec<bool> = spy.asked().iter().map(|asked| asked.params.schema.is_some()).collect();
    assert_eq!(formed, [true, false, false, true, false, false]);
    assert_eq!(played.knows("two")[2], "user {\"n\":1}");
}

/// A model that can do nothing but write.
struct TextOnly(AnyModel);

impl Model for TextOnly {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::TEXT
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        assert!(request.params.schema.is_none() && request.tools.is_empty(), "it cannot do that");
        self.0.complete(request, deltas).await
    }
}

// With the format as a prompt, it finds it; and its history is as that of any other model.
#[tokio::test]
async fn a_model_that_can_only_write_decides_in_a_form_too() {
    let spy = lists(&["A1", "A2", "RA2", "Sure: ```json\n{\"objectives_left\": false}\n```"], &["B1", "B2"]);
    let model = AnyModel::new(TextOnly(spy.model()));
    let task = polylogue::tasks::Task::new(agent("one", model), "P1").self_terminating().keeps_reflections();
    let solve =
        GroupSolve::new([task, two(&spy)], EndMode::FirstCompletion).check(Check::default().structured());
    let played = Played::of(spy, solve).await;
    assert!(complete(&played));
    let knows = ["user P1", "assistant A1", "user B2", "assistant A2", "user REFL", "assistant RA2"];
    assert_eq!(played.knows("one"), knows);
}
