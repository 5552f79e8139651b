//! Which name leads to which API.

use polylogue_core::Model as _;
use polylogue_models::{Api, Env, Models, list_price};

/// OpenAI's models that reason are asked by this API, others by chat completions; each can be forced.
#[test]
fn the_table_decides_on_the_api_of_a_model() {
    let models = Models::new(Env::of([("OPENAI_API_KEY", "sk-x")]));
    for (name, api) in [
        ("openai:gpt-5", Api::Responses),
        ("openai:o3", Api::Responses),
        ("openai:o4-mini-2025-04-16", Api::Responses),
        ("openai:gpt-4o", Api::ChatCompletions),
        ("openai:gpt-5-chat-latest", Api::ChatCompletions),
        ("openai:a-model-of-tomorrow", Api::ChatCompletions),
        ("openai-chat:gpt-5", Api::ChatCompletions),
        ("openai-responses:gpt-4o", Api::Responses),
        ("groq:gpt-5", Api::ChatCompletions),
    ] {
        let model = models.model(name).unwrap();
        assert_eq!((model.api(), model.name()), (api, name));
    }
}

/// Other servers with OpenAI's API rarely have this one.
#[test]
fn another_address_keeps_chat_completions_unless_it_is_forced() {
    let env = [("OPENAI_API_KEY", "sk-x"), ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")];
    let models = Models::new(Env::of(env));
    assert_eq!(models.model("openai:gpt-5").unwrap().api(), Api::ChatCompletions);
    assert_eq!(models.model("openai-responses:gpt-5").unwrap().api(), Api::Responses);
}

#[test]
fn the_price_does_not_depend_on_the_api() {
    let models = Models::new(Env::of([("OPENAI_API_KEY", "sk-x")]));
    for name in ["openai:gpt-5", "openai-chat:gpt-5", "openai-responses:gpt-5"] {
        assert_eq!(models.model(name).unwrap().price(), list_price("openai", "gpt-5"), "{name}");
    }
}
