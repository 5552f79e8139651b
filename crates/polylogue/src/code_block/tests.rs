use super::*;

fn read(text: &str) -> Vec<(String, String)> {
    blocks(text).into_iter().map(|block| (block.language.unwrap_or_default(), block.code)).collect()
}

fn one(text: &str) -> (String, String) {
    let mut all = read(text);
    assert_eq!(all.len(), 1, "{text}\n{all:?}");
    all.remove(0)
}

#[test]
fn any_tag_is_recognized() {
    for (info, language) in [
        ("python", "python"),
        ("Python", "python"),
        ("c++", "c++"),
        ("objective-c", "objective-c"),
        ("python title=\"a b\"", "python"),
        ("{.python .numberLines}", "python"),
        ("js,linenos", "js"),
        ("  sh  ", "sh"),
    ] {
        assert_eq!(one(&format!("```{info}\nx\n```")), (language.to_owned(), "x\n".to_owned()), "{info}");
    }
}

#[test]
fn longer_fences_hold_shorter_ones() {
    let inner = "print('''\n```sh\nls\n```\n''')\n";
    assert_eq!(one(&format!("````python\n{inner}````")), ("python".into(), inner.into()));
    assert_eq!(one(&format!("~~~python\n{inner}~~~")), ("python".into(), inner.into()));
}

#[test]
fn lists_quotes_and_indentation_are_taken_off() {
    let code = "if True:\n    print(1)\n";
    for text in [
        "1. First:\n\n   ```python\n   if True:\n       print(1)\n   ```\n\n2. Done.",
        "> ```python\n> if True:\n>     print(1)\n> ```",
        "Here:\n\n    ```python\n    if True:\n        print(1)\n    ```\n",
        "  ```python\n  if True:\n      print(1)\n  ```",
        "```python\r\nif True:\r\n    print(1)\r\n```\r\n",
    ] {
        assert_eq!(one(text), ("python".into(), code.into()), "{text}");
    }
}

#[test]
fn what_is_cut_off_or_empty_is_no_block() {
    for text in [
        "",
        "no code",
        "`x = 1`",
        "```python\nprint(1)",
        "```python\nprint(1)\n``",
        "```python\n\n```",
        "```",
        "```\n",
    ] {
        assert_eq!(read(text), [], "{text}");
    }
    assert_eq!(read("````python\nprint(1)\n```\n"), []);
}

#[test]
fn several_blocks_keep_their_order() {
    let text = "First\n```sh\nls\n```\nthen\n```python\nprint(1)\n```\n```json\n{}\n```";
    let languages: Vec<_> = read(text).into_iter().map(|(language, _)| language).collect();
    assert_eq!(languages, ["sh", "python", "json"]);
    let programs: Vec<_> = blocks(text).iter().map(CodeBlock::is_program).collect();
    assert_eq!(programs, [true, true, false]);
}

#[test]
fn only_a_comment_that_says_so_names_the_file() {
    for (line, file) in [
        ("# filename: a.py", Some("a.py")),
        ("#filename: a b.py ", Some("a b.py")),
        ("// filename: src/a.js", Some("src/a.js")),
        ("/* filename: a.css */", Some("a.css")),
        ("<!-- filename: a.html -->", Some("a.html")),
        ("# filename: ../a.py", Some("../a.py")),
        ("# a.py", None),
        ("# load data/x", None),
        ("# filename:", None),
        ("filename: a.py", None),
        ("x = '# filename: a.py'", None),
    ] {
        let found = blocks(&format!("```python\n{line}\nprint(1)\n```"));
        assert_eq!(found[0].file.as_deref(), file, "{line}");
    }
    assert_eq!(blocks("```python\nx = 1\n# filename: a.py\n```")[0].file, None);
}

#[test]
fn a_fence_is_longer_than_those_within() {
    let block = &blocks("````python\nprint('```')\n```\n````")[0];
    assert_eq!(block.fenced("a\n```\nb"), "````python\na\n```\nb\n````");
    assert_eq!(blocks(&block.fenced(&block.code))[0], *block);
}

#[test]
fn any_text_is_parsed_for_code_blocks() {
    let mut state = 7_u64;
    let pieces = [
        "```", "````", "~~~", "\n", "\r\n", " ", "    ", "> ", "- ", "python", "x = 1", "#", "é", "<div>",
        "\u{0}",
    ];
    for _ in 0..2_000 {
        let mut text = String::new();
        for _ in 0..20 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        for block in blocks(&text) {
            assert!(!block.code.trim().is_empty() && !block.code.contains("\r\n"), "{text:?}");
        }
    }
}
