//! Embedding models: texts as vectors, for search by meaning.

use std::pin::Pin;
use std::sync::Arc;

use polylogue_core::{Bound, ModelError, Money, Reservation, Usage};

/// The purpose for which texts are embedded. Many models make other vectors of a query than of a text that answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// The texts are stored, to be found: documents, facts.
    Store,
    /// The texts are queries that search stored texts.
    Search,
}

/// An embedding model.
pub trait Embed: Send + Sync + 'static {
    /// Returns the name as `provider:model`. Vectors of models with different names are never compared.
    fn name(&self) -> &str;

    /// Returns one vector for each of `texts`, which are embedded for `purpose`, in their order, all of the same length, all numbers finite.
    ///
    /// # Errors
    /// When the model returns no vectors.
    fn embed(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
    ) -> impl Future<Output = Result<Embedded, ModelError>> + Send
    where
        Self: Sized;

    /// Embeds as [`embed`](Self::embed), paid from `reserved`: a model that retries reports how the attempt before
    /// [failed](Reservation::fail), and reserves [another](Reservation::again); one that fails after other requests of the same
    /// call reports what these [used](Reservation::paid). What a call used that does not fail is up to its caller.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    fn embed_reserved(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
        reserved: &Reservation<'_>,
    ) -> impl Future<Output = Result<Embedded, ModelError>> + Send
    where
        Self: Sized,
    {
        let _ = reserved;
        self.embed(texts, purpose)
    }

    /// Returns how many of the first of `texts` it embeds in one request: callers that keep vectors ask for so many at a time,
    /// and keep them before the next request. Default: all.
    fn batch(&self, texts: &[String], purpose: EmbedPurpose) -> usize {
        let _ = purpose;
        texts.len()
    }

    /// Returns the length of the vectors, if it is known before a call. Vectors of another length are computed again.
    fn dimensions(&self) -> Option<usize> {
        None
    }

    /// Returns the most tokens and money that embedding `texts` for any purpose can take. Default: unknown cost.
    fn bound(&self, texts: &[String]) -> Bound {
        Bound::of_texts(texts, |_| None)
    }
}

/// The reply of an embedding model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embedded {
    /// One vector for each text.
    pub vectors: Vec<Vec<f32>>,
    /// The tokens used, as far as the provider reported them.
    pub usage: Usage,
    /// The cost, if it is known.
    pub cost: Option<Money>,
}

/// Any embedding model. Cloning shares it.
#[derive(Clone, derive_more::Debug)]
#[debug("AnyEmbed({:?})", self.0.name())]
pub struct AnyEmbed(Arc<dyn ErasedEmbed>);

type Boxed<'a> = Pin<Box<dyn Future<Output = Result<Embedded, ModelError>> + Send + 'a>>;

/// [`Embed`] as an object: its futures are boxed.
trait ErasedEmbed: Embed {
    fn boxed<'a>(&'a self, texts: &'a [String], purpose: EmbedPurpose) -> Boxed<'a>;
    fn boxed_reserved<'a>(
        &'a self,
        texts: &'a [String],
        purpose: EmbedPurpose,
        reserved: &'a Reservation<'_>,
    ) -> Boxed<'a>;
}

impl<E: Embed> ErasedEmbed for E {
    fn boxed<'a>(&'a self, texts: &'a [String], purpose: EmbedPurpose) -> Boxed<'a> {
        Box::pin(self.embed(texts, purpose))
    }
    fn boxed_reserved<'a>(
        &'a self,
        texts: &'a [String],
        purpose: EmbedPurpose,
        reserved: &'a Reservation<'_>,
    ) -> Boxed<'a> {
        Box::pin(self.embed_reserved(texts, purpose, reserved))
    }
}

impl AnyEmbed {
    /// Wraps `model`.
    pub fn new(model: impl Embed) -> Self {
        Self(Arc::new(model))
    }
}

impl Embed for AnyEmbed {
    fn name(&self) -> &str {
        self.0.name()
    }
    async fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Embedded, ModelError> {
        self.0.boxed(texts, purpose).await
    }
    async fn embed_reserved(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
        reserved: &Reservation<'_>,
    ) -> Result<Embedded, ModelError> {
        self.0.boxed_reserved(texts, purpose, reserved).await
    }
    fn batch(&self, texts: &[String], purpose: EmbedPurpose) -> usize {
        self.0.batch(texts, purpose)
    }
    fn dimensions(&self) -> Option<usize> {
        self.0.dimensions()
    }
    fn bound(&self, texts: &[String]) -> Bound {
        self.0.bound(texts)
    }
}
