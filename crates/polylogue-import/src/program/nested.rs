//! Chats that reply for an agent of AutoGen 0.2 (`register_nested_chats`).

use super::chats::{Queue, queue};
use super::definition::{Member, Program};
use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::report::{CODE, Result};
use crate::yaml::{Entries, Yaml};

/// Nested chats that name their agent.
pub(super) fn of_program(at: &At<'_>, program: &Program<'_>, draft: &mut Draft) -> Result<()> {
    let agent = at.fields()?.need("agent")?;
    let wanted = agent.text()?;
    match program.agents.iter().find(|member| member.wanted == wanted) {
        Some(owner) => of_agent(at, owner, program, draft),
        None => agent.wrong(format!("there is no agent `{wanted}`")),
    }
}

/// Nested chats of the agent `owner`.
pub(super) fn of_agent(
    at: &At<'_>,
    owner: &Member<'_>,
    program: &Program<'_>,
    draft: &mut Draft,
) -> Result<()> {
    let mut fields = at.fields()?;
    fields.ignore(&["agent"]);
    let when = match trigger(&fields.need("trigger")?, draft)? {
        Trigger::Code => {
            let what = format!("left out with its chats: {CODE}: give the names of agents as its `trigger`");
            draft.note(&at.path, what);
            return Ok(());
        }
        Trigger::NoSender => {
            draft.note(&at.path, "left out with its chats: its trigger matches no sender");
            return Ok(());
        }
        Trigger::All => None,
        Trigger::Names(names) => Some(Yaml::one("from", Yaml::texts(names))),
    };
    let chats = match fields.first(&["chat_queue", "chats"]) {
        Some(chats) => with_messages(chats.items()?, draft)?,
        None => return at.wrong("`chat_queue` is missing"),
    };
    settings(&mut fields, draft);
    fields.rest(draft);
    let Some(chat) = chat(&chats, owner, program, draft)? else {
        return at.wrong("there is no chat in its `chat_queue`");
    };
    let mut nested: Entries = vec![("chat".into(), Yaml::text(chat))];
    nested.extend(when.map(|when| ("when".to_owned(), when)));
    add(&owner.name, Yaml::Map(nested), draft);
    Ok(())
}

fn settings(fields: &mut Fields<'_>, draft: &mut Draft) {
    let what = format!("{CODE}: the result of the last chat is the reply");
    fields.unusual("reply_func_from_nested_chats", "summary_from_nested_chats", &what, draft);
    let what = "left out: nested chats reply after a person, and before tools, code and a model";
    fields.unusual("position", 2, what, draft);
    let what = "left out: chats wait for one another where `prerequisites` say it";
    fields.cannot("use_async", what, draft);
}

/// The messages that trigger nested chats.
enum Trigger {
    All,
    Names(Vec<String>),
    NoSender,
    Code,
}

fn trigger(at: &At<'_>, draft: &mut Draft) -> Result<Trigger> {
    let wanted = at.texts()?;
    let is_class = |name: &&str| {
        let class = name.rsplit('.').next().unwrap_or_default();
        draft.known(name).is_none() && ["Agent", "ConversableAgent"].contains(&class)
    };
    if wanted.iter().any(is_class) {
        return Ok(Trigger::All);
    }
    if wanted.iter().any(|name| draft.known(name).is_none() && name.contains(['(', ':', ' '])) {
        return Ok(Trigger::Code);
    }
    let names = draft.all_known(&wanted, &at.path);
    Ok(if names.is_empty() { Trigger::NoSender } else { Trigger::Names(names) })
}

/// The first chat, and those after it that have a message: AutoGen skips the others.
fn with_messages<'a>(chats: Vec<At<'a>>, draft: &mut Draft) -> Result<Vec<At<'a>>> {
    let mut kept = Vec::new();
    for at in chats {
        let message = at.fields()?.take("message").filter(|at| at.value != "");
        if kept.is_empty() || message.is_some() {
            kept.push(at);
        } else {
            let what = "left out: AutoGen skips a chat without a `message` that is not the first";
            draft.note(&at.path, what);
        }
    }
    Ok(kept)
}

/// Adds the chats. Returns the name of the one that replies.
fn chat(
    chats: &[At<'_>],
    owner: &Member<'_>,
    program: &Program<'_>,
    draft: &mut Draft,
) -> Result<Option<String>> {
    let Some(first) = chats.first() else { return Ok(None) };
    let name = draft.name(&format!("{}_chat", owner.name), &first.path)?;
    let names = match chats.len() {
        1 => vec![name.clone()],
        many => {
            let each = |index| draft.name(&format!("{name}_{index}"), &first.path);
            (1..=many).map(each).collect::<Result<Vec<_>>>()?
        }
    };
    let at = draft.chats.len();
    let pattern = queue(&Queue { chats, names: &names, sender: Some(owner) }, program, draft)?;
    if chats.len() > 1 {
        let participants = Yaml::texts(names);
        let own: Entries = vec![
            ("name".into(), Yaml::text(&name)),
            ("pattern".into(), pattern),
            ("participants".into(), participants),
        ];
        draft.chats.insert(at, own);
    }
    Ok(Some(name))
}

fn add(owner: &str, nested: Yaml, draft: &mut Draft) {
    let Some(agent) = draft.agent(owner) else { return };
    match agent.iter_mut().find(|(key, _)| key == "nested_chats") {
        Some((_, Yaml::List(all))) => all.push(nested),
        _ => agent.push(("nested_chats".into(), Yaml::List(vec![nested]))),
    }
}
