//! Scripted teams, and a chat of one by the library, next to which a server is measured.

use polylogue::Status;
use polylogue_models::Env;
use polylogue_runtime::{Access, ModelOptions, Prepared, RunOptions, Runtime, StoreLocation};
use polylogue_team::{Loaded, Overrides};

use crate::job::{Cost, Result};
use crate::meter::Meter;

/// Its teams: two agents who speak in turn, with models that take so many milliseconds.
pub(crate) const TEAMS: [(&str, u64, u64); 3] = [("crowd", 10, 500), ("quick", 400, 0), ("first", 1, 200)];

/// A team of `turns` turns.
pub(crate) fn team(name: &str, turns: u64, delay_ms: u64) -> String {
    let step = |turn: u64| {
        let who = if turn.is_multiple_of(2) { "Ann" } else { "Bob" };
        format!(
            "  - {{{who}: {{say: 'This is what is said in turn {turn} of all.', delay_ms: {delay_ms}}}}}\n"
        )
    };
    let steps: String = (0..turns).map(step).collect();
    format!(
        "name: {name}\ntask: Talk.\nagents: [{{name: Ann}}, {{name: Bob}}]\n\
         chat: {{participants: [Ann, Bob], pattern: round_robin, max_turns: 1000, stop: {{max_turns: {turns}}}, loop_detection: off}}\n\
         limits: {{calls: 1000}}\nscript:\n{steps}"
    )
}

/// A team in which a person and an agent speak in turn, whose model takes 500 ms.
pub(crate) fn asking() -> String {
    let step = "  - {Ann: {say: 'This is what is said.', delay_ms: 500}}\n";
    format!(
        "name: asks\ntask: Talk.\nagents: [{{name: Ann}}, {{name: Pat, human: true}}]\n\
         chat: {{participants: [Pat, Ann], pattern: round_robin, max_turns: 1000, stop: {{max_turns: 900}}, loop_detection: off}}\n\
         limits: {{calls: 1000}}\nscript:\n{}",
        step.repeat(100)
    )
}

/// Prepares a team to run by its script.
pub(crate) async fn prepared(text: &str, place: &StoreLocation) -> Result<Prepared> {
    let Loaded { team, digest, .. } =
        polylogue_team::parse(text, "team.yaml", &Overrides::default()).map_err(|error| error.to_string())?;
    of_team(team, digest, place).await
}

pub(crate) async fn of_team(
    team: polylogue_team::Team,
    digest: String,
    place: &StoreLocation,
) -> Result<Prepared> {
    let access = Access::new(Env::of::<&str, &str>([]), digest.as_str());
    // With the delays of its script.
    let models = ModelOptions { offline: true, paced: true, stream: true, ..ModelOptions::default() };
    let options = RunOptions { models, ..RunOptions::default() };
    Ok(Prepared::new(place, team, digest, access, options).await?)
}

/// The turns of a team, and the milliseconds of a reply of its model.
pub(crate) fn shape(name: &str) -> Result<(u64, u64)> {
    let found = TEAMS.iter().find(|(team, ..)| *team == name);
    found.map(|(_, turns, delay)| (*turns, *delay)).ok_or_else(|| "there is no such team".into())
}

/// The same chat in this process.
pub(crate) async fn library() -> Result<Cost> {
    let (calls, delay) = shape("quick")?;
    let folder = tempfile::tempdir()?;
    let place = StoreLocation::new(folder.path().join("bench.db"));
    let prepared = prepared(&team("quick", calls, delay), &place).await?;
    let runtime = Runtime::open_at(place)?;
    let mut measured = Cost::default();
    // The first one warms up.
    for _ in 0..2 {
        let meter = Meter::start();
        let conversation = runtime.begin(&prepared.run()).await?;
        match conversation.run().await? {
            Status::Closed { .. } if conversation.usage().await.calls == calls => {
                conversation.release().await?
            }
            other => return Err(format!("the chat ended otherwise than it should: {other:?}").into()),
        }
        measured = meter.stop();
    }
    Ok(measured)
}
