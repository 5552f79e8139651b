//! Text that is not YAML, or not the YAML that it seems to be.

use expect_test::expect;

use super::{check, check_with};

#[test]
fn yaml_that_is_broken() {
    check(
        "name: t\n\tagents: []\n",
        &expect![[r#"
            error: this is not valid YAML: while scanning a plain scalar, found a tab
             --> t.yaml:1:7
              |
            1 | name: t
              |       ^
            hint: indent with spaces, not with tabs
        "#]],
    );
    check(
        "name: note: this\n",
        &expect![[r#"
            error: this is not valid YAML: mapping values are not allowed in this context
             --> t.yaml:1:11
              |
            1 | name: note: this
              |           ^
            hint: a text with `: ` must be in quotes, and the keys of one mapping begin in the same column
        "#]],
    );
    check(
        "name: t\nagents: [\n",
        &expect![[r#"
        error: this is not valid YAML: unclosed bracket '['
         --> t.yaml:2:9
          |
        2 | agents: [
          |         ^
    "#]],
    );
    check(
        "name: 'abc\n",
        &expect![[r#"
            error: this is not valid YAML: invalid indentation in multiline quoted scalar
             --> t.yaml:2:1
              |
            2 | 
              | ^
            hint: close the quotation mark, or write `|` and then the text on separate lines
        "#]],
    );
    check(
        "name: \"a \"b\"\"\n",
        &expect![[r#"
            error: this is not valid YAML: invalid trailing content after double-quoted scalar
             --> t.yaml:1:11
              |
            1 | name: "a "b""
              |           ^
            hint: write quotation marks within a text as `\"`, or `|` and then the text on separate lines
        "#]],
    );
    check(
        "name: 'it's'\n",
        &expect![[r#"
            error: this is not valid YAML: invalid trailing content after single-quoted scalar
             --> t.yaml:1:11
              |
            1 | name: 'it's'
              |           ^
            hint: write an apostrophe within such a text twice, or put the text in double quotes
        "#]],
    );
    check(
        "name: t\n description: x\n",
        &expect![[r#"
            error: this is not valid YAML: mapping values are not allowed in this context
             --> t.yaml:2:13
              |
            2 |  description: x
              |             ^
            hint: a text with `: ` must be in quotes, and the keys of one mapping begin in the same column
        "#]],
    );
    check(
        "agents:\n  - name: A\n   system: You are A.\n",
        &expect![[r#"
            error: this is not valid YAML: while parsing a block collection, did not find expected '-' indicator
             --> t.yaml:3:4
              |
            3 |    system: You are A.
              |    ^
            hint: check that the keys of one item begin in the same column, and the items of one list, too
        "#]],
    );
    check(
        "a: 1\n---\nb: 2\n",
        &expect![[r#"
        error: a second document starts here; only one is allowed
         --> t.yaml:2:1
          |
        2 | ---
          | ^^^
        hint: a file holds one team: leave out the `---`
    "#]],
    );
    check(
        "%YAML 1.2\n---\nname: t\n",
        &expect![[r#"
        error: this is not valid YAML: YAML directives are disallowed
         --> t.yaml:1:1
          |
        1 | %YAML 1.2
          | ^
        hint: leave out the line that begins with `%`
    "#]],
    );
    check(
        "name: \u{7}\n",
        &expect![[r#"
            error: this is not valid YAML: unexpected character: `\u{7}'
             --> t.yaml:1:7
              |
            1 | name: �
              |       ^
            hint: take it out
        "#]],
    );
}

#[test]
fn yaml_that_means_something_else_than_it_seems_to() {
    check_with(
        "task: {{topic}}\n",
        &expect![[r#"
            error: a text that begins with `{{` must be in quotes
             --> t.yaml:4:7
              |
            4 | task: {{topic}}
              |       ^^^^^^^^
            hint: write "{{topic}}"
        "#]],
    );
    check_with(
        "task: *important*\n",
        &expect![[r#"
        error: there is no anchor `&important*` before this
         --> t.yaml:4:7
          |
        4 | task: *important*
          |       ^^^^^^^^^^^
        hint: a text that begins with `*` has to be in quotes: "*important*"
    "#]],
    );
    check_with(
        "task: !python/object:os.system ls\n",
        &expect![[r#"
            error: the tag `!python/object:os.system` is not supported
             --> t.yaml:4:7
              |
            4 | task: !python/object:os.system ls
              |       ^^^^^^^^^^^^^^^^^^^^^^^^
            hint: leave it out
        "#]],
    );
    check_with(
        "model: openai:a\nmodel: openai:b\n",
        &expect![[r#"
        error: `model` is set twice; first in line 4
         --> t.yaml:5:1
          |
        5 | model: openai:b
          | ^^^^^
    "#]],
    );
    check(
        "{name: t, // the agents\nagents: [{name: A}], chat: {participants: [A], pattern: sequential}}\n",
        &expect![[r#"
            error: unknown key `// the agents agents`
             --> t.yaml:1:11
              |
            1 | {name: t, // the agents
              |           ^^^^^^^^^^^^^
            hint: a comment begins with `#`, also in JSON

            error: there is no agent, chat or team `A`
             --> t.yaml:2:44
              |
            2 | agents: [{name: A}], chat: {participants: [A], pattern: sequential}}
              |                                            ^
            hint: define it in `agents`
        "#]],
    );
    check_with(
        "? [a, b]\n: x\n",
        &expect![[r#"
            error: a key cannot be a list or mapping
             --> t.yaml:4:3
              |
            4 | ? [a, b]
              |   ^^^^^^
            hint: put it in quotes if it is a text

            error: unknown key `[a, b]`
             --> t.yaml:4:3
              |
            4 | ? [a, b]
              |   ^^^^^^
            hint: there are `name`, `description`, `task`, `model`, `fallback`, `fallback_return`, `compaction`, `cache`, `vars`, `endpoints`, `prices`, `agents`, `chat`, `chats`, `teams`, `sandbox`, `files`, `commands`, `mcp`, `calls` and 6 more
        "#]],
    );
}
