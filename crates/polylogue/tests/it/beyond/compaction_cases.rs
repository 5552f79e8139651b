//! Compactions that do not go as they should: models that decline, cut off or write no JSON, windows that a reply fills, long
//! messages at the end, histories of which nothing can be replaced, and turns that are resumed with other settings.

use std::sync::{Arc, Mutex};

use polylogue::agents::compaction::{Compaction, CompactionLimit};
use polylogue::kernel::data::ToolSpec;
use polylogue::policies::Selector;
use polylogue::{Act, AnyModel, Assistant, Chat, Function, Group, round_robin, stop};
use polylogue_core::{
    Body, CallPurpose, Compacted, DeltaSink, Entry, Event, FinishReason, Model, ModelError, ModelErrorKind,
    Part, Reply, Request, ToolCall, ToolResult, ViewOptions, Window, text_of,
};
use polylogue_test::cut::Calls;
use polylogue_test::tool::tool_of;
use serde_json::json;

use crate::beyond::stage::log;
use crate::common::cut_everywhere;

/// What a model does with a request for a summary.
#[derive(Clone, Copy, PartialEq)]
enum Summary {
    Json,
    Text,
    Refused,
    Empty,
    CutOff,
    Endless,
}

/// Calls a tool in each reply until it has done so often enough, and then says so.
#[derive(Clone)]
struct Worker {
    summary: Summary,
    calls: u64,
    window: Option<u64>,
    /// The most bytes of a request that it accepts, and whether it replies with a part of a reply beyond them.
    space: Option<(usize, bool)>,
    /// Whether requests for summaries have no more space than others.
    is_strict: bool,
    /// The limit that it names when it refuses a request, in tokens.
    named: Option<u32>,
    seen: Arc<Mutex<Vec<Vec<Entry>>>>,
    /// The limits on the lengths of summaries.
    limits: Arc<Mutex<Vec<Option<u32>>>>,
}

impl Worker {
    fn new(summary: Summary) -> Self {
        Self {
            summary,
            calls: 80,
            window: Some(3_000),
            space: None,
            is_strict: false,
            named: None,
            seen: Arc::default(),
            limits: Arc::default(),
        }
    }

    fn summary(&self, text: &str) -> Reply {
        let said = json!({"task": "work", "decisions": [], "facts": ["a fact"], "done": ["some"], "open": [],
            "files": [], "outdated": []});
        match self.summary {
            Summary::Json => Reply::new(said.to_string()),
            Summary::Text => Reply::new(format!("Notes on {} bytes.", text.len())),
            Summary::Refused => Reply {
                finish: FinishReason::Refused { category: None, explanation: None },
                ..Reply::new("I cannot help with that.")
            },
            Summary::Empty => Reply::new(" "),
            Summary::CutOff => {
                Reply { finish: FinishReason::Length, ..Reply::new(r#"{"task": "work", "decisi"#) }
            }
            Summary::Endless => {
                let facts: Vec<String> = (0..400).map(|n| format!("fact {n} {}", "x".repeat(200))).collect();
                let mut said = said;
                said["decisions"] = json!(facts);
                Reply::new(said.to_string())
            }
        }
    }
}

impl Model for Worker {
    fn name(&self) -> &str {
        "test:worker"
    }
    fn context_window(&self) -> Option<u64> {
        self.window
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        request.check().map_err(|flaw| ModelError::new(ModelErrorKind::Bug, "test:worker", flaw))?;
        let text: String = request.entries.iter().map(|entry| text_of(entry.parts()).into_owned()).collect();
        let is_summary = request.params.schema.is_some();
        let space = self.space.filter(|_| self.is_strict || !is_summary);
        if let Some((_, is_reply)) = space.filter(|(most, _)| text.len() > *most) {
            if is_reply {
                return Ok(Reply { finish: FinishReason::ContextFull, ..Reply::new("Half a sen") });
            }
            let kind = ModelErrorKind::TooLong { tokens: None, limit: self.named };
            return Err(ModelError::new(kind, "test:worker", "too long"));
        }
        if is_summary {
            self.limits.lock().unwrap().push(request.params.max_tokens);
            return Ok(self.summary(&text));
        }
        self.seen.lock().unwrap().push(request.entries.to_vec());
        let done = request.origin.nth;
        Ok(if done < self.calls && !request.tools.is_empty() {
            let call =
                ToolCall { id: format!("call_{done}"), tool: "look".into(), args: json!({"at": done}) };
            Reply { finish: FinishReason::Calls, parts: vec![Part::ToolCall(call)], ..Reply::new("") }
        } else {
            Reply::new("The work is done.")
        })
    }
}

const TASK: &str = "Look at everything, and mind the gap.";

fn work(model: AnyModel, set: impl FnOnce(Assistant) -> Assistant) -> Chat {
    let spec = ToolSpec::new("look", "Looks.", json!({"type": "object"})).repeatable();
    // With long results.
    let look = tool_of(spec, |args| Ok(ToolResult::done(format!("{args}: {}", "found ".repeat(60)))));
    let ann = Assistant::new("Ann", model).unwrap().tool(look).max_tool_rounds(100);
    Chat::builder("work")
        .participant(set(ann))
        .policy(round_robin())
        .stop(stop::max_turns(1))
        .build()
        .unwrap()
}

async fn run(model: &Worker, set: impl FnOnce(Assistant) -> Assistant) -> Vec<Event> {
    let mut log = log().await;
    work(AnyModel::new(model.clone()), set).run_in(&mut log, TASK).await.unwrap();
    log.events().await.iter().map(|event| Event::clone(event)).collect()
}

fn compactions(events: &[Event]) -> Vec<&Compacted> {
    let of = |event| match event {
        &Event { body: Body::Compacted(ref compacted), .. } => Some(compacted),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn last_message(events: &[Event]) -> Option<String> {
    events.iter().rev().find_map(|event| match &event.body {
        Body::Message(message) => Some(message.text().into_owned()),
        _ => None,
    })
}

#[tokio::test]
async fn no_summary_is_lost_or_longer_than_what_it_replaces() {
    use Summary::{CutOff, Empty, Endless, Json, Refused, Text};
    for summary in [Json, Text, Refused, Empty, CutOff, Endless] {
        let model = Worker::new(summary);
        let events = run(&model, |ann| ann).await;
        assert_eq!(last_message(&events).as_deref(), Some("The work is done."));
        let compactions = compactions(&events);
        assert!((2..=20).contains(&compactions.len()), "{} compactions", compactions.len());
        for compacted in compactions {
            let text = compacted.summary.text();
            assert!(compacted.tokens_after < compacted.tokens_before, "{compacted:?}");
            // A fifth of the half of 80 % of the window, at four bytes a token.
            assert!(text.len() <= 3_000 * 4 / 12, "{} bytes", text.len());
            let is_there = match summary {
                Json | Endless => text.contains("Task: work"),
                Text => text.contains("Notes on "),
                Refused | Empty => text.contains("Excerpt") && text.contains("You call `look`"),
                CutOff => text.contains(r#"{"task": "work", "decisi"#),
            };
            assert!(is_there, "{text}");
            assert!(!text.contains("I cannot help"), "{text}");
        }
        for entries in model.seen.lock().unwrap().iter() {
            let tasks = entries.iter().filter(|entry| text_of(entry.parts()).contains(TASK)).count();
            assert_eq!(tasks, 1, "the task is there, once");
        }
    }
}

#[tokio::test]
async fn a_short_limit_on_replies_is_none_on_summaries() {
    let model = Worker::new(Summary::Json);
    let params = polylogue_core::Params { max_tokens: Some(20), ..polylogue_core::Params::default() };
    run(&model, |ann| ann.params(params)).await;
    let limits = model.limits.lock().unwrap();
    assert!(
        !limits.is_empty() && limits.iter().all(|limit| limit.is_some_and(|limit| limit > 1_000)),
        "{limits:?}"
    );
}

#[tokio::test]
async fn another_model_gets_no_parameters_of_the_agent() {
    let (model, cheap) = (Worker::new(Summary::Json), Worker::new(Summary::Json));
    let params = polylogue_core::Params { max_tokens: Some(20), ..polylogue_core::Params::default() };
    let by = Compaction::default().by(AnyModel::new(cheap.clone()));
    run(&model, |ann| ann.params(params).compaction(by)).await;
    assert!(model.limits.lock().unwrap().is_empty());
    let limits = cheap.limits.lock().unwrap();
    assert!(!limits.is_empty() && limits.iter().all(Option::is_none), "{limits:?}");
}

#[tokio::test]
async fn a_limit_on_messages_leaves_half_of_them() {
    let mut model = Worker::new(Summary::Json);
    model.window = None;
    let at = Compaction::at(CompactionLimit::Messages(20));
    let events = run(&model, |ann| ann.compaction(at)).await;
    let compactions = compactions(&events);
    assert!((8..=25).contains(&compactions.len()), "{} compactions", compactions.len());
    assert!(model.seen.lock().unwrap().iter().all(|entries| entries.len() <= 20));
}

#[tokio::test]
async fn a_reply_that_fills_the_window_is_discarded_and_asked_for_again() {
    for is_reply in [true, false] {
        let mut model = Worker::new(Summary::Json);
        (model.window, model.space) = (Some(100_000), Some((4_000, is_reply)));
        let events = run(&model, |ann| ann).await;
        let refused = events.iter().filter(|event| matches!(event.body, Body::TooLong { .. })).count();
        assert!(refused >= 2 && refused == compactions(&events).len(), "{refused} refusals");
        assert_eq!(last_message(&events).as_deref(), Some("The work is done."));
        for entries in model.seen.lock().unwrap().iter() {
            assert!(!entries.iter().any(|entry| text_of(entry.parts()).contains("Half a sen")));
        }
    }
}

/// A model with a window of about 1,000 tokens, also for summaries. What is known of it is `window`, and refusals name `named` tokens.
fn strict(window: Option<u64>, named: Option<u32>) -> Worker {
    let mut model = Worker::new(Summary::Json);
    (model.window, model.space, model.is_strict, model.named) = (window, Some((4_000, false)), true, named);
    model
}

#[tokio::test]
async fn a_window_that_only_refusals_show_holds_for_summaries_too() {
    for (window, named) in
        [(Some(100_000), Some(1_000)), (Some(100_000), None), (None, Some(1_000)), (None, None)]
    {
        let model = strict(window, named);
        let events = run(&model, |ann| ann).await;
        assert_eq!(last_message(&events).as_deref(), Some("The work is done."), "{window:?} {named:?}");
        let refused = events.iter().filter(|event| matches!(event.body, Body::TooLong { .. })).count();
        assert!(refused >= 2 && refused == compactions(&events).len(), "{refused} refusals");
    }
}

#[tokio::test]
async fn cuts_within_summaries_after_a_refusal_change_nothing() {
    let events = cut_everywhere(TASK, |calls| {
        let mut model = strict(None, None);
        model.calls = 14;
        work(calls.through(AnyModel::new(model)), |ann| ann)
    })
    .await;
    let is_summary = |event: &&Arc<Event>| match &event.body {
        Body::ModelReplied(reply) => reply.purpose == CallPurpose::Compaction,
        _ => false,
    };
    let is_compaction = |event: &&Arc<Event>| matches!(event.body, Body::Compacted(_));
    let (summaries, compactions) =
        (events.iter().filter(is_summary).count(), events.iter().filter(is_compaction).count());
    assert!(summaries > compactions && compactions > 0, "{summaries} summaries, {compactions} compactions");
}

#[tokio::test]
async fn without_compaction_a_reply_that_fills_the_window_stays() {
    let mut model = Worker::new(Summary::Json);
    (model.window, model.space) = (Some(100_000), Some((10, true)));
    let events = run(&model, Assistant::without_compaction).await;
    assert_eq!(last_message(&events).as_deref(), Some("Half a sen"));
    // Nothing can be compacted: the opening always stays.
    let events = run(&model, |ann| ann).await;
    assert_eq!(last_message(&events).as_deref(), Some("Half a sen"));
}

/// Why the conversation ends in which `chat` meets one refusal, also when its log is cut anywhere.
async fn end_after_refusal(chat: &dyn Fn(&Calls) -> Chat) -> Option<String> {
    let events = cut_everywhere(TASK, chat).await;
    assert_eq!(events.iter().filter(|event| matches!(event.body, Body::TooLong { .. })).count(), 1);
    assert!(!events.iter().any(|event| matches!(event.body, Body::Compacted(_) | Body::Failed { .. })));
    events.iter().rev().find_map(|event| match &event.body {
        Body::Closed { reason, .. } => Some(reason.code().to_owned()),
        _ => None,
    })
}

/// A model that refuses requests of more than `most` bytes.
fn refusing(most: usize) -> AnyModel {
    let mut model = Worker::new(Summary::Json);
    (model.calls, model.window, model.space) = (10, Some(100_000), Some((most, false)));
    AnyModel::new(model)
}

#[tokio::test]
async fn a_refused_request_ends_the_chat_where_nothing_can_be_compacted() {
    let window = ViewOptions { window: Window::Messages(4), ..ViewOptions::default() };
    let windowed = |ann: Assistant| ann.view(window.clone());
    let settings: [(usize, &dyn Fn(Assistant) -> Assistant); 4] = [
        // The opening always stays.
        (10, &|ann: Assistant| ann),
        (10, &windowed),
        (10, &Assistant::without_compaction),
        (2_000, &Assistant::without_compaction),
    ];
    for (most, set) in settings {
        let reason = end_after_refusal(&|calls| work(calls.through(refusing(most)), set)).await;
        assert_eq!(reason.as_deref(), Some("context_full"));
    }
}

#[tokio::test]
async fn a_refused_request_of_a_selector_ends_the_chat() {
    let chat = |calls: &Calls| {
        let selector = Selector::new("Chair", calls.through(refusing(10))).unwrap();
        let ann = Assistant::new("Ann", calls.through(refusing(10_000))).unwrap();
        let bob = Assistant::new("Bob", calls.through(refusing(10_000))).unwrap();
        let group = Chat::builder("group").participant(ann).participant(bob);
        group.policy(Group::select_by(selector)).stop(stop::max_turns(4)).build().unwrap()
    };
    assert_eq!(end_after_refusal(&chat).await.as_deref(), Some("context_full"));
}

/// Selects the first candidate. Refuses requests of more than 4,000 bytes, and names a limit of so many tokens.
#[derive(Clone)]
struct Chair {
    named: Option<u32>,
    refused: Arc<Mutex<u64>>,
}

impl Model for Chair {
    fn name(&self) -> &str {
        "test:chair"
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        request.check().map_err(|flaw| ModelError::new(ModelErrorKind::Bug, "test:chair", flaw))?;
        let texts: Vec<_> = request.entries.iter().map(|entry| text_of(entry.parts())).collect();
        if texts.iter().map(|text| text.len()).sum::<usize>() > 4_000 {
            *self.refused.lock().unwrap() += 1;
            let kind = ModelErrorKind::TooLong { tokens: None, limit: self.named };
            return Err(ModelError::new(kind, "test:chair", "too long"));
        }
        let candidates = texts.last().and_then(|prompt| prompt.split("One of: ").nth(1));
        Ok(Reply::new(candidates.and_then(|list| list.split([',', '.']).next()).unwrap_or_default()))
    }
}

/// A group of three who say long texts, in which `chair` selects the next speaker.
fn led(chair: AnyModel) -> Chat {
    let talker = |name: &str| {
        Function::new(name, |turn| {
            Ok(Act::say(format!("{}: {}", turn.transcript().turns(), "word ".repeat(60))))
        })
        .unwrap()
    };
    let group = Chat::builder("group").participant(talker("Ann")).participant(talker("Bob"));
    let chair = Selector::new("Chair", chair).unwrap();
    let group = group.participant(talker("Cid")).policy(Group::select_by(chair));
    group.stop(stop::max_turns(24)).build().unwrap()
}

#[tokio::test]
async fn a_selector_reads_the_latest_part_of_a_conversation_that_is_too_long() {
    for named in [Some(1_000), None] {
        let refused = Arc::new(Mutex::new(0));
        let chair = Chair { named, refused: Arc::clone(&refused) };
        let mut log = log().await;
        led(AnyModel::new(chair)).run_in(&mut log, "Talk.").await.unwrap();
        let events = log.events().await;
        let is_said = |event: &&Arc<Event>| match &event.body {
            Body::Message(message) => message.from.as_str() != "Chair",
            _ => false,
        };
        assert_eq!(events.iter().filter(is_said).count(), 24);
        let too_long = events.iter().filter(|event| matches!(event.body, Body::TooLong { .. })).count();
        // The second request of each of these selections was accepted.
        assert!(too_long > 1 && *refused.lock().unwrap() == too_long as u64, "{too_long}");
    }
}

#[tokio::test]
async fn cuts_around_a_selection_that_was_refused_change_nothing() {
    let events = cut_everywhere("Talk.", |calls| {
        led(calls.through(AnyModel::new(Chair { named: None, refused: Arc::default() })))
    })
    .await;
    assert!(events.iter().any(|event| matches!(event.body, Body::TooLong { .. })));
}

#[tokio::test]
async fn long_latest_messages_are_replaced_if_they_do_not_fit() {
    let mut model = Worker::new(Summary::Json);
    (model.window, model.space) = (Some(100_000), Some((2_500, false)));
    // Ten of them do not fit into 2,500 bytes.
    let keep = Compaction::default().keep_messages(10);
    let events = run(&model, |ann| ann.compaction(keep)).await;
    assert_eq!(last_message(&events).as_deref(), Some("The work is done."));
}

#[tokio::test]
async fn cuts_within_rounds_of_tools_change_nothing() {
    for (summary, space) in [
        (Summary::Json, None),
        (Summary::CutOff, None),
        (Summary::Json, Some((2_000, true))),
        (Summary::Text, Some((2_000, false))),
    ] {
        let events = cut_everywhere(TASK, |calls| {
            let mut model = Worker::new(summary);
            (model.calls, model.space) = (10, space);
            model.window = Some(if space.is_some() { 100_000 } else { 1_000 });
            work(calls.through(AnyModel::new(model)), |ann| ann)
        })
        .await;
        assert!(events.iter().any(|event| matches!(event.body, Body::Compacted(_))));
    }
}
