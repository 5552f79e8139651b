//! `run` and `resume` with a server: it runs the conversation, and the program follows it.

use std::path::Path;

use polylogue_client::wire::conversation::{Conversation, ConversationState, NewConversation, Resume};
use polylogue_client::wire::team::{Listed, Team, TeamLimits};
use polylogue_core::{BoundSummary, LimitOverrides};

use super::named_server::{Remote, uncertain};
use super::watch::Watch;
use crate::args;
use crate::commands::price::line_of_run;
use crate::commands::run::task_of;
use crate::commands::waiting;
use crate::error::{CliError, Exit};
use crate::launch::settings;
use crate::limit::counted;
use crate::stderr::print_note_wrapped;
use crate::text_arg::text_of;
use crate::user_config::default_cost;

pub(super) async fn run(cli: &args::Cli, args: &args::Run, remote: &Remote) -> Result<Exit, CliError> {
    let input = args.options.piped.of(args.task.as_deref(), None)?;
    let (message, settings) = (task_of(args)?, settings(cli, &args.options));
    let team = served(remote, team_id(&args.team)?).await?;
    let new = NewConversation {
        team: team.id.clone(),
        message,
        inputs: args.vars.iter().cloned().collect(),
        title: None,
        limits: limits(cli, &args.options.team, &team)?,
    };
    let begun = remote.client.begin(&new).await;
    let begun = begun.map_err(|error| uncertain(error, "the conversation may have begun"))?;
    if settings.output.is_conversation() {
        introduce(&team, begun.bound.as_ref(), new.message.is_some(), remote);
    }
    Watch {
        remote,
        // What has happened by now comes with its events.
        conversation: Conversation { questions: Vec::new(), bound_ended: None, ..begun },
        settings,
        answer: None,
        input,
        events: Vec::new(),
        is_resumed: false,
    }
    .run()
    .await
}

/// The limits of a conversation that begins: the cost is that of the user's settings, where the command line has none and the team allows more.
pub(super) fn limits(
    cli: &args::Cli,
    options: &args::TeamOptions,
    team: &Team,
) -> Result<LimitOverrides, CliError> {
    let mut limits = options.limits.overrides();
    if limits.cost.is_none() && !team.scripted {
        limits.cost = default_cost(cli, &options.models, team.limits.cost)?;
    }
    Ok(limits)
}

/// The id of a team on a server: the name of its file without the ending.
pub(super) fn team_id(given: &Path) -> Result<&str, CliError> {
    let name = if given.extension().is_some_and(|ending| ending == "yaml") {
        given.file_stem()
    } else {
        given.file_name()
    };
    name.and_then(|name| name.to_str()).ok_or_else(|| {
        CliError::usage(format!("`{}` names no team", given.display())).hint(
            "on a server, a team is named by its file without the ending: `polylogue run writer-critic`",
        )
    })
}

/// The team, or an error that says which there are.
pub(super) async fn served(remote: &Remote, id: &str) -> Result<Team, CliError> {
    let error = match remote.client.team(id).await {
        Ok(team) => return Ok(team),
        Err(error) => error,
    };
    if error.problem().is_none_or(|problem| problem.status != 404) {
        return Err(error.into());
    }
    let teams = all_teams(remote).await?;
    Err(CliError::from(error).hint(format!("the server has {teams}; it runs no team files of this machine")))
}

/// The ids of all teams, in words.
pub(super) async fn all_teams(remote: &Remote) -> Result<String, CliError> {
    let id = |team: &Listed| match team {
        Listed::Served(team) => format!("`{}`", team.id),
        Listed::Broken { id, .. } => format!("`{id}`"),
    };
    let teams: Vec<String> = remote.client.teams().await?.teams.iter().map(id).collect();
    Ok(teams.join(", "))
}

/// Says what a person has to know before it begins.
fn introduce(team: &Team, bound: Option<&BoundSummary>, own_task: bool, remote: &Remote) {
    if team.scripted {
        print_note_wrapped("This is a demonstration: the agents speak by the team's script.");
        if own_task {
            print_note_wrapped(
                "The script does not know your task: it replies to the one it was written for.",
            );
        }
    }
    let name = format!("{} at {}", team.name, remote.client.url());
    let TeamLimits { turns, calls, tokens, cost } = team.limits;
    let turns = turns.map(|turns| counted(turns, "turn"));
    if let Some(bound) = bound {
        let ends: Vec<String> = turns.into_iter().collect();
        return print_note_wrapped(&line_of_run(&name, &ends, bound, &[]));
    }
    let bounds = [
        turns,
        calls.map(|calls| counted(calls, "model call")),
        tokens.map(|tokens| counted(tokens, "token")),
        cost.map(|cost| cost.to_string()),
    ];
    let bounds = bounds.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let bounds = if bounds.is_empty() { bounds } else { format!(": at most {bounds}") };
    print_note_wrapped(&format!("{name}{bounds}"));
}

pub(super) async fn resume(cli: &args::Cli, args: &args::Resume, remote: &Remote) -> Result<Exit, CliError> {
    let input = args.options.piped.of(args.message.as_deref(), args.answer.as_deref())?;
    let (client, settings) = (&remote.client, settings(cli, &args.options));
    // What a list has of it leaves out whether its bound has ended to apply.
    let conversation = client.conversation(&client.find(&args.id).await?.id).await?;
    let Conversation { id, state, questions, .. } = &conversation;
    if args.answer.is_some() {
        let open = questions.iter().cloned().map(Into::into).collect();
        waiting::chosen(open, id, None)?;
    }
    let events = client.all_events(id, 0).await?.into_iter().map(Into::into).collect();
    let limits = args.options.team.limits.overrides();
    match args.message.as_deref().map(text_of).transpose()? {
        Some(text) if text.trim().is_empty() => return Err(CliError::usage("the message is empty")),
        Some(_) if *state != ConversationState::Closed => {
            let asks = questions.first().map(|asked| asked.who.clone());
            return Err(polylogue_runtime::Error::NotClosed { id: id.clone(), asks }.into());
        }
        Some(_) if !limits.is_empty() => {
            return Err(CliError::usage("with a server, a message and limits cannot be given at once")
                .hint("after a message, the limits of the team count from 0 again"));
        }
        Some(text) => drop(client.send(id, &text).await?),
        // Its run is followed, and the person asked.
        None if limits.is_empty()
            && !conversation.paused
            && matches!(state, ConversationState::Running | ConversationState::Waiting) => {}
        None => resumed(remote, &conversation, &Resume { limits }).await?,
    }
    Watch {
        remote,
        conversation,
        settings,
        answer: args.answer.clone(),
        input,
        events,
        is_resumed: args.message.is_none(),
    }
    .run()
    .await
}

/// Resumes it, or says why nothing is done.
async fn resumed(remote: &Remote, conversation: &Conversation, resume: &Resume) -> Result<(), CliError> {
    match remote.client.resume(&conversation.id, resume).await {
        Ok(_) => Ok(()),
        Err(error) if error.problem().is_some_and(|problem| problem.word() == "over") => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            print_note_wrapped(&format!("`{}`: {error}{hint}", conversation.id));
            Ok(())
        }
        Err(error) => Err(uncertain(error, "the conversation may continue")),
    }
}
