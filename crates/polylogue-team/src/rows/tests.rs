use super::*;

fn ids(rows: &Rows) -> Vec<String> {
    (0..rows.len()).map(|index| rows.get(index).unwrap().id).collect()
}

fn wrong(rows: Result<Rows, Diagnostics>, expected: &[&str]) {
    let diagnostics = rows.unwrap_err();
    let found: Vec<String> = diagnostics
        .iter()
        .map(|one| {
            let place = one.place.as_ref().map_or(String::new(), |at| format!("{}:{} ", at.line, at.column));
            format!("{place}{}", one.message)
        })
        .collect();
    assert_eq!(found, expected);
}

// Item 89 of the list of CAMEL.
#[test]
fn a_product_of_roles_and_tasks_has_every_combination_once() {
    let list = |name: &str, count: usize| {
        let values: Vec<String> = (1..=count).map(|number| format!("{name} {number}")).collect();
        format!("{name}: {}\n", serde_json::to_string(&values).unwrap())
    };
    let text = [list("assistant", 3), list("user", 4), list("task", 5)].concat();
    let rows = Rows::cross(&text, "roles.yaml").unwrap();
    assert_eq!((rows.len(), rows.get(60)), (60, None));
    let (first, last) = (rows.get(0).unwrap(), rows.get(59).unwrap());
    assert_eq!((&*first.id, &*last.id), ("001_001_001", "003_004_005"));
    assert_eq!((last.task.as_deref(), &*last.vars["user"]), (Some("task 5"), "user 4"));
    let all: std::collections::BTreeSet<String> = ids(&rows).into_iter().collect();
    assert_eq!(all.len(), 60);
    assert!(ids(&rows).is_sorted());
    assert_eq!(rows.samples(), [first]);
}

#[test]
fn long_lists_have_longer_ids() {
    let values: Vec<usize> = (0..1200).collect();
    let rows = Rows::cross(&serde_json::json!({ "n": values }).to_string(), "n.json").unwrap();
    assert_eq!(rows.get(6).unwrap().id, "0007");
    assert_eq!(rows.get(1199).unwrap().vars["n"], "1199");
}

#[test]
fn lines_are_rows_and_their_keys_are_variables() {
    let text = "\u{feff}{\"task\": \"a\", \"n\": 1.50, \"b\": true}\r\n\n{\"id\": \"x-1\", \"role\": \"poet\"}\n  {\"id\": 7}";
    let rows = Rows::over(text, "rows.jsonl").unwrap();
    assert_eq!(ids(&rows), ["00001", "x-1", "7"]);
    let first = rows.get(0).unwrap();
    assert_eq!((first.task.as_deref(), &*first.vars["n"], &*first.vars["b"]), (Some("a"), "1.5", "true"));
    assert_eq!(rows.samples().len(), 3, "every set of keys once");
}

#[test]
fn wrong_lines_are_reported_with_their_places() {
    wrong(Rows::over("", "r"), &["1:1 there is no row"]);
    wrong(Rows::over("\n \n", "r"), &["1:1 there is no row"]);
    let text = "{\"id\": \"a\"}\nnope\n[1]\n{\"task\": null, \"x\": {}}\n{\"id\": \"a\"}\n{\"id\": \"no/path\"}\n{\"a\": 1,}";
    wrong(
        Rows::over(text, "r"),
        &[
            "2:2 this is not valid JSON: expected ident",
            "3:1 this is not a JSON object",
            "4:1 `task` is neither a text nor a number",
            "4:1 `x` is neither a text nor a number",
            "5:1 the row `a` is in the file twice; first in line 1",
            "6:1 `no/path` is not a valid row id",
            "7:9 this is not valid JSON: trailing comma",
        ],
    );
}

#[test]
fn lines_of_text_are_answered_with_the_form_of_a_row() {
    let hints = |text: &str| {
        let found = Rows::over(text, "r").unwrap_err();
        found.iter().map(|one| one.hint.clone().unwrap_or_default()).collect::<Vec<_>>()
    };
    let form = "give one JSON object a line: `{\"task\": \"...\"}`";
    assert_eq!(hints("Write a poem\n[1]\n{\"a\": 1,}"), [form, form, ""]);
}

#[test]
fn wrong_products_are_reported_with_their_places() {
    wrong(Rows::cross("[a]", "r"), &["1:1 this is not a mapping of lists"]);
    wrong(Rows::cross("{}", "r"), &["1:1 there is no list"]);
    wrong(
        Rows::cross("a: [x]\nb: x\nc: []\nd: [[x], {y: z}, null]", "r"),
        &[
            "2:4 `b` is not a list",
            "3:4 `c` is empty: there would be no row",
            "4:5 this value of `d` is neither a text nor a number",
            "4:10 this value of `d` is neither a text nor a number",
            "4:18 this value of `d` is neither a text nor a number",
        ],
    );
    let many = serde_json::json!({"a": vec![1; 2000], "b": vec![1; 2000]}).to_string();
    wrong(Rows::cross(&many, "r"), &["1:1 these are more than 1000000 rows"]);
    let lists: BTreeMap<String, [u8; 1]> = (0..20).map(|key| (format!("k{key}"), [1])).collect();
    let text = serde_json::to_string(&lists).unwrap();
    wrong(Rows::cross(&text, "r"), &["1:1 too many lists: the ids of the rows would be too long"]);
}

#[test]
fn a_table_has_names_of_columns_and_cells_that_may_be_quoted_or_empty() {
    let text = "\u{feff}id,task, mood\r\na,\"Write, in\ntwo lines, \"\"this\"\"\",sad\r\n,,\"glad\"\r\n";
    let rows = Rows::over(text, "rows.CSV").unwrap();
    assert_eq!(ids(&rows), ["a", "00004"]);
    let (first, second) = (rows.get(0).unwrap(), rows.get(1).unwrap());
    assert_eq!(first.task.as_deref(), Some("Write, in\ntwo lines, \"this\""));
    assert_eq!((&*first.vars["mood"], second.task, &*second.vars["mood"]), ("sad", None, "glad"));
    let tabs = Rows::over("task\tmood\nWrite, now\tsad\n", "rows.tsv").unwrap();
    assert_eq!(tabs.get(0).unwrap().task.as_deref(), Some("Write, now"));
}

#[test]
fn mistakes_of_a_table_are_reported_with_their_places() {
    wrong(Rows::over("", "r.csv"), &["1:1 there is no row"]);
    wrong(Rows::over("task,mood\n", "r.csv"), &["1:1 there is no row"]);
    wrong(Rows::over("task;mood\na;b\n", "r.csv"), &["1:1 there is only one column"]);
    for (table, place) in
        [("task\na\n\"open\nx\ny\n", "3:1"), ("task,mood\na,\"b \"\"c\"\"\n", "2:3"), ("\"task\na\n", "1:1")]
    {
        wrong(Rows::over(table, "r.csv"), &[&format!("{place} this quotation mark is not closed")]);
    }
    let names = ["1:1 a column has no name", "1:1 there are two columns `a`"];
    wrong(Rows::over("a,,a\n1,2,3\n", "r.csv"), &names);
    wrong(
        Rows::over("id,a\nx,1\nx,2\ny,1,2\nno/path,1\n", "r.csv"),
        &[
            "3:1 the row `x` is in the file twice; first in line 2",
            "4:1 this row has 3 cells, and the header has 2 columns",
            "5:1 `no/path` is not a valid row id",
        ],
    );
}

#[test]
fn errors_of_rows_show_the_line_and_the_column_but_not_the_row() {
    let private = "private text ".repeat(100);
    let json = |row: &serde_json::Value| row.to_string();
    let rows = [
        json(&serde_json::json!({"id": private})),
        json(&serde_json::json!({"task": {"a": private}, "mood": [private]})),
        json(&serde_json::json!({format!("column {private}"): null})),
        format!("{{\"task\": \"{private}\""),
    ];
    let cut = private.chars().take(48).collect::<String>();
    let column = format!("column {private}").chars().take(48).collect::<String>();
    let expected = format!(
        "error: `{cut}…` is not a valid row id\n --> r.jsonl:1:1\n\
         hint: it is 1 to 48 ASCII letters, digits, `-` and `_`\n\n\
         error: `task` is neither a text nor a number\n --> r.jsonl:2:1\n\n\
         error: `mood` is neither a text nor a number\n --> r.jsonl:2:1\n\n\
         error: `{column}…` is neither a text nor a number\n --> r.jsonl:3:1\n\n\
         error: this is not valid JSON: EOF while parsing an object\n --> r.jsonl:4:1311\n"
    );
    assert_eq!(Rows::over(&rows.join("\n"), "r.jsonl").unwrap_err().to_string(), expected);

    let table = format!("task,mood\n{private},x,y\n");
    let expected = "error: this row has 3 cells, and the header has 2 columns\n --> r.csv:2:1\n";
    assert_eq!(Rows::over(&table, "r.csv").unwrap_err().to_string(), expected);
}
