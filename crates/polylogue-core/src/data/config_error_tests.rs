use super::*;

#[track_caller]
fn says(error: impl Into<crate::Error>, text: &str, hint: Option<&str>) {
    let error = error.into();
    assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (text, hint));
    assert_eq!(error.fault(), crate::Fault::Config);
}

#[test]
fn each_cause_has_a_text_and_a_hint() {
    says(ConfigError::missing("`Ann`", "model"), "`Ann` has no model", None);
    says(ConfigError::invalid("the host", "too long"), "the host is invalid: too long", None);
    let (of, what, hint) = ("`web_search`".into(), "API key".into(), Some("set `K`".into()));
    says(ConfigError::Missing { of, what, hint }, "`web_search` has no API key", Some("set `K`"));
    says(UnknownName::new("tool", "x"), "unknown tool `x`", None);
    let unknown = UnknownName::new("node", "x").within("in the graph").known(["a", "b"]);
    says(unknown, "unknown node `x` in the graph", Some("use one of `a`, `b`"));
    let wants = "this team wants to read `/a`".to_owned();
    let text = "this team wants to read `/a`, but that is not allowed";
    let denied = ConfigError::NotGranted { permission: "readable", wants };
    says(denied, text, Some("if you trust it, allow `readable`"));
    let (name, why) = ("s".to_owned(), "is disabled".to_owned());
    says(ConfigError::McpServer { name, why }, "the MCP server `s` is disabled", None);
    let (name, why) = ("c".to_owned(), "no words".to_owned());
    says(ConfigError::Declaration { kind: "command", name, why }, "the command `c`: no words", None);
    let few = |least| PatternError::TooFew { of: "a vote", what: "option", least };
    says(few(1), "a vote needs at least 1 option", None);
    says(few(2), "a vote needs at least 2 options", None);
}
