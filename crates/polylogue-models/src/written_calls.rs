//! Calls of tools that a model wrote as text, because its server does not read them.

use crate::deviations::{self, ToolParser};
use crate::provider::Provider;

/// What a call, or a list of calls, begins with in the formats of models, at the beginning of a line: those of Hermes, Qwen and GLM; Mistral;
/// Llama; Qwen3-Coder; DeepSeek; Kimi; MiniMax.
const BEGINS: [&str; 7] = [
    "<tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<function=",
    "<｜tool▁calls▁begin｜>",
    "<|tool_calls_section_begin|>",
    "<minimax:tool_call>",
];

/// Names before the `:` of models that have no server.
const WITHOUT_SERVER: [&str; 2] = ["local", "script"];

/// What to do about a tool call that `model`, named with its provider, wrote as text in `reply`. `None` if it wrote none, or if its server
/// is that of a known provider, whose options only the provider sets.
///
/// ```
/// use polylogue_models::written_call_hint;
/// let reply = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>";
/// let hint = written_call_hint("vllm:Qwen/Qwen3-8B", reply).unwrap();
/// assert!(hint.contains("--tool-call-parser"));
/// assert_eq!(written_call_hint("vllm:Qwen/Qwen3-8B", "It is sunny."), None);
/// assert_eq!(written_call_hint("openai:gpt-4o", reply), None);
/// ```
pub fn written_call_hint(model: &str, reply: &str) -> Option<String> {
    let is_call = |line: &str| BEGINS.iter().any(|begin| line.trim_start().starts_with(*begin));
    if !reply.lines().any(is_call) {
        return None;
    }
    let (provider, _) = model.split_once(':')?;
    let is_unknown = match Provider::find(provider) {
        Some(known) => known.name() == "compatible",
        None => !WITHOUT_SERVER.iter().any(|own| own.eq_ignore_ascii_case(provider)),
    };
    let parsers: Vec<ToolParser> = match deviations::of(provider).tool_parser {
        Some(parser) => vec![parser],
        None if is_unknown => deviations::tool_parsers().collect(),
        None => return None,
    };
    let ways: Vec<String> =
        parsers.iter().map(|parser| format!("{}: `{}`", parser.server, parser.flags)).collect();
    let ways = ways.join("; ");
    Some(format!("start the server so that it reads calls ({ways}), or set `tool_calling: text`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";

    #[test]
    fn calls_in_the_formats_of_models_are_found_at_the_beginning_of_a_line() {
        for reply in [
            CALL,
            "I look it up.\n\n  <tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
            "<tool_call>\n<function=f>\n</function>\n</tool_call>",
            "<function=f>{\"a\": 1}</function>",
            "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}]",
            "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0",
            "<minimax:tool_call>\n<invoke name=\"f\">\n</invoke>\n</minimax:tool_call>",
        ] {
            assert!(written_call_hint("vllm:m", reply).is_some(), "{reply}");
        }
        for reply in
            ["", "It is sunny.", "Write `<tool_call>` before a call.", "{\"name\": \"f\", \"arguments\": {}}"]
        {
            assert_eq!(written_call_hint("vllm:m", reply), None, "{reply}");
        }
    }

    #[test]
    fn the_users_own_server_is_named_with_its_flags_and_no_other() {
        let all = ["--enable-auto-tool-choice --tool-call-parser", "SGLang: `--tool-call-parser", "--jinja"];
        for (model, flags) in [
            ("vllm:m", &all[..1]),
            ("sglang:m", &all[1..2]),
            ("llamacpp:m", &all[2..]),
            ("house:Qwen/Qwen3-8B", &all[..]),
            ("compatible:m", &all[..]),
        ] {
            let hint = written_call_hint(model, CALL).unwrap();
            let named: Vec<&str> = all.into_iter().filter(|flag| hint.contains(*flag)).collect();
            assert_eq!(named, flags, "{hint}");
        }
        for model in ["openai:m", "openrouter:m", "ollama:m", "lmstudio:m", "Local:m.gguf", "script:m", "m"] {
            assert_eq!(written_call_hint(model, CALL), None, "{model}");
        }
    }
}
