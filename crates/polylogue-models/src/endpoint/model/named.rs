//! Replies of another model than the one that was asked, because the provider chose it.

use std::sync::Arc;

use polylogue_core::{AnsweredBy, AnyModel, Model as _, Reply};

use super::super::Answer;
use super::EndpointModel;
use crate::catalog::is_edition;

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
