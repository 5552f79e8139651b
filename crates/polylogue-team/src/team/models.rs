//! Models, endpoints and speakers of a team.

use std::collections::{BTreeMap, BTreeSet};

use polylogue_core::Name;

use super::Team;
use crate::agent::AgentKind;
use crate::chat::Summary;
use crate::endpoint::{Endpoint, canonical};

impl Team {
    /// Gives every agent of the team and of the teams within it the model `model`.
    pub fn use_model(&mut self, model: &str) {
        self.model = Some(model.to_owned());
        self.sources.overrides.model.clone_from(&self.model);
        for agent in &mut self.agents {
            if let AgentKind::Model(keys) = &mut agent.kind {
                keys.model = None;
            }
        }
        let inner = self.chats.iter_mut().map(|inner| &mut inner.chat);
        for chat in std::iter::once(&mut self.chat).chain(inner) {
            chat.forget_models();
        }
        for sub in &mut self.teams {
            sub.team.use_model(model);
        }
    }

    /// The models that are asked for, by name, each once.
    #[must_use]
    pub fn models(&self) -> BTreeSet<&str> {
        let summaries = self.all_chats().filter_map(|(_, chat)| match &chat.summary {
            Summary::Reflect(reflect) => reflect.model.as_deref().map(String::as_str),
            _ => None,
        });
        let selectors = self.all_chats().filter_map(|(_, chat)| chat.pattern.selector()?.model.as_deref());
        let agents = self.agents.iter().filter_map(|agent| Some(agent.model()?.model.as_ref()?.as_str()));
        let within = self.teams.iter().flat_map(|sub| sub.team.models());
        let own = self.model.as_deref().into_iter().chain(agents);
        own.chain(selectors).chain(summaries).chain(within).collect()
    }

    /// Names of all that call a model in this team and the teams within it, in the order of the file: agents with a model,
    /// speaker selectors, and the authors of reflected summaries.
    #[must_use]
    pub fn voices(&self) -> Vec<Name> {
        self.voices_as(&self.name)
    }

    /// The same when the outermost chat is called `name`, as that of a team within a team is.
    pub(crate) fn voices_as(&self, name: &Name) -> Vec<Name> {
        let agents =
            self.agents.iter().filter(|agent| agent.model().is_some()).map(|agent| agent.name.value.clone());
        let private_agents = self.chats_as(name).flat_map(|(name, chat)| chat.private_agents(name));
        let within = self.teams.iter().flat_map(|sub| sub.team.voices_as(&sub.name));
        agents.chain(private_agents).chain(within).collect()
    }

    /// The endpoints of the team and of the teams within it, by name. Where several say something of one, the outer
    /// team's word counts.
    #[must_use]
    pub fn all_endpoints(&self) -> BTreeMap<&str, &Endpoint> {
        let mut all: BTreeMap<&str, &Endpoint> = BTreeMap::new();
        for sub in &self.teams {
            for (name, endpoint) in sub.team.all_endpoints() {
                all.entry(name).or_insert(endpoint);
            }
        }
        all.extend(self.endpoints.iter().map(|(name, endpoint)| (canonical(name), endpoint)));
        all
    }

    /// What the team says of the endpoint of `model`, a name such as `house:model-id`; `None` when it says nothing.
    #[must_use]
    pub fn endpoint_of(&self, model: &str) -> Option<(&str, &Endpoint)> {
        let name = canonical(model.split([':', '/']).next().unwrap_or_default().trim());
        self.all_endpoints().into_iter().find(|(other, _)| *other == name)
    }
}
