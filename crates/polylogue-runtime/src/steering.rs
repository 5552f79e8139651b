//! Instructions to conversations from outside: posted to the inbox in the store, and taken by the process that runs them.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{
    Body, Due, Event, InboxMessage, Instruction, ListQuery, Listing, Log, LogId, LogState, Message,
    OpenQuestion, OpenState, Opening, Path, Progress, Queue as _, Store as _, StoreError, Summary, Timestamp,
    Transcript,
};

use crate::inbox::take_in;
use crate::moving::unfinished_chats;
use crate::stored::{fresh_id, is_imported, stored_limits};
use crate::{Conversation, Error, Result, Runtime};

/// The result of an instruction to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steered {
    /// It was carried out: its event is in the log.
    Done {
        /// The number of that event.
        seq: u64,
    },
    /// The conversation does not allow it, for this reason. The log says so, too.
    Refused(Arc<str>),
    /// It was stored. The process that runs the conversation takes it, or the next one that does.
    Posted,
}

impl Steered {
    /// What the event says that carries an instruction out, or refuses it.
    fn by(event: &Event) -> Self {
        match &event.body {
            Body::Refused { why, .. } => Self::Refused(Arc::clone(why)),
            _ => Self::Done { seq: event.seq },
        }
    }
}

/// Identifies an instruction: a second one with the same key is not given.
///
/// ```
/// use polylogue_runtime::steering::InstructionKey;
///
/// let key = InstructionKey { request: Some("5d0c9e1f".into()), ..InstructionKey::from("from the shop, 17") };
/// # let _ = key;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionKey {
    /// The key.
    pub key: Arc<str>,
    /// Identifies the request that gives the instruction: [`InboxMessage::request`].
    pub request: Option<Arc<str>>,
}

impl InstructionKey {
    /// A key of its own, for an instruction that is given once.
    #[must_use]
    pub fn fresh() -> Self {
        Self::from(fresh_id().as_str())
    }
}

impl From<&str> for InstructionKey {
    fn from(key: &str) -> Self {
        Self { key: key.into(), request: None }
    }
}

/// An instruction that is stored in the inbox of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostedInstruction {
    /// Its number there.
    number: u64,
    /// How many events the conversation had before.
    after: u64,
}

/// How often the sender of an instruction looks whether it is carried out.
const POLL: Duration = Duration::from_millis(50);

/// How long the sender of an instruction waits for the process that runs the conversation.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many events are read at once to find an opening.
const FIRST_EVENTS: u64 = 16;

/// How many of the last events are read at first to find open questions.
const LAST_EVENTS: u64 = 64;

impl Runtime {
    /// Sends `message` into the conversation `id`, as [`Conversation::send`](crate::Conversation::send) does if this process has it open, and else as
    /// [`steer`](Self::steer) does.
    ///
    /// # Errors
    /// When it has not begun, or the store cannot be written.
    pub async fn send(&self, id: &LogId, message: Message) -> Result<()> {
        if let Some(conversation) = self.get(id) {
            return conversation.send(message).await;
        }
        match self.steer(id, Instruction::Send(message)).await? {
            Steered::Done { .. } | Steered::Posted => Ok(()),
            Steered::Refused(_) => Err(Error::NotSent { id: id.clone() }),
        }
    }

    /// Gives `instruction` to the conversation `id`, whichever process runs it, if any. It is stored before anything else, and in the
    /// log exactly once, even if this process or the one that runs the conversation is killed. If no process runs it, it is carried
    /// out here; else this waits for at most three seconds until the other process has done it.
    ///
    /// # Errors
    /// [`Error::NotBegun`], [`Error::Imported`], or when the store cannot be written.
    pub async fn steer(&self, id: &LogId, instruction: Instruction) -> Result<Steered> {
        self.steer_once(id, instruction, InstructionKey::fresh()).await
    }

    /// Steers as [`steer`](Self::steer), with an idempotency key: an instruction with the key of an earlier one is not given
    /// again, and this returns what became of that one.
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    pub async fn steer_once(
        &self,
        id: &LogId,
        instruction: Instruction,
        key: impl Into<InstructionKey>,
    ) -> Result<Steered> {
        let key = key.into();
        let about = self.listing(id).await?;
        let posted = self.post_once(&about, instruction, key).await?;
        self.carry_out(id, posted).await
    }

    /// Stores `instruction` in the inbox of the conversation of `about`, its entry in a list of this moment, as the first part of
    /// [`steer_once`](Self::steer_once). [`carry_out`](Self::carry_out) is the second, or opening the conversation, which takes in what is in its inbox:
    /// [`Conversation::outcome_of`].
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    pub async fn post_once(
        &self,
        about: &Listing,
        instruction: Instruction,
        key: impl Into<InstructionKey>,
    ) -> Result<PostedInstruction> {
        let InstructionKey { key, request } = key.into();
        let Listing { id, summary, .. } = about;
        // A title is no part of what was said.
        if !matches!(instruction, Instruction::ChangeTitle { .. }) {
            self.check_own(id).await?;
        }
        // What a team has said begins with its opening.
        let has_begun = about.has_team && !about.is_damaged && summary.progress != Progress::New;
        if !has_begun && self.opening(id).await?.is_none() {
            return Err(self.not_begun(id).await?);
        }
        let message = InboxMessage { key, request, posted: Timestamp::now(), instruction };
        let number = self.store().post(id, &message).await?;
        Ok(PostedInstruction { number, after: summary.events })
    }

    /// Carries out what was [posted](Self::post_once) to the conversation `id`, as [`steer`](Self::steer) does.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn carry_out(&self, id: &LogId, posted: PostedInstruction) -> Result<Steered> {
        let PostedInstruction { number, after: mut read } = posted;
        let begun = std::time::Instant::now();
        // What the log had before tells only of one that was given before: it is looked at if nothing else tells.
        let mut is_looked_up = false;
        loop {
            if let Some(steered) = self.carried_out(id, number, &mut read).await? {
                return Ok(steered);
            }
            let is_free = match self.get(id) {
                Some(open) => open.take_in_inbox().await?,
                None => self.take_in_inbox(id).await?,
            };
            if let Some(steered) = self.carried_out(id, number, &mut read).await? {
                return Ok(steered);
            }
            if !std::mem::replace(&mut is_looked_up, true)
                && let Some(steered) = self.carried_out(id, number, &mut 0).await?
            {
                return Ok(steered);
            }
            if is_free || begun.elapsed() > PATIENCE {
                return Ok(Steered::Posted);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Returns the error that the conversation `id`, which has no opening, has not begun.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn not_begun(&self, id: &LogId) -> Result<Error> {
        let is_queued = match self.store().queue() {
            Some(queue) => queue.is_queued(id).await?,
            None => false,
        };
        Ok(Error::NotBegun { id: id.clone(), is_queued })
    }

    /// What became of the message `number`, if the log has it after the event that was `read` last.
    async fn carried_out(&self, id: &LogId, number: u64, read: &mut u64) -> Result<Option<Steered>> {
        let events = self.store().read(id, *read).await?;
        *read = events.last().map_or(*read, |event| event.seq.saturating_add(1));
        Ok(events.iter().rev().find(|event| event.inbox == Some(number)).map(Steered::by))
    }

    /// Returns the entry of the conversation `id` in the list.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when the store cannot be read.
    pub async fn listing(&self, id: &LogId) -> Result<Listing> {
        let query = ListQuery { id: Some(id.to_string()), ..ListQuery::default() };
        let listing = self.list(&query).await?.logs.into_iter().find(|listing| listing.id == *id);
        Ok(listing.ok_or_else(|| StoreError::NotFound { id: id.clone() })?)
    }

    /// Returns whether a process has the conversation open.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn is_claimed(&self, id: &LogId) -> Result<bool> {
        Ok(self.get(id).is_some() || self.store().holder(id).await?.is_some())
    }

    /// Returns whether the conversation of `listing` runs, and why not otherwise, if it is [open](LogState::Open); `None` in other states.
    /// Where a store cannot say which processes run, such as in a file that cannot be written, none does.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn open_state(&self, listing: &Listing) -> Result<Option<OpenState>> {
        if listing.state() != LogState::Open {
            return Ok(None);
        }
        let (is_claimed, is_queued) = match self.claimed_and_queued(&listing.id).await {
            // It was removed since it was listed, or the file cannot be written.
            Err(Error::Run(polylogue_core::Error::Store(
                StoreError::NotFound { .. }
                | StoreError::ReadOnly { .. }
                | StoreError::Full { .. }
                | StoreError::Damaged { .. },
            ))) => (false, false),
            known => known?,
        };
        Ok(listing.open_state(is_claimed, is_queued))
    }

    /// Whether a process has the conversation open, and whether workers look at it.
    async fn claimed_and_queued(&self, id: &LogId) -> Result<(bool, bool)> {
        if self.is_claimed(id).await? {
            return Ok((true, false));
        }
        Ok(match self.store().queue() {
            Some(queue) => (false, queue.is_queued(id).await?),
            None => (false, false),
        })
    }

    /// Returns the process that has the conversation open, and its machine; `None` if none has.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn node_of(&self, id: &LogId) -> Result<Option<String>> {
        let holder = self.store().holder(id).await?;
        // Without the rest of its lease.
        Ok(holder.map(|holder| holder.split(", whose lease").next().unwrap_or_default().to_owned()))
    }

    /// Carries out what is in the inbox of a conversation that no process runs. Returns whether none does.
    async fn take_in_inbox(&self, id: &LogId) -> Result<bool> {
        let log = match Log::open(self.store().clone(), id.clone()).await {
            Err(polylogue_core::Error::Store(StoreError::Busy { .. })) => return Ok(false),
            log => log?,
        };
        let messages = self.untaken(&log).await?;
        let raises = |message: &InboxMessage| {
            matches!(
                message.instruction,
                Instruction::RaiseLimits { .. }
                    | Instruction::RaiseAgentLimits { .. }
                    | Instruction::RaiseChatLimits { .. }
            )
        };
        // Only these depend on the limits, which are those of the team that is stored.
        let mut log = match messages.iter().any(|(_, message)| raises(message)) {
            true => {
                let (meta, events) = (self.store().meta(id).await?, log.events().await);
                stored_limits(id, meta, &events)?.set(log)
            }
            false => log,
        };
        let continues = take_in(&mut log, messages).await?;
        let summary = Summary::of(log.events().await.iter().map(|event| &**event), true);
        if summary.is_stopped() {
            let is_queued = match self.store().queue() {
                Some(queue) => queue.is_queued(id).await?,
                None => false,
            };
            match summary.cancelled.is_some() || is_queued {
                // Workers that had to look at it would leave it.
                true => log.release_at_rest(Due::Never).await?,
                // One that is parked stays so: a pause does not mend what has failed.
                false => log.release().await?,
            }
            return Ok(true);
        }
        if continues && let Some(queue) = self.store().queue() {
            // What came under this claim does not wake it by itself: nothing here runs it.
            queue.schedule(id, Due::Now, None).await?;
        }
        log.release().await?;
        Ok(true)
    }

    /// The inbox messages that `log` does not have.
    pub(crate) async fn untaken(&self, log: &Log) -> Result<Vec<(u64, InboxMessage)>> {
        Ok(self.store().inbox(log.id(), log.handle().taken_until().await).await?)
    }

    /// Cancels the conversation `id` if workers would continue it by themselves, such as after a failed turn: they leave it alone until it is
    /// resumed. Returns whether it is such a one.
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    pub async fn cancel_queued(&self, id: &LogId, now: bool) -> Result<bool> {
        let Some(queue) = self.store().queue() else { return Ok(false) };
        if !queue.is_queued(id).await? {
            return Ok(false);
        }
        if self.opening(id).await?.is_none() {
            return self.withdraw(id).await;
        }
        self.steer(id, Instruction::Cancel { now }).await.map(|_| true)
    }

    /// Returns the opening of the outermost chat of the conversation `id`; `None` if it has not begun. Only the versions of its
    /// team to which it was moved can be before it in the log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn opening(&self, id: &LogId) -> Result<Option<Opening>> {
        let mut from = 0;
        loop {
            let events = self.store().read_range(id, from..from + FIRST_EVENTS).await?;
            let is_all = (events.len() as u64) < FIRST_EVENTS;
            let opening = events.into_iter().find_map(|event| match event.body {
                Body::Opened(opening) if event.chat.is_root() => Some(opening),
                _ => None,
            });
            if is_all || opening.is_some() {
                return Ok(opening);
            }
            from += FIRST_EVENTS;
        }
    }

    /// Has no worker begin a conversation that has not begun. Returns whether it is still such a one.
    async fn withdraw(&self, id: &LogId) -> Result<bool> {
        let log = match Log::open(self.store().clone(), id.clone()).await {
            Err(polylogue_core::Error::Store(StoreError::Busy { .. })) => return Ok(false),
            log => log?,
        };
        let has_begun = log.has_begun().await?;
        match has_begun {
            true => log.release().await?,
            false => log.release_at_rest(Due::Never).await?,
        }
        Ok(!has_begun)
    }

    /// Returns the questions of the conversation `id` that wait for people, oldest first.
    ///
    /// # Errors
    /// When there is no such conversation, or the store cannot be read.
    pub async fn open_questions(&self, id: &LogId) -> Result<Vec<OpenQuestion>> {
        self.open_questions_of(&self.listing(id).await?).await
    }

    /// Returns the questions that waited for people when `about` was the entry of their conversation in the list, oldest first; none of an
    /// imported conversation, which no one can answer. Reads no more of the log, from its end, than has them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn open_questions_of(&self, about: &Listing) -> Result<Vec<OpenQuestion>> {
        let Listing { id, summary, .. } = about;
        if summary.questions.is_empty() && !about.is_damaged || is_imported(&self.store().meta(id).await?) {
            return Ok(Vec::new());
        }
        let mut length = LAST_EVENTS;
        loop {
            let from = summary.events.saturating_sub(length);
            let events = self.store().read_range(id, from..summary.events).await?;
            let events: Vec<Arc<Event>> = events.into_iter().map(Arc::new).collect();
            // What settles a question comes after it.
            let open = OpenQuestion::of(&events);
            if from == 0 || open.len() >= summary.questions.len() {
                return Ok(open);
            }
            length = length.saturating_mul(4);
        }
    }

    /// Returns the question of the conversation `id` whose event has the number `seq`, if it waits for a person.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn open_question(&self, id: &LogId, seq: u64) -> Result<Option<OpenQuestion>> {
        // What settles it comes after it.
        let events: Vec<Arc<Event>> = self.store().read(id, seq).await?.into_iter().map(Arc::new).collect();
        Ok(OpenQuestion::of(&events).into_iter().find(|open| open.seq == seq))
    }

    /// Whether several turns of one step of the conversation `id` are open, or several agents that are called at the same time have turns, or
    /// a background task and another one or a step of the chat around it: while one of them asks a person, others can be in progress.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn has_parallel_turns(&self, id: &LogId) -> Result<bool> {
        let events: Vec<Arc<Event>> = self.store().read(id, 0).await?.into_iter().map(Arc::new).collect();
        let mut speaking: Vec<&Path> = Vec::new();
        for chat in unfinished_chats(&events) {
            let transcript = Transcript::from_events(chat, &events).map_err(polylogue_core::Error::Bug)?;
            let is_task = |path: &Path, around: &Path| path.as_background_of(around).is_some();
            let is_apart = |other: &&Path| {
                !chat.is_within(other) && !other.is_within(chat)
                    || is_task(chat, other)
                    || is_task(other, chat)
            };
            match transcript.current_speakers().count() {
                0 => {}
                1 if !speaking.iter().any(is_apart) => speaking.push(chat),
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Gives the default answers whose time is up, if no process runs the conversation.
    pub(crate) async fn answer_expired(&self, id: &LogId) -> Result<bool> {
        if self.check_own(id).await.is_err() {
            return Ok(false);
        }
        let log = match Log::open(self.store().clone(), id.clone()).await {
            Err(polylogue_core::Error::Store(StoreError::Busy { .. })) => return Ok(false),
            log => log?,
        };
        log.answer_expired().await?;
        log.release().await?;
        Ok(true)
    }
}

impl Conversation {
    /// Returns what became of an instruction that was [posted](Runtime::post_once) to the conversation before it was opened.
    pub async fn outcome_of(&self, posted: PostedInstruction) -> Steered {
        let events = self.events().await;
        let event = events.iter().rev().find(|event| event.inbox == Some(posted.number));
        event.map_or(Steered::Posted, |event| Steered::by(event))
    }
}
