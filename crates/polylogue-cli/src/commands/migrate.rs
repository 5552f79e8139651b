//! `polylogue migrate`: the tables of a database of an earlier version, in the format of this one.

use polylogue_runtime::database::Migrated;

use super::write;
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::screen::Sanitized;
use crate::stderr::print_note;
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli) -> Result<Exit, CliError> {
    let place = place::of(&cli.named_store())?;
    let Some(Migrated { from, to, released }) = place.migrate().await? else {
        let what = format!("`{}` is no Postgres database, and no other store is migrated", place.shown());
        return Err(CliError::usage(what).hint("name the database: `--store postgres://USER@HOST/DATABASE`"));
    };
    let text = match from == to {
        true => format!("nothing is migrated: the tables have format {to}"),
        false => format!("the tables had format {from}, and have format {to} now"),
    };
    write(&Sanitized::row(&text))?;
    if released > 0 {
        let running = counted(released, "running conversation");
        print_note(&format!(
            "processes of earlier versions have lost {running}; workers of this version continue what was handed over"
        ));
    }
    Ok(Exit::Done)
}
