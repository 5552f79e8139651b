//! Models around other models.

use std::time::Duration;

use super::{Model, Request};
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

    /// [`Model::is_stored`]. Default: that of the wrapped model.
    fn is_stored(&self, request: &Request<'_>) -> bool {
        self.inner().is_stored(request)
    }
}

/// What a model has of the one in it: all but [`Model::complete`] and [`Model::is_stored`].
macro_rules! inner_model {
    ($self:ident => $inner:expr) => {
        fn name(&$self) -> &str {
            $inner.name()
        }
        fn cost(&$self, usage: &Usage) -> Option<Money> {
            $inner.cost(usage)
        }
        fn has_price(&$self, params: &Params) -> bool {
            $inner.has_price(params)
        }
        fn max_output(&$self, params: &Params) -> Option<u64> {
            $inner.max_output(params)
        }
        fn useful_output(&$self, params: &Params) -> u64 {
            $inner.useful_output(params)
        }
        fn context_window(&$self) -> Option<u64> {
            $inner.context_window()
        }
        fn max_input(&$self) -> Option<u64> {
            $inner.max_input()
        }
        fn page_tokens(&$self) -> u64 {
            $inner.page_tokens()
        }
        fn ignored(&$self, params: &Params) -> Vec<&'static str> {
            $inner.ignored(params)
        }
        fn unavailable_for(&$self) -> Option<Duration> {
            $inner.unavailable_for()
        }
        fn capabilities(&$self) -> Capabilities {
            $inner.capabilities()
        }
        fn expected_capabilities(&$self, params: &Params) -> Capabilities {
            $inner.expected_capabilities(params)
        }
        fn returns_seals(&$self, params: &Params) -> bool {
            $inner.returns_seals(params)
        }
    };
}

pub(super) use inner_model;

impl<W: ModelWrapper> Model for W {
    inner_model!(self => self.inner());

    fn complete(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> impl Future<Output = Result<Reply, ModelError>> + Send {
        ModelWrapper::complete(self, request, deltas)
    }

    fn is_stored(&self, request: &Request<'_>) -> bool {
        ModelWrapper::is_stored(self, request)
    }
}
