//! Texts as vectors, so that what means the same is found by other words.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Bound, ModelError, Money, Reservation, Usage};

/// A model that makes vectors of texts.
pub trait Embed: Send + Sync + 'static {
    /// Which one, as `provider:model`. Vectors of models with different names are never compared.
    fn name(&self) -> &str;

    /// A vector for each of `texts`, in their order, all of the same length, all numbers finite.
    ///
    /// # Errors
    /// When the model gives none.
    fn embed(&self, texts: &[String]) -> impl Future<Output = Result<Embedded, ModelError>> + Send;

    /// The same, paid from `reserved`: one that sends a request again says how the attempt before
    /// [failed](Reservation::fail), and reserves [another](Reservation::again).
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    fn embed_reserved(
        &self,
        texts: &[String],
        reserved: &Reservation<'_>,
    ) -> impl Future<Output = Result<Embedded, ModelError>> + Send {
        let _ = reserved;
        self.embed(texts)
    }

    /// The most that vectors of `texts` can take. Their cost is unknown unless this says otherwise.
    fn bound(&self, texts: &[String]) -> Bound {
        Bound::of_texts(texts, |_| None)
    }
}

/// Texts as vectors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embedded {
    /// One for each text.
    pub vectors: Vec<Vec<f32>>,
    /// The tokens that it took, as far as that was said.
    pub usage: Usage,
    /// What it cost, if that is known.
    pub cost: Option<Money>,
}

/// Any model that makes vectors. Cloning shares it.
#[derive(Clone)]
pub struct AnyEmbed(Arc<dyn ErasedEmbed>);

trait ErasedEmbed: Send + Sync {
    fn name(&self) -> &str;
    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> Pin<Box<dyn Future<Output = Result<Embedded, ModelError>> + Send + 'a>>;
    fn embed_reserved<'a>(
        &'a self,
        texts: &'a [String],
        reserved: &'a Reservation<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Embedded, ModelError>> + Send + 'a>>;
    fn bound(&self, texts: &[String]) -> Bound;
}

impl<E: Embed> ErasedEmbed for E {
    fn name(&self) -> &str {
        Embed::name(self)
    }
    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> Pin<Box<dyn Future<Output = Result<Embedded, ModelError>> + Send + 'a>> {
        Box::pin(Embed::embed(self, texts))
    }
    fn embed_reserved<'a>(
        &'a self,
        texts: &'a [String],
        reserved: &'a Reservation<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Embedded, ModelError>> + Send + 'a>> {
        Box::pin(Embed::embed_reserved(self, texts, reserved))
    }
    fn bound(&self, texts: &[String]) -> Bound {
        Embed::bound(self, texts)
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
    async fn embed(&self, texts: &[String]) -> Result<Embedded, ModelError> {
        self.0.embed(texts).await
    }
    async fn embed_reserved(
        &self,
        texts: &[String],
        reserved: &Reservation<'_>,
    ) -> Result<Embedded, ModelError> {
        self.0.embed_reserved(texts, reserved).await
    }
    fn bound(&self, texts: &[String]) -> Bound {
        self.0.bound(texts)
    }
}

impl fmt::Debug for AnyEmbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyEmbed").field(&self.0.name()).finish()
    }
}
