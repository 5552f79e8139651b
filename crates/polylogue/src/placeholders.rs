//! Placeholders in prompts, such as `{task}`.

/// `text` with values for its placeholders. Values are inserted verbatim, and other braces stay unchanged.
pub(crate) fn filled(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let found = values
            .iter()
            .find_map(|(name, value)| Some((value, after.strip_prefix(name)?.strip_prefix('}')?)));
        rest = if let Some((value, after)) = found {
            filled.push_str(value);
            after
        } else {
            filled.push('{');
            after
        };
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once_and_other_braces_stay() {
        let values = [("task", "say {plan} {"), ("plan", "P")];
        assert_eq!(filled("{task}|{plan}|{x}|{\"a\": {plan}}|{", &values), "say {plan} {|P|{x}|{\"a\": P}|{");
        assert_eq!(filled("", &values), "");
    }
}
