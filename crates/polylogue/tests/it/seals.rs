//! What a provider does beyond replying: seals that are sent again or refused, calls that it cannot parse, parameters
//! that it does not accept.

mod by_api;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use polylogue::models::Fallback;
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{Assistant, Chat, Limits, Log, Status, round_robin};
use polylogue_core::{
    AnyStore, Body, DeltaSink, Entry, FinishReason, Model, ModelError, ModelErrorKind, Params, Part, Reply,
    Request, Seal, Seals, StopReason, Usage, Verbatim,
};
use polylogue_store::Memory;
use polylogue_test::cut::Cut;
use serde_json::json;

use crate::common::{cut_everywhere, log, solo_chat};

/// A model that seals a thought of each reply, and refuses seals in a request with more than `fresh` own messages.
#[derive(Clone)]
struct Sealing {
    name: &'static str,
    fresh: usize,
    /// Whether it is overloaded when the agent's number of messages is odd.
    overloaded: bool,
    /// How many seals each request had.
    sent: Arc<Mutex<Vec<usize>>>,
}

impl Sealing {
    fn new(fresh: usize) -> Self {
        Self { name: "test:sealing", fresh, overloaded: false, sent: Arc::default() }
    }
}

impl Model for Sealing {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        request.check().unwrap();
        let own = request.entries.iter().filter(|entry| matches!(entry, Entry::Assistant { .. })).count();
        if self.overloaded && own % 2 == 1 {
            let error = ModelError::new(ModelErrorKind::Unavailable, self.name(), "overloaded");
            return Err(ModelError { status: Some(503), ..error });
        }
        let sent = request.seals_sent(self.name());
        let count = (0..request.entries.len()).filter(|at| sent.contains(*at)).count();
        self.sent.lock().unwrap().push(count);
        if count > 0 && own > self.fresh {
            return Err(ModelError::new(
                ModelErrorKind::SealsRefused,
                self.name(),
                "the signature is invalid",
            ));
        }
        let thought = Part::Thought(format!("thought {own} of {}", request.origin.who).into());
        let seals = Seals {
            by: Arc::clone(sent.by()),
            before: sent.before(request.entries),
            key: None,
            parts: vec![Seal::new(0, &thought, json!({"signature": own}))],
        };
        let verbatim = Verbatim { seals: Some(seals), ..Verbatim::default() };
        let parts = vec![thought, Part::text(format!("word {own}"))];
        Ok(Reply { parts, verbatim: Some(Arc::new(verbatim)), ..Reply::new("") })
    }
}

fn chat(model: impl Model + Clone) -> Chat {
    chat_with(model, &Params::default())
}

fn chat_with(model: impl Model + Clone, params: &Params) -> Chat {
    let agent = |name: &str| {
        Assistant::new(name, polylogue::AnyModel::new(model.clone())).unwrap().params(params.clone())
    };
    let policy = with_termination(round_robin(), max_turns(8));
    Chat::builder("pair").participant(agent("Ann")).participant(agent("Bob")).policy(policy).build().unwrap()
}

#[tokio::test]
async fn every_reply_of_an_agent_goes_back_with_its_seal_and_no_other_does() {
    let model = Sealing::new(usize::MAX);
    let mut log = log().await;
    chat(model.clone()).run_in(&mut log, "Talk.").await.unwrap();
    assert_eq!(*model.sent.lock().unwrap(), [0, 0, 1, 1, 2, 2, 3, 3]);
    let messages = log.events().await;
    let is_sealed = |body: &Body| matches!(body, Body::Message(message) if message.parts.len() != 1);
    assert!(!messages.iter().any(|event| is_sealed(&event.body)));
}

#[tokio::test]
async fn refused_seals_are_left_out_and_the_request_is_sent_again_once() {
    let model = Sealing::new(1);
    let mut log = log().await;
    chat(model.clone()).run_in(&mut log, "Talk.").await.unwrap();
    // The third request of each agent is refused and repeated without; from then on, only newer seals are sent.
    assert_eq!(*model.sent.lock().unwrap(), [0, 0, 1, 1, 2, 0, 2, 0, 1, 0, 1, 0]);
    let refused = log.events().await;
    let refused = refused.iter().filter(|event| matches!(event.body, Body::SealsRefused { .. })).count();
    assert_eq!(refused, 4);
}

#[tokio::test]
async fn a_conversation_with_seals_is_the_same_wherever_it_is_cut() {
    for fresh in [1, usize::MAX] {
        let cut = Cut {
            task: "Talk.",
            chat: &|calls| chat(Counted(calls.through(Sealing::new(fresh)))),
            store: &|| AnyStore::new(Memory::new()),
            answer: &|_, _, _| String::new(),
        };
        let events = cut.everywhere().await.unwrap_or_else(|flaw| panic!("{fresh}: {flaw}"));
        assert!(
            events
                .iter()
                .any(|event| matches!(&event.body, Body::ModelReplied(reply) if reply.verbatim.is_some()))
        );
    }
}

/// A model whose reasoning is hidden: a reply of 1,000 tokens goes back with a seal of 5,000 bytes.
#[derive(Clone)]
struct Hidden(Arc<AtomicUsize>);

impl Model for Hidden {
    fn name(&self) -> &str {
        "test:hidden"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let thought = Part::Thought("".into());
        let sent = request.seals_sent(self.name());
        let seals = Seals {
            by: Arc::clone(sent.by()),
            before: sent.before(request.entries),
            key: None,
            parts: vec![Seal::new(0, &thought, json!("x".repeat(5_000)))],
        };
        let verbatim = Some(Arc::new(Verbatim { seals: Some(seals), ..Verbatim::default() }));
        let usage = Usage { input: Some(10), output: Some(1_000), ..Usage::default() };
        Ok(Reply { parts: vec![thought, Part::text("word")], verbatim, usage, ..Reply::new("") })
    }

    fn max_output(&self, _: &Params) -> Option<u64> {
        Some(1_000)
    }
}

/// Ann's second request has her first reply, of which providers bill the reasoning again.
#[tokio::test]
async fn sealed_reasoning_is_reserved_with_the_request_that_returns_it() {
    for (limit, requests) in [(6_000, 2), (40_000, 8)] {
        let model = Hidden(Arc::default());
        let mut log = Log::in_memory().limits(Limits { tokens: Some(limit), ..Limits::default() });
        let run = chat(model.clone()).run_in(&mut log, "Talk.").await.unwrap();
        assert_eq!(model.0.load(Ordering::SeqCst), requests, "{:?}", run.status);
        let Status::Closed { reason, .. } = run.status else { panic!("{:?}", run.status) };
        let is_refused = matches!(reason, StopReason::Tokens { next: Some(5_000..), .. });
        assert_eq!(is_refused, limit == 6_000, "{reason}");
    }
}

/// The first model replies to the even calls of an agent, and the second one to the others.
fn fallback() -> [Sealing; 2] {
    let first = Sealing { name: "test:first", overloaded: true, ..Sealing::new(usize::MAX) };
    [first, Sealing { name: "test:second", ..Sealing::new(usize::MAX) }]
}

#[tokio::test]
async fn with_a_fallback_each_model_receives_its_own_seals_only() {
    let [first, second] = fallback();
    let mut log = log().await;
    let model = Fallback::new([&first, &second].map(|model| polylogue::AnyModel::new(model.clone())));
    chat(model).run_in(&mut log, "Talk.").await.unwrap();
    let replies = log.events().await;
    let replies = replies.iter().filter_map(|event| match &event.body {
        Body::ModelReplied(reply) if reply.who == "Ann" => {
            Some((&*reply.model, reply.requested_model.as_deref()))
        }
        _ => None,
    });
    let (own, other) = (("test:first", None), ("test:second", Some("test:first")));
    assert_eq!(replies.collect::<Vec<_>>(), [own, other, own, other]);
    // What the other model wrote is in the request, without thoughts, so each has one own seal in its second request.
    assert_eq!(
        (first.sent.lock().unwrap().clone(), second.sent.lock().unwrap().clone()),
        (vec![0, 0, 1, 1], vec![0, 0, 1, 1])
    );
}

#[tokio::test]
async fn a_conversation_with_a_fallback_is_the_same_wherever_it_is_cut() {
    let events = cut_everywhere("Talk.", |calls| {
        let model = Fallback::new(fallback().map(polylogue::AnyModel::new));
        chat(Counted(calls.through(model)))
    })
    .await;
    let asked = |body: &Body| matches!(body, Body::ModelReplied(reply) if reply.requested_model.is_some());
    assert_eq!(events.iter().filter(|event| asked(&event.body)).count(), 4);
}

/// A model that can be cloned into two agents.
#[derive(Clone)]
struct Counted(polylogue::AnyModel);

impl Model for Counted {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.0.complete(request, deltas).await
    }
}

/// A reply with a call that cannot be parsed.
fn malformed() -> Reply {
    Reply {
        parts: vec![Part::unparsed("<function=look{")],
        finish: FinishReason::Malformed,
        ..Reply::new("")
    }
}

/// The same after a thought, which models show before the call.
fn malformed_after_thought() -> Reply {
    Reply { parts: vec![Part::Thought("I look.".into()), Part::unparsed("<function=look{")], ..malformed() }
}

/// A model that writes a call that its provider cannot parse, so often, and each second time after a thought, and that does not accept
/// `top_k`.
#[derive(Clone)]
struct Clumsy {
    malformed: usize,
    made: Arc<Mutex<usize>>,
}

impl Model for Clumsy {
    fn name(&self) -> &str {
        "test:clumsy"
    }

    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let mut made = self.made.lock().unwrap();
        *made += 1;
        Ok(match *made {
            made if made > self.malformed => Reply::new("done"),
            made if made.is_multiple_of(2) => malformed_after_thought(),
            _ => malformed(),
        })
    }

    fn ignored(&self, params: &Params) -> Vec<&'static str> {
        params.names().into_iter().filter(|name| *name == "top_k").collect()
    }
}

async fn asked(
    malformed: usize,
    params: Params,
) -> (polylogue_core::Log, usize, polylogue_core::Result<Status>) {
    let model = Clumsy { malformed, made: Arc::default() };
    let agent = Assistant::new("Ann", polylogue::AnyModel::new(model.clone())).unwrap().params(params);
    let chat = solo_chat("one", agent, 2);
    let mut log = log().await;
    let result = chat.run_in(&mut log, "Talk.").await.map(|result| result.status);
    let made = *model.made.lock().unwrap();
    (log, made, result)
}

/// P102: of the two turns, each has at most three calls, and a prompt before the third.
#[tokio::test]
async fn a_call_that_cannot_be_parsed_is_asked_for_once_more_and_then_with_what_was_written() {
    for (malformed, made, prompted) in [(0, 2, 0), (1, 3, 0), (2, 4, 1), (3, 4, 1), (6, 6, 2)] {
        let (log, asked, _) = asked(malformed, Params::default()).await;
        let events = log.events().await;
        let prompts = events.iter().filter_map(|event| match &event.body {
            Body::Prompted { text, .. } => Some(text),
            _ => None,
        });
        let is_of_call = |text: &&Arc<str>| {
            text.starts_with("Your last reply could not be parsed") && text.ends_with("\n\n<function=look{")
        };
        assert_eq!((asked, prompts.filter(is_of_call).count()), (made, prompted), "{malformed}");
        let cut = polylogue::runs::Report::of_last_run(&events).cut;
        assert_eq!(cut, (malformed == 6).then_some(FinishReason::Malformed), "{malformed}");
    }
}

/// A model that writes a proper reply when it is shown what could not be parsed.
#[derive(Clone)]
struct Corrected;

impl Model for Corrected {
    fn name(&self) -> &str {
        "test:corrected"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        request.check().unwrap();
        let is_shown = format!("{:?}", request.entries.last()).contains("could not be parsed");
        Ok(if is_shown { Reply::new("word") } else { malformed_after_thought() })
    }
}

#[tokio::test]
async fn a_conversation_with_calls_that_cannot_be_parsed_is_the_same_wherever_it_is_cut() {
    let events = cut_everywhere("Talk.", |calls| chat(calls.through(Corrected))).await;
    let count = |is: fn(&Body) -> bool| events.iter().filter(|event| is(&event.body)).count();
    let replies = count(|body| matches!(body, Body::ModelReplied(_)));
    let prompts = count(|body| matches!(body, Body::Prompted { .. }));
    assert_eq!((replies, prompts), (3 * 8, 8));
}

/// A model whose provider refuses `seed`, as each process finds out.
#[derive(Clone, Default)]
struct Picky {
    is_known: Arc<AtomicBool>,
}

impl Model for Picky {
    fn name(&self) -> &str {
        "test:picky"
    }

    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let refusal = || ModelError::new(ModelErrorKind::ParameterRefused, self.name(), "`seed` is refused");
        if self.is_known.swap(true, Ordering::SeqCst) { Ok(Reply::new("word")) } else { Err(refusal()) }
    }

    fn ignored(&self, params: &Params) -> Vec<&'static str> {
        let is_known = self.is_known.load(Ordering::SeqCst);
        params.names().into_iter().filter(|name| is_known && *name == "seed").collect()
    }
}

/// The log has it once for each agent, whether or not the process knew it before.
#[tokio::test]
async fn a_parameter_that_is_refused_is_left_out_wherever_the_log_is_cut() {
    let params = Params { seed: Some(7), ..Params::default() };
    let events = cut_everywhere("Talk.", |calls| chat_with(calls.through(Picky::default()), &params)).await;
    let notes = events.iter().filter_map(|event| match &event.body {
        Body::ParametersIgnored { who, parameters, .. } => Some(format!("{who}: {}", parameters.join(", "))),
        _ => None,
    });
    assert_eq!(notes.collect::<Vec<_>>(), ["Ann: seed", "Bob: seed"]);
    let strict = Params { strict: true, ..params.clone() };
    let run = chat_with(Picky::default(), &strict).run_in(&mut log().await, "Talk.").await;
    let error = run.map(|run| run.status).unwrap_err().to_string();
    assert!(error.contains("does not accept `seed`"), "{error}");
}

#[tokio::test]
async fn a_parameter_that_is_left_out_is_noted_once_or_an_error() {
    let params = Params { top_k: Some(3), ..Params::default() };
    let (log, made, _) = asked(0, params.clone()).await;
    let is_note = |body: &Body| matches!(body, Body::ParametersIgnored { parameters, .. } if *parameters == ["top_k".into()]);
    let notes = log.events().await.iter().filter(|event| is_note(&event.body)).count();
    assert_eq!((made, notes), (2, 1));
    let (_, made, result) = asked(0, Params { strict: true, ..params }).await;
    assert_eq!((made, result.unwrap_err().to_string().contains("does not accept `top_k`")), (0, true));
}

/// One of several models.
#[derive(Clone)]
struct Listed {
    name: &'static str,
    /// The parameter that it does not accept.
    refuses: &'static str,
    is_down: bool,
}

impl Model for Listed {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let down = || ModelError::new(ModelErrorKind::Connection, self.name, "it is down");
        if self.is_down { Err(down()) } else { Ok(Reply::new("word")) }
    }

    fn ignored(&self, params: &Params) -> Vec<&'static str> {
        params.names().into_iter().filter(|name| *name == self.refuses).collect()
    }
}

/// What the log says of parameters that two models left out, the first of which may be down.
async fn left_out(is_down: bool, refuses: [&'static str; 2], strict: bool) -> Result<Vec<String>, String> {
    let first = Listed { name: "test:first", refuses: refuses[0], is_down };
    let second = Listed { name: "test:second", refuses: refuses[1], is_down: false };
    let model = Fallback::new([first, second].map(polylogue::AnyModel::new));
    let params = Params { seed: Some(7), top_k: Some(3), strict, ..Params::default() };
    let mut log = log().await;
    chat_with(model, &params).run_in(&mut log, "Talk.").await.map_err(|error| error.to_string())?;
    let note = |body: &Body| match body {
        Body::ParametersIgnored { who, model, parameters, .. } => {
            Some(format!("{who}, {model}: {}", parameters.join(", ")))
        }
        _ => None,
    };
    Ok(log.events().await.iter().filter_map(|event| note(&event.body)).collect())
}

#[tokio::test]
async fn of_several_models_the_log_has_what_the_one_that_replied_left_out() {
    let of_both = |note: &str| Ok::<_, String>(["Ann", "Bob"].map(|who| format!("{who}, {note}")).to_vec());
    assert_eq!(left_out(true, ["seed", "top_k"], false).await, of_both("test:second: top_k"));
    assert_eq!(left_out(false, ["seed", "top_k"], false).await, of_both("test:first: seed"));
    assert_eq!(left_out(true, ["seed", ""], false).await, Ok(vec![]));
    // The one that does not accept all is not asked.
    assert_eq!(left_out(false, ["seed", ""], true).await, Ok(vec![]));
    let error = left_out(false, ["seed", "top_k"], true).await.unwrap_err();
    assert!(error.contains("does not accept `seed`"), "{error}");
}
