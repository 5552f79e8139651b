//! `polylogue run`: a team on a task.

use polylogue::{Chat, Limits};
use polylogue_runtime::Prepared;
use polylogue_team::{Overrides, Stop, Team};

use super::hand_over::hand_over;
use super::price;
use crate::error::{CliError, Exit};
use crate::launch::{Launch, print_default_model, print_scripted, settings, warn_of_unbounded};
use crate::limit::counted;
use crate::runner::Runner;
use crate::stderr::print_note_wrapped;
use crate::text_arg::text_of;
use crate::trust::rules::Always;
use crate::user_config::default_model;
use crate::{args, attachments, place, trust};

pub(crate) async fn run(cli: &args::Cli, args: &args::Run) -> Result<Exit, CliError> {
    let input = args.options.piped.of(args.task.as_deref(), None)?;
    let default = default_model(cli, &args.options.team.models)?;
    let task = task_of(args)?;
    let overrides = Overrides {
        vars: args.vars.iter().cloned().collect(),
        task,
        model: args.options.team.models.model.clone(),
        default_model: default.as_ref().map(|given| given.value.clone()),
        ..Overrides::default()
    };
    let attached = args.attach.parts()?;
    let loaded = trust::load(&args.team, &overrides, &args.options.team.allowed.permits)?;
    let settings = settings(cli, args.options.output);
    let mut launch = Launch::of(loaded, &args.team, &args.options.team).with_default_cost(cli)?;
    launch.shown = Some(&settings);
    launch.shared_budget = args.budgets.limits_cost();
    launch.dir = args.options.folder.path()?;
    // Whatever is wrong with the team shows before there is a store.
    let mut prepared = launch.prepare(&place::of(cli.store.as_deref())?).await?;
    attachments::check(&prepared, &attached)?;
    let runtime = args.budgets.pay_for(place::open(cli.store.as_deref())?).await?;
    let conversation = runtime.begin(&prepared.run()).await?;
    if args.detach.detach {
        return hand_over(&runtime, &conversation, &args.detach, &settings).await;
    }
    conversation.attach(attached);
    if settings.output.is_conversation() {
        introduce(&prepared, conversation.chat(), conversation.limits(), overrides.task.is_some());
        print_default_model(&prepared, default.as_ref());
    }
    Runner {
        conversation,
        runtime,
        settings,
        answer: None,
        input,
        work: cli.store.clone(),
        always: Always::of(prepared.access()),
        progress: prepared.servers_mut().take_progress(),
    }
    .run()
    .await
}

/// The task that the command line gives.
pub(crate) fn task_of(args: &args::Run) -> Result<Option<String>, CliError> {
    let task = args.task.as_deref().map(text_of).transpose()?;
    if task.as_ref().is_some_and(|task| task.trim().is_empty()) {
        let hint = "omit it for the task of the team file, or name a task: `polylogue run TEAM TASK`";
        return Err(CliError::usage("the task is empty").hint(hint));
    }
    Ok(task)
}

/// Says what a person has to know before it begins: who speaks, and what ends it at the latest.
fn introduce(prepared: &Prepared, chat: &Chat, limits: &Limits, own_task: bool) {
    print_scripted(prepared, own_task);
    let cost = match limits.cost {
        _ if prepared.is_scripted() => String::new(),
        Some(cost) => format!(", {cost}"),
        None => "; no limit on cost (`--max-cost`)".into(),
    };
    print_note_wrapped(&format!(
        "{}: at most {}{cost}",
        prepared.team().name,
        bounds(prepared.team(), chat, limits)
    ));
    if let Some(line) = price::line_of(prepared, None) {
        print_note_wrapped(&line);
    }
    if limits.cost.is_some() {
        warn_of_unbounded(prepared);
    }
}

fn bounds(team: &Team, chat: &Chat, limits: &Limits) -> String {
    let stop = team.chat.stop.as_ref();
    let own =
        stop.and_then(|stop| fewest(stop, &|stop| stop.max_turns)).filter(|turns| *turns < chat.max_turns());
    let mut bounds = vec![match (limits.turns, own) {
        (Some(turns), own) if own.is_none_or(|own| turns < own) => {
            format!("{} in all", counted(turns, "turn"))
        }
        (_, Some(own)) => counted(own, "turn"),
        (_, None) => format!("{} a chat", counted(chat.max_turns(), "turn")),
    }];
    bounds.extend(
        stop.and_then(|stop| fewest(stop, &|stop| stop.max_messages)).map(|own| counted(own, "message")),
    );
    bounds.push(counted(limits.max_calls(), "model call"));
    let tokens =
        stop.and_then(|stop| fewest(stop, &|stop| stop.max_tokens)).into_iter().chain(limits.tokens).min();
    bounds.extend(tokens.map(|tokens| counted(tokens, "token")));
    bounds.join(", ")
}

/// The lowest limit of `stop`, or of one of the conditions each of which suffices.
fn fewest(stop: &Stop, limit: &dyn Fn(&Stop) -> Option<u64>) -> Option<u64> {
    let others = stop.any.iter().filter_map(|stop| fewest(stop, limit));
    limit(stop).into_iter().chain(others).min()
}
