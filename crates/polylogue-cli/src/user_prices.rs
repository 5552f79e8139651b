//! The user's own prices of models, in a file: discounts, changed prices, models that the table lacks.

use std::io;
use std::path::PathBuf;

use polylogue_models::{Day, KnownModel, Prices};
use polylogue_team::read_prices;

use crate::error::CliError;
use crate::limit::counted;
use crate::place;

/// The days after which list prices are called old.
const OLD: u64 = 180;

/// The user's prices; none when there is no file.
///
/// # Errors
/// When the file cannot be read, or is wrong; when the environment variable names one that is missing.
pub(crate) fn read() -> Result<Prices, CliError> {
    found().map(|(prices, _)| prices)
}

/// The user's prices, and the file that they are in.
fn found() -> Result<(Prices, Option<PathBuf>), CliError> {
    let named = std::env::var_os(place::PRICES).filter(|path| !path.is_empty());
    let is_named = named.is_some();
    let Some(path) = named.map(PathBuf::from).or_else(place::of_prices) else {
        return Ok((Prices::default(), None));
    };
    let shown = path.display().to_string();
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok((read_prices(&text, &shown)?, Some(path))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => Ok((Prices::default(), None)),
        Err(error) => {
            let error = CliError::usage(format!("your prices cannot be read from `{shown}`: {error}"));
            Err(match is_named {
                true => error.hint(format!("`{}` names the file", place::PRICES)),
                false => error,
            })
        }
    }
}

/// What `doctor` says of prices: of which day the table is, and which file is above it.
///
/// # Errors
/// As [`read`].
pub(crate) fn findings() -> Result<Vec<String>, CliError> {
    let date = KnownModel::table_date();
    let age = date.parse::<Day>().map_or(0, |made| made.days_until(Day::today()));
    let mut lines = vec![format!("list prices of {date}")];
    if age > OLD {
        lines.push(format!("they are {age} days old: check them, and write those that changed to your file"));
    }
    if let (prices, Some(path)) = found()? {
        let models = counted(prices.models().count() as u64, "model");
        lines.push(format!("your own of {models}, in {}", path.display()));
    }
    Ok(lines)
}
