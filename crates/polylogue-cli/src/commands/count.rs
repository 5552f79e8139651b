//! `polylogue count`: the tokens of a text, before any call.

use polylogue_core::{Money, Price, Usage};
use polylogue_models::{Day, TokenCount, check_model_name};
use polylogue_runtime::models::count_local;
use serde_json::json;

use super::{unwritable, write};
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::screen::Sanitized;
use crate::text_arg::text_of;
use crate::user_config::default_model;
use crate::{args, user_prices};

pub(crate) fn run(cli: &args::Cli, args: &args::models::Count) -> Result<Exit, CliError> {
    let default = default_model(cli, &args::Models::default())?.map(|setting| setting.value);
    let Some(model) = args.model.clone().or(default) else {
        return Err(CliError::usage("no model is named, and there is no default model")
            .hint("`--model openai:gpt-4o-mini`, or `polylogue config set model openai:gpt-4o-mini`"));
    };
    check_model_name(&model)?;
    let text = text_of(&args.text)?;
    let is_local = model.starts_with("local:");
    let count = match is_local {
        true => TokenCount::Exact(count_local(&model, &text)?),
        false => TokenCount::of(&model, &text),
    };
    let usage = Usage { input: Some(count.most()), output: Some(0), ..Usage::default() };
    let prices = user_prices::read()?;
    let listed =
        || model.split_once([':', '/']).and_then(|(provider, name)| prices.of(provider, name, Day::today()));
    let price = if is_local { Some(Price::FREE) } else { listed() };
    let cost = price.and_then(|price| price.of(&usage));
    let is_exact = matches!(count, TokenCount::Exact(_));
    if args.json {
        let picodollars = cost.map(|cost| cost.picodollars);
        let row =
            json!({"model": model, "tokens": count.most(), "exact": is_exact, "picodollars": picodollars});
        write(&Sanitized::json(&row).map_err(unwritable)?)?;
        return Ok(Exit::Done);
    }
    let tokens = counted(count.most(), "token");
    let said = if is_exact || count.most() == 0 { tokens } else { format!("at most {tokens}") };
    let cost = match cost {
        None => "its price is unknown".to_owned(),
        // Nothing costs nothing, also of a model that is not free.
        Some(cost) if count.most() == 0 => cost.to_string(),
        Some(cost) => in_words(cost),
    };
    write(&Sanitized::row(&format!("{said} of {model}, {cost}")))?;
    Ok(Exit::Done)
}

/// What the text costs. Four decimals of a dollar would show a few tokens as free.
fn in_words(cost: Money) -> String {
    match cost.picodollars {
        0 => "free".to_owned(),
        1..100_000_000 => "less than $0.0001 as input".to_owned(),
        _ => format!("{cost} as input"),
    }
}
