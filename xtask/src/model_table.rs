//! `cargo xtask model-table`: makes the table of models that ships with `polylogue-models`.
//!
//! The source is `model_prices_and_context_window_backup.json` of the Python package `litellm`, whose part outside of
//! `enterprise/` is under the MIT license; its notice is next to the table. A row is one model of one provider, as a line
//! of JSON, sorted by provider and model. Prices are dollars for a million tokens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

/// Names of providers in the source, and here.
const PROVIDERS: [(&str, &str); 28] = [
    ("openai", "openai"),
    ("anthropic", "anthropic"),
    ("gemini", "gemini"),
    ("vertex_ai", "vertex"),
    ("bedrock", "bedrock"),
    ("bedrock_converse", "bedrock"),
    ("azure", "azure"),
    ("mistral", "mistral"),
    ("xai", "xai"),
    ("deepseek", "deepseek"),
    ("groq", "groq"),
    ("together_ai", "together"),
    ("fireworks_ai", "fireworks"),
    ("deepinfra", "deepinfra"),
    ("cohere", "cohere"),
    ("cohere_chat", "cohere"),
    ("perplexity", "perplexity"),
    ("cerebras", "cerebras"),
    ("dashscope", "qwen"),
    ("moonshot", "moonshot"),
    ("zai", "zai"),
    ("nebius", "nebius"),
    ("sambanova", "sambanova"),
    ("voyage", "voyage"),
    ("vertex_ai-language-models", "vertex"),
    ("vertex_ai-anthropic_models", "vertex"),
    ("vertex_ai-mistral_models", "vertex"),
    ("vertex_ai-embedding-models", "vertex"),
];

/// What a model can do: the flag in the source, and the word here.
const ABILITIES: [(&str, &str); 6] = [
    ("supports_function_calling", "tools"),
    ("supports_response_schema", "schema"),
    ("supports_vision", "vision"),
    ("supports_pdf_input", "documents"),
    ("supports_audio_input", "audio"),
    ("supports_reasoning", "thinking"),
];

/// Parts of the names of models that see pictures, which the source does not say of them at every provider.
const SEES: [&str; 12] = [
    "claude-3-7", "claude-4", "gemma-3-12b", "gemma-3-27b", "gemma-3-4b", "gpt-4-turbo", "gpt-5",
    "kimi-k2p5", "llama-4", "llama4", "mistral-medium-3", "pixtral",
];

/// What a model takes of a request, or refuses, unlike others that can do the same: the flag in the source, its value there, the
/// field here, and the word here.
const OPTIONS: [(&str, bool, &str, &str); 5] = [
    ("supports_adaptive_thinking", true, "takes", "adaptive_thinking"),
    ("supports_native_structured_output", true, "takes", "strict_schema"),
    ("supports_sampling_params", false, "refuses", "sampling"),
    ("supports_forced_tool_use", false, "refuses", "forced_tools"),
    ("thinking_always_on", true, "refuses", "no_thinking"),
];

/// What models take or refuse that the source does not tell: the field and the word here, and the beginnings of their names. A number
/// of tokens to think with, and not a level (<https://ai.google.dev/gemini-api/docs/thinking#levels-budgets>); system messages
/// within the conversation; reasoning that is bound to what came before it, and may be ignored where that changed; no end
/// of thinking; no temperature at any effort.
const BY_NAME: [(&str, &str, &[&str]); 5] = [
    ("takes", "thinking_budget", &["gemini-1", "gemini-2", "gemini-exp", "gemini-robotics-er-1", "learnlm"]),
    (
        "takes",
        "system_within",
        &[
            "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-mythos-5",
            "claude-haiku-5-5",
        ],
    ),
    (
        "takes",
        "block_binding",
        &[
            "claude-fable-5-1", "claude-mythos-5-1", "claude-opus-5-5", "claude-sonnet-5-5",
            "claude-haiku-5-5",
        ],
    ),
    ("refuses", "no_thinking", &["gemini-2.5-pro"]),
    ("refuses", "sampling", &["gpt-6"]),
];

/// The efforts that models can take, as the flags of the source and the rows here name them.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The efforts of models of which the source does not tell them, or wrongly: the beginnings of their names, the first that fits
/// counts, and the efforts; none if they are unknown. By the errors and the pages of models of OpenAI
/// (<https://platform.openai.com/docs/models>), and by the levels of thinking of Gemini
/// (<https://ai.google.dev/gemini-api/docs/thinking#thinking-levels>).
const EFFORTS_BY_NAME: [(&[&str], &[&str]); 13] = [
    (&["gpt-5.5-cyber", "gpt-5.6-cyber", "o1-mini", "o1-preview"], &[]),
    (&["gpt-5-pro"], &["high"]),
    (&["gpt-5.2-pro", "gpt-5.4-pro", "gpt-5.5-pro"], &["medium", "high", "xhigh"]),
    (&["gpt-5.1-chat", "gpt-5.2-chat", "gpt-5.3-chat"], &["medium"]),
    (&["gpt-5.1-codex-max", "gpt-5.2-codex", "gpt-5.3-codex"], &["low", "medium", "high", "xhigh"]),
    (&["gpt-5-codex", "gpt-5.1-codex", "o1", "o3", "o4-mini"], &["low", "medium", "high"]),
    (&["gpt-5.6"], &["none", "low", "medium", "high", "xhigh", "max"]),
    (&["gemini-3-pro-preview"], &["low", "high"]),
    (
        &["gemini-3-flash", "gemini-3.1-flash-lite", "gemini-3.5-flash", "gemini-3.6-flash"],
        &["minimal", "low", "medium", "high"],
    ),
    (&["gemini-flash-lite-latest"], &["minimal", "low", "medium", "high"]),
    (&["gemini-3.1-pro", "gemini-3.7-flash", "gemini-3.8-flash"], &["low", "medium", "high"]),
    (&["gemini-pro-latest", "gemini-flash-latest"], &["low", "medium", "high"]),
    (&["gemini-4"], &["low", "medium", "high", "xhigh"]),
];

/// Which field of Amazon Bedrock says how much models reason that the source says do: the word here, and a part of their
/// names. `thinking` of Claude (<https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html>), `reasoningConfig`
/// of Nova (<https://docs.aws.amazon.com/nova/latest/nova2-userguide/using-converse-api.html>), `reasoning_effort` of gpt-oss. DeepSeek has none.
const REASONING_FIELDS: [(&str, &str); 3] = [
    ("thinking_block", "anthropic.claude-"),
    ("reasoning_config", "amazon.nova-2-"),
    ("reasoning_effort", "openai.gpt-oss-"),
];

/// Models that the source says reason, and that refuse everything about it.
const WITHOUT_REASONING: [(&str, &str); 2] = [("openai", "gpt-5-chat"), ("openai", "gpt-5-chat-latest")];

/// Thresholds above which all tokens of a request have another price, in the names of the source.
const TIERS: [(&str, u64); 4] = [("100k", 100_000), ("128k", 128_000), ("200k", 200_000), ("272k", 272_000)];

/// The most dollars a million tokens can cost without being a mistake.
const DEAREST: f64 = 2_000.0;

/// What OpenAI's models that charge for writing to the cache cost for twelve hours, which the source does not have, as a multiple of the price of
/// input; for half an hour it is 1.25 (<https://developers.openai.com/api/docs/guides/prompt-caching>). Two others quote it from OpenAI's pages of
/// October 2026: <https://apidog.com/de/blog/gpt-6-1-terra-pricing/> with $2.50 at an input of $1, and
/// <https://qiita.com/AIHubMix/items/0ad009aed283a93b63cf> with 250 %. Longer requests cost twice as much of it, as of input.
const HALF_DAY: f64 = 2.5;

/// The beginnings of the names of models that cost nothing, as their providers say. The source has zeros for others, too, of which it
/// does not know the price, or which are not billed by tokens.
const FREE: [&str; 3] = ["gemma-", "glm-4.5-flash", "glm-4.7-flash"];

/// The table made of the file `source`, which is of `version` and was looked up on `date`.
pub(crate) fn table(source: &Path, version: &str, date: &str) -> Result<String, String> {
    let fail = |error: &dyn std::fmt::Display| format!("`{}` cannot be used: {error}", source.display());
    let text = std::fs::read_to_string(source).map_err(|error| fail(&error))?;
    let all: Map<String, Value> = serde_json::from_str(&text).map_err(|error| fail(&error))?;
    let mut rows: BTreeMap<_, (f64, String)> = BTreeMap::new();
    for (name, about) in &all {
        let Some((provider, model)) = identity(name, about) else { continue };
        let is_plain = WITHOUT_REASONING.contains(&(provider, model.as_str()));
        let plain = is_plain.then(|| without_reasoning(about));
        let about = plain.as_ref().unwrap_or(about);
        // The models at Azure are those of OpenAI, of which the source knows more.
        let about_efforts = all.get(&model).filter(|_| provider == "azure").unwrap_or(about);
        let Some(row) = row(&model, about, &efforts(provider, &model, about_efforts)) else { continue };
        // Of two rows with the same name the dearer one counts, because a budget must hold.
        let cost = about.get("input_cost_per_token").and_then(Value::as_f64).unwrap_or_default();
        let best = rows.entry((provider, model)).or_insert((cost, String::new()));
        if best.1.is_empty() || cost > best.0 {
            *best = (cost, row);
        }
    }
    let mut table =
        format!("{{\"source\":\"litellm {version}\",\"date\":\"{date}\",\"models\":{}}}\n", rows.len());
    for ((provider, model), (_, row)) in rows {
        let model = Value::from(model);
        let _ = writeln!(table, "{{\"provider\":\"{provider}\",\"model\":{model}{row}}}");
    }
    Ok(table)
}

/// The same model without its flags about reasoning.
fn without_reasoning(about: &Value) -> Value {
    let fields = about.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| !name.contains("reasoning"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The provider and the name of a model that is priced by tokens, as they are written here.
fn identity(name: &str, about: &Value) -> Option<(&'static str, String)> {
    let mode = about.get("mode")?.as_str()?;
    if !["chat", "responses", "completion", "embedding"].contains(&mode) {
        return None;
    }
    let given = about.get("litellm_provider")?.as_str()?;
    let (_, provider) = PROVIDERS.into_iter().find(|(theirs, _)| *theirs == given)?;
    // Names begin with the provider where they would be ambiguous; what is left with a region before it is not a name that
    // the provider knows.
    let model = name.strip_prefix(given).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    let model = model.strip_prefix("vertex_ai/").unwrap_or(model);
    let is_regional = ["bedrock", "azure"].contains(&provider) && model.contains('/');
    (!is_regional && !model.starts_with("ft:")).then(|| (provider, model.to_owned()))
}

/// The fields of the row of `model`, each with a comma before it; nothing for a model without a sound price.
fn row(model: &str, about: &Value, efforts: &[&str]) -> Option<String> {
    let mut row = String::new();
    for (theirs, ours) in [("max_input_tokens", "max_input"), ("max_output_tokens", "max_output")] {
        if let Some(tokens) = about.get(theirs).and_then(Value::as_u64).filter(|tokens| *tokens > 0) {
            let _ = write!(row, ",\"{ours}\":{tokens}");
        }
    }
    let is_billed = ["input_cost_per_token", "output_cost_per_token"]
        .iter()
        .any(|name| about.get(name).and_then(Value::as_f64).is_some_and(|cost| cost > 0.0));
    if !is_billed && !FREE.iter().any(|begin| model.starts_with(begin)) {
        return None;
    }
    row.push_str(&prices(about, "")?);
    let tiers: Vec<String> = TIERS
        .iter()
        .filter_map(|(name, over)| {
            let prices = prices(about, &format!("_above_{name}_tokens"))?;
            Some(format!("{{\"over\":{over}{prices}}}"))
        })
        .collect();
    if !tiers.is_empty() {
        let _ = write!(row, ",\"tiers\":[{}]", tiers.join(","));
    }
    let says = |flag: &str, value: bool| about.get(flag) == Some(&Value::Bool(value));
    if !efforts.is_empty() {
        let _ = write!(row, ",\"efforts\":{}", list(efforts.iter().copied()));
    }
    // The flag is missing for some that have a price of sound.
    let hears = row.contains("\"audio\":");
    let sees = SEES.iter().any(|part| model.contains(part));
    // Of models without any flag, nothing is known.
    let has_flags = ABILITIES.iter().any(|(flag, _)| says(flag, true));
    let is_known = |word: &str| has_flags && (word == "audio" && hears || word == "vision" && sees);
    let can = ABILITIES.iter().filter(|(flag, word)| says(flag, true) || is_known(word));
    let _ = write!(row, ",\"can\":{}", list(can.map(|(_, word)| *word)));
    for field in ["takes", "refuses"] {
        let options = OPTIONS.iter().filter(|(flag, value, of, _)| *of == field && says(flag, *value));
        let by_name = BY_NAME
            .iter()
            .filter(|(of, _, names)| *of == field && names.iter().any(|begin| model.starts_with(begin)));
        let reasons = field == "takes" && says("supports_reasoning", true);
        let fields = REASONING_FIELDS.iter().filter(|(_, part)| reasons && model.contains(part));
        let by_name = by_name.map(|(_, word, _)| *word).chain(fields.map(|(word, _)| *word));
        let words = list(options.map(|(.., word)| *word).chain(by_name));
        if words != "[]" {
            let _ = write!(row, ",\"{field}\":{words}");
        }
    }
    if let Some(tokens) = about.get("prompt_cache_min_tokens").and_then(Value::as_u64) {
        let _ = write!(row, ",\"cache_min\":{tokens}");
    }
    Some(row)
}

/// The efforts that `model` takes; none if that is not known, or if it has no field for them.
fn efforts(provider: &str, model: &str, about: &Value) -> Vec<&'static str> {
    let says = |flag: &str| about.get(flag).and_then(Value::as_bool);
    let is_claude = model.contains("claude-");
    // Of the models at Amazon Bedrock, only Claude has a field for the effort that is the same for all.
    if says("supports_reasoning") != Some(true) || provider == "bedrock" && !is_claude {
        return Vec::new();
    }
    let fits = |names: &&[&str]| names.iter().any(|begin| model.starts_with(begin));
    if let Some((_, efforts)) = EFFORTS_BY_NAME.iter().find(|(names, _)| fits(names)) {
        return efforts.to_vec();
    }
    let levels = about.get("reasoning_effort_levels").and_then(Value::as_array);
    if let Some(levels) = levels {
        let has = |word: &str| levels.iter().any(|level| level == word);
        return EFFORTS.into_iter().filter(|word| has(word)).collect();
    }
    let flag = |name: &str| says(&format!("supports_{name}_reasoning_effort"));
    // Claude has a field that its models have in common, and others have flags only where they differ.
    let is_known = match is_claude {
        true => says("supports_output_config") == Some(true),
        false => EFFORTS.iter().any(|name| flag(name).is_some()),
    };
    let is_usual = |name: &str| ["low", "medium", "high"].contains(&name);
    let takes = |name: &&str| is_known && flag(name).unwrap_or(is_usual(name));
    EFFORTS.into_iter().filter(takes).collect()
}

/// `words` as a list in JSON.
fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    format!("[{}]", words.join(","))
}

/// The prices whose names end in `suffix`: reading and writing at least.
fn prices(about: &Value, suffix: &str) -> Option<String> {
    let dollars = |name: &str| {
        let dollars = about.get(format!("{name}{suffix}"))?.as_f64()? * 1e6;
        (0.0..=DEAREST).contains(&dollars).then_some(dollars)
    };
    let price = |name: &str| dollars(name).map(trimmed);
    let is_embedding = about.get("mode").and_then(Value::as_str) == Some("embedding");
    let input = price("input_cost_per_token")?;
    let output = price("output_cost_per_token").or_else(|| is_embedding.then(|| "0".to_owned()))?;
    let mut row = format!(",\"input\":{input},\"output\":{output}");
    for (theirs, ours) in [
        ("cache_read_input_token_cost", "cache_read"),
        ("cache_creation_input_token_cost", "cache_write"),
        ("cache_creation_input_token_cost_above_1hr", "cache_write_long"),
    ] {
        if let Some(price) = price(theirs) {
            let _ = write!(row, ",\"{ours}\":{price}");
        }
    }
    let is_openai = about.get("litellm_provider").and_then(Value::as_str) == Some("openai");
    let has_long = row.contains("\"cache_write_long\":");
    if let Some(input) = dollars("input_cost_per_token").filter(|_| is_openai && !has_long)
        && row.contains("\"cache_write\":")
    {
        let _ = write!(row, ",\"cache_write_long\":{}", trimmed(HALF_DAY * input));
    }
    // Sound, where it has a price of its own.
    let audio = price("input_cost_per_audio_token").filter(|audio| suffix.is_empty() && *audio != input);
    if let Some(audio) = audio {
        let _ = write!(row, ",\"audio\":{audio}");
    }
    Some(row)
}

/// A price to a millionth of a dollar, without zeros at its end.
fn trimmed(dollars: f64) -> String {
    let text = format!("{dollars:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(source: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("source.json");
        std::fs::write(&file, source).unwrap();
        table(&file, "1.0", "2026-01-02").unwrap()
    }

    #[test]
    fn a_model_is_a_line_with_exact_prices() {
        let source = r#"{
            "zeta/b": {"mode": "chat", "litellm_provider": "unknown", "input_cost_per_token": 1e-6},
            "gemini/g": {"mode": "chat", "litellm_provider": "gemini", "max_input_tokens": 1048576, "max_output_tokens": 8192,
                "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-07,
                "input_cost_per_token_above_200k_tokens": 2.5e-06, "output_cost_per_token_above_200k_tokens": 1.5e-05,
                "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 5e-06,
                "supports_vision": true, "supports_function_calling": true, "supports_sampling_params": false,
                "supports_adaptive_thinking": true, "thinking_always_on": false},
            "vertex_ai/gemini-2.5-x": {"mode": "chat", "litellm_provider": "vertex_ai", "input_cost_per_token": 1e-06,
                "output_cost_per_token": 1e-06},
            "e": {"mode": "embedding", "litellm_provider": "openai", "input_cost_per_token": 2e-08}
        }"#;
        assert_eq!(
            made(source),
            "{\"source\":\"litellm 1.0\",\"date\":\"2026-01-02\",\"models\":3}\n\
             {\"provider\":\"gemini\",\"model\":\"g\",\"max_input\":1048576,\"max_output\":8192,\"input\":1.25,\"output\":10,\
             \"cache_read\":0.125,\"tiers\":[{\"over\":200000,\"input\":2.5,\"output\":15,\"cache_write_long\":5}],\"can\":[\"tools\",\"vision\"],\
             \"takes\":[\"adaptive_thinking\"],\"refuses\":[\"sampling\"]}\n\
             {\"provider\":\"openai\",\"model\":\"e\",\"input\":0.02,\"output\":0,\"can\":[]}\n\
             {\"provider\":\"vertex\",\"model\":\"gemini-2.5-x\",\"input\":1,\"output\":1,\"can\":[],\
             \"takes\":[\"thinking_budget\"]}\n"
        );
    }

    #[test]
    fn writing_for_twelve_hours_costs_twice_as_much_at_openai() {
        let source = |provider: &str| {
            format!(
                "{{\"gpt-9\": {{\"mode\": \"chat\", \"litellm_provider\": \"{provider}\", \"input_cost_per_token\": 4e-6, \
                 \"output_cost_per_token\": 2e-5, \"cache_creation_input_token_cost\": 5e-6, \
                 \"input_cost_per_token_above_272k_tokens\": 8e-6, \"output_cost_per_token_above_272k_tokens\": 3e-5}}}}"
            )
        };
        let made = ["openai", "azure"].map(|provider| made(&source(provider)));
        assert!(made[0].contains("\"cache_write\":5,\"cache_write_long\":10,\"tiers\":[{\"over\":272000,\"input\":8,\"output\":30}]"));
        assert!(made[1].contains("\"cache_write\":5,\"tiers\""), "{}", made[1]);
    }

    /// Those of the source, unless it is known to be wrong; of Claude only if it has the field.
    #[test]
    fn the_efforts_of_a_model_are_those_that_are_known() {
        let source = |name: &str, flags: &str| {
            format!(
                "{{\"{name}\": {{\"mode\": \"chat\", \"litellm_provider\": \"openai\", \"input_cost_per_token\": 1e-6, \
                 \"output_cost_per_token\": 1e-6{flags}}}}}"
            )
        };
        let reasons = ", \"supports_reasoning\": true";
        let none = format!("{reasons}, \"supports_none_reasoning_effort\": true");
        let field =
            format!("{reasons}, \"supports_output_config\": true, \"supports_max_reasoning_effort\": true");
        let max = format!("{reasons}, \"supports_max_reasoning_effort\": true");
        for (name, flags, expected) in [
            ("gpt-9", none.as_str(), "\"efforts\":[\"none\",\"low\",\"medium\",\"high\"]"),
            ("gpt-5-pro", none.as_str(), "\"efforts\":[\"high\"]"),
            ("o3-2025-04-16", reasons, "\"efforts\":[\"low\",\"medium\",\"high\"]"),
            ("claude-x", field.as_str(), "\"efforts\":[\"low\",\"medium\",\"high\",\"max\"]"),
        ] {
            let made = made(&source(name, flags));
            assert!(made.contains(expected), "{made}");
        }
        for (name, flags) in [("gpt-9", reasons), ("claude-x", max.as_str()), ("o3", "")] {
            assert!(!made(&source(name, flags)).contains("efforts"), "{name}");
        }
    }

    #[test]
    fn sound_has_a_price_where_it_is_another_and_what_is_free_is_named() {
        let source = r#"{
            "gemini/g": {"mode": "chat", "litellm_provider": "gemini", "input_cost_per_token": 3e-07, "output_cost_per_token": 1e-06,
                "input_cost_per_audio_token": 1e-06, "supports_vision": true},
            "gemini/same": {"mode": "chat", "litellm_provider": "gemini", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06,
                "input_cost_per_audio_token": 1e-06},
            "gemini/gemma-9": {"mode": "chat", "litellm_provider": "gemini", "input_cost_per_token": 0, "output_cost_per_token": 0}
        }"#;
        let made = made(source);
        let rows: Vec<&str> = made.lines().skip(1).collect();
        assert_eq!(
            rows,
            [
                "{\"provider\":\"gemini\",\"model\":\"g\",\"input\":0.3,\"output\":1,\"audio\":1,\"can\":[\"vision\",\"audio\"]}",
                "{\"provider\":\"gemini\",\"model\":\"gemma-9\",\"input\":0,\"output\":0,\"can\":[]}",
                "{\"provider\":\"gemini\",\"model\":\"same\",\"input\":1,\"output\":1,\"can\":[]}",
            ]
        );
    }

    #[test]
    fn models_without_a_sound_price_are_left_out() {
        let source = r#"{
            "a": {"mode": "chat", "litellm_provider": "openai"},
            "b": {"mode": "chat", "litellm_provider": "openai", "input_cost_per_token": -1, "output_cost_per_token": 1},
            "c": {"mode": "chat", "litellm_provider": "openai", "input_cost_per_token": 1, "output_cost_per_token": 1},
            "d": {"mode": "image_generation", "litellm_provider": "openai", "input_cost_per_token": 1e-6},
            "e": {"mode": "chat", "litellm_provider": "openai", "input_cost_per_token": 0, "output_cost_per_token": 0}
        }"#;
        assert_eq!(made(source).lines().count(), 1);
    }
}
