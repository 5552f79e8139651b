//! `polylogue mcp`: teams as tools of other programs.

mod offer;
mod talk;

use std::collections::HashSet;
use std::future::Future;

use polylogue_core::ToolSpec;
use polylogue_mcp::serve::{Answer, Caller, Host, serve};
use polylogue_runtime::Runtime;
use serde_json::{Map, Value};

use crate::error::{CliError, Exit};
use crate::signals::Signals;
use crate::tell::tell_wrapped;
use crate::{args, place};
use offer::Offer;

/// The description of all tools together, for hosts.
const ABOUT: &str = "Each tool is a team of agents who work on a task by talking with one another. It takes its time, and tells \
    how it goes. The conversation is kept: its id is in the result, and `polylogue show ID` shows it.";

pub(crate) async fn run(cli: &args::Cli, args: &args::Mcp) -> Result<Exit, CliError> {
    let mut offers = Vec::new();
    let mut names = HashSet::new();
    for team in &args.teams {
        let offer = Offer::prepare(cli, args, team).await?;
        if !names.insert(offer.spec.name.clone()) {
            let what = format!("two of the teams would be the tool `{}`", offer.spec.name);
            return Err(CliError::usage(what).hint("give one of them another `name`"));
        }
        offers.push(offer);
    }
    let told: Vec<String> = offers.iter().map(|offer| format!("`{}`", offer.spec.name)).collect();
    tell_wrapped(&format!(
        "serving {} to the program at the other end of the input and output",
        told.join(", ")
    ));
    let specs = offers.iter().map(|offer| offer.spec.clone()).collect();
    let teams = Teams { specs, offers, runtime: place::open(cli.store.as_deref())? };
    let mut signals = Signals::new()?;
    tokio::select! {
        served = serve(teams, ABOUT, tokio::io::stdin(), tokio::io::stdout()) => {
            served?;
            Ok(Exit::Done)
        }
        // What is cut off is whole in its log, and can be resumed.
        () = signals.next() => Ok(Exit::Stopped),
    }
}

/// The teams that are served.
struct Teams {
    specs: Vec<ToolSpec>,
    offers: Vec<Offer>,
    runtime: Runtime,
}

impl Host for Teams {
    fn offers(&self) -> &[ToolSpec] {
        &self.specs
    }

    fn call(
        &self,
        tool: &str,
        args: Map<String, Value>,
        caller: &mut Caller,
    ) -> impl Future<Output = Answer> + Send {
        let offer = self.offers.iter().find(|offer| offer.spec.name == tool);
        async move {
            let Some(offer) = offer else { return Answer::failed("there is no such team") };
            match offer.begin(&self.runtime, args).await {
                Ok(talk) => talk.hold(caller).await,
                Err(trouble) => Answer::failed(trouble.to_string()),
            }
        }
    }
}
