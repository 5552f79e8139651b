//! Nothing is left of a server when it is done, nor of what it started.

use std::process::{Command, Stdio};

use polylogue_mcp::Allowed;
use serde_json::json;

use crate::{Bench, Tools, runs, until};

/// Where the program that is killed notes what it started. Only that program receives it.
const NOTES: &str = "POLYLOGUE_MCP_TEST_NOTES";

/// The process ids of the server, and of a child that it started.
async fn tree(bench: &Bench, tools: &Tools) -> [String; 2] {
    let child = tools.done("child", json!({})).await;
    let notes = bench.notes();
    let server = notes.split_whitespace().nth(1).unwrap().to_owned();
    assert!(runs(&server) && runs(&child));
    [server, child]
}

async fn gone(pids: &[String]) {
    for pid in pids {
        until("its end", || !runs(pid)).await;
    }
}

#[tokio::test]
async fn all_end_with_the_last_use() {
    let bench = Bench::new("fine");
    let servers = bench.servers(|_| ());
    let tools = Tools::of(&servers).await;
    let pids = tree(&bench, &tools).await;
    drop(servers);
    tools.echoes().await;
    assert_eq!(bench.starts(), 1);
    drop(tools);
    gone(&pids).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_daemon_that_left_the_group_of_its_server_ends_with_it() {
    let bench = Bench::new("fine");
    let servers = bench.servers(|_| ());
    let tools = Tools::of(&servers).await;
    let other = Bench::new("fine");
    let other_servers = other.servers(|_| ());
    let spared = Tools::of(&other_servers).await.done("child", json!({"daemon": true})).await;
    let daemon = tools.done("child", json!({"daemon": true})).await;
    assert!(runs(&daemon) && runs(&spared));
    drop((servers, tools));
    gone(std::slice::from_ref(&daemon)).await;
    assert!(runs(&spared), "that of another server is left alone");
    drop(other_servers);
    gone(&[spared]).await;
}

#[tokio::test]
async fn all_end_when_closed_and_start_again() {
    let bench = Bench::new("fine");
    let servers = bench.servers(|_| ());
    let tools = Tools::of(&servers).await;
    let pids = tree(&bench, &tools).await;
    servers.close().await;
    gone(&pids).await;
    tools.echoes().await;
    assert_eq!(bench.starts(), 2);
}

#[test]
fn a_runtime_that_ends_takes_its_servers_along_and_another_starts_them_again() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = Bench::new("fine");
    let one = runtime();
    let tools = one.block_on(Tools::of(&bench.servers(|_| ())));
    drop(one);
    runtime().block_on(tools.echoes());
    assert_eq!(bench.starts(), 2);
}

#[tokio::test]
async fn all_end_when_this_process_is_killed() {
    let bench = Bench::new("fine");
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leftovers::is_killed", "--ignored"])
        .env(NOTES, bench.notes_file())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    bench.noted("hangs").await;
    let notes = bench.notes();
    let pids: Vec<String> =
        notes.lines().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| runs(pid)), "{notes}");
    program.kill().unwrap();
    program.wait().unwrap();
    gone(&pids).await;
}

/// No test: what the one above runs, and kills.
#[tokio::test]
#[ignore = "is run, and killed, by another test"]
async fn is_killed() {
    let Some(notes) = std::env::var_os(NOTES) else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let declared =
        json!({"mcpServers": {"test": {"command": "python3", "args": [script, "fine", notes.to_str()]}}});
    let servers = polylogue_mcp::Servers::from_json(&declared.to_string()).unwrap();
    let tools = Tools(servers.tools([("test", Allowed::All)]).await.unwrap());
    let child = tools.done("child", json!({})).await;
    let mut file = std::fs::OpenOptions::new().append(true).open(notes).unwrap();
    std::io::Write::write_all(&mut file, format!("child {child}\n").as_bytes()).unwrap();
    // The server hears nothing of the end: it does not listen.
    tools.call("hang", json!({})).await;
}
