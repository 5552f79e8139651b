use proptest::prelude::*;

use super::*;

fn read(html: &str) -> Page {
    read_html(html, &"https://example.org/a/b?c=d".parse().unwrap())
}

fn text(html: &str) -> String {
    read(html).text
}

#[test]
fn pages_are_converted_to_markdown() {
    for (html, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("a<p>b<p>c", "a\n\nb\n\nc"),
        ("<h1>A</h1><h3>B\nC</h3>", "# A\n\n### B C"),
        ("<p>a <b>b</b><i> c </i>d</p>", "a **b** *c* d"),
        ("<p>a<br>b<br/>c", "a\nb\nc"),
        ("<p>1 &lt; 2 &amp;&nbsp;&eacute;&#x41;</p>", "1 < 2 & éA"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
        ("<ol start=9><li>a<li>b</ol>", "9. a\n10. b"),
        ("<ul><li><p>a</p><p>b</p></ul>", "- a\n\n  b"),
        ("<blockquote><p>a<p>b</blockquote>", "> a\n>\n> b"),
        ("<pre>\n a\n  b\n</pre>", "```\n a\n  b\n```"),
        ("<pre><code class='hl language-rust'>a\n```\nb</code></pre>", "````rust\na\n```\nb\n````"),
        ("<p>use <code>a</code>, <code>b`c</code>", "use `a`, ``b`c``"),
        ("<table><tr><th>a<th>b<tr><td>1|2<td>3</table>", "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |"),
        ("<table><tr><td><h2>a</h2><p>b</table>", "## a\n\nb"),
        ("<dl><dt>a<dd>b<dd>c</dl>", "**a**\n\n: b\n\n: c"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<p>a<del>b</del><sup>c</sup>", "a~~b~~c"),
        ("<a href=/x><div><h2>a</h2><p>b</div></a>", "## a\n\nb"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn links_are_whole_addresses() {
    for (html, expected) in [
        ("<a href=c>x</a>", "[x](https://example.org/a/c)"),
        ("<a href='//h.example/?q=a b'>x</a>", "[x](https://h.example/?q=a%20b)"),
        ("<a href='/w/A_(b)'>x</a>", "[x](https://example.org/w/A_%28b%29)"),
        ("<a href='#top'>x</a>", "x"),
        ("<a href='javascript:alert(1)'>x</a>", "x"),
        ("<a href='data:text/html,x'>x</a>", "x"),
        ("<a href='http://['>x</a>", "x"),
        ("<a href=c></a>", ""),
        ("<a href=c aria-label=y></a>", "[y](https://example.org/a/c)"),
        (
            "<a href=c><img src=i.png alt='a  b'></a>",
            "[![a b](https://example.org/a/i.png)](https://example.org/a/c)",
        ),
        ("<img src=i.png>", ""),
        ("<p>see<a href=c> x </a>there", "see [x](https://example.org/a/c) there"),
        ("<base href='/z/'><a href=c>x</a>", "[x](https://example.org/z/c)"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn navigation_around_the_text_of_a_page_is_omitted() {
    let prose = "Bees dance to tell one another where the flowers are, and how far. ".repeat(8);
    let prose = prose.trim();
    let around = "<header><nav><a href=/>Home</a></nav></header><div class='cookie-consent'>We use cookies</div>
        <script>var a = '<p>no</p>'</script><style>p {}</style><div hidden>unseen</div><p style='display: none'>unseen</p>
        <ul class='main-nav'><li><a href=/b>Menu</a></ul>";
    for (html, expected) in [
        (format!("{around}<div><p>{prose}</p></div><footer>Imprint</footer>"), prose.to_owned()),
        (
            format!("{around}<main><h1>Bees</h1><p>{prose}</p></main><aside>More</aside>"),
            format!("# Bees\n\n{prose}"),
        ),
        (
            format!("<p>before</p><article><p>{prose}</p><p>{prose}</article><p>after"),
            format!("{prose}\n\n{prose}"),
        ),
        // Pages that consist of what usually stands around.
        ("<div class=sidebar><p>All there is</p></div>".to_owned(), "All there is".to_owned()),
        (
            "<ul><li><a href=/1>One</a><li><a href=/2>Two</a></ul>".to_owned(),
            "- [One](https://example.org/1)\n- [Two](https://example.org/2)".to_owned(),
        ),
    ] {
        assert_eq!(text(&html), expected, "{html}");
    }
}

#[test]
fn titles_are_found() {
    for (html, expected) in [
        ("<title> A\n &amp; B </title>", "A & B"),
        ("<meta property='og:title' content=' A '><h1>B</h1>", "A"),
        ("<h1>A <i>B</i></h1>", "A B"),
        ("<svg><title>no</title></svg><p>a", ""),
    ] {
        assert_eq!(read(html).title, expected, "{html}");
    }
    let long = read(&format!("<title>{}</title>", "é".repeat(100_000))).title;
    assert_eq!(long, format!("{}…", "é".repeat(300)));
}

#[test]
fn pages_made_to_be_costly_are_read_in_part() {
    let deep = |open: &str| open.repeat(30_000);
    for html in [
        deep("<div>"),
        deep("<b>"),
        deep("<ul><li>"),
        deep("<blockquote>"),
        deep("<table><tr><td>"),
        (0..10_000).map(|n| format!("<p><font size={n}>a</p>")).collect(),
    ] {
        let begun = std::time::Instant::now();
        let page = read(&html);
        assert!(page.is_cut, "{}", html.get(..20).unwrap());
        assert!(begun.elapsed().as_secs() < 20, "{:?} for {}", begun.elapsed(), html.get(..20).unwrap());
    }
    // Wide pages are read whole.
    for html in [
        deep("<a href=x>"),
        deep("<p>a"),
        deep("<br>"),
        deep("a &amp; b "),
        deep("<!-- a -->"),
        deep("<li>a"),
    ] {
        assert!(!read(&html).is_cut, "{}", html.get(..20).unwrap());
    }
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_tags_break_the_reader(
        tags in proptest::collection::vec(
            "</?(p|a|b|i|font|ul|li|ol|table|tr|td|caption|select|option|svg|math|mi|template|pre|form|h1|br|title|frameset|body|html|head|script|dl|dt|code|nobr|button|annotation-xml)( href=x| class=nav| start=99999999999| hidden)?>|[ a\u{a0}\0&;<]{0,3}",
            0..40,
        )
    ) {
        let page = read(&tags.concat());
        prop_assert!(!page.text.starts_with('\n') && !page.text.ends_with('\n'));
    }
}

/// Few bytes that would take minutes, or become gigabytes.
#[test]
fn pages_made_to_cost_much_are_read_in_part() {
    let begun = std::time::Instant::now();
    let attributes: String = (0..200_000).map(|nth| format!(" a{nth}")).collect();
    let page = read(&format!("<p>Before.</p><p{attributes}>After.</p>"));
    assert!(page.is_cut && page.text.starts_with("Before."), "{}", page.text);
    let some: String = (0..200).map(|nth| format!(" a{nth}=1")).collect();
    let bodies: String = (0..100).map(|nth| format!("<body b{nth}{some}>")).collect();
    assert_eq!(read(&format!("{bodies}<p>In it.")).text, "In it.");
    let base = format!("<base href='https://a.example/{}/'>", "x".repeat(3_000));
    let links = "<a href=y>y</a> ".repeat(100_000);
    let text = text(&format!("{base}<p>{links}"));
    assert!(text.len() < 8 << 20 && text.ends_with(" y y y"), "{}", text.len());
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}
