//! What models expect before a text, to tell texts that are searched from texts that search.

use std::borrow::Cow;

use polylogue_memory::EmbedPurpose;

/// What a model expects before a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefixes {
    /// How the names of its models begin, after the name of the one who made them.
    models: &'static str,
    store: &'static str,
    search: &'static str,
}

const fn row(models: &'static str, store: &'static str, search: &'static str) -> Prefixes {
    Prefixes { models, store, search }
}

const TITLE: &str = "title: none | text: ";
const TASK: &str = "task: search result | query: ";
const INSTRUCTION: &str =
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ";

/// As the models' cards say. The first row that fits counts.
const PREFIXES: &[Prefixes] = &[
    row("nomic-embed-text", "search_document: ", "search_query: "),
    row("embeddinggemma", TITLE, TASK),
    row("gemini-embedding-2", TITLE, TASK),
    row("mxbai-embed-large", "", "Represent this sentence for searching relevant passages: "),
    row("qwen3-embedding", "", INSTRUCTION),
    row("e5-mistral-7b-instruct", "", INSTRUCTION),
    row("multilingual-e5-large-instruct", "", INSTRUCTION),
    row("multilingual-e5-", "passage: ", "query: "),
    row("e5-", "passage: ", "query: "),
];

impl Prefixes {
    /// Those of `model`, if it has any.
    pub(crate) fn of(model: &str) -> Option<Self> {
        let name = model.rsplit_once('/').map_or(model, |(_, name)| name).to_ascii_lowercase();
        PREFIXES.iter().find(|row| name.starts_with(row.models)).copied()
    }

    /// `texts` as the model expects them.
    pub(crate) fn before(self, texts: &[String], purpose: EmbedPurpose) -> Cow<'_, [String]> {
        let prefix = match purpose {
            EmbedPurpose::Store => self.store,
            EmbedPurpose::Search => self.search,
        };
        match prefix {
            "" => Cow::Borrowed(texts),
            _ => texts.iter().map(|text| format!("{prefix}{text}")).collect(),
        }
    }

    /// The purpose with the longer prefix.
    pub(crate) const fn longest(self) -> EmbedPurpose {
        if self.store.len() > self.search.len() { EmbedPurpose::Store } else { EmbedPurpose::Search }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_that_of_the_model_card() {
        let prefixed = |model: &str, purpose| {
            let texts = ["tea".to_owned()];
            let prefixes = Prefixes::of(model);
            prefixes.map(|prefixes| prefixes.before(&texts, purpose).concat())
        };
        for (model, store, search) in [
            ("nomic-embed-text:v1.5", "search_document: tea", "search_query: tea"),
            ("intfloat/multilingual-e5-large", "passage: tea", "query: tea"),
            ("intfloat/e5-base-v2", "passage: tea", "query: tea"),
            ("mxbai-embed-large", "tea", "Represent this sentence for searching relevant passages: tea"),
            ("embeddinggemma:300m", "title: none | text: tea", "task: search result | query: tea"),
        ] {
            assert_eq!(prefixed(model, EmbedPurpose::Store).as_deref(), Some(store), "{model}");
            assert_eq!(prefixed(model, EmbedPurpose::Search).as_deref(), Some(search), "{model}");
        }
        let instructed = prefixed("intfloat/multilingual-e5-large-instruct", EmbedPurpose::Search).unwrap();
        assert!(instructed.starts_with("Instruct: ") && instructed.ends_with("\nQuery: tea"), "{instructed}");
        assert!(prefixed("Qwen/Qwen3-Embedding-0.6B", EmbedPurpose::Store).as_deref() == Some("tea"));
        for model in ["text-embedding-3-small", "gemini-embedding-001", "voyage5-e5-mix"] {
            assert_eq!(Prefixes::of(model), None, "{model}");
        }
    }
}
