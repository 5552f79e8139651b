//! The forms of requests for vectors: a table of APIs and models.

use polylogue_memory::EmbedPurpose;
use serde_json::{Value, json};

use crate::address::{segment, strict_segment};
use crate::api::EmbeddingApi::{self, Bedrock, Cohere, Gemini, Mistral, Ollama, OpenAi, Vertex};

/// What is sent in one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) model: &'a str,
    pub(crate) texts: &'a [String],
    /// `None` if the texts say it themselves, by a prefix.
    pub(crate) purpose: Option<EmbedPurpose>,
    /// The length of vectors; `None` is the model's default.
    pub(crate) dimensions: Option<u32>,
}

impl Inputs<'_> {
    /// The name of the purpose: `store` or `search`.
    fn named(&self, store: &'static str, search: &'static str) -> Option<&'static str> {
        self.purpose.map(|purpose| match purpose {
            EmbedPurpose::Store => store,
            EmbedPurpose::Search => search,
        })
    }

    /// The text of a request that takes one.
    fn text(&self) -> &str {
        self.texts.first().map_or("", String::as_str)
    }
}

/// The form of requests for vectors.
#[derive(Debug)]
pub(crate) struct Form {
    api: EmbeddingApi,
    /// The part of the names of its models.
    models: &'static str,
    /// The maximum number of texts in a request.
    pub(crate) max_texts: usize,
    /// Ends of base URLs that belong to other paths of the same server.
    pub(crate) other_paths: &'static [&'static str],
    /// The path below the base URL for a model.
    pub(crate) path: fn(&str) -> String,
    body: fn(&Inputs<'_>) -> Value,
}

/// One that takes a list of texts. Providers take up to 2,048, local servers often fewer.
const LIST: Form = Form {
    api: OpenAi,
    models: "",
    max_texts: 64,
    other_paths: &[],
    path: |_| "/embeddings".to_owned(),
    body: |of| json!({"model": of.model, "input": of.texts, "dimensions": of.dimensions}),
};

/// One that takes a single text.
const SINGLE: Form = Form { max_texts: 1, ..LIST };

/// The maximum number of texts of Cohere's models at all providers.
const MAX_OF_COHERE: usize = 96;

/// The first row of the API whose name is part of the model's name counts.
const FORMS: &[Form] = &[
    LIST,
    Form { api: Ollama, path: |_| "/api/embed".to_owned(), ..LIST },
    Form {
        api: Mistral,
        body: |of| json!({"model": of.model, "input": of.texts, "output_dimension": of.dimensions}),
        ..LIST
    },
    Form {
        api: Cohere,
        max_texts: MAX_OF_COHERE,
        other_paths: &["/compatibility/v1", "/v1", "/v2"],
        path: |_| "/v2/embed".to_owned(),
        body: |of| with(cohere(of), "model", of.model.into()),
        ..LIST
    },
    Form {
        api: Gemini,
        max_texts: 100,
        path: |model| format!("/models/{}:batchEmbedContents", segment(plain(model))),
        body: batch_of_gemini,
        ..LIST
    },
    Form {
        api: Vertex,
        models: "gemini-embedding-2",
        path: |model| format!("/models/{}:embedContent", segment(plain(model))),
        body: content_of_gemini,
        ..SINGLE
    },
    Form { api: Vertex, models: "gemini-embedding", path: predict, body: instances, ..SINGLE },
    Form { api: Vertex, max_texts: 250, path: predict, body: instances, ..LIST },
    Form {
        api: Bedrock,
        models: "titan-embed",
        path: invoke,
        body: |of| json!({"inputText": of.text(), "dimensions": of.dimensions}),
        ..SINGLE
    },
    Form {
        api: Bedrock,
        models: "cohere.embed",
        max_texts: MAX_OF_COHERE,
        path: invoke,
        body: cohere,
        ..LIST
    },
];

impl Form {
    /// The form of requests to `model` of `api`; `None` if that depends on the model, and is unknown for this one.
    pub(crate) fn find(api: EmbeddingApi, model: &str) -> Option<&'static Self> {
        FORMS.iter().find(|form| form.api == api && model.contains(form.models))
    }

    /// The parts of names that models of `api` have, if any is known.
    pub(crate) fn known(api: EmbeddingApi) -> Vec<&'static str> {
        FORMS.iter().filter(|form| form.api == api).map(|form| form.models).collect()
    }

    /// The body of a request.
    pub(crate) fn body(&self, of: &Inputs<'_>) -> Value {
        let mut body = (self.body)(of);
        drop_nulls(&mut body);
        body
    }
}

/// <https://docs.cohere.com/reference/embed>
fn cohere(of: &Inputs<'_>) -> Value {
    json!({
        "texts": of.texts,
        // Required.
        "input_type": of.named("search_document", "search_query").unwrap_or("search_document"),
        "embedding_types": ["float"],
        "output_dimension": of.dimensions,
    })
}

/// <https://ai.google.dev/api/embeddings#method:-models.batchembedcontents>
fn batch_of_gemini(of: &Inputs<'_>) -> Value {
    let name = format!("models/{}", plain(of.model));
    let one = |text: &String| {
        let texts = std::slice::from_ref(text);
        with(content_of_gemini(&Inputs { texts, ..*of }), "model", name.as_str().into())
    };
    json!({"requests": of.texts.iter().map(one).collect::<Vec<_>>()})
}

fn content_of_gemini(of: &Inputs<'_>) -> Value {
    json!({
        "content": {"parts": [{"text": of.text()}]},
        "taskType": task_of_google(of),
        "outputDimensionality": of.dimensions,
    })
}

/// <https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api>
fn instances(of: &Inputs<'_>) -> Value {
    let instance = |text: &String| json!({"content": text, "task_type": task_of_google(of)});
    let instances: Vec<Value> = of.texts.iter().map(instance).collect();
    let parameters = of.dimensions.map(|dimensions| json!({"outputDimensionality": dimensions}));
    json!({"instances": instances, "parameters": parameters})
}

fn task_of_google(of: &Inputs<'_>) -> Option<&'static str> {
    of.named("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")
}

fn predict(model: &str) -> String {
    format!("/models/{}:predict", segment(plain(model)))
}

fn invoke(model: &str) -> String {
    format!("/model/{}/invoke", strict_segment(model))
}

/// The name of a model of Google without the collection that it is in.
fn plain(model: &str) -> &str {
    model.strip_prefix("models/").unwrap_or(model)
}

fn with(mut body: Value, name: &str, value: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
    body
}

/// Removes fields without a value: what is not set is not sent.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
