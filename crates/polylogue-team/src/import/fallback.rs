//! Lists of models (`config_list`): a team file has one model for an agent.

use serde_json::Value;

use super::Result;
use super::cursor::At;
use super::draft::Draft;
use crate::secret::looks_like_key;

/// The entries of a list that fit a `filter_dict`: each of its fields lists what is accepted.
pub(super) fn fitting<'a>(items: Vec<At<'a>>, filter: Option<&At<'a>>) -> Result<Vec<At<'a>>> {
    let Some(filter) = filter else { return Ok(items) };
    let mut accepted = Vec::new();
    for (key, at) in filter.entries()? {
        accepted.push((key, at.items()?));
    }
    let fits = |item: &At<'_>| {
        accepted.iter().all(|(key, values)| {
            let is_one = |own: &Value| values.iter().any(|value| value.value == own);
            match item.value.get(key) {
                Some(Value::Array(own)) => own.iter().any(is_one),
                Some(own) => is_one(own),
                None => false,
            }
        })
    };
    let fitting: Vec<At<'a>> = items.into_iter().filter(fits).collect();
    if fitting.is_empty() { filter.wrong("no model of the list fits it") } else { Ok(fitting) }
}

/// Names the models of a list that are left out.
pub(super) fn note(list: &At<'_>, items: &[At<'_>], chosen: &At<'_>, draft: &mut Draft) {
    let others: Vec<String> = items.iter().filter(|at| at.path != chosen.path).map(name).collect();
    if !others.is_empty() {
        let (chosen, others) = (name(chosen), others.join(", "));
        let verb = if items.len() == 2 { "is" } else { "are" };
        let what =
            format!("{chosen} is taken; {others} {verb} left out: a team file has no models to fall back on");
        draft.note(&list.path, what);
    }
}

fn name(at: &At<'_>) -> String {
    let name = at.value.get("model").and_then(Value::as_str).filter(|name| !looks_like_key(name));
    name.map_or_else(|| "an entry without a model".into(), |name| format!("`{name}`"))
}
