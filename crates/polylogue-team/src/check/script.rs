//! Scripts: every step belongs to an agent that calls a model, and is not empty.

use std::collections::BTreeSet;

use polylogue_core::Name;

use crate::diagnostic::Report;
use crate::outline::{Outline, Participant};
use crate::private_agents::PrivateRole;
use crate::suggest;
use crate::team::Team;
use crate::yaml::{Data, Entry, Node};

pub(super) fn check(
    team: &Team,
    outline: &Outline<'_>,
    root: &Node,
    below: Option<&[Name]>,
    report: &mut Report<'_>,
) {
    let own = team.answering_models();
    let answering_models: BTreeSet<&str> =
        own.iter().chain(below.into_iter().flatten()).map(Name::as_str).collect();
    for step in root.get("script").items().iter().flat_map(|step| step.entries()) {
        if below.is_some() && !report.full() && !answering_models.contains(step.key.as_str()) {
            check_other_speaker(outline, step, &answering_models, report);
        }
        check_reply(step, report);
    }
}

fn check_other_speaker(
    outline: &Outline<'_>,
    step: &Entry,
    answering_models: &BTreeSet<&str>,
    report: &mut Report<'_>,
) {
    let who = &step.key;
    let named = Name::new(who).ok().and_then(|name| outline.participant(&name));
    match named {
        Some(Participant::Agent(agent)) if agent.is_human() => {
            report.error(&step.key_span, format!("`{who}` is a person and cannot have a script"));
        }
        Some(Participant::Agent(_)) => {
            let hint = "it replies by `default_reply`, `executes_tools`, `nested_chats` and `human_input`";
            let message = format!("`{who}` is an agent without a model, and has no part in a script");
            report.error_with_hint(&step.key_span, message, hint);
        }
        Some(other) => {
            let hint = format!(
                "give the steps to those who speak in it: {}",
                suggest::listed(answering_models.iter().copied())
            );
            report.error_with_hint(
                &step.key_span,
                format!("`{who}` is a {} and calls no model", other.noun()),
                hint,
            );
        }
        None => {
            let hint = of_renamed_chat(who, answering_models)
                .unwrap_or_else(|| suggest::hint(who, answering_models.iter().copied()));
            report.error_with_hint(&step.key_span, format!("no agent is called `{who}`"), hint);
        }
    }
}

/// The hint for `who` if it is named as a private agent of a chat that has another name now, and only one chat has such an agent.
fn of_renamed_chat(who: &str, answering_models: &BTreeSet<&str>) -> Option<String> {
    let role = PrivateRole::ALL.into_iter().find(|role| who.ends_with(role.suffix()))?;
    let mut same = answering_models.iter().filter(|name| name.ends_with(role.suffix()));
    let (Some(name), None) = (same.next(), same.next()) else { return None };
    let chat = name.strip_suffix(role.suffix())?;
    Some(format!("did you mean `{name}`? This agent is named after `{chat}`"))
}

fn check_reply(step: &Entry, report: &mut Report<'_>) {
    let does = |key: &str| !step.value.get(key).is_null();
    let is_map = matches!(&step.value.data, Data::Map(entries) if !entries.is_empty());
    if is_map && !["say", "think", "calls", "error"].into_iter().any(does) {
        report.error(&step.key_span, "this step needs one of `say`, `think`, `calls` and `error`");
    }
}
