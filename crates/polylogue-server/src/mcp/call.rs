//! A call: from its arguments to a run, and from its events to the reply.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use polylogue_core::{Instruction, LogId, Message, Name, OpenQuestion};
use polylogue_mcp::serve::{Answer, Caller, Reply, UserAnswer};
use polylogue_runtime::Prepared;
use polylogue_wire::conversation::NewConversation;
use serde_json::Value;
use tracing::Instrument as _;

use super::arguments::Arguments;
use super::frames::{Frames, Step};
use super::questions::{answer, answer_all, answer_to, forms, open_questions};
use super::tasks;
use super::visitor::Visitor;
use crate::api::steering::{instruct, stop_run};
use crate::beginning::{begin, made_before};
use crate::conversation::{find, listing};
use crate::default_answers::is_up;
use crate::idempotency::Key;
use crate::problem::Problem;
use crate::runs::StartOptions;
use crate::state_key::CallState;
use crate::tail::{Follow, texts};
use crate::token_file::now_ms;
use crate::waiting::Waiting;

/// A call, and who calls.
#[derive(Clone)]
pub(super) struct CallContext {
    pub(super) visitor: Visitor,
    pub(super) tool: String,
    pub(super) team: Arc<Prepared>,
    /// Identifies tool and arguments.
    pub(super) digest: blake3::Hash,
}

impl CallContext {
    /// Where the call stands that the client repeats with answers.
    pub(super) fn state(&self, caller: &Caller) -> Result<Option<CallState>, Refused> {
        let Some(text) = caller.state() else { return Ok(None) };
        let bound = self.bound();
        let bound = bound.each_ref().map(String::as_str);
        let opened = self.visitor.app.state_key.open(text, &bound, now_ms()).map_err(no_key)?;
        opened.map(Some).ok_or(Refused::State)
    }

    fn seal(&self, state: &CallState) -> Result<String, Problem> {
        let bound = self.bound();
        let bound = bound.each_ref().map(String::as_str);
        self.visitor.app.state_key.seal(state, &bound, now_ms()).map_err(no_key)
    }

    /// What a state is for.
    fn bound(&self) -> [String; 3] {
        let Visitor { tenant, token, .. } = &self.visitor;
        [tenant.name.clone(), token.id.clone(), self.digest.to_hex().to_string()]
    }
}

/// Why a call has no result.
pub(super) enum Refused {
    /// What the client sent back is not valid.
    State,
    /// Anything else: its model can read why.
    Problem(Problem),
}

impl<P: Into<Problem>> From<P> for Refused {
    fn from(problem: P) -> Self {
        Self::Problem(problem.into())
    }
}

fn no_key(error: std::io::Error) -> Problem {
    tracing::error!(%error, "the key of states");
    Problem::unavailable("the server cannot ask now").hint("the log of the server says why")
}

/// Begins or continues what the call asks for, follows it, and returns the reply.
pub(super) async fn hold(
    call: CallContext,
    arguments: Arguments,
    state: Option<CallState>,
    caller: &mut Caller,
) -> Result<Reply, Refused> {
    let started = match state {
        Some(state) => {
            find(&call.visitor.tenant, &call.visitor.token, state.conversation.as_str()).await?;
            answer_all(&call.visitor, &state.conversation, caller.answers()).await?;
            state
        }
        None => {
            // Not given up half-way when the client goes away.
            let is_awaited = caller.is_stateless() && !caller.takes_tasks();
            let starting = start(call.clone(), arguments, is_awaited);
            tokio::spawn(starting.in_current_span())
                .await
                .map_err(|_| Problem::internal("a mistake in the server ended this call"))??
        }
    };
    if caller.takes_tasks() {
        let id = tasks::id(&started.conversation, started.from);
        return match tasks::report(&call.visitor, &id, caller.can_ask()).await {
            Ok(report) => Ok(Reply::Task(report)),
            Err(error) => Err(Problem::internal(error.to_string()).into()),
        };
    }
    follow(&call, started, caller).await
}

/// Begins a conversation, for the client alone if it `is_awaited`, or says the message in the one that the call names.
async fn start(call: CallContext, arguments: Arguments, is_awaited: bool) -> Result<CallState, Problem> {
    let Visitor { app, tenant, token, headers, .. } = &call.visitor;
    let to = format!("mcp\0{}", call.tool);
    let key = Key::among((app, tenant), (token, &to), headers, || call.digest).await?;
    if let Some(id) = &arguments.conversation {
        return say(&call, id, arguments.message, key.as_ref()).await;
    }
    let new = |conversation: LogId| CallState { conversation, from: 0, shown: 0 };
    if let Some(listing) = made_before(app, tenant, token, key.as_ref()).await? {
        return Ok(new(listing.id));
    }
    if app.is_stopping() {
        return Err(Problem::stopping());
    }
    let Arguments { message, inputs, .. } = arguments;
    let wanted = NewConversation { team: call.tool.clone(), message, inputs, ..NewConversation::default() };
    let options = StartOptions { is_awaited, ..StartOptions::default() };
    let new_run = (Arc::clone(&call.team), &wanted, options);
    let (begun, _) = begin(app, tenant, token, new_run, key.as_ref()).await?;
    Ok(new(begun.id))
}

/// Says a message in a conversation of the team: as the answer to its oldest question, if it waits for one.
async fn say(
    call: &CallContext,
    id: &str,
    message: Option<String>,
    key: Option<&Key>,
) -> Result<CallState, Problem> {
    let Visitor { app, tenant, token, .. } = &call.visitor;
    let found = find(tenant, token, id).await?;
    if tenant.team_of(&found).await.is_none_or(|(team, _)| team != call.tool) {
        return Err(Problem::unknown_conversation());
    }
    let questions = tenant.runtime.open_questions_of(&found).await?;
    let open = questions.iter().find(|open| !is_up(open));
    // Such as one that passes in a turn.
    let is_choice = |open: &OpenQuestion| open.question.choices.iter().any(|choice| choice.answer.is_empty());
    let takes_empty = open.is_some_and(is_choice);
    let text = message.filter(|text| takes_empty || !text.trim().is_empty()).ok_or_else(|| {
        Problem::bad_request("`message` is required with `conversation`")
            .hint("say what follows, or the answer")
    })?;
    if found.summary.is_paused {
        return Err(Problem::paused(&found.id));
    }
    let instruction = match open {
        Some(_) if !call.visitor.answers() => return Err(Problem::may_not_answer()),
        Some(open) => answer_to(&call.visitor, open.seq, text),
        None => Instruction::Send(Message::new(Name::user(), text)),
    };
    let (seq, was_posted) = instruct(app, tenant, (token, &found), instruction, key).await?;
    let from = seq.filter(|_| was_posted).unwrap_or(found.summary.events);
    Ok(CallState { conversation: found.id, from, shown: from })
}

/// How following ended.
enum End {
    Rest(Value),
    /// The client is gone.
    Gone,
    /// The server stops, or the token was revoked.
    Lost,
}

/// Follows a conversation until it is at rest. Its user is asked what it asks.
async fn follow(call: &CallContext, mut at: CallState, caller: &mut Caller) -> Result<Reply, Refused> {
    let Visitor { app, tenant, .. } = &call.visitor;
    // A client without a session that goes away, and does not come back: the run is stopped after a time.
    let waiting = caller.is_stateless().then(|| Waiting::new(app, tenant, &at.conversation));
    let mut asks = call.visitor.answers();
    loop {
        let rest = match until_rest(call, &at, caller).await {
            End::Rest(rest) => rest,
            End::Lost => return Err(Problem::stopping().into()),
            End::Gone => {
                if caller.reason().await.is_some() {
                    stop_run(app, tenant, &at.conversation, true).await?;
                }
                drop(waiting);
                return Ok(Answer::failed("cancelled").into());
            }
        };
        let is_waiting = rest.get("state").is_some_and(|state| state == "waiting");
        if !is_waiting || !asks || !caller.can_ask() {
            return Ok(answer_of(rest).into());
        }
        at.shown = listing(tenant, &at.conversation).await?.summary.events;
        if caller.takes_questions() {
            return questions(call, &at, caller, rest).await;
        }
        asks = ask(call, &at.conversation, caller).await?;
    }
}

/// The open questions as the result of the call. A user who declined all that is asked is not asked again.
async fn questions(
    call: &CallContext,
    at: &CallState,
    caller: &Caller,
    rest: Value,
) -> Result<Reply, Refused> {
    let open = open_questions(&call.visitor, &at.conversation).await?;
    let is_declined =
        |key: &str| caller.answers().iter().any(|answer| answer.key == key && answer.text.is_none());
    if open.iter().all(|question| is_declined(&question.key)) {
        return Ok(answer_of(rest).into());
    }
    Ok(Reply::Questions { questions: open, state: call.seal(at)? })
}

/// Asks the user of a client with a session the oldest question. Returns whether there was an answer, here or elsewhere.
async fn ask(call: &CallContext, id: &LogId, caller: &Caller) -> Result<bool, Problem> {
    let runtime = &call.visitor.tenant.runtime;
    let mut changes = call.visitor.tenant.runs.changes_of(id);
    let Some(open) = runtime.open_questions(id).await?.into_iter().next() else { return Ok(true) };
    let forms = forms(&call.visitor.tenant, id, std::slice::from_ref(&open)).await?;
    let Some(form) = forms.first() else { return Ok(true) };
    let mut asking = pin!(caller.ask(form));
    let given = loop {
        tokio::select! {
            biased;
            given = &mut asking => break given,
            () = changes.changed() => {
                if runtime.open_questions(id).await?.iter().all(|other| other.seq != open.seq) {
                    return Ok(true);
                }
            }
        }
    };
    match given {
        UserAnswer::With(text) => answer(&call.visitor, id, open.seq, text).await.map(|()| true),
        UserAnswer::Declined | UserAnswer::Unable | UserAnswer::Cancelled => Ok(false),
    }
}

/// Reports what is said until the conversation is at rest.
async fn until_rest(call: &CallContext, at: &CallState, caller: &mut Caller) -> End {
    let Visitor { app, tenant, token, .. } = &call.visitor;
    let follow = Follow {
        app: Arc::clone(app),
        tenant: Arc::clone(tenant),
        token: Arc::clone(token),
        id: at.conversation.clone(),
        from: at.from,
        ends: false,
        begins: None,
    };
    let mut texts = pin!(texts(follow, Frames::new(at.conversation.as_str(), at.shown)));
    loop {
        let text = tokio::select! {
            biased;
            () = caller.gone() => return End::Gone,
            text = texts.next() => text,
        };
        match text.as_deref().map(Step::of) {
            Some(Some(Step::Progress(line))) => caller.report_progress(line).await,
            Some(Some(Step::Rest(rest))) => return End::Rest(rest),
            Some(None) => {}
            Some(Some(Step::Interrupted)) | None => return End::Lost,
        }
    }
}

/// The result in a frame.
fn answer_of(rest: Value) -> Answer {
    let text = rest.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_error = rest.get("is_error").and_then(Value::as_bool).unwrap_or_default();
    Answer { texts: vec![text], value: rest.get("value").cloned(), is_error }
}
