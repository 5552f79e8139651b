//! The values of the arguments of a call.

use std::collections::BTreeMap;

use polylogue_core::ToolError;
use serde_json::Value;

use super::declaration::Arguments;

/// The arguments by name, including defaults, without omitted ones.
pub(crate) type GivenArguments<'a> = BTreeMap<&'a str, &'a Value>;

/// The arguments in `args`, by their declarations.
pub(crate) fn given<'a>(declared: &'a Arguments, args: &'a Value) -> Result<GivenArguments<'a>, ToolError> {
    let args = args.as_object().ok_or("the arguments must be a JSON object")?;
    if let Some(name) = args.keys().find(|name| !declared.contains_key(*name)) {
        let known: Vec<String> = declared.keys().map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        return Err(ToolError(format!("there is no argument `{name}`; there is {known}")));
    }
    let mut given = GivenArguments::new();
    for (name, argument) in declared {
        // Models write `null` for what they leave out.
        let value = args.get(name).filter(|value| !value.is_null());
        if let Some(value) = value {
            argument.accept(name, value).map_err(ToolError)?;
        }
        match value.or(argument.default.as_ref()) {
            Some(value) => drop(given.insert(name, value)),
            None if argument.optional => {}
            None => return Err(ToolError(format!("`{name}` is missing"))),
        }
    }
    Ok(given)
}

/// Refuses arguments that would be longer than `most` bytes in their `places`: an argument can have several.
pub(crate) fn check_size<'n>(
    places: impl IntoIterator<Item = &'n str>,
    given: &GivenArguments<'_>,
    most: usize,
) -> Result<(), ToolError> {
    let sizes: BTreeMap<&str, usize> = given.iter().map(|(name, value)| (*name, size(value))).collect();
    let sizes = places.into_iter().filter_map(|name| sizes.get(name));
    match sizes.fold(0_usize, |sum, size| sum.saturating_add(*size)) > most {
        true => Err(ToolError(format!("the arguments are too long: at most {most} bytes are possible"))),
        false => Ok(()),
    }
}

fn size(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), str::len)
}
