//! `show` of a conversation of a server.

use std::io;

use polylogue::tasks::History;
use polylogue_client::wire::calls as wire;
use polylogue_client::wire::conversation::{Conversation, ConversationState};
use polylogue_core::{Body, Entry, Event, LogId};
use polylogue_runtime::AgentHistory;
use serde_json::Value;

use super::list;
use super::named_server::Remote;
use crate::args;
use crate::commands::runs::origin;
use crate::commands::show::{code, cost, print_open, side_by_side, whole, write_with_bound};
use crate::commands::{unwritable, write};
use crate::error::{CliError, Exit};
use crate::launch::wish;
use crate::screen::{OutputStyle, Sanitized, document};
use crate::stderr::print_note;
use crate::work_dir;

pub(super) async fn run(cli: &args::Cli, args: &args::Show, remote: &Remote) -> Result<Exit, CliError> {
    let conversation = remote.client.find(&args.id).await?;
    let looks = OutputStyle::of(wish(cli.color), &io::stdout());
    if args.history || args.side_by_side {
        write(&histories(args, remote, &conversation.id, looks).await?)?;
        return Ok(Exit::Done);
    }
    if let Some(agent) = &args.agent {
        let view = remote.client.view(&conversation.id, agent, args.call).await?;
        if !view.exact {
            print_note(
                "The team was changed since: what was sent differed in the system text, tools or parameters.",
            );
        }
        write(&received(&view.request, args.json, looks)?)?;
        return Ok(Exit::Done);
    }
    let events = remote.client.all_events(&conversation.id, 0).await?;
    if let Some(nth) = args.code {
        return code::print(&events, nth);
    }
    if args.cost {
        write(&cost::shown(&events, args.json, looks).map_err(unwritable)?)?;
        return Ok(Exit::Done);
    }
    let name = &conversation.team_name;
    let title = conversation.title.as_ref().map_or_else(|| name.clone(), |title| format!("{name} {title}"));
    let text = whole(&title, &events, args, looks, work_dir::pictures_of_server(looks))?;
    // What a list has of it leaves that out.
    let Conversation { bound, bound_ended, state, halted, .. } =
        remote.client.conversation(&conversation.id).await?;
    let bound = bound.as_ref().map(|bound| (bound, bound_ended.as_deref()));
    write_with_bound(&text, &conversation.id, bound, args)?;
    if let Some(parent) = conversation.parent.filter(|_| !args.json) {
        write(&Sanitized::plain("\n"))?;
        write(&Sanitized::row(&origin(&list::parent(&parent))))?;
    }
    if !args.json
        && let Some(files) = files(remote, &conversation.id, &events).await
    {
        write(&Sanitized::plain("\n"))?;
        write(&Sanitized::row(&files))?;
    }
    if !args.json && !args.markdown {
        let is_running = state != ConversationState::Halted;
        print_open(&events, (&conversation.id, &remote.place), (is_running, halted));
    }
    Ok(Exit::Done)
}

/// What is said of the files of a conversation, if a tool can have written some.
async fn files(remote: &Remote, id: &LogId, events: &[Event]) -> Option<String> {
    if !events.iter().any(|event| matches!(event.body, Body::ToolReturned { .. })) {
        return None;
    }
    // What was said is shown, also if they are damaged.
    let files = remote.client.files(id).await.ok()?.files;
    work_dir::stored_summary(id, files.len() as u64, &remote.place)
}

/// What agents received and said, as the server has it.
async fn histories(
    args: &args::Show,
    remote: &Remote,
    id: &LogId,
    looks: OutputStyle,
) -> Result<Sanitized, CliError> {
    let all = remote.client.histories(id).await?.histories.into_iter();
    let sides: Vec<AgentHistory> = all
        .map(|wire::AgentHistory { chat: at, agent: who, system, entries }| AgentHistory {
            chat: at,
            who,
            system,
            history: History { entries },
        })
        .collect();
    side_by_side::shown(&sides, args, looks, |agent| {
        let mut names: Vec<String> = sides.iter().map(|side| format!("`{}`", side.who)).collect();
        names.dedup();
        CliError::usage(format!("the model of `{agent}` was not asked"))
            .hint(format!("those of {} were", names.join(", ")))
    })
}

/// The request to a model, as the server has it.
fn received(request: &Value, as_json: bool, looks: OutputStyle) -> Result<Sanitized, CliError> {
    if as_json {
        return Sanitized::json(request).map_err(unwritable);
    }
    let system = request.get("system").and_then(Value::as_str);
    let entries = request.get("entries").cloned().unwrap_or_default();
    let entries: Vec<Entry> = serde_json::from_value(entries).map_err(|error| {
        CliError::failed(format!("the server shows requests in another form: {error}"))
            .hint("`--json` prints them as they came")
    })?;
    Ok(document::received(system, &entries, looks.color))
}
