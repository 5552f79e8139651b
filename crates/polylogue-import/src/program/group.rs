//! Group chats of AutoGen 0.2.

use super::definition::{Program, named};
use super::manager;
use super::model_list::model;
use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::report::{CODE, Result, UNASKED};
use crate::yaml::{Entries, Yaml};

/// AutoGen's default of `max_round`.
const ROUNDS: u64 = 10;

/// The chat of a group without its participants; then those.
pub(super) fn chat(program: &Program<'_>, draft: &mut Draft) -> Result<(Entries, Vec<String>)> {
    let empty = serde_json::json!({});
    let at = program.group.clone().unwrap_or(At { value: &empty, path: "$".into() });
    let mut fields = at.fields()?;
    let members = members(&mut fields, program, draft)?;
    let (says, llm) = manager::settings(program.manager.as_ref(), &mut fields, draft)?;
    let select = pick(&mut fields, llm, program, draft)?;
    let pattern = Yaml::one("group", Yaml::Map(selection(&mut fields, select, draft)?));
    let mut entries: Entries = vec![("pattern".into(), pattern)];
    let limit = limit(&mut fields)?;
    if fields.flag("send_introductions")?.unwrap_or(false) {
        entries.push(("introductions".into(), Yaml::plain(true)));
    }
    if let Some(at) = fields.take("enable_clear_history")
        && at.flag()?
    {
        clear_commands(&at, program, draft);
    }
    entries.push(("stop".into(), Yaml::Map(vec![("says".to_owned(), says), limit])));
    note_left_out(&mut fields, draft);
    fields.rest(draft);
    Ok((entries, members))
}

/// How the group selects speakers: by `select`, within its transitions, with or without repetitions.
fn selection(fields: &mut Fields<'_>, select: Yaml, draft: &mut Draft) -> Result<Entries> {
    let mut group: Entries = vec![("select".into(), select)];
    let transitions = transitions(fields, draft)?;
    let has_transitions = transitions.is_some();
    group.extend(transitions.map(|transitions| ("transitions".to_owned(), transitions)));
    let Some(repeat) = fields.first(&["allow_repeat_speaker"]) else { return Ok(group) };
    match repeat.value.as_bool() {
        _ if has_transitions => {
            return repeat.wrong("who may repeat is said by the transitions: leave one of them out");
        }
        Some(true) => {}
        Some(false) => group.push(("allow_repeat_speaker".into(), Yaml::plain(false))),
        None => {
            let names = draft.all_known(&repeat.texts()?, &repeat.path);
            group.push(("allow_repeat_speaker".into(), Yaml::texts(names)));
        }
    }
    Ok(group)
}

/// The limit of `max_round` as a termination condition. AutoGen counts the first message and empty replies as rounds.
fn limit(fields: &mut Fields<'_>) -> Result<(String, Yaml)> {
    let (name, most) = match fields.count("max_round")?.unwrap_or(ROUNDS) {
        rounds @ 2.. => ("max_turns", rounds - 1),
        _ => ("max_messages", 1),
    };
    Ok((name.to_owned(), Yaml::plain(most)))
}

/// Notes the settings that have no equivalent.
fn note_left_out(fields: &mut Fields<'_>, draft: &mut Draft) {
    fields.unusual("func_call_filter", true, "left out: a call goes to an agent that runs the tool", draft);
    fields.unusual("human_input_mode", "NEVER", UNASKED, draft);
    fields.ignore(&["name"]);
    for (name, why) in [
        ("admin_name", "left out: a run that is interrupted is resumed, and no administrator takes over"),
        ("select_speaker_auto_verbose", "left out: `polylogue show` prints how speakers were picked"),
        ("messages", "left out: a conversation begins with its task"),
    ] {
        fields.cannot(name, why, draft);
    }
}

fn members(fields: &mut Fields<'_>, program: &Program<'_>, draft: &mut Draft) -> Result<Vec<String>> {
    let Some(agents) = fields.first(&["agents", "participants"]) else { return Ok(program.names()) };
    let mut wanted = Vec::new();
    for at in agents.items()? {
        wanted.push(named(&at, draft)?);
    }
    let names = draft.all_known(&wanted, &agents.path);
    if names.is_empty() { agents.wrong("the group has no agents") } else { Ok(names) }
}

/// Lets people clear the history.
fn clear_commands(at: &At<'_>, program: &Program<'_>, draft: &mut Draft) {
    if !program.agents.iter().any(|member| member.has_person) {
        draft.note(&at.path, "left out: no agent has a person who could write the command");
    }
    for member in program.agents.iter().filter(|member| member.has_person) {
        if let Some(agent) = draft.agent(&member.name) {
            agent.push(("clear_command".into(), Yaml::plain(true)));
        }
    }
}

fn pick(
    fields: &mut Fields<'_>,
    of_manager: Option<At<'_>>,
    program: &Program<'_>,
    draft: &mut Draft,
) -> Result<Yaml> {
    let method = fields.take("speaker_selection_method");
    let name = method.as_ref().and_then(|at| at.value.as_str()).unwrap_or("auto").to_ascii_lowercase();
    if ["round_robin", "random", "manual"].contains(&name.as_str()) {
        leave_out_selector(fields, of_manager.as_ref(), draft);
    }
    match name.as_str() {
        "round_robin" => Ok(Yaml::text("round_robin")),
        "random" => Ok(Yaml::text("random")),
        "manual" => {
            let person = draft.name("Selector", "$.groupchat")?;
            let entries = [("name", Yaml::text(&person)), ("human", Yaml::plain(true))];
            draft.agents.push(entries.map(|(key, value)| (key.to_owned(), value)).to_vec());
            Ok(Yaml::one("human", Yaml::text(person)))
        }
        _ => {
            if let Some(at) = method.filter(|_| name != "auto") {
                draft.note(&at.path, format!("{CODE}: a model selects; see `state_machine` for rules"));
            }
            let own = fields.first(&["select_speaker_auto_llm_config", "llm_config"]);
            let llm = own.as_ref().or(of_manager.as_ref()).or(program.llm.as_ref());
            if let Some(none) = llm.filter(|llm| llm.value == false) {
                let what = "no model picks the speakers: AutoGen then takes them in the order of the list";
                draft.note(&none.path, what);
                leave_out_selector(fields, None, draft);
                return Ok(Yaml::text("round_robin"));
            }
            let texts = selector_texts(fields)?;
            let model = llm.map(|llm| model(llm, None, draft)).transpose()?.unwrap_or_default();
            let entries: Entries = model.entries().into_iter().chain(texts).collect();
            Ok(if entries.is_empty() { Yaml::text("model") } else { Yaml::one("model", Yaml::Map(entries)) })
        }
    }
}

/// Notes the settings of a model that selects the speakers, where no model does.
fn leave_out_selector(fields: &mut Fields<'_>, of_manager: Option<&At<'_>>, draft: &mut Draft) {
    for key in [
        "select_speaker_auto_llm_config",
        "llm_config",
        "select_speaker_message_template",
        "select_speaker_prompt_template",
        "select_speaker_auto_none_template",
        "select_speaker_auto_multiple_template",
        "role_for_select_speaker_messages",
        "max_retries_for_selecting_speaker",
    ] {
        fields.cannot(key, "left out: no model selects the speakers", draft);
    }
    if let Some(at) = of_manager.filter(|at| at.value != false) {
        draft
            .note(&at.path, "no model selects the speakers: this one writes summaries by reflection, if any");
    }
}

fn selector_texts(fields: &mut Fields<'_>) -> Result<Entries> {
    let mut entries: Entries = Vec::new();
    for (theirs, ours) in [
        ("select_speaker_message_template", "system"),
        ("select_speaker_prompt_template", "prompt"),
        ("select_speaker_auto_none_template", "none"),
        ("select_speaker_auto_multiple_template", "several"),
    ] {
        entries.extend(fields.text(theirs)?.map(|text| (ours.to_owned(), Yaml::text(text))));
    }
    if let Some(role) = fields.take("role_for_select_speaker_messages") {
        match role.text()? {
            "system" => entries.push(("role".into(), Yaml::text("system"))),
            "user" => entries.push(("role".into(), Yaml::text("user"))),
            _ => return role.wrong("must be `system` or `user`"),
        }
    }
    if let Some(retries) = fields.count("max_retries_for_selecting_speaker")? {
        entries.push(("attempts".into(), Yaml::plain(retries.saturating_add(1))));
    }
    Ok(entries)
}

fn transitions(fields: &mut Fields<'_>, draft: &mut Draft) -> Result<Option<Yaml>> {
    let kind = fields.take("speaker_transitions_type");
    let Some(at) = fields.take("allowed_or_disallowed_speaker_transitions") else {
        if let Some(kind) = kind {
            draft.note(&kind.path, "left out: there are no transitions");
        }
        return Ok(None);
    };
    let kind = match kind.as_ref().map(At::text).transpose()? {
        Some(kind @ ("allowed" | "disallowed")) => kind,
        _ => return at.wrong("`speaker_transitions_type` says whether they are `allowed` or `disallowed`"),
    };
    let mut after: Entries = Vec::new();
    for (from, to) in at.entries()? {
        match draft.known(from).map(str::to_owned) {
            Some(from) => {
                let names = draft.all_known(&to.texts()?, &to.path);
                after.push((from, Yaml::texts(names)));
            }
            None => draft.note(&to.path, "left out: there is no such participant"),
        }
    }
    Ok(Some(Yaml::one(kind, Yaml::Map(after))))
}
