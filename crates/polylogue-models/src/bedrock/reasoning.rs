//! How much a model at Amazon Bedrock reasons: each family has its own field, besides the one for the effort.

use polylogue_core::{Effort, Params};
use serde_json::{Map, Value, json};

use crate::accepts::{Accepts, ReasoningField};
use crate::anthropic;

/// The fields of the model that say how much it reasons.
pub(super) fn fields(params: &Params, accepts: &Accepts) -> Map<String, Value> {
    let field = match accepts.reasoning_field {
        Some(ReasoningField::Thinking) => {
            let most = anthropic::tail::max_tokens(params, accepts);
            anthropic::tail::thinking(params, accepts, most).map(|thinking| ("thinking", thinking))
        }
        Some(ReasoningField::ReasoningConfig) => {
            params.effort.map(|effort| ("reasoningConfig", config_of_nova(effort, params)))
        }
        Some(ReasoningField::ReasoningEffort) => {
            let asked = params.effort.filter(|effort| *effort != Effort::None);
            asked.map(|effort| ("reasoning_effort", level(effort, Effort::High).into()))
        }
        None => None,
    };
    field.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Whether the model is Claude, and may reason without showing it.
pub(super) fn is_hidden(params: &Params, accepts: &Accepts) -> bool {
    accepts.reasoning_field == Some(ReasoningField::Thinking)
        && anthropic::tail::hides_reasoning(params, accepts)
}

/// <https://docs.aws.amazon.com/nova/latest/nova2-userguide/using-converse-api.html#converse-api-reasoning>
fn config_of_nova(effort: Effort, params: &Params) -> Value {
    if effort == Effort::None {
        return json!({"type": "disabled"});
    }
    // The highest effort takes no limit on the reply.
    let highest = if params.max_tokens.is_some() { Effort::Medium } else { Effort::High };
    json!({"type": "enabled", "maxReasoningEffort": level(effort, highest)})
}

fn level(effort: Effort, highest: Effort) -> &'static str {
    effort.clamp(Effort::Low, highest).as_str()
}

/// The lowest limit on a reply with which the model reasons, if it is Claude and `params` have a lower one.
pub(super) fn least_to_reason(params: &Params, accepts: &Accepts) -> Option<u64> {
    let is_claude = accepts.reasoning_field == Some(ReasoningField::Thinking);
    anthropic::tail::least_to_reason(params, accepts).filter(|_| is_claude)
}

/// The names of parameters about reasoning that the model has no field for, or that it does not take together with others.
pub(super) fn ignored(params: &Params, accepts: &Accepts) -> Vec<&'static str> {
    let none = params.effort == Some(Effort::None);
    let effort_is_ignored = match accepts.reasoning_field {
        Some(ReasoningField::Thinking | ReasoningField::ReasoningConfig) => false,
        Some(ReasoningField::ReasoningEffort) => none,
        None => params.effort.is_some() && accepts.efforts.is_none() || none,
    };
    let is_claude = accepts.reasoning_field == Some(ReasoningField::Thinking);
    // Nova with the highest effort takes no temperature.
    let is_nova = accepts.reasoning_field == Some(ReasoningField::ReasoningConfig);
    let reasons_most =
        is_nova && params.max_tokens.is_none() && params.effort.is_some_and(|effort| effort >= Effort::High);
    let ignored = [
        ("effort", effort_is_ignored && params.effort.is_some()),
        ("thinking", !is_claude && params.thinking.is_some()),
        ("temperature", reasons_most && params.temperature.is_some()),
        ("top_p", reasons_most && params.top_p.is_some()),
    ];
    let ignored = ignored.into_iter().filter_map(|(name, is_ignored)| is_ignored.then_some(name));
    let of_claude = if is_claude { anthropic::tail::ignored(params, accepts) } else { Vec::new() };
    ignored.chain(of_claude).collect()
}
