//! Names of budgets: those that people give, and those of days.

/// How a name begins that no person gives.
const RESERVED: char = '@';

/// What such a budget is called in reasons.
const OWNER: &str = "daily budget of the token";

/// What stands before and after the name of another one in reasons.
const TITLE: (&str, char) = ("shared budget `", '`');

/// Returns the name of the budget of a server's token for a day, in days since 1970.
pub fn token_budget(token: &str, day: u64) -> String {
    format!("{RESERVED}token:{token}:{day}")
}

/// Returns whether a budget pays for a log only until another one of its kind does.
pub fn is_daily(name: &str) -> bool {
    name.starts_with(RESERVED)
}

pub(super) fn day_of(name: &str) -> Option<u64> {
    name.rsplit(':').next().filter(|_| is_daily(name))?.parse().ok()
}

/// What a budget is called in reasons.
pub(super) fn title(name: &str) -> String {
    if is_daily(name) { OWNER.into() } else { format!("{}{name}{}", TITLE.0, TITLE.1) }
}

/// Returns the name of the shared budget that a reason calls `title`: the owner of the limit that ended a conversation. `None` if that is no budget
/// to which a person has given a name.
///
/// ```
/// use polylogue_postgres::shared_budget_name;
///
/// assert_eq!(shared_budget_name("shared budget `research`"), Some("research"));
/// assert_eq!(shared_budget_name("daily budget of the token"), None);
/// ```
pub fn shared_budget_name(title: &str) -> Option<&str> {
    title.strip_prefix(TITLE.0)?.strip_suffix(TITLE.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_days_are_none_that_people_give() {
        let name = token_budget("tok-1", 20_700);
        assert_eq!(
            (name.as_str(), day_of(&name), is_daily(&name)),
            ("@token:tok-1:20700", Some(20_700), true)
        );
        assert_eq!((day_of("team:20700"), is_daily("team:20700")), (None, false));
        assert_eq!(
            (title(&name), title("team")),
            ("daily budget of the token".into(), "shared budget `team`".into())
        );
        assert_eq!(
            (
                shared_budget_name(&title("team")),
                shared_budget_name(&title(&name)),
                shared_budget_name("batch")
            ),
            (Some("team"), None, None)
        );
    }
}
