//! A writer and a critic who improve a text, on five topics at the same time: each topic has its own session, and one
//! agent value serves them all.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::kernel::agent::SubAgent;
use polylogue::kernel::log::AnyStore;
use polylogue::kernel::view::ViewOptions;
use polylogue::stores::Memory;
use polylogue::{Act, Agent, Assistant, Name, Session, Turn};

/// Writes, and rewrites after each criticism, for some rounds.
#[derive(Clone)]
struct Blogger {
    name: Name,
    writer: Assistant,
    critic: Assistant,
    max_turn: usize,
}

impl Agent for Blogger {
    fn name(&self) -> &Name {
        &self.name
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::of(&self.writer), SubAgent::of(&self.critic)]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let mut message = turn.message();
        for _ in 0..self.max_turn {
            message = turn.ask(&self.writer, message).await?;
            message = turn.ask(&self.critic, message).await?;
        }
        Ok(Act::Say(turn.ask(&self.writer, message).await?.parts))
    }
}

async fn post(
    blogger: Blogger,
    store: AnyStore,
    nth: usize,
    topic: &str,
) -> polylogue::Result<(String, Vec<String>)> {
    let session = Session::create(store, &*format!("topic-{nth}")).await?;
    let post = session.call(&blogger, format!("Write a short post on {topic}.")).await?;
    let state = session.state(&blogger).await?;
    let received = state.get("critic.memory").unwrap_or_default();
    Ok((
        post.text().into(),
        received.iter().map(|message| format!("{}: {}", message.from, message.text())).collect(),
    ))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"writer": "A draft."}, {"critic": "Longer, please."}, {"writer": "A longer draft."}]"#,
    )?;
    // Added before the writer's text that the critic receives.
    let prefix = [(Name::new("writer")?, "Reflect on the following text.".to_owned())].into();
    let blogger = Blogger {
        name: Name::new("blogger")?,
        writer: Assistant::new("writer", &model)?.system("You write posts, and revise them when criticized."),
        critic: Assistant::new("critic", &model)?
            .system("You criticize.")
            .view(ViewOptions { prefix, ..ViewOptions::default() }),
        max_turn: 1,
    };
    let store = AnyStore::from(Memory::new());
    let mut posts = tokio::task::JoinSet::new();
    for (nth, topic) in
        ["AI", "biotechnology", "new energy", "video games", "pop music"].into_iter().enumerate()
    {
        let (blogger, store) = (blogger.clone(), store.clone());
        posts.spawn(async move { (nth, topic, post(blogger, store, nth, topic).await) });
    }
    let mut done = posts.join_all().await;
    done.sort_by_key(|(nth, ..)| *nth);
    for (_, topic, post) in done {
        let (post, criticized) = post?;
        println!("{topic}: {post} (criticized: {})", criticized.join(" | "));
    }
    Ok(())
}
