//! The conversations there are: list, show, check, resume, remove.

use expect_test::expect;
use polylogue_test::server::{Answer, Playbook};

use crate::home::{Home, serve, shipped, timeless, undated};
use crate::models::{SAID, TALK, said, talk};

#[test]
fn conversations_are_listed_newest_first_and_found_by_the_beginning_of_their_id() {
    let home = Home::new();
    expect![[r#"
        --- 0
        there is no store at `HOME/store.db`, which `POLYLOGUE_STORE` names
    "#]]
    .assert_eq(&home.run(&["runs"]).ok().masked(&home));
    expect![[r#"
        --- 2
        error (config): there are no conversations yet
          hint: `polylogue run` begins one
    "#]]
    .assert_eq(&home.run(&["show", "last"]).exits(2).masked(&home));
    home.run(&["run", &shipped("writer-critic")]).ok();
    home.run(&["run", &shipped("student-teacher"), "--max-turns", "2"]).exits(3);
    let rows = home.listed();
    assert_eq!(
        rows.iter().map(|row| row["title"].as_str().unwrap()).collect::<Vec<_>>(),
        ["student-teacher", "writer-critic"]
    );
    let runs = home.run(&["runs"]).ok().masked(&home);
    let runs: Vec<_> =
        runs.lines().map(|line| line.split_once("ago").map_or(line, |(_, rest)| rest)).collect();
    expect![[r#"
          student-teacher        2 turns            $0  limit: 2 turns  My test came back positive, and it finds 9 of 10 who are ill. So I am 90 percent likely to be ill, am I not?
          writer-critic          6 turns            $0  done: Critic's message matched `^APPROVED`  Write the label that stands beside a lighthouse lens of 1823 in a museum of technology, at most 60 words
        --- 0"#]]
    .assert_eq(&runs.join("\n"));
    let id = rows[1]["id"].as_str().unwrap();
    let by_beginning = home.run(&["show", &id[..4]]).ok();
    assert_eq!(by_beginning.out, home.run(&["show", id]).ok().out);
    assert!(by_beginning.out.contains("APPROVED"));
    let none = home.run(&["resume", "nosuch"]).exits(2);
    assert_eq!(
        none.err,
        "error (config): there is no conversation `nosuch`\n  hint: `polylogue runs` lists them\n"
    );
}

#[test]
fn a_conversation_that_has_not_ended_is_shown_with_how_it_continues() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: t\ntask: Go\nagents: [{name: A}, {name: P, human: true}]\n\
         chat: {participants: [A, P], stop: {max_turns: 4}}\nscript: [{A: Hello}]\n",
    );
    home.run(&["run", "team.yaml"]).exits(5);
    let id = home.listed()[0]["id"].as_str().unwrap().to_owned();
    let waits = format!("It waits for P: `polylogue resume {id} --answer TEXT` answers.\n");
    let shown = home.run(&["show", "last"]).ok();
    assert_eq!((shown.err.as_str(), shown.out.contains("resume")), (waits.as_str(), false));
    assert_eq!(home.run(&["show", "last", "--json"]).ok().err, "");
    assert!(home.run(&["show", "last", "--markdown"]).ok().out.contains("\n### P is asked\n"));
    let waiting = home.run(&["waiting"]).ok();
    assert!(waiting.out.starts_with(&format!("{id}  question 5  t: P is asked, ")), "{}", waiting.out);
    assert_eq!(waiting.err, "answer with `polylogue answer ID TEXT`\n");
    home.run(&["answer", "last", "exit"]).ok();
    let open = format!("and `polylogue resume {id}` continues it here.\n");
    let shown = home.run(&["show", "last"]).ok().err.replace('\n', " ");
    assert!(
        shown.starts_with("It waits for a worker: ") && shown.ends_with(&open.replace('\n', " ")),
        "{shown}"
    );
    home.run(&["resume", "last"]).exits(6);
    assert_eq!(home.run(&["show", "last"]).ok().err, "");
}

#[test]
fn what_is_paused_after_a_failure_or_while_a_person_is_asked_is_listed_as_paused() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: t\ntask: Go\nagents: [{name: A}, {name: P, human: true}]\n\
         chat: {participants: [A, P], stop: {max_turns: 4}}\nscript: [{A: Hello}, {A: {error: {status: 400, message: No}}}]\n",
    );
    let state = || {
        let listed = home.listed().remove(0);
        [&listed["state"], &listed["status"]].map(|word| word.as_str().unwrap().to_owned())
    };
    home.run(&["run", "team.yaml"]).exits(5);
    home.run(&["pause", "last"]).ok();
    assert_eq!(state(), ["waiting", "paused, waiting for P"]);
    home.run(&["resume", "last", "--answer", "Hello."]).exits(1);
    let [word, failed] = state();
    assert!(word == "failed" && failed.starts_with("failed: "), "{failed}");
    home.run(&["pause", "last"]).ok();
    assert_eq!(state(), [word, format!("paused, {failed}")]);
}

#[test]
fn a_conversation_is_shown_whole_as_events_and_as_markdown() {
    let server = serve(talk());
    let home = Home::at(&server).with_team(TALK);
    home.run(&["run", "team.yaml", "--model", "openai:test"]).ok();
    expect![[r#"
        participants: Alice, Bob

        user -> all:
        Talk about the weather.

        Alice -> Bob:
        It rains today.

        Bob -> Alice:
        (thinks:)
        What was said?
        I look.
        ⚙ get_history(limit: 2)
          user: Talk about the weather.
          Alice: It rains today.
        ⚙ get_history(limit: 1) → Alice: It rains today.
        It will be dry tomorrow.

        Alice -> Bob:
        Then I take my umbrella along.

        Bob -> Alice:
        GOODBYE

        done: Bob said `GOODBYE`

        computed before the run: at most 1000 model calls; no bound on tokens and cost: the length of a reply of `openai:test` has no known limit: set `max_tokens` in `parameters` (prices of DATE, team DIGEST)
    "#]]
    .assert_eq(&undated(&home.run(&["show", "last"]).ok().out));
    expect![[r#"
        # talk

        *Participants: Alice, Bob*

        ### user

        Talk about the weather.

        ### Alice

        It rains today.

        #### Bob before it calls tools

        I look.

        Bob calls

        ```
        get_history(limit: 2)
        ```

        with the result

        ```
        user: Talk about the weather.
        Alice: It rains today.
        ```

        Bob calls

        ```
        get_history(limit: 1)
        ```

        with the result

        ```
        Alice: It rains today.
        ```

        ### Bob

        It will be dry tomorrow.

        ### Alice

        Then I take my umbrella along.

        ### Bob

        GOODBYE

        *Ended: Bob said \`GOODBYE\`*
    "#]]
    .assert_eq(&home.run(&["show", "last", "--markdown"]).ok().out);
    let events = home.events();
    assert_eq!(said(&events), SAID);
    assert!(events.iter().enumerate().all(|(index, event)| event["seq"] == index));
}

#[test]
fn a_run_stopped_by_a_limit_continues_for_more_as_if_it_had_not_been() {
    let home = Home::new();
    let team = shipped("student-teacher");
    home.run(&["run", &team]).ok();
    let whole = said(&home.events());
    let ran = home.run(&["run", &team, "--max-turns", "3"]).exits(3);
    assert!(ran.out.contains("\nlimit: 3 turns · "), "{}", ran.out);
    assert!(ran.out.contains("` / `polylogue resume "), "{}", ran.out);
    let ran = home.run(&["resume", "last", "--max-turns", "2"]).exits(3);
    assert!(!ran.out.contains("My test came back positive"), "only what is new is shown: {}", ran.out);
    assert!(ran.out.contains("\nlimit: 5 turns · "), "{}", ran.out);
    let ran = home.run(&["resume", "last", "--max-turns", "100"]).ok();
    assert!(ran.out.contains("\ndone: Student said `Now I see it.` · 8 turns · "), "{}", ran.out);
    assert_eq!(said(&home.events()), whole);
    for (option, value, why) in
        [("--max-calls", "2", "limit: 2 model calls"), ("--max-turns", "1", "limit: 1 turn")]
    {
        let ran = home.run(&["run", &team, option, value]).exits(3);
        assert!(ran.out.contains(why), "{}", ran.out);
    }
}

#[test]
fn what_is_done_stays_done() {
    let home = Home::new();
    home.run(&["run", &shipped("writer-critic")]).ok();
    let before = home.events();
    let ran = home.run(&["resume", "last"]).ok();
    expect![[r#"
        done: Critic's message matched `^APPROVED` · 6 turns · tokens unknown · $0 · TIME
        `polylogue show ID`
        --- 0
        `ID` is over: Critic's message matched `^APPROVED`; `polylogue resume ID "Continue."` continues it
    "#]]
    .assert_eq(&ran.masked(&home));
    assert_eq!(home.events(), before);
    let ran = home.run(&["resume", "last", "--answer", "yes"]).exits(2);
    assert!(ran.err.starts_with("error (config): there is no open question in `"), "{}", ran.err);
    assert!(ran.err.contains("hint: `polylogue waiting` lists questions"), "{}", ran.err);
}

#[test]
fn conversations_are_removed_and_only_those() {
    let home = Home::new();
    for _ in 0..3 {
        home.run(&["run", &shipped("writer-critic")]).ok();
    }
    let ids: Vec<String> = home.listed().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    let ran = home.run(&["rm", &ids[0], "nosuch"]).exits(2);
    assert!(ran.err.contains("`nosuch`") && home.listed().len() == 3, "all or none: {}", ran.err);
    // The same one by two names is one.
    let ran = home.run(&["rm", &ids[0], &ids[2], &ids[0]]).ok();
    assert_eq!(ran.out, format!("removed {}\nremoved {}\n", ids[0], ids[2]));
    assert_eq!(home.id(), ids[1]);
    // An empty text, such as of a variable that is not set, names none, though the only id begins with it.
    let ran = home.run(&["rm", ""]).exits(2);
    assert_eq!(ran.err, "error (config): there is no conversation ``\n  hint: `polylogue runs` lists them\n");
    assert_eq!(home.listed().len(), 1);
}

#[test]
fn a_folder_keeps_conversations_as_lines_of_json() {
    let mut home = Home::new();
    home.run(&["run", &shipped("writer-critic")]).ok();
    let in_database = home.events();
    home.set("POLYLOGUE_STORE", "talks/");
    home.run(&["run", &shipped("writer-critic")]).ok();
    assert_eq!(timeless(&home.events()), timeless(&in_database));
    let file = std::fs::read_to_string(home.path(&format!("talks/{}.jsonl", home.id()))).unwrap();
    assert_eq!(file.lines().count(), in_database.len() + 2, "a header of two lines, and an event a line");
}

#[test]
fn without_a_place_conversations_are_kept_in_the_data_folder() {
    let home = Home::new().var("POLYLOGUE_STORE", "").var("XDG_DATA_HOME", "");
    let home_store = home.path(".local/share/polylogue/polylogue.db");
    home.run(&["run", &shipped("writer-critic")]).ok();
    assert!(home_store.exists());
    let data = home.path("data").display().to_string();
    let home = home.var("XDG_DATA_HOME", &data);
    home.run(&["run", &shipped("writer-critic")]).ok();
    assert!(home.path("data/polylogue/polylogue.db").exists());
}

#[test]
fn team_files_are_checked_each_with_all_its_mistakes() {
    let home = Home::new();
    let ran = home.run(&["check", &shipped("trading-bot"), &shipped("writer-critic")]).ok();
    let lines: Vec<_> =
        ran.out.lines().map(|line| line.rsplit_once('/').map_or(line, |(_, file)| file)).collect();
    expect![[r#"
        trading-bot.yaml: `trading-bot`, 3 agents, 2 chats
          trading-bot: Specifier and work, each once, in their order
          work: Stock_Trader and Python_Programmer, in turn
        writer-critic.yaml: `writer-critic`, 2 agents, 1 chat
          writer-critic: Writer and Critic, in turn"#]]
    .assert_eq(&lines.join("\n"));
    home.file("bad.yaml", "name: bad\nagents: [{name: A, sytem: x}]\nchat: {participants: [B]}\n");
    let ran = home.run(&["check", "bad.yaml", &shipped("writer-critic")]).exits(2);
    assert!(ran.out.contains("`writer-critic`"), "the others are checked, too: {}", ran.out);
    expect![[r#"
        error: unknown key `sytem`
         --> bad.yaml:2:20
          |
        2 | agents: [{name: A, sytem: x}]
          |                    ^^^^^
        hint: did you mean `system`?

        error: there is no agent, chat or team `B`
         --> bad.yaml:3:23
          |
        3 | chat: {participants: [B]}
          |                       ^
        hint: there is `A`
    "#]]
    .assert_eq(&ran.err);
}

#[test]
fn the_schema_is_json() {
    let ran = Home::new().run(&["schema"]).ok();
    let schema: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(schema["properties"]["agents"].is_object());
}

#[test]
fn the_whole_of_the_help() {
    let home = Home::new();
    expect![[r#"
        Conversations among language-model agents, tools and people

        Usage: polylogue [OPTIONS] <COMMAND>

        Commands:
          new          Write a commented team file to begin with
          run          Run a team on a task
          chat         Chat with a model or a team, line by line
          batch        Run a team on many tasks, each in its own conversation
          resume       Resume a conversation; with a message, also one that has ended
          runs         List conversations with their state, cost and task
          show         Show a conversation, what it cost, or the exact requests to a model
          send         Send a message to a conversation, running or not
          cancel       Stop a running conversation; `resume` continues it
          pause        Pause a conversation after its turn; `resume` continues it
          next         Choose the next speaker of a conversation
          raise        Raise the limits of a conversation, also while it runs
          waiting      List the questions of all conversations that wait for people
          answer       Answer a question of a conversation, running or not
          fork         Fork a conversation: begin a new one with a copy of its first events
          move         Move a conversation to another version of its team
          files        List the files that the agents of a conversation have written, or copy them
          verify       Check that stored conversations are unaltered
          archive      Compress stored conversations, in Postgres and SQLite
          rm           Remove conversations
          memory       List, find and delete the long-term memory of agents
          check        Check a team file, and list the permissions it asks for
          fmt          Format team files; comments stay
          trust        List and revoke your trust in team files
          import       Convert an AutoGen definition to a team file
          mcp          Serve teams as tools for MCP hosts, over standard input and output
          serve        Serve teams over HTTP, with a web page
          token        Make, list and revoke the tokens of a server
          worker       Run conversations that other commands hand over with `--detach`
          cluster      Show the workers of a store, what they run, and what waits for them
          migrate      Migrate a Postgres database of an earlier version to this one
          dev          Run a cluster on this machine, for development: a database, workers, and a server
          config       Show and change your settings, such as the default model
          models       List the models of a provider, with limits, capabilities and prices
          count        Count the tokens of a text
          doctor       Check this machine: keys of models, local servers, the sandbox, the store
          schema       Print the JSON Schema of team files, for editors
          completions  Print completions for a shell
          man          Print the manual page, for `man`
          help         Print this message or the help of the given subcommand(s)

        Options:
          -h, --help     Print help
          -V, --version  Print version

        Options of every command:
              --color <WHEN>   When to use colors; without them, as with `NO_COLOR`, nothing is redrawn, and replies appear when they are complete [default: auto] [possible values: auto, always, never]
              --config <FILE>  Your configuration file. Default: `~/.config/polylogue/config.yaml` [env: POLYLOGUE_CONFIG]
              --server <URL>   Use the conversations of this server, such as `http://127.0.0.1:8787`, instead of the store. Its token is in `POLYLOGUE_TOKEN`, or in `~/.config/polylogue/servers.yaml` [env: POLYLOGUE_SERVER]
              --store <PATH>   The store of conversations: a file for SQLite, a folder for JSON lines, `postgres://USER@HOST/DATABASE` [env: POLYLOGUE_STORE]
          -v, --verbose...     Log to standard error, and show prompts, private replies and tool results in full; `-vv` logs more, `RUST_LOG` filters

        Exit codes:
          0  done, also by `max_turns` in `stop`
          1  failed
          2  bad usage or team file
          3  a limit on turns, calls, time or depth, or a loop
          4  a limit on tokens or cost
          5  waiting for a person
          6  stopped by you, or a person has left
          7  no output: no participant said anything
          8  done, but the result is truncated

        First steps:
          polylogue run demo:trading-bot        a demonstration, without a model
          polylogue chat -m ollama:llama3.2     a chat with one model
          polylogue new                         writes a team file, `team.yaml`
          polylogue run team.yaml "YOUR TASK"   runs the team on a task
          polylogue show last                   shows the last conversation again
    "#]].assert_eq(&home.run(&["--help"]).ok().out);
    expect![[r#"
        Resume a conversation; with a message, also one that has ended

        Usage: polylogue resume [OPTIONS] <ID> [MESSAGE]

        Arguments:
          <ID>       The conversation: its id, the beginning of its id, or `last`
          [MESSAGE]  A message, which continues a conversation that has ended; `@FILE` reads it from a file, `-` from standard input

        Options:
              --as <NAME>       Author of the message: a participant. Default: `user`
              --attach <FILE>   Attach a file to the task or message: a picture (PNG, JPEG, GIF, WebP), a PDF document, a sound (WAV, MP3) or a text; can be repeated
              --answer <TEXT>   Answer the open question, instead of asking at the terminal
              --take-over       Take over the conversation from a process that hangs or is suspended; possible 30 seconds after its last heartbeat
              --accept-changes  Continue with the current team file if it has changed since the conversation began
              --pinned          Continue with the stored team even if its file has changed: that of the beginning, or the last one that was accepted
              --dir <FOLDER>    Let agents work in this folder instead of in a new work directory; you are asked before they run programs or change files
              --input <WHAT>    If standard input is a pipe or a file, which questions its lines answer: those to a person (`answers`), also those for approval of tools and code (`approvals`), or none (`none`). Default: `answers`; with `-` as text, or with `--answer`, `none` [possible values: answers, approvals, none]
              --tenant <NAME>   Use the conversations of this tenant; `polylogue token new --tenant` makes tenants [default: local]
          -h, --help            Print help

        Models:
          -m, --model <PROVIDER:MODEL>       The model of every agent, such as `openai:gpt-4o-mini` or `ollama:llama3.2`. In a list with commas, each model is the fallback of the one before it
              --capabilities <CAPABILITIES>  What the models support: a list of `tools`, `schema`, `json` and `vision`, or `text` for none of these; `no-system-role`, `no-null-content` and `no-user-after-tool` name forms of requests that they refuse. Default: detected by their first replies, except `vision`
              --offline                      Take the replies of models from the team's script; no model is called
              --timeout <SECONDS>            Maximum duration of a model call in seconds. Default: 3 minutes to the first token, 1 minute between tokens, 10 minutes in total
              --record <FILE>                Record every model call to a new file
              --cache <FILE>                 Cache model replies in a file: an equal request gets the stored reply. For development
              --replay <FILE>                Take every model reply from a recording; no model is called
              --thoughts                     Show the reasoning of models; those that hide it are asked for a summary

        Permissions:
              --allow <WHAT>  Allow what the team file asks for, for this run: `unsafe-host` (no sandbox at all), `network` (its hosts), `readable` (its paths), `mcp` (its MCP servers), `endpoints` (its addresses of models), `env` (environment variables it sends), `memory` (what other teams remember), `outside-files` (team files of other folders), `dotenv` (addresses in `.env`), `prices` (prices below the list prices), and `unknown-price` (models of unknown price under a limit on cost; their calls count as free)
              --trust         Trust the team file: allow all that it asks for, now and while its content is unchanged
              --mcp <FILE>    MCP servers for agents that name them: a JSON file with `mcpServers`

        Limits:
              --max-turns <N>       Maximum number of turns, in all chats together; parallel turns begin together or not at all
              --max-cost <DOLLARS>  Maximum cost in dollars; a call that could cost more than is left is not made, and models of unknown price are refused
              --max-tokens <N>      Maximum number of input and output tokens; a call that could take more than is left is not made
              --max-calls <N>       Maximum number of model calls
              --max-time <TIME>     Maximum running time, such as `90s`, `10min` or `1h`; waiting for people does not count. When it is up, calls in flight are aborted
              --on-limit <WHAT>     What happens at a limit of the run, of an agent or of a chat: the run or the chat ends, or you are asked to raise the limit. Default: that of the team file [possible values: stop, ask]

        Output:
              --json           Print every event as one line of JSON; the first line has the conversation's id, the last one the totals
          -q, --quiet          Print only the result
              --style <STYLE>  Layout of the conversation; `autogen` prints complete messages, as AutoGen does [default: usual] [possible values: usual, autogen]
              --no-stream      Do not stream: request and show complete replies

        Budgets:
              --budget <[NAME=]DOLLARS>   Maximum cost in dollars of all conversations of this command together; a call that could cost more than is left is not made, and models of unknown price are refused. `NAME=DOLLARS` is a budget that all processes with the same Postgres database share, and `NAME` an existing one
              --budget-tokens <[NAME=]N>  Maximum number of input and output tokens of all conversations of this command together; `NAME=N` is for a shared budget
              --budget-calls <[NAME=]N>   Maximum number of model calls of all conversations of this command together; `NAME=N` is for a shared budget
              --budget-time <TIME>        Maximum wall-clock time of all conversations of this command together, such as `90s`, `10min` or `1h`. When it is up, calls in flight are aborted

        Workers:
          -d, --detach         Print the conversation's id and return; a worker (`polylogue worker`) with the same store runs the conversation
              --needs <WORDS>  With `--detach`: what the worker must offer (`worker --offers`) besides what the team needs, such as `gpu`; a list with commas

        Options of every command:
              --color <WHEN>   When to use colors; without them, as with `NO_COLOR`, nothing is redrawn, and replies appear when they are complete [default: auto] [possible values: auto, always, never]
              --config <FILE>  Your configuration file. Default: `~/.config/polylogue/config.yaml` [env: POLYLOGUE_CONFIG]
              --server <URL>   Use the conversations of this server, such as `http://127.0.0.1:8787`, instead of the store. Its token is in `POLYLOGUE_TOKEN`, or in `~/.config/polylogue/servers.yaml` [env: POLYLOGUE_SERVER]
              --store <PATH>   The store of conversations: a file for SQLite, a folder for JSON lines, `postgres://USER@HOST/DATABASE` [env: POLYLOGUE_STORE]
          -v, --verbose...     Log to standard error, and show prompts, private replies and tool results in full; `-vv` logs more, `RUST_LOG` filters

        Limits count from now on: `--max-turns 4` allows 4 more turns, also if `max_turns` or `max_messages` of the team file ended the conversation; `--max-tokens` and `--max-cost` do the same for its `max_tokens` and `max_cost`. A limit that you do not give stays unchanged. After a message, the limits of the team file count from 0 again.
    "#]].assert_eq(&home.run(&["resume", "--help"]).ok().out);
    for args in [
        &[][..],
        &["run"],
        &["fly"],
        &["run", "x.yaml", "--max-turns", "0"],
        &["show", "last", "--call", "1"],
    ] {
        let ran = home.run(args).exits(2);
        assert!(
            ran.out.is_empty() && ran.err.contains("Usage: polylogue")
                || ran.err.contains("For more information"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_place_that_is_mistyped_is_not_made() {
    let home = Home::new();
    for args in [
        &["runs"][..],
        &["memory", "list"],
        &["memory", "search", "tea"],
        &["memory", "forget", "1"],
        &["show", "last"],
        &["resume", "last"],
        &["rm", "last"],
    ] {
        let missing = home.run(&[args, &["--store", "sotre.db"]].concat()).exits(2);
        assert_eq!(
            missing.err,
            "error (config): there is no store at `sotre.db`\n  hint: correct the path, or leave out `--store` for the default store\n"
        );
    }
    // The place that the variable names may be used for the first time.
    assert_eq!(home.run(&["runs"]).ok().out, "");
    assert!(!home.path("sotre.db").exists());
}

#[test]
fn agents_that_a_program_called_are_listed_and_shown() {
    let home = Home::new();
    let store = polylogue_core::AnyStore::new(polylogue_store::Sqlite::open(home.path("store.db")).unwrap());
    let script: polylogue_models::Script =
        serde_json::from_str(r#"[{"poet": "A rose."}, {"critic": "Fine."}]"#).unwrap();
    let agent =
        |name: &str| polylogue::Assistant::new(name, polylogue::AnyModel::new(script.model("test"))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let id = polylogue_core::LogId::new("session").unwrap();
        let session = polylogue::Session::create(store, id).await.unwrap();
        session.call(&agent("poet"), "What is red?").await.unwrap();
        session.call(&agent("critic"), "Is it good?").await.unwrap();
        drop(session);
    });
    assert_eq!(home.listed()[0]["status"], "done: the chat is complete");
    let shown = home.run(&["show", "session"]).ok();
    assert!(shown.out.contains("A rose.") && shown.out.contains("Fine."), "{}", shown.out);
    let unknown = home.run(&["show", "session", "--as", "poet"]).exits(2);
    assert!(unknown.err.contains("was started by a program with the library"), "{}", unknown.err);
}

#[test]
fn a_list_without_conversations_says_so() {
    let home = Home::new();
    home.run(&["run", &shipped("writer-critic"), "-q"]).ok();
    let none = home.run(&["runs", "--team", "other"]).ok();
    assert_eq!(none.out, "");
    assert!(none.err.starts_with("no conversations found in `"), "{}", none.err);
}

/// The first line has the lowest limits of the run, of its outermost chat and of the conditions of that.
#[test]
fn the_first_line_has_each_limit_that_ends_the_run() {
    let server = serve(Playbook::always(Answer::text("Done.")));
    let first = |chat: &str, limits: &str| {
        let home = Home::at(&server);
        let prices = "prices: {'openai:test': {input: 1, output: 1}}";
        let team = format!(
            "name: t\ntask: Go.\nagents: [{{name: A}}]\nchat: {{participants: [A]{chat}}}\n{limits}{prices}\n"
        );
        home.file("team.yaml", &team);
        let ran = home.run(&["run", "team.yaml", "-m", "openai:test"]);
        ran.err.lines().find(|line| line.starts_with("t: at most ")).unwrap_or_default().to_owned()
    };
    for (chat, limits, expected) in [
        (
            ", stop: {max_cost: 0.1, max_time: 30 s}",
            "limits: {time: 60 s}\n",
            [
                "t: at most 100 turns a chat, 30 s and 400 model calls; ",
                " The turn that reaches $0.10 is the last one. ",
            ],
        ),
        (
            ", limits: {calls: 7, tokens: 900, time: 2 h}",
            "limits: {tokens: 1000}\n",
            [
                "t: at most 2 h 00 min and 900 tokens (the limit on tokens) in 7 model calls; ",
                "; the cost has no limit of its own. ",
            ],
        ),
        (
            ", stop: {any: [{max_turns: 9}, {max_messages: 4}]}",
            "limits: {calls: 5, time: 10 min, cost: 2}\n",
            [
                "t: at most 9 turns, 4 messages, 10 min 00 s and 5 model calls within the limit of $2.00; ",
                "no bound on tokens: ",
            ],
        ),
    ] {
        let line = first(chat, limits);
        assert!(line.starts_with(expected[0]) && line.contains(expected[1]), "{chat} {limits}: {line}");
    }
}
