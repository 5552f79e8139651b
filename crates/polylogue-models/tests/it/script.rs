//! Scripted models: what they reply, how they stream it, and what they refuse.

use std::collections::BTreeMap;
use std::time::Duration;

use polylogue_core::{
    Delta, DeltaRef, DeltaSink, EncodeCache, Entry, FinishReason, Model, ModelError, ModelErrorKind, Money,
    Name, Origin, Params, Part, Path, Reply, Request, ToolSpec, Usage,
};
use polylogue_models::{Script, ScriptStep, Scripted};
use serde_json::json;

/// Hears pieces, and when they came.
struct Ear {
    began: tokio::time::Instant,
    pieces: Vec<(u128, Delta)>,
}

impl DeltaSink for Ear {
    fn push(&mut self, delta: DeltaRef<'_>) {
        self.pieces.push((self.began.elapsed().as_millis(), delta.into()));
    }
}

/// What a request is made of.
struct Asked {
    at: Path,
    who: Name,
    nth: u64,
    system: Option<&'static str>,
    entries: Vec<Entry>,
    tools: Vec<ToolSpec>,
}

fn asked(who: &str, nth: u64, last: &str) -> Asked {
    Asked {
        at: Path::root(),
        who: name(who),
        nth,
        system: None,
        entries: vec![Entry::user(last)],
        tools: vec![],
    }
}

impl Asked {
    async fn of(&self, model: &Scripted) -> Result<Reply, ModelError> {
        self.streamed_to(model, &mut ()).await
    }

    async fn streamed_to(&self, model: &Scripted, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let Self { at, who, nth, system, entries, tools } = self;
        let origin = Origin::new(at, who, *nth);
        let (params, wire) = (&Params::default(), &EncodeCache::default());
        model
            .complete(
                &Request { origin, system: *system, entries, tools, params, encoded: wire, reserved: None },
                deltas,
            )
            .await
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn tool(name: &str) -> ToolSpec {
    let (name, description) = (name.to_owned(), "d".to_owned());
    ToolSpec::new(name, description, json!({}))
}

fn script(yaml: &str) -> Script {
    serde_saphyr::from_str(yaml).unwrap()
}

#[tokio::test]
async fn the_nth_call_of_an_agent_gets_its_nth_step_whatever_was_asked_before() {
    let model = script("[{A: one}, {B: hello}, {A: two}, {A: three}]").model("s");
    assert_eq!(Model::name(&model), "script:s");
    for (who, nth, text) in
        [("A", 2, "three"), ("A", 0, "one"), ("B", 0, "hello"), ("A", 1, "two"), ("A", 0, "one")]
    {
        assert_eq!(asked(who, nth, "?").of(&model).await.unwrap(), Reply::new(text));
    }
}

#[tokio::test]
async fn a_step_can_think_speak_and_call_with_ids_unique_in_the_conversation() {
    let yaml = "
- A:
    think: Let me look
    say: One moment
    calls:
      - {tool: get_history, args: {limit: 2}}
      - {tool: get_history, id: mine}
    usage: {input: 10, output: 4}
- A: {calls: [{tool: get_history, args: 'limit='}], finish: length}
";
    let model = script(yaml).model("s");
    let reply = asked("A", 0, "go").of(&model).await.unwrap();
    let expected = json!([
        {"thought": "Let me look"},
        {"text": "One moment"},
        {"call": {"id": "A-0-0", "tool": "get_history", "args": {"limit": 2}}},
        {"call": {"id": "mine", "tool": "get_history", "args": {}}},
    ]);
    assert_eq!(serde_json::to_value(&reply.parts).unwrap(), expected);
    assert_eq!(reply.finish, FinishReason::Calls);
    assert_eq!(reply.usage, Usage { input: Some(10), output: Some(4), ..Usage::default() });
    assert_eq!(model.cost(&reply.usage), Some(Money::default()));

    let reply = asked("A", 1, "go").of(&model).await.unwrap();
    assert_eq!(reply.finish, FinishReason::Length);
    assert!(reply.usage.is_unknown());
    assert!(
        matches!(&reply.parts[..], [Part::ToolCall(call)] if call.id == "A-1-0" && call.args == "limit=")
    );
}

#[tokio::test]
async fn saying_nothing_is_a_reply_without_text() {
    let model = script("[{A: ''}]").model("s");
    assert_eq!(asked("A", 0, "go").of(&model).await.unwrap().parts, []);
}

#[tokio::test(start_paused = true)]
async fn a_paced_step_comes_word_by_word_after_its_delay() {
    let yaml = "[{A: {think: hm, say: one two  three, delay_ms: 400, calls: [{tool: t, args: {a: 1}}]}}]";
    let model = script(yaml).paced(10.0).model("s");
    let mut ear = Ear { began: tokio::time::Instant::now(), pieces: Vec::new() };
    let reply = asked("A", 0, "go").streamed_to(&model, &mut ear).await.unwrap();
    let text = |text: &str| Delta::Text(text.to_owned());
    let call = Delta::Call { index: 0, tool: Some("t".to_owned()), args: r#"{"a":1}"#.to_owned() };
    let expected = [
        (400, Delta::Thought("hm".to_owned())),
        (500, text("one ")),
        (600, text("two  ")),
        (700, text("three")),
        (700, call),
    ];
    let rounded: Vec<_> = ear.pieces.into_iter().map(|(ms, piece)| ((ms + 5) / 10 * 10, piece)).collect();
    assert_eq!(rounded, expected);
    assert_eq!(polylogue_core::text_of(&reply.parts), "one two  three");
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_long_reply_keep_the_pace() {
    let words = vec!["word"; 600].join(" ");
    let model = Script::new([ScriptStep::say(name("A"), words)]).paced(300.0).model("s");
    let mut ear = Ear { began: tokio::time::Instant::now(), pieces: Vec::new() };
    asked("A", 0, "go").streamed_to(&model, &mut ear).await.unwrap();
    let last = ear.pieces.last().unwrap().0;
    assert!((1_990..2_005).contains(&last), "599 words at 300 a second take 1997 ms, not {last}");
}

#[tokio::test]
async fn a_step_without_pace_comes_at_once_and_in_one_piece() {
    let model = script("[{A: {say: one two, pace: 0}}]").paced(10.0).model("s");
    let mut ear = Ear { began: tokio::time::Instant::now(), pieces: Vec::new() };
    asked("A", 0, "go").streamed_to(&model, &mut ear).await.unwrap();
    assert!(matches!(&ear.pieces[..], [(_, Delta::Text(text))] if text == "one two"));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_ends_the_reply() {
    let model = script("[{A: {say: one two three, delay_ms: 1000, pace: 1}}]").model("s");
    let mut ear = Ear { began: tokio::time::Instant::now(), pieces: Vec::new() };
    let asked = asked("A", 0, "go");
    let reply = asked.streamed_to(&model, &mut ear);
    assert!(tokio::time::timeout(Duration::from_millis(2500), reply).await.is_err());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(ear.pieces.len(), 2);
}

#[tokio::test]
async fn a_failing_step_is_an_error_of_the_kind_its_status_stands_for() {
    for (status, kind) in [
        (json!({}), ModelErrorKind::Connection),
        (json!({"status": 401}), ModelErrorKind::Config),
        (json!({"status": 408}), ModelErrorKind::Timeout),
        (json!({"status": 429}), ModelErrorKind::Unavailable),
        (json!({"status": 503}), ModelErrorKind::Unavailable),
    ] {
        let mut error = status.clone();
        error["message"] = json!("no luck with sk-abcdefghijklmnopqrstuvwxyz012345");
        let script: Script = serde_json::from_value(json!([{"A": {"error": error}}])).unwrap();
        let model = script.model("s");
        let error = asked("A", 0, "go").of(&model).await.unwrap_err();
        assert_eq!((error.kind, json!(error.status)), (kind, status["status"].clone()));
        assert_eq!(error.to_string(), "script:s: no luck with [key]");
        model.finish().unwrap();
    }
}

#[tokio::test]
async fn a_reply_can_break_off() {
    let model = script("[{A: {say: 'Half a sen', error: {message: connection reset}}}]").model("s");
    let mut ear = Ear { began: tokio::time::Instant::now(), pieces: Vec::new() };
    asked("A", 0, "go").streamed_to(&model, &mut ear).await.unwrap_err();
    assert!(matches!(&ear.pieces[..], [(_, Delta::Text(text))] if text == "Half a sen"));
}

#[tokio::test]
async fn a_call_without_a_step_is_refused_and_says_what_was_asked() {
    let model = script("[{A: one}]").model("s");
    let error = asked("A", 1, "and\nnow?").of(&model).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Script);
    let message =
        "script:s: the script has 1 step for `A`, and this is call 2 of it; the last it read is `and now?`";
    assert_eq!(error.to_string(), message);
    assert_eq!(error.hint.unwrap(), "add a step `- A: ...` to the script, or use a model");

    let error = asked("B", 0, &"x".repeat(1000)).of(&model).await.unwrap_err();
    assert!(error.message.starts_with("the script has no steps for `B`"), "{error}");
    assert!(error.message.len() < 400, "{error}");
}

#[tokio::test]
async fn a_request_that_breaks_an_invariant_is_a_bug() {
    let model = script("[{A: one}]").model("s");
    let mut asked = asked("A", 0, "go");
    asked.entries.push(Entry::assistant("my own words"));
    let error = asked.of(&model).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Bug);
    assert!(error.message.contains("the last entry is the agent's own words"), "{error}");
    assert!(model.finish().is_err(), "the step was not played");
}

#[tokio::test]
async fn a_request_that_is_not_as_expected_is_refused() {
    let yaml = "[{A: {say: ok, expect: {last: left shoe, system: a cobbler, tools: [b, a]}}}]";
    let model = script(yaml).model("s");
    let mut asked = asked("A", 0, "Mend the left shoe!");
    asked.system = Some("You are a cobbler.");
    asked.tools = vec![tool("a"), tool("b")];
    asked.of(&model).await.unwrap();

    asked.tools.pop();
    let error = asked.of(&model).await.unwrap_err();
    let message =
        "script:s: call 1 of `A` is not as the script expects: the tools should be `a`, `b`, but are `a`";
    assert_eq!((error.kind, &*error.to_string()), (ModelErrorKind::Script, message));
    let hint = "change `expect` of the step, or use a model: a script knows only its own conversation";
    assert_eq!(error.hint.as_deref(), Some(hint));

    asked.system = None;
    let error = asked.of(&model).await.unwrap_err();
    assert!(error.message.ends_with("the system message does not contain `a cobbler`; it is ``"), "{error}");

    asked.entries = vec![Entry::user("Mend the right shoe!")];
    let error = asked.of(&model).await.unwrap_err();
    let flaw = "the last message does not contain `left shoe`; it is `Mend the right shoe!`";
    assert!(error.message.ends_with(flaw), "{error}");
}

#[tokio::test]
async fn steps_that_were_not_played_are_named() {
    let model = script("[{A: one}, {B: {calls: [{tool: t}]}}, {A: two}]").model("s");
    let clone = model.clone();
    asked("A", 0, "go").of(&clone).await.unwrap();
    let left = model.finish().unwrap_err();
    assert_eq!(left.to_string(), "2 steps of the script were not played: A says `two`, B calls `t`");
    asked("A", 1, "go").of(&clone).await.unwrap();
    assert_eq!(model.finish().unwrap_err().to_string(), "1 step of the script was not played: B calls `t`");
    asked("B", 0, "go").of(&clone).await.unwrap();
    model.finish().unwrap();
}

#[test]
fn unconsumed_steps_are_found_from_the_calls_that_were_finished() {
    let script = script("[{A: one}, {B: hello}, {A: two}]");
    let left = |finished: &[(&str, u64)]| -> Vec<String> {
        let finished: BTreeMap<Name, u64> = finished.iter().map(|(who, calls)| (name(who), *calls)).collect();
        script.unconsumed(&finished).iter().map(ToString::to_string).collect()
    };
    assert_eq!(left(&[]), ["A says `one`", "B says `hello`", "A says `two`"]);
    assert_eq!(left(&[("A", 1), ("B", 1)]), ["A says `two`"]);
    assert_eq!(left(&[("A", 2), ("B", 7), ("C", 1)]), [""; 0]);
}
