//! Reasoning for which the output limit leaves no room: it is left out, and the log says why.

use std::sync::Arc;

use polylogue::models::Fallback;
use polylogue::{AnyModel, Assistant, Chat};
use polylogue_core::{Body, DeltaSink, Effort, Event, Model, ModelError, Params, Reply, Request, Thinking};

use crate::common::{cut_everywhere, log, solo_chat};

/// A model that takes no seed, and reasons with an output limit of so many tokens or more.
#[derive(Clone)]
struct Reasoner {
    name: &'static str,
    least: u32,
}

const LONG: Reasoner = Reasoner { name: "test:long", least: 2048 };

impl Model for Reasoner {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        Ok(Reply::new("word"))
    }

    fn ignored(&self, params: &Params) -> Vec<&'static str> {
        let is_short = self.least_to_reason(params).is_some();
        let is_ignored = |name: &&str| *name == "seed" || is_short && matches!(*name, "effort" | "thinking");
        params.names().into_iter().filter(is_ignored).collect()
    }

    fn least_to_reason(&self, params: &Params) -> Option<u64> {
        params.max_tokens.filter(|most| *most < self.least).map(|_| self.least.into())
    }
}

fn asked(max_tokens: u32) -> Params {
    let (effort, thinking) = (Some(Effort::Low), Some(Thinking::Summary));
    Params { seed: Some(7), effort, thinking, max_tokens: Some(max_tokens), ..Params::default() }
}

fn chat(model: AnyModel, params: Params) -> Chat {
    let agent = Assistant::new("Ann", model).unwrap().params(params);
    solo_chat("one", agent, 3)
}

/// What the log says of parameters that were left out, by model.
fn notes(events: &[Arc<Event>]) -> Vec<String> {
    let note = |event: &Arc<Event>| match &event.body {
        Body::ParametersIgnored { model, parameters, output_limit, .. } => {
            let limit = output_limit.map(|limit| format!(" in {limit} tokens")).unwrap_or_default();
            Some(format!("{model}: {}{limit}", parameters.join(", ")))
        }
        _ => None,
    };
    events.iter().filter_map(note).collect()
}

#[tokio::test]
async fn reasoning_without_room_is_noted_once_with_the_limit_wherever_the_log_is_cut() {
    for (max_tokens, expected) in [
        (2047, vec!["test:long: seed", "test:long: effort, thinking in 2047 tokens"]),
        (2048, vec!["test:long: seed"]),
    ] {
        let events = cut_everywhere("Talk.", |calls| chat(calls.through(LONG), asked(max_tokens))).await;
        assert_eq!(notes(&events), expected, "{max_tokens}");
    }
}

#[tokio::test]
async fn reasoning_without_room_is_an_error_that_names_the_limit_if_nothing_may_be_left_out() {
    let params = Params { strict: true, ..asked(1000) };
    let run = chat(AnyModel::new(LONG), params).run_in(&mut log().await, "Talk.").await;
    let error = run.map(|run| run.status).unwrap_err().to_string();
    let expected = "the model does not accept `seed`, and the output limit of 1000 tokens leaves no room for `effort`, `thinking`";
    assert!(error.contains(expected), "{error}");
}

/// The first one replies: what it left out is noted, and nothing of the other one.
#[tokio::test]
async fn of_several_models_the_one_that_replied_is_named_with_the_limit() {
    let short = Reasoner { name: "test:short", least: 0 };
    for (models, expected) in [
        ([LONG, short.clone()], "test:long: effort, thinking in 1000 tokens"),
        ([short, LONG], "test:short: seed"),
    ] {
        let model = AnyModel::new(Fallback::new(models.map(AnyModel::new)));
        let mut log = log().await;
        chat(model, asked(1000)).run_in(&mut log, "Talk.").await.unwrap();
        let notes = notes(&log.events().await);
        assert!(notes.contains(&expected.to_owned()), "{notes:?}");
        let of_room = notes.iter().filter(|note| note.contains("in 1000 tokens")).count();
        assert_eq!(of_room, usize::from(expected.contains("in 1000 tokens")), "{notes:?}");
    }
}
