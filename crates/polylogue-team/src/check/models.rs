//! Models: of unknown providers, and those of the table that ships, with misspelled names or more tools than they take.

use polylogue::agents::tooling::ToolCalling;
use polylogue::tools::search::ToolSearch;
use polylogue_config::At;
use polylogue_models::{EndpointModel, Env, KnownModel, Models, Provider, model_names, provider_elsewhere};

use crate::agent::ModelKeys;
use crate::built_in::{FILES, file_tool_names};
use crate::codes;
use crate::diagnostic::{Diagnostics, Report};
use crate::outline::Outline;
use crate::reasoning::Reasoning;
use crate::suggest;
use crate::team::Team;
use crate::tooling::ToolEntry;

/// Names of the file are not looked up if `given` replaces them.
pub(super) fn check(team: &Team, outline: &Outline<'_>, given: Option<&str>, report: &mut Report<'_>) {
    for list in team.named_models().filter(|list| list.ok && given.is_none()) {
        for model in model_names(list) {
            warn_of_slip(team, model, list, report);
        }
    }
    for agent in outline.agents() {
        let Some(keys) = agent.model() else { continue };
        for model in models_of(team, keys, given) {
            check_number_of_tools(team, agent.name.as_str(), keys, model, report);
        }
    }
}

/// The models of an agent: those that the caller has `given`, or else its own or those of the team.
fn models_of<'m>(
    team: &'m Team,
    keys: &'m ModelKeys,
    given: Option<&'m str>,
) -> impl Iterator<Item = &'m str> {
    let named = || keys.model.as_ref().or(team.model.as_ref()).map(|list| list.value.as_str());
    given.or_else(named).into_iter().flat_map(model_names)
}

impl Team {
    /// Checks for a program that has no models of its own: returns the models of which neither the provider is known nor an
    /// endpoint of the team, wherever they are named. They are errors, or warnings if the team has a script, by which it can
    /// run.
    ///
    /// ```
    /// use polylogue_team::{Overrides, parse};
    /// let text = "{name: t, model: 'acme:big', agents: [{name: Ann}], chat: {participants: [Ann], stop: {max_turns: 1}}}";
    /// let loaded = parse(text, "t.yaml", &Overrides::default())?;
    /// let unknown = loaded.team.unknown_models();
    /// assert!(unknown.to_string().starts_with("error: there is no provider `acme`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unknown_models(&self) -> Diagnostics {
        let endpoints = self.all_endpoints();
        let own = endpoints.keys().copied();
        let known: Vec<&str> = own.chain(Provider::all().iter().map(|provider| provider.name())).collect();
        let mut models = self.models();
        models.extend(self.embedding_model());
        self.unusable_models(models, |model| {
            let (provider, name) = model.split_once([':', '/'])?;
            let provider = provider.trim();
            let is_known = Provider::find(provider).is_some() || endpoints.contains_key(provider);
            if is_known || self.model_file(model).is_some() {
                return None;
            }
            let meant = suggest::closest(provider, known.iter().copied());
            let hint = match meant.or_else(|| provider_elsewhere(provider)) {
                Some(meant) => format!("did you mean `{meant}:{name}`?"),
                None => format!(
                    "say where it is, `endpoints: {{{provider}: {{base_url: ...}}}}`, or name a known provider, such as `openai` or `ollama`"
                ),
            };
            Some((format!("there is no provider `{provider}`"), hint))
        })
    }
}

/// The provider and the name of a model, unless the team says that another server has it.
pub(super) fn at_provider<'m>(team: &Team, model: &'m str) -> Option<(&'static Provider, &'m str)> {
    let (provider, name) = model.split_once([':', '/'])?;
    let is_other = team.endpoints.get(provider).is_some_and(|own| own.is_other_server());
    (!is_other).then(|| Provider::find(provider))?.map(|found| (found, name))
}

/// Warns of a name that the table does not have, if one of its names differs by a slip of the pen. Other unknown names may be
/// newer than the table.
fn warn_of_slip(team: &Team, model: &str, at: &At<String>, report: &mut Report<'_>) {
    let Some((provider, name)) = at_provider(team, model) else { return };
    if report.full_of_warnings() || KnownModel::find(provider.name(), name).is_some() {
        return;
    }
    let of_table = KnownModel::of(provider.name());
    let Some(meant) = of_table.map(|known| known.model).find(|known| is_slip(name, known)) else { return };
    let message = format!("no model of `{}` is known as `{name}`", provider.name());
    let hint = format!("did you mean `{}:{meant}`?", provider.name());
    report.warning(codes::UNKNOWN_MODEL, &at.span, message, hint);
}

/// Whether one word of a name is another, with the same digits: another number is another model.
fn is_slip(given: &str, known: &str) -> bool {
    const SHORTEST: usize = 4;
    let words =
        |name: &'_ str| name.split(['-', '.', '/', ':', '_']).map(ToOwned::to_owned).collect::<Vec<_>>();
    let (given, known) = (words(given), words(known));
    let digits = |word: &str| word.chars().filter(char::is_ascii_digit).collect::<String>();
    let mut others = given.iter().zip(&known).filter(|(one, other)| one != other);
    let Some((one, other)) = others.next().filter(|_| given.len() == known.len()) else { return false };
    let is_long = one.len() >= SHORTEST && other.len() >= SHORTEST;
    let is_near = is_long && suggest::closest(one, [other.as_str()]).is_some() || is_exchanged(one, other);
    is_near && digits(one) == digits(other) && others.next().is_none()
}

/// Whether two words of any length differ only in the order of at least three letters, such as `gtp`, or in a letter that is doubled.
fn is_exchanged(one: &str, other: &str) -> bool {
    const SHORTEST: usize = 3;
    let sorted = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let single = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.dedup();
        letters
    };
    one.len() >= SHORTEST && sorted(one) == sorted(other) || single(one) == single(other)
}

/// Reports more tools than a request to a model can have, as far as the file says which tools there are: of an MCP server, those that
/// `include` names. Of others it says them later, and then the call is refused.
fn check_number_of_tools(team: &Team, who: &str, keys: &ModelKeys, model: &str, report: &mut Report<'_>) {
    let count = sent_tools(team, keys);
    // All models take so many.
    if count <= ToolSearch::DEFAULT_ABOVE || report.full() {
        return;
    }
    let known = at_provider(team, model).and_then(|(provider, _)| known_model(provider, model));
    if let Some(most) = known.and_then(|known| known.max_tools()).filter(|most| count > *most) {
        let message = format!(
            "a request to `{model}`, the model of `{who}`, can have at most {most} tools, and the agent has {count}"
        );
        let hint = "give it fewer tools, or let it search them: that is the default of `tool_search`";
        report.error_with_hint(keys.tools.key(), message, hint);
    }
}

/// How many tools are at least sent with each request of an agent.
fn sent_tools(team: &Team, keys: &ModelKeys) -> usize {
    let is_written = !matches!(*keys.tool_calling, ToolCalling::Auto | ToolCalling::Native);
    if is_written || matches!(keys.reasoning.as_deref(), Some(Reasoning::Rewoo(_))) {
        return 0;
    }
    let count = |given: &ToolEntry| match given {
        ToolEntry::Mcp(server) => server.include.len(),
        ToolEntry::Own(own) if *own.tool == FILES => file_tool_names().len(),
        ToolEntry::Own(own) => team.operations(&own.tool).len().max(1),
    };
    let own: usize = keys.tools.iter().map(|given| count(&given.value)).sum();
    // A search leaves these out.
    let others = keys.suggests_tools.len() + keys.agent_tools.len() + keys.handoffs.len();
    match keys.tool_search.on() {
        Some(search) if own + others > search.above => others,
        _ => own + others,
    }
}

/// `model` at any address, without a key.
pub(super) fn known_model(provider: &Provider, model: &str) -> Option<EndpointModel> {
    let models = Models::new(Env::default());
    let found = models.model(model);
    let elsewhere =
        || models.define(provider.config_at("http://127.0.0.1")).and_then(|_| models.model(model));
    found.or_else(|_| elsewhere()).ok()
}
