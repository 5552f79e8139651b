//! Models around other models.

use std::time::Duration;

use super::inner_model::inner_model;
use super::{AnyModel, Model, Request};
use crate::{Capabilities, DeltaSink, ModelError, Money, Params, Reply, Usage};

/// A model around another one that changes its calls: a cache, a recorder, a hook. Its name, prices, limits and capabilities are those of
/// the wrapped one. A wrapper that changes these implements [`Model`].
///
/// ```
/// use polylogue_core::{DeltaSink, Model, ModelError, ModelWrapper, Reply, Request};
///
/// /// Asks once more when the server fails.
/// struct Twice<M>(M);
///
/// impl<M: Model> ModelWrapper for Twice<M> {
///     type Inner = M;
///
///     fn inner(&self) -> &M {
///         &self.0
///     }
///
///     async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
///         match self.0.complete(request, deltas).await {
///             Err(error) if error.status >= Some(500) => self.0.complete(request, deltas).await,
///             result => result,
///         }
///     }
/// }
/// ```
pub trait ModelWrapper: Send + Sync + 'static {
    /// The wrapped model.
    type Inner: Model;

    /// Returns the wrapped model.
    fn inner(&self) -> &Self::Inner;

    /// [`Model::complete`].
    ///
    /// # Errors
    /// As that.
    fn complete(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> impl Future<Output = Result<Reply, ModelError>> + Send;

    /// [`Model::is_cached`]. Default: that of the wrapped model.
    fn is_cached(&self, request: &Request<'_>) -> bool {
        self.inner().is_cached(request)
    }
}

impl<W: ModelWrapper> Model for W {
    inner_model!(self => self.inner());

    fn complete(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> impl Future<Output = Result<Reply, ModelError>> + Send {
        ModelWrapper::complete(self, request, deltas)
    }

    fn is_cached(&self, request: &Request<'_>) -> bool {
        ModelWrapper::is_cached(self, request)
    }
}
