//! Who the members are, told to each of them.

use polylogue_core::{Agent, AnyAgent};

/// Names and descriptions of the members: what they are told before all else, if
/// [`ChatBuilder::introduction_of`](polylogue_core::ChatBuilder::introduction_of) is given this.
///
/// ```
/// # use polylogue::{AnyModel, Assistant, Chat, Group, group::introduce};
/// # fn example(model: AnyModel) -> Result<(), Box<dyn std::error::Error>> {
/// let team = Chat::named("team")
///     .with(Assistant::new("Planner", model.clone())?.description("makes plans"))
///     .with(Assistant::new("Coder", model)?.description("writes programs"))
///     .introduction_of(introduce)
///     .policy(Group::round_robin())
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn introduce(members: &[AnyAgent]) -> String {
    let lines: Vec<String> =
        members.iter().map(|agent| role(agent.name().as_str(), agent.description())).collect();
    format!("Who is in this conversation:\n{}", lines.join("\n"))
}

/// A name and what it is good at, on one line.
pub(super) fn role(name: &str, description: &str) -> String {
    let words: Vec<&str> = description.split_whitespace().collect();
    if words.is_empty() { name.to_owned() } else { format!("{name}: {}", words.join(" ")) }
}
