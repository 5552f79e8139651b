//! What a run takes at most, before it begins.

use polylogue_core::{AnyModel, DeltaSink, Limits, Model, ModelError, ModelErrorKind, Reply, Request};
use polylogue_models::{Day, Env, Fallback, Models, Prices, model_names};
use polylogue_team::{Team, TeamBound};

use crate::models::price_of;
use crate::{Result, TeamRun};

/// What a run of `team` takes at most within `limits`, from its file alone: no key is read, no server is started, and
/// nothing is sent. The user's `prices` count instead of list prices. Models that are not known have no known price and no known length of a reply.
///
/// # Errors
/// When an agent has no model, or the team cannot be built.
pub fn bound_of(team: &Team, limits: &Limits, prices: &Prices) -> Result<TeamBound> {
    let (models, today) = (Models::new(Env::default()).with_prices(prices.clone()), Day::today());
    for (name, endpoint) in team.all_endpoints() {
        // One that needs the environment is an unknown model here.
        let _ = endpoint.config(name, &Env::default()).map(|config| models.define(config));
    }
    let model = |name: &str| match models.model(name) {
        Ok(model) => {
            let own = team.prices.get(model.name()).and_then(|prices| prices.on(today)).cloned();
            let price = price_of(own, model.price(), false);
            AnyModel::new(model.with_price(price))
        }
        Err(_) => AnyModel::new(UnknownModel(name.to_owned())),
    };
    let provide = |names: &str| match model_names(names).collect::<Vec<_>>().as_slice() {
        [] => Ok(model(names)),
        [only] => Ok(model(only)),
        several => Ok(Fallback::new(several.iter().map(|name| model(name))).into()),
    };
    Ok(team.bound(&provide, limits)?)
}

impl TeamRun<'_> {
    /// What its conversation takes at most, with the models and tools that it has.
    ///
    /// # Errors
    /// When the team cannot be built.
    pub fn bound(&self) -> Result<TeamBound> {
        Ok(self.team().bound_with(&|name| self.model(name), &self.limits(), self.server_tools())?)
    }
}

/// A model of which only the name is known.
struct UnknownModel(String);

impl Model for UnknownModel {
    fn name(&self) -> &str {
        &self.0
    }

    async fn complete(
        &self,
        _: &Request<'_>,
        _: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        Err(ModelError::new(ModelErrorKind::Config, &*self.0, "it is not known"))
    }
}

#[cfg(test)]
mod tests {
    use polylogue_team::{Overrides, parse};

    use super::*;

    fn bound(text: &str) -> TeamBound {
        let team = parse(text, "t.yaml", &Overrides::default()).unwrap().team;
        bound_of(&team, &team.limits(), &Prices::default()).unwrap()
    }

    #[test]
    fn prices_of_the_team_count_and_never_below_the_list() {
        let team = |price: &str| {
            bound(&format!(
                "{{name: t, model: 'openai:gpt-4o-mini', task: hi, prices: {{'openai:gpt-4o-mini': {price}}}, \
                 agents: [{{name: Ann, parameters: {{max_tokens: 100}}}}], chat: {{participants: [Ann], pattern: sequential}}}}"
            ))
        };
        let cost = |price: &str| team(price).at_most.picodollars().unwrap();
        assert!(cost("{input: 0, output: 0}") > 0);
        assert!(cost("{input: 1000, output: 1000}") > 100 * cost("{input: 0, output: 0}"));
    }

    #[test]
    fn a_model_that_is_not_known_has_neither_price_nor_bound() {
        let bound = bound(
            "{name: t, model: 'openai:other', task: hi, agents: [{name: Ann}], chat: {participants: [Ann], pattern: sequential}}",
        );
        assert_eq!(bound.at_most.calls(), Some(4), "the reply is continued three times");
        assert_eq!(bound.at_most.tokens(), None);
        assert_eq!(bound.unpriced.iter().map(String::as_str).collect::<Vec<_>>(), ["openai:other"]);
        assert!(
            bound.unbounded[0].contains("`openai:other` has no known limit: set `max_tokens`"),
            "{bound:?}"
        );
    }
}
