//! A real browser without a window, steered by the DevTools protocol over a pipe.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::mpsc;

const PROGRAM: &str = "/usr/bin/chromium";

/// How long the page may take for what a test waits for: a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tab of a browser that is open, and not the one that is used.
pub(crate) struct Tab(String);

/// A browser, of which one page is used at a time.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    messages: mpsc::UnboundedReceiver<Value>,
    next: u64,
    /// Of the page that is used.
    session: String,
    /// What has happened besides replies.
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// A browser, or `None` where there is none.
    pub(crate) async fn start() -> Option<Self> {
        if !polylogue_test::skip::has("`chromium`", Path::new(PROGRAM).exists()) {
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            // The protocol is read from 3 and written to 4.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 >/dev/null 2>&1", PROGRAM])
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-extensions", "--disable-background-networking", "--disable-component-update"])
            .args(["--disable-dev-shm-usage", "--disable-sync", "--mute-audio", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(["--window-size=1280,860", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let parsed = serde_json::from_slice(&message).unwrap_or_default();
                message.clear();
                if sender.send(parsed).is_err() {
                    break;
                }
            }
        });
        let (next, session, events) = (0, String::new(), Vec::new());
        let mut browser = Self { child, input, messages, next, session, events, _profile: profile };
        browser.attach().await;
        Some(browser)
    }

    async fn attach(&mut self) {
        let page = loop {
            let targets = self.command("Target.getTargets", json!({})).await;
            let page =
                targets["targetInfos"].as_array().unwrap().iter().find(|t| t["type"] == "page").cloned();
            if let Some(page) = page {
                break page;
            }
        };
        self.attach_to(&page["targetId"]).await;
    }

    /// Opens an address in a further tab, to which all that follows is done. Returns the tab before.
    pub(crate) async fn open_tab(&mut self, url: &str) -> Tab {
        let before = Tab(std::mem::take(&mut self.session));
        let made = self.command("Target.createTarget", json!({"url": "about:blank"})).await;
        self.attach_to(&made["targetId"]).await;
        self.open(url).await;
        before
    }

    /// Does what follows to this tab. Returns the tab before.
    pub(crate) fn turn_to(&mut self, tab: Tab) -> Tab {
        Tab(std::mem::replace(&mut self.session, tab.0))
    }

    async fn attach_to(&mut self, target: &Value) {
        let attach = json!({"targetId": target, "flatten": true});
        let attached = self.command("Target.attachToTarget", attach).await;
        self.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.command(&format!("{domain}.enable"), json!({})).await;
        }
    }

    async fn message(&mut self) -> Value {
        let message = tokio::time::timeout(PATIENCE, self.messages.recv()).await;
        // It says nothing, or has ended.
        message.unwrap().unwrap()
    }

    /// Sends a command and waits for its result.
    pub(crate) async fn command(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut command = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            command["sessionId"] = self.session.clone().into();
        }
        self.input.write_all(command.to_string().as_bytes()).unwrap();
        self.input.write_all(&[0]).unwrap();
        self.input.flush().unwrap();
        loop {
            let message = self.message().await;
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Opens an address, and waits until its document is loaded.
    pub(crate) async fn open(&mut self, url: &str) {
        let before = self.events.len();
        self.command("Page.navigate", json!({"url": url})).await;
        self.loaded(before).await;
    }

    pub(crate) async fn reload(&mut self) {
        let before = self.events.len();
        self.command("Page.reload", json!({})).await;
        self.loaded(before).await;
    }

    async fn loaded(&mut self, before: usize) {
        while !self.events[before..].iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.message().await;
            self.events.push(message);
        }
    }

    /// The value of an expression, or of its promise.
    pub(crate) async fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let result = self.command("Runtime.evaluate", params).await;
        let failed = &result["exceptionDetails"];
        assert!(failed.is_null(), "{expression}: {failed:#}");
        result["result"]["value"].clone()
    }

    /// The value of an expression once it is true.
    pub(crate) async fn until(&mut self, expression: &str) -> Value {
        let wait = PATIENCE.as_millis();
        let waiting = format!(
            "new Promise((done) => {{
                const begun = Date.now();
                const look = () => {{
                    let found = null;
                    try {{ found = ({expression}); }} catch {{ /* not yet */ }}
                    if (found || Date.now() - begun > {wait} / 2) done(found || null);
                    else setTimeout(look, 15);
                }};
                look();
            }})"
        );
        let found = self.eval(&waiting).await;
        if found.is_null() {
            let shown = self.text().await;
            panic!("`{expression}` does not become true; the page shows:\n{shown}\n{:?}", self.complaints());
        }
        found
    }

    /// What the page shows.
    pub(crate) async fn text(&mut self) -> String {
        self.eval("document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page shows a text.
    pub(crate) async fn until_text(&mut self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text))).await;
    }

    /// Clicks the button or link with this text.
    pub(crate) async fn press(&mut self, text: &str) {
        let find = format!(
            "[...document.querySelectorAll('button, a, summary')].find((it) => it.textContent.trim() === {} && !it.disabled)",
            json!(text)
        );
        self.until(&format!("!!{find}")).await;
        self.eval(&format!("{find}.click()")).await;
    }

    /// The same with one that loads the document again.
    pub(crate) async fn press_and_load(&mut self, text: &str) {
        let before = self.events.len();
        self.press(text).await;
        self.loaded(before).await;
    }

    /// Writes into a field, as a person does.
    pub(crate) async fn fill(&mut self, selector: &str, text: &str) {
        self.until(&format!("!!document.querySelector({})", json!(selector))).await;
        self.eval(&format!(
            "document.querySelector({}).focus(), document.execCommand('selectAll')",
            json!(selector)
        ))
        .await;
        self.command("Input.insertText", json!({"text": text})).await;
    }

    /// A picture of what is in view.
    pub(crate) async fn screenshot(&mut self) -> Vec<u8> {
        let taken = self.command("Page.captureScreenshot", json!({"format": "png"})).await;
        STANDARD.decode(taken["data"].as_str().unwrap()).unwrap()
    }

    /// Records what the threads of the page do from now on.
    pub(crate) async fn trace(&mut self) {
        let config = json!({"includedCategories": ["disabled-by-default-devtools.timeline", "toplevel"]});
        self.command("Tracing.start", json!({"transferMode": "ReportEvents", "traceConfig": config})).await;
    }

    /// The processor time of the longest task of the page since then. Other than how long it takes, that is the same on a busy machine.
    pub(crate) async fn longest_task(&mut self) -> Duration {
        let before = self.events.len();
        self.command("Tracing.end", json!({})).await;
        while !self.events[before..].iter().any(|event| event["method"] == "Tracing.tracingComplete") {
            let message = self.message().await;
            self.events.push(message);
        }
        let collected = self.events.iter().filter(|event| event["method"] == "Tracing.dataCollected");
        let all: Vec<&Value> =
            collected.flat_map(|event| event["params"]["value"].as_array().unwrap()).collect();
        let is_named = |event: &&&Value| event["args"]["name"] == "CrRendererMain";
        let threads: Vec<_> =
            all.iter().filter(is_named).map(|event| (&event["pid"], &event["tid"])).collect();
        let is_of_page = |event: &&&Value| threads.contains(&(&event["pid"], &event["tid"]));
        let times = all.iter().filter(is_of_page).filter_map(|event| event["tdur"].as_u64());
        Duration::from_micros(times.max().unwrap_or_else(|| panic!("no task was recorded of {}", all.len())))
    }

    /// The addresses of all requests.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Errors of scripts, and what the policy of the page has refused.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let complaint = |event: &Value| match event["method"].as_str()? {
            "Runtime.exceptionThrown" => Some(event["params"]["exceptionDetails"].to_string()),
            "Log.entryAdded" if event["params"]["entry"]["source"] != "network" => {
                Some(event["params"]["entry"].to_string())
            }
            "Runtime.consoleAPICalled" if event["params"]["type"] == "error" => {
                Some(event["params"]["args"].to_string())
            }
            _ => None,
        };
        self.events.iter().filter_map(complaint).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
