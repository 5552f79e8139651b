//! Conditions: what they can say, and what is said of those that are none.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::json;

use super::contradiction::Impossible;
use super::*;

fn facts(last: &str) -> Facts<'static> {
    let state = json!({"done": true, "count": 3, "half": 0.5, "items": [1, 2], "name": "x"});
    Facts {
        text: last.to_owned(),
        from: "Ann",
        value: None,
        turns: 4,
        messages: 5,
        task: "the task",
        speaker: "Ann",
        participants: vec!["Ann", "Bob"],
        state: state.as_object().unwrap().clone(),
    }
}

fn evaluated(text: &str) -> String {
    match Condition::new(text).unwrap().program.execute(&facts("hello DONE").context()) {
        Ok(Value::Bool(holds)) => holds.to_string(),
        Ok(other) => kind(&other).to_owned(),
        Err(error) => describe(&error),
    }
}

#[test]
fn a_condition_speaks_of_the_conversation() {
    for (text, holds) in [
        ("last.text.contains('DONE')", true),
        ("last.from == 'Ann' && speaker != 'Bob'", true),
        ("last.text.matches('^hello.*E$')", true),
        ("last.text.startsWith('x') || last.text.endsWith('E')", true),
        ("turns >= 4 && messages > turns", true),
        ("turns % 2 == 1", false),
        ("turns > 3.5", true),
        ("'Bob' in participants && size(participants) == 2", true),
        ("participants.exists(m, m == 'Zoe')", false),
        ("participants.all(m, size(m) == 3)", true),
        ("task == 'the task'", true),
        ("state.done && state.count + 1 == 4", true),
        ("has(state.missing) && state.missing", false),
        ("state.half * 2.0 == 1.0 && state.items[1] == 2", true),
        ("turns > 10 ? false : true", true),
        ("state.name == 'x' && !(state.count < 3)", true),
        ("has(last.value.route) && last.value.route == 'x'", false),
    ] {
        assert_eq!(evaluated(text), holds.to_string(), "{text}");
    }
}

#[test]
fn a_condition_that_cannot_be_evaluated_says_why() {
    for (text, why) in [
        ("state.missing", "there is no `missing`; `has(...)` asks whether there is"),
        ("state.count", "a number"),
        (
            "int(last.text) > 3",
            "Error executing function 'int': string parse error: invalid digit found in string",
        ),
        ("state.name > 3", "found no matching overload for '_>_' applied to '(string, int)'"),
    ] {
        assert_eq!(evaluated(text), why, "{text}");
    }
}

#[test]
fn an_invalid_condition_is_refused_with_its_position() {
    for (text, why, at) in [
        ("turns >", "unexpected end", Some(7)),
        ("turns ==\n  ))", "unexpected ')'", Some(11)),
        ("", "unexpected end", Some(0)),
        ("turns > 3 and turns < 9", "unexpected 'and'", Some(10)),
        ("turns > 1 && last.contains('x')", "`last` is a message, not a text", None),
        ("turn > 3", "`turn` is unknown", None),
        ("last.txt == 'x'", "there is no `txt` of the last message", None),
        ("lower(task) == 'x'", "there is no function `lower`", None),
        ("task.lowerAscii() == 'x'", "there is no function `lowerAscii`", None),
        ("task.matches('a(')", "`a(` is not a valid regular expression: unclosed group", None),
        ("turns", "it gives a number, and neither `true` nor `false`", None),
        ("task", "it gives a text, and neither `true` nor `false`", None),
        ("turns.contains('x')", "found no matching overload for 'contains' applied to 'int.(string)'", None),
        (
            "participants.exists(a, participants.exists(b, a == b))",
            "nested loops over lists are not allowed in it",
            None,
        ),
    ] {
        let error = Condition::new(text).expect_err(text);
        assert_eq!((error.why.as_str(), error.at), (why, at), "{text}");
    }
}

#[test]
fn hints_name_what_may_be_meant() {
    let hint = |text: &str| Condition::new(text).unwrap_err().hint.unwrap();
    assert_eq!(hint("turn > 3"), "did you mean `turns`?");
    assert_eq!(hint("last.txt == 'x'"), "did you mean `text`?");
    assert_eq!(hint("task.contain('x')"), "did you mean `contains`?");
    assert_eq!(hint("turns > 1 && last.contains('x')"), "write `last.text.contains(...)`");
    assert_eq!(hint("turns > 3 and turns < 9"), "write `&&` for `and`");
    assert_eq!(hint("turns > 3 OR turns < 9"), "write `||` for `or`");
    assert_eq!(hint("not has(state.done)"), "write `!` for `not`");
    assert_eq!(hint("turns = 3"), "write `==` to compare");
}

/// Neither reading nor evaluating takes more stack or time than there is, whatever the expression looks like. Evaluation
/// must satisfy a stack of half a mebibyte more than what a runtime's threads have, in a build without optimization.
#[test]
fn no_expression_exhausts_time_or_stack() {
    let deep = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let mut texts: Vec<String> =
        vec!["(".repeat(1_000_000), "x".repeat(1_000_000), "\u{0}".into(), "\"".into()];
    for times in [10, 12, 60, 120, 240] {
        texts.push(deep("(", "true", ")", times));
        texts.push(deep("[", "true", "]", times) + " == []");
        texts.push(deep("size(", "'x'", ")", times));
        texts.push(deep("!", "true", "", 2 * times));
        texts.push(deep("-", "1", "", 2 * times) + " == 1");
        texts.push(deep("!-", "1", "", times));
        texts.push(deep("true?1:", "2", "", times));
        texts.push(deep("true && ", "true", "", times / 2));
        texts.push(deep("1 + ", "1 == 2", "", times));
        texts.push(deep("1 == ", "1", "", times));
        texts.push("state".to_owned() + &".a".repeat(times) + " == 1");
        texts.push("state".to_owned() + &"['a']".repeat(times / 2) + " == 1");
        texts.push(deep("{'a': ", "1", "}", times) + " == {}");
    }
    let mut taken = BTreeMap::new();
    for text in texts {
        let begun = Instant::now();
        if let Ok(condition) = Condition::new(&text) {
            let small = std::thread::Builder::new().stack_size(1 << 20);
            let ran = small.spawn(move || drop(condition.program.execute(&facts("x").context())));
            ran.unwrap().join().unwrap();
        }
        taken.insert(begun.elapsed(), text);
    }
    let (longest, text) = taken.pop_last().unwrap();
    assert!(longest.as_secs() < 10, "{longest:?} for {text}");
}

#[test]
fn parts_that_exclude_each_other_are_found() {
    for (text, is_consistent, always_holds) in [
        ("turns > 3", true, false),
        ("true", true, true),
        ("false", false, false),
        ("turns > 3 && turns < 2", false, false),
        ("turns >= 3 && turns <= 3", true, false),
        ("turns > 3 && turns <= 3", false, false),
        ("turns > 3 || turns <= 3", true, true),
        ("!(turns > 3 && turns < 2)", true, true),
        ("state.n > 3 && 3 >= state.n", false, false),
        ("state.n > 3 && state.m < 2", true, false),
        ("state.n > 3 && state.n == 2", false, false),
        ("state.n == 2 && state.n == 2.0", true, false),
        ("state.n == 'x' && state.n > 3", false, false),
        ("has(state.n) && !has(state.n)", false, false),
        ("has(state.n) && !state.n", true, false),
        ("last.text.contains('x') && !last.text.contains('x')", false, false),
        ("last.text.contains('x') && !last.text.contains('y')", true, false),
        ("last.text.contains('x') && (turns > 9 || !last.text.contains('x')) && turns < 5", false, false),
        ("last.from == 'Ann' && (last.from == 'Bob' || last.from == 'Cid')", false, false),
        ("last.from == 'Ann' || last.from == 'Bob'", true, false),
        ("last.from in ['Ann', 'Bob'] && last.from != 'Ann'", true, false),
        ("last.from in ['Ann', 'Bob'] && !(last.from in ['Bob', 'Ann'])", false, false),
        ("messages >= 0", true, true),
        ("messages == 0", true, false),
        ("messages < 0 || turns > 3", true, false),
        ("speaker != 3", true, true),
        ("speaker in ['Ann', 3]", true, false),
    ] {
        let condition = Condition::new(text).unwrap();
        let found = (condition.impossible().is_none(), condition.always_holds());
        assert_eq!(found, (is_consistent, always_holds), "{text}");
    }
}

#[test]
fn a_condition_that_is_false_in_any_case_differs_from_one_that_contradicts_itself() {
    for (text, why) in [
        ("false", Some(Impossible::Constant)),
        ("!true", Some(Impossible::Constant)),
        ("1 > 2 || 'a' == 'b'", Some(Impossible::Constant)),
        ("turns > 3 && false", Some(Impossible::ConstantPart)),
        ("!(turns > 3 || true)", Some(Impossible::ConstantPart)),
        ("turns > 3 && turns < 2", Some(Impossible::Parts)),
        ("turns > 3 && turns < 2 && false", Some(Impossible::Parts)),
        ("messages == -1", Some(Impossible::Count("messages"))),
        ("turns > 3 && !(messages >= 0)", Some(Impossible::Count("messages"))),
        ("turns < 0", Some(Impossible::Count("turns"))),
        ("turns == 'x'", Some(Impossible::Count("turns"))),
        ("speaker == 3", Some(Impossible::Text("speaker"))),
        ("last.text == true || last.from == null", Some(Impossible::Text("last.text"))),
        ("speaker == 'Ann' && speaker == 'Bob'", Some(Impossible::Parts)),
        ("last.value.n == -1 && state.n < 0", None),
        ("turns > 3 || false", None),
        ("true", None),
    ] {
        assert_eq!(Condition::new(text).unwrap().impossible(), why, "{text}");
    }
}

/// Alternatives multiply the ways in which a condition can hold: only a number of them are looked at.
#[test]
fn a_condition_of_many_alternatives_is_taken_to_be_consistent() {
    let one_of = |n: usize| format!("(state.a{n} == 1 || state.b{n} == 1)");
    let with = |count: usize| {
        let many: Vec<String> = (0..count).map(one_of).collect();
        let text = format!("{} && (state.z == 1 || state.z == 2) && state.z == 3", many.join(" && "));
        Condition::new(&text).unwrap().impossible().is_none()
    };
    assert_eq!((with(2), with(11)), (false, true));
}

#[test]
fn fields_of_structured_replies_are_read_from_a_condition() {
    let fields = |text: &str| {
        let condition = Condition::new(text).unwrap();
        let fields = condition.fields().into_iter();
        let text = |field: ReadField<'_>| match (field.equals, field.limit) {
            (Some(value), _) => format!("{} == {value}", field.path.join(".")),
            (None, Some(limit)) => format!("{} {limit}", field.path.join(".")),
            (None, None) => field.path.join("."),
        };
        fields.map(text).collect::<Vec<_>>()
    };
    assert_eq!(fields("last.text == 'value' && turns > 3"), [""; 0]);
    assert_eq!(fields("has(last.value.route)"), ["route"]);
    assert_eq!(fields("last.value == 'x'"), [" == \"x\""]);
    assert_eq!(fields("last.value.route == 'x'"), ["route == \"x\"", "route"]);
    assert_eq!(fields("2 < last.value['a'].b"), ["a.b above 2", "a.b", "a"]);
    assert_eq!(fields("last.value.n <= 2"), ["n at most 2", "n"]);
    assert_eq!(fields("last.value.n < last.value.m"), ["n", "m"]);
    assert_eq!(fields("turns >= 2 && 'x' < last.value.n"), ["n"]);
    assert_eq!(fields("last.value.n in [1, 2]"), ["n == 1", "n == 2", "n"]);
    assert_eq!(fields("last.value.items.exists(i, i.kind == 'x')"), ["items"]);
    assert_eq!(fields("last.value.name.startsWith('x')"), ["name"]);
}

#[test]
fn texts_that_a_condition_looks_for_are_judged_and_alternatives_together() {
    let against = |text: &str| {
        Condition::new(text).unwrap().judge_texts(&mut |sought| {
            let (SoughtText::Whole(of)
            | SoughtText::AtEdge(of)
            | SoughtText::Part(of)
            | SoughtText::Pattern(of)) = sought;
            (of != "ok").then(|| format!("{sought:?}"))
        })
    };
    assert_eq!(against("last.text.contains('a') && 'b' == last.text"), ["Part(\"a\")", "Whole(\"b\")"]);
    assert_eq!(against("last.text.startsWith('a') || turns > 3"), ["AtEdge(\"a\")"]);
    assert_eq!(
        against("last.text.endsWith('a') || last.text.matches('b')"),
        ["AtEdge(\"a\")", "Pattern(\"b\")"]
    );
    assert_eq!(against("last.text in ['a', 'b']"), ["Whole(\"a\")", "Whole(\"b\")"]);
    for all_right in [
        "last.text.contains('a') || last.text == 'ok'",
        "last.text in ['a', 'ok']",
        "!last.text.contains('a') && last.text != 'b'",
        "last.from == 'a' && last.value.b == 'c' && task.contains('d')",
        "last.text.contains(task) && ['a'].exists(text, last.text.contains(text))",
    ] {
        assert_eq!(against(all_right), [""; 0], "{all_right}");
    }
    assert_eq!(against("(last.text == 'a' || last.text == 'ok') && last.text == 'b'"), ["Whole(\"b\")"]);
}
