//! People who would be asked when a message ends the chat, where `stop` ends it first.

use polylogue_core::text::one_line;

use crate::agent::Agent;
use crate::chat::Chat;
use crate::codes;
use crate::diagnostic::Report;
use crate::human_input::{HumanInputMode, TerminateOn, TerminatingMessage};
use crate::outline::Outline;
use crate::stop::{Says, Stop};
use crate::team::Team;

/// The terminating message of an agent with `human_input`, if the file names none.
const TERMINATE: &str = "TERMINATE";

/// Only of two participants, as a user proxy and an assistant are. In AutoGen, too, a group ends without asking its participants.
pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    for (_, chat) in team.checked_chats().filter(|(_, chat)| chat.everyone().count() == 2) {
        for says in chat.stop.iter().flat_map(texts).filter(|says| says.text.ok) {
            let mut agents = chat.everyone().filter_map(|who| outline.participant(who)?.agent());
            if let Some(agent) = agents.find(|agent| is_unasked(agent, chat, says)) {
                let text = one_line(&says.text);
                let message =
                    format!("the chat ends at `{text}` before the person of `{}` is asked", agent.name);
                let hint = format!(
                    "write it as `terminate_on` of `{}` instead: the person is asked, and Enter ends the chat",
                    agent.name
                );
                report.warning(codes::NEVER_HOLDS, &says.text.span, message, hint);
            }
        }
    }
}

/// The texts of which each ends the chat alone.
fn texts(stop: &Stop) -> Vec<&Says> {
    stop.says.iter().chain(stop.any.iter().flat_map(texts)).collect()
}

/// Whether each message at which the person of `agent` would be asked ends `chat` by `stop`.
fn is_unasked(agent: &Agent, chat: &Chat, stop: &Says) -> bool {
    if agent.human_input != Some(HumanInputMode::Terminate) {
        return false;
    }
    let (text, is_whole) = match &agent.terminate_on {
        None => (TERMINATE, true),
        Some(TerminateOn::Text(text)) => (text.as_str(), true),
        Some(TerminateOn::Condition(TerminatingMessage::Says(says))) => (says.text.as_str(), says.whole),
        Some(TerminateOn::Condition(TerminatingMessage::Matches(_))) => return false,
    };
    let ends =
        if stop.whole { is_whole && text == stop.text.as_str() } else { text.contains(stop.text.as_str()) };
    let mut others = chat.everyone().filter(|who| who.value != agent.name.value);
    ends && (stop.by.is_empty() || others.all(|who| stop.by.contains(&who.value)))
}
