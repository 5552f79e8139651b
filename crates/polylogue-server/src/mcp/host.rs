//! The calls of clients.

use polylogue_mcp::serve::{
    Answer, Caller, FormAnswer, InvalidParams, Reply, ServedTool, TaskReport, ToolHost,
};
use serde_json::{Map, Value};

use super::arguments::{Arguments, digest, tool};
use super::call::{CallContext, Refused, hold};
use super::tasks;
use super::visitor::Visitor;

/// The teams of a server. Who calls comes with each request.
pub(crate) struct Teams;

fn visitor(caller: &Caller) -> Result<Visitor, InvalidParams> {
    caller.extension().ok_or_else(|| InvalidParams("the request has no token".into()))
}

impl ToolHost for Teams {
    const HAS_TASKS: bool = true;

    async fn tools(&self, caller: &Caller) -> Vec<ServedTool> {
        match visitor(caller) {
            Ok(visitor) => visitor.teams().await.iter().map(|(id, team)| tool(id, team)).collect(),
            Err(_) => Vec::new(),
        }
    }

    async fn call(
        &self,
        name: &str,
        args: Map<String, Value>,
        caller: &mut Caller,
    ) -> Result<Reply, InvalidParams> {
        let visitor = visitor(caller)?;
        let team = visitor.team(name).await?;
        let called = async {
            let (team, digest) = (team?, digest(name, &args));
            let arguments = Arguments::of(team.team(), args)?;
            let call = CallContext { visitor, tool: name.to_owned(), team, digest };
            let state = call.state(caller)?;
            hold(call, arguments, state, caller).await
        };
        match called.await {
            Ok(reply) => Ok(reply),
            Err(Refused::State) => Err(InvalidParams(
                "`requestState` was changed, has expired, or belongs to another call: call again without it"
                    .into(),
            )),
            Err(Refused::Problem(problem)) => Ok(Answer::failed(problem.line()).into()),
        }
    }

    async fn task(&self, id: &str, caller: &Caller) -> Result<TaskReport, InvalidParams> {
        tasks::report(&visitor(caller)?, id, caller.can_ask()).await
    }

    async fn answer_task(
        &self,
        id: &str,
        answers: Vec<FormAnswer>,
        caller: &Caller,
    ) -> Result<(), InvalidParams> {
        tasks::answer(&visitor(caller)?, id, &answers).await
    }

    async fn cancel_task(&self, id: &str, caller: &Caller) -> Result<(), InvalidParams> {
        tasks::cancel(&visitor(caller)?, id, caller.can_ask()).await
    }
}
