//! `polylogue mcp`: teams as tools of other programs.

mod call;
mod served_team;

use std::collections::HashSet;
use std::future::{Future, ready};

use polylogue_mcp::serve::{Answer, Caller, InvalidParams, Reply, ServedTool, ToolHost, serve};
use polylogue_runtime::Runtime;
use serde_json::{Map, Value};

use crate::error::{CliError, Exit};
use crate::signals::Signals;
use crate::stderr::print_note_wrapped;
use crate::{args, place};
use call::output_schema;
use served_team::ServedTeam;

/// The description of all tools together, for hosts.
const ABOUT: &str = "Each tool is a team of agents who work on a task by talking with one another. A call can take minutes, and \
    sends progress notifications. The conversation is kept: its id is in the result, and `polylogue show ID` shows it.";

pub(crate) async fn run(cli: &args::Cli, args: &args::Mcp) -> Result<Exit, CliError> {
    let mut teams = Vec::new();
    let mut seen = HashSet::new();
    for team in &args.teams {
        let team = ServedTeam::prepare(cli, args, team).await?;
        if !seen.insert(team.spec.name.clone()) {
            let what = format!("two of the teams would be the tool `{}`", team.spec.name);
            return Err(CliError::usage(what).hint("give one of them another `name`"));
        }
        teams.push(team);
    }
    let names: Vec<String> = teams.iter().map(|team| format!("`{}`", team.spec.name)).collect();
    print_note_wrapped(&format!("serving {} over standard input and output", names.join(", ")));
    let runtime = args.budgets.pay_for(place::open(&cli.named_store())?).await?;
    let teams = Teams { teams, runtime };
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
    teams: Vec<ServedTeam>,
    runtime: Runtime,
}

impl ToolHost for Teams {
    fn tools(&self, _: &Caller) -> impl Future<Output = Vec<ServedTool>> + Send {
        let tool = |team: &ServedTeam| ServedTool { spec: team.spec.clone(), output: Some(output_schema()) };
        ready(self.teams.iter().map(tool).collect())
    }

    async fn call(
        &self,
        tool: &str,
        args: Map<String, Value>,
        caller: &mut Caller,
    ) -> Result<Reply, InvalidParams> {
        let team = self.teams.iter().find(|team| team.spec.name == tool);
        let team = team.ok_or_else(|| InvalidParams(format!("there is no tool `{tool}`")))?;
        let answer = match team.begin(&self.runtime, args).await {
            Ok(conversation) => conversation.run(caller).await,
            Err(error) => Answer::failed(error.to_string()),
        };
        Ok(answer.into())
    }
}
