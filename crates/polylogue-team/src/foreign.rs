//! Names of other systems and guesses in team files, with their equivalents.

use std::sync::LazyLock;

use polylogue_config::Foreign;

/// Every name that is answered with its equivalent. The first row that fits counts.
pub(crate) static FOREIGN: LazyLock<Vec<Foreign>> = LazyLock::new(|| TABLE.lines().filter_map(row).collect());

/// A row a line: the system, the name with its value if only that is meant, the types, the equivalent.
const TABLE: &str = include_str!("foreign.txt");

fn row(line: &'static str) -> Option<Foreign> {
    let mut cells = line.splitn(4, " | ");
    let (system, key, within, here) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let system = if system == "-" { "" } else { system };
    let (name, value) = key.split_once(": ").unwrap_or((key, ""));
    Some(Foreign { system, name, value, within, here })
}

/// Lists the names of another system that errors answer with their equivalent, as a Markdown table: the name, the types of the
/// reference in which people write it, the equivalent. `system` is such as `AutoGen`; empty for guesses of no system.
pub fn names_of(system: &str) -> String {
    let mut table = String::from("| name | in | here |\n|---|---|---|\n");
    for row in FOREIGN.iter().filter(|row| row.system == system) {
        let value = if row.value.is_empty() { String::new() } else { format!(": {}", row.value) };
        let types: Vec<String> = row.types().map(|within| format!("`{within}`")).collect();
        let (types, here) = (types.join(", "), row.here.trim_end_matches(','));
        table += &format!("| `{}{value}` | {types} | {here} |\n", row.name);
    }
    table
}

#[cfg(test)]
#[path = "foreign_tests.rs"]
mod tests;
