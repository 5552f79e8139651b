//! The property that any prefix of a log is a valid conversation (invariants 6 and 7).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue_core::{
    AnyModel, AnyStore, BackgroundResult, BackgroundStatus, BackgroundTask, Body, Chat, Chooser, Compacted,
    DeltaSink, Event, Log, LogId, Meta, Model, ModelError, ModelErrorKind, ModelWrapper, Name, OutputLimit,
    Path, Question, Reply, Request, Status, StopReason, Store, Timestamp, TurnRequest,
};

/// A conversation to be cut: how to set it up in a new process, and how its people answer.
pub struct Cut<'a> {
    /// The task of the chat.
    pub task: &'a str,
    /// Creates the chat as a new process would. Its models are wrapped by the counter, so that repeated calls are
    /// detected.
    pub chat: &'a dyn Fn(&Calls) -> Chat,
    /// Creates an empty store.
    pub store: &'a dyn Fn() -> AnyStore,
    /// Answers a person's question: the path of the chat, the question, and how many were answered before in the
    /// whole run.
    pub answer: &'a (dyn Fn(&Path, &Question, u64) -> String + Sync),
}

impl Cut<'_> {
    /// Runs the complete conversation. Then, for every event, runs it again from a log cut after it, in a new chat
    /// and store, and checks that the log becomes the same and that no finished model call is repeated. Only
    /// [`Body::Charged`] may differ: a call that may have been in flight at the cut is charged.
    ///
    /// Returns the events of the complete run.
    ///
    /// # Errors
    /// Says after which event the log was cut and what differs then.
    pub async fn everywhere(&self) -> Result<Vec<Arc<Event>>, String> {
        let first = (self.store)();
        let whole = self.play(&first, &first, &[]).await?;
        for cut in 0..whole.len() {
            let prefix = whole.get(..cut).unwrap_or_default();
            let again = self
                .play(&(self.store)(), &first, prefix)
                .await
                .map_err(|flaw| format!("cut before event {cut}: {flaw}"))?;
            same(&whole, &again).map_err(|flaw| format!("cut before event {cut}: {flaw}"))?;
        }
        Ok(whole)
    }

    /// Runs the conversation in `store` from a prefix to its end. The large results of the prefix are those of the `first` store.
    async fn play(
        &self,
        store: &AnyStore,
        first: &AnyStore,
        prefix: &[Arc<Event>],
    ) -> Result<Vec<Arc<Event>>, String> {
        let as_text = |error: polylogue_core::Error| error.to_string();
        let id = LogId::new("cut").map_err(|error| error.to_string())?;
        let claim = store.create(&id, &Meta::default()).await.map_err(|error| error.to_string())?;
        if !prefix.is_empty() {
            first.copy_blobs(prefix, &id, (store, &id)).await.map_err(|error| error.to_string())?;
            store.append(&claim, prefix).await.map_err(|error| error.to_string())?;
        }
        store.release(claim).await.map_err(|error| error.to_string())?;
        let calls = Calls::default();
        let chat = (self.chat)(&calls);
        // All times are the same, so that logs can be compared.
        let mut log = Log::open(store.clone(), id).await.map_err(as_text)?.clock(|| Timestamp(0));
        let mut status = match prefix {
            [] => chat.run_in(&mut log, self.task).await,
            _ => chat.resume(&mut log).await,
        };
        while let Status::Waiting(questions) = status.map_err(as_text)?.status {
            let (at, question) = questions.first().ok_or("waits for nothing")?;
            let answered = count(&log.events().await, |body| matches!(body, Body::InputProvided { .. }));
            log.answer(at, &question.who, (self.answer)(at, question, answered)).await.map_err(as_text)?;
            status = chat.resume(&mut log).await;
        }
        let events = log.events().await;
        let finished = |events: &[Arc<Event>]| {
            count(events, |body| matches!(body, Body::ModelReplied(_) | Body::ContinuationFailed { .. }))
        };
        let (made, needed) = (calls.made(), finished(&events) - finished(prefix));
        // A call that is aborted with its task when it has just returned is lost.
        let lost = count(
            &events,
            |body| matches!(body, Body::BackgroundEnded(end) if end.status == BackgroundStatus::Cancelled),
        );
        if made < needed || made > needed + lost {
            let log = crate::print::transcript(&events);
            return Err(format!("{made} model calls were made where {needed} were left to make:\n{log}"));
        }
        Ok(events)
    }
}

fn count(events: &[Arc<Event>], is: impl Fn(&Body) -> bool) -> u64 {
    events.iter().filter(|event| is(&event.body)).count() as u64
}

fn same(whole: &[Arc<Event>], again: &[Arc<Event>]) -> Result<(), String> {
    let (whole, again) = (uncharged(whole), uncharged(again));
    in_order(&whole, &again).or_else(|flaw| {
        let (whole, again) = (by_chat(&without_timing(&whole)), by_chat(&without_timing(&again)));
        in_order(&whole, &again).map_err(|by_chat| format!("{flaw}\nand by chat, {by_chat}"))
    })
}

/// The events with the results of background tasks, and the turns in which they are said, at the end of their chats: they are posted when
/// they are there. What agents are sent in such chats depends on that, and so does how far a cancelled task got.
fn without_timing(events: &[Arc<Event>]) -> Vec<Arc<Event>> {
    let cancelled: Vec<Path> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::BackgroundEnded(end) if end.status == BackgroundStatus::Cancelled => {
                Some(event.chat.background(&end.who, end.number))
            }
            _ => None,
        })
        .collect();
    let is_left =
        |event: &&Arc<Event>| !cancelled.iter().any(|path| event.chat == *path || event.chat.is_within(path));
    let chats: Vec<&Path> = events
        .iter()
        .filter(|event| matches!(event.body, Body::BackgroundStarted(_)))
        .map(|event| &event.chat)
        .collect();
    let mut digests = events.iter().filter_map(|event| match &event.body {
        Body::ModelReplied(reply) => Some(reply.request),
        _ => None,
    });
    let any = digests.next();
    let without_digest = |event: &Arc<Event>| {
        let mut event = Event::clone(event);
        if let Body::ModelReplied(reply) = &mut event.body
            && chats.contains(&&event.chat)
        {
            (reply.request, reply.prefix) = (any.unwrap_or(reply.request), None);
        }
        Arc::new(event)
    };
    let mut saying: Vec<(Path, Name)> = Vec::new();
    let mut is_posted = |event: &Arc<Event>| is_of_result(event, &mut saying);
    let (mut posted, mut others): (Vec<_>, Vec<_>) =
        events.iter().filter(is_left).map(without_digest).partition(|event| is_posted(event));
    posted.sort_by_key(|event| match &event.body {
        Body::BackgroundEnded(end) => (event.chat.clone(), Some(end.who.clone()), end.number),
        _ => (event.chat.clone(), None, 0),
    });
    others.append(&mut posted);
    others
}

/// Whether the event is the result of a background task that was posted, or of a turn in which one is said, by those of `saying`.
fn is_of_result(event: &Event, saying: &mut Vec<(Path, Name)>) -> bool {
    let is_for_result = |request: &TurnRequest| {
        request.choice.as_ref().is_some_and(|choice| choice.by == Chooser::Background)
    };
    let who = match &event.body {
        Body::BackgroundEnded(end) => return !end.awaited,
        Body::TurnStarted { turns } => match turns.as_slice() {
            [request] if is_for_result(request) => {
                saying.push((event.chat.clone(), request.who.clone()));
                return true;
            }
            _ => return false,
        },
        Body::Message(message) => &message.from,
        Body::Passed { who } => who,
        _ => return false,
    };
    let at = saying.iter().position(|(at, name)| *at == event.chat && name == who);
    at.map(|at| saying.remove(at)).is_some()
}

/// The events of each chat in order, and those of parallel turns by participant, because parallel events are
/// interleaved in any order.
fn by_chat(events: &[Arc<Event>]) -> Vec<Arc<Event>> {
    let mut events = events.to_vec();
    events.sort_by(|one, other| one.chat.cmp(&other.chat));
    let within_turn = |event: &Arc<Event>| match &event.body {
        Body::ModelReplied(sample) => Some((event.chat.clone(), sample.who.clone())),
        Body::CapabilityMissing { who, .. }
        | Body::SealsRefused { who, .. }
        | Body::ParametersIgnored { who, .. }
        | Body::OutputLimited(OutputLimit { who, .. })
        | Body::TooLong { who, .. }
        | Body::Compacted(Compacted { who, .. })
        | Body::Prompted { who, .. }
        | Body::ToolCalled { who, .. }
        | Body::BackgroundStarted(BackgroundTask { who, .. })
        | Body::BackgroundEnded(BackgroundResult { who, awaited: true, .. })
        | Body::InputRequired(Question { who, .. })
        | Body::InputProvided { to: who, .. }
        | Body::ToolReturned { who, .. } => Some((event.chat.clone(), who.clone())),
        _ => None,
    };
    for run in events.chunk_by_mut(|one, next| within_turn(one).is_some() && within_turn(next).is_some()) {
        run.sort_by_key(within_turn);
    }
    events
}

fn in_order(whole: &[Arc<Event>], again: &[Arc<Event>]) -> Result<(), String> {
    for (one, other) in settled(whole).iter().zip(settled(again)) {
        if (&one.chat, &one.body) != (&other.chat, &other.body) || one.time != other.time {
            return Err(format!("event {} was\n  {one:?}\nand is now\n  {other:?}", one.seq));
        }
    }
    match whole.len() == again.len() {
        true => Ok(()),
        false => Err(format!("there were {} events, and are now {}", whole.len(), again.len())),
    }
}

/// Returns the events without charges: a resumed run charges calls that may have been in flight. References to events are
/// renumbered.
///
/// For tests that cut logs on their own.
pub fn uncharged(events: &[Arc<Event>]) -> Vec<Arc<Event>> {
    let is_charge = |event: &&Arc<Event>| matches!(event.body, Body::Charged(_));
    let charges: Vec<u64> = events.iter().filter(is_charge).map(|event| event.seq).collect();
    let number = |seq: &mut u64| *seq -= charges.iter().filter(|charge| **charge < *seq).count() as u64;
    let renumbered = |event: &Arc<Event>| {
        let mut event = Event::clone(event);
        number(&mut event.seq);
        match &mut event.body {
            Body::RolledBack { since } => number(since),
            Body::Compacted(Compacted { through, kept, .. }) => {
                number(through);
                kept.iter_mut().for_each(&number);
            }
            Body::Closed { reason, .. } | Body::Stopped { reason, .. } => renumber(reason, &number),
            _ => {}
        }
        Arc::new(event)
    };
    events.iter().filter(|event| !is_charge(event)).map(renumbered).collect()
}

fn renumber(reason: &mut StopReason, number: &impl Fn(&mut u64)) {
    match reason {
        StopReason::LoopDetected { evidence, .. } => evidence.iter_mut().for_each(number),
        StopReason::All(reasons) => reasons.iter_mut().for_each(|reason| renumber(reason, number)),
        _ => {}
    }
}

/// The events with the results of calls in the order of their ids: calls of one message run in parallel, and their
/// results are logged in any order.
fn settled(events: &[Arc<Event>]) -> Vec<Arc<Event>> {
    let returned = |event: &Arc<Event>| match &event.body {
        Body::ToolReturned { who, id, .. } => Some((event.chat.clone(), who.clone(), id.clone())),
        _ => None,
    };
    let mut events = events.to_vec();
    for run in events.chunk_by_mut(|one, next| {
        let of = |event| returned(event).map(|(at, who, _)| (at, who));
        of(one).is_some() && of(one) == of(next)
    }) {
        run.sort_by_key(returned);
    }
    events
}

/// Counts model calls.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<AtomicU64>);

impl Calls {
    /// Wraps a model, so that its calls are counted.
    pub fn through(&self, model: impl Model) -> AnyModel {
        AnyModel::new(Counted { model: AnyModel::new(model), calls: self.clone() })
    }

    /// Returns the number of calls.
    pub fn made(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Counted {
    model: AnyModel,
    calls: Calls,
}

impl ModelWrapper for Counted {
    type Inner = AnyModel;

    fn inner(&self) -> &Self::Inner {
        &self.model
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let reply = self.model.complete(request, deltas).await;
        // What a model cannot do is not a finished call, and may be found out again.
        let is_finding = |kind: &ModelErrorKind| {
            matches!(
                kind,
                ModelErrorKind::Unsupported(_)
                    | ModelErrorKind::SealsRefused
                    | ModelErrorKind::TooLong { .. }
                    | ModelErrorKind::ParameterRefused
            )
        };
        if !matches!(&reply, Err(error) if is_finding(&error.kind)) {
            self.calls.0.fetch_add(1, Ordering::Relaxed);
        }
        reply
    }
}
