//! Opening stored conversations.

use std::time::{Duration, Instant};

use polylogue::runs::worker::is_stopped;
use polylogue_core::{
    Body, Chat, Claim, Event, InboxMessage, Log, LogId, LogState, Meta, StoreError, Summary,
};

use super::{OpenOptions, Runtime, timed};
use crate::budgets::Paying;
use crate::conversation::{Conversation, Opened};
use crate::inbox::take_in;
use crate::stored::{StoredBound, StoredDocument, StoredLimits, limits_of_lost, overrides_of};
use crate::{Prepared, Result};

/// How long a process that was just killed may hold a conversation: until a program that it was about to start has
/// closed what it inherited.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a conversation continues with the version of its team of this `digest` from `event` on.
fn continues_with(event: &Event, digest: &str) -> bool {
    matches!(&event.body, Body::TeamChanged(changed) if *changed.digest == *digest)
}

/// A stored conversation that this process has claimed, and whose team is not prepared yet. Dropping it releases the claim.
pub struct ClaimedConversation {
    log: Log,
    meta: Meta,
    /// What is in its inbox, and not in its log. What comes later is delivered to its run.
    messages: Vec<(u64, InboxMessage)>,
}

impl ClaimedConversation {
    /// Returns the document that is stored with the conversation for its next run: of the team with which it continued last.
    ///
    /// # Errors
    /// [`Error::NoTeam`](crate::Error::NoTeam) when its own program began it.
    pub async fn document(&self) -> Result<StoredDocument> {
        StoredDocument::of_events(self.log.id(), self.meta.clone(), &self.log.events().await)
    }

    /// Whether nothing is to be done, such as when another process has run it since it was due: it is closed, or a person has stopped it,
    /// and nothing new is in its inbox.
    pub(crate) async fn is_at_rest(&self) -> bool {
        let events = self.log.events().await;
        let is_taken = |number: u64| events.iter().any(|event| event.inbox == Some(number));
        let has_news = self.messages.iter().any(|(number, _)| !is_taken(*number));
        let summary = Summary::of(events.iter().map(|event| &**event), true);
        let is_over = matches!(summary.state(), LogState::Done | LogState::Ended);
        !has_news && (is_over || is_stopped(&events))
    }

    /// Releases the claim: when workers look at the conversation stays unchanged.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(self) -> Result<()> {
        Ok(self.log.release().await?)
    }
}

impl Runtime {
    /// Opens the stored conversation `id`, of which `prepared` is the team. One that this process has open is returned
    /// again, with the agents that it has.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another process runs it, or when it is damaged; [`Error::Imported`](crate::Error::Imported).
    pub async fn open(&self, id: &LogId, prepared: &Prepared, options: OpenOptions) -> Result<Conversation> {
        self.open_version(id, (prepared, None), options).await
    }

    /// As [`open`](Self::open), with another version of its team than `before`, the one with which it continued last: calls that
    /// [may have been in flight](Self::may_have_lost_calls) when its process died are charged as `before` makes them, since another version can
    /// make others.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_version(
        &self,
        id: &LogId,
        (prepared, before): (&Prepared, Option<&Prepared>),
        options: OpenOptions,
    ) -> Result<Conversation> {
        if let Some(conversation) = self.get(id) {
            return Ok(conversation);
        }
        let meta = self.own_meta(id).await?;
        let chat = Self::chat_of(id, prepared)?;
        let log = self.claim(id, options.take_over).await?;
        let claimed = self.with_inbox(log, meta).await?;
        self.opened_log(chat, claimed, (prepared, before), options).await
    }

    /// Claims the stored conversation `id` before its team is prepared, which its [document](ClaimedConversation::document) names: its log
    /// is read once. [`open_prepared`](Self::open_prepared) opens it.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when this or another process has it open, or when it is damaged; [`Error::Imported`](crate::Error::Imported).
    pub async fn claim_unprepared(&self, id: &LogId) -> Result<ClaimedConversation> {
        let meta = self.own_meta(id).await?;
        let log = self.claim(id, false).await?;
        self.with_inbox(log, meta).await
    }

    /// Reads as [`claim_unprepared`](Self::claim_unprepared) a conversation that a worker has claimed.
    pub(crate) async fn read_claimed(&self, claim: &Claim) -> Result<ClaimedConversation> {
        let meta = self.own_meta(&claim.id).await?;
        let log = Log::open_claimed(self.store().clone(), claim.clone()).await?;
        self.with_inbox(log, meta).await
    }

    async fn with_inbox(&self, log: Log, meta: Meta) -> Result<ClaimedConversation> {
        let messages = self.untaken(&log).await?;
        Ok(ClaimedConversation { log, meta, messages })
    }

    /// Opens a conversation that was [claimed](Self::claim_unprepared), as [`open`](Self::open).
    ///
    /// # Errors
    /// As [`open`](Self::open). Its claim is released.
    pub async fn open_prepared(
        &self,
        claimed: ClaimedConversation,
        prepared: &Prepared,
        options: OpenOptions,
    ) -> Result<Conversation> {
        let chat = Self::chat_of(claimed.log.id(), prepared)?;
        self.opened_log(chat, claimed, (prepared, None), options).await
    }

    fn chat_of(id: &LogId, prepared: &Prepared) -> Result<Chat> {
        let run = prepared.run();
        run.make_work_dir(id)?;
        run.chat(id)
    }

    async fn opened_log(
        &self,
        chat: Chat,
        ClaimedConversation { log, meta, messages }: ClaimedConversation,
        (prepared, earlier): (&Prepared, Option<&Prepared>),
        options: OpenOptions,
    ) -> Result<Conversation> {
        let (run, id) = (prepared.run(), &log.id().clone());
        let of_team = prepared.limits_of(run.team());
        let log = log.forked_from(meta.parent.as_ref());
        // What the inbox raises, it raises from the limits that the conversation has.
        let events = log.events().await;
        let before = overrides_of(&meta, &events);
        // Before the inbox is taken in, of which calls of an earlier process know nothing.
        let lost_under = limits_of_lost(earlier.map_or(of_team, Prepared::team_limits), &meta, &events);
        let mut log = StoredLimits::of(before.apply_to(of_team), run.team(), &events).set(log);
        let is_continued = take_in(&mut log, messages).await? && self.store().queue().is_some();
        if is_continued {
            // It is due as if what came under this claim had come before it.
            log.continue_if_lost().await?;
        }
        let events = log.events().await;
        run.restore_work_dir(id, self.store(), &events).await?;
        let before = overrides_of(&meta, &events);
        // That of another version of the team says nothing. A change in the log ends it by itself, if it is not harmless.
        let is_same = meta.team.get("digest").and_then(|of| of.as_str()) == Some(prepared.digest());
        let is_logged = || events.iter().any(|event| continues_with(event, prepared.digest()));
        let applies = is_same || options.is_harmless_version || is_logged();
        let bound = StoredBound::of(&meta).filter(|_| applies);
        let most = bound.map(|bound| bound.with_prices(&run.prices())).unwrap_or_default();
        let overrides = log.limits_beyond(options.more).await.or(before);
        let limits = overrides.apply_to(of_team);
        let daily = options.daily.as_deref();
        let paying = self.0.shared.paying(self.place(), Some(log.id()), daily).await?;
        let budgets = self.budgets(&options.budgets).chain(Paying::all(paying.as_ref()));
        run.check_prices(&limits, budgets, daily.unwrap_or_default())?;
        [Some(prepared), earlier].into_iter().flatten().for_each(|team| team.models().learn(&events));
        let earlier = earlier.map(|earlier| Self::chat_of(id, earlier)).transpose()?;
        let changed = Some(overrides).filter(|now| *now != before);
        let (task, events, before) =
            (run.task().to_owned(), log.inherited_events(), before.apply_to(of_team));
        let opened = Opened { task, limits, before, changed, more: options.more, events, is_continued };
        let log = log.limits(limits).lost_calls_under(lost_under).bound(most);
        let log = timed(log, self.budgets(&options.budgets));
        let mut log = match paying {
            Some(paying) => paying.open(log, earlier.as_ref().unwrap_or(&chat)).await?,
            None => log,
        };
        if let Some(earlier) = &earlier {
            Box::pin(earlier.charge_lost_calls(&mut log)).await?;
        }
        let log = options.stop.into_iter().fold(log, Log::cancelled_by);
        Ok(self.register(Conversation::new(chat, log, opened, self.store().clone())))
    }

    pub(super) async fn claim(&self, id: &LogId, take_over: bool) -> Result<Log> {
        if take_over {
            return Ok(Log::take_over(self.store(), id).await?);
        }
        let begun = Instant::now();
        loop {
            match Log::open(self.store().clone(), id.clone()).await {
                Err(polylogue_core::Error::Store(StoreError::Busy { .. })) if begun.elapsed() < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                log => return Ok(log?),
            }
        }
    }
}
