//! The models of an agent or a manager: `llm_config`, `config_list`. The first is asked, the others when it fails.

use serde_json::{Map, Value};

use crate::cursor::At;
use crate::draft::Draft;
use crate::models::{Model, of_entry};
use crate::report::{CODE, Result, UNCACHED};

/// The model of an `llm_config` with its fallbacks: the entries of its list, or those that are `picked`.
pub(super) fn model(at: &At<'_>, picked: Option<&[&str]>, draft: &mut Draft) -> Result<Model> {
    let mut filter = None;
    let (common, list) = match at.value {
        Value::Array(_) => (Map::new(), Some(at.clone())),
        _ => {
            let mut fields = at.fields()?;
            let list = fields.take("config_list");
            for key in ["functions", "tools"] {
                fields.cannot(key, CODE, draft);
            }
            filter = fields.take("filter_dict");
            for key in ["cache_seed", "cache", "use_cache"] {
                fields.cannot(key, UNCACHED, draft);
            }
            fields.cannot("context", "left out: texts have no templates that would be filled in", draft);
            (fields.left(), list)
        }
    };
    let Some(list) = list else {
        let value = Value::Object(named(common, picked));
        return of_entry(At { value: &value, path: at.path.clone() }.fields()?, draft);
    };
    if list.value.is_string() {
        draft.note(&list.path, "the list is kept elsewhere: name a model, or give one with `--model`");
        return Ok(Model::default());
    }
    let mut items = fitting(list.items()?, filter.as_ref())?;
    let is_picked = |at: &&At<'_>| {
        let name = at.value.get("model").and_then(Value::as_str);
        picked.is_some_and(|picked| name.is_some_and(|name| picked.contains(&name)))
    };
    if items.iter().any(|at| is_picked(&at)) {
        items.retain(|at| is_picked(&at));
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

/// The first model that has a name, with the other names as its fallbacks.
fn joined(models: Vec<(&At<'_>, Model)>, draft: &mut Draft) -> Model {
    let mut all = Model::default();
    for (at, model) in models {
        let Some(name) = model.name else { continue };
        match &all.name {
            None => all = Model { name: Some(name), ..model },
            Some(first) if *first == name || all.fallbacks.contains(&name) => {}
            Some(_) => {
                if model.parameters != all.parameters {
                    let what = "its parameters are left out: the models of a list share those of the first";
                    draft.note(&at.path, what);
                }
                all.fallbacks.push(name);
            }
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
