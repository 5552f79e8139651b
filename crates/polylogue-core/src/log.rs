//! A conversation: the events so far, and the right to append more.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::{Either, select};
use std::pin::pin;
use tokio::sync::{Mutex, watch};

use crate::live::Live;
use crate::{
    AnyStore, Body, Claim, Error, Event, LogId, Meta, Money, Name, Path, Question, Reason, Result, Spent,
    Store, StoreError, Timestamp, Transcript, Watch,
};

/// A conversation: a log of events in a store, claimed for writing.
///
/// The log is the program counter. Everything that is not a pure function of it - what a model replied, what a
/// person answered, what a tool returned - is in it as an event, so that a run can be stopped anywhere and go on in
/// another process.
pub struct Log {
    id: LogId,
    store: AnyStore,
    claim: Claim,
    limits: Limits,
    clock: Clock,
    live: Live,
    halt: Halt,
    kept: Mutex<Kept>,
}

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

#[derive(Default)]
struct Kept {
    events: Vec<Arc<Event>>,
    spent: Spent,
    turns: u64,
    calls: HashMap<Name, u64>,
    failures: HashMap<Name, u64>,
    unpriced: Option<Arc<str>>,
    /// An append was begun and not seen to end: the store knows better what is kept.
    doubtful: bool,
}

impl Kept {
    fn take_in(&mut self, event: Arc<Event>) {
        match &event.body {
            Body::Sampled(sample) => {
                self.spent.add(sample);
                *self.calls.entry(sample.who.clone()).or_default() += 1;
                if sample.cost.is_none() {
                    self.unpriced = Some(Arc::clone(&sample.model));
                }
            }
            Body::Failed { who, .. } => *self.failures.entry(who.clone()).or_default() += 1,
            Body::Said(message) if message.to.is_aside() => {}
            Body::Said(_) | Body::Passed { .. } | Body::Left { .. } => self.turns += 1,
            // The turn that this chat is will end next; its members' turns are what counts.
            Body::Closed { .. } if !event.at.is_root() => self.turns = self.turns.saturating_sub(1),
            _ => {}
        }
        self.events.push(event);
    }

    fn next_seq(&self) -> u64 {
        self.events.len() as u64
    }
}

/// What a whole run may consume, nested chats included. Checked before every turn and every model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Turns of agents in all chats. What is said aside is no turn, and neither is that of a chat within a chat.
    pub turns: Option<u64>,
    /// Model calls.
    pub calls: u64,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Money>,
    /// Chats within chats.
    pub depth: usize,
}

impl Default for Limits {
    /// 1,000 model calls, chats 8 deep, and any number of turns, tokens and money.
    fn default() -> Self {
        Self { turns: None, calls: 1_000, tokens: None, cost: None, depth: 8 }
    }
}

impl Log {
    /// Begins a conversation in `store`.
    ///
    /// # Errors
    /// When there is one of this `id`, or the store cannot be written.
    pub async fn create(store: AnyStore, id: LogId, meta: &Meta) -> Result<Self> {
        let claim = store.create(&id, meta).await?;
        Ok(Self::new(store, id, claim, Kept::default()))
    }

    /// Goes on with a conversation in `store`.
    ///
    /// # Errors
    /// When there is none of this `id`, when another process runs it, or when it is damaged.
    pub async fn open(store: AnyStore, id: LogId) -> Result<Self> {
        let claim = store.claim(&id).await?;
        let mut kept = Kept::default();
        for event in store.read(&id, 0).await? {
            kept.take_in(Arc::new(event));
        }
        Ok(Self::new(store, id, claim, kept))
    }

    fn new(store: AnyStore, id: LogId, claim: Claim, kept: Kept) -> Self {
        let (limits, live, halt) = (Limits::default(), Live::new(), Halt::default());
        Self { id, store, claim, limits, clock: Arc::new(system_time), live, halt, kept: Mutex::new(kept) }
    }

    /// The same log under other limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same log with another clock: tests have their own.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> &LogId {
        &self.id
    }

    /// The handle that stops runs of this log.
    #[must_use]
    pub fn halt(&self) -> Halt {
        self.halt.clone()
    }

    /// Watches what happens from now on. Watch before you read, so that nothing falls between.
    pub async fn watch(&self) -> Watch {
        self.live.watch(self.kept.lock().await.next_seq())
    }

    /// The events so far.
    pub async fn events(&self) -> Vec<Arc<Event>> {
        self.kept.lock().await.events.clone()
    }

    /// What was spent so far.
    pub async fn spent(&self) -> Spent {
        self.kept.lock().await.spent
    }

    /// How many turns agents had in all chats, as [`Limits::turns`] counts them.
    pub async fn turns(&self) -> u64 {
        self.kept.lock().await.turns
    }

    /// How many model calls each agent finished.
    pub async fn calls(&self) -> HashMap<Name, u64> {
        self.kept.lock().await.calls.clone()
    }

    /// The outermost chat.
    ///
    /// # Errors
    /// When the log is no valid conversation.
    pub async fn transcript(&self) -> Result<Transcript> {
        self.transcript_of(&Path::root()).await
    }

    /// The chat `at`.
    ///
    /// # Errors
    /// When the log is no valid conversation.
    pub async fn transcript_of(&self, at: &Path) -> Result<Transcript> {
        let kept = self.kept.lock().await;
        Transcript::of(at, &kept.events).map_err(|flaw| self.invalid(&flaw))
    }

    pub(crate) fn invalid(&self, flaw: &str) -> Error {
        Error::Bug(format!("the log of `{}` is no valid conversation: {flaw}", self.id))
    }

    /// The questions that nobody has answered yet, with the chats they were asked in.
    ///
    /// # Errors
    /// When the log is no valid conversation.
    pub async fn questions(&self) -> Result<Vec<(Path, Question)>> {
        let events = self.events().await;
        let mut open: Vec<(Path, Question)> = Vec::new();
        for event in &events {
            match &event.body {
                Body::Asked(question) => open.push((event.at.clone(), question.clone())),
                Body::Answered { to, .. } => open.retain(|(at, q)| *at != event.at || q.who != *to),
                _ => {}
            }
        }
        Ok(open)
    }

    /// Answers the question that `who` asked in the chat `at`. The answer is in the log when this returns; run the chat
    /// again to go on.
    ///
    /// # Errors
    /// When there is no such question, or the store cannot be written.
    pub async fn answer(&mut self, at: &Path, who: &Name, text: impl Into<Arc<str>>) -> Result<()> {
        if !self.questions().await?.iter().any(|(path, question)| path == at && question.who == *who) {
            return Err(Error::Config(format!("`{who}` asks nothing")));
        }
        self.append(at, [Body::Answered { to: who.clone(), text: text.into() }]).await?;
        Ok(())
    }

    /// Opens a closed conversation again, for instance under a higher limit. One that is not closed stays as it is.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn reopen(&mut self) -> Result<()> {
        if self.transcript().await?.closed().is_some() {
            self.append(&Path::root(), [Body::Reopened]).await?;
        }
        Ok(())
    }

    /// Ends a conversation for good from outside: the outermost chat is closed, because of `by`. One that is closed stays
    /// as it is.
    ///
    /// # Errors
    /// When it has not begun, or the store cannot be written.
    pub async fn close(&mut self, by: &str) -> Result<()> {
        let transcript = self.transcript().await?;
        if !transcript.is_open() {
            return Err(Error::Config(format!("the conversation `{}` has not begun", self.id)));
        }
        if transcript.closed().is_none() {
            let reason = Reason::Stopped { by: by.to_owned() };
            let summary = transcript.summary();
            self.append(&Path::root(), [Body::Closed { reason, summary }]).await?;
        }
        Ok(())
    }

    /// Gives the right to append back. Dropping a log does so too, but cannot tell of errors.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(self) -> Result<()> {
        Ok(self.store.release(self.claim).await?)
    }

    /// Appends, then shows.
    pub(crate) async fn append(
        &self,
        at: &Path,
        bodies: impl IntoIterator<Item = Body>,
    ) -> Result<Vec<Arc<Event>>> {
        let mut kept = self.kept.lock().await;
        self.catch_up(&mut kept).await?;
        let (time, first) = ((self.clock)(), kept.next_seq());
        let event = |(seq, body)| Arc::new(Event { seq, at: at.clone(), time, body });
        let batch: Vec<Arc<Event>> = (first..).zip(bodies).map(event).collect();
        kept.doubtful = true;
        self.store.append(&self.claim, &batch).await?;
        for event in &batch {
            kept.take_in(Arc::clone(event));
        }
        kept.doubtful = false;
        batch.iter().for_each(|event| self.live.event(event));
        Ok(batch)
    }

    /// Reads what an append left behind that failed or was dropped half-way.
    async fn catch_up(&self, kept: &mut Kept) -> Result<(), StoreError> {
        if kept.doubtful {
            for event in self.store.read(&self.id, kept.next_seq()).await? {
                kept.take_in(Arc::new(event));
            }
            kept.doubtful = false;
        }
        Ok(())
    }

    /// Whether another model call of `who` is within the limits; how many came to an end before.
    pub(crate) async fn admit(&self, who: &Name) -> Result<u64> {
        let kept = self.kept.lock().await;
        match self.limits.exceeded(&kept.spent, kept.unpriced.as_ref()) {
            Some(reason) => Err(Error::Limit(reason)),
            None => Ok([&kept.calls, &kept.failures].iter().filter_map(|count| count.get(who)).sum()),
        }
    }

    /// Whether another turn is within the limits.
    pub(crate) async fn admit_turn(&self) -> Result<()> {
        match self.limits.turns {
            Some(limit) if self.turns().await >= limit => Err(Error::Limit(Reason::Turns { limit })),
            _ => Ok(()),
        }
    }

    pub(crate) const fn depth(&self) -> usize {
        self.limits.depth
    }

    pub(crate) const fn live(&self) -> &Live {
        &self.live
    }

    /// Waits for `work`, or for the order to stop at once.
    pub(crate) async fn unless_halted<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        match select(pin!(work), pin!(self.halt.wait(Order::Now))).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(Error::Halted),
        }
    }

    /// Whether another step may begin.
    pub(crate) fn check_halt(&self) -> Result<()> {
        if self.halt.order() >= Order::AfterStep { Err(Error::Halted) } else { Ok(()) }
    }
}

impl Limits {
    fn exceeded(&self, spent: &Spent, unpriced: Option<&Arc<str>>) -> Option<Reason> {
        if spent.calls >= self.calls {
            return Some(Reason::Calls { limit: self.calls });
        }
        if let Some(limit) = self.cost {
            if spent.cost >= limit {
                return Some(Reason::Cost { limit, spent: spent.cost });
            }
            if let Some(model) = unpriced {
                return Some(Reason::Unpriced { model: Arc::clone(model) });
            }
        }
        let limit = self.tokens?;
        let used = spent.tokens();
        (used >= limit).then_some(Reason::Tokens { limit, used })
    }
}

fn system_time() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Stops runs of one log from outside. What was appended stays, and the run can be resumed.
#[derive(Debug, Clone)]
pub struct Halt(Arc<watch::Sender<Order>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    Run,
    AfterStep,
    Now,
}

impl Default for Halt {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Order::Run)))
    }
}

impl Halt {
    /// Lets the turns that have begun end, and begins no other.
    pub fn after_step(&self) {
        self.0.send_if_modified(|order| {
            std::mem::replace(order, (*order).max(Order::AfterStep)) < Order::AfterStep
        });
    }

    /// Breaks off model and tool calls in flight.
    pub fn now(&self) {
        self.0.send_replace(Order::Now);
    }

    /// Lets the next run go on.
    pub fn clear(&self) {
        self.0.send_replace(Order::Run);
    }

    fn order(&self) -> Order {
        *self.0.borrow()
    }

    async fn wait(&self, order: Order) {
        // The sender lives as long as `self`, so this ends only with the order.
        let _ = self.0.subscribe().wait_for(|given| *given >= order).await;
    }
}
