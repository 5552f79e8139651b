//! Long histories are compacted: facts and pinned messages survive, calls stay with their results, and cuts change nothing.

use std::sync::{Arc, Mutex};

use polylogue::agents::compaction::{Compaction, CompactionLimit};
use polylogue::runs::report::{Purpose, Report};
use polylogue::{AnyModel, Assistant, Chat, round_robin, stop};
use polylogue_core::{
    Body, DeltaSink, FinishReason, Model, ModelError, ModelErrorKind, Reply, Request, Usage, text_of,
};

use crate::beyond::stage::log;
use crate::common::cut_everywhere;

/// Says long messages, and plants a fact in its third one. Asked for a summary, it lists the facts that it reads.
#[derive(Clone, Default)]
struct Talker {
    window: Option<u64>,
    /// Refuses requests above this many bytes.
    refuses: Option<usize>,
    /// The texts of its requests, and whether each is for a summary.
    seen: Arc<Mutex<Vec<(bool, String)>>>,
}

const FACT: &str = "FACT: the code is 4711";
const PINNED: &str = "DECISION: we use Rust";

fn request_text(request: &Request<'_>) -> String {
    request.entries.iter().map(|entry| text_of(entry.parts()).into_owned() + "\n").collect()
}

impl Model for Talker {
    fn name(&self) -> &str {
        "test:talker"
    }
    fn context_window(&self) -> Option<u64> {
        self.window
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        request.check().map_err(|flaw| ModelError::new(ModelErrorKind::Bug, "test:talker", flaw))?;
        let text = request_text(request);
        let is_summary = request.params.schema.is_some();
        if self.refuses.is_some_and(|most| text.len() > most)
            && !is_summary
            && request.origin.who.as_str() == "Ann"
        {
            let kind = ModelErrorKind::TooLong { tokens: None, limit: None };
            return Err(ModelError::new(kind, "test:talker", "too long"));
        }
        self.seen.lock().unwrap().push((is_summary, text.clone()));
        let said = match (is_summary, request.origin.nth) {
            (true, _) => {
                let facts: Vec<&str> = if text.contains(FACT) { vec![FACT] } else { Vec::new() };
                serde_json::json!({"task": "talk", "decisions": [], "facts": facts, "done": ["talked"], "open": [],
                    "files": [], "outdated": []})
                .to_string()
            }
            (false, 1) => format!("{FACT}. {}", "word ".repeat(40)),
            (false, 2) => format!("{PINNED}. {}", "word ".repeat(40)),
            (false, nth) => format!("message {nth}: {}", "word ".repeat(40)),
        };
        Ok(Reply {
            usage: Usage { output: Some(50), ..Usage::default() },
            finish: FinishReason::Stop,
            ..Reply::new(said)
        })
    }
}

fn talk(model: AnyModel, turns: u64, compaction: Option<&Compaction>) -> Chat {
    let ann = Assistant::new("Ann", model.clone()).unwrap();
    let ann = compaction.map_or(ann.clone(), |compaction| ann.compaction(compaction.clone()));
    let bob = Assistant::new("Bob", model).unwrap().without_compaction().view(polylogue_core::ViewOptions {
        window: polylogue_core::Window::Messages(4),
        ..polylogue_core::ViewOptions::default()
    });
    Chat::builder("talk")
        .participant(ann)
        .participant(bob)
        .policy(round_robin())
        .stop(stop::max_turns(turns))
        .build()
        .unwrap()
}

#[tokio::test]
async fn facts_and_pinned_messages_are_in_every_later_request() {
    let model = Talker { window: Some(2_000), ..Talker::default() };
    let compaction = Compaction::default().pin("DECISION:");
    let mut log = log().await;
    talk(AnyModel::new(model.clone()), 200, Some(&compaction)).run_in(&mut log, "The task.").await.unwrap();
    let events = log.events().await;
    let compacted = events.iter().filter(|event| matches!(event.body, Body::Compacted(_))).count();
    assert!(compacted >= 4, "{compacted} compactions");
    let seen = model.seen.lock().unwrap();
    let own =
        seen.iter().filter(|(is_summary, text)| !is_summary && text.contains("replaced by this summary"));
    let own: Vec<_> = own.collect();
    assert!(own.len() >= 30, "{} requests with a summary", own.len());
    for (_, text) in own {
        assert!(text.contains(FACT) && text.contains(PINNED) && text.starts_with("The task."), "{text}");
        assert!(text.len() < 2_000 * 4, "{} bytes", text.len());
    }
    let report = Report::of_last_run(&events);
    assert!(report.rows.iter().any(|row| row.purpose == Purpose::Compaction));
}

#[tokio::test]
async fn without_a_known_window_nothing_is_compacted() {
    let mut log = log().await;
    talk(AnyModel::new(Talker::default()), 60, None).run_in(&mut log, "The task.").await.unwrap();
    assert!(!log.events().await.iter().any(|event| matches!(event.body, Body::Compacted(_))));
}

#[tokio::test]
async fn a_refused_request_is_compacted_and_sent_again() {
    let model = Talker { window: Some(100_000), refuses: Some(4_000), ..Talker::default() };
    let mut log = log().await;
    talk(AnyModel::new(model), 60, None).run_in(&mut log, "The task.").await.unwrap();
    let events = log.events().await;
    let too_long = events.iter().filter(|event| matches!(event.body, Body::TooLong { .. })).count();
    let compacted = events.iter().filter(|event| matches!(event.body, Body::Compacted(_))).count();
    assert!(too_long >= 1 && too_long == compacted, "{too_long} refusals, {compacted} compactions");
}

#[tokio::test]
async fn a_request_that_stays_too_long_ends_the_chat() {
    let model = Talker { window: Some(100_000), refuses: Some(700), ..Talker::default() };
    let mut log = log().await;
    let run = talk(AnyModel::new(model), 60, None).run_in(&mut log, &"task ".repeat(100)).await;
    let events = log.events().await;
    let reason = events.iter().rev().find_map(|event| match &event.body {
        Body::Closed { reason, .. } => Some(reason.code().to_owned()),
        _ => None,
    });
    assert_eq!(reason.as_deref(), Some("context_full"), "{run:?}");
}

#[tokio::test]
async fn cuts_do_not_change_a_compacted_conversation() {
    for (window, refuses) in [(Some(1_000), None), (Some(100_000), Some(3_000))] {
        let limit = CompactionLimit::Share(0.8);
        let compaction = Compaction::at(limit).pin("DECISION:");
        let events = cut_everywhere("The task.", |calls| {
            let model = Talker { window, refuses, ..Talker::default() };
            talk(calls.through(AnyModel::new(model)), 24, Some(&compaction))
        })
        .await;
        assert!(
            events.iter().any(|event| matches!(event.body, Body::Compacted(_))),
            "{window:?} {refuses:?}"
        );
    }
}
