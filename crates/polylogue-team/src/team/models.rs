//! Models, endpoints and speakers of a team.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use polylogue_config::{At, Switch};
use polylogue_core::Name;
use polylogue_models::{Provider, local_file, model_names};
use serde_json::{Map, Value};

use super::{SubTeam, Team};
use crate::Overrides;
use crate::agent::AgentKind;
use crate::chat::Summary;
use crate::compaction::CompactionKeys;
use crate::endpoint::{Endpoint, canonical};
use crate::private_agents::ModelUser;
use crate::source::Span;

impl Team {
    /// Gives every agent of the team and of the teams within it the model `model`, or several with commas between them.
    pub fn use_model(&mut self, model: &str) {
        self.model = Some(model.to_owned().into());
        self.sources.overrides.model = Some(model.to_owned());
        for agent in &mut self.agents {
            if let AgentKind::Model(keys) = &mut agent.kind {
                keys.model = None;
                forget_model(keys.compaction.as_mut());
            }
        }
        forget_model(self.compaction.as_mut());
        let inner = self.chats.iter_mut().map(|inner| &mut inner.chat);
        for chat in std::iter::once(&mut self.chat).chain(inner) {
            chat.forget_models();
        }
        for sub in &mut self.teams {
            sub.team.use_model(model);
        }
    }

    /// Returns the file of the model `name`, if it is computed in this process: `local:` and a path, which is relative to the
    /// folder of the outermost team file.
    pub fn model_file(&self, name: &str) -> Option<PathBuf> {
        let path = local_file(name)?;
        let file = self.sources.folder.join(&self.sources.file);
        Some(file.parent().unwrap_or(Path::new("")).join(path))
    }

    /// Returns the file in which replies of models are kept, if the team names one.
    pub fn cache_file(&self) -> Option<PathBuf> {
        let file = self.sources.folder.join(&self.sources.file);
        Some(file.parent().unwrap_or(Path::new("")).join(self.cache.as_deref()?))
    }

    /// Returns the model files that the team names outside of its folder, and the caller does not.
    pub fn outside_model_files(&self) -> Vec<String> {
        let Overrides { model, default_model, .. } = &self.sources.overrides;
        let is_callers = |name: &str| {
            [model, default_model].into_iter().flatten().any(|own| model_names(own).any(|own| own == name))
        };
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let leads_out = |path: &&Path| !path.components().all(is_plain) || self.is_linked_out(path);
        let files =
            self.models().into_iter().filter(|name| !is_callers(name)).filter_map(local_file).map(Path::new);
        files.filter(leads_out).map(|path| path.display().to_string()).collect()
    }

    /// Whether a link below the folder of the team file leads from `path` to a file outside of it.
    fn is_linked_out(&self, path: &Path) -> bool {
        let team = self.sources.folder.join(&self.sources.file);
        let folder = team.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        // What does not exist is read by nothing.
        real(folder).zip(real(&folder.join(path))).is_some_and(|(folder, file)| !file.starts_with(folder))
    }

    /// Gives the default model of the caller to those for which the files name none, if there are any.
    pub(crate) fn use_default_model(&mut self) {
        let default = self.sources.overrides.default_model.take();
        if let Some(model) = default.filter(|_| !self.answering_without_model().is_empty()) {
            self.model = Some(model.clone().into());
            self.sources.overrides.default_model = Some(model);
        }
    }

    /// Returns the [default model](crate::Overrides::default_model) of the caller, if something uses it.
    pub fn default_model(&self) -> Option<&str> {
        let overrides = &self.sources.overrides;
        overrides.default_model.as_deref().filter(|_| overrides.model.is_none())
    }

    /// Returns the models that are called, by name, each once, those of lists included.
    pub fn models(&self) -> BTreeSet<&str> {
        let users = self.model_users(&self.name, None).into_iter();
        let users = users.filter_map(|user| user.models);
        users.chain(self.summarizing_models()).flat_map(model_names).collect()
    }

    /// Returns the model with which the memory finds facts by meaning, if an agent has a memory and the file names one.
    pub fn embedding_model(&self) -> Option<&str> {
        self.memory.embed.as_ref().map(|model| model.as_str()).filter(|_| self.needs_memory())
    }

    /// The models that the files name for the summaries of compactions.
    pub(crate) fn summarizing_models(&self) -> Vec<&str> {
        let agents = self.agents.iter().filter_map(|agent| agent.model()?.compaction.as_ref());
        let own = agents.chain(&self.compaction).filter_map(|keys| keys.on()?.model.as_deref());
        let within = self.teams.iter().flat_map(|sub| sub.team.summarizing_models());
        own.map(String::as_str).chain(within).collect()
    }

    /// The models that the file names, each where it does: that of the team, those of agents, of selectors, and of summaries.
    pub(crate) fn named_models(&self) -> impl Iterator<Item = &At<String>> {
        let agents = self.agents.iter().filter_map(|agent| agent.model()?.model.as_ref());
        let reflected = self.checked_chats().filter_map(|(_, chat)| match &chat.summary {
            Summary::Reflect(reflect) => reflect.model.as_ref(),
            _ => None,
        });
        let compacting = self.agents.iter().filter_map(|agent| agent.model()?.compaction.as_ref());
        let compacting = compacting.chain(&self.compaction).filter_map(|keys| keys.on()?.model.as_ref());
        let selecting = self.checked_chats().filter_map(|(_, chat)| chat.pattern.selector()?.model.as_ref());
        self.model.iter().chain(agents).chain(reflected).chain(selecting).chain(compacting)
    }

    /// The lists of models that the files name, by file: that of this team, `file`, and those of the teams within it.
    pub(crate) fn places_of_models(&self, file: &Path) -> Vec<(PathBuf, Vec<(&str, &Span)>)> {
        let named = self.named_models().map(|list| (list.as_str(), &list.span));
        let of_memory = self.memory.embed.iter().map(|model| (model.as_str(), &model.span));
        let own = (file.to_owned(), named.chain(of_memory).collect());
        let folder = file.parent().unwrap_or(Path::new(""));
        let within = |sub: &SubTeam| folder.join(sub.file.as_str());
        let of_teams = self.teams.iter().flat_map(|sub| sub.team.places_of_models(&within(sub)));
        std::iter::once(own).chain(of_teams).collect()
    }

    /// Returns the names of all that call a model in this team and the teams within it, in the order of the file: agents with a
    /// model, speaker selectors, and the authors of reflected summaries.
    pub fn answering_models(&self) -> Vec<Name> {
        self.answering_models_as(&self.name)
    }

    /// The same when the outermost chat is called `name`, as that of a team within a team is.
    pub(crate) fn answering_models_as(&self, name: &Name) -> Vec<Name> {
        self.model_users(name, None).into_iter().map(|user| user.name).collect()
    }

    /// Lists those of the [answering_models](Self::answering_models) for which the files name no model.
    pub fn answering_without_model(&self) -> Vec<Name> {
        let users = self.model_users(&self.name, None).into_iter();
        users.filter(|user| user.models.is_none()).map(|user| user.name).collect()
    }

    /// All that call a model, each with its own, that of the team, or that of the team `around` it.
    fn model_users<'t>(&'t self, name: &'t Name, around: Option<&'t str>) -> Vec<ModelUser<'t>> {
        let own = self.own_model_users(name, around).into_iter();
        let usual = self.usual_model(around);
        own.chain(self.teams.iter().flat_map(|sub| sub.team.model_users(&sub.name, usual))).collect()
    }

    /// The model of those for which the files name none: that of the team, or of the team `around` it.
    pub(crate) fn usual_model<'t>(&'t self, around: Option<&'t str>) -> Option<&'t str> {
        self.model.as_deref().map(String::as_str).or(around)
    }

    /// The same as [`model_users`](Self::model_users), without those in the teams within this one.
    pub(crate) fn own_model_users<'t>(
        &'t self,
        name: &'t Name,
        around: Option<&'t str>,
    ) -> Vec<ModelUser<'t>> {
        let usual = self.usual_model(around);
        let agents = self.agents.iter().filter_map(|agent| {
            let keys = agent.model()?;
            let models = keys.model.as_ref().map(|model| model.as_str());
            Some(ModelUser { name: agent.name.value.clone(), models, parameters: &keys.parameters })
        });
        let private_agents = self.chats_as(name).flat_map(|(name, chat)| chat.private_agents(name));
        let own = agents.chain(private_agents);
        own.map(|user| ModelUser { models: user.models.or(usual), ..user }).collect()
    }

    /// Whether one of several models may be asked, here or in the teams within it: the files name a list of them, or leave the model of an
    /// agent to the caller, who can give a list.
    pub(crate) fn may_have_several_models(&self) -> bool {
        let users = self.model_users(&self.name, None).into_iter().map(|user| user.models);
        let mut lists = users.chain(self.summarizing_models().into_iter().map(Some));
        lists.any(|list| list.is_none_or(|list| model_names(list).nth(1).is_some()))
    }

    /// Returns the models that are called, here and in the teams within it, each with the extra fields that an agent calls it
    /// with, if any.
    pub fn extra_fields(&self) -> Vec<(&str, &Map<String, Value>)> {
        let users = self.model_users(&self.name, None).into_iter();
        let fields = users.flat_map(|ModelUser { models, parameters, .. }| {
            model_names(models.unwrap_or_default()).map(move |name| (name, &parameters.extra))
        });
        fields.filter(|(_, extra)| !extra.is_empty()).collect()
    }

    /// Returns the endpoints of the team and of the teams within it, by name. Where several say something of one, the outer
    /// team's word counts.
    pub fn all_endpoints(&self) -> BTreeMap<&str, &Endpoint> {
        let mut all: BTreeMap<&str, &Endpoint> = BTreeMap::new();
        for sub in &self.teams {
            for (name, endpoint) in sub.team.all_endpoints() {
                all.entry(name).or_insert(endpoint);
            }
        }
        all.extend(self.endpoints.iter().map(|(name, endpoint)| (canonical(name), &endpoint.value)));
        all
    }

    /// Returns the team's definition of the endpoint of `model`, a name such as `house:model-id`; `None` when it says nothing.
    pub fn endpoint_of(&self, model: &str) -> Option<(&str, &Endpoint)> {
        self.endpoint_called(canonical(model.split([':', '/']).next().unwrap_or_default().trim()))
    }

    /// The endpoint of the canonical name `name`: that of the outer team, if several have one.
    pub(super) fn endpoint_called(&self, name: &str) -> Option<(&str, &Endpoint)> {
        // Only providers have other names.
        let by_other_name = || {
            Provider::find(name)?;
            self.endpoints.iter().find(|(other, _)| canonical(other) == name)
        };
        let own = self.endpoints.get_key_value(name).or_else(by_other_name);
        own.map(|(name, endpoint)| (canonical(name), &endpoint.value))
            .or_else(|| self.teams.iter().find_map(|sub| sub.team.endpoint_called(name)))
    }
}

fn forget_model(compaction: Option<&mut At<Switch<CompactionKeys>>>) {
    if let Some(At { value: Switch::On(keys), .. }) = compaction {
        keys.model = None;
    }
}
