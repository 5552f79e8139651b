//! Fallback among models.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue_core::{
    AnyModel, Capabilities, Capability, Delta, DeltaRef, DeltaSink, EarlierReplies, EncodeCache, Entry,
    Event, FinishReason, Model, ModelError, ModelErrorKind, Money, Name, Origin, Params, Part, Path, Reply,
    Request, Timestamp, ToolCall, ToolSpec, Usage,
};
use polylogue_models::{FailureClass, Fallback, FallbackReturn};
use serde_json::{Value, json};

/// What a model does in a call.
#[derive(Clone)]
enum Act {
    Say(&'static str),
    Call,
    Filter,
    /// A reply that fills the window.
    Full,
    Fail(ModelErrorKind, Option<u16>),
    /// Pieces, then a broken connection.
    Break(&'static str),
}

/// A model with these acts, the last one repeatedly.
#[derive(Clone)]
struct Actor {
    name: &'static str,
    acts: Vec<Act>,
    calls: Arc<Mutex<usize>>,
    capabilities: Capabilities,
    dollars: u64,
    window: Option<u64>,
}

impl Actor {
    fn new(name: &'static str, acts: impl IntoIterator<Item = Act>) -> Self {
        let acts = acts.into_iter().collect();
        Self {
            name,
            acts,
            calls: Arc::default(),
            capabilities: Capabilities::default(),
            dollars: 1,
            window: None,
        }
    }

    fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }
}

impl Model for Actor {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, _: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let nth = {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            *calls - 1
        };
        let error =
            |kind, status| Err(ModelError { status, ..ModelError::new(kind, self.name, "it failed") });
        match self.acts.get(nth).or(self.acts.last()).unwrap() {
            Act::Say(text) => {
                deltas.push(DeltaRef::Text(text));
                Ok(Reply::new(*text))
            }
            Act::Call => {
                let call = ToolCall { id: "1".into(), tool: "look".into(), args: serde_json::json!({}) };
                Ok(Reply { parts: vec![Part::ToolCall(call)], finish: FinishReason::Calls, ..Reply::new("") })
            }
            Act::Filter => Ok(Reply { finish: FinishReason::Filter, ..Reply::new("I ca") }),
            Act::Full => {
                deltas.push(DeltaRef::Text("Half a"));
                Ok(Reply { finish: FinishReason::ContextFull, ..Reply::new("Half a") })
            }
            Act::Fail(kind, status) => error(*kind, *status),
            Act::Break(text) => {
                deltas.push(DeltaRef::Text(text));
                error(ModelErrorKind::Connection, None)
            }
        }
    }

    fn cost(&self, _: &Usage) -> Option<Money> {
        Some(Money { picodollars: self.dollars * 1_000_000_000_000 })
    }

    fn max_output(&self, _: &Params) -> Option<u64> {
        Some(self.dollars * 100)
    }

    fn context_window(&self) -> Option<u64> {
        self.window
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

fn models(actors: &[&Actor]) -> Fallback {
    Fallback::new(actors.iter().map(|actor| AnyModel::new((*actor).clone())))
}

/// What is asked.
#[derive(Default)]
struct Ask<'a> {
    tools: &'a [ToolSpec],
    params: Params,
    last_model: Option<&'a str>,
    earlier: EarlierReplies<'a>,
}

/// Asks. The reply, and the pieces.
async fn ask_with(model: &Fallback, ask: Ask<'_>) -> (Result<Reply, ModelError>, Vec<Delta>) {
    #[derive(Default)]
    struct Kept(Vec<Delta>);
    impl DeltaSink for Kept {
        fn push(&mut self, delta: DeltaRef<'_>) {
            self.0.push(delta.into());
        }
    }
    let (at, who) = (Path::root(), Name::new("Ann").unwrap());
    let (encoded, mut kept) = (EncodeCache::default(), Kept::default());
    let request = Request {
        origin: Origin { chat: &at, who: &who, nth: 0, last_model: ask.last_model, earlier: ask.earlier },
        system: None,
        entries: &[Entry::user("Hello.")],
        tools: ask.tools,
        params: &ask.params,
        encoded: &encoded,
        reserved: None,
    };
    (model.complete(&request, &mut kept).await, kept.0)
}

async fn ask(model: &Fallback) -> Result<Reply, ModelError> {
    ask_with(model, Ask::default()).await.0
}

fn by(reply: &Reply) -> &str {
    &reply.answered_by.as_ref().unwrap().model
}

const RATE: Act = Act::Fail(ModelErrorKind::Unavailable, Some(429));

#[tokio::test]
async fn failures_of_a_provider_go_to_the_next_model_and_mistakes_do_not() {
    for (kind, status, goes) in [
        (ModelErrorKind::Unavailable, Some(429), true),
        (ModelErrorKind::QuotaExceeded, Some(402), true),
        (ModelErrorKind::Unavailable, Some(529), true),
        (ModelErrorKind::Unavailable, Some(500), true),
        (ModelErrorKind::Timeout, None, true),
        (ModelErrorKind::Connection, None, true),
        (ModelErrorKind::InvalidReply, Some(200), true),
        (ModelErrorKind::TooLong { tokens: None, limit: None }, Some(400), true),
        (ModelErrorKind::Unsupported(Capability::Tools), Some(400), false),
        (ModelErrorKind::ContentFiltered, Some(400), false),
        (ModelErrorKind::SealsRefused, Some(400), false),
        (ModelErrorKind::Config, Some(401), false),
        (ModelErrorKind::Config, Some(404), false),
        (ModelErrorKind::Bug, None, false),
    ] {
        let (one, other) =
            (Actor::new("a:1", [Act::Fail(kind, status)]), Actor::new("b:2", [Act::Say("Hi.")]));
        let result = ask(&models(&[&one, &other])).await;
        assert_eq!((result.is_ok(), other.calls()), (goes, usize::from(goes)), "{kind:?} {status:?}");
    }
}

/// The next model is asked after a failure of its class, and not after one of any other.
#[tokio::test]
async fn classes_can_be_named() {
    use FailureClass::{Connection, Overload, Rate, Refusal, Server, Timeout, TooLong};
    use ModelErrorKind as Kind;
    let all = [Rate, Overload, Server, Timeout, Connection, TooLong, Refusal];
    for (kind, status, class) in [
        (Kind::Unavailable, Some(429), Rate),
        (Kind::QuotaExceeded, Some(402), Rate),
        (Kind::QuotaExceeded, Some(429), Rate),
        (Kind::QuotaExceeded, Some(400), Rate),
        (Kind::QuotaExceeded, Some(403), Rate),
        (Kind::Postponed, Some(429), Rate),
        (Kind::Unavailable, Some(503), Overload),
        (Kind::Unavailable, Some(529), Overload),
        (Kind::Unavailable, Some(500), Server),
        (Kind::Unavailable, Some(409), Server),
        (Kind::Unavailable, Some(408), Timeout),
        (Kind::Unavailable, Some(504), Timeout),
        (Kind::InvalidReply, Some(200), Server),
        (Kind::Timeout, None, Timeout),
        (Kind::Connection, None, Connection),
        (Kind::TooLong { tokens: None, limit: None }, Some(400), TooLong),
        (Kind::ContentFiltered, Some(400), Refusal),
        (Kind::ContentFiltered, Some(403), Refusal),
    ] {
        let one = Actor::new("a:1", [Act::Fail(kind, status)]);
        let other = Actor::new("b:2", [Act::Say("Hi.")]);
        let model = models(&[&one, &other]);
        assert_eq!(by(&ask(&model.clone().on([class])).await.unwrap()), "b:2", "{kind:?} {status:?}");
        let others = all.into_iter().filter(|other| *other != class);
        assert!(ask(&model.on(others)).await.is_err(), "{kind:?} {status:?}");
        assert_eq!(other.calls(), 1, "{kind:?} {status:?}");
    }
}

#[tokio::test]
async fn a_filtered_reply_is_a_failure_only_if_that_is_asked_for() {
    let (one, other) = (Actor::new("a:1", [Act::Filter]), Actor::new("b:2", [Act::Say("Hi.")]));
    let model = models(&[&one, &other]);
    assert_eq!(ask(&model).await.unwrap().finish, FinishReason::Filter);
    let reply = ask(&model.on([FailureClass::Refusal])).await.unwrap();
    assert_eq!((reply.to_string().as_str(), by(&reply)), ("Hi.", "b:2"));
}

#[tokio::test]
async fn pieces_of_a_reply_that_broke_off_are_discarded() {
    let (one, other) = (Actor::new("a:1", [Act::Break("He")]), Actor::new("b:2", [Act::Say("Hi.")]));
    let (reply, pieces) = ask_with(&models(&[&one, &other]), Ask::default()).await;
    assert_eq!(reply.unwrap().to_string(), "Hi.");
    assert!(
        matches!(&pieces[..], [
        Delta::Text(broken), Delta::Restart, Delta::Fallback { cause, model }, Delta::Text(whole)
    ] if broken == "He" && whole == "Hi." && cause == "it failed" && model == "b:2"),
        "{pieces:?}"
    );
}

#[tokio::test]
async fn a_turn_that_calls_tools_stays_with_its_model() {
    let (one, other) = (Actor::new("a:1", [RATE, Act::Say("Back.")]), Actor::new("b:2", [Act::Call, RATE]));
    let model = models(&[&one, &other]);
    assert_eq!(by(&ask(&model).await.unwrap()), "b:2");
    let within = |last_model| Ask { last_model: Some(last_model), ..Ask::default() };
    let (reply, pieces) = ask_with(&model, within("b:2")).await;
    assert_eq!(by(&reply.unwrap()), "a:1", "when it fails in turn, the others are asked");
    assert!(matches!(&pieces[0], Delta::Fallback { model, .. } if model == "a:1"), "{pieces:?}");
    assert_eq!(by(&ask_with(&model, within("gone:0")).await.0.unwrap()), "a:1");
}

#[tokio::test]
async fn a_model_that_lacks_what_is_asked_is_skipped() {
    let one = Actor::new("a:1", [RATE]);
    let able = Actor::new("c:3", [Act::Say("Hi.")]);
    let text_only = Actor { capabilities: Capabilities::TEXT, ..Actor::new("b:2", [Act::Say("No.")]) };
    let tool = ToolSpec::new("look", "Looks.", serde_json::json!({"type": "object"}));
    let tools = [tool];
    let ask = || Ask { tools: &tools, ..Ask::default() };
    let (reply, _) = ask_with(&models(&[&one, &text_only, &able]), ask()).await;
    assert_eq!((by(&reply.unwrap()), text_only.calls()), ("c:3", 0));
    // The log has the reason.
    let (reply, _) = ask_with(&models(&[&text_only, &able]), ask()).await;
    let why = reply.unwrap().answered_by.unwrap().because.clone();
    assert_eq!(why.as_deref(), Some("b:2: it is known not to support calling tools"));
    // One that is not needed says nothing.
    let (reply, _) = ask_with(&models(&[&able, &text_only]), ask()).await;
    assert_eq!(reply.unwrap().answered_by.unwrap().because, None);
}

#[tokio::test]
async fn the_last_error_lists_the_others_and_the_most_expensive_bounds_the_cost() {
    let one = Actor { dollars: 3, ..Actor::new("a:1", [RATE]) };
    let other = Actor::new("b:2", [Act::Fail(ModelErrorKind::Timeout, None)]);
    let model = models(&[&one, &other]);
    let error = ask(&model).await.unwrap_err();
    assert_eq!(error.to_string(), "b:2: it failed (before: a:1: it failed)");
    assert_eq!(model.cost(&Usage::default()).unwrap().picodollars, 3_000_000_000_000);
    assert_eq!(model.max_output(&Params::default()), Some(300));
    assert_eq!(model.name(), "a:1");
}

#[tokio::test]
async fn a_conversation_that_is_too_long_goes_only_to_a_model_that_is_not_known_to_be_smaller() {
    let too_long = || [Act::Fail(ModelErrorKind::TooLong { tokens: None, limit: None }, Some(400))];
    let with = |window, actor| Actor { window: Some(window), ..actor };
    let large = with(128_000, Actor::new("a:large", too_long()));
    let small = with(8_192, Actor::new("a:small", [Act::Say("No.")]));
    let unknown = Actor::new("b:2", [Act::Say("Hi.")]);
    assert_eq!(by(&ask(&models(&[&large, &small, &unknown])).await.unwrap()), "b:2");
    assert_eq!(small.calls(), 0);
    let error = ask(&models(&[&large, &small])).await.unwrap_err();
    assert!(matches!(error.kind, ModelErrorKind::TooLong { .. }) && small.calls() == 0, "{error}");
    let small = with(8_192, Actor::new("a:small", too_long()));
    let large = with(128_000, Actor::new("a:large", [Act::Say("Hi.")]));
    assert_eq!(by(&ask(&models(&[&small, &large])).await.unwrap()), "a:large");
}

#[tokio::test]
async fn a_reply_that_fills_the_window_goes_only_to_a_model_that_is_not_known_to_be_smaller() {
    let with = |window, actor| Actor { window: Some(window), ..actor };
    let small = with(8_192, Actor::new("a:small", [Act::Full]));
    let large = with(128_000, Actor::new("a:large", [Act::Say("Whole.")]));
    let (reply, pieces) = ask_with(&models(&[&small, &large]), Ask::default()).await;
    let reply = reply.unwrap();
    assert_eq!((reply.to_string().as_str(), by(&reply)), ("Whole.", "a:large"));
    assert!(matches!(&pieces[..], [Delta::Text(_), Delta::Restart, Delta::Fallback { .. }, Delta::Text(_)]));
    // Where no other model has more room, or this class is not asked for, the reply is kept.
    let large = with(128_000, Actor::new("a:large", [Act::Full]));
    let small = with(8_192, Actor::new("a:small", [Act::Say("No.")]));
    assert_eq!(ask(&models(&[&large, &small])).await.unwrap().finish, FinishReason::ContextFull);
    let unknown = Actor::new("b:2", [Act::Say("No.")]);
    let rate_only = models(&[&large, &unknown]).on([FailureClass::Rate]);
    assert_eq!(ask(&rate_only).await.unwrap().finish, FinishReason::ContextFull);
    assert_eq!((small.calls(), unknown.calls()), (0, 0));
}

/// The event of a reply of `model` to Ann at `seconds`, which was asked after `asked` failed.
fn replied(seq: u64, seconds: u64, model: &str, asked: Option<&str>) -> Arc<Event> {
    let asked = asked.map_or(Value::Null, Value::from);
    let event = json!({
        "seq": seq, "time_ms": seconds * 1_000, "type": "model_replied", "who": "Ann", "model": model,
        "requested_model": asked, "request": "0".repeat(32), "parts": [], "finish": "stop", "usage": {},
    });
    Arc::new(serde_json::from_value(event).unwrap())
}

/// After the other model replied from second 10 on: which one is asked first in a turn that begins at second `now`.
async fn first_asked(returns: FallbackReturn, now: u64) -> String {
    let events = [
        replied(0, 1, "a:1", None),
        replied(1, 10, "b:2", Some("a:1")),
        replied(2, 20, "b:2", Some("a:1")),
        replied(3, 30, "c:3", Some("x:9")),
    ];
    let (one, other) = (Actor::new("a:1", [Act::Say("Hi.")]), Actor::new("b:2", [Act::Say("Hi.")]));
    let earlier = EarlierReplies::new(&events, Timestamp(now * 1_000));
    let asked = Ask { earlier, ..Ask::default() };
    let reply = ask_with(&models(&[&one, &other]).returns(returns), asked).await.0.unwrap();
    by(&reply).to_owned()
}

#[tokio::test]
async fn the_first_model_is_asked_again_when_it_is_set() {
    let time = FallbackReturn::After(Duration::from_secs(60));
    for (returns, now, expected) in [
        (FallbackReturn::Turn, 21, "a:1"),
        (FallbackReturn::Never, 1_000_000, "b:2"),
        (time, 69, "b:2"),
        (time, 70, "a:1"),
    ] {
        assert_eq!(first_asked(returns, now).await, expected, "{returns:?} {now}");
    }
}

/// One that is kept and fails leads to the others, the first model among them.
#[tokio::test]
async fn a_kept_model_that_fails_leads_back() {
    let events = [replied(0, 1, "b:2", Some("a:1"))];
    let (one, other) = (Actor::new("a:1", [Act::Say("Hi.")]), Actor::new("b:2", [RATE]));
    let asked = Ask { earlier: EarlierReplies::new(&events, Timestamp(2_000)), ..Ask::default() };
    let reply = ask_with(&models(&[&one, &other]).returns(FallbackReturn::Never), asked).await.0.unwrap();
    assert_eq!((by(&reply), other.calls()), ("a:1", 1));
    // Once the first model has replied, nothing is kept.
    let events = [replied(0, 1, "b:2", Some("a:1")), replied(1, 2, "a:1", None)];
    let who = Name::new("Ann").unwrap();
    assert_eq!(EarlierReplies::new(&events, Timestamp(9)).fallback(&who, "a:1"), None);
}
