//! The models of an agent or a manager: `llm_config`, `config_list`. The first is asked, the others when it fails.

use serde_json::{Map, Value};

use crate::cursor::At;
use crate::draft::Draft;
use crate::models::{Model, of_entry};
use crate::report::{FUNCTIONS, Result, UNCACHED};

/// The model of an `llm_config` with its fallbacks: the entries of its list, or those that are `picked`.
pub(super) fn model(at: &At<'_>, picked: Option<&[&str]>, draft: &mut Draft) -> Result<Model> {
    let mut filter = None;
    let (common, list) = match at.value {
        Value::Array(_) => (Map::new(), Some(at.clone())),
        _ => {
            let mut fields = at.fields()?;
            let list = fields.take("config_list");
            for key in ["functions", "tools"] {
                fields.cannot(key, FUNCTIONS, draft);
            }
            filter = fields.take("filter_dict");
            for key in ["cache_seed", "cache", "use_cache"] {
                fields.cannot(key, UNCACHED, draft);
            }
            fields.cannot("context", "left out: texts have no templates that would be filled in", draft);
            (fields.left(), list)
        }
    };
    let list = match list {
        Some(list) if list.value.is_string() => {
            draft.note(&list.path, "left out: the list is kept elsewhere");
            None
        }
        list => list,
    };
    let Some(list) = list else {
        leave_out_choice(&at.path, filter.as_ref(), picked, draft);
        let value = Value::Object(named(common, picked));
        return of_entry(At { value: &value, path: at.path.clone() }.fields()?, draft);
    };
    let mut items = fitting(list.items()?, filter.as_ref())?;
    let is_picked = |at: &&At<'_>| {
        let name = at.value.get("model").and_then(Value::as_str);
        picked.is_some_and(|picked| name.is_some_and(|name| picked.contains(&name)))
    };
    if items.iter().any(|at| is_picked(&at)) {
        items.retain(|at| is_picked(&at));
    } else if let Some(picked) = picked.filter(|_| items.iter().all(|at| at.value.get("model").is_some())) {
        let what = format!("all of its models are taken: none is `{}`", picked.join("` or `"));
        draft.note(&list.path, what);
    }
    let models = items.iter().map(|entry| {
        let mut merged = common.clone();
        // Only the filter uses the tags of an entry.
        let is_tag = |key: &str| key == "tags" && filter.is_some();
        let own = entry.entries()?.into_iter().filter(|(key, _)| !is_tag(key));
        merged.extend(own.map(|(key, at)| (key.to_owned(), at.value.clone())));
        let value = Value::Object(named(merged, picked));
        Ok((entry, of_entry(At { value: &value, path: entry.path.clone() }.fields()?, draft)?))
    });
    let models: Vec<(&At<'_>, Model)> = models.collect::<Result<_>>()?;
    if models.is_empty() { list.wrong("the list is empty") } else { Ok(joined(models, draft)) }
}

/// Notes what would select among the models of a list, where there is none.
fn leave_out_choice(path: &str, filter: Option<&At<'_>>, picked: Option<&[&str]>, draft: &mut Draft) {
    if let Some(filter) = filter {
        draft.note(&filter.path, "left out: there is no list of models from which it selects");
    }
    for name in picked.into_iter().flatten().skip(1) {
        draft.note(path, format!("the model `{name}` is left out: without a list, the first is taken"));
    }
}

/// The first model that has a name, with the other names as its fallbacks.
fn joined(models: Vec<(&At<'_>, Model)>, draft: &mut Draft) -> Model {
    let mut all = Model::default();
    for (at, model) in models {
        let Some(name) = model.name else {
            if all.name.is_none() && all.parameters.is_empty() {
                all.parameters = model.parameters;
            }
            continue;
        };
        if all.name.is_none() {
            all = Model { name: Some(name), ..model };
            continue;
        }
        if model.parameters != all.parameters {
            let what = "its parameters are left out: the models of a list share those of the first";
            draft.note(&at.path, what);
        }
        if all.name.as_ref() != Some(&name) && !all.fallbacks.contains(&name) {
            all.fallbacks.push(name);
        }
    }
    all
}

/// Adds the `picked` model to an entry without one.
fn named(mut entry: Map<String, Value>, picked: Option<&[&str]>) -> Map<String, Value> {
    if let Some(model) = picked.and_then(|picked| picked.first()).filter(|_| !entry.contains_key("model")) {
        entry.insert("model".into(), (*model).into());
    }
    entry
}

/// The entries of a list that a `filter_dict` accepts: each of its fields lists accepted values.
fn fitting<'a>(items: Vec<At<'a>>, filter: Option<&At<'a>>) -> Result<Vec<At<'a>>> {
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
