//! `polylogue trust`: which team files the user trusts.

use polylogue::tools::approval::visible;

use super::{write, write_rows};
use crate::args::trust::{Command, Forget, List, Trust};
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::stderr::print_note;
use crate::trust::trust_file::{Entry, TrustFile};
use polylogue_runtime::permission_text::list;

/// How many digits of a digest are shown.
const DIGITS: usize = 12;
/// The shortest beginning of a digest that names one.
const SHORTEST: usize = 6;

pub(crate) fn run(args: &Trust) -> Result<Exit, CliError> {
    match &args.command {
        Command::List(args) => show(args),
        Command::Forget(args) => forget(args),
        Command::Rules => rules(),
    }
}

fn show(args: &List) -> Result<Exit, CliError> {
    let trusted = TrustFile::read()?.trusted;
    if trusted.is_empty() && !args.json {
        print_note("no team file is trusted yet");
    }
    for entry in &trusted {
        let text = match args.json {
            true => Sanitized::json(entry)
                .map_err(|error| CliError::failed(format!("the output cannot be written: {error}")))?,
            false => in_words(entry),
        };
        write_rows(&text, args.json)?;
    }
    Ok(Exit::Done)
}

fn rules() -> Result<Exit, CliError> {
    let rules = crate::trust::rules::read()?;
    let path = crate::place::of_rules().map(|path| path.display().to_string()).unwrap_or_default();
    let count = rules.len();
    let s = if count == 1 { "" } else { "s" };
    write(&Sanitized::row(&format!("{count} rule{s} in {path}")))?;
    Ok(Exit::Done)
}

fn in_words(entry: &Entry) -> Sanitized {
    let digest: String = entry.digest.chars().take(DIGITS).collect();
    let head = visible(&format!("{digest} {} {}", entry.name, entry.file)).into_owned();
    Sanitized::plain(&format!("{head}\n{}\n", list(&entry.allowed)))
}

/// Forgets all that are named, or none if one of them is not there.
fn forget(args: &Forget) -> Result<Exit, CliError> {
    let whole = |which: &String| {
        std::path::absolute(which).map(|path| path.display().to_string()).unwrap_or_default()
    };
    let named = |entry: &Entry, which: &String| {
        let is_digest = which.len() >= SHORTEST && entry.digest.starts_with(which.as_str());
        is_digest || entry.file == whole(which)
    };
    let book = TrustFile::read()?;
    let missing = args.which.iter().find(|which| !book.trusted.iter().any(|entry| named(entry, which)));
    if let Some(missing) = missing {
        let what = format!("nothing that is trusted is called `{missing}`");
        return Err(CliError::usage(what).hint("`polylogue trust list` lists it"));
    }
    let gone = TrustFile::forget(|entry| args.all || args.which.iter().any(|which| named(entry, which)))?;
    write(&Sanitized::row(&format!("forgot {gone}")))?;
    Ok(Exit::Done)
}
