//! The price of a model, and the limits that are known with it.

use std::sync::Arc;

use polylogue_core::Price;

use super::EndpointModel;
use crate::endpoint::Endpoint;
use crate::prices::{Day, ModelLimits, Prices};

impl Endpoint {
    /// The price of the model called `name` here: the user's, or else the list price.
    pub(in crate::endpoint) fn price(&self, name: &str, prices: &Prices) -> Option<Price> {
        let (config, day) = (&self.0.config, Day::today());
        let at = |name| prices.at(self.provider(), &config.base_url, name, day);
        match config.listed(name) {
            Some(listed) if listed == name => at(listed),
            // A deployment has a name that the table does not know.
            listed => prices.own(self.provider(), name, day).cloned().or_else(|| listed.and_then(at)),
        }
    }
}

impl EndpointModel {
    /// Sets the price; `None` makes the cost unknown.
    #[must_use]
    pub fn with_price(self, price: Option<Price>) -> Self {
        Self { price, ..self }
    }

    /// At the user's price and with the user's limits, if `prices` has them today.
    pub(crate) fn priced(mut self, prices: &Arc<Prices>) -> Self {
        let ModelLimits { window, max_output } =
            prices.own_limits(self.endpoint.provider(), &self.model, Day::today());
        self.accepts.max_input = window.or(self.accepts.max_input);
        self.accepts.max_output = max_output.or(self.accepts.max_output);
        let price = self.endpoint.price(&self.model, prices);
        Self { prices: Arc::clone(prices), ..self.with_price(price) }
    }

    /// Sets the limits that are not known otherwise. Without effect on a model with a [price](Self::price), unless it is free: less would
    /// be reserved for its calls than they can cost by a price that others know.
    #[must_use]
    pub fn with_limits(mut self, limits: ModelLimits) -> Self {
        if self.price.as_ref().is_some_and(|price| *price != Price::FREE) {
            return self;
        }
        self.accepts.max_input = self.accepts.max_input.or(limits.window);
        self.accepts.max_output = self.accepts.max_output.or(limits.max_output);
        self
    }

    /// Returns the price, if it is known. Default: the list price.
    pub fn price(&self) -> Option<Price> {
        self.price.clone()
    }
}
