//! Introductions of the participants.

use polylogue_core::{Agent, AnyAgent};

/// Names and descriptions of the participants, as introduction for
/// [`ChatBuilder::introduction_of`](polylogue_core::ChatBuilder::introduction_of).
///
/// ```
/// # use polylogue::policies::group::introduce;
/// # use polylogue::{AnyModel, Assistant, Chat, Group};
/// # fn example(model: AnyModel) -> Result<(), Box<dyn std::error::Error>> {
/// let team = Chat::named("team")
///     .participant(Assistant::new("Planner", model.clone())?.description("makes plans"))
///     .participant(Assistant::new("Coder", model)?.description("writes programs"))
///     .introduction_of(introduce)
///     .policy(Group::round_robin())
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn introduce(participants: &[AnyAgent]) -> String {
    let lines: Vec<String> =
        participants.iter().map(|agent| role(agent.name().as_str(), agent.description())).collect();
    format!("Who is in this conversation:\n{}", lines.join("\n"))
}

/// A name and description, on one line.
pub(super) fn role(name: &str, description: &str) -> String {
    let words: Vec<&str> = description.split_whitespace().collect();
    if words.is_empty() { name.to_owned() } else { format!("{name}: {}", words.join(" ")) }
}
