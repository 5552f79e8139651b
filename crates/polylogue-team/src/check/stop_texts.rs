//! Texts that end chats, lead along edges of a graph, or that conditions look for: a prompt asks for each of them, in the same letters.

use std::collections::HashSet;

use polylogue_config::At;
use polylogue_core::Name;
use polylogue_core::text::one_line;

use crate::agent::Agent;
use crate::chat::Chat;
use crate::codes;
use crate::condition::{Condition, SoughtText};
use crate::diagnostic::Report;
use crate::human_input::{TerminateOn, TerminatingMessage};
use crate::outline::{Outline, Participant};
use crate::pattern::Pattern;
use crate::source::Span;
use crate::stop::{Matches, Says, Stop};
use crate::team::Team;
use crate::yaml::{Data, Entry, Node};

/// Keys whose texts are not prompts.
const NO_PROMPTS: [&str; 6] = ["stop", "terminate_on", "edges", "when", "name", "file"];
/// The text that ends conversations of AutoGen.
const TERMINATE: &str = "TERMINATE";

pub(super) fn check(root: &Node, team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    // A team without any system message is a sketch.
    if !outline.agents().filter_map(Agent::model).any(|keys| !keys.system.is_empty()) {
        return;
    }
    let mut prompts = Vec::new();
    collect(root, &mut prompts);
    for (_, chat) in team.checked_chats() {
        let own = chat.stop.iter().flat_map(stop_texts).filter(|text| !text.is_precaution(chat));
        let agents = chat.everyone().filter_map(|who| outline.participant(who)?.agent());
        let texts = own.chain(edge_texts(chat)).chain(agents.filter_map(StopText::of_agent));
        for text in texts {
            if report.full_of_warnings() {
                return;
            }
            check_text(&text, chat, outline, &prompts, report);
        }
        for given in conditions(chat) {
            if report.full_of_warnings() {
                return;
            }
            check_condition(&given, chat, outline, &prompts, report);
        }
    }
}

/// The texts of a file that a model can read or a script says.
fn collect(node: &Node, prompts: &mut Vec<String>) {
    match &node.data {
        Data::Text(text) => prompts.push(one_line(text)),
        Data::List(items) => items.iter().for_each(|item| collect(item, prompts)),
        Data::Map(entries) => {
            let read = entries.iter().filter(|Entry { key, .. }| !NO_PROMPTS.contains(&key.as_str()));
            read.for_each(|entry| collect(&entry.value, prompts));
        }
        _ => {}
    }
}

/// What a text does when it is said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It ends the chat.
    Stop,
    /// It leads along an edge of a graph.
    Edge,
    /// A condition holds.
    Condition,
}

/// A text that ends a chat, leads along an edge of a graph, or that a condition looks for.
struct StopText<'c> {
    text: String,
    at: &'c Span,
    by: &'c [Name],
    /// The agent for which it ends the chat when others say it, if it is one.
    receiver: Option<&'c Name>,
    role: Role,
    /// Whether it must be the whole message.
    is_whole: bool,
    /// Whether it can be anywhere in the message.
    is_part: bool,
    ignores_case: bool,
}

/// The texts that end a chat, however they are joined.
fn stop_texts(stop: &Stop) -> Vec<StopText<'_>> {
    let says = stop.says.iter().filter(|says| says.text.ok).map(StopText::of_says);
    let matches = stop.matches.iter().filter(|matches| matches.pattern.ok).filter_map(StopText::of_matches);
    let within = stop.all.iter().chain(&stop.any).flat_map(stop_texts);
    says.chain(matches).chain(within).filter(|stop| !stop.text.is_empty()).collect()
}

/// The texts of edges, each of which only its source can say.
fn edge_texts(chat: &Chat) -> impl Iterator<Item = StopText<'_>> {
    let graph = if let Pattern::Graph(graph) = &chat.pattern { Some(graph) } else { None };
    let edges = graph.into_iter().flat_map(|graph| &graph.edges);
    edges.flat_map(|(from, edges)| {
        let texts = edges.iter().filter_map(|edge| edge.says.as_ref()).filter(|says| says.ok);
        texts.map(move |says| StopText {
            role: Role::Edge,
            ignores_case: true,
            ..StopText::new(says, std::slice::from_ref(&from.value))
        })
    })
}

impl<'c> StopText<'c> {
    fn new(text: &'c At<String>, by: &'c [Name]) -> Self {
        Self {
            text: one_line(text),
            at: &text.span,
            by,
            receiver: None,
            role: Role::Stop,
            is_whole: false,
            is_part: true,
            ignores_case: false,
        }
    }

    /// That of a condition; `None` if the text is not known.
    fn of_condition(sought: SoughtText<'_>, given: &Given<'c>) -> Option<Self> {
        let (text, is_whole, is_part, ignores_case) = match sought {
            SoughtText::Whole(text) => (one_line(text), true, false, false),
            SoughtText::AtEdge(text) => (one_line(text), false, false, false),
            SoughtText::Part(text) => (one_line(text), false, true, false),
            SoughtText::Pattern(pattern) => {
                let Expressed { text, is_whole, ignores_case } = Expressed::of(pattern)?;
                (text, is_whole, !is_whole, ignores_case)
            }
        };
        let (role, receiver) = (Role::Condition, None);
        let Given { at, by, .. } = *given;
        (!text.is_empty()).then_some(Self { text, at, by, receiver, role, is_whole, is_part, ignores_case })
    }

    fn of_says(says: &'c Says) -> Self {
        let Says { text, by, whole } = says;
        Self { is_whole: *whole, ..Self::new(text, by) }
    }

    /// That of an agent, but for the one of AutoGen, which is often there as a precaution.
    fn of_agent(agent: &'c Agent) -> Option<Self> {
        let text = match agent.terminate_on.as_ref()? {
            TerminateOn::Condition(TerminatingMessage::Says(says)) if says.text.ok => Self::of_says(says),
            TerminateOn::Condition(TerminatingMessage::Matches(matches)) if matches.pattern.ok => {
                Self::of_matches(matches)?
            }
            _ => return None,
        };
        (text.text != TERMINATE).then_some(Self { receiver: Some(&agent.name.value), ..text })
    }

    fn of_matches(Matches { pattern, by }: &'c Matches) -> Option<Self> {
        let Expressed { text, is_whole, ignores_case } = Expressed::of(pattern)?;
        Some(Self { text, is_whole, ignores_case, ..Self::new(pattern, by) })
    }

    /// Whether the chat ends otherwise, and this is the text by which every agent of AutoGen ends it, whether a prompt mentions it or not.
    fn is_precaution(&self, chat: &Chat) -> bool {
        let limit = chat.stop.as_ref().is_some_and(|stop| stop.max_turns.or(stop.max_messages).is_some());
        let is_it = (self.is_whole || self.role == Role::Condition) && self.text == TERMINATE;
        is_it && (limit || chat.max_turns.given().is_some())
    }

    /// Whether models do not say it unless they are asked to.
    fn is_marker(&self) -> bool {
        let are_capitals = |three: &[u8]| three.iter().all(u8::is_ascii_uppercase);
        // Conditions also look for tables, code and headings, which models write of their own accord.
        let signs: &[char] =
            if self.role == Role::Condition { &['_'] } else { &['_', '<', '[', '{', '#', '|'] };
        self.text.as_bytes().windows(3).any(are_capitals) || self.text.contains(signs)
    }

    /// Whether other words than markers are compared with the prompts of the speakers. What conditions look for within messages is often
    /// a word that is said without being asked for.
    fn is_compared(&self) -> bool {
        self.role != Role::Condition || !self.is_part && self.text.len() > 2
    }

    fn is_in(&self, prompt: &str) -> bool {
        match self.ignores_case {
            true => prompt.to_lowercase().contains(&self.text.to_lowercase()),
            false => prompt.contains(&self.text),
        }
    }

    /// Where a prompt has it in other letters, as words.
    fn in_other_letters<'p>(&self, prompt: &'p str) -> Option<&'p str> {
        let is_inside = |next: Option<char>| next.is_some_and(char::is_alphanumeric);
        prompt.char_indices().find_map(|(at, _)| {
            let (before, rest) = prompt.split_at_checked(at)?;
            let (found, after) = rest.split_at_checked(self.text.len())?;
            let is_word = !is_inside(before.chars().next_back()) && !is_inside(after.chars().next());
            (is_word && found.eq_ignore_ascii_case(&self.text)).then_some(found)
        })
    }
}

/// A regular expression that is a text between anchors.
struct Expressed {
    text: String,
    is_whole: bool,
    ignores_case: bool,
}

impl Expressed {
    fn of(pattern: &str) -> Option<Self> {
        let (flags, rest) = match pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')) {
            Some((flags, rest)) if flags.chars().all(|flag| matches!(flag, 'i' | 'm' | 's')) => (flags, rest),
            _ => ("", pattern),
        };
        let text = without(rest, &["^", r"\A", r"\b", r"\s*"], str::strip_prefix);
        let text = without(text, &["$", r"\z", r"\b", r"\s*"], str::strip_suffix);
        Some(Self {
            text: one_line(&literal(text)?),
            is_whole: rest.starts_with('^') && rest.ends_with('$'),
            ignores_case: flags.contains('i'),
        })
    }
}

/// A condition that ends a chat or selects the next speaker, with its place.
struct Given<'c> {
    text: &'c str,
    at: &'c Span,
    /// The speaker after whose turns it is evaluated; none if it can be any.
    by: &'c [Name],
}

/// The conditions of `stop`, and those by which speakers follow speakers. Others are evaluated on the task, too, which is not known.
fn conditions(chat: &Chat) -> Vec<Given<'_>> {
    let mut found = Vec::new();
    if let Some(stop) = &chat.stop {
        of_stop(stop, &mut found);
    }
    match &chat.pattern {
        Pattern::StateMachine(states) => found.extend(states.exits().filter_map(|(after, exit)| {
            let (by, text) = (std::slice::from_ref(after?), exit.when.as_deref()?);
            Some(Given { text, at: &exit.span, by })
        })),
        // When branches speak at the same time, the last message is not always that of the source.
        Pattern::Graph(graph) => {
            let when = graph.edges.values().flatten().filter_map(|edge| edge.when.as_ref());
            found.extend(when.map(|when| Given { text: when, at: &when.span, by: &[] }));
        }
        _ => {}
    }
    found
}

fn of_stop<'c>(stop: &'c Stop, found: &mut Vec<Given<'c>>) {
    found.extend(stop.when.as_ref().map(|when| Given { text: when, at: &when.span, by: &[] }));
    stop.all.iter().chain(&stop.any).for_each(|stop| of_stop(stop, found));
}

/// `text` without any of `parts` at one end.
fn without<'t>(
    text: &'t str,
    parts: &[&'static str],
    strip: impl Fn(&'t str, &'static str) -> Option<&'t str>,
) -> &'t str {
    let mut rest = text;
    while let Some(shorter) = parts.iter().find_map(|&part| strip(rest, part)) {
        rest = shorter;
    }
    rest
}

/// The only text that the regular expression `pattern` matches, if there is only one.
fn literal(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = pattern.chars();
    while let Some(next) = rest.next() {
        match next {
            '\\' => text.push(rest.next().filter(char::is_ascii_punctuation)?),
            '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' => return None,
            other => text.push(other),
        }
    }
    Some(text)
}

/// Warns of a stop text that no prompt mentions, if only models can say it.
fn check_text(
    stop: &StopText<'_>,
    chat: &Chat,
    outline: &Outline<'_>,
    prompts: &[String],
    report: &mut Report<'_>,
) {
    let Some(speakers) = speakers_of(stop, chat, outline) else { return };
    if prompts.iter().any(|prompt| stop.is_in(prompt)) {
        warn_of_other_speaker(stop, &speakers, outline, prompts, report);
    } else if let Some(unasked) = unasked(stop, &speakers, prompts) {
        warn_of_unasked(stop, unasked, report);
    }
}

/// Warns of texts that a condition looks for and no prompt mentions.
fn check_condition(
    given: &Given<'_>,
    chat: &Chat,
    outline: &Outline<'_>,
    prompts: &[String],
    report: &mut Report<'_>,
) {
    if !given.text.contains("last.text") {
        return;
    }
    // Mistakes are reported by the reader.
    let Ok(condition) = Condition::new(given.text) else { return };
    let found = condition.judge_texts(&mut |sought| {
        let text = StopText::of_condition(sought, given).filter(|text| !text.is_precaution(chat))?;
        let speakers = speakers_of(&text, chat, outline)?;
        let is_asked = prompts.iter().any(|prompt| text.is_in(prompt));
        let unasked = unasked(&text, &speakers, prompts).filter(|_| !is_asked)?;
        Some((text, unasked))
    });
    found.into_iter().for_each(|(text, unasked)| warn_of_unasked(&text, unasked, report));
}

/// The participants that can say a text; `None` if they are not all models.
fn speakers_of<'t>(
    stop: &StopText<'_>,
    chat: &Chat,
    outline: &Outline<'t>,
) -> Option<Vec<Option<Participant<'t>>>> {
    let by: HashSet<&Name> = stop.by.iter().collect();
    let is_speaker =
        |who: &&At<Name>| (by.is_empty() || by.contains(&who.value)) && stop.receiver != Some(&who.value);
    let speakers: Vec<Option<Participant<'t>>> =
        chat.everyone().filter(is_speaker).map(|who| outline.participant(who)).collect();
    let is_model =
        |agent: &Agent| agent.model().is_some() && !agent.asks_person() && !agent.replies_otherwise();
    let are_models = |speaker: &Option<Participant<'_>>| match speaker {
        Some(Participant::Agent(agent)) => is_model(agent),
        // Its result can be what any of its participants says.
        Some(Participant::Chat(_)) => outline.agents().all(is_model),
        Some(Participant::Team(_)) => false,
        None => true,
    };
    (!speakers.is_empty() && speakers.iter().all(are_models)).then_some(speakers)
}

/// A text that no prompt mentions.
enum Unasked {
    /// In no letters.
    Wholly,
    /// A prompt has it in these letters.
    InOtherLetters(String),
}

/// How no prompt mentions a text; `None` if it may be said nevertheless.
fn unasked(stop: &StopText<'_>, speakers: &[Option<Participant<'_>>], prompts: &[String]) -> Option<Unasked> {
    if stop.is_marker() {
        let other = prompts.iter().find_map(|prompt| stop.in_other_letters(prompt));
        return Some(other.map_or(Unasked::Wholly, |other| Unasked::InOtherLetters(other.to_owned())));
    }
    // Other words are said by chance, and are in any text: only the prompts of the speakers count.
    let agents = speakers.iter().filter_map(|speaker| speaker.and_then(Participant::agent)?.model());
    let mut systems = agents.filter(|_| stop.is_compared()).map(|keys| one_line(&keys.system.fill("")));
    let other = systems.find_map(|system| stop.in_other_letters(&system).map(str::to_owned));
    other.map(Unasked::InOtherLetters)
}

fn warn_of_unasked(stop: &StopText<'_>, unasked: Unasked, report: &mut Report<'_>) {
    let text = &stop.text;
    let what = match stop.role {
        Role::Stop => format!("the stop text `{text}`"),
        Role::Edge => format!("`{text}`, the text of this edge"),
        Role::Condition => format!("`{text}`, which this condition looks for"),
    };
    let (message, hint) = match unasked {
        Unasked::InOtherLetters(other) => (
            format!("no prompt mentions {what}, but one has `{other}`"),
            format!("upper and lower case differ: write `{text}` in the prompt, or `{other}` here"),
        ),
        Unasked::Wholly => (
            format!("no prompt mentions {what}"),
            format!("ask for it in a `system` message, such as `Reply {text} when the task is done.`"),
        ),
    };
    report.warning(codes::STOP_TEXT, stop.at, message, hint);
}

/// Warns of a stop text that only prompts of others than its `speakers` mention, if these prompts do not name a speaker.
fn warn_of_other_speaker(
    stop: &StopText<'_>,
    speakers: &[Option<Participant<'_>>],
    outline: &Outline<'_>,
    prompts: &[String],
    report: &mut Report<'_>,
) {
    let agents: Option<Vec<&Agent>> = speakers.iter().map(|speaker| (*speaker)?.agent()).collect();
    let is_clear = !stop.by.is_empty() && stop.role == Role::Stop && stop.is_marker();
    let Some(agents) = agents.filter(|agents| is_clear && !agents.is_empty()) else { return };
    let is_speaker = |name: &Name| agents.iter().any(|agent| *agent.name == *name);
    let others: Vec<(&Agent, String)> = outline
        .agents()
        .filter(|agent| !is_speaker(&agent.name))
        .filter_map(|agent| Some((agent, one_line(&agent.model()?.system.fill("{{task}}")))))
        .filter(|(_, system)| !agents.iter().any(|agent| system.contains(agent.name.as_str())))
        .collect();
    let mut asked = prompts.iter().filter(|prompt| stop.is_in(prompt)).map(|prompt| {
        let other = others.iter().find(|(_, system)| system == prompt);
        other.map(|(agent, _)| agent.name.as_str())
    });
    let first = asked.next().flatten();
    if let (Some(other), true) = (first, asked.all(|other| other.is_some())) {
        let who: Vec<String> = agents.iter().map(|agent| format!("`{}`", agent.name)).collect();
        let who = who.join(" or ");
        let message = format!(
            "only {who} can end the chat by `{}`, and the prompt of `{other}` asks for it",
            stop.text
        );
        let hint = format!("ask for it in the `system` message of {who}, or change `by`");
        report.warning(codes::STOP_TEXT, stop.at, message, hint);
    }
}
