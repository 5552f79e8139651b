//! From a request for a chat completion to a run: a repeated one joins the run of the first.

use std::sync::Arc;

use polylogue_core::{
    Body, Instruction, LimitOverrides, Listing, LogId, LogState, Message, Name, Part, Store as _,
    Subscription,
};
use polylogue_runtime::Conversation;
use polylogue_runtime::fork::ForkPoint;
use polylogue_runtime::steering::{InstructionKey, Steered};
use polylogue_runtime::stored::{NewLog, fresh_id};
use polylogue_wire::Scope;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::dialogue::{Continuation, task};
use super::history;
use super::request::{ChatRequest, NamedChat};
use crate::attendance::{Begun, Earlier, LEAVES, POLL};
use crate::beginning::{is_taken, make};
use crate::call::Call;
use crate::conversation::{find, is_at_rest, listing, served_team};
use crate::default_answers::is_up;
use crate::idempotency::Key;
use crate::opened::{Opened, open};
use crate::problem::Problem;
use crate::request::RequestDigest;
use crate::runs::{self, StartOptions, is_held, is_left, run_stored, until_free};
use crate::steered::{other_node, steer};
use crate::tenants::Tenant;
use crate::token::Token;
use crate::waiting::{Client, Waiting, noted};

/// A request, and who sends it.
pub(super) struct Request {
    pub(super) call: Arc<Call>,
    pub(super) token: Arc<Token>,
    pub(super) tenant: Arc<Tenant>,
    pub(super) chat: Arc<ChatRequest>,
}

/// What a request has begun or joined, and that its client waits for it.
pub(super) struct Started {
    pub(super) begun: Begun,
    /// What happens from its beginning on, unless it has begun before.
    pub(super) begins: Option<oneshot::Receiver<Subscription>>,
    pub(super) waiting: Waiting,
    pub(super) client: Client,
    /// Whether an earlier request with the same key has begun it.
    pub(super) is_replayed: bool,
}

/// What a request has begun.
type Beginning = (Begun, Option<oneshot::Receiver<Subscription>>);

/// Joins the run that an equal request has begun whose connection was lost, or begins.
pub(super) async fn join_or_begin(request: Request) -> Result<Started, Problem> {
    let Request { call, token, tenant, .. } = &request;
    let key = Key::among((&call.app, tenant), (token, "chat"), &call.headers, || request.content()).await?;
    let digest = key.as_ref().map_or_else(|| request.digest(), Key::digest);
    let is_repeated = digest.has_key || request.is_retry();
    let until = Instant::now() + LEAVES;
    loop {
        // A key waits by itself.
        let only = match digest.has_key {
            true => None,
            false => Some(call.app.in_flight.enter(&digest.request).await),
        };
        match call.app.attendance.find(&digest) {
            Earlier::Lost(begun, clients) if is_repeated => match request.continues(&begun).await? {
                true => return Ok(request.started((begun, None), digest.has_key, clients)),
                false => call.app.attendance.forget(&begun),
            },
            Earlier::Attended if is_repeated && Instant::now() < until => {
                drop(only);
                sleep(POLL).await;
            }
            _ => return request.begin(&digest, key.as_ref()).await,
        }
    }
}

impl Request {
    /// Identifies what it asks: the body, and the chat that a header names.
    fn content(&self) -> blake3::Hash {
        let of = self.chat.conversation.as_ref().map(NamedChat::id).unwrap_or_default();
        blake3::hash(format!("{of}\0{}", self.call.body_digest()).as_bytes())
    }

    /// What tells it from others that have no key.
    fn digest(&self) -> RequestDigest {
        let content = self.content();
        let request = blake3::hash(format!("{}\0{content}", self.token.id).as_bytes());
        RequestDigest { request: request.to_string(), body: content.to_string(), has_key: false }
    }

    /// Whether an SDK sends it again.
    pub(super) fn is_retry(&self) -> bool {
        let count = self.call.headers.get("x-stainless-retry-count").and_then(|value| value.to_str().ok());
        count.and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count > 0)
    }

    pub(super) fn started(&self, (begun, begins): Beginning, is_replayed: bool, clients: Arc<()>) -> Started {
        let app = &self.call.app;
        let waiting = Waiting::new(app, &self.tenant, &begun.id);
        let client = Client::new(app, &begun, self.call.headers.contains_key("idempotency-key"), clients);
        Started { begun, begins, waiting, client, is_replayed }
    }

    /// Whether the log has what an earlier request has begun. It runs, if the process was killed before it could.
    pub(super) async fn continues(&self, begun: &Begun) -> Result<bool, Problem> {
        let tenant = &self.tenant;
        match listing(tenant, &begun.id).await {
            Err(problem) if problem.is_not_found() => return Ok(false),
            listing => drop(listing?),
        }
        let store = tenant.runtime.store();
        let mut events = store.read(&begun.id, begun.from).await?;
        // No run makes these.
        events.retain(|event| !matches!(event.body, Body::ClientDisconnected { .. }));
        let has_run = match &begun.message {
            // Another event follows the opening.
            None => events.len() > 1,
            Some(key) => {
                let posted = store.inbox(&begun.id, 0).await?;
                let Some((number, _)) = posted.iter().find(|(_, message)| *message.key == **key) else {
                    return Ok(false);
                };
                // Another event follows the one that carries it out.
                events.iter().rev().skip(1).any(|event| event.inbox == Some(*number))
            }
        };
        if !has_run && !tenant.runs.is_running(&begun.id) && !is_held(tenant, &begun.id).await {
            self.run_again(begun).await?;
        }
        Ok(true)
    }

    /// Runs what an equal request has begun, whose process was killed before it could. A conversation without an opening has no pictures:
    /// it gets those of this request.
    async fn run_again(&self, begun: &Begun) -> Result<(), Problem> {
        let Self { call, token, tenant, chat } = self;
        let (app, id, slot) = (&call.app, &begun.id, call.app.wait(token));
        let pictures = chat.all_pictures();
        if begun.message.is_some() || pictures.is_empty() {
            run_stored(app, tenant, id, slot);
            return Ok(());
        }
        if app.is_stopping() || !tenant.runs.enter(id) {
            return Ok(());
        }
        let opening = async {
            let opened = open(app, tenant, id, LimitOverrides::default(), &slot.payer).await?;
            opened.conversation.attach(pictures);
            opened.conversation.begin().await?;
            Ok(opened)
        };
        match tenant.runs.hold(id, opening).await {
            Ok(opened) => {
                let options = StartOptions { is_awaited: true, ..StartOptions::default() };
                runs::spawn(app, tenant, id, slot, (Some(opened), options));
                Ok(())
            }
            Err(problem) => {
                while tenant.runs.leave(id) {}
                Err(problem)
            }
        }
    }

    async fn begin(&self, digest: &RequestDigest, key: Option<&Key>) -> Result<Started, Problem> {
        let Self { call, token, tenant, chat } = self;
        let app = &call.app;
        if let Some(key) = key
            && let Some(made) = key.made(tenant).await?
        {
            match made.parent {
                None => return self.join_made(made.id, true).await,
                // The message may not be in the fork yet.
                Some(_) if made.summary.events > 0 => {
                    return self.say_in_fork(&made.id, digest, Some(key)).await;
                }
                // The process was killed before its events were stored.
                Some(_) => tenant.remove(&made.id).await?,
            }
        }
        if app.is_stopping() {
            return Err(Problem::stopping());
        }
        if let Some(begun) = self.begun_elsewhere(digest, key).await? {
            return self.join_elsewhere(begun, key.is_some()).await;
        }
        match &chat.conversation {
            Some(NamedChat::OfClient(chat_id)) => self.begin_chat(chat_id, digest, key).await,
            Some(NamedChat::Conversation(id)) => {
                let found = find(tenant, token, id).await?;
                // That of another team is not continued as one of this team.
                if tenant.team_of(&found).await.is_none_or(|(team, _)| team != chat.model) {
                    return Err(Problem::unknown_conversation());
                }
                self.say_to_named(&found.id, digest, key).await
            }
            None => self.continue_history(digest, key).await,
        }
    }

    /// Joins the conversation that an earlier request has made.
    async fn join_made(&self, id: LogId, is_replayed: bool) -> Result<Started, Problem> {
        let begun = Begun { id, from: 0, message: None };
        self.continues(&begun).await?;
        Ok(self.started((begun, None), is_replayed, Arc::default()))
    }

    /// Continues the conversation that the history belongs to, or begins one. What continues it where it ends does so one after the other: for
    /// the next request, that is an earlier point.
    async fn continue_history(&self, digest: &RequestDigest, key: Option<&Key>) -> Result<Started, Problem> {
        let Self { call, tenant, chat, .. } = self;
        let name = tenant.name_of_team(&chat.model).unwrap_or_default();
        loop {
            match history::find(&call.app, tenant, name.clone(), chat).await? {
                None => {
                    let id = match key {
                        Some(key) => key.new_log()?.id,
                        None => fresh_id(),
                    };
                    if let Some(started) = self.begin_new(&id, digest).await? {
                        return Ok(started);
                    }
                    // Without a key, there is one with this id by chance.
                    if let Some(key) = key {
                        // Another process has made it meanwhile, for a request with the same key.
                        key.made(tenant).await?;
                        return self.join_made(id, true).await;
                    }
                }
                Some(Continuation::Tip { id }) => {
                    let _only = self.enter_end_of(&id).await;
                    // The one before may have continued it: then this is an earlier point.
                    if history::is_tip(tenant, &id, chat).await? {
                        self.end_response(&id).await?;
                        return self.send_message(&id, digest, key).await;
                    }
                }
                Some(Continuation::Earlier { id, events, is_edited }) => {
                    // What made it an earlier point may be a request with the same key, at another server since it was looked for.
                    if key.is_some()
                        && let Some(begun) = self.begun_elsewhere(digest, key).await?
                    {
                        return self.join_elsewhere(begun, true).await;
                    }
                    let point = ForkPoint { event: Some(events), text: None, is_edited };
                    return self.continue_fork((&id, &point), digest, key).await;
                }
            }
        }
    }

    /// Forks a conversation, and says the user's message in the fork.
    async fn continue_fork(
        &self,
        (id, point): (&LogId, &ForkPoint),
        digest: &RequestDigest,
        key: Option<&Key>,
    ) -> Result<Started, Problem> {
        let tenant = &self.tenant;
        let new = key.map_or_else(|| Ok(fresh_id().into()), Key::new_log)?;
        let fork = new.id.clone();
        // Until the message is in the fork, the history ends there for others, too.
        let _only = self.enter_end_of(&fork).await;
        let made = tenant.runtime.fork_as(id, point, new, None).await;
        if let Some(key) = key
            && made.as_ref().is_err_and(is_taken)
        {
            // Another process has made it meanwhile, for a request with the same key, and may be writing it.
            key.made(tenant).await?;
            until_free(tenant, &fork).await;
            return self.say_in_fork(&fork, digest, Some(key)).await;
        }
        made?;
        let started = self.say_in_fork(&fork, digest, key).await;
        // A request that is refused has no effect.
        if started.is_err()
            && let Err(error) = tenant.remove(&fork).await
        {
            warn!(conversation = %fork, %error, "the fork for a request that was refused cannot be removed");
        }
        started
    }

    /// Says the user's message in a fork, unless an earlier request with the same key has.
    async fn say_in_fork(
        &self,
        id: &LogId,
        digest: &RequestDigest,
        key: Option<&Key>,
    ) -> Result<Started, Problem> {
        if !self.is_said(id, key).await? && !is_at_rest(&listing(&self.tenant, id).await?) {
            // It begins with a part of a response.
            self.give_up(id).await?;
        }
        self.send_message(id, digest, key).await
    }

    /// Whether an earlier request with the same key has said its message in a conversation.
    async fn is_said(&self, id: &LogId, key: Option<&Key>) -> Result<bool, Problem> {
        match key {
            Some(key) => key.was_posted(&self.tenant, id).await,
            None => Ok(false),
        }
    }

    /// Waits until no other request continues the conversation by its history.
    async fn enter_end_of(&self, id: &LogId) -> OwnedMutexGuard<()> {
        self.call.app.in_flight.enter(&format!("end\0{}\0{id}", self.tenant.name)).await
    }

    /// Continues the conversation that a chat of the client has with the team, or begins it.
    async fn begin_chat(
        &self,
        chat_id: &str,
        digest: &RequestDigest,
        key: Option<&Key>,
    ) -> Result<Started, Problem> {
        let Self { call, token, tenant, .. } = self;
        let id = self.log_of_chat(chat_id)?;
        // Two first messages of a chat are one conversation.
        let _only = call.app.in_flight.enter(id.as_str()).await;
        match find(tenant, token, id.as_str()).await {
            Err(problem) if problem.is_not_found() => match self.begin_new(&id, digest).await? {
                Some(started) => Ok(started),
                // Another process has begun it meanwhile, with another message.
                None => self.say_to_named(&id, digest, key).await,
            },
            // The process was killed before it ran. It was the same message: its client waited for an answer.
            Ok(listing) if listing.summary.events == 0 && !tenant.runs.is_running(&id) => {
                self.join_made(id, false).await
            }
            found => self.say_to_named(&found?.id, digest, key).await,
        }
    }

    /// The id of the conversation that a chat of the client has with the team.
    pub(super) fn log_of_chat(&self, chat_id: &str) -> Result<LogId, Problem> {
        let named = format!("{}\0{}\0{chat_id}", self.tenant.name, self.chat.model);
        let of_chat = blake3::hash(named.as_bytes()).to_hex();
        LogId::new(&format!("chat-{}", of_chat.get(..40).unwrap_or_default()))
            .map_err(|error| Problem::internal(error.to_string()))
    }

    /// Says the user's message in a conversation that the request names. A response that its client has cut off is ended before, if it still
    /// runs: what has come to rest continues where it is.
    async fn say_to_named(
        &self,
        id: &LogId,
        digest: &RequestDigest,
        key: Option<&Key>,
    ) -> Result<Started, Problem> {
        if let Some(key) = key
            && key.has_made(&self.tenant, id).await?
        {
            return self.join_made(id.clone(), true).await;
        }
        if !self.is_said(id, key).await?
            && (self.tenant.runs.is_running(id) || is_held(&self.tenant, id).await)
        {
            self.end_response(id).await?;
        }
        self.send_message(id, digest, key).await
    }

    /// Begins the conversation `id`. `None` if there is one with this id already.
    async fn begin_new(&self, id: &LogId, digest: &RequestDigest) -> Result<Option<Started>, Problem> {
        let Self { call, token, tenant, chat } = self;
        let prepared = served_team(call, tenant, &chat.model).await?;
        prepared.reread_memory().await?;
        let slot = call.app.join(token).await?;
        let limits = LimitOverrides { reply_tokens: chat.max_tokens, ..LimitOverrides::default() };
        let of_team = prepared.run().with_task(task(&chat.messages)).with_limits(limits);
        let begun = Begun { id: id.clone(), from: 0, message: None };
        let clients = call.app.attendance.note(digest, &begun);
        let paid = (&slot.payer, chat.all_pictures());
        let new = NewLog { id: id.clone(), request: Some(digest.to_stored()) };
        let conversation = match make((&call.app, tenant), of_team, (&new, None), paid).await {
            Err(error) if is_taken(&error) => {
                call.app.attendance.forget(&begun);
                return Ok(None);
            }
            made => made?,
        };
        let opened = Opened { conversation, prepared };
        let (follower, begins) = oneshot::channel();
        let options = StartOptions { follower: Some(follower), reply_tokens: None, is_awaited: true };
        runs::spawn(&call.app, tenant, id, slot, (Some(opened), options));
        Ok(Some(self.started((begun, Some(begins)), false, clients)))
    }

    /// Sends the user's message to a conversation: as the answer to its oldest question, if it waits for one.
    async fn send_message(
        &self,
        id: &LogId,
        digest: &RequestDigest,
        key: Option<&Key>,
    ) -> Result<Started, Problem> {
        let Self { call, token, tenant, chat } = self;
        if let Some(key) = key
            && let Some(from) = key.carried_out(tenant, id).await?
        {
            let begun = Begun { id: id.clone(), from, message: Some(key.inbox_key()) };
            self.continues(&begun).await?;
            return Ok(self.started((begun, None), true, Arc::default()));
        }
        noted(&call.app, Some(id)).await;
        if chat.max_tokens.is_some() && !self.is_free(id).await? {
            return Err(Problem::busy(format!("`{id}` is running: a limit is for what has not begun"))
                .hint("wait until it has ended, or leave `max_tokens` out"));
        }
        let about = listing(tenant, id).await?;
        if about.summary.is_paused {
            return Err(Problem::paused(id));
        }
        let from = about.summary.events;
        let instruction = self.instruction(&about).await?;
        let is_elsewhere = other_node(tenant, id).await?.is_some();
        let slot = call.app.join(token).await?;
        let given = key.map_or_else(InstructionKey::fresh, Key::of_instruction);
        let given = InstructionKey { request: Some(digest.to_stored().into()), ..given };
        let begun = Begun { id: id.clone(), from, message: Some(given.key.to_string()) };
        let clients = call.app.attendance.note(digest, &begun);
        let (follower, begins) = oneshot::channel();
        // One of an earlier request does not count for this one.
        let reply_tokens = Some(chat.max_tokens.unwrap_or(Conversation::ANY_REPLY_LENGTH));
        let options = StartOptions { follower: Some(follower), reply_tokens, is_awaited: true };
        let (of, given) = ((&about, is_elsewhere), (instruction, given));
        let steered = steer(&call.app, tenant, of, given, (slot, options)).await?;
        if let Steered::Refused(why) = steered {
            call.app.attendance.forget(&begun);
            return Err(Problem::refused(why.to_string()));
        }
        Ok(self.started((begun, Some(begins)), false, clients))
    }

    /// Whether nothing runs a conversation. A run that leaves it, because it has ended or waits for an answer, is waited for.
    async fn is_free(&self, id: &LogId) -> Result<bool, Problem> {
        let state = listing(&self.tenant, id).await?.state();
        Ok(match state {
            LogState::Done | LogState::Ended | LogState::Waiting => is_left(&self.tenant, id).await,
            _ => !self.tenant.runs.is_running(id) && !is_held(&self.tenant, id).await,
        })
    }

    /// What the user's message is to the conversation.
    async fn instruction(&self, about: &Listing) -> Result<Instruction, Problem> {
        let Self { token, tenant, chat, .. } = self;
        let (text, has_pictures) = (chat.last(), !chat.last_pictures().is_empty());
        match tenant.runtime.open_questions_of(about).await?.iter().find(|open| !is_up(open)) {
            // A question can be whether a call is allowed.
            Some(_) if !token.has(Scope::Answer) => Err(Problem::may_not_answer()),
            Some(_) if has_pictures => {
                Err(Problem::unsupported_parameter("the team waits for an answer, which is a text")
                    .at(format!("/messages/{}", chat.messages.len() - 1), "no pictures")
                    .hint("answer with text, and send the picture afterwards"))
            }
            Some(open) => Ok(Instruction::Answer {
                question: open.seq,
                text: text.into(),
                by: Some(token.name.as_str().into()),
            }),
            None => {
                let mut message = Message::new(Name::user(), text);
                message.parts.extend(chat.last_pictures().iter().cloned().map(Part::Media));
                Ok(Instruction::Send(message))
            }
        }
    }
}
