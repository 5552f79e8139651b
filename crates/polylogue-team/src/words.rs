//! Descriptions of patterns, for `polylogue check`.

use polylogue::tasks::EndMode;
use polylogue_config::At;
use polylogue_core::Name;

use crate::chat::Chat;
use crate::pattern::{
    Debate, END, Exit, Group, Handoffs, Pattern, RolePlay, STAY, SelectSpeaker, StateMachine,
};
use crate::task::GroupSolve;
use crate::team::Team;

impl Team {
    /// Name and description of every chat of the team, the outermost first: its participants and its pattern.
    ///
    /// ```
    /// use polylogue_team::{Overrides, parse};
    /// let text = "{name: t, agents: [{name: Ann}, {name: Bob}], chat: {participants: [Ann, Bob], stop: {max_turns: 4}}}";
    /// let team = parse(text, "t.yaml", &Overrides::default())?.team;
    /// let (chat, words) = &team.chats_in_words()[0];
    /// assert_eq!((chat.as_str(), words.as_str()), ("t", "Ann and Bob, in turn"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn chats_in_words(&self) -> Vec<(Name, String)> {
        let inner = self.chats.iter().map(|inner| (&*inner.name, &inner.chat));
        let chats = std::iter::once((&self.name, &self.chat)).chain(inner);
        chats.map(|(name, chat)| (name.clone(), chat.in_words())).collect()
    }
}

impl Chat {
    fn in_words(&self) -> String {
        let who = listed(self.participants.iter().map(|name| name.as_str()));
        let joins = match listed(self.late_joiners.iter().map(|join| join.who.as_str())) {
            names if names.is_empty() => names,
            names => format!("; {names} may join later"),
        };
        format!("{who}, {}{joins}", self.pattern.in_words(&self.participants))
    }
}

impl Pattern {
    fn in_words(&self, participants: &[At<Name>]) -> String {
        let first = |start: &Option<Name>| {
            start
                .as_ref()
                .or(participants.first().map(|name| &**name))
                .map(Name::to_string)
                .unwrap_or_default()
        };
        match self {
            Self::RoundRobin => "in turn".to_owned(),
            Self::Sequential => "each once, in their order".to_owned(),
            Self::Parallel => "each once, at the same time".to_owned(),
            Self::Group(group) => group.in_words(),
            Self::StateMachine(states) => states.in_words(&first(&None)),
            Self::Dag(_) => "each when its dependencies are finished".to_owned(),
            Self::Handoffs(given) => {
                let Handoffs { start, then } = &given.value;
                let then = match then.as_str() {
                    STAY => "the speaker stays".to_owned(),
                    END => "it ends".to_owned(),
                    name => format!("{name} is next"),
                };
                format!("handoffs, starting with {}; without a handoff {then}", first(start))
            }
            Self::Debate(Debate { options, rounds, .. }) => {
                let rounds = format!("{rounds} {}", if *rounds == 1 { "round" } else { "rounds" });
                format!(
                    "{rounds} of arguments, then a vote on {}",
                    listed(options.iter().map(|option| option.as_str()))
                )
            }
            Self::Orchestrator(given) => format!("as {} plans", given.planner),
            Self::Graph(graph) if graph.start.is_empty() => "along a graph".to_owned(),
            Self::Graph(graph) => {
                format!("along a graph from {} on", listed(graph.start.iter().map(Name::as_str)))
            }
            Self::RolePlay(role_play) => role_play.in_words(),
            Self::GroupSolve(solve) => solve.in_words(),
            Self::Tasks(tasks) => {
                let count = tasks.len();
                format!("{count} {} alone, one after the other", if count == 1 { "task" } else { "tasks" })
            }
        }
    }
}

impl Group {
    fn in_words(&self) -> String {
        let by = match &self.select {
            SelectSpeaker::RoundRobin => "in turn".to_owned(),
            SelectSpeaker::Random(_) => "selected at random".to_owned(),
            SelectSpeaker::Model(_) => "selected by a model".to_owned(),
            SelectSpeaker::Human(person) => format!("selected by {person}"),
        };
        let transitions = if self.transitions.is_some() { ", within what the transitions allow" } else { "" };
        format!("{by}{transitions}")
    }
}

impl StateMachine {
    fn in_words(&self, first: &str) -> String {
        match self.start.as_ref().map_or(&[][..], |start| &start.0) {
            [] => format!("state machine, starting with {first}"),
            [At { value: Exit { when: None, then }, .. }] => format!("state machine, starting with {then}"),
            exits => {
                let names: Vec<&str> = exits.iter().map(|exit| exit.then.as_str()).collect();
                format!("state machine, starting with {} by conditions", names.join(" or "))
            }
        }
    }
}

impl RolePlay {
    fn in_words(&self) -> String {
        let besides = [
            self.specifier.as_ref().map(|specifier| format!("{} makes the task definite", specifier.who)),
            self.planner.as_ref().map(|planner| format!("{planner} divides it")),
            self.critic.as_ref().map(|critic| format!("{} chooses among proposals", critic.who)),
        ];
        let besides: String = besides.into_iter().flatten().map(|besides| format!("; {besides}")).collect();
        format!("{} instructs{besides}", self.user.who)
    }
}

impl GroupSolve {
    fn in_words(&self) -> String {
        let until = match *self.end {
            EndMode::MaxIterations => "",
            EndMode::FirstCompletion => ", or until the first is complete",
            EndMode::OneLastChat => ", or until the first is complete and one more has spoken",
            EndMode::OneLastGroupChat => {
                ", or until the first is complete and every participant has spoken once more"
            }
            EndMode::AllComplete => ", or until all are complete",
        };
        let limit = self.max_iterations;
        let iterations = if limit == 1 { "iteration" } else { "iterations" };
        format!("each with a task, talking for {limit} {iterations}{until}")
    }
}

/// `A, B and C`; only the first of many names.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    let names: Vec<&str> = names.collect();
    match (names.get(..SHOWN), names.split_last()) {
        (Some(shown), _) if names.len() > SHOWN + 1 => {
            format!("{} and {} others", shown.join(", "), names.len() - SHOWN)
        }
        (_, Some((last, []))) => (*last).to_owned(),
        (_, Some((last, others))) => format!("{} and {last}", others.join(", ")),
        (_, None) => String::new(),
    }
}
