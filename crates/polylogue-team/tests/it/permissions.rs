//! What team files ask for beyond their sandbox, and what identifies their content.

use std::fs;
use std::path::Path;

use polylogue_team::{Grant, Loaded, Overrides, Team, Usage, load, parse};

use crate::common;

const TALK: &str = "name: t\nagents: [{name: Ann, memory: true, tools: [calculator]}]\n\
                    chat: {participants: [Ann], stop: {max_turns: 1}}\n";

fn team(more: &str) -> Team {
    common::team(&format!("{TALK}{more}"))
}

/// What a team asks for, a line each.
fn asked(team: &Team) -> Vec<String> {
    let wants = team.wants();
    wants.iter().flat_map(|(grant, what)| what.iter().map(move |what| format!("{grant}: {what}"))).collect()
}

#[test]
fn a_provider_at_its_own_address_with_its_own_key_asks_for_nothing() {
    for more in [
        "",
        "model: openai:x",
        "model: openai:x\nendpoints: {openai: {headers: {X-Team: a}, in_flight: 2, key: OPENAI_API_KEY}}",
        "model: house:x\nendpoints: {house: {base_url: \"https://api.openai.com/v1/\", key: OPENAI_API_KEY}}",
        "model: here:x\nendpoints: {here: {api: ollama, base_url: \"http://127.0.0.1:11434\"}}",
        // One that no model names is not asked.
        "model: openai:x\nendpoints: {house: {base_url: \"http://evil.example/v1\", key: SECRET}}",
    ] {
        assert_eq!(asked(&team(more)), [""; 0], "{more}");
    }
}

#[test]
fn a_model_file_outside_of_the_folder_is_asked_for() {
    for path in ["/srv/models/a.gguf", "../a.gguf", "models/../../a.gguf"] {
        for name in ["local", "LOCAL"] {
            assert_eq!(asked(&team(&format!("model: {name}:{path}"))), [format!("readable: {path}")]);
        }
    }
    for path in ["a.gguf", "./models/a.gguf"] {
        assert_eq!(asked(&team(&format!("model: local:{path}"))), [""; 0], "{path}");
    }
    // The caller's own choice is allowed.
    let overrides = Overrides { model: Some("local:/srv/a.gguf".into()), ..Overrides::default() };
    assert_eq!(asked(&parse(TALK, "t.yaml", &overrides).unwrap().team), [""; 0]);
}

#[cfg(unix)]
#[test]
fn a_model_file_to_which_a_link_leads_out_of_the_folder_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("team");
    fs::create_dir(&folder).unwrap();
    for file in [dir.path().join("secret.gguf"), folder.join("own.gguf")] {
        fs::write(file, "").unwrap();
    }
    for (target, link) in [("../secret.gguf", "out.gguf"), ("own.gguf", "in.gguf"), ("..", "up")] {
        std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
    }
    for (path, is_asked) in
        [("own.gguf", false), ("in.gguf", false), ("out.gguf", true), ("up/secret.gguf", true)]
    {
        fs::write(folder.join("t.yaml"), format!("{TALK}model: local:{path}\n")).unwrap();
        let team = load(folder.join("t.yaml"), &Overrides::default()).unwrap().team;
        let expected = is_asked.then(|| format!("readable: {path}"));
        assert_eq!(asked(&team), Vec::from_iter(expected), "{path}");
    }
}

/// A team from elsewhere creates no file outside of its folder, also not by a link to one that does not exist yet.
#[cfg(unix)]
#[test]
fn a_cache_of_replies_is_below_the_folder_wherever_links_lead() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("team");
    write(dir.path(), &[("out/old.jsonl", ""), ("team/own/old.jsonl", "")]);
    for (target, link) in [
        ("../out/new.jsonl", "dangling.jsonl"),
        ("../out/old.jsonl", "out.jsonl"),
        ("../out", "up"),
        ("own", "in"),
    ] {
        std::os::unix::fs::symlink(target, folder.join(link)).unwrap();
    }
    let refuses = |cache: &str| {
        fs::write(folder.join("t.yaml"), format!("{TALK}cache: {cache}\n")).unwrap();
        let Err(errors) = load(folder.join("t.yaml"), &Overrides::default()) else { return false };
        assert!(errors.to_string().contains("is not below the folder of the team file"), "{errors}");
        true
    };
    for cache in ["dangling.jsonl", "out.jsonl", "up/new.jsonl", "up/a/new.jsonl", "../out/new.jsonl"] {
        assert!(refuses(cache), "{cache}");
    }
    for cache in ["new.jsonl", "./new.jsonl", "own/old.jsonl", "in/new.jsonl", "no/folder/yet.jsonl"] {
        assert!(!refuses(cache), "{cache}");
    }
    // A folder whose path has a link in it is the same folder.
    let linked = dir.path().join("linked");
    std::os::unix::fs::symlink(&folder, &linked).unwrap();
    fs::write(folder.join("t.yaml"), format!("{TALK}cache: own/new.jsonl\n")).unwrap();
    assert!(load(linked.join("t.yaml"), &Overrides::default()).is_ok());
}

#[test]
fn addresses_and_variables_are_asked_for_each_with_where_it_goes() {
    let evil = "base_url: \"https://evil.example:8/v1\"";
    let endpoint = "endpoints: https://evil.example:8/v1";
    for (more, expected) in [
        (format!("model: a:x\nendpoints: {{a: {{{evil}}}}}"), vec![endpoint]),
        (
            format!("model: a:x\nendpoints: {{a: {{{evil}, key: TOKEN, headers: {{X: {{env: HOME}}}}}}}}"),
            vec![endpoint, "env: TOKEN -> evil.example:8", "env: HOME -> evil.example:8"],
        ),
        // The key of a provider that is known is asked for when it goes elsewhere.
        (
            format!("model: openai:x\nendpoints: {{OpenAI: {{{evil}, key: OPENAI_API_KEY}}}}"),
            vec![endpoint, "env: OPENAI_API_KEY -> evil.example:8"],
        ),
        (
            "model: openai:x\nendpoints: {openai: {key: GITHUB_TOKEN}}".to_owned(),
            vec!["env: GITHUB_TOKEN -> openai"],
        ),
        (
            "model: openai:x\nendpoints: {openai: {base_url: \"https://api.openai.com@evil.example/\", key: OPENAI_API_KEY}}"
                .to_owned(),
            vec!["endpoints: https://api.openai.com@evil.example/", "env: OPENAI_API_KEY -> evil.example"],
        ),
        // Also of a model that makes vectors.
        (
            format!("model: openai:x\nmemory: {{embed: \"a:x\"}}\nendpoints: {{a: {{{evil}}}}}"),
            vec![endpoint],
        ),
    ] {
        let text = format!("{TALK}{more}\n");
        let Ok(Loaded { team, .. }) = parse(&text, "t.yaml", &Overrides::default()) else {
            // An address that holds a user is refused before.
            assert!(more.contains('@'), "{more}");
            continue;
        };
        assert_eq!(asked(&team), expected, "{more}");
        let offline = Usage { offline: true, ..Usage::default() };
        assert!(team.wants_of(&offline).is_empty(), "{more}");
    }
}

/// What is asked for would name another host than the one that gets the key.
#[test]
fn an_address_that_does_not_begin_with_its_host_is_refused() {
    for address in [
        "http:/127.0.0.1:8931/?x=://search.brave.com/",
        "http:127.0.0.1:8931/?x=://api.openai.com/v1",
        r"http:\\127.0.0.1:8931/?x=://api.openai.com/v1",
        "http:///127.0.0.1:8931/",
        "http://%31%32%37.0.0.1:8931/",
        "http://127.1:8931/",
    ] {
        let to = format!("{address}', key: OPENAI_API_KEY");
        for more in [
            format!("model: a:x\nendpoints: {{a: {{base_url: '{to}}}}}"),
            format!("web: {{search: {{engine: brave, url: '{to}}}}}"),
        ] {
            let read = parse(&format!("{TALK}{more}\n"), "t.yaml", &Overrides::default());
            let errors = read.map(drop).unwrap_err().to_string();
            let expected = "the address does not begin with its host, which is `127.0.0.1:8931`";
            assert!(errors.contains(expected), "{more}: {errors}");
        }
    }
}

#[test]
fn tools_ask_for_hosts_commands_and_the_variables_they_send() {
    let named = "agents: [{name: Ann, tools: [look, web_search, count, {mcp: far}, {mcp: near}]}]\n";
    let more = r#"
calls: [{name: look, description: d, url: "https://a.example/x", headers: {X: {env: SECRET}}}]
web: {search: {engine: brave, url: "http://b.example/s"}}
sandbox: {backend: none}
commands: [{name: count, description: d, command: [wc, -l, "{file}"], arguments: {file: {type: string}}}]
mcp: {far: {url: "https://c.example/${PATH_OF_IT}", headers: {A: "${FAR}"}}, near: {command: sh, args: [-c, "env"]}}
"#;
    let text = format!("{TALK}{more}").replace(TALK.lines().nth(1).unwrap(), named.trim());
    let team = parse(&text, "/srv/t.yaml", &Overrides::default()).unwrap_or_else(|e| panic!("{e}")).team;
    assert_eq!(
        asked(&team),
        [
            "unsafe-host: the command count: wc -l {file}",
            "network: b.example",
            "network: a.example",
            "mcp: far: https://c.example/${PATH_OF_IT}",
            "mcp: near: sh -c env (in /srv)",
            "env: BRAVE_API_KEY -> b.example",
            "env: SECRET -> a.example",
            "env: FAR -> the MCP server far",
            "env: PATH_OF_IT -> the MCP server far",
        ]
    );
    let own = Usage { own_servers: ["far".to_owned()].into(), ..Usage::default() };
    assert_eq!(team.wants_of(&own)[&Grant::Mcp].len(), 1);
    let scopes: Vec<String> = self::team("memory: {scope: of others}")
        .memory_scopes()
        .iter()
        .map(|scope| scope.as_str().to_owned())
        .collect();
    assert_eq!(scopes, ["of others"]);
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const INNER: &str = "name: inner\nagents: [{name: Bob}]\nchat: {participants: [Bob], stop: {max_turns: 1}}\n";

fn outer(file: &str) -> String {
    format!(
        "name: outer\nteams: [{{name: Inner, file: \"{file}\"}}]\nchat: {{participants: [Inner], stop: {{max_turns: 1}}}}\n"
    )
}

#[test]
fn teams_of_other_folders_are_not_read_unless_that_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("team");
    write(
        dir.path(),
        &[("secret.yaml", "password: hunter22\n"), ("good.yaml", INNER), ("team/sub/in.yaml", INNER)],
    );
    let names = ["../secret.yaml", "sub/../../secret.yaml", "/etc/hostname", "../nothing.yaml", "link.yaml"];
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.path().join("secret.yaml"), folder.join("link.yaml")).unwrap();
    let read = |name: &str, outside_files: bool| {
        write(&folder, &[("t.yaml", &outer(name))]);
        let overrides = Overrides { outside_files, ..Overrides::default() };
        load(folder.join("t.yaml"), &overrides).map_err(|errors| errors.to_string())
    };
    for name in names {
        let refused = read(name, false).unwrap_err();
        assert!(refused.contains("is outside the folder of the team file"), "{name}: {refused}");
        assert!(refused.contains("`--allow outside-files`") && !refused.contains("hunter22"), "{refused}");
    }
    assert_eq!(read("sub/in.yaml", false).unwrap().outside, [""; 0]);
    assert!(read("sub/nothing.yaml", false).unwrap_err().contains("the file does not exist"));
    // A team below may name its neighbors, as long as they are below the outermost folder.
    write(&folder, &[("sub/deep.yaml", &outer("../sibling.yaml")), ("sibling.yaml", INNER)]);
    assert_eq!(read("sub/deep.yaml", false).unwrap().outside, [""; 0]);
    let allowed = read("../good.yaml", true).unwrap();
    assert_eq!(allowed.outside.len(), 1);
}

#[test]
fn the_digest_is_of_all_that_a_team_is_made_of_and_of_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let text = "name: t\ntask: \"{{a}}\"\nvars: {a: b}\nteams: [{name: Inner, file: inner.yaml}]\nfiles: [notes.txt]\n\
                web: {pages: pages}\nmcp: {parts: {command: python3, args: [server.py]}}\n\
                agents: [{name: Ann, tools: [web_fetch, {mcp: parts}]}]\n\
                chat: {participants: [Ann, Inner], stop: {max_turns: 1}}\n";
    let files = [
        ("t.yaml", text),
        ("inner.yaml", INNER),
        ("notes.txt", "a"),
        ("pages/p.md", "page"),
        ("server.py", "pass"),
    ];
    write(dir.path(), &files);
    let digest = |folder: &Path, overrides: &Overrides| {
        load(folder.join("t.yaml"), overrides).unwrap_or_else(|e| panic!("{e}")).digest
    };
    let first = digest(dir.path(), &Overrides::default());
    let given = Overrides { vars: [("a".to_owned(), "c".to_owned())].into(), ..Overrides::default() };
    assert_eq!(digest(dir.path(), &given), first);
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), &files);
    assert_eq!(digest(elsewhere.path(), &Overrides::default()), first);
    for (name, text) in files {
        write(elsewhere.path(), &[(name, &format!("{text}\n"))]);
        assert_ne!(digest(elsewhere.path(), &Overrides::default()), first, "{name}");
        write(elsewhere.path(), &[(name, text)]);
    }
    // A word less in one file and a word more in another is another team.
    write(elsewhere.path(), &[("notes.txt", ""), ("pages/p.md", "apage")]);
    assert_ne!(digest(elsewhere.path(), &Overrides::default()), first);
}
