//! The structure of SARIF documents, as the standard requires it: OASIS, "Static Analysis Results Interchange Format (SARIF)
//! Version 2.1.0", section 3. Only the objects that `check --sarif` writes are known here: any other is refused, as are properties
//! that the standard does not have.

use serde_json::Value;

/// What a property holds.
enum Shape {
    Text,
    /// One of these texts.
    Word(&'static [&'static str]),
    /// A reference to a file, as RFC 3986 defines it.
    Uri,
    /// An integer of at least this.
    Number(i64),
    Object(&'static Kind),
    List(&'static Kind),
}
use Shape::{List, Number, Object, Text, Uri, Word};

/// A kind of objects: its properties, and those of which each object must have one.
struct Kind {
    name: &'static str,
    properties: &'static [(&'static str, Shape)],
    required: &'static [&'static [&'static str]],
}

const LEVELS: &[&str] = &["none", "note", "warning", "error"];

/// Section 3.13.
static LOG: Kind = Kind {
    name: "sarifLog",
    properties: &[("version", Word(&["2.1.0"])), ("$schema", Uri), ("runs", List(&RUN))],
    required: &[&["version"], &["runs"]],
};

/// Section 3.14.
static RUN: Kind = Kind {
    name: "run",
    properties: &[
        ("tool", Object(&TOOL)),
        ("columnKind", Word(&["utf16CodeUnits", "unicodeCodePoints"])),
        ("results", List(&RESULT)),
    ],
    required: &[&["tool"], &["results"]],
};

/// Section 3.18.
static TOOL: Kind =
    Kind { name: "tool", properties: &[("driver", Object(&COMPONENT))], required: &[&["driver"]] };

/// Section 3.19.
static COMPONENT: Kind = Kind {
    name: "toolComponent",
    properties: &[("name", Text), ("version", Text), ("informationUri", Uri), ("rules", List(&RULE))],
    required: &[&["name"]],
};

/// Section 3.49.
static RULE: Kind = Kind {
    name: "reportingDescriptor",
    properties: &[
        ("id", Text),
        ("name", Text),
        ("shortDescription", Object(&TEXTS)),
        ("fullDescription", Object(&TEXTS)),
        ("help", Object(&TEXTS)),
        ("helpUri", Uri),
        ("defaultConfiguration", Object(&CONFIGURATION)),
    ],
    required: &[&["id"]],
};

/// Section 3.12.
static TEXTS: Kind = Kind {
    name: "multiformatMessageString",
    properties: &[("text", Text), ("markdown", Text)],
    required: &[&["text"]],
};

/// Section 3.50.
static CONFIGURATION: Kind =
    Kind { name: "reportingConfiguration", properties: &[("level", Word(LEVELS))], required: &[] };

/// Section 3.27.
static RESULT: Kind = Kind {
    name: "result",
    properties: &[
        ("ruleId", Text),
        ("ruleIndex", Number(-1)),
        ("level", Word(LEVELS)),
        ("message", Object(&MESSAGE)),
        ("locations", List(&LOCATION)),
    ],
    required: &[&["message"]],
};

/// Section 3.11.
static MESSAGE: Kind = Kind {
    name: "message",
    properties: &[("text", Text), ("markdown", Text), ("id", Text)],
    required: &[&["text", "id"]],
};

/// Section 3.28.
static LOCATION: Kind =
    Kind { name: "location", properties: &[("physicalLocation", Object(&PHYSICAL))], required: &[] };

/// Section 3.29.
static PHYSICAL: Kind = Kind {
    name: "physicalLocation",
    properties: &[("artifactLocation", Object(&ARTIFACT)), ("region", Object(&REGION))],
    required: &[&["address", "artifactLocation"]],
};

/// Section 3.4.
static ARTIFACT: Kind = Kind {
    name: "artifactLocation",
    properties: &[("uri", Uri), ("uriBaseId", Text)],
    required: &[&["uri", "index"]],
};

/// Section 3.30. A text region has a line; columns are counted from 1.
static REGION: Kind = Kind {
    name: "region",
    properties: &[
        ("startLine", Number(1)),
        ("startColumn", Number(1)),
        ("endLine", Number(1)),
        ("endColumn", Number(1)),
    ],
    required: &[&["startLine"]],
};

/// Asserts that `document` is a SARIF document.
pub(crate) fn check(document: &Value) {
    if let Err(flaw) = object(document, &LOG) {
        panic!("{flaw}\n{document:#}");
    }
    for run in document["runs"].as_array().into_iter().flatten() {
        let rules: Vec<&str> = run["tool"]["driver"]["rules"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|rule| rule["id"].as_str())
            .collect();
        // Section 3.19.23: the ids are those of different rules.
        let distinct: std::collections::BTreeSet<_> = rules.iter().collect();
        assert_eq!(distinct.len(), rules.len(), "two rules have one id: {rules:?}");
        for result in run["results"].as_array().into_iter().flatten() {
            // Section 3.27.6: the index is that of the rule with this id.
            let index = result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
            let rule = index.and_then(|index| rules.get(index).copied());
            assert_eq!(rule, result["ruleId"].as_str(), "the rule of {result:#}");
        }
    }
}

fn object(value: &Value, kind: &Kind) -> Result<(), String> {
    let name = kind.name;
    let object_of = value.as_object().ok_or_else(|| format!("a {name} is no object: {value}"))?;
    for any in kind.required {
        if !any.iter().any(|key| object_of.contains_key(*key)) {
            return Err(format!("a {name} needs {}", any.join(" or ")));
        }
    }
    for (key, value) in object_of {
        let known = kind.properties.iter().find(|(known, _)| known == key);
        let (_, shape) = known.ok_or_else(|| format!("a {name} has no `{key}`, as far as is known here"))?;
        property(value, shape).map_err(|flaw| format!("`{key}` of a {name}: {flaw}"))?;
    }
    Ok(())
}

fn property(value: &Value, shape: &Shape) -> Result<(), String> {
    let is = match shape {
        Text => value.as_str().is_some_and(|text| !text.is_empty()),
        Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Uri => value.as_str().is_some_and(is_uri_reference),
        Number(least) => value.as_i64().is_some_and(|number| number >= *least),
        Object(kind) => return object(value, kind),
        List(kind) => {
            let list = value.as_array().ok_or_else(|| format!("no list: {value}"))?;
            return list.iter().try_for_each(|value| object(value, kind));
        }
    };
    if is { Ok(()) } else { Err(format!("not {value}")) }
}

/// Whether a text is a URI reference: the characters of RFC 3986, and `%` only before two hexadecimal digits.
fn is_uri_reference(text: &str) -> bool {
    let escaped = text.split('%').skip(1).all(|after| {
        after.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    !text.is_empty() && escaped && text.bytes().all(legal)
}

#[test]
fn what_is_no_sarif_is_refused() {
    let ok =
        serde_json::json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "t"}}, "results": []}]});
    assert_eq!(object(&ok, &LOG), Ok(()));
    for (flaw, pointer, value) in [
        ("a sarifLog needs version", "/version", None),
        ("`version` of a sarifLog: not \"2.0.0\"", "/version", Some(serde_json::json!("2.0.0"))),
        (
            "`runs` of a sarifLog: a run has no `x`, as far as is known here",
            "/runs/0/x",
            Some(serde_json::json!(1)),
        ),
        (
            "`runs` of a sarifLog: `results` of a run: a result needs message",
            "/runs/0/results",
            Some(serde_json::json!([{}])),
        ),
    ] {
        let mut document = ok.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => drop(parent.insert(key.to_owned(), value)),
            None => drop(parent.shift_remove(key)),
        }
        assert_eq!(object(&document, &LOG), Err(flaw.to_owned()));
    }
    assert!(is_uri_reference("teams/a%20b.yaml") && !is_uri_reference("a b") && !is_uri_reference("%zz"));
}
