//! `polylogue check`: whether team files are right.

use polylogue_team::{Loaded, Overrides, load};

use super::write;
use crate::args;
use crate::play::tell;
use crate::screen::Shown;
use crate::trouble::{Exit, Trouble};

/// Checks every file, whatever is wrong with those before.
pub(crate) fn run(args: &args::Check) -> Result<Exit, Trouble> {
    let overrides = Overrides { vars: args.vars.iter().cloned().collect(), ..Overrides::default() };
    let mut exit = Exit::Done;
    for file in &args.teams {
        match load(file, &overrides) {
            Ok(Loaded { team, warnings }) => {
                warnings.iter().for_each(|warning| tell(&warning.to_string()));
                let agents = count(team.agents.len(), "agent");
                let chats = count(team.chats.len() + 1, "chat");
                write(&Shown::row(&format!("{}: `{}`, {agents}, {chats}", file.display(), team.name)))?;
                for (chat, words) in team.chats_in_words() {
                    write(&Shown::row(&format!("  {chat}: {words}")))?;
                }
            }
            Err(diagnostics) => {
                tell(diagnostics.to_string().trim_end());
                exit = Exit::Usage;
            }
        }
    }
    Ok(exit)
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
