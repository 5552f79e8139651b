//! The models and the version of a server.

use bytes::Bytes;
use polylogue_core::{ModelError, ModelErrorKind, text};
use polylogue_http::header::CONTENT_TYPE;
use polylogue_http::{HeaderMap, Method};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::Endpoint;
use super::exchange::{Exchanged, Outgoing};
use super::read::{Stop, read_body};
use crate::api::Api;
use crate::cluster::Permit;
use crate::failure::{ErrorContext, Failure};
use crate::timeouts::{Clock, Limit};
use crate::wire::draft::{DecodeError, EXCERPT};

/// A model of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServedModel {
    /// The name of the model at the server.
    pub name: String,
    /// The size on disk in bytes, if the server reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The context window in tokens, if the server reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_input: Option<u64>,
    /// The most tokens of a reply, if the server reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// Whether the server says that it makes vectors of texts, and no replies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub embeds: bool,
}

/// The most pages of a list that are read. Most servers have all models in one, others up to 1,000 in each.
pub(super) const MAX_PAGES: usize = 20;

/// How many characters of the type of a reply are quoted that is not JSON.
const MAX_TYPE: usize = 60;

/// Where servers report the context window of a model: vLLM and SGLang; OpenRouter and Together; Groq; Mistral and LM Studio;
/// Anthropic; Gemini; llama.cpp, which tells the window of the training and, in newer versions, its own.
const MAX_INPUT: [&str; 8] = [
    "/max_model_len", "/context_length", "/context_window", "/max_context_length", "/max_input_tokens",
    "/inputTokenLimit", "/meta/n_ctx", "/meta/n_ctx_train",
];

/// Where servers report the most tokens of a reply: Groq; OpenRouter; Anthropic; Gemini.
const MAX_OUTPUT: [&str; 4] =
    ["/max_completion_tokens", "/top_provider/max_completion_tokens", "/max_tokens", "/outputTokenLimit"];

/// Where servers report what a model does, as a list of words: the place, and the words for replies and for vectors. Gemini; OpenRouter;
/// Cohere. A model with none of these words does something else.
const ABILITIES: [(&str, &str, &str); 3] = [
    ("/supportedGenerationMethods", "generateContent", "embedContent"),
    ("/architecture/output_modalities", "text", "embeddings"),
    ("/endpoints", "chat", "embed"),
];

/// Where servers report whether a model replies: Mistral; Fireworks.
const REPLIES: [&str; 2] = ["/capabilities/completion_chat", "/supports_chat"];

/// What a model is for, as far as its server reports that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Replies, or unknown.
    Replies,
    /// Vectors of texts.
    Vectors,
    /// Something else, such as pictures.
    Others,
}

impl Purpose {
    fn of(model: &Value) -> Self {
        let by_list = || {
            let mut lists = ABILITIES.iter();
            lists.find_map(|(place, replies, vectors)| by_words(model.pointer(place)?, replies, vectors))
        };
        let by_flag = || {
            let replies = REPLIES.iter().find_map(|place| model.pointer(place)?.as_bool())?;
            Some(match replies {
                true => Self::Replies,
                // Only its name tells more.
                false if ["id", "kind"].iter().any(|field| has_embed(model.get(field))) => Self::Vectors,
                false => Self::Others,
            })
        };
        let by_type = || match model.get("type")?.as_str()? {
            "embedding" | "embeddings" => Some(Self::Vectors),
            "image" | "audio" | "video" | "transcribe" | "moderation" | "rerank" => Some(Self::Others),
            _ => None,
        };
        by_list().or_else(by_flag).or_else(by_type).unwrap_or(Self::Replies)
    }

    /// The model called `name`, unless it is for something else.
    pub(super) fn served(self, name: &str) -> Option<ServedModel> {
        let served =
            ServedModel { name: name.to_owned(), embeds: self == Self::Vectors, ..ServedModel::default() };
        (self != Self::Others).then_some(served)
    }
}

/// What a model is for, by a list of words. `None` if it is none, or empty.
fn by_words(list: &Value, replies: &str, vectors: &str) -> Option<Purpose> {
    let words = list.as_array().filter(|words| !words.is_empty())?;
    let has = |word: &str| words.iter().any(|known| known == word);
    Some(match () {
        () if has(replies) => Purpose::Replies,
        () if has(vectors) => Purpose::Vectors,
        () => Purpose::Others,
    })
}

/// Whether a name is that of a model for vectors.
fn has_embed(name: Option<&Value>) -> bool {
    name.and_then(Value::as_str).is_some_and(|name| name.to_ascii_lowercase().contains("embed"))
}

impl ServedModel {
    /// The model of a list, whose name is the value of `id`. `None` if it is for neither replies nor vectors.
    fn read(model: &Value, id: &str) -> Option<Self> {
        // Cohere has another field than the API that its models are called by.
        let name = [id, "name"].iter().find_map(|field| model.get(field)?.as_str())?;
        let first = |places: &[&str]| {
            let mut told = places.iter().filter_map(|place| model.pointer(place)?.as_u64());
            told.find(|tokens| *tokens > 0)
        };
        Some(Self {
            bytes: model.get("size").and_then(Value::as_u64),
            max_input: first(&MAX_INPUT),
            max_output: first(&MAX_OUTPUT),
            ..Purpose::of(model).served(name.strip_prefix("models/").unwrap_or(name))?
        })
    }
}

/// The models of `page`: below `models` at Ollama and Google, below `data` at others, or alone, as Together has them.
fn listed(page: &Value) -> Option<&Vec<Value>> {
    page.as_array().or_else(|| page.get("models")?.as_array()).or_else(|| page.get("data")?.as_array())
}

/// The parameter of the query that asks for the page after `page`, if there is one, and its value: as Google has it, Cohere, and with the last
/// name on the page, which is the value of `id`, Anthropic and OpenAI.
fn next_page<'p>(page: &'p Value, api: Api, id: &str) -> Option<(&'static str, &'p str)> {
    let text = |field: &str| page.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let tokens = [("nextPageToken", "pageToken"), ("next_page_token", "page_token")];
    let by_token = tokens.into_iter().find_map(|(told, asked)| Some((asked, text(told)?)));
    let by_name = || {
        page.get("has_more")?.as_bool().filter(|has_more| *has_more)?;
        let last = || listed(page)?.last()?.get(id)?.as_str();
        let asked = if api == Api::Messages { "after_id" } else { "after" };
        // A page without a name is asked for again, until there are too many.
        Some((asked, text("last_id").or_else(last).unwrap_or_default()))
    };
    by_token.or_else(by_name)
}

/// `path` with another parameter in its query.
pub(super) fn with_parameter(path: &str, name: &str, value: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    let value: String = byte_serialize(value.as_bytes()).collect();
    format!("{path}{mark}{name}={value}")
}

impl Endpoint {
    /// Lists the models of the server that reply or make vectors of texts, as far as it says that, in its order. One request for each page,
    /// without retries, with the timeouts of a reply.
    ///
    /// # Errors
    /// When the server does not answer, or the answer is not a list of models, or a list without end.
    pub async fn models(&self) -> Result<Vec<ServedModel>, ModelError> {
        if self.api() == Api::Converse {
            return self.models_of_bedrock().await;
        }
        let (path, id) = self.api().http().models;
        if path.is_empty() {
            let why = "its API does not list models";
            return Err(ModelError::new(ModelErrorKind::Config, self.provider(), why));
        }
        let (mut models, mut target) = (Vec::new(), path.to_owned());
        for _ in 0..MAX_PAGES {
            let page: Value = self.get(&target).await?;
            let all = listed(&page).ok_or_else(|| self.unreadable("it is not a list of models"))?;
            models.extend(all.iter().filter_map(|model| ServedModel::read(model, id)));
            let Some((name, value)) = next_page(&page, self.api(), id) else { return Ok(models) };
            target = with_parameter(path, name, value);
        }
        Err(self.endless_list())
    }

    /// The error for a list that is not complete after all pages that are read.
    pub(super) fn endless_list(&self) -> ModelError {
        self.unreadable(&format!("the list of models does not end after {MAX_PAGES} pages"))
    }

    /// Asks for the version of an Ollama server; `None` for other APIs.
    ///
    /// # Errors
    /// When the server does not answer, or the answer is not a version.
    pub async fn version(&self) -> Result<Option<String>, ModelError> {
        if self.api() != Api::Ollama {
            return Ok(None);
        }
        let answer: Value = self.get("/api/version").await?;
        match answer.get("version").and_then(Value::as_str) {
            Some(version) => Ok(Some(version.to_owned())),
            None => Err(self.unreadable("it has no `version`")),
        }
    }

    fn unreadable(&self, why: &str) -> ModelError {
        self.context(self.provider()).flawed(unreadable(why), 200).error
    }

    /// Sends one request for `path`, and reads the JSON of its reply.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ModelError> {
        let context = self.context(self.provider());
        let _pass = self.0.limiter.pass().await;
        let url = self.place(path);
        self.read(&url, &context).await.map_err(|failure| failure.error)
    }

    async fn read<T: DeserializeOwned>(&self, url: &Url, context: &ErrorContext<'_>) -> Result<T, Failure> {
        let timeouts = self.0.config.timeouts;
        let clock = Clock::start(timeouts);
        let (url, headers) = (Some(url), HeaderMap::new());
        let outgoing = Outgoing { method: Method::GET, url, headers, body: Bytes::new() };
        let Exchanged { mut response, authorized, .. } =
            self.0.key_pool.exchange(outgoing, &Permit::default(), (&clock, Limit::Total), context).await?;
        let body = read_body(&mut response, &clock).await;
        let parsed = body.and_then(|body| {
            serde_json::from_slice(&body).map_err(|why| Stop::from(not_json(&why, &body, response.headers())))
        });
        let status = response.status();
        parsed.map_err(|stop| authorized.hidden(context, |context| stop.failure(context, timeouts, status)))
    }
}

/// Why `body` is no list: what it is instead, as its headers say, and how it begins.
fn not_json(why: &serde_json::Error, body: &[u8], headers: &HeaderMap) -> DecodeError {
    if body.is_empty() {
        return DecodeError::Empty;
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let why = match kind.filter(|kind| !kind.contains("json")) {
        Some(kind) => format!("it is `{}`, not JSON ({why})", text::excerpt(kind, MAX_TYPE)),
        None => format!("it is not valid JSON ({why})"),
    };
    let excerpt = String::from_utf8_lossy(body).chars().take(EXCERPT).collect();
    DecodeError::Unreadable { why, excerpt }
}

fn unreadable(why: &str) -> DecodeError {
    DecodeError::Unreadable { why: why.to_owned(), excerpt: String::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_read_where_servers_report_them() {
        for (model, limits) in [
            (json!({"id": "m", "max_model_len": 32_768}), (Some(32_768), None)),
            (
                json!({"id": "m", "context_length": 131_072, "top_provider": {"max_completion_tokens": 16_384}}),
                (Some(131_072), Some(16_384)),
            ),
            (json!({"id": "m", "context_length": 131_072, "top_provider": null}), (Some(131_072), None)),
            (
                json!({"id": "m", "context_window": 8_192, "max_completion_tokens": 4_096}),
                (Some(8_192), Some(4_096)),
            ),
            (json!({"id": "m", "max_context_length": 4_096}), (Some(4_096), None)),
            (
                json!({"id": "m", "max_input_tokens": 200_000, "max_tokens": 64_000}),
                (Some(200_000), Some(64_000)),
            ),
            (
                json!({"id": "m", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}),
                (Some(1_048_576), Some(65_536)),
            ),
            (json!({"id": "m", "meta": {"n_ctx_train": 32_768}}), (Some(32_768), None)),
            (json!({"id": "m", "meta": {"n_ctx": 4_096, "n_ctx_train": 32_768}}), (Some(4_096), None)),
            // What is not a number of tokens says nothing.
            (json!({"id": "m", "context_length": "long", "max_tokens": -1, "meta": [1]}), (None, None)),
            (json!({"id": "m", "max_model_len": 0, "context_length": 8}), (Some(8), None)),
        ] {
            let read = ServedModel::read(&model, "id").unwrap();
            assert_eq!((read.max_input, read.max_output), limits, "{model}");
        }
        assert_eq!(ServedModel::read(&json!({"name": "models/g"}), "name").unwrap().name, "g");
        let cohere = json!({"name": "command-a", "endpoints": ["chat"], "context_length": 288_000});
        let cohere = ServedModel::read(&cohere, "id").unwrap();
        assert_eq!((&*cohere.name, cohere.max_input), ("command-a", Some(288_000)));
        let both = json!({"id": "m-1", "name": "The first one"});
        assert_eq!(ServedModel::read(&both, "id").unwrap().name, "m-1");
        assert_eq!(ServedModel::read(&json!({"max_model_len": 8}), "id"), None);
    }

    #[test]
    fn models_that_do_something_else_are_left_out_and_those_for_vectors_are_marked() {
        use Purpose::{Others, Replies, Vectors};
        for (model, expected) in [
            (json!({"supportedGenerationMethods": ["generateContent", "countTokens"]}), Replies),
            (json!({"supportedGenerationMethods": ["embedContent"]}), Vectors),
            (json!({"supportedGenerationMethods": ["predictLongRunning"]}), Others),
            (json!({"architecture": {"output_modalities": ["text", "image"]}}), Replies),
            (json!({"architecture": {"output_modalities": ["image"]}}), Others),
            (json!({"architecture": {"output_modalities": ["embeddings"]}}), Vectors),
            (json!({"endpoints": ["chat", "generate"]}), Replies),
            (json!({"endpoints": ["embed", "classify"]}), Vectors),
            (json!({"endpoints": ["rerank"]}), Others),
            (json!({"capabilities": {"completion_chat": true}, "type": "base"}), Replies),
            (json!({"capabilities": {"completion_chat": false}, "type": "base"}), Others),
            (json!({"id": "mistral-embed", "capabilities": {"completion_chat": false}}), Vectors),
            (json!({"kind": "EMBEDDING_MODEL", "supports_chat": false}), Vectors),
            (json!({"kind": "FLUMINA_BASE_MODEL", "supports_chat": false}), Others),
            (json!({"type": "chat"}), Replies),
            (json!({"type": "embedding"}), Vectors),
            (json!({"type": "image"}), Others),
            // What says nothing is listed, as is what nothing is known of.
            (json!({"id": "text-embedding-3-small"}), Replies),
            (json!({"type": "model", "capabilities": {"vision": {"supported": true}}}), Replies),
            (json!({"supportedGenerationMethods": [], "endpoints": "chat", "type": 1}), Replies),
        ] {
            assert_eq!(Purpose::of(&model), expected, "{model}");
        }
        let read = |methods: &str| {
            let model = json!({"name": "models/g", "supportedGenerationMethods": [methods]});
            ServedModel::read(&model, "name").map(|model| (model.name, model.embeds))
        };
        assert_eq!(read("embedContent"), Some(("g".to_owned(), true)));
        assert_eq!(read("predict"), None);
    }

    #[test]
    fn the_next_page_is_asked_for_as_each_api_does() {
        let data = json!([{"id": "a"}, {"id": "b"}]);
        for (page, api, expected) in [
            (json!({"data": data, "has_more": true, "last_id": "b"}), Api::Messages, Some(("after_id", "b"))),
            (json!({"data": data, "has_more": true}), Api::ChatCompletions, Some(("after", "b"))),
            (json!({"data": [], "has_more": true}), Api::ChatCompletions, Some(("after", ""))),
            (json!({"data": data, "has_more": false, "last_id": "b"}), Api::Messages, None),
            (json!({"data": data}), Api::ChatCompletions, None),
            (json!({"models": [], "nextPageToken": "t"}), Api::Gemini, Some(("pageToken", "t"))),
            (json!({"models": [], "nextPageToken": ""}), Api::Gemini, None),
            (json!({"models": [], "next_page_token": "t"}), Api::ChatCompletions, Some(("page_token", "t"))),
            (json!([{"id": "a"}]), Api::ChatCompletions, None),
        ] {
            assert_eq!(next_page(&page, api, "id"), expected, "{page}");
        }
        assert_eq!(
            with_parameter("/models?pageSize=1000", "pageToken", "a+b/="),
            "/models?pageSize=1000&pageToken=a%2Bb%2F%3D"
        );
        assert_eq!(with_parameter("/models", "after", "b"), "/models?after=b");
    }
}
