//! The conversations that a server runs, each in a task of its own. Requests begin and continue them, and never wait for them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{
    Due, Instruction, InstructionError, LimitOverrides, LogId, LogState, OpenQuestion, Status, StoreError,
    Subscription,
};
use polylogue_runtime::Conversation;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::app::App;
use crate::attendance::POLL;
use crate::conversation::listing;
use crate::default_answers::time_is_up;
use crate::meter;
use crate::opened::{Opened, close, open, was_withdrawn};
use crate::promised::Promise;
use crate::slots::{Running, Slot};
use crate::spending::{PaidRun, Payer};
use crate::tenants::Tenant;

/// How a conversation begins to run; the default is as after a message for which no client waits.
#[derive(Default)]
pub(crate) struct StartOptions {
    /// Receives everything that happens from the beginning of the run on.
    pub(crate) follower: Option<oneshot::Sender<Subscription>>,
    /// How many tokens replies of agents in the outermost chat may take from then on.
    pub(crate) reply_tokens: Option<u64>,
    /// Whether it runs only for clients that wait for its response.
    pub(crate) is_awaited: bool,
}

/// Runs a stored conversation, unless it runs already.
pub(crate) fn run_stored(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId, slot: Slot) {
    if !start_if_idle(app, tenant, id, slot, StartOptions::default()) {
        renew(app, tenant, id);
    }
}

/// Notes that a conversation that runs does so for someone who does not wait for a response, too: also after a restart.
pub(crate) fn renew(app: &App, tenant: &Tenant, id: &LogId) {
    let was_awaited = tenant.runs.is_awaited(id);
    tenant.runs.renew(id);
    if was_awaited && let Err(error) = app.promised.renew(&tenant.name, id) {
        warn!(conversation = %id, %error, "after a restart, a conversation runs for its first client alone");
    }
}

/// Runs a conversation. Returns `false` if this process runs it already. If the server is stopping, the next process runs it.
pub(crate) fn start_if_idle(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    id: &LogId,
    slot: Slot,
    options: StartOptions,
) -> bool {
    let is_idle = tenant.runs.enter(id);
    if is_idle {
        spawn(app, tenant, id, slot, (None, options));
    }
    is_idle
}

/// Runs a conversation that the caller has [entered](crate::running::Runs::enter), with default options.
pub(crate) fn run(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId, slot: Slot, opened: Option<Opened>) {
    spawn(app, tenant, id, slot, (opened, StartOptions::default()));
}

/// Spawns the task of a conversation that the caller has [entered](crate::running::Runs::enter). The options are for its first run: the task
/// runs it again if something was sent to it meanwhile.
pub(crate) fn spawn(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    id: &LogId,
    slot: Slot,
    first: (Option<Opened>, StartOptions),
) {
    tenant.runs.note_task(id, first.1.is_awaited);
    let (app, payer) = (Arc::clone(app), slot.payer.clone());
    let task = Task { app, tenant: Arc::clone(tenant), id: id.clone(), payer };
    task.note();
    let (tenant, id) = (Arc::clone(tenant), id.clone());
    tokio::spawn(async move {
        tenant.runs.hold(&id, task.run(slot, first)).await;
    });
}

/// Stops a conversation, at once if `now` and else after its step: one that runs, waits until it may, or is about to be opened. Returns
/// whether this process has such a one. One that has come to rest meanwhile is none: its log must be steered.
pub(crate) async fn stop(tenant: &Tenant, id: &LogId, now: bool) -> bool {
    let is_run = tenant.runs.halt(id, Instruction::Cancel { now });
    let Some(conversation) = tenant.runtime.get(id) else { return is_run };
    // A worker of this process can run it, too.
    let instruction = if is_run { tenant.runs.take_halt(id) } else { Some(Instruction::Cancel { now }) };
    // If there is none, its run has taken it.
    let Some(instruction) = instruction else { return true };
    let confirmation = conversation.instruct(instruction);
    drop(conversation);
    !matches!(timeout(LEAVES, confirmation.confirmed()).await, Ok(Err(InstructionError::Lost)))
}

/// How long it is waited for a run that has ended its conversation to leave it, in this or another process.
const LEAVES: Duration = Duration::from_secs(2);

/// Waits for the run that has just ended the conversation to leave it. Returns whether it has.
pub(crate) async fn is_left(tenant: &Tenant, id: &LogId) -> bool {
    let mut changes = tenant.runs.changes_of(id);
    let left = async {
        while tenant.runs.is_running(id) {
            changes.changed().await;
        }
    };
    timeout(LEAVES, left).await.is_ok()
}

/// Ends the wait of a conversation that was paused while it waited until it may run, and has a run that is about to begin be paused.
pub(crate) fn pause(tenant: &Tenant, id: &LogId) {
    if tenant.runs.halt(id, Instruction::Pause) && tenant.runtime.get(id).is_some() {
        // Its run has it.
        drop(tenant.runs.take_halt(id));
    }
}

/// How a run has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It continues only when something is sent to it.
    AtRest,
    /// It waits for people, and continues with a default answer when the time of a question is up.
    Asking,
    /// The next process continues it.
    Interrupted,
}

/// The task in which a conversation runs.
struct Task {
    app: Arc<App>,
    tenant: Arc<Tenant>,
    id: LogId,
    payer: Payer,
}

impl Task {
    async fn run(self, slot: Slot, first: (Option<Opened>, StartOptions)) {
        let ((mut next, mut options), Slot { mut running, mut queued, .. }) = (first, slot);
        loop {
            let mut ended = Ended::Interrupted;
            // It has none yet, or none any more if it ended while it was paused.
            if self.may_run(running.take(), next.as_ref()).await {
                drop(queued.take());
                ended = self.run_once(next.take(), std::mem::take(&mut options), &mut running).await;
            } else {
                // The end of its wait is all that was asked for.
                drop(self.tenant.runs.take_halt(&self.id));
                if let Some(opened) = next.take() {
                    close(opened, if self.app.is_stopping() { Due::Now } else { Due::Never }).await;
                }
            }
            if ended == Ended::AtRest {
                self.clear();
            }
            let (again, halt) = self.tenant.runs.leave_with_halt(&self.id);
            if !again {
                stop_at_rest(&self.app, &self.tenant, &self.id, halt).await;
                if ended == Ended::Asking {
                    continue_in_time(&self.app, &self.tenant, &self.id);
                }
                return;
            }
            self.note();
        }
    }

    /// Waits for its `place`. Returns whether it may run: not if the server or a person stops it before.
    async fn may_run(&self, place: impl Future<Output = ()>, opened: Option<&Opened>) -> bool {
        let mut stopping = self.app.stopping.subscribe();
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => false,
            () = self.tenant.runs.unqueued(&self.id) => {
                self.clear();
                false
            }
            () = place => true,
            () = self.halted_elsewhere(opened) => {
                // It is not run once more for what was sent to it until then.
                self.tenant.runs.halt(&self.id, Instruction::Pause);
                self.clear();
                false
            }
        }
    }

    /// Resolves when another process pauses or cancels it while it is open here and waits for its place.
    async fn halted_elsewhere(&self, opened: Option<&Opened>) {
        if let Some(Opened { conversation, .. }) = opened {
            match conversation.halted_elsewhere().await {
                Ok(()) => return,
                // Its run says so, too.
                Err(error) => {
                    warn!(conversation = %self.id, %error, "the inbox of a conversation cannot be read")
                }
            }
        }
        std::future::pending().await
    }

    /// Opens it, unless it is open. One that another process has paused or cancelled while it waited for its place stays so.
    async fn opened(&self, opened: Option<Opened>) -> Result<Opened, Ended> {
        if let Some(opened) = opened {
            return Ok(opened);
        }
        let Self { app, tenant, id, payer } = self;
        let opened = open(app, tenant, id, LimitOverrides::default(), payer).await.map_err(|problem| {
            warn!(conversation = %id, %problem, "a conversation cannot be continued");
            Ended::Interrupted
        })?;
        let is_paused = opened.conversation.is_paused().await;
        if is_paused || was_withdrawn(app, tenant, &opened.conversation).await {
            close(opened, Due::Never).await;
            return Err(Ended::AtRest);
        }
        Ok(opened)
    }

    /// Runs it until it is at rest.
    async fn run_once(&self, opened: Option<Opened>, options: StartOptions, running: &mut Running) -> Ended {
        let Self { app, tenant, id, payer } = self;
        let opened = match self.opened(opened).await {
            Ok(opened) => opened,
            Err(ended) => return ended,
        };
        if tenant.runtime.has_successors()
            && let Err(error) = opened.conversation.continue_if_lost().await
        {
            warn!(conversation = %id, %error, "no worker will continue a conversation if this server dies");
        }
        if let Some(follower) = options.follower {
            // Fails only if the client has gone away.
            drop(follower.send(opened.conversation.subscribe().await));
        }
        tenant.runs.note_change(id);
        if let Some(halt) = tenant.runs.take_halt(id) {
            drop(opened.conversation.instruct(halt));
        }
        let from = opened.conversation.events().await.len() as u64;
        let paid = match app.spending.note(payer, &tenant.name, id, from) {
            Ok(paid) => paid,
            Err(error) => {
                warn!(conversation = %id, %error, "a conversation does not run: what it spends could not be counted");
                close(opened, Due::Now).await;
                return Ended::Interrupted;
            }
        };
        let limited = match options.reply_tokens {
            Some(most) => opened.conversation.limit_replies(most).await,
            None => Ok(()),
        };
        let status = match limited {
            Ok(()) => self.run_in_place(&opened.conversation, running).await,
            Err(error) => Err(error),
        };
        match &status {
            Ok(_) => info!(conversation = %id, "a conversation has stopped running"),
            Err(error) => warn!(conversation = %id, %error, "a conversation has failed"),
        }
        // While it is claimed, so that no one removes it before.
        settle(app, paid, &opened.conversation).await;
        if let Ok(Status::Closed { .. } | Status::Waiting(_)) = status {
            lift_reply_limit(&opened.conversation).await;
        }
        let is_of_later_version = is_of_later_version(&status);
        let has_default = has_default(&opened.conversation).await;
        let ended = match status {
            Ok(Status::Cancelled) if app.is_stopping() => Ended::Interrupted,
            Ok(Status::Waiting(_)) if has_default => Ended::Asking,
            _ => Ended::AtRest,
        };
        // Workers continue what a server that stops was running, and those of a later version what only they can. What has failed waits for
        // a person.
        let is_for_workers = ended == Ended::Interrupted || is_of_later_version;
        close(opened, if is_for_workers { Due::Now } else { Due::Never }).await;
        ended
    }

    /// Runs it. While it is paused, others run in its place; it continues when it is resumed and has a place again.
    async fn run_in_place(
        &self,
        conversation: &Conversation,
        running: &mut Running,
    ) -> polylogue_runtime::Result<Status> {
        let mut run = pin!(meter::run(&self.tenant, conversation));
        loop {
            tokio::select! {
                biased;
                status = &mut run => return status,
                () = conversation.rests() => {}
            }
            // Unless it was resumed just now.
            let Some(hold) = conversation.hold() else { continue };
            running.leave();
            self.tenant.runs.set_resting(&self.id, true);
            let returns = async {
                conversation.resumed().await;
                self.tenant.runs.set_resting(&self.id, false);
                running.take().await;
            };
            tokio::select! {
                biased;
                status = &mut run => return status,
                () = returns => {}
            }
            drop(hold);
        }
    }

    fn note(&self) {
        promise(&self.app, &self.tenant, &self.id, &self.payer);
    }

    fn clear(&self) {
        take_back(&self.app, &self.tenant, &self.id);
    }
}

/// Carries out a cancellation that came for a conversation before the right to run it was given up, and that no run has taken.
pub(crate) async fn stop_at_rest(app: &App, tenant: &Tenant, id: &LogId, halt: Option<Instruction>) {
    let Some(halt @ Instruction::Cancel { .. }) = halt else { return };
    take_back(app, tenant, id);
    if let Err(error) = tenant.runtime.steer(id, halt).await {
        warn!(conversation = %id, %error, "a conversation that has come to rest cannot be cancelled");
    }
}

/// Whether a run has ended because of an instruction that only a later version knows.
const fn is_of_later_version(status: &polylogue_runtime::Result<Status>) -> bool {
    use polylogue_core::Error;
    matches!(status, Err(polylogue_runtime::Error::Run(Error::Store(StoreError::UnknownInstruction { .. }))))
}

/// Notes what a run has used that has ended.
async fn settle(app: &App, paid: Option<PaidRun>, conversation: &Conversation) {
    if let Some(paid) = paid
        && let Err(error) = app.spending.settle(paid, &conversation.events().await)
    {
        warn!(
            conversation = %conversation.id(), %error,
            "what a run has spent is counted from its log: today, the conversation must not be removed"
        );
    }
}

/// Ends a limit on the length of replies: it was for the response that has ended.
async fn lift_reply_limit(conversation: &Conversation) {
    if let Err(error) = conversation.limit_replies(Conversation::ANY_REPLY_LENGTH).await {
        warn!(conversation = %conversation.id(), %error, "later replies are limited as those of an earlier response");
    }
}

/// Whether a question for which it waits has a default answer.
async fn has_default(conversation: &Conversation) -> bool {
    OpenQuestion::of(&conversation.events().await).iter().any(|open| open.until().is_some())
}

/// Continues a conversation that waits for people when the time of a question is up.
pub(crate) fn continue_in_time(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId) {
    let (app, tenant, id) = (Arc::clone(app), Arc::clone(tenant), id.clone());
    tokio::spawn(async move {
        while let Some(noted) = time_is_up(&app, &tenant, &id).await {
            if !is_held(&tenant, &id).await {
                // The response that has ended with the question had its client.
                return resume(&app, &tenant, &id, (app.spending.payer_of(noted), false));
            }
            // A worker that has it gives the answer. Other processes have it for a moment only.
            if !looks_again(&app).await {
                return;
            }
        }
    });
}

/// Notes that the next process of the server continues the conversation, if this one ends before it is at rest.
pub(crate) fn promise(app: &App, tenant: &Tenant, id: &LogId, payer: &Payer) {
    let promise = Promise { payer: payer.noted.clone(), is_awaited: tenant.runs.is_awaited(id) };
    if let Err(error) = app.promised.note(&tenant.name, id, &promise) {
        warn!(conversation = %id, %error, "a restart will not continue a conversation");
    }
}

/// Notes that no process need continue it.
pub(crate) fn take_back(app: &App, tenant: &Tenant, id: &LogId) {
    if let Err(error) = app.promised.remove(&tenant.name, id) {
        warn!(conversation = %id, %error, "a restart will continue a conversation");
    }
}

/// Continues it, however many others wait until they may run. `is_awaited`: as in [`StartOptions`].
pub(crate) fn resume(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId, (payer, is_awaited): (Payer, bool)) {
    info!(conversation = %id, "a conversation is continued");
    let slot = app.slots.wait(&format!("tenant {}", tenant.name), payer);
    match start_if_idle(app, tenant, id, slot, StartOptions { is_awaited, ..StartOptions::default() }) {
        true => tenant.runs.adopt(id),
        false => renew(app, tenant, id),
    }
}

/// Whether a process has claimed it.
pub(crate) async fn is_held(tenant: &Tenant, id: &LogId) -> bool {
    // Running it says what is wrong.
    tenant.runtime.is_claimed(id).await.unwrap_or(false)
}

/// Waits until no process has a conversation open, but not for long.
pub(crate) async fn until_free(tenant: &Tenant, id: &LogId) {
    let until = Instant::now() + LEAVES;
    while is_held(tenant, id).await && Instant::now() < until {
        sleep(POLL).await;
    }
}

/// How often it is looked whether a conversation is free that another process has.
const HELD: Duration = Duration::from_secs(2);

/// Waits until it is time to look again. Returns `false` if the server stops before.
async fn looks_again(app: &App) -> bool {
    let mut stopping = app.stopping.subscribe();
    tokio::select! {
        _ = stopping.wait_for(|stopping| *stopping) => false,
        () = sleep(HELD) => true,
    }
}

/// Continues a conversation when no other process has it. In a shared store, the claim of a process that was killed lasts a minute longer than its
/// lease; a worker is faster, and runs it to its end.
pub(crate) async fn resume_when_free(app: Arc<App>, tenant: Arc<Tenant>, id: LogId, payer: Payer) {
    info!(conversation = %id, "a conversation is continued when no other process has it");
    while looks_again(&app).await {
        // It was stopped, or another request has continued it.
        if tenant.runs.is_running(&id) || app.promised.payer(&tenant.name, &id).is_none() {
            return;
        }
        match listing(&tenant, &id).await {
            // One that waits for people may have other turns to continue.
            Ok(listing)
                if matches!(listing.state(), LogState::Open | LogState::Failed | LogState::Waiting)
                    && !listing.summary.is_paused => {}
            Err(problem) if !problem.is_not_found() => continue,
            // It is at rest, or was removed.
            _ => return take_back(&app, &tenant, &id),
        }
        if !is_held(&tenant, &id).await {
            let is_awaited = app.promised.is_awaited(&tenant.name, &id);
            return resume(&app, &tenant, &id, (payer, is_awaited));
        }
    }
}

/// Stops all conversations after their steps, so that the next start continues them, and after a time at once.
pub(crate) async fn stop_all(app: &App) {
    let tenants = app.tenants.used();
    let stop = |now: bool| {
        for tenant in &tenants {
            let open = tenant.runs.ids().into_iter().filter_map(|id| tenant.runtime.get(&id));
            open.for_each(|conversation| match now {
                true => conversation.cancellation().cancel_now(),
                false => conversation.cancellation().cancel_after_step(),
            });
        }
    };
    let at_rest = async {
        for tenant in &tenants {
            let mut changes = tenant.runs.changes();
            while tenant.runs.count() > 0 {
                // One that was being opened when the others were stopped is open now.
                stop(false);
                if changes.changed().await.is_err() {
                    break;
                }
            }
        }
    };
    if timeout(app.limits.stop_time, at_rest).await.is_err() {
        stop(true);
    }
}
