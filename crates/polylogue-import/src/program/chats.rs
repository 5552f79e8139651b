//! Chats of AutoGen 0.2: a single one, or a sequence.

use std::collections::BTreeMap;

use super::definition::{Member, Program, named};
use super::{group, manager};
use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::report::{CODE, Result, SILENT, UNCACHED};
use crate::yaml::{Entries, Yaml};

/// Adds the chats of a definition. Default: one chat of all agents.
pub(super) fn chats(chats: &[At<'_>], program: &Program<'_>, draft: &mut Draft) -> Result<()> {
    match chats {
        [] => all_agents(program, draft),
        [only] => alone(only, program, draft),
        many => sequence(many, program, draft),
    }
}

fn all_agents(program: &Program<'_>, draft: &mut Draft) -> Result<()> {
    draft.chat = match (program.agents.as_slice(), &program.group) {
        ([], _) => return At::root(&serde_json::Value::Null).wrong("there is no agent"),
        ([one, other], None) if program.manager.is_none() => pair(one, other),
        ([one], None) if program.manager.is_none() => vec![participants([one.name.clone()])],
        _ => in_group(None, program, draft)?,
    };
    Ok(())
}

/// A chat of two agents in turn; `one` begins with the task.
fn pair(one: &Member<'_>, other: &Member<'_>) -> Entries {
    vec![participants([one.name.clone(), other.name.clone()]), opening(&one.name)]
}

fn participants(names: impl IntoIterator<Item = String>) -> (String, Yaml) {
    ("participants".into(), Yaml::texts(names))
}

fn opening(from: &str) -> (String, Yaml) {
    let entries = vec![("from".to_owned(), Yaml::text(from)), ("text".to_owned(), Yaml::text("{{task}}"))];
    ("opening".into(), Yaml::Map(entries))
}

fn in_group(sender: Option<&Member<'_>>, program: &Program<'_>, draft: &mut Draft) -> Result<Entries> {
    let (mut entries, members) = group::chat(program, draft)?;
    draft.has_group = true;
    let is_member = sender.filter(|sender| members.contains(&sender.name));
    entries.insert(1, participants(members));
    entries.extend(is_member.map(|sender| opening(&sender.name)));
    Ok(entries)
}

/// A chat, and its fields that were not yet used.
struct Entry<'a> {
    body: Entries,
    message: Option<&'a str>,
    /// The agents whose history the chat belongs to; empty for the group.
    history: Vec<String>,
    fields: Fields<'a>,
}

fn entry<'a>(
    at: &At<'a>,
    usual: Option<&Member<'_>>,
    program: &Program<'_>,
    draft: &mut Draft,
) -> Result<Entry<'a>> {
    let mut fields = at.fields()?;
    let recipient_at = fields.need("recipient")?;
    let recipient = named(&recipient_at, draft)?;
    let member = |name: &str| program.agents.iter().find(|member| member.wanted == name);
    let sender = sender(fields.take("sender"), recipient, usual, program, draft)?;
    let mut body = match (member(recipient), sender) {
        (Some(other), Some(one)) => pair(one, other),
        (Some(other), None) => vec![participants([other.name.clone()])],
        (None, sender) if program.group.is_some() || program.manager.is_some() => {
            is_managed(&recipient_at, recipient, program)?;
            in_group(sender, program, draft)?
        }
        (None, _) => {
            return recipient_at.wrong(format!("there is no agent `{recipient}`, and no `groupchat`"));
        }
    };
    let mut history: Vec<String> = member(recipient).map(|other| other.name.clone()).into_iter().collect();
    if !history.is_empty() {
        history.extend(sender.map(|sender| sender.name.clone()));
        history.sort();
    }
    if member(recipient).is_none() {
        fields.cannot("max_turns", "left out: the turns of a group are limited by its `max_round`", draft);
    } else if let Some(turns) = fields.count("max_turns")? {
        // In AutoGen a turn is a question and its answer, even an empty one. In team files the first question is not a turn.
        let turns = turns.saturating_mul(2).saturating_sub(1).max(1);
        body.push(("stop".into(), Yaml::one("max_turns", Yaml::plain(turns))));
    }
    let author =
        member(recipient).map_or_else(|| program.manager_model(draft), |other| Ok(other.model.clone()))?;
    let author = author.or_else(|| sender.and_then(|sender| sender.model.clone())).unwrap_or_default();
    body.push(("summary".into(), summary(&mut fields, author, draft)?));
    let message = match fields.take("message") {
        Some(at) if at.value.is_string() => at.value.as_str(),
        Some(at) => {
            draft.note(&at.path, "left out: a message is a text here");
            None
        }
        None => None,
    };
    fields.cannot("silent", SILENT, draft);
    fields.cannot("verbose", "left out: `polylogue show` prints what is carried over", draft);
    fields.cannot("cache", UNCACHED, draft);
    Ok(Entry { body, message, history, fields })
}

/// The agent that begins a chat: its `sender`, the `usual` one, or an agent with human input.
fn sender<'p>(
    given: Option<At<'_>>,
    recipient: &str,
    usual: Option<&'p Member<'p>>,
    program: &'p Program<'p>,
    draft: &mut Draft,
) -> Result<Option<&'p Member<'p>>> {
    let person = |member: &&Member<'_>| member.has_person && member.wanted != recipient;
    let Some(at) = given else { return Ok(usual.or_else(|| program.agents.iter().find(person))) };
    let wanted = named(&at, draft)?;
    match program.agents.iter().find(|member| member.wanted == wanted) {
        Some(sender) => Ok(Some(sender)),
        None => at.wrong(format!("there is no agent `{wanted}`")),
    }
}

/// Checks that a recipient that is not an agent is the manager, if the manager has a name.
fn is_managed(at: &At<'_>, recipient: &str, program: &Program<'_>) -> Result<()> {
    match manager::name(program.manager.as_ref()) {
        Some(name) if name != recipient => {
            at.wrong(format!("there is no agent `{recipient}`; the manager of the group is `{name}`"))
        }
        _ => Ok(()),
    }
}

/// The summary of a chat; `author` is the model that AutoGen asks for a reflection, that of the recipient.
fn summary(fields: &mut Fields<'_>, author: Entries, draft: &mut Draft) -> Result<Yaml> {
    let mut args = fields.take("summary_args").map(|at| at.fields()).transpose()?;
    let is_text = |at: &At<'_>| at.value != "";
    let own = args.as_mut().and_then(|args| args.take("summary_prompt")).filter(is_text);
    let given = fields.take("summary_prompt").filter(is_text);
    if let (Some(_), Some(given)) = (&own, &given) {
        draft.note(&given.path, "left out: there is one in `summary_args`, too");
    }
    let prompt = own.or(given);
    if let Some(mut args) = args {
        let what = "left out: a summary is asked for in the role `user`, which every model takes";
        args.unusual("summary_role", "user", what, draft);
        args.cannot("cache", UNCACHED, draft);
        args.rest(draft);
    }
    let method = fields.take("summary_method");
    if method.as_ref().is_some_and(|at| at.value == "reflection_with_llm") {
        let prompt = prompt.map(|at| at.text()).transpose()?;
        let prompt = prompt.map(|prompt| ("prompt".to_owned(), Yaml::text(prompt)));
        return Ok(Yaml::one("reflect", Yaml::Map(author.into_iter().chain(prompt).collect())));
    }
    if let Some(method) = method.filter(|at| at.value != "last_msg") {
        draft.note(&method.path, format!("{CODE}: the result of the chat is its last message"));
    }
    if let Some(prompt) = prompt {
        draft.note(&prompt.path, "left out: only a summary of the method `reflection_with_llm` has a prompt");
    }
    Ok(Yaml::one("without", Yaml::text("TERMINATE")))
}

const NOTHING_KEPT: &str = "`clear_history: false` is left out: there is no earlier chat to continue";

/// Adds a single chat, which is the outermost.
fn alone(at: &At<'_>, program: &Program<'_>, draft: &mut Draft) -> Result<()> {
    let Entry { body, message, mut fields, .. } = entry(at, None, program, draft)?;
    draft.chat = body;
    let mut task = message.map(str::to_owned);
    if let Some(own) = fields.take("carryover") {
        let texts = own.texts()?.join("\n");
        task = Some(format!("{}\nContext: \n{texts}", task.unwrap_or_default()));
    }
    draft.task = task.or(draft.task.take());
    fields.ignore(&["chat_id"]);
    fields.cannot("prerequisites", "left out: there is one chat, which waits for no other", draft);
    if fields.flag("clear_history")? == Some(false) {
        draft.note(&at.path, NOTHING_KEPT);
    }
    fields.rest(draft);
    Ok(())
}

/// Adds chats that run in sequence, or by their prerequisites.
fn sequence(chats: &[At<'_>], program: &Program<'_>, draft: &mut Draft) -> Result<()> {
    let name = |(index, at): (usize, &At<'_>)| draft.name(&format!("chat_{}", index + 1), &at.path);
    let names: Vec<String> = chats.iter().enumerate().map(name).collect::<Result<_>>()?;
    let pattern = queue(&Queue { chats, names: &names, sender: None }, program, draft)?;
    draft.chat = vec![("pattern".into(), pattern), participants(names)];
    Ok(())
}

/// Chats that carry their results over to each other.
pub(super) struct Queue<'q, 'a> {
    pub(super) chats: &'q [At<'a>],
    /// Their names in the team file.
    pub(super) names: &'q [String],
    /// The default sender.
    pub(super) sender: Option<&'q Member<'q>>,
}

/// Adds chats. Returns the pattern that runs them.
pub(super) fn queue(
    Queue { chats, names, sender }: &Queue<'_, '_>,
    program: &Program<'_>,
    draft: &mut Draft,
) -> Result<Yaml> {
    let ids = ids(chats, names)?;
    let mut after: Entries = Vec::new();
    let mut had: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for (at, name) in chats.iter().zip(*names) {
        let Entry { body, message, history, mut fields } = entry(at, *sender, program, draft)?;
        let mut chat: Entries = vec![("name".into(), Yaml::text(name))];
        chat.extend(message.map(|text| ("task".to_owned(), Yaml::text(text))));
        let before = prerequisites(&mut fields, &ids)?;
        if let Some(carryover) = carryover(&mut fields, &before, &ids)? {
            chat.push(("carryover".into(), carryover));
        }
        let keeps = fields.flag("clear_history")? == Some(false);
        let earlier = had.insert(history, name.clone()).filter(|_| keeps);
        if keeps && earlier.is_none() {
            draft.note(&at.path, NOTHING_KEPT);
        }
        chat.extend(earlier.map(|earlier| ("continues".to_owned(), Yaml::text(earlier))));
        chat.extend(body);
        after.extend(before.map(|before| (name.clone(), Yaml::texts(before))));
        fields.take("chat_id");
        fields.rest(draft);
        draft.chats.push(chat);
    }
    Ok(match after.is_empty() {
        true => Yaml::text("sequential"),
        false => Yaml::one("dag", Yaml::Map(after)),
    })
}

/// The chats by their `chat_id`, or by their place in the list.
fn ids(chats: &[At<'_>], names: &[String]) -> Result<BTreeMap<u64, String>> {
    let mut ids: BTreeMap<u64, String> = BTreeMap::new();
    for (index, (at, name)) in chats.iter().zip(names).enumerate() {
        let id = at.fields()?.count("chat_id")?.unwrap_or(index as u64);
        if ids.insert(id, name.clone()).is_some() {
            return at.wrong(format!("there are two chats with the `chat_id` {id}"));
        }
    }
    Ok(ids)
}

/// The chats that must finish before one.
fn prerequisites(fields: &mut Fields<'_>, ids: &BTreeMap<u64, String>) -> Result<Option<Vec<String>>> {
    let Some(at) = fields.take("prerequisites") else { return Ok(None) };
    let names: Vec<String> = at.items()?.iter().map(|id| chat(id, ids)).collect::<Result<_>>()?;
    Ok((!names.is_empty()).then_some(names))
}

fn chat(id: &At<'_>, ids: &BTreeMap<u64, String>) -> Result<String> {
    let count = id.count()?;
    ids.get(&count).map_or_else(|| id.wrong(format!("there is no chat {count}")), |name| Ok(name.clone()))
}

/// The `carryover` of a chat, if it differs from the default.
fn carryover(
    fields: &mut Fields<'_>,
    before: &Option<Vec<String>>,
    ids: &BTreeMap<u64, String>,
) -> Result<Option<Yaml>> {
    let mut entries: Entries = Vec::new();
    if let Some(own) = fields.take("carryover") {
        entries.push(("context".into(), Yaml::texts(own.texts()?)));
    }
    if let Some(but) = fields.take("finished_chat_indexes_to_exclude_from_carryover") {
        let names: Vec<String> = but.items()?.iter().map(|id| chat(id, ids)).collect::<Result<_>>()?;
        entries.push(("exclude".into(), Yaml::texts(names)));
    }
    if let Some(before) = before {
        entries.push(("include".into(), Yaml::texts(before.iter().map(String::as_str))));
    }
    Ok((!entries.is_empty()).then_some(Yaml::Map(entries)))
}
