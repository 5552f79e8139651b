//! Models of providers that are not known.

use polylogue_models::Provider;

use crate::codes;
use crate::diagnostic::{Diagnostics, Severity};
use crate::suggest;
use crate::team::Team;

impl Team {
    /// The models of which neither the provider is known nor an endpoint of the team, each at the first place that names it: errors, or
    /// warnings if the team has a script, by which it can run.
    pub(crate) fn unknown_models(&self) -> Diagnostics {
        let mut found = Diagnostics::default();
        let endpoints = self.all_endpoints();
        let own = endpoints.keys().copied();
        let known: Vec<&str> = own.chain(Provider::all().iter().map(|provider| provider.name())).collect();
        for model in self.models() {
            let Some((provider, name)) = model.split_once([':', '/']) else { continue };
            let provider = provider.trim();
            let is_known = Provider::find(provider).is_some() || endpoints.contains_key(provider);
            if is_known || self.model_file(model).is_some() {
                continue;
            }
            let meant = suggest::closest(provider, known.iter().copied());
            // This is said when the file is read.
            if meant.is_some() && !self.script.is_empty() {
                continue;
            }
            let hint = match meant {
                Some(meant) => format!("did you mean `{meant}:{name}`?"),
                None => format!(
                    "say where it is, `endpoints: {{{provider}: {{base_url: ...}}}}`, or name a known provider, such as `openai` or `ollama`"
                ),
            };
            let severity = if self.script.is_empty() { Severity::Error } else { Severity::Warning };
            let message = format!("there is no provider `{provider}`");
            found.append(self.finding_of_model((severity, codes::UNKNOWN_MODEL), model, &message, &hint));
        }
        found
    }
}
