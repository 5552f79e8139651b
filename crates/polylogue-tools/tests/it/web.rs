//! Pages of a site that helps, and of sites that do what they can to be a nuisance.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flate2::write::GzEncoder;
use polylogue_core::ToolStatus;
use polylogue_http::{Client, Env, Key, NetworkAccess, Proxies};
use polylogue_tools::web::{
    AnySearch, Engine, EngineKind, Fetcher, Pages, Search as _, web_fetch, web_search,
};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::site::{Site, answer, html, redirect};
use crate::{call, done, failed};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    answer("200 OK", "content-type: text/plain\r\ncontent-encoding: gzip\r\n", bytes)
}

#[tokio::test]
async fn a_page_is_read_where_redirects_lead_and_marked_as_from_there() {
    let page = html("<title>Bees</title><nav>Menu</nav><p>They <a href=dance?x>dance</a>.");
    let site = Site::of(&[("/a", redirect("/b")), ("/b", redirect("c/#top")), ("/c/", page)]).await;
    let tool = web_fetch(Some(Arc::new(Fetcher::by(site.client()))), None);
    let outcome = call(&tool, json!({"url": site.url("/a#part")})).await.unwrap();
    let expected =
        format!("Title: Bees\n\nAddress: {}\n\nThey [dance]({}).", site.url("/c/"), site.url("/c/dance?x"));
    assert_eq!((outcome.status, &*outcome.text()), (ToolStatus::Done, expected.as_str()));
    assert_eq!(outcome.outside.as_deref(), Some(site.url("/c/").as_str()));
    assert_eq!(site.paths(), ["/robots.txt", "/a", "/b", "/c/"]);
    let head = site.asked()[1].to_ascii_lowercase();
    for line in [
        format!("host: site.example:{}", site.port),
        format!("user-agent: polylogue/{}", env!("CARGO_PKG_VERSION")),
        "accept-encoding: gzip".into(),
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
    }
}

#[tokio::test]
async fn redirects_lead_nowhere_else_than_addresses_do() {
    let private = Site::of(&[("/", html("secret"))]).await;
    let mut answers: Vec<(String, Vec<u8>)> = Vec::new();
    let to_private = format!("http://127.0.0.1:{}/", private.port);
    for (at, to) in [
        to_private.as_str(),
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://0x7f.1/",
        "http://169.254.169.254/latest/",
        "//10.0.0.1/",
        "http://inner.example/",
        "http://metadata.google.internal/",
        "http://local.example/",
        "http://mapped.example/",
        "file:///etc/passwd",
        "ftp://site.example/",
        "javascript:1",
        "http://user:pass@site.example/",
        "http://site.example:22/",
        "http://[",
        "/loop",
    ]
    .iter()
    .enumerate()
    {
        answers.push((format!("/{at}"), redirect(to)));
    }
    answers.push(("/loop".into(), redirect("/loop2")));
    answers.push(("/loop2".into(), redirect("/loop")));
    let answers: Vec<(&str, Vec<u8>)> =
        answers.iter().map(|(path, bytes)| (path.as_str(), bytes.clone())).collect();
    let site = Site::of(&answers).await;
    let tool = web_fetch(Some(Arc::new(Fetcher::by(site.client()))), None);
    for (path, _) in &answers {
        let why = failed(&tool, json!({"url": site.url(path)})).await;
        assert!(why.contains("cannot be fetched: "), "{path}: {why}");
    }
    assert_eq!(private.asked(), [""; 0], "it was not even asked");
    assert_eq!(site.paths().iter().filter(|path| path.starts_with("/loop")).count(), 5 + 6 + 6);
}

#[tokio::test]
async fn addresses_of_kilobytes_are_not_requested() {
    let long = format!("/{}", "a".repeat(9_000));
    let site = Site::of(&[("/short", redirect(&long)), (long.as_str(), html("reached"))]).await;
    let tool = web_fetch(Some(Arc::new(Fetcher::by(site.client()))), None);
    for path in ["/short", long.as_str()] {
        let why = failed(&tool, json!({"url": site.url(path)})).await;
        assert!(why.ends_with("cannot be fetched: its address has more than 8192 bytes"), "{why}");
    }
    assert_eq!(site.paths(), ["/robots.txt", "/short"]);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_followed_only_where_that_is_allowed() {
    let other = "http://other.example/b?c=d#e";
    let answers = [("/a", redirect(other)), ("/same", redirect("/b")), ("/b", html("here"))];
    let site = Site::of(&answers).await;
    let fetcher = Fetcher::by(site.client()).redirects(|from, to| {
        assert!(from.starts_with("site.example:") && to == "other.example", "{from} {to}");
        false
    });
    let tool = web_fetch(Some(Arc::new(fetcher)), None);
    let outcome = call(&tool, json!({"url": site.url("/a")})).await.unwrap();
    let expected = format!("(The page is at another host. Fetch it there: {other})");
    assert_eq!((outcome.status, &*outcome.text()), (ToolStatus::Done, expected.as_str()));
    assert_eq!(outcome.outside.as_deref(), Some(site.url("/a").as_str()));
    let same = done(&tool, json!({"url": site.url("/same")})).await;
    assert_eq!(same, format!("Address: {}\n\nhere", site.url("/b")));
    // Nor is it asked for what programs may fetch: then the site forbids nothing.
    let site = Site::of(&[("/robots.txt", redirect("http://other.example/")), ("/", html("here"))]).await;
    let fetched = Fetcher::by(site.client()).redirects(|_, _| false).fetch(&site.url("/")).await.unwrap();
    assert_eq!(fetched.page.text, "here");
    assert_eq!(site.paths(), ["/robots.txt", "/"]);
}

#[tokio::test]
async fn addresses_that_lead_inside_are_refused_whatever_they_look_like() {
    let site = Site::of(&[("/", html("secret"))]).await;
    let fetcher = Fetcher::by(site.client());
    let port = site.port;
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        "http://localhost/".into(),
        "http://LOCALHOST./".into(),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://local.example:{port}/"),
        "http://local.example/".into(),
        "https://local.example/".into(),
        "http://inner.example/".into(),
        "http://mapped.example/".into(),
        "http://metadata.google.internal/computeMetadata/v1/".into(),
        "http://169.254.169.254/".into(),
        "http://[fd00:ec2::254]/".into(),
        format!("http://site.example:{port}@127.0.0.1/"),
        "http://site.example/".into(),
        "http://site.example:8/".into(),
        "file:///etc/passwd".into(),
        "page:/x.md".into(),
        "nonsense".into(),
        "http://".into(),
        "http:///".into(),
        "//x".into(),
        "".into(),
    ] {
        let why = fetcher.fetch(&url).await.unwrap_err();
        assert!(why.contains("cannot be fetched") || why.contains("is not an address"), "{url}: {why}");
    }
    assert_eq!(site.asked(), [""; 0]);
    let why = fetcher.fetch("http://inner.example/").await.unwrap_err();
    assert_eq!(
        why,
        "`http://inner.example/` cannot be fetched: `inner.example`, which is 10.0.0.1, is not public: the address is for a private network"
    );
    let why = fetcher.fetch("http://unknown.example/").await.unwrap_err();
    assert_eq!(
        why,
        "`http://unknown.example/` cannot be fetched: the host `unknown.example` cannot be resolved: it has no address"
    );
}

#[tokio::test]
async fn of_all_that_a_name_stands_for_only_what_was_checked_is_reached() {
    let site = Site::of(&[("/", html("here"))]).await;
    let reach = NetworkAccess::public().allowing(["127.0.0.1".parse().unwrap()]);
    let addresses = ["10.0.0.1", "169.254.169.254", "127.0.0.1"].map(|address| address.parse().unwrap());
    let fetcher = Fetcher::by(Client::new(reach).host("both.example", addresses));
    let begun = Instant::now();
    let fetched = fetcher.fetch(&format!("http://both.example:{}/", site.port)).await.unwrap();
    assert_eq!(fetched.page.text, "here");
    assert!(begun.elapsed() < Duration::from_secs(5), "no other address was tried");
}

#[tokio::test]
async fn servers_that_hang_or_drip_are_given_up() {
    let site = Site::acting(|path, mut stream| {
        Box::pin(async move {
            if path == "/drip" {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").await?;
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            } else if path == "/head" {
                stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await?;
                while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
            } else if path == "/robots.txt" {
                return stream.write_all(&answer("404 Not Found", "", "")).await;
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(())
        })
    })
    .await;
    let fetcher = Fetcher::by(site.client()).time(Duration::from_millis(600));
    for path in ["/hang", "/drip"] {
        let begun = Instant::now();
        let why = fetcher.fetch(&site.url(path)).await.unwrap_err();
        assert!(why.contains("did not answer within 0.6 s"), "{why}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    let why = Fetcher::by(site.client()).fetch(&site.url("/head")).await.unwrap_err();
    assert!(why.contains("the connection broke"), "{why}");
}

#[tokio::test]
async fn only_the_beginning_of_a_huge_page_is_read() {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let site = Site::acting(|_, mut stream| {
        Box::pin(async move {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1073741824\r\n\r\n";
            stream.write_all(head.as_bytes()).await?;
            let piece = [b'a'; 65536];
            for _ in 0..16384 {
                stream.write_all(&piece).await?;
                SENT.fetch_add(piece.len(), Ordering::Relaxed);
            }
            Ok(())
        })
    })
    .await;
    let fetched =
        Fetcher::by(site.client()).bytes(1 << 20).ignoring_robots().fetch(&site.url("/")).await.unwrap();
    assert_eq!((fetched.page.text.len(), fetched.page.is_cut), (1 << 20, true));
    assert!(SENT.load(Ordering::Relaxed) < 64 << 20, "{SENT:?}");
}

#[tokio::test]
async fn compressed_pages_are_unpacked_up_to_a_limit() {
    let packed = gzip("grüße".as_bytes());
    let bomb = gzip(&vec![0x20; 64 << 20]);
    assert!(bomb.len() < 1 << 20);
    let cut = &packed[..packed.len() - 9];
    let site = Site::of(&[
        ("/", gzipped(&packed)),
        ("/bomb", gzipped(&bomb)),
        ("/cut", gzipped(cut)),
        ("/no", gzipped(b"no gzip at all")),
        ("/br", answer("200 OK", "content-encoding: br\r\n", "x")),
        ("/twice", gzipped(&[packed.clone(), packed.clone()].concat())),
    ])
    .await;
    let fetcher = Fetcher::by(site.client()).bytes(1 << 20);
    assert_eq!(fetcher.fetch(&site.url("/")).await.unwrap().page.text, "grüße");
    assert_eq!(fetcher.fetch(&site.url("/twice")).await.unwrap().page.text, "grüßegrüße");
    assert!(fetcher.fetch(&site.url("/bomb")).await.unwrap().page.is_cut);
    // The received part of a page that broke off is returned, and the text says that it broke off.
    assert!(fetcher.fetch(&site.url("/cut")).await.map_or(true, |fetched| fetched.page.is_cut));
    assert!(fetcher.fetch(&site.url("/no")).await.unwrap_err().contains("the connection broke"));
    assert!(fetcher.fetch(&site.url("/br")).await.unwrap_err().contains("packed as `br`"));
}

#[tokio::test]
async fn responses_that_lie_or_are_no_text_are_named_as_such() {
    let raw =
        |head: &str, body: &[u8]| [format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes(), body].concat();
    let site = Site::of(&[
        ("/short", raw("content-type: text/plain\r\ncontent-length: 999", b"only this")),
        ("/long", raw("content-type: text/plain\r\ncontent-length: 4", b"thisand more")),
        ("/both", raw("content-length: 4\r\ncontent-length: 5", b"thisx")),
        ("/chunks", raw("content-type: text/plain\r\ntransfer-encoding: chunked", b"4\r\nthis\r\nzz\r\n")),
        ("/latin", raw("content-type: text/html; charset=iso-8859-1\r\nconnection: close", b"gr\xfc\xdfe")),
        ("/wrong", raw("content-type: text/html; charset=utf-8\r\nconnection: close", b"gr\xfc\xdfe")),
        ("/untyped", raw("connection: close", b"<!doctype html><p>a<p>b")),
        ("/words", raw("connection: close", b"a < b & c")),
        ("/bytes", raw("connection: close", b"\x7fELF\0\x01")),
        ("/pdf", raw("content-type: text/html\r\nconnection: close", b"%PDF-1.7\n")),
        ("/png", raw("content-type: image/png\r\nconnection: close", b"\x89PNG")),
        ("/empty", raw("content-type: text/html\r\ncontent-length: 0", b"")),
        ("/json", raw("content-type: application/json\r\nconnection: close", b"{\"a\": 1}\n")),
        ("/gone", answer("410 Gone", "", "")),
        ("/garbage", b"garbage\r\n\r\n".to_vec()),
    ])
    .await;
    let tool = web_fetch(Some(Arc::new(Fetcher::by(site.client()))), None);
    for (path, expected) in [
        ("/short", "only this\n\n(The page continues, but no more of it is read.)"),
        ("/long", "this"),
        ("/chunks", "this\n\n(The page continues, but no more of it is read.)"),
        ("/latin", "grüße"),
        ("/wrong", "gr\u{fffd}\u{fffd}e"),
        ("/untyped", "a\n\nb"),
        ("/words", "a < b & c"),
        ("/empty", "(The page has no text.)"),
        ("/json", "{\"a\": 1}"),
    ] {
        assert_eq!(done(&tool, json!({"url": site.url(path)})).await, expected, "{path}");
    }
    for (path, expected) in [
        ("/both", "the connection broke"),
        ("/bytes", "it is not text, but data"),
        ("/pdf", "it is a PDF document, which is not read here"),
        ("/png", "it is `image/png`, which is not text"),
        ("/gone", "answers 410 Gone"),
        ("/none", "answers 404 Not Found"),
        ("/garbage", "the connection broke"),
    ] {
        let why = failed(&tool, json!({"url": site.url(path)})).await;
        assert!(why.contains(expected), "{path}: {why}");
    }
}

#[tokio::test]
async fn what_a_site_asks_programs_to_leave_alone_is_left_alone() {
    let robots = "User-agent: *\nDisallow: /\n\nUser-agent: polylogue\nDisallow: /private\n";
    let page = || html("a page");
    let site = Site::of(&[
        ("/robots.txt", answer("200 OK", "", robots)),
        ("/open", page()),
        ("/private/x", page()),
        ("/moved", redirect("/private/x")),
    ])
    .await;
    let fetcher = Fetcher::by(site.client());
    assert!(fetcher.fetch(&site.url("/open")).await.is_ok());
    for path in ["/private/x", "/moved", "/%70rivate/x"] {
        let why = fetcher.fetch(&site.url(path)).await.unwrap_err();
        assert!(why.contains("its site asks programs not to fetch it"), "{path}: {why}");
    }
    assert_eq!(site.paths(), ["/robots.txt", "/open", "/moved"], "it is asked once");
    assert!(Fetcher::by(site.client()).ignoring_robots().fetch(&site.url("/private/x")).await.is_ok());

    let broken = Site::of(&[("/robots.txt", answer("503 Service Unavailable", "", "")), ("/", page())]).await;
    let why = Fetcher::by(broken.client()).fetch(&broken.url("/")).await.unwrap_err();
    assert!(why.ends_with("/` cannot be fetched: its `robots.txt` answers 503 Service Unavailable"), "{why}");
    let moved = Site::of(&[
        ("/robots.txt", redirect("/r")),
        ("/r", answer("200 OK", "", "user-agent: *\ndisallow: /")),
        ("/", page()),
    ])
    .await;
    assert!(Fetcher::by(moved.client()).fetch(&moved.url("/")).await.is_err());
    let inside = Site::of(&[("/robots.txt", redirect("http://10.0.0.1/")), ("/", page())]).await;
    assert!(
        Fetcher::by(inside.client()).fetch(&inside.url("/")).await.unwrap_err().contains("is not public")
    );
}

#[tokio::test]
async fn a_proxy_receives_the_address_and_nothing_private() {
    let proxy = Site::acting(|path, mut stream| {
        Box::pin(async move {
            let body = if path.ends_with("robots.txt") { String::new() } else { format!("asked for {path}") };
            stream.write_all(&answer("200 OK", "content-type: text/plain\r\n", body)).await
        })
    })
    .await;
    let proxies =
        Proxies::of(&Env::of([("HTTP_PROXY", format!("http://me:secret@127.0.0.1:{}", proxy.port))]));
    let client = proxy.client().host("public.example", ["93.184.215.14".parse().unwrap()]);
    let fetcher = Fetcher::by(client.proxies(proxies));
    let page = fetcher.fetch("http://public.example/x").await.unwrap().page;
    assert_eq!(page.text, "asked for http://public.example/x");
    assert!(proxy.asked()[1].to_ascii_lowercase().contains("proxy-authorization: basic "));
    for url in
        ["http://inner.example/", "http://10.0.0.1/", "http://localhost/", "http://metadata.google.internal/"]
    {
        assert!(fetcher.fetch(url).await.unwrap_err().contains("is not public"), "{url}");
    }
    assert_eq!(proxy.asked().len(), 2);
}

#[tokio::test]
async fn long_pages_are_read_in_parts() {
    let lines: String = (0..5000).map(|n| format!("This is line {n}\n")).collect();
    let pages = Arc::new(Pages::of([("long.txt", lines.as_str()), ("short.md", "# Short\nText")]));
    let tool = web_fetch(None, Some(pages));
    assert_eq!(done(&tool, json!({"url": "page:/short.md"})).await, "# Short\nText");
    let (mut from, mut whole) = (0, String::new());
    loop {
        let text = done(&tool, json!({"url": "page:/long.txt", "from": from})).await;
        let text = text.strip_prefix("Title: long\n\n").unwrap();
        let (part, next) = text.rsplit_once("\n\n(").unwrap_or((text, ""));
        whole.push_str(part);
        whole.push('\n');
        match next.split("`from: ").nth(1).and_then(|next| next.split('`').next()?.parse().ok()) {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(whole, lines);
    assert!(
        failed(&tool, json!({"url": "long.txt", "from": 999_999}))
            .await
            .contains("there is nothing from 999999 on")
    );
    assert!(failed(&tool, json!({"url": "page:/none.md"})).await.contains("`web_search` finds"));
    assert!(failed(&tool, json!({"url": "https://example.org/"})).await.contains("`web_search` finds"));
    for bad in [json!({}), json!({"url": 1}), json!({"url": " "}), json!({"url": "short.md", "from": -1})] {
        failed(&tool, bad).await;
    }
}

#[tokio::test]
async fn each_search_engine_gets_its_request_format() {
    let found = json!([{"title": "A &amp; <b>B</b>", "url": "https://a.example/", "content": "the <strong>bee</strong>", "description": "d"},
                       {"title": "no address", "url": "nowhere"}, {"title": "", "url": "https://b.example/"}]);
    let json =
        |body: serde_json::Value| answer("200 OK", "content-type: application/json\r\n", body.to_string());
    let site = Site::of(&[
        ("/searx/search?q=a+b%26c&format=json", json(json!({"results": found}))),
        ("/brave?q=a+b%26c&count=5", json(json!({"web": {"results": found}}))),
        ("/brave?q=nothing&count=5", json(json!({"query": {}}))),
        ("/tavily", json(json!({"results": found}))),
        ("/html/search?q=a+b%26c&format=json", html("<p>no")),
        ("/bad?q=a+b%26c&count=5", answer("401 Unauthorized", "", "the key my-secret-key is wrong")),
    ])
    .await;
    let engine = |kind, path: &str, key: Option<&str>| {
        Engine::new(kind, Some(&format!("http://127.0.0.1:{}{path}", site.port)), key.and_then(Key::new))
    };
    let key = Some("my-secret-key");
    for (kind, path, key) in [
        (EngineKind::Searxng, "/searx/", None),
        (EngineKind::Brave, "/brave", key),
        (EngineKind::Tavily, "/tavily", key),
    ] {
        let hits = engine(kind, path, key).unwrap().search("a b&c", 5).await.unwrap();
        assert_eq!(hits.len(), 2, "{kind:?}");
        assert_eq!((hits[0].title.as_str(), hits[0].url.as_str()), ("A & **B**", "https://a.example/"));
    }
    let asked = site.asked();
    assert!(!asked[0].contains("my-secret-key") && asked[1].contains("x-subscription-token: my-secret-key"));
    assert!(
        asked[2].contains("authorization: Bearer my-secret-key")
            && asked[2].ends_with(r#"{"query":"a b&c","max_results":5}"#)
    );
    let brave = engine(EngineKind::Brave, "/brave", key).unwrap();
    assert!(!format!("{brave:?}").contains("my-secret"));
    let tool = web_search(AnySearch::new(brave));
    assert_eq!(done(&tool, json!({"query": "nothing"})).await, "Nothing was found for `nothing`.");
    let outcome = call(&tool, json!({"query": "a b&c"})).await.unwrap();
    assert_eq!(
        outcome.text(),
        "1. [A & **B**](https://a.example/)\n   d\n2. [https://b.example/](https://b.example/)\n   "
    );
    assert_eq!(outcome.outside.as_deref(), Some("a search of 127.0.0.1"));
    failed(&tool, json!({"query": " "})).await;
    let tool = web_search(AnySearch::new(engine(EngineKind::Brave, "/bad", key).unwrap()));
    let why = failed(&tool, json!({"query": "a b&c"})).await;
    assert_eq!(why, "`127.0.0.1` cannot be searched: it answers 401 Unauthorized: the key [key] is wrong");
    let tool = web_search(AnySearch::new(engine(EngineKind::Searxng, "/html", None).unwrap()));
    assert!(failed(&tool, json!({"query": "a b&c"})).await.contains("`search.formats`"));
    assert!(engine(EngineKind::Brave, "", None).unwrap_err().contains("set `BRAVE_API_KEY`"));
    assert!(Engine::new(EngineKind::Searxng, None, None).is_err());
    assert!(Engine::new(EngineKind::Searxng, Some("file:///x"), None).is_err());
}
