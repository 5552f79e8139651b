//! `polylogue models`: the models of a provider, with limits, capabilities and prices.

use std::path::Path;
use std::time::{Duration, SystemTime};

use polylogue_config::suggest;
use polylogue_core::{ModelError, ModelErrorKind, Price, PriceTier};
use polylogue_models::{Day, Endpoint, Env, KnownModel, Prices, Provider, ServedModel, provider_elsewhere};
use polylogue_runtime::address::shown;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{unwritable, write_rows};
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::place::of_model_lists;
use crate::screen::Sanitized;
use crate::stderr::print_note;
use crate::{args, place, trust, user_prices};

/// How long a provider's list is kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// A model that is listed.
struct Row {
    name: String,
    known: Option<KnownModel>,
    /// What the server says of it.
    served: Option<ServedModel>,
    /// The user's own price.
    own: Option<Price>,
}

impl Row {
    fn max_input(&self) -> Option<u64> {
        let served = || self.served.as_ref()?.max_input;
        self.known.as_ref().and_then(|known| known.max_input).or_else(served)
    }

    fn max_output(&self) -> Option<u64> {
        let served = || self.served.as_ref()?.max_output;
        self.known.as_ref().and_then(|known| known.max_output).or_else(served)
    }

    /// What it can do, as the table says; or that it makes vectors and no replies, as the server says.
    fn can(&self) -> Option<Vec<&str>> {
        if self.served.as_ref().is_some_and(|served| served.embeds) {
            return Some(vec!["embedding"]);
        }
        self.known.as_ref().map(|known| known.can.iter().map(String::as_str).collect())
    }
}

pub(crate) async fn run(cli: &args::Cli, args: &args::models::List) -> Result<Exit, CliError> {
    let Some(name) = &args.provider else { return providers(args) };
    let (name, prices) = (name.to_lowercase(), user_prices::read()?);
    let table: Vec<Row> =
        KnownModel::of(&name).map(|known| row(&prices, &name, known.model.clone(), Some(known))).collect();
    let provider = Provider::find(&name);
    if name == "local" {
        let what = "models in the process are files, and are not listed";
        return Err(CliError::usage(what).hint("name one by its path: `local:models/qwen3-4b-q4_k_m.gguf`"));
    }
    if provider.is_none() && table.is_empty() {
        let meant = provider_elsewhere(&name).map(|own| format!("did you mean `{own}`?"));
        let hint = meant.unwrap_or_else(|| suggest::hint(&name, names()));
        return Err(CliError::usage(format!("there is no provider `{name}`")).hint(hint));
    }
    if provider.is_none() && args.refresh {
        let hint = "leave out `--refresh` for the models of the table";
        return Err(CliError::usage(format!("`{name}` is only in the table: it cannot be asked")).hint(hint));
    }
    if provider.is_none() {
        print_note(&format!(
            "`{name}` is only in the table: its models can be used over `compatible` or an endpoint of yours"
        ));
    }
    let env = trust::of_folder(&place::or_none(&cli.named_store()))?;
    let served = match provider {
        Some(provider) if !args.offline => served(provider, &env, args.refresh).await?,
        _ => None,
    };
    let found = |model: ServedModel| {
        let known = KnownModel::find(&name, &model.name);
        Row { served: Some(model.clone()), ..row(&prices, &name, model.name, known) }
    };
    let mut rows = served.map_or(table, |models| models.into_iter().map(found).collect());
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    print(&name, &rows, args)
}

/// The row of `model` at `provider`, with what is known of it.
fn row(prices: &Prices, provider: &str, model: String, known: Option<KnownModel>) -> Row {
    let own = prices.own(provider, &model, Day::today()).cloned();
    Row { name: model, known, served: None, own }
}

/// The providers whose models can be used, sorted.
fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Provider::all().iter().map(Provider::name).collect();
    names.sort_unstable();
    names
}

fn providers(args: &args::models::List) -> Result<Exit, CliError> {
    for name in names() {
        let models = KnownModel::of(name).count();
        let line = match args.json {
            true => Sanitized::json(&json!({"provider": name, "models": models})).map_err(unwritable)?,
            false if models == 0 => Sanitized::row(&format!("{name:<16} asks the server")),
            false => Sanitized::row(&format!("{name:<16} {} in the table", counted(models as u64, "model"))),
        };
        write_rows(&line, args.json)?;
    }
    print_note(&format!(
        "the table is of {}; `polylogue models PROVIDER` lists models",
        KnownModel::table_date()
    ));
    Ok(Exit::Done)
}

/// The models that the provider lists. `None` if it cannot be asked or does not answer, the table knows models of it, and `refresh`
/// does not insist on its answer.
async fn served(provider: &Provider, env: &Env, refresh: bool) -> Result<Option<Vec<ServedModel>>, CliError> {
    let config = match provider.config(env) {
        Ok(config) => config,
        Err(error) => return unanswered(provider, error, refresh),
    };
    if config.needs_key && config.key.is_none() {
        let variables = config.key_variables.join("` or `");
        let error = ModelError::new(
            ModelErrorKind::Config,
            provider.name(),
            format!("no key is set (`{variables}`)"),
        );
        return unanswered(provider, error.hint("set it to ask the provider"), refresh);
    }
    let kept = of_model_lists().map(|folder| folder.join(format!("{}.json", provider.name())));
    // The list of a local server changes with every download.
    let kept = kept.filter(|_| !provider.is_local());
    let address = shown(&config.base_url);
    if let Some(models) = kept.as_deref().filter(|_| !refresh).and_then(|file| recent(file, &address)) {
        return Ok(Some(models));
    }
    let models = async { Endpoint::new(config)?.models().await };
    match models.await {
        Ok(models) => {
            let list = Kept { address, models };
            if let Some(file) = kept {
                list.write(&file);
            }
            Ok(Some(list.models))
        }
        Err(error) => unanswered(provider, error, refresh),
    }
}

/// Falls back to the table, if it knows models of the provider and was not ruled out by `refresh`.
fn unanswered(
    provider: &Provider,
    error: ModelError,
    refresh: bool,
) -> Result<Option<Vec<ServedModel>>, CliError> {
    let is_in_table = KnownModel::of(provider.name()).next().is_some();
    if is_in_table && !refresh {
        print_note(&format!("{}: these are the models of the table", error.message));
        return Ok(None);
    }
    let table = match is_in_table {
        true => "without `--refresh`, the models of the table are listed",
        false => "the table has none of its models",
    };
    let hint = error.hint.iter().map(String::as_str).chain([table]).collect::<Vec<_>>().join("; ");
    Err(match error.kind {
        ModelErrorKind::Config => CliError::usage(error.message),
        _ => CliError::failed(error.message),
    }
    .hint(hint))
}

/// A list that is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Where it is from.
    address: String,
    models: Vec<ServedModel>,
}

/// The models in a file that is not too old, if they are those of the same server.
fn recent(file: &Path, address: &str) -> Option<Vec<ServedModel>> {
    let written = std::fs::metadata(file).and_then(|data| data.modified()).ok()?;
    let age = SystemTime::now().duration_since(written).ok()?;
    let text = std::fs::read(file).ok().filter(|_| age < KEPT)?;
    let kept: Kept = serde_json::from_slice(&text).ok()?;
    (kept.address == address).then_some(kept.models)
}

impl Kept {
    /// Keeps the models for the next time. That it cannot is not an error: the provider is asked again.
    fn write(&self, file: &Path) {
        if let (Some(folder), Ok(text)) = (file.parent(), serde_json::to_vec(self))
            && std::fs::create_dir_all(folder).is_ok()
        {
            let _ = std::fs::write(file, text);
        }
    }
}

fn print(provider: &str, rows: &[Row], args: &args::models::List) -> Result<Exit, CliError> {
    if rows.is_empty() {
        let place = if args.offline { "the table" } else { "the server" };
        print_note(&format!("{place} has no models of `{provider}`"));
    }
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
    for row in rows {
        let line = match args.json {
            true => Sanitized::json(&as_json(provider, row)).map_err(unwritable)?,
            false => Sanitized::row(&line(row, width, args.price)),
        };
        write_rows(&line, args.json)?;
    }
    if args.price && !args.json {
        let date = KnownModel::table_date();
        print_note(&format!("list prices in US dollars per million tokens, as of {date}"));
        if rows.iter().any(|row| row.own.is_some()) {
            print_note("`*`: your own price of today");
        }
    }
    Ok(Exit::Done)
}

fn line(row: &Row, width: usize, price: bool) -> String {
    let Row { name, known, own, .. } = row;
    let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), short);
    let (input, output) = (tokens(row.max_input()), tokens(row.max_output()));
    let mut line = format!("{name:<width$}  {input:>6} in  {output:>6} out");
    let can = row.can().filter(|can| !can.is_empty());
    let can = can.map(|can| format!("  {}", can.join(" "))).unwrap_or_default();
    let Some(known) = known else {
        let own = own.as_ref().filter(|_| price).map(|own| in_words(own, "*")).unwrap_or_default();
        let has_limits = row.max_input().or_else(|| row.max_output()).is_some();
        let limits = if has_limits { line } else { format!("{name:<width$}") };
        return format!("{limits}  not in the table{own}{can}");
    };
    if price {
        line.push_str(&own.as_ref().map_or_else(|| in_words(&known.price(), ""), |own| in_words(own, "*")));
    }
    line + &can
}

/// `price` as a part of a line, with a `mark` behind it.
fn in_words(price: &Price, mark: &str) -> String {
    let named = [
        ("cached", price.cached),
        ("written", price.write),
        ("written for longer", price.write_long),
        ("sound", price.audio),
    ];
    let named = named.into_iter().filter_map(|(what, dollars)| Some(format!(", {what} {}", dollars?)));
    let named: String = named.collect();
    let tiers: String = price.tiers.iter().map(tier_in_words).collect();
    format!("  ${} in{named}, ${} out{tiers}{mark}", price.input, price.output)
}

/// What else longer requests cost.
fn tier_in_words(tier: &PriceTier) -> String {
    let named = [("in", tier.input), ("cached", tier.cached), ("written", tier.write), ("out", tier.output)];
    let named = named.into_iter().filter_map(|(what, dollars)| Some(format!("${} {what}", dollars?)));
    format!("; above {}: {}", short(tier.over), named.collect::<Vec<_>>().join(", "))
}

/// In thousands or millions of tokens.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

fn as_json(provider: &str, row: &Row) -> Value {
    let known = row.known.as_ref();
    json!({
        "provider": provider,
        "model": row.name,
        "max_input": row.max_input(),
        "max_output": row.max_output(),
        "can": row.can(),
        "price": row.own.clone().or_else(|| known.map(KnownModel::price)),
        "price_date": known.filter(|_| row.own.is_none()).map(|_| KnownModel::table_date()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_shown_with_all_that_is_billed() {
        let tier = PriceTier { over: 200_000, input: Some(6.0), output: Some(22.5), ..PriceTier::default() };
        let (cached, write, write_long) = (Some(0.3), Some(3.75), Some(6.0));
        let price =
            Price { input: 3.0, cached, write, write_long, output: 15.0, tiers: vec![tier], ..Price::FREE };
        assert_eq!(
            in_words(&price, "*"),
            "  $3 in, cached 0.3, written 3.75, written for longer 6, $15 out; above 200k: $6 in, $22.5 out*"
        );
        let price = Price { input: 1.0, audio: Some(32.0), output: 2.0, ..Price::FREE };
        assert_eq!(in_words(&price, ""), "  $1 in, sound 32, $2 out");
    }

    #[test]
    fn tokens_are_shown_in_thousands_and_millions() {
        assert_eq!([512, 8_192, 128_000, 1_048_576].map(short), ["512", "8k", "128k", "1.0M"]);
    }
}
