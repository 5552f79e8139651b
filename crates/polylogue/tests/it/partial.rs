//! Replies that are cut off: continued where they can be, and marked where they cannot.

use std::sync::{Arc, Mutex};

use polylogue::agents::session::{ReplyStream, Stage};
use polylogue::policies::order::sequential;
use polylogue::policies::with_termination;
use polylogue::runs::Report;
use polylogue::stop::{LibraryStopReason, max_turns};
use polylogue::tools::GetHistory;
use polylogue::{AnyModel, Assistant, Chat, round_robin};
use polylogue_core::{
    Capability, DeltaRef, DeltaSink, Entry, Event, FinishReason, Model, ModelError, ModelErrorKind, Params,
    Part, Reply, Request, RunOutcome, StopReason,
};

use crate::common::{cut_everywhere, log, name, run_to_end, script, solo_chat};

/// A model that gives these replies, and notes what it is asked.
#[derive(Clone)]
struct Told {
    replies: Arc<Mutex<Vec<Result<Reply, ModelError>>>>,
    asked: Arc<Mutex<Vec<Vec<Entry>>>>,
}

impl Told {
    fn new(replies: impl IntoIterator<Item = Result<Reply, ModelError>>) -> Self {
        let replies = replies.into_iter().collect();
        Self { replies: Arc::new(Mutex::new(replies)), asked: Arc::default() }
    }

    fn agent(&self) -> Assistant {
        Assistant::new("Ann", AnyModel::new(self.clone())).unwrap()
    }

    fn asked(&self) -> Vec<Vec<Entry>> {
        self.asked.lock().unwrap().clone()
    }
}

impl Model for Told {
    fn name(&self) -> &str {
        "test:partial"
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        request.check().unwrap();
        self.asked.lock().unwrap().push(request.entries.to_vec());
        let reply = self.replies.lock().unwrap().remove(0)?;
        deltas.push(DeltaRef::Text(&reply.text()));
        Ok(reply)
    }
}

fn reply(text: &str, finish: FinishReason) -> Result<Reply, ModelError> {
    Ok(Reply { finish, ..Reply::new(text) })
}

fn part(text: &str) -> Result<Reply, ModelError> {
    reply(text, FinishReason::Length)
}

fn whole(text: &str) -> Result<Reply, ModelError> {
    reply(text, FinishReason::Stop)
}

/// A text, and a tool call that the provider cannot parse.
fn malformed(text: &str) -> Result<Reply, ModelError> {
    let parts = vec![Part::text(text), Part::unparsed("<function=look{")];
    Ok(Reply { parts, finish: FinishReason::Malformed, ..Reply::new("") })
}

async fn run(chat: &Chat) -> (StopReason, String, Vec<Arc<Event>>) {
    run_to_end(chat, "Tell me of the sea").await
}

fn alone(ann: Assistant) -> Chat {
    Chat::builder("group").participant(ann).policy(sequential()).build().unwrap()
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| polylogue_core::text_of(entry.parts()).into_owned()).collect()
}

#[tokio::test]
async fn a_text_that_met_the_limit_on_tokens_is_continued_and_is_one_message() {
    let shown = Told::new([part("The sea is"), part(" gray and"), whole(" cold."), whole("And deep.")]);
    let chat = solo_chat("group", shown.agent(), 2);
    let (_, summary, events) = run(&chat).await;
    let report = Report::of_last_run(&events);
    let said: Vec<_> = report.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(said, ["Tell me of the sea", "The sea is gray and cold.", "And deep."]);
    assert_eq!((&*summary, report.cut, report.usage.calls), ("And deep.", None, 4));
    let asked = shown.asked();
    assert_eq!(texts(&asked[1])[..2], ["Tell me of the sea", "The sea is"]);
    assert!(texts(&asked[1])[2].starts_with("Your last message was cut off."));
    assert_eq!(texts(&asked[2])[1], "The sea is gray and");
    assert_eq!(texts(&asked[3]), ["Tell me of the sea", "The sea is gray and cold.", "Continue."]);
}

#[tokio::test]
async fn continuing_is_bounded_and_what_is_cut_off_then_is_marked() {
    for times in [0, 1, Assistant::DEFAULT_MAX_CONTINUATIONS] {
        let shown = Told::new((0..9).map(|_| part("la ")));
        let (reason, summary, events) = run(&alone(shown.agent().max_continuations(times))).await;
        assert_eq!(
            (reason, shown.asked().len()),
            (StopReason::from(LibraryStopReason::Replied { who: name("Ann") }), times as usize + 1)
        );
        let report = Report::of_last_run(&events);
        assert_eq!(
            (summary, report.cut.clone()),
            ("la ".repeat(times as usize + 1), Some(FinishReason::Length))
        );
        assert_eq!(report.messages[1].cut(), Some(FinishReason::Length));
    }
}

#[tokio::test]
async fn what_the_provider_filtered_is_marked_and_not_continued() {
    let shown = Told::new([reply("I would", FinishReason::Filter)]);
    let report = Report::of_last_run(&run(&alone(shown.agent())).await.2);
    assert_eq!(
        (report.cut.clone(), report.messages[1].cut()),
        (Some(FinishReason::Filter), Some(FinishReason::Filter))
    );
    assert_eq!(serde_json::to_value(&report).unwrap()["cut"], "filter");
}

#[tokio::test]
async fn the_callers_own_limit_on_tokens_applies_unless_continuations_are_set() {
    let limited = |shown: &Told| shown.agent().params(Params { max_tokens: Some(5), ..Params::default() });
    let shown = Told::new([part("The sea"), whole(" is gray.")]);
    let report = Report::of_last_run(&run(&alone(limited(&shown))).await.2);
    assert_eq!(
        (&*report.summary, report.cut.clone(), shown.asked().len()),
        ("The sea", Some(FinishReason::Length), 1)
    );
    let shown = Told::new([part("The sea"), whole(" is gray.")]);
    let report = Report::of_last_run(&run(&alone(limited(&shown).max_continuations(1))).await.2);
    assert_eq!((&*report.summary, report.cut.clone()), ("The sea is gray.", None));
}

#[tokio::test]
async fn a_cut_reply_that_cannot_be_continued_is_said_and_marked() {
    let full = ModelError::new(ModelErrorKind::Unavailable, "test:partial", "the context is full");
    let shown = Told::new([part("The sea"), Err(full), whole("Well.")]);
    let chat = solo_chat("group", shown.agent(), 2);
    let report = Report::of_last_run(&run(&chat).await.2);
    assert_eq!(report.messages[1].cut(), Some(FinishReason::Length));
    assert_eq!(texts(&shown.asked()[2]), ["Tell me of the sea", "The sea", "Continue."], "it is read once");
}

#[tokio::test]
async fn the_mark_goes_with_a_result_through_chats_within_chats() {
    let shown = Told::new([reply("The sea", FinishReason::Filter)]);
    let inner =
        Chat::builder("inner").participant(alone(shown.agent())).policy(sequential()).build().unwrap();
    let chat = Chat::builder("outer").participant(inner).policy(sequential()).build().unwrap();
    let report = Report::of_last_run(&run(&chat).await.2);
    assert_eq!((&*report.summary, report.cut.clone()), ("The sea", Some(FinishReason::Filter)));
}

#[tokio::test]
async fn thoughts_that_met_the_limit_are_no_output_and_the_report_says_why() {
    let thoughts = vec![Part::Thought("Hm, let me think".into())];
    let shown = Told::new([Ok(Reply { parts: thoughts, finish: FinishReason::Length, ..Reply::new("") })]);
    let (reason, summary, events) = run(&alone(shown.agent())).await;
    assert_eq!((reason.outcome(), &*summary, shown.asked().len()), (RunOutcome::NoOutput, "", 1));
    assert_eq!(Report::of_last_run(&events).cut, Some(FinishReason::Length));
}

#[tokio::test]
async fn continued_replies_are_cut_and_resumed_as_others() {
    let script = script(
        r#"[{"A": {"say": "one,", "finish": "length"}}, {"A": {"say": " two,", "finish": "length"}},
            {"A": {"say": " look:", "calls": [{"tool": "get_history"}]}}, {"A": {"say": "three,", "finish": "length"}},
            {"A": " four"}, {"B": {"say": "five,", "finish": "length"}}, {"B": {"error": {"message": "full"}}},
            {"A": "six"}, {"B": {"say": "", "think": "seven", "finish": "length"}}]"#,
    );
    let events = cut_everywhere("count", |calls| {
        let agent = |who| {
            Assistant::new(who, calls.through(script.model("test"))).unwrap().tool(GetHistory::default())
        };
        let order = with_termination(round_robin(), max_turns(4));
        Chat::builder("pair").participant(agent("A")).participant(agent("B")).policy(order).build().unwrap()
    })
    .await;
    let said: Vec<_> =
        Report::of_last_run(&events).messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(said, ["count", "three, four", "five,", "six"]);
}

/// What is said in two turns whose first request is replied to with so many calls that cannot be parsed, after texts, with the end of the
/// first message and the requests that were made.
async fn said_after(count: usize) -> (Vec<String>, Option<FinishReason>, Vec<Vec<String>>) {
    let texts_before = ["I look.", "Let me look.", "Now I look."];
    let replies = texts_before[..count].iter().map(|text| malformed(text));
    let shown = Told::new(replies.chain([whole("The sea is gray."), whole("And deep.")]));
    let policy = with_termination(round_robin(), max_turns(2));
    let chat = Chat::builder("group").participant(shown.agent()).policy(policy).build().unwrap();
    let report = Report::of_last_run(&run(&chat).await.2);
    let said = report.messages.iter().map(|message| message.text().into_owned()).collect();
    (said, report.messages[1].cut(), shown.asked().iter().map(|entries| texts(entries)).collect())
}

#[tokio::test]
async fn text_before_a_call_that_cannot_be_parsed_is_no_reply() {
    let (said, cut, asked) = said_after(1).await;
    assert_eq!(said, ["Tell me of the sea", "The sea is gray.", "And deep."]);
    assert_eq!((cut, asked.len(), &asked[1]), (None, 3, &asked[0]));
    assert_eq!(asked[2], ["Tell me of the sea", "The sea is gray.", "Continue."]);
    let (said, cut, asked) = said_after(2).await;
    assert_eq!(said, ["Tell me of the sea", "The sea is gray.", "And deep."]);
    assert_eq!((cut, asked.len(), &asked[1]), (None, 4, &asked[0]));
    assert_eq!(asked[2][..2], ["Tell me of the sea", "Let me look."]);
    assert!(asked[2][2].starts_with("Your last reply could not be parsed"), "{:?}", asked[2]);
    let (said, cut, _) = said_after(3).await;
    assert_eq!(said, ["Tell me of the sea", "Now I look.", "The sea is gray."]);
    assert_eq!(cut, Some(FinishReason::Malformed));
}

#[tokio::test]
async fn the_rest_of_a_truncated_reply_is_asked_for_again_in_place() {
    for count in 1..=2 {
        let broken = (0..count).map(|_| malformed(" blue."));
        let replies = [part("The sea is")].into_iter().chain(broken);
        let shown = Told::new(replies.chain([whole(" gray."), whole("And deep.")]));
        let policy = with_termination(round_robin(), max_turns(2));
        let chat = Chat::builder("group").participant(shown.agent()).policy(policy).build().unwrap();
        let (_, _, events) = run(&chat).await;
        let report = Report::of_last_run(&events);
        let said: Vec<_> = report.messages.iter().map(|message| message.text().into_owned()).collect();
        assert_eq!(said, ["Tell me of the sea", "The sea is gray.", "And deep."], "{count}");
        let asked = shown.asked();
        assert_eq!(asked[2], asked[1], "{count}");
        let last = texts(asked.last().unwrap());
        assert_eq!(last, ["Tell me of the sea", "The sea is gray.", "Continue."], "{count}");
    }
}

/// A model that gives the nth of these replies to the nth call of the conversation, in whichever process.
struct Listed(Vec<Result<Reply, ModelError>>);

impl Model for Listed {
    fn name(&self) -> &str {
        "test:listed"
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.0[usize::try_from(request.origin.nth).unwrap()].clone()
    }
}

/// What Ann, who has a tool, says in two turns, wherever the log is cut.
async fn said_by_listed(replies: &[Result<Reply, ModelError>]) -> Vec<String> {
    let events = cut_everywhere("Tell me of the sea", |calls| {
        let ann = Assistant::new("Ann", calls.through(Listed(replies.to_vec()))).unwrap();
        let policy = with_termination(round_robin(), max_turns(2));
        let chat = Chat::builder("group").participant(ann.without_compaction().tool(GetHistory::default()));
        chat.policy(policy).build().unwrap()
    })
    .await;
    Report::of_last_run(&events).messages.iter().map(|message| message.text().into_owned()).collect()
}

#[tokio::test]
async fn a_request_that_fails_after_a_call_that_cannot_be_parsed_fails_again_when_the_turn_is_resumed() {
    let error = |kind| Err(ModelError::new(kind, "test:listed", "no"));
    let refused = ModelErrorKind::Unavailable;
    let too_long = ModelErrorKind::TooLong { tokens: None, limit: Some(100) };
    for count in 1..=2 {
        let broken = vec![malformed("I look."); count];
        let after = |before: &[Result<Reply, ModelError>], later: &[Result<Reply, ModelError>]| {
            [before, broken.as_slice(), later].concat()
        };
        let said = said_by_listed(&after(&[part("It is")], &[error(refused), whole("Well.")])).await;
        assert_eq!(said, ["Tell me of the sea", "It is", "Well."], "{count}: the rest of a reply");
        // Without function calls, it replies in JSON.
        let lacks = error(ModelErrorKind::Unsupported(Capability::Tools));
        let (gray, well) = (whole(r#"{"say": "It is gray."}"#), whole(r#"{"say": "Well."}"#));
        let said = said_by_listed(&after(&[], &[lacks, gray, well])).await;
        assert_eq!(said, ["Tell me of the sea", "It is gray.", "Well."], "{count}: a capability");
        // Without compaction, the chat ends.
        let said = said_by_listed(&after(&[whole("It is gray.")], &[error(too_long)])).await;
        assert_eq!(said, ["Tell me of the sea", "It is gray."], "{count}: the context");
    }
}

#[tokio::test]
async fn a_continuation_that_fails_in_another_form_fails_again_when_the_turn_is_resumed() {
    let error = |kind| Err(ModelError::new(kind, "test:listed", "no"));
    let form = error(ModelErrorKind::Unsupported(Capability::NullContent));
    let replies = [part("It is"), form, error(ModelErrorKind::Unavailable), whole("Well.")];
    let said = said_by_listed(&replies).await;
    assert_eq!(said, ["Tell me of the sea", "It is", "Well."]);
}

#[tokio::test]
async fn what_was_streamed_of_a_reply_that_is_asked_for_again_is_taken_back() {
    let shown = Told::new([malformed("I look."), whole("The sea is gray.")]);
    let mut log = log().await;
    let mut stream = ReplyStream::of(log.subscribe().await);
    alone(shown.agent()).run_in(&mut log, "Tell me of the sea").await.unwrap();
    drop(log);
    let mut stages = Vec::new();
    while let Some(update) = stream.next().await {
        stages.push((update.stage, update.text));
    }
    let expected = [
        (Stage::Writing, "I look."),
        (Stage::Restart, ""),
        (Stage::Writing, "The sea is gray."),
        (Stage::Done, "The sea is gray."),
    ];
    assert_eq!(stages, expected.map(|(stage, text)| (stage, text.to_owned())));
}
