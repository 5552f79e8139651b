//! Findings as SARIF 2.1.0, which code hosts and editors show at the lines.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use polylogue_team::{Diagnostic, FindingKind, Severity, finding_kinds};
use serde_json::{Value, json};

/// What a path keeps unescaped in a URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The document of one run of the checks.
pub(super) fn document(findings: &[Diagnostic]) -> Value {
    let rules: Vec<Value> = finding_kinds().iter().map(rule).collect();
    let results: Vec<Value> = findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "polylogue",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

fn rule(kind: &FindingKind) -> Value {
    json!({
        "id": kind.code,
        "shortDescription": {"text": kind.summary},
        "fullDescription": {"text": format!("{} {}", kind.summary, kind.help)},
        "help": {"text": kind.help},
        "defaultConfiguration": {"level": level(kind.severity)},
    })
}

fn result(finding: &Diagnostic) -> Value {
    let text = match &finding.hint {
        Some(hint) => format!("{}; hint: {hint}", finding.message),
        None => finding.message.clone(),
    };
    let mut location = json!({"artifactLocation": {"uri": uri(&finding.file)}});
    if let (Some(place), Some(location)) = (&finding.place, location.as_object_mut()) {
        let (start, end) = (place.utf16.start, place.utf16.end);
        let region =
            json!({"startLine": place.line, "startColumn": start, "endLine": place.line, "endColumn": end});
        location.insert("region".to_owned(), region);
    }
    let mut result = json!({
        "ruleId": finding.code,
        "level": level(finding.severity),
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
    });
    let index = finding_kinds().iter().position(|kind| kind.code == finding.code);
    if let (Some(index), Some(result)) = (index, result.as_object_mut()) {
        result.insert("ruleIndex".to_owned(), index.into());
    }
    result
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// A relative path as a relative reference, an absolute one as a `file:` URI.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    format!("{scheme}{}", utf8_percent_encode(path, PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_valid_uri() {
        assert_eq!(uri("./teams/a b#1.yaml"), "teams/a%20b%231.yaml");
        assert_eq!(uri("/tmp/ü.yaml"), "file:///tmp/%C3%BC.yaml");
    }
}
