//! Documents of a team: the bound counts their pages, as calls are reserved, and is at least what a provider takes for them.

use polylogue::{AnyModel, Log};
use polylogue_core::{
    Bound, BoundException, DeltaSink, Media, Model, ModelError, Params, Part, Reply, Request, Status,
    StopReason, Usage,
};
use polylogue_mcp::Catalog;
use polylogue_team::{AttachedSize, BuildContext, Team};
use polylogue_test::pdf::{HUNDRED_PAGES, THREE_PAGES, damaged};

/// The most tokens of a page.
const PAGE: u64 = 7_784;

/// A model whose provider takes the most for every page of a document.
#[derive(Clone, Copy)]
struct Reader {
    /// How many pages the document has.
    pages: u64,
}

impl Model for Reader {
    fn name(&self) -> &str {
        "a:b"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let parts = || request.entries.iter().flat_map(|entry| entry.parts());
        let documents = parts().filter(|part| matches!(part, Part::Media(_))).count() as u64;
        let texts: usize = parts().map(|part| if let Part::Text(text) = part { text.len() } else { 0 }).sum();
        let input = documents * self.pages * PAGE + texts as u64;
        let usage = Usage { input: Some(input), output: Some(9), ..Usage::default() };
        // No two texts are alike, so that they are no loop.
        Ok(Reply { usage, ..Reply::new(format!("Reply {}.", request.origin.nth)) })
    }

    fn max_output(&self, _: &Params) -> Option<u64> {
        Some(9)
    }

    fn page_tokens(&self) -> u64 {
        PAGE
    }
}

const FOUR_TURNS: &str = "participants: [A, B], max_turns: 4";
const TWO_TURNS: &str = "participants: [A, B], pattern: sequential";

/// A team of two agents, whose chat begins with `text` and these documents.
fn team(chat: &str, text: &str, documents: &[&[u8]]) -> Team {
    let attached = |document: &&[u8]| {
        let Media { media_type: kind, url } = Media::of_bytes(document).unwrap();
        format!("{{type: {kind}, url: '{url}'}}")
    };
    let documents: Vec<String> = documents.iter().map(attached).collect();
    super::team(&format!(
        "{{name: t, model: 'a:b', task: hi, agents: [{}], chat: {{{chat}, opening: {{text: '{text}', media: [{}]}}}}}}",
        super::PAIR,
        documents.join(", ")
    ))
}

fn input(team: &Team) -> u64 {
    let model = AnyModel::new(Reader { pages: 0 });
    team.bound(&|_| Ok(model.clone()), &team.limits()).unwrap().at_most.input().unwrap()
}

/// Plays `played` within the bound of `bounded`. Returns why the bound ended to apply, and the tokens of the run and of the bound.
async fn play(bounded: &Team, played: &Team, pages: u64) -> (Option<BoundException>, u64, u64) {
    let model = AnyModel::new(Reader { pages });
    let bound = bounded.bound(&|_| Ok(model.clone()), &bounded.limits()).unwrap();
    let chat = played.build_at(&|_| Ok(model.clone()), &BuildContext::none()).unwrap();
    let mut log = Log::in_memory().bound(bound.to_enforce());
    let run = chat.run_in(&mut log, "hi").await.unwrap();
    let Status::Closed { reason, .. } = run.status else { panic!("{:?}", run.status) };
    assert_eq!(reason, StopReason::Turns { limit: 4, next: None });
    let used = log.usage().await.counted_tokens();
    (log.bound_exception().await, used, bound.at_most.tokens().unwrap())
}

#[tokio::test]
async fn a_bound_is_at_least_what_a_provider_takes_for_all_pages() {
    for (documents, pages) in [
        (&[THREE_PAGES][..], 3),
        (&[HUNDRED_PAGES], 100),
        (&[HUNDRED_PAGES, HUNDRED_PAGES], 100),
        (&[damaged()], Bound::MAX_PAGES),
    ] {
        let team = team(FOUR_TURNS, "Look.", documents);
        let (exception, used, most) = play(&team, &team, pages).await;
        assert_eq!(exception, None, "{pages} pages");
        let all = 4 * documents.len() as u64 * pages * PAGE;
        assert!(all <= used && used <= most, "{pages} pages: {used} of {most} tokens");
    }
}

#[test]
fn a_document_counts_in_each_call_as_reserved() {
    let none = input(&team(TWO_TURNS, "Look.", &[]));
    for (document, pages, text) in
        [(THREE_PAGES, 3, 60), (HUNDRED_PAGES, 100, 2_392), (damaged(), Bound::MAX_PAGES, 0)]
    {
        let around = Bound::MESSAGE_TOKENS + "application/pdf".len() as u64;
        let more = input(&team(TWO_TURNS, "Look.", &[document])) - none;
        assert_eq!(more, 2 * (around + text + pages * PAGE), "{pages} pages");
    }
}

/// More pages end it also where there are fewer bytes.
#[tokio::test]
async fn an_opening_with_more_pages_ends_the_bound() {
    let team = |text: &str, document| team(FOUR_TURNS, text, &[document]);
    let (few, many) = (team(&"x".repeat(9_000), THREE_PAGES), team("Look.", HUNDRED_PAGES));
    for (bounded, played, pages, expected) in [
        (&few, &few, 3, None),
        (&few, &many, 100, Some(BoundException::Opening)),
        (&many, &few, 3, Some(BoundException::Opening)),
        (&many, &team("Look.", THREE_PAGES), 3, None),
    ] {
        assert_eq!(play(bounded, played, pages).await.0, expected, "{pages} pages");
    }
}

#[tokio::test]
async fn what_the_caller_attaches_counts_in_each_call() {
    let (team, model) = (team(FOUR_TURNS, "Look.", &[]), AnyModel::new(Reader { pages: 3 }));
    let parts = vec![Part::text("x".repeat(9_000)), Part::Media(Media::of_bytes(THREE_PAGES).unwrap())];
    let chat = team.build_at(&|_| Ok(model.clone()), &BuildContext::none()).unwrap();
    for (attached, expected) in
        [(AttachedSize::of(&parts), None), (AttachedSize::default(), Some(BoundException::Opening))]
    {
        let provide = |_: &str| Ok(model.clone());
        let bound = team.bound_with(&provide, &team.limits(), Catalog::default(), attached).unwrap();
        let mut log = Log::in_memory().bound(bound.to_enforce());
        chat.open_in(&mut log, "hi", parts.clone()).await.unwrap();
        chat.resume(&mut log).await.unwrap();
        assert_eq!(log.bound_exception().await, expected);
        let (used, most) = (log.usage().await.counted_tokens(), bound.at_most.tokens().unwrap());
        assert_eq!(used <= most, expected.is_none(), "{used} of {most} tokens");
    }
}
