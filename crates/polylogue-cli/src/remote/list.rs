//! `runs` and `waiting` of a server.

use clap::ValueEnum as _;
use polylogue_client::ListFilter;
use polylogue_client::wire::conversation::{self as wire, Conversation, ConversationPage, ConversationState};
use polylogue_core::text::enumerated;
use polylogue_core::{Cursor, Listing, OpenState, Parent, Progress, Summary, Timestamp};
use polylogue_runtime::waiting::WaitingRun;

use super::named_server::Remote;
use crate::args;
use crate::args::runs::StateFilter;
use crate::commands::runs::ListedState;
use crate::commands::{runs, terminal_columns, waiting, write};
use crate::error::{CliError, Exit};
use crate::stderr::print_note;

/// The most conversations of a page of the server.
const PAGE: u64 = 200;

pub(super) async fn runs(args: &args::runs::Runs, remote: &Remote) -> Result<Exit, CliError> {
    let now = Timestamp::now().0;
    let ConversationPage { conversations, next_cursor } =
        listed(remote, filter(remote, args, now).await?, args.limit).await?;
    let (mut rows, columns) = (Vec::new(), terminal_columns());
    for conversation in &conversations {
        let (listing, state) = (listing(conversation), state(conversation).paused(conversation.paused));
        rows.push(match args.json {
            true => runs::as_json(&listing, &state)?,
            false => runs::line(&listing, &state.status, now, columns),
        });
    }
    if rows.is_empty() && !args.json {
        print_note(&format!("no conversations found at `{}`", remote.client.url()));
    }
    write(&rows.into_iter().collect())?;
    if let Some(next) = next_cursor {
        print_note(&format!("there are more: `--after {next}` continues the list"));
    }
    Ok(Exit::Done)
}

async fn filter(remote: &Remote, args: &args::runs::Runs, now: u64) -> Result<ListFilter, CliError> {
    let parent = match &args.parent {
        Some(text) => Some(remote.client.find(text).await?.id),
        None => None,
    };
    let before = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let word = |state: &StateFilter| state.to_possible_value().map(|value| value.get_name().to_owned());
    Ok(ListFilter {
        limit: None,
        cursor: args.after.as_ref().map(Cursor::to_text),
        id: None,
        states: args.state.iter().filter_map(word).collect(),
        team: args.team.clone(),
        task: args.task.clone(),
        parent,
        since: args.since.map(|time| Timestamp(now.saturating_sub(before(time)))),
    })
}

/// At most `limit` conversations, from as many pages as they take.
pub(super) async fn listed(
    remote: &Remote,
    mut filter: ListFilter,
    limit: Option<u64>,
) -> Result<ConversationPage, CliError> {
    let mut all = Vec::new();
    loop {
        let left = limit.map(|limit| limit.saturating_sub(all.len() as u64));
        filter.limit = Some(left.unwrap_or(PAGE).min(PAGE));
        let page = remote.client.list(&filter).await?;
        all.extend(page.conversations);
        let is_enough = limit.is_some_and(|limit| all.len() as u64 >= limit);
        if is_enough || page.next_cursor.is_none() || page.next_cursor == filter.cursor {
            return Ok(ConversationPage { conversations: all, next_cursor: page.next_cursor });
        }
        filter.cursor = page.next_cursor;
    }
}

/// What a conversation was forked from.
pub(super) fn parent(of: &wire::Parent) -> Parent {
    Parent { id: of.id.clone(), event: of.seq, edited: of.edited }
}

/// What a list has of a conversation.
fn listing(conversation: &Conversation) -> Listing {
    let Conversation { id, team_name, title, task, .. } = conversation;
    let title = title.as_ref().map_or_else(|| team_name.clone(), |title| format!("{team_name} {title}"));
    Listing {
        id: id.clone(),
        title,
        created: conversation.created_ms,
        has_team: true,
        parent: conversation.parent.as_ref().map(parent),
        summary: Summary {
            events: conversation.seq,
            // The caller has its words.
            progress: Progress::Open,
            is_paused: conversation.paused,
            task: task.clone(),
            started: conversation.started_ms,
            last: conversation.updated_ms,
            turns: conversation.turns,
            usage: conversation.usage,
            ..Summary::default()
        },
        is_damaged: false,
        is_archived: conversation.archived,
    }
}

/// The state in the words of the list.
fn state(conversation: &Conversation) -> ListedState {
    if let Some(ended) = &conversation.ended {
        let word = ended.word.word();
        return ListedState::new(word, format!("{}: {}", word.replace('_', " "), ended.detail));
    }
    let asked = || enumerated(conversation.questions.iter().map(|asked| asked.who.as_str()));
    match conversation.state {
        ConversationState::Waiting => ListedState::new("waiting", format!("waiting for {}", asked())),
        _ if conversation.paused => ListedState::word("paused"),
        ConversationState::Running => ListedState::open(OpenState::Running),
        _ => ListedState::open(conversation.halted.unwrap_or(OpenState::Interrupted)),
    }
}

pub(super) async fn waiting(args: &args::steer::Waiting, remote: &Remote) -> Result<Exit, CliError> {
    let filter = ListFilter { states: vec!["waiting".into()], ..ListFilter::default() };
    let page = listed(remote, filter, None).await?;
    let run = |conversation: Conversation| WaitingRun {
        listing: listing(&conversation),
        questions: conversation.questions.into_iter().map(Into::into).collect(),
    };
    waiting::print(&page.conversations.into_iter().map(run).collect::<Vec<_>>(), args, &remote.place)
}
