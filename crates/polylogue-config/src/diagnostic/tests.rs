use super::*;

fn shown(text: &str, span: Span) -> String {
    let source = Source::new("t.yaml", text);
    let mut report = Report::new(&source);
    report.error_with_hint(&span, "no", "yes");
    report.finish().to_string()
}

#[test]
fn the_caret_stands_under_the_place_whatever_stands_before_it() {
    let text = "a: 1\n\t翻译: \u{1b}[31mx";
    let at = text.find('x').unwrap();
    assert_eq!(
        shown(text, at..at + 1),
        "error: no\n --> t.yaml:2:11\n  |\n2 |  翻译: \u{fffd}[31mx\n  |             ^\nhint: yes\n"
    );
}

#[test]
fn merged_findings_are_in_the_order_of_the_text_and_each_is_there_once() {
    let source = Source::new("t.yaml", "a: 1\nb: 2\nc: 3\n");
    let found = |severity, at: usize, message: &str| {
        let mut report = Report::new(&source);
        match severity {
            Severity::Error => report.error(&(at..at + 1), message),
            Severity::Warning => report.warning(codes::INVALID, &(at..at + 1), message, "hint"),
        }
        report.finish()
    };
    let mut all = found(Severity::Warning, 10, "third");
    all.merge(found(Severity::Warning, 5, "second"));
    all.push(Diagnostic::new(Severity::Error, codes::INVALID, "u.yaml", None, "the whole file", None));
    all.merge(found(Severity::Error, 5, "second"));
    all.merge(found(Severity::Warning, 5, "second"));
    all.merge(found(Severity::Error, 0, "first"));
    let brief = |one: &Diagnostic| (one.severity, one.message.clone());
    let all: Vec<_> = all.iter().map(brief).collect();
    let expected = [
        (Severity::Error, "first"),
        (Severity::Error, "second"),
        (Severity::Warning, "third"),
        (Severity::Error, "the whole file"),
    ];
    assert_eq!(all, expected.map(|(severity, message)| (severity, message.to_owned())));
}

#[test]
fn warnings_take_no_room_from_errors() {
    let source = Source::new("t.yaml", "a: 1\n");
    let mut report = Report::new(&source);
    for nth in 0..150 {
        report.warning(codes::INVALID, &(0..1), format!("warning {nth}"), "hint");
    }
    assert!(report.full_of_warnings() && !report.full() && !report.failed());
    report.error(&(3..4), "an error");
    assert!(report.failed());
    let found = report.finish();
    assert_eq!((found.errors(), found.iter().count()), (1, 102));
    let last = found.iter().last().map(|last| (last.severity, last.message.as_str()));
    assert_eq!(last, Some((Severity::Warning, "there may be more warnings: the first 100 are shown")));
}

#[test]
fn a_mistake_that_repeats_without_end_fills_a_report() {
    let source = Source::new("t.yaml", "a: 1\n");
    let mut report = Report::new(&source);
    for _ in 0..Report::MOST_FAILURES {
        assert!(!report.full());
        report.error(&(0..1), "wrong");
    }
    assert!(report.full());
    let found: Vec<String> = report.finish().iter().map(|one| one.message.clone()).collect();
    let rest = "there may be more: the same mistakes repeat, and the rest of the file was not checked";
    assert_eq!(found, ["wrong", rest]);
}

#[test]
fn hidden_text_is_hidden_wherever_it_overlaps_the_line() {
    let source = Source::new("t.yaml", "key: abcdef, x: 1\n");
    (0..3).for_each(|_| source.hide(5..11));
    source.hide(100..200);
    let mut report = Report::new(&source);
    report.error(&(8..9), "no");
    assert!(report.finish().to_string().contains("1 | key: ******, x: 1"));
}

#[test]
fn columns_in_utf16_count_what_editors_count() {
    let text = "a: 😀ü x😀\nb: 1";
    let source = Source::new("t.yaml", text);
    let at = |needle: &str, bytes: usize| {
        let start = text.find(needle).unwrap();
        let place = Place::new(&source, &(start..start + bytes));
        (place.column, place.utf16)
    };
    assert_eq!(at("x", 1), (7, 8..9));
    assert_eq!(at("x😀", 5), (7, 8..11));
    // Up to the end of its line, and one column if nothing is left of it.
    assert_eq!(at("x", 10), (7, 8..11));
    assert_eq!(at("\n", 1), (9, 11..12));
}

#[test]
fn of_a_long_line_only_the_surroundings_are_shown() {
    let text = format!("{}x{}", "a".repeat(5_000), "b".repeat(5_000));
    let shown = shown(&text, 5_000..10_001);
    assert!(shown.contains("t.yaml:1:5001"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 110), "{shown}");
    assert!(shown.contains("axb"), "{shown}");
}
