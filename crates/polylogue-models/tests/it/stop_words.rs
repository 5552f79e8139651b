//! Stop words, with a server that knows none.

use crate::common::{Asked, Heard, config, model, text};
use polylogue_core::{AnyModel, FinishReason, Model, Params};
use polylogue_models::Config;
use polylogue_test::server::{Answer, Server};

/// L45: the server continues after the stop word. Neither the reply nor its pieces do, streamed or not, and what the reply cost is
/// known.
#[tokio::test]
async fn a_reply_is_cut_at_the_stop_word_where_its_server_continues() {
    let whole = "Let me see.\n```python\nprint('é')\n```\nIt prints a letter.";
    for stream in [true, false] {
        let answer = Answer::text(whole).usage(10, 20).pieces(17);
        let server = Server::start(answer).await;
        let model = AnyModel::new(model(Config { stream, ..config(&server) }));
        let stop = vec!["\n```\n".to_owned(), "<|im_end|>".to_owned()];
        let asked = Asked { params: Params { stop: stop.clone(), ..Params::default() }, ..Asked::default() };
        let mut received = Heard::default();
        let reply = model.complete(&asked.request(), &mut received).await.unwrap();
        assert_eq!(text(&reply), "Let me see.\n```python\nprint('é')");
        assert_eq!(reply.finish, FinishReason::Stop);
        assert_eq!((reply.usage.input, reply.usage.output), (Some(10), Some(20)));
        assert_eq!(received.0, text(&reply), "streamed: {stream}");
        let sent: Vec<String> = serde_json::from_value(server.requests()[0].body["stop"].clone()).unwrap();
        assert_eq!(sent, stop);
    }
}
