//! What a model accepts of a request besides its messages, as the table of models says.

use polylogue_core::{Capability, Effort, Params, ToolChoice};

use crate::catalog::KnownModel;
use crate::efforts::Efforts;
use crate::schema::anthropic::enforced;

/// What a model accepts of a request besides its messages. A model that is not in the table accepts everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepts {
    /// The maximum tokens of a reply, if it is known.
    pub(crate) max_output: Option<u64>,
    /// The maximum tokens of a request, if it is known.
    pub(crate) max_input: Option<u64>,
    /// The minimum tokens of a prefix that its provider caches, if it is known.
    pub(crate) cache_min: Option<u64>,
    /// Whether its provider caches a prefix for longer, too, and the table has the price of that.
    pub(crate) cache_long: bool,
    /// Whether writing to its cache costs more than other input. Of OpenAI's models, these take marks.
    pub(crate) paid_cache: bool,
    /// Whether it reasons; `None` if the table does not say.
    pub(crate) thinks: Option<bool>,
    /// How it reasons.
    pub(crate) thinking: ThinkingForm,
    /// Whether Gemini's field for how much it reasons is a level: earlier models have a number of tokens there, and sign
    /// no calls.
    pub(crate) thinking_level: bool,
    /// Whether its reasoning can be switched off.
    pub(crate) no_thinking: bool,
    /// Whether a model that decides itself how much it reasons does so where a request says nothing of that.
    pub(crate) thinks_by_default: bool,
    /// The efforts that it takes. If the table has none, it has no field for them, or they are unknown, by its API.
    pub(crate) efforts: Option<Efforts>,
    /// Which field of Amazon Bedrock says how much it reasons, next to that for the effort.
    pub(crate) reasoning_field: Option<ReasoningField>,
    /// Whether it takes a temperature and its like.
    pub(crate) sampling: bool,
    /// Whether it can be forced to call a tool.
    pub(crate) forced_tools: bool,
    /// Whether its provider enforces a schema.
    pub(crate) strict_schema: bool,
    /// Whether a message after one of others can have the role `system`.
    pub(crate) system_within: bool,
    /// Whether its reasoning is bound to what came before it, and it can be asked to ignore what is not.
    pub(crate) block_binding: bool,
}

/// How much a model reasons is its own decision, or a number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingForm {
    /// It does not reason.
    None,
    /// It decides itself.
    Adaptive,
    /// It reasons for a number of tokens.
    Budget,
}

/// A field of models at Amazon Bedrock that says how much they reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasoningField {
    /// `thinking`, of Claude, as by its own API.
    Thinking,
    /// `reasoningConfig`, of Nova.
    ReasoningConfig,
    /// `reasoning_effort`, of gpt-oss.
    ReasoningEffort,
}

impl Accepts {
    /// What is tried with a model that is not in the table.
    pub(crate) const UNKNOWN: Self = Self {
        max_output: None,
        max_input: None,
        cache_min: None,
        cache_long: true,
        paid_cache: false,
        thinks: None,
        thinking: ThinkingForm::Adaptive,
        thinking_level: true,
        no_thinking: true,
        thinks_by_default: false,
        efforts: Some(Efforts::ANY),
        reasoning_field: None,
        sampling: true,
        forced_tools: true,
        strict_schema: true,
        system_within: false,
        block_binding: false,
    };

    /// As the row of the table says.
    pub(crate) fn of(known: &KnownModel) -> Self {
        let takes = |word: &str| known.takes.iter().any(|option| option == word);
        let refuses = |word: &str| known.refuses.iter().any(|option| option == word);
        let thinking = match known.thinks() {
            Some(false) => ThinkingForm::None,
            Some(true) if !takes("adaptive_thinking") => ThinkingForm::Budget,
            _ => ThinkingForm::Adaptive,
        };
        Self {
            max_output: known.max_output,
            max_input: known.max_input,
            cache_min: known.cache_min,
            cache_long: known.price().write_long.is_some(),
            paid_cache: known.price().write.is_some(),
            thinks: known.thinks(),
            thinking,
            thinking_level: thinking != ThinkingForm::None && !takes("thinking_budget"),
            no_thinking: !refuses("no_thinking"),
            thinks_by_default: known.thinks_by_default(),
            efforts: Efforts::named(&known.efforts),
            reasoning_field: match () {
                () if takes("reasoning_config") => Some(ReasoningField::ReasoningConfig),
                () if takes("reasoning_effort") => Some(ReasoningField::ReasoningEffort),
                () if takes("thinking_block") => Some(ReasoningField::Thinking),
                () => None,
            },
            sampling: !refuses("sampling"),
            forced_tools: !refuses("forced_tools"),
            strict_schema: takes("strict_schema"),
            system_within: takes("system_within"),
            block_binding: takes("block_binding"),
        }
    }

    /// The effort that is sent: the nearest to that of `params` that it takes, or the same if it is not known what it takes.
    pub(crate) fn effort(&self, params: &Params) -> Option<Effort> {
        let efforts = self.efforts.unwrap_or(Efforts::ANY);
        params.effort.map(|asked| efforts.nearest(asked))
    }

    /// Whether it is known to reason, and does so with `params`.
    pub(crate) fn reasons(&self, params: &Params) -> bool {
        self.thinks == Some(true) && self.can_reason(params)
    }

    /// Whether it may reason with `params`: it is not known not to, and not known to obey `params` that switch that off.
    pub(crate) fn can_reason(&self, params: &Params) -> bool {
        let ends = |efforts: Efforts| params.effort == Some(Effort::None) && efforts.has(Effort::None);
        match self.thinks {
            Some(true) => !self.efforts.is_some_and(ends),
            Some(false) => false,
            None => true,
        }
    }

    /// The names of those of `params` that the model does not accept, whatever the API.
    pub(crate) fn refused(&self, params: &Params) -> Vec<&'static str> {
        let forced = matches!(params.tool_choice, Some(ToolChoice::Any | ToolChoice::Tool(_)));
        let is_refused = |name: &&str| match *name {
            "temperature" | "top_p" | "top_k" => !self.sampling,
            "effort" | "thinking" => self.thinking == ThinkingForm::None,
            "tool_choice" => forced && !self.forced_tools,
            _ => false,
        };
        params.names().into_iter().filter(is_refused).collect()
    }

    /// The form of a reply that an API with the schemas of Claude does not enforce, and why.
    pub(crate) fn unenforced(&self, params: &Params) -> Option<(Capability, String)> {
        match &params.schema {
            Some(_) if !self.strict_schema => {
                Some((Capability::Schema, "the model enforces no JSON Schema".to_owned()))
            }
            Some(schema) => {
                let why = enforced(schema).err()?;
                Some((Capability::Schema, format!("the API cannot enforce the JSON Schema: {why}")))
            }
            None if params.json => {
                Some((Capability::Json, "the API has no field for JSON without a schema".to_owned()))
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(model: &str) -> Accepts {
        Accepts::of(&KnownModel::find("anthropic", model).unwrap())
    }

    #[test]
    fn the_table_of_models_has_reasoning_and_refused_parameters() {
        let (old, new) = (accepts("claude-sonnet-4-5-20250929"), accepts("claude-sonnet-5-5"));
        assert_eq!((old.thinking, old.efforts, old.sampling), (ThinkingForm::Budget, None, true));
        assert_eq!(new.thinking, ThinkingForm::Adaptive);
        assert!(new.efforts.is_some_and(|efforts| efforts.has(Effort::Max) && !efforts.has(Effort::None)));
        assert_eq!((new.sampling, new.forced_tools, new.no_thinking), (false, false, false));
        assert_eq!((new.cache_min, new.max_output), (Some(512), Some(128_000)));
        let params = Params {
            temperature: Some(0.5),
            tool_choice: Some(ToolChoice::Any),
            effort: Some(Effort::Low),
            ..Params::default()
        };
        assert_eq!(new.refused(&params), ["temperature", "tool_choice"]);
        assert_eq!(old.refused(&params), [""; 0]);
        let auto = Params { tool_choice: Some(ToolChoice::Auto), ..params };
        assert_eq!(new.refused(&auto), ["temperature"]);
    }
}
