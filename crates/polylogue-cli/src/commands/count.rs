//! `polylogue count`: the tokens of a text, before any call.

use polylogue_config::suggest;
use polylogue_core::{Money, Price, Usage};
use polylogue_models::{
    Day, Prices, Provider, TokenCount, check_model_name, local_file, model_names, provider_elsewhere,
};
use polylogue_runtime::models::count_local;
use serde_json::{Value, json};

use super::{unwritable, write};
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::screen::Sanitized;
use crate::stderr::print_note;
use crate::text_arg::text_of;
use crate::user_config::default_model;
use crate::{args, user_prices};

pub(crate) fn run(cli: &args::Cli, args: &args::models::Count) -> Result<Exit, CliError> {
    let default = default_model(cli, &args::Models::default())?.map(|setting| setting.value);
    let Some(model) = args.model.clone().or(default) else {
        return Err(CliError::usage("no model is named, and there is no default model")
            .hint("`--model openai:gpt-4o-mini`, or `polylogue config set model openai:gpt-4o-mini`"));
    };
    let names: Vec<&str> = model_names(&model).collect();
    for name in if names.is_empty() { &[""][..] } else { names.as_slice() } {
        check_model_name(name)?;
        note_of_slip(name);
    }
    let (text, prices) = (text_of(&args.text)?, user_prices::read()?);
    for name in names {
        let one = Counted::of(name, &text, &prices)?;
        let row = if args.json { Sanitized::json(&one.json()).map_err(unwritable)? } else { one.row() };
        write(&row)?;
    }
    Ok(Exit::Done)
}

/// Says which provider is probably meant, of a name that is none here. An endpoint of a team may have that name.
fn note_of_slip(name: &str) {
    let Some((provider, model)) = name.split_once([':', '/']).filter(|_| local_file(name).is_none()) else {
        return;
    };
    let known = || Provider::all().iter().map(Provider::name);
    let meant = provider_elsewhere(provider).or_else(|| suggest::closest(provider, known()));
    if let (Some(meant), None) = (meant, Provider::find(provider.trim())) {
        print_note(&format!("there is no provider `{provider}`: did you mean `{meant}:{model}`?"));
    }
}

/// The tokens of a text for one model.
struct Counted<'m> {
    model: &'m str,
    count: TokenCount,
    cost: Option<Money>,
}

impl<'m> Counted<'m> {
    fn of(model: &'m str, text: &str, prices: &Prices) -> Result<Self, CliError> {
        let is_local = local_file(model).is_some();
        let (provider, name) = model.split_once([':', '/']).unwrap_or(("", model));
        // The name of a deployment says nothing of its model.
        let is_deployment = provider.eq_ignore_ascii_case("azure");
        let count = match is_local {
            true => TokenCount::Exact(count_local(model, text)?),
            false => TokenCount::of(if is_deployment { "" } else { model }, text),
        };
        let price = match (is_local, is_deployment) {
            (true, _) => Some(Price::FREE),
            (_, true) => prices.own(provider, name, Day::today()).cloned(),
            _ => prices.of(provider, name, Day::today()),
        };
        let usage = Usage { input: Some(count.most()), output: Some(0), ..Usage::default() };
        Ok(Self { model, count, cost: price.and_then(|price| price.of(&usage)) })
    }

    fn is_exact(&self) -> bool {
        matches!(self.count, TokenCount::Exact(_))
    }

    fn json(&self) -> Value {
        let Self { model, count, cost } = self;
        let picodollars = cost.map(|cost| cost.picodollars);
        json!({"model": model, "tokens": count.most(), "exact": self.is_exact(), "picodollars": picodollars})
    }

    fn row(&self) -> Sanitized {
        let Self { model, count, cost } = self;
        let tokens = counted(count.most(), "token");
        let said = if self.is_exact() || count.most() == 0 { tokens } else { format!("at most {tokens}") };
        let cost = match cost {
            None => "its price is unknown".to_owned(),
            // Nothing costs nothing, also of a model that is not free.
            Some(cost) if count.most() == 0 => cost.to_string(),
            Some(cost) => in_words(*cost),
        };
        Sanitized::row(&format!("{said} of {model}, {cost}"))
    }
}

/// What the text costs. Four decimals of a dollar would show a few tokens as free.
fn in_words(cost: Money) -> String {
    match cost.picodollars {
        0 => "free".to_owned(),
        1..100_000_000 => "less than $0.0001 as input".to_owned(),
        _ => format!("{cost} as input"),
    }
}
