//! What agents are offered, what they can look up, where their words end, and values in what they say.

use polylogue::agents::session::{ReplyStream, Stage};
use polylogue::layers::parse::value;
use polylogue::tools::GetHistory;
use polylogue::{Assistant, Session};
use polylogue_core::{Params, text_of};
use serde_json::{Value, json};

use crate::lagent::parts::{agent, session};
use crate::stage::{Spy, script};

/// What `get_history` gave in the last call of a session in which the bot was called so often before.
async fn history(calls: usize, args: Value) -> String {
    let silent = (0..calls).map(|nth| json!({"bot": format!("reply {nth}")}));
    let asks = [json!({"bot": {"calls": [{"tool": "get_history", "args": args}]}}), json!({"bot": "done"})];
    let spy = Spy::on(script(&json!(silent.chain(asks).collect::<Vec<_>>()).to_string()));
    let bot = agent("bot", &spy.model()).tool(GetHistory::default());
    let (session, other) = (session().await, session().await);
    for nth in 0..calls {
        session.call(&bot, format!("question {nth}")).await.unwrap();
    }
    session.call(&bot, "the last").await.unwrap();
    // Another session of the same agent, which shares nothing with the first.
    assert!(other.state(&bot).await.unwrap().get("memory").unwrap().is_empty());
    text_of(spy.asked().pop().unwrap().entries.last().unwrap().parts()).into_owned()
}

/// Z13: the last five lines, or as many as are asked for; of the session that the call is made in, whatever it names.
#[tokio::test]
async fn a_history_is_that_of_the_running_session() {
    let five = "user: question 1\nbot: reply 1\nuser: question 2\nbot: reply 2\nuser: the last";
    assert_eq!(history(3, json!({})).await, five);
    assert_eq!(history(3, json!({"limit": 2})).await, "bot: reply 2\nuser: the last");
    assert_eq!(history(0, json!({"limit": 50})).await, "user: the last");
    let named = history(1, json!({"session_id": "another", "limit": 1})).await;
    assert_eq!(named, "user: the last", "no other session can be named");
    assert!(history(0, json!({"limit": 0})).await.contains("`limit` must be a whole number from 1 to 50"));
}

/// Z13: a chat without turns has no messages.
#[tokio::test]
async fn get_history_of_an_empty_chat_says_so() {
    use polylogue::{Chat, sequential};
    let spy = Spy::on(script(r#"[{"bot": {"calls": [{"tool": "get_history"}]}}, {"bot": "done"}]"#));
    let bot = agent("bot", &spy.model()).tool(GetHistory::default());
    let chat = Chat::builder("solo").participant(bot).policy(sequential()).build().unwrap();
    chat.run_in(&mut crate::stage::log().await, "").await.unwrap();
    let shown = spy.asked().pop().unwrap().entries.pop().unwrap();
    assert_eq!(text_of(shown.parts()), "Nothing was said yet.");
}

/// Z15: an agent is offered what it was given, and nothing else: no shell, no files.
#[tokio::test]
async fn nothing_is_offered_that_was_not_asked_for() {
    let spy = Spy::on(script(r#"[{"bare": "a"}, {"given": "b"}]"#));
    let session = session().await;
    session.call(&agent("bare", &spy.model()), "go").await.unwrap();
    session.call(&agent("given", &spy.model()).tool(GetHistory::default()), "go").await.unwrap();
    let offered =
        |nth: usize| -> Vec<String> { spy.asked()[nth].tools.iter().map(|spec| spec.name.clone()).collect() };
    assert_eq!((offered(0), offered(1)), (vec![], vec!["get_history".to_owned()]));
}

/// The updates of a streamed reply, and what is remembered of it.
async fn grows(bot: &Assistant) -> (Vec<String>, Vec<(Stage, String)>, String) {
    let session = session().await;
    let mut reply_stream: ReplyStream = session.reply_stream().await;
    let follow = async {
        let (mut texts, mut stages) = (Vec::new(), Vec::new());
        while let Some(update) = reply_stream.next().await {
            stages.push((update.stage, update.delta));
            texts.push(update.text);
            if update.stage == Stage::Done {
                break;
            }
        }
        (texts, stages)
    };
    let (reply, (texts, stages)) = tokio::join!(session.call(bot, "go"), follow);
    assert_eq!(reply.unwrap().text(), last(&session, bot).await);
    (texts, stages, last(&session, bot).await)
}

async fn last(session: &Session, bot: &Assistant) -> String {
    session.state(bot).await.unwrap().get("memory").unwrap().last().unwrap().text().into_owned()
}

/// L45: what a model writes after a stop word is neither streamed nor remembered, whether its server knows stop words or
/// not; it ends as every reply does.
#[tokio::test]
async fn a_reply_ends_before_a_stop_word() {
    let model = script(
        r#"[{"bot": {"say": "Run:\n```python\nprint(1)\n```\nIt is two, as I said.", "pace": 5000}}]"#,
    );
    let stop = Params { stop: vec!["\n```\n".into(), "<|im_end|>".into()], ..Params::default() };
    let (texts, stages, remembered) = grows(&agent("bot", &model).params(stop)).await;
    let code = "Run:\n```python\nprint(1)";
    assert_eq!(remembered, code);
    assert!(texts.iter().all(|text| code.starts_with(text.as_str())), "{texts:?}");
    assert!(texts.len() > 2, "{texts:?}");
    assert_eq!(stages.last().unwrap(), &(Stage::Done, String::new()));
    let pieces: String = stages.iter().map(|(_, delta)| delta.as_str()).collect();
    assert_eq!(pieces, code);
}

/// Output parsers, JSON by a schema: the value rides on the message as that of any other parser does.
#[tokio::test]
async fn an_answer_in_a_form_rides_on_the_message() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let bot =
        agent("bot", &script(r#"[{"bot": "{\"n\": \"x\"}"}, {"bot": "{\"n\": 3}"}]"#)).output_schema(schema);
    let reply = session().await.call(&bot, "How many?").await.unwrap();
    assert_eq!(value(&reply), Some(&json!({"n": 3})));
    assert_eq!(reply.text(), r#"{"n":3}"#);
}
