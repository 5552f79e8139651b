//! What an endpoint is sent of reasoning and of parameters.

use polylogue_config::Config;
use polylogue_models::SendReasoning;

/// Reasoning that is sent back to the model that wrote it.
#[derive(Config)]
#[config(name = "SendReasoning", for = SendReasoning)]
pub(super) enum SendReasoningWord {
    /// None.
    Never,
    /// That of the same model.
    Always,
    /// That of the same model, and a space with every other message of the agent, for servers that refuse a history without.
    AlwaysOrBlank,
}

/// Parameter of a request that a model may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub enum OptionalParameter {
    /// `temperature`.
    Temperature,
    /// `top_p`.
    TopP,
    /// `top_k`.
    TopK,
    /// `seed`.
    Seed,
    /// `stop`. Replies are cut at stop sequences in any case.
    Stop,
    /// `effort`.
    Effort,
    /// `thinking`.
    Thinking,
    /// `tool_choice`.
    ToolChoice,
    /// `parallel_tool_calls`.
    ParallelToolCalls,
    /// `prompt_cache`.
    PromptCache,
}

impl OptionalParameter {
    /// Returns the name in `parameters`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::TopK => "top_k",
            Self::Seed => "seed",
            Self::Stop => "stop",
            Self::Effort => "effort",
            Self::Thinking => "thinking",
            Self::ToolChoice => "tool_choice",
            Self::ParallelToolCalls => "parallel_tool_calls",
            Self::PromptCache => "prompt_cache",
        }
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{CacheLifetime, Effort, Params, Thinking, ToolChoice};
    use polylogue_models::Env;

    use super::super::Endpoint;
    use super::*;

    #[test]
    fn every_parameter_that_models_may_refuse_can_be_left_out() {
        let all = Params {
            temperature: Some(0.5),
            top_p: Some(0.5),
            top_k: Some(4),
            seed: Some(7),
            stop: vec!["x".into()],
            effort: Some(Effort::Low),
            thinking: Some(Thinking::Hidden),
            tool_choice: Some(ToolChoice::Any),
            parallel_tool_calls: Some(false),
            prompt_cache: Some(CacheLifetime::Hour),
            ..Params::default()
        };
        let names = all.names();
        let list = serde_json::to_string(&names).unwrap();
        let text = format!(r#"{{"base_url": "http://h/v1", "drop_parameters": {list}}}"#);
        let endpoint: Endpoint = crate::text::read(&text);
        let config = endpoint.config("house", &Env::of([("", "")])).unwrap();
        assert_eq!(config.drop_parameters, names);
        assert_eq!(all.without(&config.drop_parameters), Params::default());
    }

    #[test]
    fn the_reasoning_that_an_endpoint_expects_can_be_declared() {
        let of = |name: &str, word: &str| {
            let text = format!(r#"{{"base_url": "http://h/v1", "send_reasoning": "{word}"}}"#);
            crate::text::read::<Endpoint>(&text).config(name, &Env::of([("", "")])).unwrap().reasoning
        };
        for (word, expected) in [
            ("never", SendReasoning::Never),
            ("always", SendReasoning::Always),
            ("always_or_blank", SendReasoning::AlwaysOrBlank),
        ] {
            assert_eq!([of("house", word), of("deepseek", word)], [expected; 2], "{word}");
        }
        let usual: Endpoint = crate::text::read(r#"{"base_url": "http://h/v1"}"#);
        let config = |name| usual.config(name, &Env::of([("", "")])).unwrap();
        assert_eq!(config("house").reasoning, SendReasoning::Never);
        assert_eq!(config("deepseek").reasoning, SendReasoning::AlwaysOrBlank);
    }
}
