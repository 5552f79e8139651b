//! Parameters that models leave out of requests: the events that say so, or the error if they must not.

use std::fmt;
use std::sync::Arc;

use super::{ModelCall, Turn};
use crate::{AnyModel, Body, Model as _, ModelError, ModelErrorKind, Name, Params, Result};

/// The parameters of reasoning.
const REASONING: [&str; 2] = ["effort", "thinking"];

/// Parameters that are left out for one reason.
struct LeftOut {
    parameters: Vec<&'static str>,
    /// The output limit that leaves no room for them, if that is why. Otherwise the model does not accept them.
    output_limit: Option<u32>,
}

impl LeftOut {
    /// What `model` leaves out of requests with `params`.
    fn by(model: &AnyModel, params: &Params) -> Vec<Self> {
        let output_limit = params.max_tokens.filter(|_| model.least_to_reason(params).is_some());
        let has_no_room = |name: &&'static str| output_limit.is_some() && REASONING.contains(name);
        let (short, refused): (Vec<_>, Vec<_>) = model.ignored(params).into_iter().partition(has_no_room);
        let all =
            [Self { parameters: refused, output_limit: None }, Self { parameters: short, output_limit }];
        all.into_iter().filter(|left_out| !left_out.parameters.is_empty()).collect()
    }

    /// Whether `body` says that `who` left them out of requests to `model`. The limit may be another one in each request.
    fn is_noted_by(&self, body: &Body, who: &Name, model: &str) -> bool {
        let Body::ParametersIgnored { who: noted, model: of, parameters, output_limit } = body else {
            return false;
        };
        noted == who
            && **of == *model
            && output_limit.is_some() == self.output_limit.is_some()
            && parameters.iter().map(|name| &**name).eq(self.parameters.iter().copied())
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.parameters.iter().map(|name| format!("`{name}`")).collect();
        let names = names.join(", ");
        match self.output_limit {
            Some(limit) => write!(f, "the output limit of {limit} tokens leaves no room for {names}"),
            None => write!(f, "the model does not accept {names}"),
        }
    }
}

impl Turn<'_> {
    /// The events for the parameters that the model is known to leave out, once for each agent and model. Of several models, those that
    /// all leave out.
    pub(super) fn left_out(&self, ask: ModelCall<'_>) -> Result<Vec<Body>> {
        let (model, params) = (ask.model, ask.params);
        if !params.strict {
            return Ok(self.notes(model, params));
        }
        // Of several models, one that leaves something out is not asked, unless all do.
        let several = model.alternatives();
        let is_able = |model: &AnyModel| model.ignored(params).is_empty();
        let first = several.first().filter(|_| !several.iter().any(is_able));
        let reasons = LeftOut::by(first.unwrap_or(model), params);
        if reasons.is_empty() {
            return Ok(Vec::new());
        }
        let count: usize = reasons.iter().map(|left_out| left_out.parameters.len()).sum();
        let them = if count == 1 { "it" } else { "them" };
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        let error = ModelError::new(ModelErrorKind::Config, model.name(), reasons.join(", and "));
        Err(error.hint(format!("remove {them}, or set `strict: false` to have {them} left out")).into())
    }

    /// The events for the parameters that `model`, one of several that could be asked, left out of the request to which it replied.
    pub(super) fn left_out_by(&self, model: &str, ask: ModelCall<'_>) -> Vec<Body> {
        let found = ask.model.alternatives().iter().find(|one| one.name() == model);
        found.map(|model| self.notes(model, ask.params)).unwrap_or_default()
    }

    /// The events for what `model` leaves out, without those that the log has.
    fn notes(&self, model: &AnyModel, params: &Params) -> Vec<Body> {
        let (who, name) = (self.me(), model.name());
        let is_new = |left_out: &LeftOut| {
            let mut known = self.transcript.events().iter().chain(&self.journal);
            !known.any(|event| left_out.is_noted_by(&event.body, who, name))
        };
        let note = |LeftOut { parameters, output_limit }: LeftOut| Body::ParametersIgnored {
            who: who.clone(),
            model: name.into(),
            parameters: parameters.into_iter().map(Arc::from).collect(),
            output_limit,
        };
        LeftOut::by(model, params).into_iter().filter(is_new).map(note).collect()
    }
}
