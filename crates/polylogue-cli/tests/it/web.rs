//! Teams that search and read the web: the pages that they bring along, and a server of this machine.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::home::{Home, KEY, of_type, shipped};

#[test]
fn the_team_that_ships_searches_and_reads_the_pages_that_ship() {
    let home = Home::new();
    let ran = home.run(&["run", &shipped("reading-room"), "--offline"]).ok();
    assert!(ran.out.contains("[from outside] # The waggle dance"), "{}", ran.out);
    let events = home.events();
    let returned = of_type(&events, "tool_returned");
    let from: Vec<&str> = returned.iter().filter_map(|event| event["result"]["from"].as_str()).collect();
    let pages = ["a search of the pages at hand", "page:/waggle-dance.md", "page:/how-it-was-found-out.html"];
    assert_eq!(from, pages);
    assert!(returned.iter().all(|event| event["result"]["status"] == "done"), "{returned:?}");
    // What the model receives stands between marks.
    let seen = home.run(&["show", "last", "--as", "Reader"]).ok().out;
    assert!(seen.contains("The straight run holds the message") && seen.contains("| 6 km | 2 |"), "{seen}");
}

/// A server that answers every request with one page, or leads to `localhost` from `/hop`, and tells what it was asked.
fn server() -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (report, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let body = if path == "/robots.txt" {
                ""
            } else {
                "<title>House</title><p>Where the key is: <a href=/x>under the mat</a>"
            };
            let status = match path.as_str() {
                "/hop" => format!("302 Found\r\nlocation: http://localhost:{port}/secret"),
                _ => "200 OK".to_owned(),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            if report.send(path).is_err() {
                return;
            }
        }
    });
    (port, asked)
}

#[test]
fn the_web_has_to_be_allowed_and_what_is_private_named() {
    let (port, asked) = server();
    let home = Home::new();
    let team = |private: &str| {
        home.file(
            "team.yaml",
            &format!(
                "name: t
task: go
web: {{fetch: {{private: [{private}]}}}}
agents: [{{name: A, tools: [web_fetch]}}]
chat: {{participants: [A], pattern: sequential}}
script:
  - A: {{calls: [{{tool: web_fetch, args: {{url: \"http://localhost:{port}/wiki\"}}}}]}}
  - A: done
"
            ),
        );
    };
    team("");
    let refused = home.run(&["run", "team.yaml", "--offline"]).exits(2);
    assert!(refused.err.contains("reach over the network (network):\n    the public web"), "{}", refused.err);
    assert!(refused.err.contains("add `--allow network`") && !home.path("store.db").exists());
    let outcome = |home: &Home| -> Value { of_type(&home.events(), "tool_returned")[0]["result"].clone() };
    home.run(&["run", "team.yaml", "--offline", "--allow", "network"]).ok();
    assert_eq!(outcome(&home)["status"], "failed");
    assert!(outcome(&home).to_string().contains("is not reached, only 80 and 443"), "{}", outcome(&home));
    assert!(asked.try_recv().is_err(), "no one was asked");
    team(&format!("\"localhost:{port}\""));
    let ran = home.run(&["run", "team.yaml", "--offline", "--allow", "network"]).ok();
    assert!(
        ran.err.contains(&format!(
            "`t` is allowed to reach over the network: `the public web`, `localhost:{port}`"
        )),
        "{}",
        ran.err
    );
    let came = outcome(&home);
    assert_eq!(
        (came["status"].as_str(), came["from"].as_str()),
        (Some("done"), Some(format!("http://localhost:{port}/wiki").as_str()))
    );
    assert!(came.to_string().contains(&format!("[under the mat](http://localhost:{port}/x)")), "{came}");
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["/robots.txt", "/wiki"]);
}

/// A team that fetches `urls`.
fn fetching(home: &Home, port: u16, urls: &[String], approval: &str) {
    let call = |url: &String| json!({"tool": "web_fetch", "args": {"url": url}});
    let calls = json!({"A": {"calls": urls.iter().map(call).collect::<Vec<_>>()}});
    let text = format!(
        "name: t
task: go
web: {{fetch: {{private: [\"localhost:{port}\", \"127.0.0.1:{port}\"]}}}}
agents: [{{name: A, tools: [web_fetch], approval: {approval}}}]
chat: {{participants: [A], pattern: sequential}}
script: [{calls}, {{A: done}}]
"
    );
    home.file("team.yaml", &text);
}

#[test]
fn a_rule_about_a_host_holds_however_an_address_is_written_and_where_a_redirect_leads() {
    const RUN: [&str; 5] = ["run", "team.yaml", "--offline", "--allow", "network"];
    let (port, asked) = server();
    let home = Home::new();
    let forms = [
        format!("http://localhost:{port}/a"),
        format!("http:/localhost:{port}/a?x=://docs.example/"),
        format!("http:localhost:{port}/a"),
        format!(r"http:\\localhost:{port}/a"),
        format!("http://%6cocalhost:{port}/a"),
        format!("http://local\thost:{port}/a"),
        format!("http://LOCALHOST.:{port}/a"),
        format!("view-source:http://localhost:{port}/a"),
        format!("view-source:localhost:{port}/a"),
        format!("blob:http://localhost:{port}/a"),
    ];
    fetching(&home, port, &forms, "never");
    home.rules("- deny: {host: localhost}\n");
    home.run(&RUN).ok();
    let events = home.events();
    let returned = of_type(&events, "tool_returned");
    let is_denied = |event: &&Value| event.to_string().contains("A rule of the user denies it.");
    assert_eq!(returned.iter().filter(|event| is_denied(event)).count(), forms.len(), "{returned:?}");
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), [""; 0]);

    let hop = [format!("http://127.0.0.1:{port}/hop")];
    fetching(&home, port, &hop, "never");
    home.run(&RUN).ok();
    let shown = of_type(&home.events(), "tool_returned")[0]["result"].to_string();
    assert!(shown.contains(&format!("Fetch it there: http://localhost:{port}/secret")), "{shown}");
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["/robots.txt", "/hop"]);
    // Where no rule tells the hosts apart it is followed.
    home.rules("- deny: {host: other.example}\n");
    home.run(&RUN).ok();
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["/robots.txt", "/hop", "/robots.txt", "/secret"]);

    // What is allowed by the host of the text is not allowed.
    fetching(&home, port, &forms[1..2], "always");
    home.rules("- allow: {tool: web_fetch, host: docs.example}\n");
    home.run(&RUN).exits(5);
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn services_are_called_with_a_key_that_is_shown_nowhere() {
    let (port, asked) = server();
    let home = Home::new().var("HOUSE_TOKEN", KEY);
    home.file("pets.yaml", &format!(
        "openapi: 3.1.0
servers: [{{url: 'http://127.0.0.1:{port}/v1'}}]
security: [{{key: []}}]
paths: {{'/pets/{{id}}': {{get: {{operationId: showPet, parameters: [{{name: id, in: path, schema: {{type: integer}}}}]}}}}}}
components: {{securitySchemes: {{key: {{type: apiKey, in: query, name: api_key}}}}}}
"
    ));
    home.file(
        "team.yaml",
        &format!(
            "name: t
task: go
calls:
  - name: add_note
    description: Adds a note
    method: post
    url: http://127.0.0.1:{port}/notes/{{of}}
    headers: {{Authorization: {{env: HOUSE_TOKEN, before: 'Bearer '}}}}
    json: {{text: '{{text}}'}}
    arguments: {{of: {{type: string}}, text: {{type: string}}}}
openapi: {{pets: {{file: pets.yaml, key: HOUSE_TOKEN}}}}
agents: [{{name: A, tools: [add_note, pets]}}]
chat: {{participants: [A], pattern: sequential}}
script:
  - A: {{calls: [{{tool: add_note, args: {{of: a/b, text: hello}}}}, {{tool: showPet, args: {{id: 7}}}}]}}
  - A: done
"
        ),
    );
    let refused = home.run(&["run", "team.yaml", "--offline"]).exits(2);
    assert!(
        refused.err.contains(&format!("reach over the network (network):\n    127.0.0.1:{port}")),
        "{}",
        refused.err
    );
    home.run(&["run", "team.yaml", "--offline", "--allow", "network,env"]).ok();
    let events = home.events();
    let returned = of_type(&events, "tool_returned");
    assert!(returned.iter().all(|event| event["result"]["status"] == "done"), "{returned:?}");
    let from: Vec<&str> = returned.iter().filter_map(|event| event["result"]["from"].as_str()).collect();
    assert_eq!(
        from,
        [format!("http://127.0.0.1:{port}/notes/a%2Fb"), format!("http://127.0.0.1:{port}/v1/pets/7")]
    );
    let paths: Vec<String> = asked.try_iter().collect();
    assert_eq!(paths, ["/notes/a%2Fb".to_owned(), format!("/v1/pets/7?api_key={KEY}")]);
}

#[test]
fn a_call_after_words_from_outside_is_asked_about_and_show_says_where_they_come_from() {
    let home = Home::new().with_team(
        r#"
name: reader
task: go
web: {pages: pages}
agents:
  - {name: Ann, tools: [web_fetch]}
  - {name: Bob, tools: [calculator], approval: {when: outside}}
chat: {participants: [Bob, Ann], pattern: round_robin, stop: {max_turns: 3}, loop_detection: off}
script:
  - Bob: {calls: [{tool: calculator, args: {expression: 1 + 1}, id: b1}]}
  - Bob: Two.
  - Ann: {calls: [{tool: web_fetch, args: {url: page.md}, id: a1}]}
  - Ann: It says three.
  - Bob: {calls: [{tool: calculator, args: {expression: 1 + 2}, id: b2}]}
  - Bob: Three.
"#,
    );
    std::fs::create_dir(home.path("pages")).unwrap();
    home.file("pages/page.md", "# Page\nThree.");
    home.run(&["run", "team.yaml", "--offline"]).exits(5);
    let events = home.events();
    let asked = of_type(&events, "input_required");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["call"]["id"], "b2");
    home.run(&["resume", "last", "--answer", "yes"]).ok();
    let reported = "(said after reading words from outside: page.md)";
    let shown = home.run(&["show", "last"]).ok().out;
    assert_eq!(shown.matches(reported).count(), 2, "{shown}");
    assert_eq!(
        home.run(&["show", "last", "--markdown"]).ok().out.matches("words from outside: page.md)").count(),
        2
    );
}
