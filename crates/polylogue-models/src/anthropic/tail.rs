//! The fields of a request to Anthropic besides its messages.

use bytes::{BufMut, BytesMut};
use polylogue_core::{Capability, Effort, Params, Request, Thinking, ToolChoice, ToolSpec};
use serde_json::{Map, Value, json};

use super::decode::Messages;
use super::message::first_mark;
use crate::accepts::{Accepts, ThinkingForm};
use crate::schema::{self, anthropic::enforced};
use crate::wire::asked::AskedOutput;
use crate::wire::fields::Fields;
use crate::wire::json;
use crate::wire::protocol::{Style, WriteTail};
use crate::wire::words::legal_name;

/// The maximum tokens of a reply of a model that is not in the table. The API requires one.
const MAX_TOKENS: u64 = 8192;

impl WriteTail for Messages {
    /// Whether replies can have seals: of reasoning, or of tools of the provider.
    fn can_seal(params: &Params, style: &Style) -> bool {
        let accepts = &style.accepts;
        let own = thinking(params, accepts, max_tokens(params, accepts));
        let sent = params.extra.get("thinking").or(own.as_ref());
        TOOLS_OF_PROVIDER.iter().any(|name| params.extra.contains_key(*name)) || reasons_with(sent, accepts)
    }

    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        match extra.contains_key("system") {
            true => Err("`system` cannot be an extra field: it is the system message of the agent"),
            false => Ok(()),
        }
    }

    /// What the body asks for. Requests have one reply.
    fn asked_output(params: &Params, style: &Style) -> AskedOutput {
        let own = Value::from(max_tokens(params, &style.accepts));
        AskedOutput::of([params.extra.get("max_tokens").unwrap_or(&own)], [])
    }

    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style) {
        let (params, accepts) = (request.params, &style.accepts);
        let mut fields = Fields::new(out, &params.extra);
        let most = max_tokens(params, accepts);
        fields.add("max_tokens", Some(&most));
        if !request.tools.is_empty() {
            let is_marked = style.marks && request.system.is_none_or(|text| text.trim().is_empty());
            let mark = is_marked.then(|| first_mark(style));
            fields.raw("tools", |out| write_tools(out, request.tools, mark));
            fields.add("tool_choice", tool_choice(params).as_ref());
        }
        let asked = thinking(params, accepts, most).filter(|_| !style.forgoes_reasoning());
        fields.add("thinking", asked.as_ref());
        fields.add("output_config", output_config(params, accepts).as_ref());
        let finite = |number: Option<f64>| number.filter(|n| n.is_finite());
        fields.add("temperature", finite(params.temperature).as_ref());
        fields.add("top_p", finite(params.top_p).as_ref());
        fields.add("top_k", params.top_k.as_ref());
        let stops: Vec<&String> = params.stop.iter().filter(|stop| !stop.trim().is_empty()).collect();
        fields.add("stop_sequences", Some(&stops).filter(|stops| !stops.is_empty()));
        fields.add("stream", style.stream.then_some(&true));
        // `model` is already written with the extra field's value; the others are refused.
        for (name, value) in
            params.extra.iter().filter(|(name, _)| !matches!(&***name, "model" | "messages" | "system"))
        {
            fields.put(name, value);
        }
        fields.end();
    }

    fn sealer(_: &Style) -> Option<&'static str> {
        Some("anthropic")
    }

    fn hides_reasoning(params: &Params, style: &Style) -> bool {
        hides_reasoning(params, &style.accepts)
    }

    fn ignored(params: &Params, accepts: &Accepts) -> Vec<&'static str> {
        ignored(params, accepts)
    }

    fn least_to_reason(params: &Params, accepts: &Accepts) -> Option<u64> {
        least_to_reason(params, accepts)
    }

    fn lacks(request: &Request<'_>, style: &Style) -> Option<(Capability, String)> {
        style.accepts.unenforced(request.params)
    }
}

/// The maximum tokens of the reply: the request's, but not more than the model can write.
pub(crate) fn max_tokens(params: &Params, accepts: &Accepts) -> u64 {
    let most = accepts.max_output.unwrap_or(MAX_TOKENS);
    match params.max_tokens.map(u64::from) {
        Some(asked) => asked.min(accepts.max_output.unwrap_or(u64::MAX)),
        None => most,
    }
}

/// Writes the tools. The last one is marked if there is no system text, which would be.
fn write_tools(out: &mut BytesMut, tools: &[ToolSpec], mark: Option<&[u8]>) {
    out.put_u8(b'[');
    for (at, tool) in tools.iter().enumerate() {
        json::separate(out);
        json::quoted(out, r#"{"name":"#, &legal_name(&tool.name), "");
        if !tool.description.trim().is_empty() {
            json::quoted(out, r#","description":"#, &tool.description, "");
        }
        out.extend_from_slice(br#","input_schema":"#);
        json::value(out, &schema::arguments::merged(&tool.parameters));
        if let Some(mark) = mark.filter(|_| at + 1 == tools.len()) {
            out.extend_from_slice(mark);
        }
        out.put_u8(b'}');
    }
    out.put_u8(b']');
}

fn tool_choice(params: &Params) -> Option<Value> {
    let one = params.parallel_tool_calls.map(|several| !several);
    let mut choice = match (&params.tool_choice, one) {
        (None, None) => return None,
        (None | Some(ToolChoice::Auto), _) => json!({"type": "auto"}),
        (Some(ToolChoice::None), _) => return Some(json!({"type": "none"})),
        (Some(ToolChoice::Any), _) => json!({"type": "any"}),
        (Some(ToolChoice::Tool(name)), _) => json!({"type": "tool", "name": legal_name(name)}),
    };
    if let (Some(one), Some(fields)) = (one, choice.as_object_mut()) {
        fields.insert("disable_parallel_tool_use".into(), one.into());
    }
    Some(choice)
}

/// How the model reasons, if anything is asked.
pub(crate) fn thinking(params: &Params, accepts: &Accepts, most: u64) -> Option<Value> {
    if !is_asked(params) && !is_bound(params, accepts) {
        return None;
    }
    if params.effort == Some(Effort::None) {
        return accepts.no_thinking.then(|| json!({"type": "disabled"}));
    }
    let mut thinking = match accepts.thinking {
        ThinkingForm::None => return None,
        ThinkingForm::Adaptive => json!({"type": "adaptive"}),
        ThinkingForm::Budget => json!({"type": "enabled", "budget_tokens": budget(params.effort, most)?}),
    };
    let display = params.thinking.map(|thinking| match thinking {
        Thinking::Hidden => "omitted",
        Thinking::Summary => "summarized",
    });
    if let (Some(display), Some(fields)) = (display, thinking.as_object_mut()) {
        fields.insert("display".into(), display.into());
    }
    if let (true, Some(fields)) = (is_bound(params, accepts), thinking.as_object_mut()) {
        fields.insert("block_binding".into(), json!({"prefix_mismatch_behavior": "drop_block"}));
    }
    Some(thinking)
}

fn is_asked(params: &Params) -> bool {
    params.effort.is_some() || params.thinking.is_some()
}

/// Extra fields with tools that the provider runs itself: their blocks and citations are sealed, too.
const TOOLS_OF_PROVIDER: [&str; 2] = ["tools", "mcp_servers"];

/// Whether a model may reason that is sent this field `thinking`, or none. Models that reason for a number of tokens do so only when
/// they are asked to.
pub(crate) fn reasons_with(thinking: Option<&Value>, accepts: &Accepts) -> bool {
    match thinking {
        Some(thinking) => thinking.get("type").is_none_or(|kind| kind != "disabled"),
        None => accepts.thinking == ThinkingForm::Adaptive,
    }
}

/// Whether a model that decides itself how much it reasons may reason with `params`, which do not ask for a summary. Models that reason
/// for a number of tokens show a summary by default.
pub(crate) fn hides_reasoning(params: &Params, accepts: &Accepts) -> bool {
    let decides = accepts.thinks == Some(true) && accepts.thinking == ThinkingForm::Adaptive;
    decides
        && match thinking(params, accepts, max_tokens(params, accepts)) {
            Some(own) => reasons_with(Some(&own), accepts),
            None => accepts.thinks_by_default && params.effort != Some(Effort::None),
        }
}

/// Whether the request says that reasoning is ignored if something before it is no longer as it was. Without that some accounts
/// get an error. It is said in each request of a model that always reasons, because what is cached depends on it.
pub(super) fn is_bound(params: &Params, accepts: &Accepts) -> bool {
    let reasons = params.effort != Some(Effort::None) && (is_asked(params) || !accepts.no_thinking);
    accepts.block_binding && reasons && !params.extra.contains_key("thinking")
}

/// The minimum tokens of reasoning of a model that takes a number.
const MIN_BUDGET: u64 = 1024;

/// The tokens for reasoning: by the effort, and at most half of the reply. None if that is less than the minimum.
fn budget(effort: Option<Effort>, most: u64) -> Option<u64> {
    let asked = match effort.unwrap_or(Effort::Medium) {
        Effort::None | Effort::Minimal => MIN_BUDGET,
        Effort::Low => 4096,
        Effort::Medium => 8192,
        Effort::High => 16_384,
        Effort::XHigh | Effort::Max => 32_768,
    };
    Some(asked.min(most / 2)).filter(|tokens| *tokens >= MIN_BUDGET)
}

fn output_config(params: &Params, accepts: &Accepts) -> Option<Value> {
    let mut config = Map::new();
    let asked = params.effort.filter(|effort| *effort != Effort::None || !accepts.no_thinking);
    if let (Some(asked), Some(efforts)) = (asked, accepts.efforts) {
        config.insert("effort".into(), efforts.nearest(asked.max(Effort::Low)).as_str().into());
    }
    if let Some(Ok(schema)) = params.schema.as_ref().map(enforced) {
        config.insert("format".into(), json!({"type": "json_schema", "schema": schema}));
    }
    (!config.is_empty()).then_some(config.into())
}

fn is_forced(params: &Params) -> bool {
    matches!(params.tool_choice, Some(ToolChoice::Any | ToolChoice::Tool(_)))
}

/// Whether the model is asked to reason, and does so for a number of tokens.
fn is_budgeted(params: &Params, accepts: &Accepts) -> bool {
    let reasons = is_asked(params) && params.effort != Some(Effort::None);
    reasons && accepts.thinking == ThinkingForm::Budget
}

/// The lowest limit on a reply with which the model reasons, if `params` ask it to reason and have a lower one.
pub(crate) fn least_to_reason(params: &Params, accepts: &Accepts) -> Option<u64> {
    let is_short = || budget(params.effort, max_tokens(params, accepts)).is_none();
    (is_budgeted(params, accepts) && !is_forced(params) && is_short()).then_some(2 * MIN_BUDGET)
}

/// The names of parameters that this API does not take together with others of `params`.
pub(crate) fn ignored(params: &Params, accepts: &Accepts) -> Vec<&'static str> {
    let budgeted = is_budgeted(params, accepts);
    // A model with a budget for reasoning takes neither a forced call nor a temperature, and a limit on the reply has to leave room for
    // the least budget. The call and the limit count more than reasoning, and that more than a temperature.
    let forgoes = is_forced(params) || least_to_reason(params, accepts).is_some();
    let is_ignored = |name: &&str| match *name {
        "effort" | "thinking" => budgeted && forgoes,
        "temperature" | "top_k" => budgeted && !forgoes,
        "top_p" => budgeted && !forgoes || params.temperature.is_some(),
        _ => false,
    };
    params.names().into_iter().filter(is_ignored).collect()
}
