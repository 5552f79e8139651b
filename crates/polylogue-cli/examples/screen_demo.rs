//! Plays a fixed conversation to the terminal, with the pauses of a real one: to look at what the tests cannot judge.
//!
//! `cargo run -p polylogue-cli --example screen_demo [-- plain | json | quiet | whole]`

// The example has the screen's modules as its own; it does not use all of them.
#[allow(dead_code, unused_imports)]
#[path = "../src/screen/mod.rs"]
mod screen;

use std::io::{self, Stdout};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use polylogue_core::{
    Body, Call, Delta, Event, LogId, Message, Money, Name, NameError, Opening, Outcome, Path, StopReason,
    Timestamp, TotalUsage, TurnRequest, Update,
};
use screen::{ColourWish, Looks, Output, RunEnd, Screen, Settings, Size};

const ANSWER: &str = "Solution: I read the prices and drew them.\n\n## What the plot shows\n\n1. The price **rose** from 170 \
to 171.\n2. Details:\n   - *volume* is flat\n   - see [the docs](https://example.org/docs)\n\n```python\nimport matplotlib.pyplot as plt\n\n\
plt.plot(days, prices)  # a comment that is quite long, so that it has to be broken at the edge of a narrow terminal\nplt.show()\n```\n\n\
| Day | Price | Note |\n|:----|------:|------|\n| 1 | 170 | opening, 開始 |\n| 2 | 171 | up |\n\n> A quote.\n\nNext request.";

struct Demo {
    screen: Screen<Stdout>,
    seq: u64,
    begun: Instant,
}

impl Demo {
    fn event(&mut self, at: &Path, body: Body) -> io::Result<()> {
        let time = Timestamp(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or_default());
        let event = Event { seq: self.seq, at: at.clone(), time, ran_ms: 0, body };
        self.seq += 1;
        self.screen.hear(&Update::Event(Arc::new(event))).map(|_| ())
    }

    fn pause(&mut self, ms: u64) -> io::Result<()> {
        for _ in 0..ms / 50 {
            sleep(Duration::from_millis(50));
            self.screen.tick()?;
        }
        Ok(())
    }

    fn stream(&mut self, at: &Path, who: &Name, text: &str, piece: fn(String) -> Delta) -> io::Result<()> {
        for word in text.split_inclusive([' ', '\n']) {
            sleep(Duration::from_millis(15));
            let signal = Update::Delta { at: at.clone(), who: who.clone(), delta: piece(word.to_owned()) };
            self.screen.hear(&signal)?;
        }
        Ok(())
    }

    fn says(&mut self, at: &Path, who: &Name, text: &str) -> io::Result<()> {
        self.stream(at, who, text, Delta::Text)?;
        self.event(at, Body::Message(Message::text(who.clone(), text)))
    }

    fn uses_a_tool(&mut self, at: &Path, who: &Name) -> io::Result<()> {
        let args = serde_json::json!({"symbol": "AAPL", "days": 2});
        let call = Call { id: "c1".into(), tool: "quotes".into(), args };
        self.event(at, Body::ToolCalled { who: who.clone(), call })?;
        self.pause(1500)?;
        let outcome = Outcome::done("day,price\n1,170\n2,171");
        self.event(at, Body::ToolReturned { who: who.clone(), id: "c1".into(), outcome })
    }
}

fn cued(who: &[&Name]) -> Body {
    Body::TurnStarted { turns: who.iter().map(|who| TurnRequest::to_all((*who).clone())).collect() }
}

fn opened(with: &[&Name], from: &Name, text: &str) -> Body {
    let with = with.iter().map(|who| (*who).clone()).collect();
    let messages = vec![Message::text(from.clone(), text)];
    Body::Opened(Opening { participants: with, task: text.into(), messages, ..Opening::default() })
}

fn play(demo: &mut Demo, names: &[Name; 4]) -> io::Result<()> {
    let [trader, coder, critic, judge] = names;
    let root = Path::root();
    demo.event(
        &root,
        opened(&[trader, coder, critic], trader, "Instruction: plot the price of *AAPL*.\nInput: None"),
    )?;
    demo.event(&root, cued(&[coder]))?;
    demo.pause(1200)?;
    let thought =
        "They want a plot. I need the prices first, and then a way to draw them. The tool gives both. ";
    demo.stream(&root, coder, &thought.repeat(3), Delta::Thought)?;
    demo.uses_a_tool(&root, coder)?;
    demo.stream(&root, coder, "Solution: I cannot", Delta::Text)?;
    let restart = Update::Delta { at: root.clone(), who: coder.clone(), delta: Delta::Restart };
    demo.screen.hear(&restart)?;
    demo.pause(800)?;
    demo.says(&root, coder, ANSWER)?;
    demo.event(&root, cued(&[critic, trader]))?;
    let inner = root.child(critic, 1);
    demo.event(&inner, opened(&[judge], coder, "Judge the plot."))?;
    demo.event(&inner, cued(&[judge]))?;
    demo.pause(800)?;
    demo.says(&inner, judge, "The plot is **fine**, and \x1b[31mthis\x1b[0m does nothing.")?;
    demo.event(&inner, Body::Closed { reason: StopReason::Finished, summary: "fine".into() })?;
    demo.event(&root, Body::Message(Message::text(critic.clone(), "fine")))?;
    demo.says(&root, trader, "<CAMEL_TASK_DONE>")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let wish = if mode == "plain" { ColourWish::Never } else { ColourWish::Auto };
    let output = match mode.as_str() {
        "json" => Output::Json,
        "quiet" => Output::Result,
        _ => Output::Talk,
    };
    let looks = Looks::of(wish, &io::stdout());
    let settings = Settings { output, looks, stream: mode != "whole", thoughts: false };
    let begun = Instant::now();
    let size = Box::new(Size::of_terminal);
    let screen = Screen::new(io::stdout(), "team", settings, size, Box::new(move || begun.elapsed()));
    let mut demo = Demo { screen, seq: 0, begun };
    let name = |text: &str| Name::new(text);
    let names: Result<_, NameError> =
        (|| Ok([name("Stock_Trader")?, name("Python_Programmer")?, name("Critics")?, name("Judge")?]))();
    let names = names?;
    play(&mut demo, &names)?;
    let by = names[0].clone();
    let ending = RunEnd {
        status: RunEnd::why(&StopReason::Mentioned { text: "<CAMEL_TASK_DONE>".into(), by }),
        spent: TotalUsage {
            calls: 4,
            input: 3000,
            output: 480,
            cost: Money::dollars(0.0021),
            ..TotalUsage::default()
        },
        turns: 4,
        elapsed: begun.elapsed(),
        id: LogId::new("3k7v9x")?,
        resumable: false,
        raises: None,
        files: None,
    };
    demo.screen.end(&ending)?;
    Ok(())
}
