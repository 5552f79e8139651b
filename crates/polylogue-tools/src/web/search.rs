//! Search, by an engine or in local pages.

mod engine;

use std::pin::Pin;
use std::sync::Arc;

pub use self::engine::{Engine, EngineKind};

/// A search engine or index.
pub trait Search: Send + Sync + 'static {
    /// Returns the name of the source for readers of the results, such as the host of a search engine.
    fn source(&self) -> &str;

    /// Searches for the best `limit` pages for `query`, the best first.
    ///
    /// # Errors
    /// When the search fails; the text is for a model.
    fn search(&self, query: &str, limit: usize) -> impl Future<Output = Result<Vec<Hit>, String>> + Send;
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The title.
    pub title: String,
    /// The address.
    pub url: String,
    /// An excerpt of the page.
    pub excerpt: String,
}

/// Any [`Search`]. Cloning shares it.
#[derive(Clone, derive_more::Debug)]
#[debug("AnySearch({:?})", self.0.source())]
pub struct AnySearch(Arc<dyn ErasedSearch>);

type Found<'a> = Pin<Box<dyn Future<Output = Result<Vec<Hit>, String>> + Send + 'a>>;

trait ErasedSearch: Send + Sync {
    fn source(&self) -> &str;
    fn search<'a>(&'a self, query: &'a str, limit: usize) -> Found<'a>;
}

impl<S: Search> ErasedSearch for S {
    fn source(&self) -> &str {
        Search::source(self)
    }
    fn search<'a>(&'a self, query: &'a str, limit: usize) -> Found<'a> {
        Box::pin(Search::search(self, query, limit))
    }
}

impl AnySearch {
    /// Wraps `search`.
    pub fn new(search: impl Search) -> Self {
        Self(Arc::new(search))
    }
}

impl Search for AnySearch {
    fn source(&self) -> &str {
        self.0.source()
    }
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, String> {
        self.0.search(query, limit).await
    }
}
