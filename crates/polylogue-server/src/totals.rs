//! What the conversations of a tenant have taken since the server started, by team, and as metrics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::{Body, Event, Finish, OutcomeStatus, TotalUsage};
use polylogue_wire::conversation::Ending;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

/// The most models that are counted apart. Names of models are of team files, of which there can be any number.
const MODELS: usize = 200;

/// The label of what is not counted apart.
pub(crate) const OTHER: &str = "other";

/// What the conversations of a team have taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    turns: u64,
    failed_turns: u64,
    usage: TotalUsage,
    /// By model and finish reason.
    calls: BTreeMap<(Arc<str>, &'static str), u64>,
    tool_calls: BTreeMap<&'static str, u64>,
    ended: BTreeMap<&'static str, u64>,
}

/// By id of the team.
#[derive(Debug, Default)]
pub(crate) struct Meters(Mutex<BTreeMap<String, Totals>>);

impl Meters {
    /// Adds what `event` took: `turns` and `usage`, and what it says itself.
    pub(crate) fn add(&self, team: &str, event: &Event, turns: u64, usage: &TotalUsage) {
        let change = |totals: &mut Totals| {
            totals.turns += turns;
            totals.usage.merge(usage);
            totals.take(event);
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(team) {
            Some(totals) => change(totals),
            None => change(all.entry(team.to_owned()).or_default()),
        }
    }

    /// Those of the teams that `sees` names.
    pub(crate) fn of(&self, sees: impl Fn(&str) -> bool) -> Readings {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Readings(
            all.iter()
                .filter(|(team, _)| sees(team))
                .map(|(team, totals)| (team.clone(), totals.clone()))
                .collect(),
        )
    }
}

/// The word for a finish reason.
const fn word(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Calls => "calls",
        Finish::Length => "length",
        Finish::Filter => "filter",
        Finish::ContextFull => "context_full",
        Finish::Refused { .. } => "refused",
        Finish::Paused => "paused",
        Finish::Malformed => "malformed",
        Finish::Interrupted => "interrupted",
        _ => "unknown",
    }
}

impl Totals {
    fn take(&mut self, event: &Event) {
        match &event.body {
            Body::ModelReplied(reply) if !reply.cached => {
                let is_new = !self.calls.keys().any(|(model, _)| *model == reply.model);
                let model = if is_new && self.calls.len() >= MODELS {
                    OTHER.into()
                } else {
                    Arc::clone(&reply.model)
                };
                *self.calls.entry((model, word(&reply.finish))).or_default() += 1;
            }
            Body::ToolReturned { outcome, .. } => {
                let word = match outcome.status {
                    OutcomeStatus::Done => "done",
                    OutcomeStatus::Failed => "failed",
                    OutcomeStatus::Unknown => "unknown",
                };
                *self.tool_calls.entry(word).or_default() += 1;
            }
            Body::Failed { .. } => self.failed_turns += 1,
            Body::Closed { reason, .. } if event.at.is_root() => {
                *self.ended.entry(Ending::from(reason.outcome()).word()).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// The totals of teams at one moment, as metrics.
#[derive(Debug)]
pub(crate) struct Readings(Vec<(String, Totals)>);

/// Encodes a family of counters: rows of labels and values.
fn counters<'l, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    rows: impl Iterator<Item = ([(&'static str, &'l str); N], f64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in rows {
        ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "the format has no other numbers; they are exact up to 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let to = &mut encoder;
        let teams = || self.0.iter().map(|(team, totals)| (team.as_str(), totals));
        let of_team =
            |value: fn(&Totals) -> f64| teams().map(move |(team, totals)| ([("team", team)], value(totals)));
        let outcomes = |counts: fn(&Totals) -> &BTreeMap<&'static str, u64>| {
            teams().flat_map(move |(team, totals)| {
                counts(totals)
                    .iter()
                    .map(move |(&outcome, &count)| ([("team", team), ("outcome", outcome)], float(count)))
            })
        };
        counters(to, ("turns", "Turns of agents"), of_team(|totals| float(totals.turns)))?;
        let help = "Turns that failed, and are retried when the conversation continues";
        counters(to, ("turns_failed", help), of_team(|totals| float(totals.failed_turns)))?;
        let calls = teams().flat_map(|(team, totals)| {
            totals.calls.iter().map(move |((name, outcome), &count)| {
                let (provider, model) = name.split_once(':').unwrap_or(("", name));
                (
                    [("team", team), ("provider", provider), ("model", model), ("outcome", outcome)],
                    float(count),
                )
            })
        });
        counters(to, ("model_calls", "Finished model calls, by finish reason"), calls)?;
        let help = "Model calls whose tokens the provider did not report";
        counters(to, ("unmetered_calls", help), of_team(|totals| float(totals.usage.unmetered)))?;
        let tokens = teams().flat_map(|(team, totals)| {
            let usage = &totals.usage;
            let cache = &usage.prompt_cache;
            let kinds = [
                ("input", usage.input),
                ("output", usage.output),
                ("reasoning", usage.reasoning),
                ("cache_read", cache.read),
                ("cache_write", cache.written),
            ];
            kinds.map(|(kind, count)| ([("team", team), ("kind", kind)], float(count)))
        });
        let help =
            "Tokens; reasoning is a part of the output, and those of prompt caches are a part of the input";
        counters(to, ("tokens", help), tokens)?;
        let dollars = of_team(|totals| float(totals.usage.cost.picodollars) / 1e12);
        counters(to, ("cost_dollars", "Cost of model calls, where it is known"), dollars)?;
        counters(to, ("tool_calls", "Finished tool calls"), outcomes(|totals| &totals.tool_calls))?;
        counters(to, ("conversations_ended", "Conversations that ended"), outcomes(|totals| &totals.ended))
    }
}
