//! Models and providers that deviate from what a bound expects: the bound ends to apply, and its run is not stopped by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polylogue::{AnyModel, Log};
use polylogue_core::{
    AnyTool, Bound, BoundException, Capabilities, Capability, DeltaSink, Event, FinishReason, Media, Model,
    ModelError, ModelErrorKind, Params, Part, Reply, Request, RunBound, Seal, Seals, Status, StopReason,
    Tool, ToolCx, ToolError, ToolResult, ToolSpec, ToolStatus, Usage, Verbatim,
};
use polylogue_team::{BuildContext, Team};
use serde_json::{Value, json};

use super::adversary::{Adversary, Behavior};

/// A model of which tool calls are expected.
#[derive(Clone, Copy)]
struct Deviant {
    lacks_tools: bool,
    /// The tokens that it reports of each reply, of which 9 are asked for.
    output: u64,
}

const HONEST: Deviant = Deviant { lacks_tools: false, output: 3 };

impl Model for Deviant {
    fn name(&self) -> &str {
        "a:b"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        if self.lacks_tools && !request.tools.is_empty() {
            let kind = ModelErrorKind::Unsupported(Capability::Tools);
            return Err(ModelError::new(kind, self.name(), "tools are not supported"));
        }
        let usage = Usage { input: Some(9), output: Some(self.output), ..Usage::default() };
        Ok(Reply { usage, ..Reply::new("no") })
    }

    fn expected_capabilities(&self, _: &Params) -> Capabilities {
        Capabilities::default().with(Capability::Tools)
    }
}

/// Plays two turns with a tool within what `most` makes of their bound. Returns the reason for the end and why the bound ended to
/// apply.
async fn play(model: impl Model, most: fn(RunBound) -> RunBound) -> (StopReason, Option<BoundException>) {
    let team = super::team(
        "{name: t, model: 'a:b', task: hi, agents: [{name: A, tools: [calculator], parameters: {max_tokens: 9}}], \
          chat: {participants: [A], max_turns: 2}}",
    );
    let model = AnyModel::new(model);
    let bound = team.bound(&|_| Ok(model.clone()), &team.limits()).unwrap();
    let chat = team.build_at(&|_| Ok(model.clone()), &BuildContext::none()).unwrap();
    let mut log = Log::in_memory().bound(most(bound.to_enforce()));
    let run = chat.run_in(&mut log, "hi").await.unwrap();
    let Status::Closed { reason, .. } = run.status else { panic!("{:?}", run.status) };
    (reason, log.bound_exception().await)
}

const fn of_one_call(bound: RunBound) -> RunBound {
    RunBound { calls: Some(1), ..bound }
}

#[tokio::test]
async fn a_model_that_lacks_what_is_expected_of_it_ends_the_bound() {
    let (reason, exception) = play(Deviant { lacks_tools: true, ..HONEST }, of_one_call).await;
    assert_eq!(exception, Some(BoundException::CapabilityMissing(Capability::Tools)));
    assert!(!matches!(reason, StopReason::Bound { .. }), "{reason}");
    let (reason, exception) = play(HONEST, of_one_call).await;
    assert_eq!(exception, None);
    assert!(matches!(reason, StopReason::Bound { .. }), "{reason}");
}

/// A model whose provider cannot parse a call in so many of its first replies, with a text before it or without.
struct Clumsy {
    malformed: usize,
    says: bool,
    made: AtomicUsize,
}

impl Model for Clumsy {
    fn name(&self) -> &str {
        "a:b"
    }

    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let usage = Usage { input: Some(9), output: Some(3), ..Usage::default() };
        let is_malformed = self.made.fetch_add(1, Ordering::SeqCst) < self.malformed;
        let finish = if is_malformed { FinishReason::Malformed } else { FinishReason::Stop };
        let parts = if is_malformed && !self.says { Vec::new() } else { vec![Part::text("no")] };
        Ok(Reply { parts, finish, usage, ..Reply::new("") })
    }
}

/// The bound has a second request for each reply that cannot be parsed, and no third one.
#[tokio::test]
async fn a_second_reply_that_cannot_be_parsed_ends_the_bound() {
    let unparsed = Some(BoundException::Unparsed);
    for (malformed, says, ends) in [
        (1, false, None),
        (1, true, None),
        (2, false, unparsed),
        (2, true, unparsed),
        (9, false, unparsed),
        (9, true, unparsed),
    ] {
        let model = Clumsy { malformed, says, made: AtomicUsize::default() };
        let (reason, exception) = play(model, |bound| RunBound { calls: Some(2), ..bound }).await;
        assert_eq!(exception, ends, "{malformed} {says}");
        assert_eq!(
            matches!(reason, StopReason::Bound { .. }),
            ends.is_none(),
            "{malformed} {says}: {reason}"
        );
    }
}

/// What its server bills is above the bound: that is no defect of the bound, and no reason to stop.
#[tokio::test]
async fn a_server_that_ignores_the_output_limit_ends_the_bound() {
    for (output, ends) in
        [(9, None), (10, Some(BoundException::Overlong)), (1 << 40, Some(BoundException::Overlong))]
    {
        let (reason, exception) = play(Deviant { output, ..HONEST }, |bound| bound).await;
        assert_eq!(exception, ends, "{output} tokens");
        assert_eq!(reason, StopReason::Turns { limit: 2, next: None }, "{output} tokens");
    }
}

/// A model whose replies are as long as they may be, go back with seals, and are billed for every byte.
#[derive(Clone, Copy)]
struct Sealing {
    /// Whether seals are expected of it.
    is_expected: bool,
    /// The bytes of a seal.
    seal: usize,
}

/// Tokens of a reply.
const OUTPUT: u64 = 50;

impl Model for Sealing {
    fn name(&self) -> &str {
        "a:b"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        // No two texts are alike, so that they are no loop.
        let letter = char::from(b'a' + u8::try_from(request.origin.nth).unwrap());
        let part = Part::text(format!("{} {}", request.origin.who, letter.to_string().repeat(390)));
        let sent = request.seals_sent(self.name());
        let seals = Seals {
            by: Arc::clone(sent.by()),
            before: sent.before(request.entries),
            key: None,
            // With its quotation marks.
            parts: vec![Seal::new(0, &part, json!("x".repeat(self.seal - 2)))],
        };
        let verbatim = Some(Arc::new(Verbatim { seals: Some(seals), ..Verbatim::default() }));
        let input = Bound::of(self, request).input;
        let usage = Usage { input: Some(input), output: Some(OUTPUT), ..Usage::default() };
        Ok(Reply { parts: vec![part], verbatim, usage, ..Reply::new("") })
    }

    fn max_output(&self, _: &Params) -> Option<u64> {
        Some(OUTPUT)
    }

    fn returns_seals(&self, _: &Params) -> bool {
        self.is_expected
    }
}

/// Plays six turns of two agents within their bound: the reason for the end, why the bound ended to apply, and what share of its
/// tokens was used, in percent.
async fn play_sealing(model: Sealing) -> (StopReason, Option<BoundException>, u64) {
    let team = super::team(
        "{name: t, model: 'a:b', task: hi, agents: [{name: A}, {name: B}], chat: {participants: [A, B], max_turns: 6}}",
    );
    let model = AnyModel::new(model);
    let bound = team.bound(&|_| Ok(model.clone()), &team.limits()).unwrap();
    let chat = team.build_at(&|_| Ok(model.clone()), &BuildContext::none()).unwrap();
    let mut log = Log::in_memory().bound(bound.to_enforce());
    let run = chat.run_in(&mut log, "hi").await.unwrap();
    let Status::Closed { reason, .. } = run.status else { panic!("{:?}", run.status) };
    let share = log.usage().await.counted_tokens() * 100 / bound.at_most.tokens().unwrap();
    (reason, log.bound_exception().await, share)
}

#[tokio::test]
async fn a_bound_has_the_sealed_reasoning_that_is_expected() {
    let most = 2_048 + 8 * usize::try_from(OUTPUT).unwrap();
    let end = StopReason::Turns { limit: 6, next: None };
    for (is_expected, seal, exception) in [
        (true, most, None),
        (true, most + 100, Some(BoundException::Seals)),
        (false, 100, Some(BoundException::Seals)),
    ] {
        let (reason, ends, share) = play_sealing(Sealing { is_expected, seal }).await;
        assert_eq!((&reason, ends), (&end, exception), "{is_expected} {seal}");
        assert!(exception.is_some() || share <= 100, "{share} %");
    }
}

/// A tool that returns a picture, whatever is asked of it.
struct Camera(AnyTool);

impl Tool for Camera {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    async fn call(&self, _: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let picture = Media { media_type: "image/png".into(), url: "data:image/png;base64,AAAA".into() };
        Ok(ToolResult::new(ToolStatus::Done, vec![Part::Media(picture)]))
    }
}

/// No size of the result limits pictures in it, of which a model reads more than of a text.
#[tokio::test]
async fn a_picture_that_a_tool_returns_ends_the_bound() {
    let team = super::team(
        "{name: t, model: 'a:b', task: hi, agents: [{name: A, tools: [calculator], max_tool_rounds: 3, parameters: {max_tokens: 9}}], \
          chat: {participants: [A], max_turns: 1}}",
    );
    let model = Adversary::new(Behavior::EndlessCalls, 0).model();
    let bound = team.bound(&|_| Ok(model.clone()), &team.limits()).unwrap();
    let context = BuildContext::none().wrapping_tools(|tool| AnyTool::new(Camera(tool)));
    let chat = team.build_at(&|_| Ok(model.clone()), &context).unwrap();
    let mut log = Log::in_memory().bound(bound.to_enforce());
    let run = chat.run_in(&mut log, "hi").await.unwrap();
    assert_eq!(log.bound_exception().await, Some(BoundException::Media));
    assert!(
        !matches!(run.status, Status::Closed { reason: StopReason::Bound { .. }, .. }),
        "{:?}",
        run.status
    );
}

/// A team whose opening has a picture of about so many bytes.
fn pictured(bytes: usize) -> Team {
    super::team(&format!(
        "{{name: t, model: 'a:b', task: hi, agents: [{{name: A, parameters: {{max_tokens: 9}}}}], \
          chat: {{participants: [A], pattern: sequential, opening: {{text: Look., media: [{{type: image/png, url: 'data:image/png;base64,{}'}}]}}}}}}",
        "A".repeat(bytes)
    ))
}

#[tokio::test]
async fn pictures_of_an_opening_count_as_they_are_reserved_and_larger_ones_end_the_bound() {
    let model = Adversary::new(Behavior::Longest, 0).model();
    let bound = |bytes| {
        let team = pictured(bytes);
        team.bound(&|_| Ok(model.clone()), &team.limits()).unwrap()
    };
    let input = |bytes| bound(bytes).at_most.input().unwrap();
    assert_eq!(input(40_000), input(4), "as much as the largest picture of a provider");
    assert_eq!(input(120_000) - input(80_000), 40_000);
    let none = super::bound(&super::team(
        "{name: t, model: 'a:b', task: hi, agents: [{name: A, parameters: {max_tokens: 9}}], \
          chat: {participants: [A], pattern: sequential, opening: Look.}}",
    ));
    assert_eq!(input(4) - none.at_most.input().unwrap(), Bound::MEDIA_TOKENS);
    for (bytes, exception) in [(4, None), (80_000, None), (120_000, Some(BoundException::Opening))] {
        let chat = pictured(bytes).build_at(&|_| Ok(model.clone()), &BuildContext::none()).unwrap();
        let mut log = Log::in_memory().bound(bound(80_000).to_enforce());
        chat.run_in(&mut log, "hi").await.unwrap();
        assert_eq!(log.bound_exception().await, exception, "{bytes} bytes");
    }
}

#[test]
fn default_answers_are_part_of_the_team() {
    let event = |by: &str| -> Event {
        let text = "x".repeat(4_001);
        let line =
            json!({"seq": 0, "time_ms": 0, "type": "input_provided", "to": "P", "text": text, "by": by});
        serde_json::from_value(line).unwrap()
    };
    let bound = RunBound { calls: Some(9), ..RunBound::default() };
    assert_eq!(bound.exception_after([&event("unnamed")]), Some(BoundException::LongAnswer));
    assert_eq!(bound.exception_after([&event("timeout")]), None);
    let input = |answer: usize| {
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, agents: [{{name: A, parameters: {{max_tokens: 9}}}}, \
              {{name: P, human: true, default_answer: {{timeout: 1 s, text: {}}}}}], chat: {{participants: [P, A], max_turns: 2}}}}",
            "x".repeat(answer)
        );
        super::bound(&super::team(&text)).at_most.input().unwrap()
    };
    // As much as a person writes is counted in any case.
    assert_eq!(input(4_000), input(1));
    assert_eq!(input(9_000), input(1) + 5_000);
}
