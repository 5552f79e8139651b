//! Grammars that hold replies to JSON, to a schema, or to calls of the tools that there are.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use polylogue_core::{Capability, Params, ToolChoice, ToolSpec};
use serde_json::{Value, json};

use crate::call_format::CallFormat;
use crate::vocabulary::{Vocabulary, is_spoken};

/// What a reply must satisfy.
#[derive(Debug, Clone)]
pub(crate) struct Grammar {
    lark: String,
    /// Where a schema is not supported: any JSON, which the agent checks.
    lenient: Option<String>,
    /// What the model lacks if neither can be used.
    capability: Capability,
}

/// The rules that several grammars share.
const RULES: &str = "\nTEXT: /(\\n|.)*/\nSPACE: /[ \\n]{0,2}/\nthought[lazy]: TEXT \"</think>\"\n";

impl Grammar {
    /// The grammar of a reply with `params`, which begins within a thought if `is_thinking`; `None` if it is free.
    pub(crate) fn of(
        params: &Params,
        tools: &[ToolSpec],
        format: Option<&CallFormat>,
        is_thinking: bool,
    ) -> Option<Self> {
        let lead = if is_thinking { "thought SPACE " } else { "" };
        if let Some(format) = format.filter(|_| !tools.is_empty()) {
            let strict = calls(format, tools, params, lead, |tool| tool.parameters.clone());
            let lenient = calls(format, tools, params, lead, |_| json!({ "type": "object" }));
            return Some(Self { lark: strict?, lenient, capability: Capability::Tools });
        }
        let (schema, capability) = match &params.schema {
            Some(schema) => (schema.clone(), Capability::Schema),
            None if params.json => (json!({ "type": "object" }), Capability::Json),
            None => return None,
        };
        let lark = format!("start: {lead}value\nvalue: %json {}{RULES}", compact(schema));
        Some(Self { lark, lenient: None, capability })
    }

    pub(crate) const fn capability(&self) -> Capability {
        self.capability
    }
}

/// The grammar of a reply that can, or must, call tools.
fn calls(
    format: &CallFormat,
    tools: &[ToolSpec],
    params: &Params,
    lead: &str,
    arguments: impl Fn(&ToolSpec) -> Value,
) -> Option<String> {
    let choice = params.tool_choice.as_ref();
    let is_offered = |tool: &&ToolSpec| match choice {
        Some(ToolChoice::Tool(name)) => tool.name == *name,
        _ => true,
    };
    let one: Vec<Value> =
        tools.iter().filter(is_offered).map(|tool| format.schema(&tool.name, &arguments(tool))).collect();
    if one.is_empty() {
        return None;
    }
    let several = params.parallel_tool_calls != Some(false);
    let one = json!({ "anyOf": one });
    let value = match (format.is_list, several) {
        (false, _) => one,
        (true, true) => json!({ "type": "array", "items": one, "minItems": 1 }),
        (true, false) => json!({ "type": "array", "items": one, "minItems": 1, "maxItems": 1 }),
    };
    let must = matches!(choice, Some(ToolChoice::Any | ToolChoice::Tool(_)));
    let repeats = several && !format.close.is_empty();
    let start = match (must, format.open.is_empty()) {
        (true, true) => format!("{lead}value"),
        (true, false) => format!("{lead}call{}", if repeats { " (SPACE call)*" } else { "" }),
        (false, true) => format!("{lead}(value | OTHER)"),
        (false, false) => format!("{lead}(trigger rest){} tail", if repeats { "*" } else { "?" }),
    };
    let quoted = |text: &str| if text.is_empty() { String::new() } else { Value::from(text).to_string() };
    let (open, close, space) = (quoted(format.open), quoted(format.close), quoted(format.space));
    Some(format!(
        "start: {start}\ncall: {open} rest\nrest: {space} value {space} {close}\ntail: TEXT\ntrigger[lazy]: TEXT {open}\n\
         OTHER: /[^{{](\\n|.)*/\nvalue: %json {}{RULES}",
        compact(value)
    ))
}

/// A schema whose values have no white space but one after `:` and `,`: small models write it without end.
fn compact(schema: Value) -> Value {
    let options = json!({ "whitespace_flexible": false, "item_separator": ", ", "key_separator": ": " });
    match schema {
        Value::Object(mut schema) => {
            schema.insert("x-guidance".into(), options);
            Value::Object(schema)
        }
        Value::Bool(false) => Value::Bool(false),
        _ => json!({ "x-guidance": options }),
    }
}

/// Makes matchers of grammars for one vocabulary.
pub(crate) struct Grammars(ParserFactory);

impl Grammars {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Result<Self, String> {
        let word = |token: &crate::vocabulary::Token| match is_spoken(token) {
            true => token.bytes.clone(),
            false => [&[TokTrie::SPECIAL_TOKEN_MARKER], token.bytes.as_slice()].concat(),
        };
        let words: Vec<Vec<u8>> = vocabulary.tokens.iter().map(word).collect();
        let size = u32::try_from(words.len()).map_err(|error| error.to_string())?;
        let end = vocabulary.ends.first().copied().unwrap_or_default();
        let trie = TokTrie::from(&TokRxInfo::new(size, end), &words).with_eos_tokens(&vocabulary.ends);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment).map_err(|error| error.to_string())?;
        factory.quiet();
        Ok(Self(factory))
    }

    /// Follows a reply by `grammar`.
    pub(crate) fn matcher(&self, grammar: &Grammar) -> Result<Matcher, String> {
        let attempt = |lark: &str| {
            let parser = self.0.create_parser(TopLevelGrammar::from_lark(lark.to_owned()));
            let mut matcher = Matcher::new(parser);
            match matcher.get_error() {
                Some(error) => Err(error),
                None => matcher.compute_mask().map(|_| matcher).map_err(|error| error.to_string()),
            }
        };
        let strict = attempt(&grammar.lark);
        match &grammar.lenient {
            Some(lenient) => strict.or_else(|_| attempt(lenient)),
            None => strict,
        }
    }
}
