use polylogue_core::Model;

use super::*;
use crate::spec::ELSEWHERE;
use crate::{Endpoint, Models, provider_elsewhere};

fn base_url(name: &str, vars: &[(&str, &str)]) -> String {
    Provider::find(name).unwrap().config(&Env::of(vars.iter().copied())).unwrap().base_url
}

#[test]
fn every_provider_has_an_address_that_can_be_used() {
    for provider in Provider::all() {
        let address = "http://127.0.0.1:1/v1";
        let env = Env::of([
            ("OPENAI_BASE_URL", address),
            ("AZURE_OPENAI_ENDPOINT", address),
            ("ANTHROPIC_FOUNDRY_BASE_URL", address),
            ("AWS_REGION", "us-east-1"),
            ("GOOGLE_CLOUD_PROJECT", "acme"),
            ("GOOGLE_CLOUD_LOCATION", "global"),
        ]);
        let config = provider.config(&env).unwrap();
        // Requests to Bedrock are signed without a key.
        assert_eq!(
            config.needs_key,
            provider.locality == Remote
                && !provider.name.starts_with("openai")
                && provider.amazon().is_none(),
            "{}",
            provider.name
        );
        let endpoint = Endpoint::new(config).unwrap();
        assert_eq!(endpoint.model("m").name(), format!("{}:m", provider.name));
    }
    let error = Provider::find("compatible").unwrap().config(&Env::default()).unwrap_err();
    assert!(error.message.contains("`OPENAI_BASE_URL` is not set"), "{error}");
}

#[test]
fn the_environment_gives_addresses_and_keys() {
    assert_eq!(base_url("openai", &[]), "https://api.openai.com/v1");
    assert_eq!(base_url("openai", &[("OPENAI_BASE_URL", "http://x/v1")]), "http://x/v1");
    let provider = Provider::find("gemini").unwrap();
    let env = Env::of([("GOOGLE_API_KEY", "key-from-google"), ("GEMINI_API_KEY", " ")]);
    let config = provider.config(&env).unwrap();
    assert_eq!(config.key, Key::new("key-from-google"));
    assert_eq!(config.key_variables, ["GOOGLE_API_KEY"]);
    let config = provider.config(&Env::default()).unwrap();
    assert_eq!((config.key, config.key_variables.len()), (None, 2));
}

#[test]
fn providers_with_an_address_and_a_key_alone_have_the_models_of_the_table() {
    for (name, address, variable, model) in [
        ("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", "qwen3p8-max"),
        ("deepinfra", "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY", "zai-org/GLM-5.2"),
        ("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "gpt-oss-120b"),
        ("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-k3"),
        ("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm-4.5"),
        ("nebius", "https://api.tokenfactory.nebius.com/v1", "NEBIUS_API_KEY", "zai-org/GLM-5.3"),
        ("sambanova", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY", "gpt-oss-120b"),
    ] {
        let env = Env::of([(variable, "sk-x")]);
        let config = Provider::find(name).unwrap().config(&env).unwrap();
        assert_eq!((&*config.base_url, config.api), (address, Api::ChatCompletions), "{name}");
        assert_eq!((config.key, config.key_variables), (Key::new("sk-x"), vec![variable.to_owned()]));
        let model = Models::new(env).model(&format!("{name}:{model}")).unwrap();
        assert!(model.price().is_some() && model.context_window().is_some(), "{}", model.name());
    }
}

#[test]
fn gemini_is_asked_by_its_own_api_unless_the_address_is_that_of_the_compatible_one() {
    let at = |url: &str| {
        let config = Provider::find("gemini").unwrap().config(&Env::of([("GEMINI_BASE_URL", url)])).unwrap();
        (config.api, config.base_url)
    };
    let own = "https://generativelanguage.googleapis.com/v1beta";
    assert_eq!(base_url("gemini", &[]), own);
    assert_eq!(at("https://proxy.example"), (Api::Gemini, "https://proxy.example".to_owned()));
    let compatible = format!("{own}/openai/");
    assert_eq!(at(&compatible), (Api::ChatCompletions, compatible));
}

#[test]
fn the_host_of_ollama_is_understood_in_every_form() {
    for (host, root) in [
        ("127.0.0.1:1234", "http://127.0.0.1:1234"),
        ("gpu", "http://gpu:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":9999", "http://127.0.0.1:9999"),
        ("http://gpu:1/", "http://gpu:1"),
        ("https://gpu.example.com", "https://gpu.example.com"),
        ("[::1]:5", "http://[::1]:5"),
        ("[::]", "http://127.0.0.1:11434"),
        ("https://gpu.example.com/ollama/v1", "https://gpu.example.com/ollama"),
    ] {
        assert_eq!(base_url("ollama", &[("OLLAMA_HOST", host)]), root, "{host}");
        assert_eq!(base_url("ollama-openai", &[("OLLAMA_HOST", host)]), format!("{root}/v1"), "{host}");
    }
}

#[test]
fn names_are_split_at_the_provider_and_the_model_keeps_its_own_marks() {
    let models = Models::new(Env::default());
    for (spec, name) in [
        ("openai:gpt-4o", "openai:gpt-4o"),
        ("openai/gpt-4o", "openai:gpt-4o"),
        ("OpenAI:gpt-4o", "openai:gpt-4o"),
        ("ollama:llama3.2:3b", "ollama:llama3.2:3b"),
        ("ollama/llama3.2:3b", "ollama:llama3.2:3b"),
        ("openrouter/meta-llama/llama-3:free", "openrouter:meta-llama/llama-3:free"),
        (" vllm: Qwen/Qwen3-8B ", "vllm:Qwen/Qwen3-8B"),
    ] {
        assert_eq!(models.model(spec).unwrap().name(), name);
    }
}

#[test]
fn wrong_names_are_refused_with_what_may_have_been_meant() {
    let models = Models::new(Env::default());
    for (spec, message, hint) in [
        ("opnai:gpt-4o", "there is no provider `opnai`", "did you mean `openai:gpt-4o`?"),
        ("litellm:big", "there is no provider `litellm`", "`endpoints: {litellm: {base_url: ...}}`"),
        ("litellm:big", "there is no provider `litellm`", "`OPENAI_BASE_URL` for `compatible:big`"),
        (":big", "there is no provider ``", "known providers: openai, ollama, "),
        ("llama3.2:3b", "there is no provider `llama3.2`", "write `ollama:llama3.2:3b`"),
        (
            "perplexity:sonar",
            "there is no provider `perplexity`",
            "in a team file: `endpoints: {perplexity: {base_url: ...}}`",
        ),
        ("google:gemini-2.5-pro", "there is no provider `google`", "did you mean `gemini:gemini-2.5-pro`?"),
        ("Azure-OpenAI:prod", "there is no provider `Azure-OpenAI`", "did you mean `azure:prod`?"),
        ("http://10.0.0.5:8000/v1", "there is no provider `http`", "`endpoints: {house: {base_url: ...}}`"),
        ("gpt-4o-mini", "has no provider", "write `openai:gpt-4o-mini`"),
        ("whatever", "has no provider", "known providers: openai, ollama, "),
        ("openai:", "without a model", "write `openai:`"),
        ("", "has no provider", "write `provider:model`"),
        ("compatible:m", "`OPENAI_BASE_URL` is not set", "base URL"),
    ] {
        let error = models.model(spec).unwrap_err();
        assert!(error.message.contains(message), "{spec}: {error}");
        assert!(error.hint.as_ref().unwrap().contains(hint), "{spec}: {:?}", error.hint);
        assert_eq!(error.kind, ModelErrorKind::Config);
    }
}

#[test]
fn names_of_other_systems_are_none_of_providers_here_and_lead_to_one() {
    for (other, own) in ELSEWHERE {
        assert!(Provider::find(other).is_none() && Provider::find(own).is_some(), "{other}: {own}");
        assert_eq!(provider_elsewhere(other), Some(own));
    }
}

#[test]
fn providers_of_ones_own_are_found_and_replace_known_ones() {
    let models = Models::new(Env::default());
    let house = Config { provider: "house".into(), ..Config::new("http://127.0.0.1:1/v1") };
    models.define(house).unwrap();
    assert_eq!(models.model("house:m").unwrap().name(), "house:m");
    let error = models.model("hous:m").unwrap_err();
    assert!(error.hint.unwrap().contains("did you mean `house:m`?"));
    let config = models.config("groq").unwrap();
    assert_eq!(config.base_url, "https://api.groq.com/openai/v1");
    models.define(Config { base_url: "http://127.0.0.1:2/v1".into(), ..config }).unwrap();
    let debug = format!("{:?}", models.model("groq:m").unwrap());
    assert!(debug.contains("http://127.0.0.1:2/v1"), "{debug}");
    assert!(models.config("unknown").is_err());
}

#[test]
fn addresses_that_cannot_be_used_are_refused() {
    for bad in ["", "127.0.0.1:8000/v1", "ftp://x/v1", "http://"] {
        let error = Endpoint::new(Config::new(bad)).unwrap_err();
        assert!(error.message.contains("base URL"), "{bad}: {error}");
    }
    let config = Config { key: Key::new("sk-two\nlines"), ..Config::new("http://127.0.0.1:1/v1") };
    let error = Endpoint::new(config).unwrap_err();
    assert!(error.message.contains("the key has characters") && !error.message.contains("two"), "{error}");
}
