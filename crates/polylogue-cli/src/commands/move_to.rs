//! `polylogue move`: a conversation continues with another version of its team.

use polylogue_core::StoreError;

use super::resume::Stored;
use super::runs::parked;
use super::team_version::{TeamVersion, with_bound};
use crate::args;
use crate::error::{CliError, Exit};
use crate::launch::UNWATCHED;
use crate::limit::counted;
use crate::place::{self, PlaceOption};
use crate::stderr::print_note;

pub(crate) async fn run(cli: &args::Cli, args: &args::change::Move) -> Result<Exit, CliError> {
    let team = args.options();
    check(&team.models)?;
    let runtime = place::existing(&cli.named_store())?;
    let id = runtime.find(&args.id).await?;
    let options = args::RunOptions { team, ..args::RunOptions::default() };
    let version = TeamVersion::Of(&args.team);
    let stored = Stored {
        id: &id,
        options: &options,
        asks: true,
        settings: &UNWATCHED,
        version,
        shared_budget: false,
    };
    let (prepared, changes) = stored.prepare(&runtime).await?;
    if changes.is_empty() {
        print_note(&format!("nothing is done: `{id}` has this team"));
        return Ok(Exit::Done);
    }
    let count = counted(changes.len() as u64, "change");
    let done = with_bound(format!("`{id}` continues with `{}`: {count}", args.team.display()), &changes);
    let before = stored.before(&runtime).await?;
    runtime.move_to(&id, (&prepared, before.as_ref()), changes).await.map_err(|error| {
        let is_busy = matches!(
            &error,
            polylogue_runtime::Error::Run(polylogue_core::Error::Store(StoreError::Busy { .. }))
        );
        let error = CliError::from(error);
        let pause = || PlaceOption::of_store(&cli.named_store()).command(&format!("pause {id}"));
        if is_busy { error.hint(format!("`{}` stops it after its turn", pause())) } else { error }
    })?;
    print_note(&done);
    if parked(&runtime).await?.contains_key(&id) {
        let place = PlaceOption::of_store(&cli.named_store());
        let resume = place.at_store().command(&format!("resume {id} --detach"));
        print_note(&format!("it is parked: `{resume}` hands it over again"));
    }
    Ok(Exit::Done)
}

/// Refuses options of calls, which are stored with no conversation.
fn check(models: &args::Models) -> Result<(), CliError> {
    let options = [
        ("--timeout", models.timeout.is_some()),
        ("--record", models.record.is_some()),
        ("--cache", models.cache.is_some()),
        ("--replay", models.replay.is_some()),
        ("--thoughts", models.thoughts),
    ];
    match options.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let what = format!("`{option}` has no effect with `move`, which runs nothing");
            Err(CliError::usage(what).hint("give it to the command that continues the conversation"))
        }
        None => Ok(()),
    }
}
