//! Replies at another price than that of the model that was asked: of another model, because the provider chose it, or with other
//! service.

use std::sync::Arc;

use polylogue_core::{AnsweredBy, AnyModel, Model as _, Params, Reply};

use super::super::Answer;
use super::EndpointModel;
use crate::catalog::is_edition;
use crate::prices::Day;
use crate::surcharge::has_usual_price;

impl EndpointModel {
    /// The answer, its reply by the model that the provider names if that is not the one that was `asked`, but one that it chose:
    /// at the price of that model, or if it is unknown, of the one that was asked.
    pub(super) fn named(&self, answer: Answer, asked: &str) -> Answer {
        let chooses = self.endpoint.0.config.deviations.chooses_model;
        let Some(model) = answer.model.as_deref().filter(|model| chooses && !is_same(model, asked)) else {
            return answer;
        };
        let by = self.endpoint.model(model).priced(&self.prices);
        let by = if by.price.is_none() { by.with_price(self.price.clone()) } else { by };
        let by = AnyModel::from(by);
        let (model, cost) = (by.name().into(), by.call_cost(&answer.reply.usage));
        let answered_by = AnsweredBy { model, cost, because: None };
        Answer { reply: Reply { answered_by: Some(Arc::new(answered_by)), ..answer.reply }, ..answer }
    }
}

impl EndpointModel {
    /// Whether the price is that of requests with `params`. The user's own price is what the user says that they cost.
    pub(super) fn is_priced_for(&self, params: &Params) -> bool {
        let own = || self.prices.own(self.endpoint.provider(), &self.model, Day::today());
        has_usual_price(&params.extra, &self.model) || own().is_some()
    }

    /// `reply` to a request with `params`, with an unknown cost if these ask for service that the price is not for.
    pub(super) fn at_known_price(&self, reply: Reply, params: &Params) -> Reply {
        if self.is_priced_for(params) {
            return reply;
        }
        let model =
            reply.answered_by.as_ref().map_or_else(|| Arc::clone(&self.name), |by| Arc::clone(&by.model));
        let answered_by = AnsweredBy { model, cost: None, because: None };
        Reply { answered_by: Some(Arc::new(answered_by)), ..reply }
    }
}

/// Whether the model that replied is the one that was `asked`, in an edition or a variant such as `:free`.
fn is_same(model: &str, asked: &str) -> bool {
    plain(model).strip_prefix(plain(asked)).is_some_and(is_edition)
}

/// The name of a model without its variant.
fn plain(name: &str) -> &str {
    name.split_once(':').map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn an_edition_or_a_variant_is_the_same_model() {
        for (model, asked, expected) in [
            ("openai/gpt-4o", "openai/gpt-4o", true),
            ("openai/gpt-4o-2024-11-20", "openai/gpt-4o", true),
            ("x/y", "x/y:free", true),
            ("x/y:free", "x/y", true),
            ("openai/gpt-4o-mini", "openai/gpt-4o", false),
            ("openai/gpt-4o", "openrouter/auto", false),
            ("", "openrouter/auto", false),
        ] {
            assert_eq!(is_same(model, asked), expected, "{model} {asked}");
        }
    }
}
