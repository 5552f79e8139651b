//! Texts that end chats, or lead along edges of a graph: a prompt asks for each of them, in the same letters.

use std::collections::HashSet;

use polylogue_config::At;
use polylogue_core::Name;
use polylogue_core::text::one_line;

use crate::agent::Agent;
use crate::chat::Chat;
use crate::codes;
use crate::diagnostic::Report;
use crate::human_input::{TerminateOn, TerminatingMessage};
use crate::outline::{Outline, Participant};
use crate::pattern::Pattern;
use crate::source::Span;
use crate::stop::{Matches, Says, Stop};
use crate::team::Team;
use crate::yaml::{Data, Entry, Node};

/// Keys whose texts are not prompts.
const NO_PROMPTS: [&str; 5] = ["stop", "terminate_on", "edges", "name", "file"];
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
            if report.full() {
                return;
            }
            check_text(&text, chat, outline, &prompts, report);
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

/// A text that ends a chat, or leads along an edge of a graph.
struct StopText<'c> {
    text: String,
    at: &'c Span,
    by: &'c [Name],
    /// The agent for which it ends the chat when others say it, if it is one.
    receiver: Option<&'c Name>,
    is_of_edge: bool,
    /// Whether it must be the whole message.
    is_whole: bool,
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
            is_of_edge: true,
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
            is_of_edge: false,
            is_whole: false,
            ignores_case: false,
        }
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

    /// That of an expression that is a text between anchors.
    fn of_matches(Matches { pattern, by }: &'c Matches) -> Option<Self> {
        let (flags, rest) = match pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')) {
            Some((flags, rest)) if flags.chars().all(|flag| matches!(flag, 'i' | 'm' | 's')) => (flags, rest),
            _ => ("", pattern.as_str()),
        };
        let text = without(rest, &["^", r"\A", r"\b", r"\s*"], str::strip_prefix);
        let text = without(text, &["$", r"\z", r"\b", r"\s*"], str::strip_suffix);
        Some(Self {
            text: one_line(&literal(text)?),
            is_whole: rest.starts_with('^') && rest.ends_with('$'),
            ignores_case: flags.contains('i'),
            ..Self::new(pattern, by)
        })
    }

    /// Whether the chat ends otherwise, and this is the text by which every agent of AutoGen ends it, whether a prompt mentions it or not.
    fn is_precaution(&self, chat: &Chat) -> bool {
        let limit = chat.stop.as_ref().is_some_and(|stop| stop.max_turns.or(stop.max_messages).is_some());
        self.is_whole && self.text == TERMINATE && (limit || chat.max_turns.given().is_some())
    }

    /// Whether models do not say it unless they are asked to.
    fn is_marker(&self) -> bool {
        let are_capitals = |three: &[u8]| three.iter().all(u8::is_ascii_uppercase);
        self.text.as_bytes().windows(3).any(are_capitals)
            || self.text.contains(['_', '<', '[', '{', '#', '|'])
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
    let by: HashSet<&Name> = stop.by.iter().collect();
    let is_speaker =
        |who: &&At<Name>| (by.is_empty() || by.contains(&who.value)) && stop.receiver != Some(&who.value);
    let speakers: Vec<Option<Participant<'_>>> =
        chat.everyone().filter(is_speaker).map(|who| outline.participant(who)).collect();
    let is_model = |speaker: &Option<Participant<'_>>| match speaker {
        Some(Participant::Agent(agent)) => {
            agent.model().is_some() && !agent.asks_person() && !agent.replies_otherwise()
        }
        Some(Participant::Chat(_)) | None => true,
        Some(Participant::Team(_)) => false,
    };
    if speakers.is_empty() || !speakers.iter().all(is_model) {
        return;
    }
    if prompts.iter().any(|prompt| stop.is_in(prompt)) {
        warn_of_other_speaker(stop, &speakers, outline, prompts, report);
        return;
    }
    let text = &stop.text;
    let other = match stop.is_marker() {
        true => prompts.iter().find_map(|prompt| stop.in_other_letters(prompt)).map(str::to_owned),
        // Other words are said by chance, and are in any text: only the prompts of the speakers count.
        false => {
            let agents = speakers.iter().filter_map(|speaker| speaker.and_then(Participant::agent)?.model());
            let mut systems = agents.map(|keys| one_line(&keys.system.fill("")));
            let found = systems.find_map(|system| stop.in_other_letters(&system).map(str::to_owned));
            if found.is_none() {
                return;
            }
            found
        }
    };
    let what = match stop.is_of_edge {
        true => format!("`{text}`, the text of this edge"),
        false => format!("the stop text `{text}`"),
    };
    let (message, hint) = match other {
        Some(other) => (
            format!("no prompt mentions {what}, but one has `{other}`"),
            format!("upper and lower case differ: write `{text}` in the prompt, or `{other}` here"),
        ),
        None => (
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
    let is_clear = !stop.by.is_empty() && !stop.is_of_edge && stop.is_marker();
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
