//! Every mistake of a file is found in one run, at its place, with advice.

use expect_test::expect;
use polylogue_config::diagnostic::Report;
use polylogue_config::source::Source;
use polylogue_config::yaml;

use super::team::{WHOLE, read};

#[test]
fn a_file_without_mistakes_is_read() {
    let (team, found) = read(WHOLE);
    assert_eq!(found, "");
    let team = team.unwrap();
    assert_eq!(team.agents.len(), 3);
    assert_eq!(team.chat.max_turns, 7);
}

/// The messages and hints, without the lines of the file.
fn shown(text: &str) -> String {
    let found = read(text).1;
    let is_named =
        |line: &&str| ["error", "hint", " -->", "  -->"].iter().any(|start| line.starts_with(start));
    found.lines().filter(is_named).map(|line| format!("{line}\n")).collect()
}

#[test]
fn every_mistake_is_found_in_one_run() {
    let text = r#"name: 7
agents:
  - name: Ann
    sytem: Be kind
    system_message: Be kind
    tools: [5, {tool: search, mandtory: true}, {mcp: files, without: x}, search, search]
    reasoning: {refine: {critic: Bobb, rounds: "2", max_rounds: 1}}
    memory: {auto_recall: 51}
    parameters: {temperature: hot, stop: 1, unknown: 1}
    include: [a]
    exclude: [b]
    output_retries: 1000
  - {name: Bob, reasoning: best, memory: 3, system: ""}
  - {name: B b, human: yes, reasoning: cot, timeout: soon}
  - {name: Cy, human: true, system: "You are {{style}}", timeout: 1 h}
  - {name: Bob, reasoning: {best: , react: {}}}
  - Dan
chat: {participants: [Ann, Ann, Boob, Zed], max_round: 3, max_turns: 0.5}
"#;
    expect![[r#"
        error: `name` must be a text, not a number
         --> team.yaml:1:7
        hint: write a text such as `Critic`
        error: unknown key `sytem`
         --> team.yaml:4:5
        hint: did you mean `system`?
        error: unknown key `system_message`
         --> team.yaml:5:5
        hint: AutoGen's `system_message` is `system` here
        error: an item of `tools` must be a text or a mapping, not a number
         --> team.yaml:6:13
        hint: put it in quotes: "5"
        error: unknown key `mandtory`
         --> team.yaml:6:31
        hint: did you mean `mandatory`?
        error: `without` must be a list, not a text
         --> team.yaml:6:70
        hint: write a list: `[x]`
        error: `search` is already in `tools`
         --> team.yaml:6:82
        error: unknown agent `Bobb`
         --> team.yaml:7:34
        hint: did you mean `Bob`?
        error: `rounds` must be a whole number, not a text
         --> team.yaml:7:48
        hint: remove the quotation marks
        error: unknown key `max_rounds`
         --> team.yaml:7:53
        hint: did you mean `rounds`?
        error: `auto_recall` must be at most 50
         --> team.yaml:8:27
        error: `temperature` must be a number, not a text
         --> team.yaml:9:31
        error: `stop` must be a text, not a number
         --> team.yaml:9:42
        hint: put it in quotes: "1"
        error: unknown key `unknown`
         --> team.yaml:9:45
        hint: there are `temperature`, `stop`
        error: `include` and `exclude` cannot both be given
          --> team.yaml:10:5
        hint: remove one of them
        error: `output_retries` also needs `output_schema`
          --> team.yaml:12:5
        hint: add `output_schema`, or remove `output_retries`
        error: `output_retries` must be at most 100
          --> team.yaml:12:21
        error: `reasoning` cannot be only `best`
          --> team.yaml:13:28
        hint: it takes more than a word: `reasoning: {best: {critic: ...}}`
        error: `memory` must be `true` or `false` or a mapping, not a number
          --> team.yaml:13:42
        error: `system` is empty
          --> team.yaml:13:53
        error: `B b` is not a legal name
          --> team.yaml:14:12
        hint: use letters, digits and `_`
        error: `human` must be `true` or `false`, not a text
          --> team.yaml:14:24
        error: `reasoning` cannot be `cot`
          --> team.yaml:14:40
        hint: CrewAI's `cot` is `react` here
        error: a person has no `system`
          --> team.yaml:15:29
        hint: remove `system`, or `human: true`
        error: `1 h` is not a duration
          --> team.yaml:15:67
        hint: write a number and its unit, such as `10 s`
        error: an agent `Bob` is already defined in line 13
          --> team.yaml:16:12
        hint: remove one of them, or give it another name
        error: `best` is empty
          --> team.yaml:16:33
        hint: give it a mapping, or remove it
        error: `reasoning` takes one key only, and `react` is another
          --> team.yaml:16:37
        error: an item of `agents` must be a mapping, not a text
          --> team.yaml:17:5
        hint: write `{name: Dan, ...}`
        error: `Ann` is already in `participants`
          --> team.yaml:18:28
        error: unknown agent `Boob`
          --> team.yaml:18:33
        hint: did you mean `Bob`?
        error: unknown key `max_round`
          --> team.yaml:18:45
        hint: AutoGen's `max_round` is `max_turns` here
        error: `max_turns` must be a whole number
          --> team.yaml:18:70
    "#]]
    .assert_eq(&shown(text));
}

#[test]
fn a_secret_is_not_shown() {
    let found =
        read("name: x\nheader: [sk-secret-value]\nagents: [{name: A}]\nchat: {participants: [A]}\n").1;
    assert!(found.contains("`header` must be a text, not a list"), "{found}");
    assert!(!found.contains("secret-value"), "{found}");
}

#[test]
fn what_is_known_only_later_is_refused_where_it_is_needed_now() {
    let found =
        shown("name: x\nagents: [{name: A, description: 'on {{task}}'}]\nchat: {participants: [A]}\n");
    expect![[r#"
        error: `{{task}}` is not known here
         --> team.yaml:2:37
        hint: its value is known only when a chat begins
    "#]]
    .assert_eq(&found);
}

#[test]
fn a_name_that_could_not_be_read_is_not_called_unknown_as_well() {
    let found = shown("name: x\nagents: [{name: 'A A'}]\nchat: {participants: [Another_Agent]}\n");
    assert!(found.contains("`A A` is not a legal name"), "{found}");
    assert!(!found.contains("unknown agent"), "{found}");
}

#[test]
fn a_value_without_its_required_keys_is_not_a_word() {
    let found = shown("name: x\nagents: [{name: A, reasoning: best}]\nchat: {participants: [A]}\n");
    expect![[r#"
        error: `reasoning` cannot be only `best`
         --> team.yaml:2:31
        hint: it takes more than a word: `reasoning: {best: {critic: ...}}`
    "#]]
    .assert_eq(&found);
}

#[test]
fn a_text_that_a_comma_ended_is_to_be_quoted() {
    let found = shown(
        "name: x\nagents: [{name: A, description: Yes, please, now, human: true}, {name: B, human, odd, sytem: a, b, memory}]\nchat: {participants: [A]}\n",
    );
    expect![[r#"
        error: unknown key `please`
         --> team.yaml:2:38
        hint: a comma ends a text in braces; put the text in quotes: `description: "Yes, please, now"`
        error: `human` is empty
         --> team.yaml:2:80
        hint: give it `true` or `false`, or remove it
        error: unknown key `odd`
         --> team.yaml:2:82
        hint: there are `name`, `description`, `human`, `timeout`, `system`, `tools`, `reasoning`, `memory`, `parameters`, `include`, `exclude`, `output_schema`, `output_retries`
        error: unknown key `sytem`
         --> team.yaml:2:87
        hint: did you mean `system`?
        error: unknown key `b`
         --> team.yaml:2:97
        hint: a comma ends a text in braces; put the text in quotes: `sytem: "a, b"`
        error: `memory` is empty
         --> team.yaml:2:106
        hint: give it `true` or `false` or a mapping, or remove it
    "#]]
    .assert_eq(&found);
    let quoted =
        shown("name: x\nagents: [{name: A, description: 'Yes', please}]\nchat: {participants: [A]}\n");
    assert!(quoted.contains("unknown key `please`") && !quoted.contains("quotes"), "{quoted}");
}

#[test]
fn few_names_are_compared_with_all_others_while_a_definition_could_not_be_read() {
    let unknown = |count| (0..count).map(|nth| format!("stranger{nth}, ")).collect::<String>();
    let text = |count| {
        let agents = "{name: 'A A'}, {name: Writer}";
        format!("name: x\nagents: [{agents}]\nchat: {{participants: [{}Writr]}}\n", unknown(count))
    };
    assert!(shown(&text(10)).contains("unknown agent `Writr`"));
    let found = shown(&text(100));
    assert!(found.contains("`A A` is not a legal name") && !found.contains("Writr"), "{found}");
}

#[test]
fn mistakes_that_aliases_repeat_are_looked_at_a_few_hundred_times() {
    let text = |count: usize| {
        let again = "*a, ".repeat(count);
        format!(
            "name: x\nagents: [&a {{nam: x, human: true}}, {again}{{name: 7}}]\nchat: {{participants: []}}\n"
        )
    };
    assert!(shown(&text(10)).contains("`name` must be a text"));
    let found = shown(&text(1_000));
    assert!(found.contains("did you mean `name`?") && !found.contains("must be a text"), "{found}");
    assert!(found.contains("the same mistakes repeat"), "{found}");
}

#[test]
fn a_key_that_is_a_list_is_not_kept_with_its_spaces() {
    let text = format!("a: &a [{}]\nb: {{? *a : 1}}\n", " ".repeat(100_000));
    let source = Source::new("team.yaml", &text);
    let mut report = Report::new(&source);
    let tree = yaml::parse(&mut report).unwrap();
    assert!(tree.get("b").entries().iter().all(|entry| entry.key.len() <= 100));
    assert!(report.finish().to_string().contains("a key cannot be a list or mapping"));
}
