//! Servers that misbehave, each in its way: the run ends well, or says whose fault it is and loses nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use polylogue_test::server::{Entry, Quirk};

use crate::home::{Home, Ran, serve};
use crate::models::{CALLS, SAID, TALK, said, talk};

/// The quirks under which no reply can be had: the fault that is reported, and the text. All others change nothing.
const FATAL: &[(&str, &str, &str)] = &[
    ("html", "provider", "that is a web page: check the model's name and the base URL `http://127.0.0.1:"),
    ("empty-body", "provider", "the reply is empty"),
    ("invalid-json", "provider", "the reply ended before it was finished (tried 5 times)"),
    ("error-in-stream", "provider", "status 500: The server had an error"),
    ("endless-stream", "provider", ENDLESS),
    ("endless-line", "provider", "does not end"),
    ("endless-comments", "provider", LATE),
    ("hang-up", "provider", BROKEN),
    ("truncated", "provider", BROKEN),
    ("reset", "provider", BROKEN),
    ("length-too-short", "provider", BROKEN),
    ("silent", "provider", LATE),
    ("echo-key", "config", "status 401: Incorrect API key provided: Bearer [key]. "),
    ("redirect", "config", "redirects to `http://127.0.0.2:9/v1/chat/completions`, which is not followed"),
    ("status", "provider", "the provider has an internal error: try again later"),
];

/// Those that spoil a reply in one piece only: one in many pieces is complete before they are met.
const FATAL_WHOLE: &[(&str, &str, &str)] = &[
    ("empty-choices", "provider", "it has no `choices`"),
    ("length-too-long", "provider", BROKEN),
    ("bad-chunk", "provider", BROKEN),
];

const BROKEN: &str = "the connection broke: ";
const LATE: &str = "no complete reply within 12s";
/// Whichever of its limits is met first.
const ENDLESS: &str = "e reply ";

/// Seconds that a call may take: what never ends is to end soon, what is slow must not be too late on a busy machine.
const TIMEOUT: &str = "12";

/// The pauses of quirks that pause: long enough to be seen, and no longer.
const PAUSES: &[&str] = &["slow-headers=50", "pause-before-first=50", "stall=50", "pace=2"];

/// The quirk of `entry`, with a pause that is waited for.
fn quirk(entry: &Entry) -> Quirk {
    let pause = PAUSES.iter().find(|pause| pause.split('=').next() == Some(entry.name));
    pause.map_or_else(|| entry.quirk.clone(), |pause| pause.parse().unwrap())
}

#[test]
fn every_misbehavior_is_survived_or_named_and_the_run_continues_elsewhere() {
    let cases: Vec<(&Entry, bool)> =
        Quirk::CATALOG.iter().flat_map(|entry| [(entry, true), (entry, false)]).collect();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // Most of the time is spent waiting for retries.
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                while let Some((entry, streams)) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let Err(what) = check(entry, *streams) {
                        let name = entry.name;
                        failures.lock().unwrap().push(format!("{name}, streams: {streams}: {what}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check(entry: &Entry, streams: bool) -> Result<(), String> {
    let bad = serve(talk().with(quirk(entry)));
    let mut home = Home::at(&bad).with_team(TALK);
    let mut args = vec!["run", "team.yaml", "--model", "openai:test", "--timeout", TIMEOUT];
    args.extend((!streams).then_some("--no-stream"));
    let ran = home.run(&args);
    let fatal =
        FATAL.iter().chain(if streams { &[] } else { FATAL_WHOLE }).find(|(name, ..)| *name == entry.name);
    judge(&ran, fatal)?;
    none(&bad.violations())?;
    let good = serve(talk());
    home.set("OPENAI_BASE_URL", &good.base_url());
    home.run(&["resume", "last"]).ok();
    none(&good.violations())?;
    if fatal.is_none() && (bad.count() != CALLS || good.count() != 0) {
        return Err(format!("{} and {} requests", bad.count(), good.count()));
    }
    let said = said(&home.events());
    if said == SAID { Ok(()) } else { Err(format!("what was said: {said:?}")) }
}

fn judge(ran: &Ran, fatal: Option<&(&str, &str, &str)>) -> Result<(), String> {
    let Ran { code, err, .. } = ran;
    let fits = match fatal {
        None => *code == 0 && !err.contains("error"),
        Some((_, fault, text)) => {
            *code == 1 && err.contains(&format!("error ({fault}): openai:test: ")) && err.contains(text)
        }
    };
    if fits { Ok(()) } else { Err(format!("exit {code}: {}", err.lines().skip(1).collect::<String>())) }
}

fn none(violations: &[String]) -> Result<(), String> {
    if violations.is_empty() { Ok(()) } else { Err(violations.join("; ")) }
}
