//! Responses whose head is sent before there is anything to say, so that nothing between client and server takes them for dead.

use std::pin::Pin;
use std::time::Duration;

use axum::http::Response;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyDataStream, BodyExt as _};
use polylogue_mcp::serve::HttpBody;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};

use crate::call::Reply;
use crate::tail::event_stream;

/// After this time the response becomes an event stream, whatever it will be.
const SOON: Duration = Duration::from_secs(1);

pub(super) type Responding = Pin<Box<dyn Future<Output = Response<HttpBody>> + Send>>;

pub(super) fn is_stream(response: &Response<HttpBody>) -> bool {
    let media = response.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
    media.is_some_and(|media| media.starts_with("text/event-stream"))
}

/// A response, if it is there soon.
pub(super) enum Head {
    Response(Response<HttpBody>),
    Later(Responding),
}

pub(super) async fn head_of(mut responding: Responding) -> Head {
    match timeout(SOON, &mut responding).await {
        Ok(response) => Head::Response(response),
        Err(_) => Head::Later(responding),
    }
}

/// Where an event stream comes from.
pub(super) enum Source {
    /// From a response that is not there yet.
    Later(Responding),
    /// From the body of one.
    Body(BodyDataStream<HttpBody>),
    /// From one that is no event stream: its body is the only event.
    Whole(HttpBody),
    End,
}

impl Source {
    pub(super) fn of(response: Response<HttpBody>) -> Self {
        match is_stream(&response) {
            true => Self::Body(response.into_body().into_data_stream()),
            false => Self::Whole(response.into_body()),
        }
    }

    /// The next text, and what follows.
    async fn next(self, comment_every: Duration) -> Option<(Bytes, Self)> {
        let mut source = self;
        loop {
            source = match source {
                Self::Later(mut responding) => tokio::select! {
                    response = &mut responding => Self::of(response),
                    () = sleep(comment_every) => return Some((COMMENT, Self::Later(responding))),
                },
                Self::Body(mut body) => {
                    let Ok(data) = body.next().await?;
                    return Some((data, Self::Body(body)));
                }
                Self::Whole(body) => {
                    let Ok(body) = body.collect().await;
                    let text = format!("data: {}\n\n", String::from_utf8_lossy(&body.to_bytes()));
                    return Some((text.into(), Self::End));
                }
                Self::End => return None,
            }
        }
    }
}

const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// The response that is an event stream until the token has `ended`.
pub(super) fn stream(
    source: Source,
    (ended, permit): (impl Future<Output = ()> + Send + 'static, OwnedSemaphorePermit),
    comment_every: Duration,
) -> Reply {
    let texts = stream::unfold(source, move |source| source.next(comment_every));
    event_stream(texts.take_until(Box::pin(ended)), permit)
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn comments_are_sent_until_the_response_is_there() {
        let responding: Responding = Box::pin(async {
            sleep(Duration::from_secs(40)).await;
            Response::new(Full::new(Bytes::from_static(b"{\"id\":1}")).boxed())
        });
        let Head::Later(responding) = head_of(responding).await else { panic!("it takes longer") };
        let mut source = Source::Later(responding);
        let mut texts = Vec::new();
        while let Some((text, next)) = source.next(Duration::from_secs(15)).await {
            texts.push(String::from_utf8(text.to_vec()).unwrap());
            source = next;
        }
        assert_eq!(texts, [":\n\n", ":\n\n", "data: {\"id\":1}\n\n"]);
    }
}
