//! Termination conditions of AgentChat.

use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::report::Result;
use crate::yaml::{Entries, Yaml};

/// The `stop` of a team: its termination condition and its limit on turns.
pub(super) fn stop(config: &mut Fields<'_>, draft: &mut Draft) -> Result<Option<Yaml>> {
    let limit = config.count("max_turns")?.map(|turns| vec![("max_turns".to_owned(), Yaml::plain(turns))]);
    let given = config.take("termination_condition").map(|at| condition(&at, draft)).transpose()?.flatten();
    let any = given.into_iter().chain(limit).collect();
    Ok(joined_by_or(any).map(Yaml::Map))
}

/// Conditions of which any ends the chat: as keys of one mapping where their kinds differ, else under `any`.
fn joined_by_or(conditions: Vec<Entries>) -> Option<Entries> {
    let mut all: Entries = Vec::new();
    let mut repeated: Vec<Yaml> = Vec::new();
    for condition in conditions {
        let is_new = condition.iter().all(|(key, _)| all.iter().all(|(known, _)| known != key));
        if is_new { all.extend(condition) } else { repeated.push(Yaml::Map(condition)) }
    }
    match all.iter_mut().find(|(key, _)| key == "any") {
        Some((_, Yaml::List(any))) => any.append(&mut repeated),
        _ if !repeated.is_empty() => all.push(("any".into(), Yaml::List(repeated))),
        _ => {}
    }
    (!all.is_empty()).then_some(all)
}

/// A condition; `None` if it has no equivalent.
fn condition(at: &At<'_>, draft: &mut Draft) -> Result<Option<Entries>> {
    let mut fields = at.fields()?;
    let class = fields.class()?;
    let mut config = match fields.take("config") {
        Some(config) => config.fields()?,
        None => return at.wrong("`config` is missing"),
    };
    let made = match class.as_str() {
        "OrTerminationCondition" => {
            let conditions = all(&config.need("conditions")?, draft)?;
            joined_by_or(conditions.into_iter().flatten().collect())
        }
        "AndTerminationCondition" => both(&config.need("conditions")?, draft)?,
        "MaxMessageTermination" => {
            config.cannot("include_agent_event", "left out: messages are counted, and nothing else", draft);
            one("max_messages", Yaml::plain(config.need("max_messages")?.count()?))
        }
        "TextMentionTermination" => {
            let text = Yaml::text(config.need("text")?.text()?);
            match config.take("sources") {
                None => one("says", text),
                Some(sources) => by("says", ("text", text), &sources, draft)?,
            }
        }
        "TimeoutTermination" => time(&config.need("timeout_seconds")?, draft)?,
        "TokenUsageTermination" => {
            for key in ["max_prompt_token", "max_completion_token"] {
                config.cannot(key, "left out: tokens read and written are counted together", draft);
            }
            config.count("max_total_token")?.and_then(|total| one("max_tokens", Yaml::plain(total)))
        }
        "SourceMatchTermination" => {
            by("matches", ("pattern", Yaml::text("^")), &config.need("sources")?, draft)?
        }
        "TextMessageTermination" => match config.take("source") {
            Some(source) => by("matches", ("pattern", Yaml::text("^")), &source, draft)?,
            None => one("matches", Yaml::text("^")),
        },
        _ => {
            draft.note(&at.path, without(&class));
            return Ok(None);
        }
    };
    config.rest(draft);
    fields.rest(draft);
    Ok(made)
}

fn one(key: &str, value: Yaml) -> Option<Entries> {
    Some(vec![(key.to_owned(), value)])
}

/// A limit on time.
fn time(at: &At<'_>, draft: &mut Draft) -> Result<Option<Entries>> {
    let seconds = at.number()?;
    if (0.001..=86_400.0).contains(&seconds) {
        return Ok(one("max_time", Yaml::plain(format!("{seconds} s"))));
    }
    draft.note(&at.path, "left out: a time is from 1 ms to 24 h here");
    Ok(None)
}

/// Why a condition has no equivalent.
fn without(class: &str) -> String {
    match class {
        "HandoffTermination" => {
            "left out: a person who is handed to is a participant here, and is asked".into()
        }
        "StopMessageTermination" => "left out: agents of a team file say no stop messages".into(),
        "ExternalTermination" => "left out: Ctrl-C ends a run, and `polylogue resume` continues it".into(),
        "FunctionCallTermination" | "FunctionalTermination" => {
            "left out: code and calls of functions end no chat here; see `stop.when`".into()
        }
        other => format!("left out: `{other}` is unknown"),
    }
}

fn all(at: &At<'_>, draft: &mut Draft) -> Result<Vec<Option<Entries>>> {
    at.items()?.iter().map(|at| condition(at, draft)).collect()
}

/// Conditions that must all be met. Without one of them, the others would end the chat too soon.
fn both(at: &At<'_>, draft: &mut Draft) -> Result<Option<Entries>> {
    let conditions = all(at, draft)?;
    if conditions.iter().any(Option::is_none) {
        draft.note(&at.path, "left out as a whole: without all of its parts it would end the chat too soon");
        return Ok(None);
    }
    let all = conditions.into_iter().flatten().map(Yaml::Map).collect();
    Ok(Some(vec![("all".to_owned(), Yaml::List(all))]))
}

/// A condition on the messages of some agents; `None` if all are unknown.
fn by(
    kind: &str,
    (key, value): (&str, Yaml),
    sources: &At<'_>,
    draft: &mut Draft,
) -> Result<Option<Entries>> {
    let names = draft.all_known(&sources.texts()?, &sources.path);
    if names.is_empty() {
        draft.note(&sources.path, "the condition is left out: its sources are unknown");
        return Ok(None);
    }
    let entries = vec![(key.to_owned(), value), ("by".to_owned(), Yaml::texts(names))];
    Ok(Some(vec![(kind.to_owned(), Yaml::Map(entries))]))
}
