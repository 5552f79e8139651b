//! Names and descriptions of participants: the candidates for the next turn, as the selector sees them, and introductions.

use polylogue_core::{Agent, AnyAgent, Name, Turn};

use crate::placeholders::filled;

/// The candidates with their descriptions.
pub(super) struct Candidates {
    names: Vec<Name>,
    roles: String,
    list: String,
}

impl Candidates {
    /// The candidates in the turn request; without any, all participants.
    pub(super) fn in_turn(turn: &Turn<'_>) -> Self {
        let of = turn.request().choice.as_ref().map(|choice| choice.of.iter().collect());
        let names: Vec<&Name> = of.unwrap_or_else(|| turn.transcript().present().collect());
        let described: Vec<_> = names.into_iter().map(|name| (name, turn.description_of(name))).collect();
        Self::of(&described)
    }

    pub(super) fn of(described: &[(&Name, &str)]) -> Self {
        let roles: Vec<String> = described.iter().map(|(name, about)| role(name.as_str(), about)).collect();
        let names: Vec<Name> = described.iter().map(|(name, _)| (*name).clone()).collect();
        let list: Vec<&str> = names.iter().map(Name::as_str).collect();
        Self { roles: roles.join("\n"), list: list.join(", "), names }
    }

    pub(super) fn names(&self) -> &[Name] {
        &self.names
    }

    /// One per line, as in `Ann: writes`.
    pub(super) fn roles(&self) -> &str {
        &self.roles
    }

    /// `text` with `{roles}` and `{agentlist}` filled in. Values are inserted verbatim, and other braces stay
    /// unchanged.
    pub(super) fn fill(&self, text: &str) -> String {
        filled(text, &[("roles", &self.roles), ("agentlist", &self.list)])
    }
}

/// Returns the names and descriptions of the participants, as introduction for
/// [`ChatBuilder::introduction_of`](polylogue_core::ChatBuilder::introduction_of).
///
/// ```
/// # use polylogue::policies::group::introduce;
/// # use polylogue::{AnyModel, Assistant, Chat, Group};
/// # fn example(model: AnyModel) -> Result<(), Box<dyn std::error::Error>> {
/// let team = Chat::builder("team")
///     .participant(Assistant::new("Planner", model.clone())?.description("makes plans"))
///     .participant(Assistant::new("Coder", model)?.description("writes programs"))
///     .introduction_of(introduce)
///     .policy(Group::round_robin())
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub fn introduce(participants: &[AnyAgent]) -> String {
    let lines: Vec<String> =
        participants.iter().map(|agent| role(agent.name().as_str(), agent.description())).collect();
    format!("Who is in this conversation:\n{}", lines.join("\n"))
}

/// A name and description, on one line.
fn role(name: &str, description: &str) -> String {
    let words: Vec<&str> = description.split_whitespace().collect();
    if words.is_empty() { name.to_owned() } else { format!("{name}: {}", words.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_prompts_are_not_expanded_again() {
        let (ann, bob) = (Name::new("Ann").unwrap(), Name::new("Bob").unwrap());
        let candidates = Candidates::of(&[(&ann, "uses {agentlist}\n and {x}"), (&bob, " ")]);
        assert_eq!(
            candidates.fill("{roles}|{agentlist}|{}{role}{{roles}}{"),
            "Ann: uses {agentlist} and {x}\nBob|Ann, Bob|{}{role}{Ann: uses {agentlist} and {x}\nBob}{"
        );
    }
}
