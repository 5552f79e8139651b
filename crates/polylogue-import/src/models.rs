//! Models: their names, parameters and endpoints.

use polylogue_models::{Config, Env, Provider};
use polylogue_team::secret::{is_secret_header, is_secret_name, looks_like_key};
use serde_json::{Map, Value};

use crate::cursor::{At, Fields};
use crate::draft::{Draft, legal};
use crate::report::{CODE, Result, UNCACHED};
use crate::yaml::{Entries, Yaml};

const KEY_IN_ADDRESS: &str = "left out: there is a key in the address";

/// A model in the notation of team files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    /// As `provider:model`; `None` if its provider is unknown.
    pub(crate) name: Option<String>,
    /// The models that are asked when it fails, in order.
    pub(crate) fallbacks: Vec<String>,
    /// Its parameters.
    pub(crate) parameters: Entries,
}

impl Model {
    /// The entries of an agent or selector with this model.
    pub(crate) fn entries(self) -> Entries {
        let model = self.name.map(|name| match self.fallbacks.as_slice() {
            [] => ("model".to_owned(), Yaml::Text(name)),
            others => ("model".to_owned(), Yaml::texts(std::iter::once(&name).chain(others))),
        });
        let parameters = Some(self.parameters).filter(|entries| !entries.is_empty());
        model
            .into_iter()
            .chain(parameters.map(|entries| ("parameters".to_owned(), Yaml::Map(entries))))
            .collect()
    }
}

/// The model of a model client's component.
pub(crate) fn of_client(at: &At<'_>, draft: &mut Draft) -> Result<Model> {
    let mut component = at.fields()?;
    let class = component.class()?;
    let mut config = match component.take("config") {
        Some(config) => config.fields()?,
        None => return at.wrong("`config` is missing"),
    };
    let service = match class.as_str() {
        "OpenAIChatCompletionClient" => Service::Known("openai"),
        "AzureOpenAIChatCompletionClient" => Service::Azure,
        "OllamaChatCompletionClient" => Service::Known("ollama"),
        "AnthropicChatCompletionClient" => Service::Known("anthropic"),
        _ => {
            draft.note(&at.path, format!("`{class}` is unknown: name a model, or give one with `--model`"));
            return Ok(Model::default());
        }
    };
    for key in ["model_info", "model_capabilities"] {
        config.cannot(
            key,
            "left out: capabilities are probed on first use; `capabilities` of an endpoint sets them",
            draft,
        );
    }
    let what = "left out: `view.names` decides whether names precede messages";
    config.cannot("add_name_prefixes", what, draft);
    config.unusual("include_name_in_message", true, what, draft);
    let what = "left out: `parameters.extra` gives further fields to a provider";
    for key in ["stream_options", "user", "n", "organization", "token_model"] {
        config.cannot(key, what, draft);
    }
    config.unusual("parallel_tool_calls", true, what, draft);
    config.ignore(&["azure_ad_token"]);
    component.rest(draft);
    model(service, config, draft)
}

/// The model of an entry of a `config_list`, with what `llm_config` says for all of them.
pub(crate) fn of_entry(mut entry: Fields<'_>, draft: &mut Draft) -> Result<Model> {
    let kind =
        entry.take("api_type").map(|at| at.text()).transpose()?.unwrap_or("openai").to_ascii_lowercase();
    let service = match kind.as_str() {
        "openai" | "open_ai" => Service::Known("openai"),
        "azure" => Service::Azure,
        "google" => Service::Known("gemini"),
        other => match Provider::find(other) {
            Some(provider) => Service::Known(provider.name()),
            None => {
                let what = format!("`{other}` is unknown: name a model, or give one with `--model`");
                draft.note(&entry.at.path, what);
                return Ok(Model::default());
            }
        },
    };
    let price = entry.take("price");
    entry.cannot("tags", "left out: a team file does not select models by tags", draft);
    entry.cannot("cache_seed", UNCACHED, draft);
    entry.cannot("model_client_cls", CODE, draft);
    entry.ignore(&["base_api_key"]);
    let model = model(service, entry, draft)?;
    match (&model.name, price) {
        (Some(name), Some(price)) => add_price(name, &price, draft)?,
        (None, Some(price)) => draft.note(&price.path, "left out: a price is that of a named model"),
        (_, None) => {}
    }
    Ok(model)
}

/// Adds a price: AutoGen's is in dollars per thousand tokens, that of a team file per million.
fn add_price(model: &str, at: &At<'_>, draft: &mut Draft) -> Result<()> {
    let items = at.items()?;
    let [input, output] = items.as_slice() else { return at.wrong("a price is of two numbers") };
    let dollars = |at: &At<'_>| Ok(Yaml::plain((at.number()? * 1e9).round() / 1e6));
    let price =
        Yaml::Map(vec![("input".to_owned(), dollars(input)?), ("output".to_owned(), dollars(output)?)]);
    match draft.prices.iter().find(|(known, _)| known == model).map(|(_, known)| *known == price) {
        None => draft.prices.push((model.to_owned(), price)),
        Some(true) => {}
        Some(false) => {
            draft.note(&at.path, "left out: a model has one price in a team file: the first is taken")
        }
    }
    Ok(())
}

/// The provider of a model.
enum Service {
    Known(&'static str),
    Azure,
}

fn model(service: Service, mut config: Fields<'_>, draft: &mut Draft) -> Result<Model> {
    let name = config.text("model")?;
    let deployment = config.text("azure_deployment")?;
    // The key itself is dropped; its variable says whether there is one.
    let has_key = config.take("api_key").is_some();
    config.ignore(&["api_key"]);
    config.cannot("azure_ad_token_provider", CODE, draft);
    let url = config.first(&["base_url", "api_base", "host", "client_host", "azure_endpoint"]);
    let provider = match (service, url) {
        (Service::Azure, Some(url)) => azure(&url, &mut config, draft)?,
        (Service::Azure, None) => return config.at.wrong("`azure_endpoint` is missing"),
        (Service::Known(known), Some(url)) => reached(known, &url, has_key, draft)?,
        (Service::Known(known), None) => known.to_owned(),
    };
    let name = deployment.or(name);
    if let Some(variable) = key_variable(&provider, has_key).filter(|_| has_key || name.is_some()) {
        draft.variable(variable);
    }
    if name.is_none() {
        draft.note(&config.at.path, "no model is named: `--model` gives one");
    }
    let parameters = parameters(&mut config, draft)?;
    reach(&provider, &mut config, draft)?;
    config.rest(draft);
    Ok(Model { name: name.map(|name| format!("{provider}:{name}")), parameters, ..Model::default() })
}

/// The environment variable with the key of a known provider.
fn key_variable(provider: &str, has_key: bool) -> Option<&'static str> {
    let provider = Provider::find(provider).filter(|provider| has_key || !provider.is_local())?;
    provider.key_variables().first().copied().filter(|_| !provider.is_local())
}

fn azure(url: &At<'_>, config: &mut Fields<'_>, draft: &mut Draft) -> Result<String> {
    if let Some(version) = config.take("api_version") {
        draft.note(&version.path, "left out: the address `/openai/v1` needs no version");
    }
    if looks_like_key(url.text()?) {
        draft.note(&url.path, KEY_IN_ADDRESS);
        return Ok("azure".to_owned());
    }
    let address = format!("{}/openai/v1", url.text()?.trim_end_matches('/').trim_end_matches("/openai/v1"));
    Ok(endpoint("azure", &address, Some("AZURE_OPENAI_API_KEY"), &url.path, draft))
}

/// The provider at an address: `known`, another known one, or a custom endpoint.
fn reached(known: &str, url: &At<'_>, has_key: bool, draft: &mut Draft) -> Result<String> {
    let mut address = url.text()?.trim().trim_end_matches('/').to_owned();
    if known == "ollama" {
        address = Config::ollama(&address).base_url;
    }
    let env = Env::of::<&str, &str>([]);
    let same = |provider: &&Provider| provider.config(&env).is_ok_and(|config| config.base_url == address);
    if let Some(provider) = Provider::all().iter().find(same) {
        return Ok(provider.name().to_owned());
    }
    if looks_like_key(&address) {
        draft.note(&url.path, KEY_IN_ADDRESS);
        return Ok(known.to_owned());
    }
    if known == "ollama" {
        return Ok(endpoint("ollama", &address, None, &url.path, draft));
    }
    let name = legal(&host(&address).replace(['.', ':'], "_")).to_ascii_lowercase();
    let variable = format!("{}_API_KEY", name.to_ascii_uppercase().replace('-', "_"));
    let is_keyless = !has_key && ["localhost", "127_0_0_1"].iter().any(|own| name.contains(own));
    Ok(endpoint(&name, &address, (!is_keyless).then_some(&*variable), &url.path, draft))
}

fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}

/// Adds an endpoint. Returns its name.
fn endpoint(name: &str, address: &str, variable: Option<&str>, path: &str, draft: &mut Draft) -> String {
    let base = ("base_url".to_owned(), Yaml::text(address));
    let mut entries = vec![base.clone()];
    entries.extend(variable.map(|variable| ("key".to_owned(), Yaml::text(variable))));
    if let Some(variable) = variable {
        draft.variable(variable);
    }
    let known = draft.endpoints.iter().find(|(known, _)| known == name).map(|(_, is)| is.clone());
    match known {
        None => draft.endpoints.push((name.to_owned(), Yaml::Map(entries))),
        Some(Yaml::Map(is)) if is.contains(&base) => {}
        Some(_) => draft.note(path, format!("`{name}` has one address in a team file: the first is taken")),
    }
    name.to_owned()
}

/// Adds the settings of an endpoint other than its address.
fn reach(provider: &str, config: &mut Fields<'_>, draft: &mut Draft) -> Result<()> {
    let mut settings: Entries = Vec::new();
    if let Some(at) = config.first(&["timeout", "request_timeout"]) {
        match at.value.as_f64() {
            Some(seconds) => {
                settings.push(("timeouts".into(), Yaml::one("total", Yaml::text(format!("{seconds} s")))));
            }
            None => draft.note(&at.path, "not converted: see `timeouts` of endpoints"),
        }
    }
    if let Some(retries) = config.count("max_retries")? {
        settings.push(("retries".into(), Yaml::plain(retries)));
    }
    if let Some(rate) = config.take("api_rate_limit") {
        let per_minute = (rate.number()? * 60.0).ceil().max(1.0);
        settings.push(("per_minute".into(), Yaml::plain(per_minute)));
    }
    if let Some(headers) = config.first(&["default_headers", "extra_headers", "headers"]) {
        settings.push(("headers".into(), Yaml::Map(secret_free(&headers, draft)?)));
    }
    if settings.is_empty() {
        return Ok(());
    }
    if !draft.endpoints.iter().any(|(known, _)| known == provider) {
        draft.endpoints.push((provider.to_owned(), Yaml::Map(Vec::new())));
    }
    let mut differs = false;
    for (_, entry) in draft.endpoints.iter_mut().filter(|(known, _)| known == provider) {
        let Yaml::Map(is) = entry else { continue };
        for (key, value) in settings.drain(..) {
            match is.iter().find(|(known, _)| *known == key) {
                None => is.push((key, value)),
                Some((_, known)) => differs |= *known != value,
            }
        }
    }
    if differs {
        let what = format!("`{provider}` is reached in one way in a team file: the first is taken");
        draft.note(&config.at.path, what);
    }
    Ok(())
}

/// Headers. Secret values become names of environment variables.
fn secret_free(headers: &At<'_>, draft: &mut Draft) -> Result<Entries> {
    let mut entries = Vec::new();
    for (name, at) in headers.entries()? {
        let text = at.text()?;
        let is_secret = is_secret_header(name) || looks_like_key(text);
        let value = if is_secret {
            let variable: String = name
                .to_ascii_uppercase()
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
                .collect();
            draft.variable(&variable);
            Yaml::one("env", Yaml::text(variable))
        } else {
            Yaml::text(text)
        };
        entries.push((name.to_owned(), value));
    }
    Ok(entries)
}

/// The parameters of a model.
fn parameters(config: &mut Fields<'_>, draft: &mut Draft) -> Result<Entries> {
    let mut entries: Entries = Vec::new();
    let mut extra = Map::new();
    for (key, names) in [
        ("temperature", &["temperature"][..]),
        ("top_p", &["top_p"]),
        ("top_k", &["top_k"]),
        ("seed", &["seed"]),
        ("max_tokens", &["max_tokens", "max_completion_tokens"]),
    ] {
        if let Some(at) = config.first(names) {
            at.number()?;
            entries.push((key.into(), Yaml::Json(at.value.clone())));
        }
    }
    if let Some(stop) = config.take("stop") {
        entries.push(("stop".into(), Yaml::texts(stop.texts()?)));
    }
    for key in ["frequency_penalty", "presence_penalty", "logit_bias", "reasoning_effort"] {
        extra.extend(config.take(key).map(|at| (key.to_owned(), at.value.clone())));
    }
    if let Some(body) = config.take("extra_body") {
        extra.extend(body.entries()?.into_iter().map(|(key, at)| (key.to_owned(), at.value.clone())));
    }
    if let Some(format) = config.take("response_format") {
        match format.value.pointer("/json_schema/schema") {
            Some(schema) => {
                entries.push(("schema".into(), Yaml::Json(schema.clone())));
                format_details(&format, draft)?;
            }
            None if format.value.is_object() => {
                extra.insert("response_format".into(), format.value.clone());
            }
            None => draft.note(&format.path, "not converted: give the JSON Schema as `schema`"),
        }
    }
    if let Some(options) = config.take("options") {
        local_options(options.fields()?, &mut entries, &mut extra, draft);
    }
    leave_out_keys(&mut extra, &config.at.path, draft);
    if !extra.is_empty() {
        entries.push(("extra".into(), Yaml::Json(Value::Object(extra))));
    }
    Ok(entries)
}

/// Removes the further fields of requests that hold an API key.
fn leave_out_keys(extra: &mut Map<String, Value>, path: &str, draft: &mut Draft) {
    extra.retain(|name, value| {
        let is_secret = holds_key(name, value);
        if is_secret {
            draft.note(path, format!("`{name}` is left out: it holds what may be a key"));
        }
        !is_secret
    });
}

/// Whether a field called `name` holds what may be a key, by its name or by its form.
fn holds_key(name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => is_secret_name(name) && !text.is_empty() || looks_like_key(text),
        Value::Array(items) => items.iter().any(|item| holds_key(name, item)),
        Value::Object(fields) => fields.iter().any(|(name, value)| holds_key(name, value)),
        _ => false,
    }
}

/// Notes what a `response_format` says besides its JSON Schema.
fn format_details(format: &At<'_>, draft: &mut Draft) -> Result<()> {
    let mut fields = format.fields()?;
    fields.ignore(&["type"]);
    let mut schema = fields.need("json_schema")?.fields()?;
    schema.ignore(&["name", "schema"]);
    schema.cannot("description", "left out: a JSON Schema describes itself", draft);
    schema.unusual("strict", true, "left out: a JSON Schema is strict where it can be", draft);
    schema.rest(draft);
    fields.rest(draft);
    Ok(())
}

/// The `options` of a local server.
fn local_options(
    mut options: Fields<'_>,
    entries: &mut Entries,
    extra: &mut Map<String, Value>,
    draft: &mut Draft,
) {
    for (theirs, ours) in [
        ("temperature", "temperature"),
        ("top_p", "top_p"),
        ("top_k", "top_k"),
        ("seed", "seed"),
        ("num_predict", "max_tokens"),
    ] {
        match options.take(theirs) {
            Some(at) if entries.iter().any(|(key, _)| key == ours) => {
                draft.note(&at.path, format!("left out: `{ours}` stands next to the options, too"));
            }
            Some(at) => entries.push((ours.into(), Yaml::Json(at.value.clone()))),
            None => {}
        }
    }
    let rest = options.left();
    if !rest.is_empty() {
        extra.insert("options".into(), Value::Object(rest));
    }
}
