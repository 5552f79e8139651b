use proptest::prelude::*;

use super::*;

#[test]
fn illegal_names_are_refused_with_a_reason_and_a_suggestion() {
    for (bad, why, fix) in [
        ("", "is empty", None),
        ("  ", "is blank", None),
        (" Ann", "begins or ends with a space", Some("Ann")),
        ("Ann ", "begins or ends with a space", Some("Ann")),
        ("Ai  assistant", "two spaces", Some("Ai assistant")),
        ("Ai\tassistant", "control character", Some("Ai assistant")),
        ("Ai\nassistant", "control character", Some("Ai assistant")),
        ("Ai\u{a0}assistant", "white space other", Some("Ai assistant")),
        ("Ai\u{3000}assistant", "white space other", Some("Ai assistant")),
        ("An\u{200b}n", "invisible", Some("An_n")),
        ("An\u{200d}n", "invisible", Some("An_n")),
        ("\u{202e}nnA", "reorders", Some("nnA")),
        ("Ann\u{2066}", "reorders", Some("Ann")),
        ("Ann\u{fe0f}", "invisible", Some("Ann")),
        ("\u{3164}", "invisible", None),
        ("Ann\u{115f}", "invisible", Some("Ann")),
        ("Ann\u{7}", "control character", Some("Ann")),
        ("a/b.3", "paths of chats", Some("a_b_3")),
        ("Dr. Smith", "paths of chats", Some("Dr Smith")),
        ("Ann: Bob", "has characters other", Some("Ann Bob")),
        ("`Ann`", "has characters other", Some("Ann")),
        ("3rd", "does not begin with a letter", None),
        ("\u{301}a", "does not begin with a letter", None),
        (&*format!("a{}", "\u{323}".repeat(9)), "marks on a letter", None),
        (&*"x".repeat(65), "is longer than 64", Some(&*"x".repeat(64))),
    ] {
        let error = Name::new(bad).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.suggestion().as_ref().map(Name::as_str), fix, "{bad:?}");
    }
}

#[test]
fn an_error_shows_what_is_invisible_in_a_name() {
    let error = Name::new("An\u{200b}n \u{202e}x").unwrap_err();
    assert!(error.to_string().starts_with(r"the name `An\u{200b}n \u{202e}x` "), "{error}");
}

#[test]
fn names_of_any_script_and_with_spaces_are_legal() {
    for valid in [
        "a", "Stock_Trader", "critic-2", "Köchin", "翻译", "研究员", "Ai assistant 1", "Élodie", "O'Brien",
        "Jean-Luc d’Arc", "हिन्दी", "ผู้ช่วย", "كاتب أول", "עורך", "연구원", "Nguyễn Văn", "アーサー·C",
    ] {
        assert_eq!(Name::new(valid).unwrap(), *valid);
    }
}

#[test]
fn forms_that_look_the_same_are_the_same_name() {
    let name = Name::new("E\u{301}lodie").unwrap();
    assert_eq!(name.as_str(), "\u{c9}lodie");
    // U+212B, the sign for angstrom, is the letter.
    assert_eq!(Name::new("\u{212b}sa").unwrap(), Name::new("\u{c5}sa").unwrap());
    assert_eq!(name.tool_name(""), Name::new("\u{c9}lodie").unwrap().tool_name(""));
    let read: Name = serde_json::from_str("\"E\u{301}lodie\"").unwrap();
    assert_eq!(read, name);
}

#[test]
fn names_of_tools_are_legal_and_distinct() {
    let tool = |name: &str, prefix: &str| Name::new(name).unwrap().tool_name(prefix);
    assert_eq!(tool("Critic_2", ""), "Critic_2");
    assert_eq!(tool("Critic_2", "transfer_to_"), "transfer_to_Critic_2");
    assert_eq!(tool("Ai assistant 1", ""), "Ai_assistant_1-77fe56f3f597");
    assert!(tool("研究员", "").starts_with("agent-"));
    assert!(tool("研究员", "transfer_to_").starts_with("transfer_to-"));
    assert!(tool("Élodie", "").starts_with("Elodie-"));
    let mapped = tool("Ai assistant 1", "");
    assert_ne!(tool(&mapped, ""), mapped, "a real name that is like the name of another's tool");
    assert_eq!(tool(&"x".repeat(64), "transfer_to_").len(), 64);
}

#[test]
fn a_model_may_write_the_name_itself_or_omit_the_digits() {
    let spaced = Name::new("Ai assistant 1").unwrap().tool_name("transfer_to_");
    let other = Name::new("研究员").unwrap().tool_name("transfer_to_");
    let offered = [&*spaced, &*other, "web_search"];
    let resolved = |tool| resolved(tool, offered.iter().copied());
    assert_eq!(resolved("transfer_to_Ai assistant 1"), spaced);
    assert_eq!(resolved("transfer_to_Ai_assistant_1"), spaced);
    assert_eq!(resolved(&spaced), spaced);
    assert_eq!(resolved("transfer_to_研究员"), other);
    assert_eq!(resolved("web.search"), "web_search");
    assert_eq!(resolved("transfer_to_Ai assistant 2"), "transfer_to_Ai_assistant_2");
    assert_eq!(resolved(""), "unnamed");
}

/// Names, many of which are alike once they are ASCII.
fn names() -> impl Strategy<Value = Vec<String>> {
    let piece = prop::sample::select(vec![
        "a", "A", "á", "a\u{301}", "研", "究", "я", "1", "-", "_", " ", "'", "x-0123456789ab", "transfer_to_",
    ]);
    let name = prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat());
    prop::collection::vec(name, 1..30)
}

proptest! {
    /// Each is made of its name alone, so that neither the order nor a later process changes it.
    #[test]
    fn names_of_tools_are_legal_distinct_and_independent_of_order(texts in names(), swaps in any::<u64>()) {
        let mut names: Vec<Name> = texts.iter().filter_map(|text| Name::new(text).ok()).collect();
        names.sort();
        names.dedup();
        for prefix in ["", "transfer_to_"] {
            let tools: Vec<String> = names.iter().map(|name| name.tool_name(prefix)).collect();
            for tool in &tools {
                let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                prop_assert!((1..=64).contains(&tool.len()) && tool.chars().all(legal), "{tool}");
            }
            let distinct: std::collections::BTreeSet<&String> = tools.iter().collect();
            prop_assert_eq!(distinct.len(), names.len(), "{:?} {:?}", &names, &tools);
            let at = usize::try_from(swaps % names.len().max(1) as u64).unwrap();
            let mut turned: Vec<Name> =
                names.iter().map(|name| serde_json::from_value(serde_json::json!(name)).unwrap()).collect();
            turned.rotate_left(at.min(names.len()));
            for name in &turned {
                let before = names.iter().position(|other| other == name).unwrap();
                prop_assert_eq!(&name.tool_name(prefix), &tools[before]);
                let called = format!("{prefix}{name}");
                prop_assert_eq!(resolved(&called, tools.iter().map(String::as_str)), &*tools[before]);
            }
        }
    }
}
