//! The protocol of each API: the only place that names them all.

/// Evaluates an expression with the protocol of an API as a type: `with_protocol!(api, P => P::NO_FIELD)`.
macro_rules! with_protocol {
    ($api:expr, $P:ident => $with:expr) => {
        match $api {
            $crate::api::Api::ChatCompletions => {
                type $P = $crate::openai::ChatCompletions;
                $with
            }
            $crate::api::Api::Responses => {
                type $P = $crate::responses::Responses;
                $with
            }
            $crate::api::Api::Gemini => {
                type $P = $crate::gemini::Gemini;
                $with
            }
            $crate::api::Api::Ollama => {
                type $P = $crate::ollama::Ollama;
                $with
            }
            $crate::api::Api::Messages => {
                type $P = $crate::anthropic::Messages;
                $with
            }
            $crate::api::Api::Converse => {
                type $P = $crate::bedrock::Converse;
                $with
            }
        }
    };
}

pub(crate) use with_protocol;
