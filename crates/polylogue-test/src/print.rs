//! Logs as text, for tests that compare whole transcripts.

use std::borrow::{Borrow, Cow};
use std::fmt::Write;

use polylogue_core::{
    Audience, BackgroundResult, BackgroundTask, Body, Choice, Chooser, Compacted, Event, Failure,
    FinishReason, HistoryEntry, JoinHistory, Media, Message, ModelReply, Name, Part, ToolCall, ToolStatus,
    TurnRequest, text,
};

/// Formats one line for each event: its number, its chat unless that is the outermost, and its content.
///
/// ```text
/// 0 opened [a, critic] "write a poem" | user: Be brief
/// 1 turn a
/// 2 script:a replies to a (stop, 12+4 tokens): Roses
/// 3 a says: Roses
/// 4 /critic.1 opened [judge] "write a poem"
/// 5 /critic.1 turn judge in private "Is it good?"
/// 6 /critic.1 judge calls grade {"of":"poem"} #judge-0-0
/// 7 /critic.1 judge gets #judge-0-0 failed: no grades today
/// 8 closed (every participant has spoken): Roses
/// ```
///
/// Parts are separated by ` | `, thoughts are in parentheses. Line breaks in texts are written `\n`, so that each line
/// is an event. Times and the digests of requests, which differ from run to run, are omitted.
pub fn transcript<E: Borrow<Event>>(events: &[E]) -> String {
    let mut text = String::new();
    for event in events {
        let Event { seq, chat: at, body, .. } = event.borrow();
        let gap = if at.is_root() { "" } else { " " };
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{seq}{gap}{at} {}", self::body(body));
    }
    text
}

fn turn(turn: &TurnRequest) -> String {
    let prompt = turn.prompt.as_ref().map(|prompt| format!(" \"{}\"", line(prompt)));
    let choice = turn.choice.as_ref().map(|choice| self::choice(choice)).unwrap_or_default();
    format!("turn {}{}{}{choice}", turn.who, audience(&turn.to), prompt.unwrap_or_default())
}

/// Why a speaker was selected.
fn choice(choice: &Choice) -> String {
    let of: Vec<_> = choice.of.iter().map(ToString::to_string).collect();
    let by = match &choice.by {
        Chooser::Only => "the only one".to_owned(),
        Chooser::Order => "by order".to_owned(),
        Chooser::Chance { seed } => format!("by chance {seed}"),
        Chooser::Rule => "by rule".to_owned(),
        Chooser::Agent(who) => format!("by {who}"),
        Chooser::Handoff => "by handoff".to_owned(),
        Chooser::Background => "for a result".to_owned(),
        Chooser::Tools => "for its tools".to_owned(),
        Chooser::Fallback { why } => format!("by order, because {}", line(why)),
        other => format!("{other:?}"),
    };
    let reply = choice.reply.as_ref().map(|reply| format!(", who replied: {}", line(reply)));
    format!(" (of [{}] {by}{})", of.join(", "), reply.unwrap_or_default())
}

/// Why parameters were left out.
fn what_left_out(model: &str, output_limit: Option<u32>) -> String {
    match output_limit {
        Some(limit) => format!("what {limit} tokens of {model} leave no room for"),
        None => format!("what {model} does not accept"),
    }
}

/// The content of an event, as one line.
fn body(body: &Body) -> String {
    match body {
        Body::Opened(opening) => {
            let names: Vec<_> = opening.participants.iter().map(ToString::to_string).collect();
            let first = format!("opened [{}] \"{}\"", names.join(", "), line(&opening.task));
            let said = opening.messages.iter().map(|message| self::message(message, ""));
            std::iter::once(first).chain(said).collect::<Vec<_>>().join(" | ")
        }
        Body::TurnStarted { turns } => turns.iter().map(turn).collect::<Vec<_>>().join(" | "),
        Body::ModelReplied(reply) => model_reply(reply),
        Body::Prompted { who, text } => format!("{who} is prompted: {}", line(text)),
        Body::ToolCalled { who, call } => format!("{who} {}", self::call("calls", call)),
        Body::ToolReturned { who, id, result: outcome } => {
            let status = match outcome.status {
                ToolStatus::Done => "",
                ToolStatus::Failed => " failed",
                ToolStatus::Unknown => " unknown",
            };
            format!("{who} gets #{id}{status}: {}", parts(&outcome.parts))
        }
        Body::Message(message) => self::message(message, " says"),
        Body::Passed { who } => format!("{who} passes"),
        Body::Left { who, why } => format!("{who} leaves: {}", line(why)),
        Body::Posted(message) => format!("posted {}", self::message(message, "")),
        Body::Sent(message) => format!("sent {}", self::message(message, "")),
        Body::InputRequired(question) => format!("{} asks: {}", question.who, line(&question.text)),
        Body::InputProvided { to, text, .. } => format!("{to} is answered: {}", line(text)),
        Body::Failed { who, error } => format!("{who} fails {}", failure(error)),
        Body::Closed { reason, summary } => format!("closed ({reason}): {}", line(summary)),
        Body::Reopened { message: None, .. } => "reopened".to_owned(),
        Body::Reopened { message: Some(message), .. } => format!("reopened {}", self::message(message, "")),
        Body::Stopped { who, reason } => format!("{who} ends the chat: {reason}"),
        Body::Joined { who, sees: JoinHistory::All } => format!("{who} joins, and sees the whole history"),
        Body::Joined { who, sees: JoinHistory::New } => format!("{who} joins, and sees new messages only"),
        Body::Remembered { who, entries } => {
            let entries = entries.iter().map(|entry| match entry {
                HistoryEntry::Received(text) => format!("received {}", line(text)),
                HistoryEntry::Sent(text) => format!("sent {}", line(text)),
            });
            format!("{who} replaces its history of the turn: {}", entries.collect::<Vec<_>>().join(" | "))
        }
        Body::ContinuationFailed { who, why } => format!("{who} cannot continue its reply: {why}"),
        Body::CapabilityMissing { who, model, capability, why } => {
            format!("{who} finds that {model} does not support {capability}: {}", line(why))
        }
        Body::SealsRefused { who, model, why } => {
            format!("{who} continues without the seals that {model} refuses: {}", line(why))
        }
        Body::ParametersIgnored { who, model, parameters, output_limit } => {
            format!("{who} leaves out {}: {}", what_left_out(model, *output_limit), parameters.join(", "))
        }
        Body::TooLong { who, model, limit, .. } => {
            let limit = limit.map(|limit| format!(" of {limit} tokens")).unwrap_or_default();
            format!("{who} exceeds the context window{limit} of {model}")
        }
        Body::Compacted(compacted) => {
            let Compacted { who, through, replaced, summary, .. } = compacted;
            format!("{who} compacts {replaced} messages through {through}: {}", line(&summary.text()))
        }
        Body::Cleared { who, of, keep } => {
            let of = of.as_ref().map_or("all", Name::as_str);
            format!("{who} clears the history of {of}, keeping {keep}")
        }
        Body::RolledBack { since } => format!("rolled back since {since}"),
        Body::Charged(charge) => {
            format!("{} charges {} {:?} of {}", charge.who, charge.calls, charge.why, charge.model)
        }
        other => of_background(other).unwrap_or_else(|| line(&format!("{other:?}")).into_owned()),
    }
}

/// An event of a background task.
fn of_background(body: &Body) -> Option<String> {
    Some(match body {
        Body::BackgroundStarted(BackgroundTask { who, id, task, .. }) => {
            format!("{who} starts {id} in the background: {}", line(task))
        }
        Body::BackgroundEnded(BackgroundResult { who, id, status, parts, awaited, .. }) => {
            let how = if *awaited { "awaited" } else { "posted" };
            format!("{id} of {who} {status}, {how}: {}", self::parts(parts))
        }
        _ => return None,
    })
}

fn message(message: &Message, verb: &str) -> String {
    format!("{}{verb}{}: {}", message.from, audience(&message.to), parts(&message.parts))
}

fn model_reply(reply: &ModelReply) -> String {
    let ModelReply { who, model, usage, .. } = reply;
    let mut terms = vec![finish(&reply.finish).to_owned()];
    let count = |tokens: Option<u64>| tokens.map_or("?".to_owned(), |tokens| tokens.to_string());
    if !usage.is_unknown() {
        terms.push(format!("{}+{} tokens", count(usage.input), count(usage.output)));
    }
    terms.extend(reply.cost.map(|cost| cost.to_string()));
    format!("{model} replies to {who} ({}): {}", terms.join(", "), parts(&reply.parts))
}

const fn finish(finish: &FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::Calls => "calls",
        FinishReason::Length => "length",
        FinishReason::Filter => "filter",
        FinishReason::ContextFull => "context full",
        FinishReason::Refused { .. } => "refused",
        FinishReason::Paused => "paused",
        FinishReason::Malformed => "malformed",
        _ => "unknown",
    }
}

fn failure(error: &Failure) -> String {
    let hint = error.hint.as_ref().map(|hint| format!(" (hint: {})", line(hint)));
    format!("({}): {}{}", error.fault, line(&error.message), hint.unwrap_or_default())
}

fn audience(audience: &Audience) -> String {
    match audience {
        Audience::All => String::new(),
        Audience::Only(names) if names.is_empty() => " in private".to_owned(),
        Audience::Only(names) => {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            format!(" to [{}]", names.join(", "))
        }
    }
}

fn parts(parts: &[Part]) -> String {
    parts.iter().map(part).collect::<Vec<_>>().join(" | ")
}

fn part(part: &Part) -> String {
    match part {
        Part::Text(text) => line(text).into_owned(),
        Part::Thought(text) => format!("({})", line(text)),
        Part::Media(Media { media_type: kind, url }) => {
            // A `data:` URL contains the whole picture.
            format!("<{kind} {}>", text::excerpt(url, 60))
        }
        Part::Data(value) => value.to_string(),
        Part::Note(value) => format!("[note: {value}]"),
        Part::Cut(finish) => format!("[{finish}]"),
        Part::ToolCall(call) => self::call("call", call),
        Part::ToolResult(result) => {
            format!("{} #{} of {}: {}", result.tool, result.id, result.to, parts(&result.result.parts))
        }
        other => line(&format!("{other:?}")).into_owned(),
    }
}

fn call(verb: &str, call: &ToolCall) -> String {
    format!("{verb} {} {} #{}", call.tool, call.args, call.id)
}

/// A text without line breaks.
fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '\n', '\r', '\t']) {
        return Cow::Borrowed(text);
    }
    let escaped = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    Cow::Owned(escaped)
}

#[cfg(test)]
#[path = "print_tests.rs"]
mod tests;
