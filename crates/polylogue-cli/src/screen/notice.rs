//! Events without a message, in one line each.

use std::sync::Arc;

use polylogue_core::{
    BackgroundResult, BackgroundStatus, BackgroundTask, Body, Chooser, Compacted, JoinHistory, Name,
    Question, Responder, TurnRequest, text_of,
};

use super::text::folded;

/// Who does what, if the event is one of these.
pub(super) fn of(body: &Body) -> Option<(&Name, String)> {
    Some(match body {
        Body::Passed { who } => (who, "passes".into()),
        Body::Left { who, why } => (who, format!("leaves: {why}")),
        // The reason is shown when the chat is closed.
        Body::Stopped { who, .. } => (who, "ends the chat".into()),
        Body::Joined { who, sees: JoinHistory::All } => (who, "joins, and sees all earlier messages".into()),
        Body::Joined { who, sees: JoinHistory::New } => (who, "joins, and sees only later messages".into()),
        Body::Cleared { who, of, keep } => {
            let whose = of.as_ref().map_or("everyone".into(), ToString::to_string);
            let kept = if *keep == 0 { String::new() } else { format!(" except the last {keep}") };
            (who, format!("hides the earlier messages{kept} from {whose}"))
        }
        Body::ContinuationFailed { who, why } => (who, format!("cannot continue its reply: {why}")),
        Body::CapabilityMissing { who, model, capability: lacks, why } => {
            let why = why.trim_end_matches('.');
            (who, format!("finds that `{model}` does not support {lacks}, and continues without it: {why}"))
        }
        Body::SealsRefused { who, model, why } => {
            let why = why.trim_end_matches('.');
            (who, format!("continues without earlier reasoning, which `{model}` refuses: {why}"))
        }
        Body::TooLong { who, model, .. } => {
            (who, format!("finds that its request is too long for `{model}`"))
        }
        Body::Compacted(Compacted { who, replaced, tokens_before, tokens_after, .. }) => {
            let tokens = format!("about {tokens_before} -> {tokens_after} tokens");
            (who, format!("compacted {replaced} messages of its history, {tokens}"))
        }
        Body::ParametersIgnored { who, model, parameters, output_limit } => {
            let names: Vec<String> = parameters.iter().map(|name| format!("`{name}`")).collect();
            (who, format!("leaves out {}, {}", names.join(", "), why_left_out(model, *output_limit)))
        }
        Body::OutputLimited(limit) => (&limit.who, format!("may reply with {limit}")),
        Body::BackgroundStarted(BackgroundTask { who, id, task, .. }) => {
            (who, format!("starts `{id}` in the background: {}", folded(task)))
        }
        Body::BackgroundEnded(result) => (&result.who, end_of_task(result)),
        _ => return None,
    })
}

/// Why parameters were left out of a request to `model`.
fn why_left_out(model: &str, output_limit: Option<u32>) -> String {
    match output_limit {
        Some(limit) => {
            format!("because an output limit of {limit} tokens leaves `{model}` no room for reasoning")
        }
        None => format!("which `{model}` does not accept"),
    }
}

/// That what the provider sealed of a reply is not kept.
pub(super) fn dropped_seals(who: &Name, model: &str, bytes: u64) -> String {
    format!(
        "{who}: what `{model}` sealed of this reply has {bytes} bytes, more than is kept, so it continues without that reasoning"
    )
}

/// That a tool call is a text of the reply, and what to do about it.
pub(super) fn written_call(who: &Name, model: &str, hint: &str) -> String {
    format!("{who}: `{model}` wrote a tool call as text, and its server did not read it: {hint}")
}

/// How a background task ended. The result of a completed one was shown when it was said.
fn end_of_task(result: &BackgroundResult) -> String {
    let BackgroundResult { id, status, parts, awaited, .. } = result;
    let has = if *awaited { "has awaited" } else { "receives the result of" };
    match status {
        BackgroundStatus::Completed => format!("{has} `{id}`, which is complete"),
        BackgroundStatus::Failed => format!("{has} `{id}`, which failed: {}", folded(&text_of(parts))),
        BackgroundStatus::Cancelled => {
            format!("no longer waits for `{id}`, which was cancelled: {}", folded(&text_of(parts)))
        }
    }
}

/// The summary of a compaction, and what it stands for.
pub(super) fn summary(compacted: &Compacted) -> String {
    let Compacted { who, through, kept, summary, .. } = compacted;
    let kept = match kept.len() {
        0 => String::new(),
        1 => ", but for 1 pinned message".to_owned(),
        count => format!(", but for {count} pinned messages"),
    };
    format!("{who} reads this instead of its messages up to event {through}{kept}:\n\n{}", summary.text())
}

/// Whether the text of `question` says itself whom it is about.
pub(crate) fn addresses(question: &Question) -> bool {
    question.text.strip_prefix(question.who.as_str()).is_some_and(|rest| rest.starts_with(", "))
}

/// What was done from outside of the conversation, if the event says so.
pub(super) fn of_run(body: &Body) -> Option<String> {
    Some(match body {
        Body::NextSpeaker { who } => format!("{who} was chosen to speak next"),
        Body::LimitsChanged { changes, by, .. } if !changes.is_empty() => {
            raised("limits", changes, by.as_deref())
        }
        Body::OwnLimitsRaised { of, changes, by, .. } => {
            raised(&format!("limits of {of}"), changes, by.as_deref())
        }
        Body::TitleChanged { title } if title.is_empty() => "the title was removed".into(),
        Body::TitleChanged { title } => format!("the title is now: {title}"),
        Body::ClientDisconnected { .. } => "a client disconnected before the end of a response".into(),
        Body::TeamChanged(team) => format!("the team has changed: {}", listed(&team.changes)),
        Body::Paused => "paused: turns that have begun end, and no other begins".into(),
        Body::Resumed => "continued after the pause".into(),
        Body::Cancelled { now: true } => "stopped at once".into(),
        Body::Cancelled { now: false } => "stopped: turns that have begun end, and no other begins".into(),
        Body::Refused { instruction, why } => format!("{instruction} was refused: {why}"),
        Body::ReplyInterrupted { who, text, .. } => {
            format!("{who} was cut off after: {}", folded(text))
        }
        Body::InputProvided { to, by: Responder::Timeout, .. } => {
            format!("no answer for {to} in time: the default counts")
        }
        _ => return None,
    })
}

/// That `what` was raised, from what to what, and by whom.
fn raised(what: &str, changes: &[Arc<str>], by: Option<&str>) -> String {
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let changes = if changes.is_empty() { String::new() } else { format!(": {}", changes.join(", ")) };
    format!("{what} were raised{by}{changes}")
}

/// The most changes of a team that are named.
const NAMED: usize = 3;

fn listed(changes: &[Arc<str>]) -> String {
    let named: Vec<&str> = changes.iter().take(NAMED).map(|change| &**change).collect();
    match changes.len().saturating_sub(NAMED) {
        0 => named.join("; "),
        more => format!("{}; and {more} more", named.join("; ")),
    }
}

/// Whether the event is something that a model or its provider lacks or refuses.
pub(super) const fn is_of_model(body: &Body) -> bool {
    body.is_of_form() || matches!(body, Body::CapabilityMissing { .. } | Body::ContinuationFailed { .. })
}

/// Why a speaker was selected. A selection by an order, by a rule, or of the only candidate is shown if
/// `whole`; the reply of the selector is a message of its own there. JSON is for programs.
pub(super) fn selection(request: &TurnRequest, whole: bool) -> Option<String> {
    // A private turn that selects carries the candidates as a choice that is not made yet.
    let choice = request.choice.as_ref().filter(|_| !request.to.is_private())?;
    let who = &request.who;
    let of = match choice.of.as_slice() {
        [] | [_] => String::new(),
        many => format!(" among {}", many.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")),
    };
    let own = choice.reply.as_deref().map(str::trim).filter(|reply| *reply != who.as_str());
    let own = own.filter(|reply| !whole && !has_json(reply));
    let reply = own.map(|reply| format!("; the reply was: {}", folded(reply))).unwrap_or_default();
    Some(match &choice.by {
        Chooser::Agent(by) => format!("{by} picks {who}{of}{reply}"),
        Chooser::Chance { seed } => format!("chance picks {who}{of} (seed {seed})"),
        Chooser::Handoff => format!("the turn is handed to {who}"),
        Chooser::Fallback { why } => format!("{who} is next in order: {}{reply}", folded(why)),
        Chooser::Only if whole => format!("{who} is next, because no other participant may speak"),
        Chooser::Order if whole => format!("{who} is next in order{of}"),
        Chooser::Rule if whole => format!("{who} is next by a rule{of}{reply}"),
        Chooser::Background => format!("{who} has one more turn, for the result of its background task"),
        Chooser::Tools if whole => format!("{who} is next, to run the tools"),
        _ => return None,
    })
}

fn has_json(text: &str) -> bool {
    let json = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    json.is_some_and(|json| serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok())
}

#[cfg(test)]
mod tests {
    use polylogue_core::Choice;

    use super::*;

    fn check(by: Chooser, reply: Option<&str>, whole: bool) -> Option<String> {
        let [ann, bob] = ["Ann", "Bob"].map(|name| Name::new(name).unwrap());
        let choice = Choice { of: vec![ann.clone(), bob], by, reply: reply.map(Into::into) };
        selection(&TurnRequest::to_all(ann).with_choice(choice), whole)
    }

    #[test]
    fn what_is_left_out_of_a_request_is_named_with_why() {
        let note = |output_limit| {
            let (who, model) = (Name::new("Ann").unwrap(), "test:m".into());
            let body =
                Body::ParametersIgnored { who, model, parameters: vec!["effort".into()], output_limit };
            of(&body).unwrap().1
        };
        assert_eq!(note(None), "leaves out `effort`, which `test:m` does not accept");
        assert_eq!(
            note(Some(1000)),
            "leaves out `effort`, because an output limit of 1000 tokens leaves `test:m` no room for reasoning"
        );
    }

    #[test]
    fn a_selection_names_the_selector_and_the_candidates() {
        let pick = || Chooser::Agent(Name::new("Pick").unwrap());
        let line = |text: &str| Some(text.to_owned());
        assert_eq!(check(pick(), Some(" Ann\n"), false), line("Pick picks Ann among Ann, Bob"));
        assert_eq!(
            check(pick(), Some("I say\nAnn"), false),
            line("Pick picks Ann among Ann, Bob; the reply was: I say (+1 line)")
        );
        assert_eq!(
            check(Chooser::Chance { seed: 7 }, None, false),
            line("chance picks Ann among Ann, Bob (seed 7)")
        );
        assert_eq!(check(Chooser::Handoff, None, false), line("the turn is handed to Ann"));
        let fallback = || Chooser::Fallback { why: "no name in 3 replies".into() };
        assert_eq!(
            check(fallback(), Some("Zoe"), false),
            line("Ann is next in order: no name in 3 replies; the reply was: Zoe")
        );
        assert_eq!(check(Chooser::Order, None, false), None);
        assert_eq!(check(Chooser::Order, None, true), line("Ann is next in order among Ann, Bob"));
        assert_eq!(
            check(Chooser::Only, None, true),
            line("Ann is next, because no other participant may speak")
        );
        assert_eq!(check(Chooser::Tools, None, true), line("Ann is next, to run the tools"));
        assert_eq!(check(Chooser::Rule, None, true), line("Ann is next by a rule among Ann, Bob"));
    }
}
