//! How much models can be asked to reason, as their providers refuse anything else.

use super::rules::Checked;

/// The beginnings of names of OpenAI's models, the first that fits counts, and their efforts
/// (<https://platform.openai.com/docs/guides/reasoning>).
const OPENAI: &[(&str, &[&str])] = &[
    ("o1", &["low", "medium", "high"]),
    ("o3", &["low", "medium", "high"]),
    ("o4", &["low", "medium", "high"]),
    ("gpt-5-pro", &["high"]),
    ("gpt-5-codex", &["low", "medium", "high"]),
    ("gpt-5.1-codex-max", &["low", "medium", "high", "xhigh"]),
    ("gpt-5.1-codex", &["low", "medium", "high"]),
    ("gpt-5.1", &["none", "low", "medium", "high"]),
    ("gpt-5.2-pro", &["medium", "high", "xhigh"]),
    ("gpt-5.2", &["none", "low", "medium", "high", "xhigh"]),
    ("gpt-5.4", &["none", "low", "medium", "high", "xhigh"]),
    ("gpt-5.", ANY),
    ("gpt-5", &["minimal", "low", "medium", "high"]),
    ("", ANY),
];

const ANY: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The same of Gemini's models, with their levels (<https://ai.google.dev/gemini-api/docs/thinking#thinking-levels>).
const GEMINI: &[(&str, &[&str])] = &[
    ("gemini-3-pro", &["LOW", "HIGH"]),
    ("gemini-3.1-pro", &["LOW", "MEDIUM", "HIGH"]),
    ("gemini-3.7-flash", &["LOW", "MEDIUM", "HIGH"]),
    ("gemini-3.8-flash", &["LOW", "MEDIUM", "HIGH"]),
    ("gemini-3", &["MINIMAL", "LOW", "MEDIUM", "HIGH"]),
    ("", &["MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"]),
];

fn of(table: &[(&str, &'static [&'static str])], model: &str) -> &'static [&'static str] {
    table.iter().find(|(begin, _)| model.starts_with(begin)).map_or(&[], |(_, efforts)| *efforts)
}

/// Checks that OpenAI's `model` takes the effort `asked`.
pub(super) fn check_openai(model: &str, asked: &str) -> Checked {
    let efforts = of(OPENAI, model);
    match efforts.contains(&asked) {
        true => Ok(()),
        false => Err(format!(
            "Unsupported value: '{asked}' is not supported with the '{model}' model. Supported values are: '{}'.",
            efforts.join("', '")
        )),
    }
}

/// Checks that Gemini's `model` takes the level `asked`.
pub(super) fn check_gemini(model: &str, asked: &str) -> Checked {
    match of(GEMINI, model).contains(&asked) {
        true => Ok(()),
        false => Err(format!("Thinking level {asked} is not supported for this model.")),
    }
}
