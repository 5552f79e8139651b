//! The results of the blocks of one message, in one reply.

use polylogue_core::{Part, ToolResult, ToolStatus};

/// The results so far.
#[derive(Debug, Default)]
pub(super) struct Results {
    exit_code: i64,
    output: String,
    /// Notes on code that was edited before it ran.
    notes: Vec<Part>,
    /// Files and pictures.
    rest: Vec<Part>,
}

impl Results {
    /// Adds a note.
    pub(super) fn note(&mut self, text: String) {
        self.notes.push(Part::text(text));
    }

    /// Adds the result of the next block.
    pub(super) fn add(&mut self, outcome: ToolResult) {
        let mut parts = outcome.parts.into_iter();
        // That of an output that does not begin with one.
        let assumed_code = if outcome.status == ToolStatus::Done { 0 } else { 1 };
        let (exit_code, output) = match parts.next() {
            Some(Part::Text(text)) => parted(&text)
                .map_or((assumed_code, text.to_string()), |(code, output)| (code, output.to_owned())),
            Some(Part::Data(value)) => (assumed_code, value.to_string()),
            Some(part) => {
                self.rest.push(part);
                (assumed_code, String::new())
            }
            None => (assumed_code, String::new()),
        };
        if !self.output.is_empty() && !self.output.ends_with('\n') && !output.is_empty() {
            self.output.push('\n');
        }
        self.exit_code = exit_code;
        self.output.push_str(&output);
        self.rest.extend(parts);
    }

    /// Whether the last block failed.
    pub(super) const fn failed(&self) -> bool {
        self.exit_code != 0
    }

    /// The reply, within the limit on one result.
    pub(super) fn into_parts(self) -> Vec<Part> {
        let result = if self.failed() { "failed" } else { "succeeded" };
        let text = format!("exitcode: {} (execution {result})\nCode output: {}", self.exit_code, self.output);
        let parts = [Part::text(text.trim_end())].into_iter().chain(self.notes).chain(self.rest);
        ToolResult::new(ToolStatus::Done, parts.collect()).truncated().parts
    }
}

/// Returns the reply for the `outcomes` of one message: a message with exactly these parts is such a reply.
pub fn reply_of(outcomes: &[ToolResult]) -> Vec<Part> {
    let mut results = Results::default();
    outcomes.iter().for_each(|outcome| results.add(outcome.clone()));
    results.into_parts()
}

/// The exit code and the output of a code tool: `exitcode: 0 (execution succeeded)`, then `Code output: ...`.
fn parted(text: &str) -> Option<(i64, &str)> {
    let rest = text.strip_prefix("exitcode: ")?;
    let (head, output) = rest.split_once('\n').unwrap_or((rest, ""));
    let code = head.split_whitespace().next()?.parse().ok()?;
    Some((
        code,
        output
            .strip_prefix("Code output:")
            .map_or(output, |output| output.strip_prefix(' ').unwrap_or(output)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(outcomes: impl IntoIterator<Item = ToolResult>) -> String {
        let mut results = Results::default();
        outcomes.into_iter().for_each(|outcome| results.add(outcome));
        polylogue_core::text_of(&results.into_parts()).into_owned()
    }

    #[test]
    fn outputs_are_joined_under_the_last_exit_code() {
        let ok =
            |output| ToolResult::done(format!("exitcode: 0 (execution succeeded)\nCode output: {output}"));
        assert_eq!(text([ok("a\n"), ok("b")]), "exitcode: 0 (execution succeeded)\nCode output: a\nb");
        assert_eq!(text([ok("a"), ok("b")]), "exitcode: 0 (execution succeeded)\nCode output: a\nb");
        assert_eq!(text([ok("")]), "exitcode: 0 (execution succeeded)\nCode output:");
        let bad = ToolResult::failed("exitcode: 124 (execution failed)\nCode output: x\nTimeout");
        assert_eq!(text([ok("a"), bad]), "exitcode: 124 (execution failed)\nCode output: a\nx\nTimeout");
    }

    #[test]
    fn tools_with_other_words_are_understood() {
        assert_eq!(text([ToolResult::done("42")]), "exitcode: 0 (execution succeeded)\nCode output: 42");
        let failed = text([ToolResult::failed("no such thing")]);
        assert_eq!(failed, "exitcode: 1 (execution failed)\nCode output: no such thing");
        let data = ToolResult::new(ToolStatus::Done, vec![Part::Data(serde_json::json!([1]))]);
        assert_eq!(text([data]), "exitcode: 0 (execution succeeded)\nCode output: [1]");
        assert!(
            text([ToolResult::unknown()])
                .starts_with("exitcode: 1 (execution failed)\nCode output: The outcome")
        );
        let empty = ToolResult::new(ToolStatus::Done, vec![]);
        assert_eq!(text([empty]), "exitcode: 0 (execution succeeded)\nCode output:");
    }
}
