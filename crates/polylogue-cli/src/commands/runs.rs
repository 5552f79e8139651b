//! `polylogue runs`: the conversations there are.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use polylogue_core::text::enumerated;
use polylogue_core::{
    ListQuery, Listing, LogId, LogState, OpenState, Page, Parent, ParkedLog, Progress, Queue as _,
    Store as _, StoreError, Summary, Timestamp,
};
use polylogue_runtime::Runtime;
use polylogue_server::promised_by_server;
use serde_json::{Value, json};

use super::{terminal_columns, unwritable, verify, write};
use crate::args;
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::place::{self, PlaceOption};
use crate::screen::text::{Line, folded, wrap_row};
use crate::screen::{RunEnd, RunState, Sanitized, Style, most_cost};
use crate::stderr::{print_note, print_note_wrapped};

pub(crate) async fn run(cli: &args::Cli, args: &args::runs::Runs) -> Result<Exit, CliError> {
    // A place without a store lists nothing, and no store is created.
    let named = cli.named_store();
    if place::is_empty(&named)? {
        let place = named.store.map(|store| store.display().to_string()).unwrap_or_default();
        print_note(&match named.tenant {
            Some(tenant) => format!("the tenant `{tenant}` has no conversations"),
            None => format!("there is no store at `{place}`, which `POLYLOGUE_STORE` names"),
        });
        return Ok(Exit::Done);
    }
    let now = Timestamp::now().0;
    let runtime = place::open(&cli.named_store())?;
    let place = PlaceOption::of_store(&cli.named_store());
    let Page { logs, next } = runtime.list(&query(&runtime, args, now).await?).await?;
    // Without them, a list that can be read is still a list.
    let promised = promised_by_server(&runtime).unwrap_or_default();
    let lookups = stream::iter(logs).map(|listing| with_state((&runtime, &place), &promised, listing));
    let listed: Vec<(Listing, ListedState)> = lookups.buffered(LOOKUPS).try_collect().await?;
    let (mut rows, parked, columns) = (Vec::new(), parked(&runtime).await?, terminal_columns());
    for (listing, mut state) in listed {
        if let Some(log) = parked.get(&listing.id) {
            state.status = why_parked(log);
        }
        rows.push(match args.json {
            true => as_json(&listing, &state)?,
            false => line(&listing, &state.status, now, columns),
        });
    }
    if rows.is_empty() && !args.json {
        let place = cli.store.as_deref().map(|_| format!(" in `{}`", runtime.place().shown()));
        let tenant = named.tenant.map(|tenant| format!(" of the tenant `{tenant}`"));
        print_note(&format!(
            "no conversations{} found{}",
            tenant.unwrap_or_default(),
            place.unwrap_or_default()
        ));
    }
    write(&rows.into_iter().collect())?;
    if let Some(next) = next {
        print_note_wrapped(&format!("there are more: `--after {}` continues the list", next.to_text()));
    }
    Ok(Exit::Done)
}

/// How many conversations of a list are looked up at the same time: with thousands that wait in a database, one after the other would take minutes.
const LOOKUPS: usize = 16;

/// A conversation with its task, and its state. `promised`: those that run next in the server.
async fn with_state(
    (runtime, place): (&Runtime, &PlaceOption),
    promised: &BTreeSet<LogId>,
    mut listing: Listing,
) -> Result<(Listing, ListedState), CliError> {
    let state = match listing.state() {
        LogState::Damaged => ListedState::new("damaged", unreadable(runtime, &listing, place).await),
        _ => {
            let open = runtime.open_state(&listing).await?;
            let waits = begins_later(open) && promised.contains(&listing.id);
            let found = if waits { ListedState::server() } else { state(&listing, open) };
            found.paused(listing.summary.is_paused)
        }
    };
    listing.summary.task = runtime.task(&listing).await;
    Ok((listing, state))
}

/// Whether a conversation in this state runs next if a server has promised that.
pub(super) const fn begins_later(open: Option<OpenState>) -> bool {
    matches!(open, Some(OpenState::Queued | OpenState::Interrupted | OpenState::New))
}

/// The conversations that no worker tries again, if the store is a queue.
pub(super) async fn parked(runtime: &Runtime) -> Result<BTreeMap<LogId, ParkedLog>, CliError> {
    let Some(queue) = runtime.store().queue() else { return Ok(BTreeMap::new()) };
    Ok(queue.parked().await?.into_iter().map(|log| (log.id.clone(), log)).collect())
}

fn why_parked(log: &ParkedLog) -> String {
    match &log.why {
        Some(why) => format!("parked: {}", folded(why)),
        None => format!("parked after {}", counted(log.tries.into(), "try")),
    }
}

async fn query(runtime: &Runtime, args: &args::runs::Runs, now: u64) -> Result<ListQuery, CliError> {
    let parent = match &args.parent {
        Some(text) => Some(runtime.find(text).await?),
        None => None,
    };
    let before = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Ok(ListQuery {
        limit: args.limit.and_then(|limit| usize::try_from(limit).ok()),
        after: args.after.clone(),
        id: None,
        states: args.state.iter().copied().map(state_of).collect(),
        team: args.team.clone(),
        task: args.task.clone(),
        since: args.since.map(|time| Timestamp(now.saturating_sub(before(time)))),
        parent,
    })
}

const fn state_of(state: args::runs::StateFilter) -> LogState {
    match state {
        args::runs::StateFilter::Unfinished => LogState::Open,
        args::runs::StateFilter::Waiting => LogState::Waiting,
        args::runs::StateFilter::Paused => LogState::Paused,
        args::runs::StateFilter::Failed => LogState::Failed,
        args::runs::StateFilter::Done => LogState::Done,
        args::runs::StateFilter::Ended => LogState::Ended,
        args::runs::StateFilter::Damaged => LogState::Damaged,
    }
}

/// Why a conversation cannot be read.
async fn unreadable(runtime: &Runtime, listing: &Listing, place: &PlaceOption) -> String {
    let id = &listing.id;
    let verify = place.command(&format!("verify {id}"));
    match runtime.store().meta(id).await {
        Err(error @ (StoreError::Older { .. } | StoreError::Newer { .. })) => {
            format!("{}: `{verify}` says what to do", verify::state(&error).replace('_', " "))
        }
        _ => format!("damaged: `{verify}` says where"),
    }
}

/// What a conversation was forked from, and whether it has another text there.
pub(crate) fn origin(Parent { id, event, edited }: &Parent) -> String {
    let kind = if *edited { "edited fork" } else { "fork" };
    format!("{kind} of {id} before event {event}")
}

/// The column in which the title of a conversation begins.
const TITLE: usize = 18;

/// A conversation in a list: one row, or on a terminal of `columns` that are too few for it several, each cut where that is full.
pub(crate) fn line(listing: &Listing, state: &str, now_ms: u64, columns: Option<usize>) -> Sanitized {
    let (Listing { id, created, summary, parent, .. }, title) = (listing, listing.shown_title());
    // What is damaged may have lost its date.
    let age = match created.0 {
        0 => "no date".to_owned(),
        created => format!("{} ago", age(now_ms.saturating_sub(created) / 1000)),
    };
    let fork = parent.as_ref().map(|parent| format!("  ({})", origin(parent)));
    let (cost, task) = (most_cost(&summary.usage), folded(&summary.task));
    let turns = counted(summary.turns, "turn");
    let facts = facts(id.as_str(), &age, &title, &turns, &cost);
    let state = format!("{state}{}", fork.unwrap_or_default());
    Sanitized::lines(&in_rows(&facts, &state, &task, columns), false)
}

fn facts(id: &str, age: &str, title: &str, turns: &str, cost: &str) -> String {
    format!("{id:<6} {age:>9}  {title:<20} {turns:>9}  {cost:>12}")
}

fn in_rows(facts: &str, state: &str, task: &str, columns: Option<usize>) -> Vec<Line> {
    let row = |text: &str| Line::new(text, Style::PLAIN).trimmed();
    let whole = row(&format!("{facts}  {state}  {task}"));
    let Some(columns) = columns.filter(|columns| whole.width() > *columns) else { return vec![whole] };
    let below = |text: &str| row(&format!("{:TITLE$}{text}", ""));
    let both = below(&format!("{state}  {task}"));
    let rest = if both.width() <= columns { vec![both] } else { vec![below(state), below(task)] };
    let rest = rest.into_iter().filter(|row| !row.is_empty()).map(|row| row.fit(columns));
    wrap_row(&row(facts), columns).into_iter().chain(rest).collect()
}

/// The state of a conversation in a list: a word for programs, and in words for people.
pub(crate) struct ListedState {
    pub(crate) state: Value,
    pub(crate) status: String,
}

impl ListedState {
    pub(crate) fn new(state: impl Into<Value>, status: impl Into<String>) -> Self {
        Self { state: state.into(), status: status.into() }
    }

    /// That of a conversation that waits in a server until others have ended.
    fn server() -> Self {
        Self::new(OpenState::Queued.as_str(), "waiting for the server")
    }

    /// That of a conversation that is open.
    pub(crate) fn open(state: OpenState) -> Self {
        Self::new(state.as_str(), state.in_words())
    }

    /// The same for people if the conversation `is_paused` while a person is asked or after a failure: what continues others does not continue it.
    pub(crate) fn paused(self, is_paused: bool) -> Self {
        let is_named = is_paused && matches!(self.state.as_str(), Some("failed" | "waiting"));
        if is_named { Self { status: format!("paused, {}", self.status), ..self } } else { self }
    }

    /// One that is the same for both.
    pub(crate) fn word(state: &str) -> Self {
        Self::new(state, state)
    }
}

pub(crate) fn as_json(
    listing: &Listing,
    ListedState { state, status }: &ListedState,
) -> Result<Sanitized, CliError> {
    let (Listing { id, created, summary, parent, .. }, title) = (listing, listing.shown_title());
    let Summary { events, task, started, last, turns, usage, .. } = summary;
    let mut row = json!({
        "id": id, "title": title, "task": task, "state": state, "status": status,
        "created_ms": (created.0 > 0).then_some(created), "started_ms": started,
        "last_ms": last, "events": events, "turns": turns, "usage": usage,
    });
    if let Some(row) = row.as_object_mut() {
        row.extend(parent.iter().map(|parent| ("parent".to_owned(), json!(parent))));
        row.extend(listing.is_archived.then(|| ("archived".to_owned(), json!(true))));
    }
    Sanitized::json(&row).map_err(unwritable)
}

/// The state, as its events say, and for one that is open `open`. The events are not read here, let alone checked.
fn state(listing: &Listing, open: Option<OpenState>) -> ListedState {
    let Summary { progress, questions, .. } = &listing.summary;
    let asked = || enumerated(questions.iter().map(|(_, who)| who.as_str()));
    match (listing.state(), progress) {
        (_, Progress::Closed(reason)) => ListedState::new(json!(RunState::of(reason)), RunEnd::why(reason)),
        (_, Progress::Failed(message)) => ListedState::new("failed", format!("failed: {message}")),
        (LogState::Waiting, _) => ListedState::new("waiting", format!("waiting for {}", asked())),
        (LogState::Paused, _) => ListedState::word("paused"),
        (_, Progress::New | Progress::Open) => ListedState::open(open.unwrap_or(OpenState::Interrupted)),
    }
}

/// A time span in its largest unit.
pub(super) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_has_no_room_for_is_below_the_title_and_cut() {
        let facts = facts("3k7v9x", "2 m ago", "group", "4 turns", "$0");
        assert_eq!(facts.find("group"), Some(TITLE));
        let rows = |state, task, columns| -> Vec<String> {
            in_rows(&facts, state, task, columns).iter().map(Line::text).collect()
        };
        let (state, task) = ("done: Ann said `DONE`", "Plan the launch of a bicycle rental");
        assert_eq!(rows(state, task, None), [format!("{facts}  {state}  {task}")]);
        assert_eq!(rows(state, "", Some(100)), [format!("{facts}  {state}")]);
        let below = |text: &str| format!("{}{text}", " ".repeat(TITLE));
        assert_eq!(rows(state, task, Some(79)), [facts.clone(), below(&format!("{state}  {task}"))]);
        let long = rows("limit: loop detected: nearly the same messages repeatedly", task, Some(60));
        assert_eq!(long.len(), 4, "{long:?}");
        assert!(long.iter().all(|row| row.chars().count() <= 60), "{long:?}");
        assert_eq!(long[2], below("limit: loop detected: nearly the same mes…"));
        assert_eq!(long[3], below(task));
    }
}
