//! Removes Markdown fences around code arguments.

/// `code` without the fence around all of it, if there is one. Models that are used to Markdown write fences in arguments as
/// well, and no program begins with one.
pub(crate) fn unfenced(code: &str) -> &str {
    let Some(rest) = code.trim().strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return code;
    };
    match rest.split_once('\n') {
        Some((tag, body)) if body.ends_with('\n') && !tag.contains('`') && !body.contains("```") => body,
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_around_all_of_it_is_taken_off_and_no_other() {
        assert_eq!(unfenced("```python\nif x:\n    f()\n```\n"), "if x:\n    f()\n");
        assert_eq!(unfenced("\n```\n1 + 1\n```"), "1 + 1\n");
        let others = [
            "",
            "1 + 1",
            "```",
            "``````",
            "```1```",
            "```\n1",
            "1\n```",
            "```\na\n```\nb\n```\nc\n```",
            "```\nx = '```",
        ];
        for code in others {
            assert_eq!(unfenced(code), code);
        }
    }
}
