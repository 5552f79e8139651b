//! Names of models as users write them, such as `openai:gpt-4o-mini`.

use polylogue_core::{ModelError, ModelErrorKind};

use crate::catalog::KnownModel;
use crate::prices::list_price;
use crate::provider::Provider;

/// Returns the names of models in `list`, which has commas between them.
///
/// ```
/// use polylogue_models::model_names;
/// assert_eq!(model_names("openai:gpt-4o, ollama:llama3.2").collect::<Vec<_>>(), ["openai:gpt-4o", "ollama:llama3.2"]);
/// ```
pub fn model_names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Splits `provider:model` or `provider/model` into a known provider and a model name.
///
/// # Errors
/// When the provider is missing or unknown; the error has a suggestion.
pub(crate) fn parse_spec<'a>(
    spec: &'a str,
    is_known: impl Fn(&str) -> bool,
    names: &[&str],
) -> Result<(&'a str, &'a str), ModelError> {
    let fail = |message: String, hint: String| {
        Err(ModelError::new(ModelErrorKind::Config, spec, message).hint(hint))
    };
    let list = || format!("known providers: {}", names.join(", "));
    let Some((name, model)) = spec.trim().split_once([':', '/']) else {
        let hint = match known_provider(spec) {
            Some(provider) => format!("write `{provider}:{spec}`"),
            None => format!("write `provider:model`, such as `openai:gpt-4o-mini`; {}", list()),
        };
        return fail("the model's name has no provider".to_owned(), hint);
    };
    if !is_known(name) {
        let hint = match provider_elsewhere(name).or_else(|| closest(name, names)) {
            Some(close) => format!("did you mean `{close}:{model}`?"),
            None if model.starts_with("//") => ADDRESS_HINT.to_owned(),
            None if name.trim().is_empty() => list(),
            // The table knows its models, but not where they are.
            None if KnownModel::of(name).next().is_some() => {
                format!("name its address in a team file: `endpoints: {{{name}: {{base_url: ...}}}}`")
            }
            None => format!(
                "for a model of Ollama write `ollama:{spec}`; another server needs an address in a team file, `endpoints: {{{name}: {{base_url: ...}}}}`, or in `OPENAI_BASE_URL` for `compatible:{model}`; {}",
                list()
            ),
        };
        return fail(format!("there is no provider `{name}`"), hint);
    }
    if model.trim().is_empty() {
        return fail(
            format!("`{name}` is a provider without a model"),
            format!("write `{name}:` and the model's name"),
        );
    }
    Ok((name, model.trim()))
}

/// Checks that `spec` is written `provider:model` or `provider/model`. The provider can be an endpoint that only a team knows.
///
/// # Errors
/// When there is no provider or no model; the error has a suggestion.
///
/// ```
/// use polylogue_models::check_model_name;
/// assert!(check_model_name("house:mine").is_ok());
/// assert_eq!(check_model_name("gpt-4o").unwrap_err().hint.as_deref(), Some("write `openai:gpt-4o`"));
/// ```
pub fn check_model_name(spec: &str) -> Result<(), ModelError> {
    let names: Vec<&str> = Provider::all().iter().map(Provider::name).collect();
    parse_spec(spec, |_| true, &names).map(drop)
}

/// Returns the path of a model that is computed in this process, which is written `local:PATH`, with `local` in any letters as the names of
/// providers are.
///
/// ```
/// use polylogue_models::local_file;
/// assert_eq!(local_file("Local: models/a.gguf"), Some("models/a.gguf"));
/// assert_eq!(local_file("ollama:a.gguf"), None);
/// ```
pub fn local_file(model: &str) -> Option<&str> {
    let (provider, path) = model.split_once(':')?;
    provider.trim().eq_ignore_ascii_case("local").then(|| path.trim())
}

/// Returns the first provider whose price list has `model`: the one that a name without a provider probably means.
///
/// ```
/// use polylogue_models::known_provider;
/// assert_eq!(known_provider("gpt-4o"), Some("openai"));
/// assert_eq!(known_provider("mine"), None);
/// ```
pub fn known_provider(model: &str) -> Option<&'static str> {
    let listed = |provider: &&Provider| !provider.is_local() && list_price(provider.name(), model).is_some();
    Provider::all().iter().find(listed).map(Provider::name)
}

/// What to do with an address instead of a name.
const ADDRESS_HINT: &str =
    "name the address in a team file, as in `endpoints: {house: {base_url: ...}}`, and write `house:MODEL`";

/// Names of providers in other systems (LangChain, LiteLLM, AutoGen and others), of their companies and models, and their names here.
pub(crate) const ELSEWHERE: [(&str, &str); 22] = [
    ("alibaba", "qwen"),
    ("amazon", "bedrock"),
    ("aws", "bedrock"),
    ("azure_ai", "azure"),
    ("azure_openai", "azure"),
    ("bedrock_converse", "bedrock"),
    ("chatgpt", "openai"),
    ("claude", "anthropic"),
    ("dashscope", "qwen"),
    ("fireworks_ai", "fireworks"),
    ("google", "gemini"),
    ("google_ai", "gemini"),
    ("google_genai", "gemini"),
    ("google_vertexai", "vertex"),
    ("gpt", "openai"),
    ("grok", "xai"),
    ("kimi", "moonshot"),
    ("microsoft", "azure"),
    ("mistral_ai", "mistral"),
    ("moonshotai", "moonshot"),
    ("together_ai", "together"),
    ("vertex_ai", "vertex"),
];

/// Returns the provider that other systems call `name`, such as `google` for `gemini`. It is only suggested: a name has one meaning.
///
/// ```
/// use polylogue_models::provider_elsewhere;
/// assert_eq!(provider_elsewhere("Google-GenAI"), Some("gemini"));
/// assert_eq!(provider_elsewhere("house"), None);
/// ```
pub fn provider_elsewhere(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    ELSEWHERE.iter().find(|(other, _)| *other == name).map(|(_, own)| *own)
}

/// The name that differs in the fewest letters, if they are few.
fn closest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let name: String = name.to_ascii_lowercase().chars().take(40).collect();
    let distances = names.iter().map(|other| (strsim::levenshtein(&name, other), *other));
    distances
        .min()
        .filter(|(distance, other)| *distance <= 2 && *distance * 2 < other.len())
        .map(|(_, other)| other)
}
