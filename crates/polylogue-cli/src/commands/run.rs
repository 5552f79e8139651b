//! `polylogue run`: a team on a task.

use std::fmt;
use std::time::Duration;

use polylogue::{Chat, Limits};
use polylogue_core::{BoundSummary, Money};
use polylogue_runtime::Prepared;
use polylogue_team::{Overrides, Stop, Team};

use super::{hand_over, price};
use crate::error::{CliError, Exit};
use crate::launch::{
    Launch, print_default_model, print_local_models, print_scripted, settings, warn_of_unbounded,
};
use crate::limit::counted;
use crate::place::{self, PlaceOption};
use crate::runner::Runner;
use crate::screen::time;
use crate::stderr::print_note_wrapped;
use crate::text_arg::text_of;
use crate::trust::rules::Always;
use crate::user_config::default_model;
use crate::{args, attachments, trust};

pub(crate) async fn run(cli: &args::Cli, args: &args::Run) -> Result<Exit, CliError> {
    hand_over::check(&args.detach, &args.budgets, &args.options)?;
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
    let settings = settings(cli, &args.options);
    let mut launch = Launch::of(loaded, &args.team, &args.options.team).with_default_cost(cli)?;
    launch.shown = Some(&settings);
    launch.shared_budget = args.budgets.limits_cost();
    launch.dir = args.options.folder.path()?;
    // Whatever is wrong with the team shows before there is a store.
    let mut prepared = launch.prepare(&place::of(&cli.named_store())?).await?;
    attachments::check(&prepared, &attached)?;
    let runtime = args.budgets.pay_for(place::open(&cli.named_store())?).await?;
    if args.detach.detach {
        // A refused one leaves no conversation.
        runtime.queue()?;
    }
    let conversation = runtime.begin(&prepared.run().with_attached(attached)).await?;
    let bound = runtime.bound_summary(conversation.id()).await?;
    let bounds = Bounds::of(prepared.team(), conversation.chat(), conversation.limits());
    let line = bound.as_ref().map(|bound| bounds.line(prepared.team().name.as_str(), bound));
    if args.detach.detach {
        if let Some(line) = line.filter(|_| settings.output.is_conversation()) {
            print_note_wrapped(&line);
        }
        let place = PlaceOption::of_store(&cli.named_store());
        let handed = (&conversation, &prepared, bound.as_ref());
        return hand_over::hand_over(&runtime, handed, &args.detach, &settings, &place).await;
    }
    if settings.output.is_conversation() {
        introduce(&prepared, &bounds, line, overrides.task.is_some());
        print_default_model(&prepared, default.as_ref());
    }
    Runner {
        conversation,
        runtime,
        settings,
        answer: None,
        input,
        work: cli.named_store(),
        always: Always::of(prepared.access()),
        progress: prepared.servers_mut().take_progress(),
        says_bound: !prepared.is_scripted(),
        keeps_texts: false,
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

/// Says what a person has to know before it begins: who speaks, and what ends it at the latest: the `line` with the most that it
/// takes, if a model is called.
fn introduce(prepared: &Prepared, bounds: &Bounds, line: Option<String>, own_task: bool) {
    print_scripted(prepared, own_task);
    let line = line.unwrap_or_else(|| format!("{}: at most {bounds}", prepared.team().name));
    print_note_wrapped(&line);
    print_local_models(prepared);
    if bounds.is_cost_limited {
        warn_of_unbounded(prepared);
    }
}

/// What ends a run at the latest: the lowest limits of the run, of its outermost chat, and of the conditions of that which suffice
/// alone.
struct Bounds {
    turns: String,
    /// Those of each chat, if nothing else limits them.
    turns_of_chat: Option<u64>,
    messages: Option<u64>,
    calls: u64,
    tokens: Option<u64>,
    time: Option<Duration>,
    is_cost_limited: bool,
    /// Tokens and money of the conditions, which end the chat after the turn that reaches them.
    tokens_of_stop: Option<u64>,
    cost_of_stop: Option<Money>,
}

impl Bounds {
    fn of(team: &Team, chat: &Chat, limits: &Limits) -> Self {
        let stop = team.chat.stop.as_ref();
        let own = team.chat.limits.allowance().unwrap_or_default();
        let times = [own.time_ms, limits.time_ms].map(|time| time.map(Duration::from_millis));
        let time = |stop: &Stop| stop.max_time.map(Duration::from);
        let tokens_of_stop = lowest(stop, |stop| stop.max_tokens, []);
        let (turns, turns_of_chat) = turns(stop, chat, limits);
        Self {
            turns,
            turns_of_chat,
            messages: lowest(stop, |stop| stop.max_messages, []),
            calls: own.calls.into_iter().fold(limits.max_calls(), u64::min),
            tokens: [own.tokens, limits.tokens, tokens_of_stop].into_iter().flatten().min(),
            time: lowest(stop, time, times),
            is_cost_limited: limits.cost.is_some(),
            tokens_of_stop,
            cost_of_stop: lowest(stop, |stop| stop.max_cost.map(Money::dollars), []),
        }
    }

    /// The line that says so of the team `name`, with its `bound`.
    fn line(&self, name: &str, bound: &BoundSummary) -> String {
        let cost = self.cost_of_stop.filter(|cost| bound.cost.is_none_or(|most| *cost < most));
        let tokens = self.tokens_of_stop.filter(|tokens| bound.tokens.is_none_or(|most| *tokens < most));
        let last = [cost.map(|cost| cost.to_string()), tokens.map(|tokens| counted(tokens, "token"))];
        let last: Vec<String> = last.into_iter().flatten().collect();
        // Fewer calls than a chat can have turns say more.
        let is_said = |calls: u64| self.turns_of_chat.is_some_and(|turns| calls <= turns);
        let turns = (!bound.calls.is_some_and(is_said)).then(|| self.turns.clone());
        price::line_of_run(name, &self.ends(turns), bound, &last)
    }

    /// Those that are not in the bound of a run.
    fn ends(&self, turns: Option<String>) -> Vec<String> {
        let messages = self.messages.map(|most| counted(most, "message"));
        [turns, messages, self.time.map(time)].into_iter().flatten().collect()
    }
}

/// Without the cost: no model is called.
impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = self.tokens.map(|most| counted(most, "token"));
        let ends = self.ends(Some(self.turns.clone())).into_iter();
        let bounds = ends.chain([counted(self.calls, "model call")]).chain(tokens);
        f.write_str(&bounds.collect::<Vec<_>>().join(", "))
    }
}

/// The limit on turns, and that of each chat, if it is that.
fn turns(stop: Option<&Stop>, chat: &Chat, limits: &Limits) -> (String, Option<u64>) {
    let own = lowest(stop, |stop| stop.max_turns, []).filter(|turns| *turns < chat.max_turns());
    match (limits.turns, own) {
        (Some(turns), own) if own.is_none_or(|own| turns < own) => {
            (format!("{} in all", counted(turns, "turn")), None)
        }
        (_, Some(own)) => (counted(own, "turn"), None),
        (_, None) => (format!("{} a chat", counted(chat.max_turns(), "turn")), Some(chat.max_turns())),
    }
}

/// The lowest limit of `stop`, of the conditions each of which suffices, and of `others`.
fn lowest<T: Ord, const N: usize>(
    stop: Option<&Stop>,
    limit: impl Fn(&Stop) -> Option<T>,
    others: [Option<T>; N],
) -> Option<T> {
    fn of_conditions<T: Ord>(stop: &Stop, limit: &dyn Fn(&Stop) -> Option<T>) -> Option<T> {
        let others = stop.any.iter().filter_map(|stop| of_conditions(stop, limit));
        limit(stop).into_iter().chain(others).min()
    }
    let own = stop.and_then(|stop| of_conditions(stop, &limit));
    own.into_iter().chain(others.into_iter().flatten()).min()
}
