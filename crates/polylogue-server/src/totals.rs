//! What the conversations of a tenant have taken since the server started, by team, and as metrics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polylogue_core::{Body, Event, FinishReason, ToolStatus, TotalUsage};
use polylogue_wire::conversation::Outcome;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Unit;

/// The most models that are counted apart. Names of models are of team files, of which there can be any number.
const MODELS: usize = 200;

/// The most teams that a worker counts apart: those of its conversations, of which there can be any number.
const TEAMS: usize = 200;

/// The label of what is not counted apart.
pub(crate) const OTHER: &str = "other";

/// How long the calls of a model took. A clone is the same.
#[derive(Debug, Clone)]
struct CallSeconds {
    whole: Histogram,
    first_token: Histogram,
}

impl Default for CallSeconds {
    fn default() -> Self {
        // From 10 ms to 328 s.
        let new = || Histogram::new(exponential_buckets(0.01, 2.0, 16));
        Self { whole: new(), first_token: new() }
    }
}

/// How long a model call took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallTime {
    pub(crate) whole: Duration,
    /// Of a reply that was streamed.
    pub(crate) first_token: Option<Duration>,
}

/// What the conversations of a team have taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    turns: u64,
    failed_turns: u64,
    usage: TotalUsage,
    /// By model and finish reason.
    calls: BTreeMap<(Arc<str>, &'static str), u64>,
    /// By model: how long calls took, and until the first piece of a streamed reply.
    call_seconds: BTreeMap<Arc<str>, CallSeconds>,
    tool_calls: BTreeMap<&'static str, u64>,
    ended: BTreeMap<&'static str, u64>,
}

/// By id of the team.
#[derive(Debug, Default)]
pub(crate) struct Meters(Mutex<BTreeMap<String, Totals>>);

impl Meters {
    /// Adds what `event` took: `turns` and `usage`, how long, if it is the reply of a model, and what it says itself.
    pub(crate) fn add(
        &self,
        team: &str,
        event: &Event,
        (turns, usage): (u64, &TotalUsage),
        time: Option<CallTime>,
    ) {
        let change = |totals: &mut Totals| {
            totals.turns += turns;
            totals.usage.merge(usage);
            totals.take(event, time);
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(team) {
            Some(totals) => change(totals),
            None => change(all.entry(team.to_owned()).or_default()),
        }
    }

    /// Under which name a team is counted, of those whose number nothing bounds.
    pub(crate) fn name_of<'t>(&self, team: &'t str) -> &'t str {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.contains_key(team) || all.len() < TEAMS { team } else { OTHER }
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
const fn word(finish: &FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::Calls => "calls",
        FinishReason::Length => "length",
        FinishReason::Filter => "filter",
        FinishReason::ContextFull => "context_full",
        FinishReason::Refused { .. } => "refused",
        FinishReason::Paused => "paused",
        FinishReason::Malformed => "malformed",
        FinishReason::Interrupted => "interrupted",
        _ => "unknown",
    }
}

impl Totals {
    fn take(&mut self, event: &Event, time: Option<CallTime>) {
        match &event.body {
            Body::ModelReplied(reply) if !reply.cached => {
                let is_new = !self.calls.keys().any(|(model, _)| *model == reply.model);
                let model = if is_new && self.calls.len() >= MODELS {
                    OTHER.into()
                } else {
                    Arc::clone(&reply.model)
                };
                if let Some(CallTime { whole, first_token }) = time {
                    let seconds = self.call_seconds.entry(Arc::clone(&model)).or_default();
                    seconds.whole.observe(whole.as_secs_f64());
                    first_token.iter().for_each(|time| seconds.first_token.observe(time.as_secs_f64()));
                }
                *self.calls.entry((model, word(&reply.finish))).or_default() += 1;
            }
            Body::ToolReturned { result, .. } => {
                let word = match result.status {
                    ToolStatus::Done => "done",
                    ToolStatus::Failed => "failed",
                    ToolStatus::Unknown => "unknown",
                };
                *self.tool_calls.entry(word).or_default() += 1;
            }
            Body::Failed { error, .. } if !error.postponed => self.failed_turns += 1,
            Body::Closed { reason, .. } if event.chat.is_root() => {
                *self.ended.entry(Outcome::from(reason.outcome()).word()).or_default() += 1;
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

/// Encodes a family of histograms of seconds, by team and model.
fn histograms(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    all: &[(String, Totals)],
    of: fn(&CallSeconds) -> &Histogram,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
    for (team, totals) in all {
        for (name, seconds) in &totals.call_seconds {
            let (provider, model) = parts(name);
            let labels = [("team", team.as_str()), ("provider", provider), ("model", model)];
            of(seconds).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// The provider and the model that a name has.
fn parts(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or(("", name))
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
                let (provider, model) = parts(name);
                (
                    [("team", team), ("provider", provider), ("model", model), ("outcome", outcome)],
                    float(count),
                )
            })
        });
        counters(to, ("model_calls", "Finished model calls, by finish reason"), calls)?;
        let help = "Duration of a model call until its reply is stored, with retries and waits for limits";
        histograms(to, ("model_call", help), &self.0, |seconds| &seconds.whole)?;
        let help = "Time until the first piece of a streamed reply";
        histograms(to, ("first_token", help), &self.0, |seconds| &seconds.first_token)?;
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
