//! `batch` with a server: each row is a conversation there, begun once however often the command is run.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use polylogue_client::wire::conversation::{Conversation, ConversationState, NewConversation, Resume, When};
use polylogue_client::wire::stream::Status;
use polylogue_client::wire::team::Team;
use polylogue_client::{Tail, TailItem};
use polylogue_core::{Cancellation, Event, LogId};
use polylogue_team::{Row, Rows};
use tokio::sync::watch;

use super::begin::{served, team_id};
use super::named_server::Remote;
use super::watch::{ended, stays_halted};
use crate::args;
use crate::commands::batch::progress::Progress;
use crate::commands::batch::record::{Record, RowEnd};
use crate::commands::batch::records::Records;
use crate::commands::batch::tally::Place;
use crate::commands::batch::{State, TICK, digest, rows};
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::signals::Signals;
use crate::stderr::print_note_wrapped;
use crate::user_config::default_max_cost;

const FINISHING: &str = "the server finishes the steps that have begun; Ctrl-C again stops now";
const STOPPING: &str = "the server stops now";

pub(super) async fn run(
    cli: &args::Cli,
    args: &args::batch::Batch,
    remote: &Remote,
) -> Result<Exit, CliError> {
    let rows = rows(args)?;
    let team = served(remote, team_id(&args.team)?).await?;
    let default = default_max_cost(cli, &args.options.models)?;
    let has_none = args.options.limits.max_cost.is_none() && !team.scripted;
    if let Some(most) = default.filter(|_| has_none) {
        print_note_wrapped(&format!(
            "Your limit on cost, {most}, does not apply to a batch on a server: the budget of the token does. `--max-cost` limits each row."
        ));
    }
    let key = key(&team, args)?;
    let records = Records::open(&args.output, &key, &rows, args.keep)?;
    let over = records.finished(&rows);
    let at_once = usize::from(args.at_once).max(1);
    introduce(&team, remote, (rows.len(), over.len(), at_once));
    let progress = Progress::new(rows.len(), over.len(), records.cost());
    let state = RefCell::new(State { records, progress, broken: None });
    let stop = watch::Sender::new(None);
    let job = Job { args, remote, team: &team, key: &key, stop };
    let ended = job.run_rows(left(&rows, &over), at_once, &state).await;
    let place = Place { shown: remote.client.url().to_owned(), option: remote.place.clone() };
    state.into_inner().end(args, (ended, &rows), Vec::new(), &place)
}

/// The rows that are not over.
fn left<'r>(rows: &'r Rows, over: &'r HashSet<String>) -> impl Iterator<Item = Row> + 'r {
    (0..rows.len()).filter_map(|index| rows.get(index)).filter(|row| !over.contains(&row.id))
}

fn introduce(team: &Team, remote: &Remote, (total, skipped, at_once): (usize, usize, usize)) {
    let over = if skipped > 0 { format!(", {skipped} already finished") } else { String::new() };
    let rows = counted(total as u64, "row");
    print_note_wrapped(&format!("{} at {}: {rows}{over}, {at_once} at once", team.name, remote.client.url()));
}

/// What makes conversations those of this batch: the team as the server describes it, and the variables.
fn key(team: &Team, args: &args::batch::Batch) -> Result<String, CliError> {
    let vars: BTreeMap<&str, &str> = args.vars.iter().map(|(name, value)| (&**name, &**value)).collect();
    let Team { id, name, description, task, inputs, models, scripted, limits, .. } = team;
    identified(&((id, name, description, task), (inputs, models, scripted, limits), vars))
}

fn identified(what: &impl serde::Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string(what)
        .map_err(|error| CliError::failed(format!("the batch cannot be identified: {error}")))?;
    Ok(digest(&text))
}

/// What is to be done with every row.
struct Job<'a> {
    args: &'a args::batch::Batch,
    remote: &'a Remote,
    team: &'a Team,
    /// Tells records of this team and its variables from those of others.
    key: &'a str,
    /// How conversations are to be stopped, once the person wants that.
    stop: watch::Sender<Option<When>>,
}

/// A row whose conversation is at rest.
struct RowResult {
    row: Row,
    id: LogId,
    ending: RowEnd,
    events: Vec<Arc<Event>>,
}

impl Job<'_> {
    /// Runs the rows that are left, until all are at rest or the person stops the batch.
    async fn run_rows(
        &self,
        left: impl Iterator<Item = Row>,
        at_once: usize,
        state: &RefCell<State>,
    ) -> Result<(), CliError> {
        let mut ended = pin!(stream::iter(left).map(|row| self.one(row)).buffer_unordered(at_once));
        let (mut signals, mut ticks) = (Signals::new()?, tokio::time::interval(TICK));
        let wanted = Cancellation::default();
        loop {
            tokio::select! {
                biased;
                () = signals.next() => {
                    let (when, notice) = match signals.pass_on(&wanted) {
                        true => (When::AfterStep, FINISHING),
                        false => (When::Now, STOPPING),
                    };
                    self.stop.send_replace(Some(when));
                    state.borrow_mut().progress.say(notice);
                }
                _ = ticks.tick() => state.borrow_mut().progress.tick(),
                one = ended.next() => match one {
                    None => return Ok(()),
                    Some(one) => {
                        let Some(RowResult { row, id, ending, events }) = one? else { continue };
                        let bound_ended = self.remote.client.conversation(&id).await?.bound_ended;
                        let mut record = Record::new(&row, ending, &events, (id.as_str(), self.key));
                        record.bound_ended = bound_ended;
                        if !state.borrow_mut().keep(&record) {
                            self.stop.send_replace(Some(When::AfterStep));
                        }
                    }
                }
            }
        }
    }

    /// Begins the conversation of a row, or continues it, and follows it. `None` if it was stopped: it continues when the batch is run again.
    async fn one(&self, row: Row) -> Result<Option<RowResult>, CliError> {
        // From here on, so that an order to stop while the row begins is for it, too.
        let mut stop = self.stop.subscribe();
        if stop.borrow_and_update().is_some() {
            return Ok(None);
        }
        let Conversation { id, .. } = self.begun(&row).await?;
        let client = &self.remote.client;
        // One of an earlier run of the batch may have stopped since.
        if client.conversation(&id).await?.state == ConversationState::Halted {
            client.resume(&id, &Resume::default()).await?;
        }
        let (mut tail, mut events) = (client.tail(&id, 0), Vec::new());
        let ending = self.followed(&id, (&mut tail, &mut stop), &mut events).await?;
        Ok(ending.map(|ending| RowResult { row, id, ending, events }))
    }

    /// The conversation of a row, which is the same however often it is begun.
    async fn begun(&self, row: &Row) -> Result<Conversation, CliError> {
        let new = NewConversation {
            team: self.team.id.clone(),
            message: row.task.clone(),
            inputs: self.args.vars.iter().cloned().chain(row.vars.clone()).collect(),
            title: Some(row.id.clone()),
            limits: self.args.options.limits.overrides(),
        };
        let key = format!("batch-{}", identified(&(self.key, row, new.limits))?);
        self.remote.client.begin_once(&new, &key).await.map_err(|error| {
            let what = format!("the row `{}` cannot be begun: {error}", row.id);
            let failed = if error.is_usage() { CliError::usage(what) } else { CliError::failed(what) };
            error.hint().into_iter().fold(failed, CliError::hint)
        })
    }

    /// Follows a conversation until it is at rest, or was stopped, as the person orders by `stop`.
    async fn followed(
        &self,
        id: &LogId,
        (tail, stop): (&mut Tail<'_>, &mut watch::Receiver<Option<When>>),
        events: &mut Vec<Arc<Event>>,
    ) -> Result<Option<RowEnd>, CliError> {
        loop {
            let item = tokio::select! {
                item = tail.next() => item?,
                Ok(()) = stop.changed() => {
                    let when = *stop.borrow_and_update();
                    self.remote.client.stop(id, when.unwrap_or_default()).await?;
                    continue;
                }
            };
            match item {
                Some(TailItem::Event(event)) => events.push(Arc::from(event)),
                Some(TailItem::Status(status)) => match self.rest(id, status).await {
                    Some(_) if stop.borrow().is_some() => return Ok(None),
                    Some(ending) => return Ok(Some(ending)),
                    None => {}
                },
                Some(TailItem::End(_)) | None => return Ok(Some(RowEnd::closed(ended(events)?.0))),
                Some(_) => {}
            }
        }
    }

    /// How a conversation in this state is at rest, if it is and is not closed.
    async fn rest(&self, id: &LogId, status: Status) -> Option<RowEnd> {
        match (status.state, status.ended) {
            (ConversationState::Running | ConversationState::Closed, _) => None,
            (ConversationState::Waiting, _) if status.in_progress => None,
            (ConversationState::Waiting, _) => {
                Some(RowEnd::waiting(status.questions.iter().map(|asked| asked.who.as_str())))
            }
            (ConversationState::Halted, Some(ended)) => Some(RowEnd::failed(ended.detail)),
            // It is paused, and continues here when it is resumed.
            (ConversationState::Halted, None) if status.in_progress => None,
            (ConversationState::Halted, None) => {
                stays_halted(&self.remote.client, id).await.then(|| RowEnd::failed("stopped".into()))
            }
        }
    }
}
