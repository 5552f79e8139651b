//! Names that must differ from those of private agents, and from `user`.

use polylogue_core::Name;

use crate::diagnostic::Report;
use crate::outline::{Outline, Participant};
use crate::private_agents::PrivateRole;
use crate::source::Span;
use crate::team::Team;

pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    for participant in outline.participants().iter().filter(|participant| *participant.name() == Name::user())
    {
        let hint = "`user` is the person who gives the task; give a person who takes part another name";
        let message = format!("no {} can be called `user`", participant.noun());
        report.error_with_hint(&participant.name().span, message, hint);
    }
    for (chat, keys) in team.checked_chats() {
        for (role, at) in keys.private_roles() {
            check_private(outline, chat, role, at, report);
        }
    }
    // The pattern and summary of a chat in another file are unknown here, so its name must leave room for all roles.
    for sub in &team.teams {
        for role in PrivateRole::ALL.into_iter().filter(|_| sub.name.ok) {
            check_private(outline, &sub.name, role, &sub.name.span, report);
        }
    }
}

/// Reports the name of a private agent that is too long or taken.
fn check_private(outline: &Outline<'_>, chat: &Name, role: PrivateRole, at: &Span, report: &mut Report<'_>) {
    let Some(author) = role.of(chat) else {
        let longest = Name::MAX_CHARS - role.suffix().len();
        let message = format!("the name of this chat can have at most {longest} characters");
        let hint = format!("{} gets this name with `{}` appended", role.what(), role.suffix());
        return report.error_with_hint(at, message, hint);
    };
    if let Some(other) = outline.participant(&author) {
        let article =
            if matches!(other, Participant::Agent(agent) if !agent.is_human()) { "an" } else { "a" };
        let noun = other.noun();
        report.error(at, format!("{} is called `{author}`, and so is {article} {noun}", role.what()));
    }
}
