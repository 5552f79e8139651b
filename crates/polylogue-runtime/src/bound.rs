//! What a run takes at most, before it begins.

use polylogue::tools::memory::Embed as _;
use polylogue_core::{
    AnyModel, BoundException, BoundSummary, DeltaSink, Limits, LogId, Model, ModelError, ModelErrorKind,
    Part, Price, Reply, Request, Store as _,
};
use polylogue_models::{Day, EndpointModel, Env, Fallback, Models, Prices, model_names};
use polylogue_team::{AttachedSize, Team, TeamBound};

use crate::models::{price_of, surcharged, unknown_price, unknown_surcharge};
use crate::stored::{StoredBound, bound_summary};
use crate::{Result, Runtime, TeamRun};

/// Returns the bound of a run of `team`: what it takes at most within `limits`, from its file alone: no key is read, no server
/// is started, and nothing is sent. The user's `prices` count instead of list prices. Models that are not known have no known
/// price and no known length of a reply.
///
/// # Errors
/// When an agent has no model, or the team cannot be built.
pub fn bound_of(team: &Team, limits: &Limits, prices: &Prices) -> Result<TeamBound> {
    let (models, own) = (models_of(team, prices), team.own_prices());
    let model = |name: &str| match models.model(name) {
        Ok(model) => {
            let limits = own.named(model.name(), Day::today()).map(|own| own.limits).unwrap_or_default();
            let price = price_in(&own, &model);
            AnyModel::new(model.with_limits(limits).with_price(price))
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

/// Why models of `team`, and that of its embeddings, cannot be called under a budget, because their price is unknown. Models that only an
/// environment defines are left out.
pub(crate) fn unpriced_models(team: &Team, prices: &Prices) -> Vec<ModelError> {
    let (models, own) = (models_of(team, prices), team.own_prices());
    let is_unpriced = |name: &&str| models.model(name).is_ok_and(|model| price_in(&own, &model).is_none());
    let makes_unpriced = |name: &&str| {
        let model = models.embedder(name);
        model.is_ok_and(|model| price_of(own_price(&own, model.name()), model.price(), false).is_none())
    };
    let of_embeddings = team.embedding_model().filter(makes_unpriced);
    let surcharged = surcharged(team, &models).into_iter().map(unknown_surcharge);
    let unpriced = team.models().into_iter().filter(is_unpriced).chain(of_embeddings);
    unpriced.map(unknown_price).chain(surcharged).collect()
}

/// The models of `team` without keys. An endpoint that needs the environment is not defined.
fn models_of(team: &Team, prices: &Prices) -> Models {
    let models = Models::new(Env::default()).with_prices(prices.clone());
    for (name, endpoint) in team.all_endpoints() {
        let _ = endpoint.config(name, &Env::default()).map(|config| models.define(config));
    }
    models
}

/// The price of `model` in a team with its `own` prices.
fn price_in(own: &Prices, model: &EndpointModel) -> Option<Price> {
    price_of(own_price(own, model.name()), model.price(), false)
}

/// What the team says that the model called `name` costs today.
fn own_price(own: &Prices, name: &str) -> Option<Price> {
    own.named(name, Day::today()).map(|own| own.price.clone())
}

impl TeamRun<'_> {
    /// Returns the bound of its conversation, with the models and tools that it has.
    ///
    /// # Errors
    /// When the team cannot be built.
    pub fn bound(&self) -> Result<TeamBound> {
        let attached = AttachedSize::of(self.attached());
        Ok(self.team().bound_with(&|name| self.model(name), &self.limits(), self.server_tools(), attached)?)
    }

    /// What `runs` conversations of it take at most, as conversations are stored with it; `None` if that cannot be computed: a sound can
    /// have another price than text.
    pub(crate) fn stored_bound(&self, runs: u64) -> Option<StoredBound> {
        if self.attached().iter().any(|part| matches!(part, Part::Media(media) if media.is_audio())) {
            return None;
        }
        let bound = self.bound().ok()?.times(runs);
        Some(StoredBound::new(bound, &self.prices(), self.limits().on_limit))
    }

    /// Returns what `runs` conversations of it take at most, as people and programs see it; `None` where the script speaks, no
    /// model is called, or nothing is known.
    pub fn bound_summary(&self, runs: u64) -> Option<BoundSummary> {
        let bound = self.stored_bound(runs).filter(|_| !self.prepared.is_scripted())?;
        bound.summary(self.prepared.digest().to_owned())
    }
}

impl Runtime {
    /// Returns why the bound of the conversation `id` does not apply any more; `None` if it does, or if there is none. Reads no log.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn bound_exception(&self, id: &LogId) -> Result<Option<BoundException>> {
        // What runs here knows whether prices have changed.
        if let Some(open) = self.get(id) {
            return Ok(open.bound_exception().await);
        }
        let Some(bound) = StoredBound::of(&self.store().meta(id).await?) else { return Ok(None) };
        Ok(bound.most.exception_by(&self.listing(id).await?.summary.bound))
    }

    /// Returns what the conversation `id` was computed to take at most before it began; `None` where a script speaks, no model
    /// is called, or nothing was computed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn bound_summary(&self, id: &LogId) -> Result<Option<BoundSummary>> {
        Ok(bound_summary(&self.store().meta(id).await?))
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

    /// As the rows of the table and the user's prices do: for editions without a price of their own, and other names of the provider.
    #[test]
    fn prices_of_the_team_count_for_all_names_of_a_model_and_the_exact_one_first() {
        let prices = "{'openai:house': {input: 1, output: 1, window: 4000}, 'openai:house-2026-11-30': {input: 2, output: 2}}";
        for (model, dollars, window) in [
            ("openai:house", Some(1.0), Some(4000)),
            ("openai:house-2025-01-31", Some(1.0), Some(4000)),
            ("openai-responses:house", Some(1.0), Some(4000)),
            ("openai:house-2026-11-30", Some(2.0), None),
            ("openai:house-mini", None, None),
            ("mistral:house", None, None),
        ] {
            let text = format!(
                "{{name: t, model: '{model}', task: hi, prices: {prices}, agents: [{{name: Ann}}], \
                 chat: {{participants: [Ann], pattern: sequential}}}}"
            );
            let team = parse(&text, "t.yaml", &Overrides::default()).unwrap_or_else(|e| panic!("{e}")).team;
            let (models, own) = (models_of(&team, &Prices::default()), team.own_prices());
            let found = models.model(model).unwrap();
            assert_eq!(price_in(&own, &found).map(|price| price.input), dollars, "{model}");
            let limits = own.named(found.name(), Day::today()).map(|own| own.limits);
            assert_eq!(limits.and_then(|limits| limits.window), window, "{model}");
            assert_eq!(unpriced_models(&team, &Prices::default()).is_empty(), dollars.is_some(), "{model}");
        }
    }

    #[test]
    fn service_at_another_price_is_unpriced_unless_the_user_says_what_it_costs() {
        let text = "{name: t, model: 'openai:gpt-5', task: hi, agents: [{name: Ann, parameters: {max_tokens: 100, \
             extra: {service_tier: priority}}}], chat: {participants: [Ann], pattern: sequential}}";
        let team = parse(text, "t.yaml", &Overrides::default()).unwrap().team;
        let unpriced = |prices: &Prices| {
            let bound = bound_of(&team, &team.limits(), prices).unwrap();
            (bound.unpriced.len(), unpriced_models(&team, prices).len())
        };
        assert_eq!(unpriced(&Prices::default()), (1, 1));
        let price = Price { input: 2.5, output: 20.0, ..Price::FREE };
        assert_eq!(unpriced(&Prices::new([("openai:gpt-5".to_owned(), price.into())])), (0, 0));
    }

    #[test]
    fn agents_selectors_and_authors_of_summaries_are_asked_for_service_at_another_price() {
        let fast = ", parameters: {extra: {service_tier: priority}}";
        for (agent, selector, author) in [(fast, "", ""), ("", fast, ""), ("", "", fast), ("", "", "")] {
            let text = format!(
                "{{name: t, model: 'openai:gpt-5', task: hi, agents: [{{name: Ann{agent}}}, {{name: Ben}}], \
                 chat: {{participants: [Ann, Ben], pattern: {{group: {{select: {{model: {{attempts: 1{selector}}}}}}}}}, \
                 stop: {{max_turns: 2}}, summary: {{reflect: {{prompt: Sum up.{author}}}}}}}}}"
            );
            let team = parse(&text, "t.yaml", &Overrides::default()).unwrap_or_else(|e| panic!("{e}")).team;
            let unpriced = unpriced_models(&team, &Prices::default());
            assert_eq!(unpriced.is_empty(), !text.contains("priority"), "{text}");
        }
    }

    /// One agent with one tool, and an output schema if it is named.
    fn with_tool(model: &str, more: &str) -> TeamBound {
        bound(&format!(
            "{{name: t, model: {model}, task: hi, agents: [{{name: Ann, tools: [calculator], max_tool_rounds: 2, \
             parameters: {{max_tokens: 100}}{more}}}], chat: {{participants: [Ann], pattern: sequential}}}}"
        ))
    }

    #[test]
    fn the_table_of_models_says_how_tools_are_called() {
        let (known, unknown) = (with_tool("openai:gpt-4o-mini", ""), with_tool("openai:other", ""));
        assert_eq!(known.at_most.calls(), Some(3));
        assert!(unknown.at_most.calls().unwrap() > 30, "{unknown:?}");
        assert!(
            known.rests_on.iter().any(|of| of == "`openai:gpt-4o-mini` supports calling tools"),
            "{known:?}"
        );
        let tools = |bound: &TeamBound| bound.to_enforce().expects.tools;
        assert_eq!((tools(&known), tools(&unknown)), (Some(true), None));
    }

    #[test]
    fn a_bound_expects_only_what_its_agents_use_and_the_api_can_express() {
        let schema = |model: &str, schema: &str| {
            with_tool(model, &format!(", output_schema: {schema}")).to_enforce().expects.schema
        };
        let simple =
            "{type: object, properties: {a: {type: string}}, required: [a], additionalProperties: false}";
        let free = "{type: object}";
        assert_eq!(schema("openai:gpt-4o-mini", simple), Some(true));
        assert_eq!(schema("anthropic:claude-haiku-4-5", simple), Some(true));
        assert_eq!(schema("anthropic:claude-haiku-4-5", free), None);
        assert_eq!(with_tool("openai:gpt-4o-mini", "").to_enforce().expects.schema, None);
        // The second model of a list is not known.
        assert_eq!(with_tool("[openai:gpt-4o-mini, openai:other]", "").to_enforce().expects.tools, None);
        let by_text = with_tool("openai:gpt-4o-mini", ", tool_calling: text");
        assert_eq!(by_text.to_enforce().expects.tools, None);
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
        let loops: Vec<String> = bound.open_loops.iter().map(ToString::to_string).collect();
        assert_eq!(
            loops,
            ["nothing limits the length of a reply of `Ann` (line 1): set `parameters: {max_tokens: ...}`"]
        );
    }
}
