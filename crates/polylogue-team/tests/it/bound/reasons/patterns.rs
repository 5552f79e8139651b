//! Reasons of patterns by which speakers follow each other.

use polylogue::policies::group::Repeat;
use polylogue_core::Name;
use polylogue_team::{Edge, Graph, NextStates, Pattern, StateMachine, Transitions};

use super::talk::{Past, is_done};
use super::{Case, Check, ensure};

impl<'a> Case<'a> {
    fn pattern(&self) -> Option<&'a Pattern> {
        self.spec.map(|chat| &chat.pattern)
    }

    /// The only participant had its turn.
    pub(super) fn replied(&self, who: &Name) -> Check {
        ensure(!matches!(self.pattern(), Some(Pattern::Dag(_))), "it is a DAG")?;
        ensure(self.talk.participants() == [who], "there are other participants")?;
        self.one_turn_each()
    }

    pub(super) fn all_spoken(&self) -> Check {
        let talk = &self.talk;
        ensure(!matches!(self.pattern(), Some(Pattern::Dag(_))), "it is a DAG")?;
        ensure(talk.participants().len() > 1 || !talk.left.is_empty(), "there is only one participant")?;
        self.one_turn_each()
    }

    /// Everyone had one turn, besides those for results of background tasks; those who left need none.
    fn one_turn_each(&self) -> Check {
        let talk = &self.talk;
        if let Some(pattern) = self.pattern() {
            let is_once = matches!(pattern, Pattern::Sequential | Pattern::Parallel | Pattern::Dag(_));
            ensure(is_once, "participants have more turns in this pattern")?;
        }
        for who in talk.participants() {
            let turns = talk.public().filter(|turn| turn.who == who && !turn.is_for_result()).count();
            let has_left = talk.left.iter().any(|(gone, _)| *gone == who);
            ensure(turns == 1 || turns == 0 && has_left, format!("`{who}` had {turns} turns"))?;
        }
        Ok(())
    }

    /// Everyone had one turn, after those on whom it depends.
    pub(super) fn dag_complete(&self) -> Check {
        let Some(Pattern::Dag(dependencies)) = self.pattern() else { return Err("it has no DAG".into()) };
        self.one_turn_each()?;
        let turn_of = |who: &Name| self.talk.public().find(|turn| turn.who == who && !turn.is_for_result());
        for (who, others) in dependencies {
            for other in others {
                let in_order = match (turn_of(other), turn_of(who)) {
                    (Some(before), Some(after)) => before.end.seq < after.begin,
                    _ => true,
                };
                ensure(in_order, format!("`{}` did not wait for `{}`", who.value, other.value))?;
            }
        }
        Ok(())
    }

    /// The last speaker called no tool that hands over.
    pub(super) fn no_handoff(&self, who: &Name) -> Check {
        let Some(Pattern::Handoffs(keys)) = self.pattern() else { return Err("it has no handoffs".into()) };
        ensure(keys.then.as_str() == "end", "the chat continues then")?;
        let last = self.talk.public().last();
        ensure(last.is_some_and(|turn| turn.who == who && !hands_over(turn)), "the last turn is another one")
    }

    /// A chat in which a participant has to reply ended after one that did not.
    pub(super) fn no_reply(&self, who: &Name) -> Check {
        let last = self.talk.public().last();
        ensure(last.is_some_and(|turn| turn.who == who && turn.is_silent()), "it said something")?;
        match self.pattern() {
            Some(Pattern::Handoffs(keys)) => ensure(keys.then.as_str() == "stay", "another one is next"),
            _ => self.replied(who),
        }
    }

    /// The first transition of the last speaker that holds leads to the end.
    pub(super) fn end_state(&self, after: Option<&Name>) -> Check {
        ensure(
            self.talk.last_speaker() == after,
            format!("the last speaker is {:?}", self.talk.last_speaker()),
        )?;
        let next = self.next_state(self.machine()?, after)?;
        ensure(next.is_some_and(|next| next.as_str() == "end"), format!("{next:?} is next"))
    }

    fn machine(&self) -> Result<&'a StateMachine, String> {
        match self.pattern() {
            Some(Pattern::StateMachine(machine)) => Ok(machine),
            _ => Err("it has no states".into()),
        }
    }

    fn next_state(
        &self,
        machine: &'a StateMachine,
        after: Option<&Name>,
    ) -> Result<Option<&'a Name>, String> {
        let exits = match after {
            Some(after) => machine.after.iter().find(|(name, _)| name.value == *after).map(|(_, next)| next),
            None => machine.start.as_ref(),
        };
        match exits {
            None => Ok(None),
            Some(NextStates::To(name)) => Ok(Some(name)),
            Some(NextStates::First(exits)) => {
                for exit in exits {
                    if exit.when.as_ref().map_or(Ok(true), |when| self.holds(when))? {
                        return Ok(Some(&exit.then));
                    }
                }
                Ok(None)
            }
        }
    }

    /// No one may speak after the last speaker, or, in a graph, after one whose edges do not fire.
    pub(super) fn no_speaker(&self, after: Option<&Name>) -> Check {
        let is_present = |name: &Name| {
            let here = self.talk.participants().into_iter().any(|who| who == name);
            here && !self.talk.left.iter().any(|(gone, _)| *gone == name)
        };
        if let Some(Pattern::Graph(graph)) = self.pattern() {
            let Some(after) = after else { return Err("a graph begins".into()) };
            return self.is_stuck(graph, after);
        }
        ensure(
            self.talk.last_speaker() == after,
            format!("the last speaker is {:?}", self.talk.last_speaker()),
        )?;
        match self.pattern() {
            Some(Pattern::StateMachine(machine)) => {
                let next = self.next_state(machine, after)?;
                let is_gone = |next: &Name| next.as_str() != "end" && !is_present(next);
                ensure(next.is_none_or(is_gone), format!("{next:?} is next"))
            }
            Some(Pattern::Group(group)) => {
                let may_follow = |next: &Name| match (&group.transitions, &group.allow_repeat_speaker, after)
                {
                    (_, _, None) => true,
                    (Some(rules), _, Some(after)) => follows(rules, after, next),
                    (None, Some(repeat), Some(after)) => after != next || may_repeat(repeat, next),
                    (None, None, _) => true,
                };
                let mut here = self.talk.participants().into_iter().filter(|who| is_present(who));
                let next = here.find(|next| may_follow(next));
                ensure(next.is_none(), format!("{next:?} may speak"))
            }
            Some(Pattern::Handoffs(_)) => {
                // One that has not joined, and cannot be seen in the log.
                Ok(())
            }
            _ => Err("in this pattern there is always a speaker".into()),
        }
    }

    /// No edge of a participant that had its last turn is open.
    pub(super) fn graph_complete(&self) -> Check {
        let Some(Pattern::Graph(graph)) = self.pattern() else { return Err("it has no graph".into()) };
        ensure(self.talk.public().next().is_some(), "no one spoke")?;
        for turn in self.last_turns() {
            let Some(edges) = edges_of(graph, turn.who) else { continue };
            let open = self.open_edges(edges, turn);
            // An edge without a limit on its uses is followed by a turn.
            let mut unfollowed = open.iter().filter(|edge| edge.max_uses.is_none());
            if let Some(edge) = unfollowed.find(|edge| !self.spoke_after(&edge.to, turn)) {
                return Err(format!("`{}` did not speak after `{}`", edge.to, turn.who));
            }
            let has_left = self.talk.left.iter().any(|(gone, _)| *gone == turn.who);
            let is_used_up = edges.iter().any(|edge| edge.max_uses.is_some());
            ensure(!open.is_empty() || has_left || is_used_up, format!("it is stuck after `{}`", turn.who))?;
        }
        Ok(())
    }

    fn is_stuck(&self, graph: &Graph, after: &Name) -> Check {
        let Some(edges) = edges_of(graph, after) else { return Err(format!("nothing follows `{after}`")) };
        let Some(turn) = self.last_turns().into_iter().find(|turn| turn.who == after) else {
            return Err(format!("`{after}` did not speak"));
        };
        // One that waits for all of those before it waits for those who did not speak.
        let waits = |edge: &Edge| graph.join.iter().any(|(name, _)| name.value == edge.to);
        let open = self.open_edges(edges, turn);
        match open.iter().find(|edge| edge.max_uses.is_none() && !waits(edge)) {
            Some(edge) => Err(format!("`{}` may speak after it", edge.to)),
            None => Ok(()),
        }
    }

    /// The edges that fire after a turn: those whose condition holds, or else the others.
    fn open_edges<'g>(&self, edges: &'g [Edge], turn: &Past<'_>) -> Vec<&'g Edge> {
        let open: Vec<&Edge> = edges.iter().filter(|edge| self.fires(edge, turn)).collect();
        if open.is_empty() { edges.iter().filter(|edge| edge.otherwise.value).collect() } else { open }
    }

    /// The last turn of each participant that is no result of a background task.
    fn last_turns(&self) -> Vec<&Past<'a>> {
        let public: Vec<&Past<'_>> = self.talk.public().collect();
        let is_last = |(index, turn): &(usize, &&Past<'_>)| {
            !public[index + 1..].iter().any(|later| later.who == turn.who)
        };
        public.iter().enumerate().filter(is_last).map(|(_, turn)| *turn).collect()
    }

    fn fires(&self, edge: &Edge, turn: &Past<'_>) -> bool {
        match (&edge.says, &edge.when) {
            (Some(says), _) => turn.text().contains(says.as_str()),
            // Conditions on the state at that time are in no graph of the sweep.
            (None, Some(_)) => false,
            (None, None) => !edge.otherwise.value,
        }
    }

    fn spoke_after(&self, who: &Name, turn: &Past<'_>) -> bool {
        let left = self.talk.left.iter().any(|(gone, _)| *gone == who);
        left || self.talk.public().any(|other| other.who == who && other.begin > turn.begin)
    }

    pub(super) fn no_participants(&self, last: Option<&(Name, String)>) -> Check {
        let talk = &self.talk;
        let gone = talk.left.last().map(|(who, why)| ((*who).clone(), (*why).to_owned()));
        ensure(gone.as_ref() == last, format!("{gone:?} left last"))?;
        let leads = |who: &Name| match self.pattern() {
            Some(Pattern::Orchestrator(keys)) => {
                keys.planner.value == *who
                    || keys.progress_agent.as_ref().is_some_and(|own| own.value == *who)
            }
            _ => false,
        };
        let mut here = talk.participants().into_iter().filter(|who| !leads(who));
        let present = here.find(|who| !talk.left.iter().any(|(gone, _)| gone == who));
        ensure(present.is_none(), format!("{present:?} is present"))
    }
}

fn edges_of<'g>(graph: &'g Graph, from: &Name) -> Option<&'g Vec<Edge>> {
    graph.edges.iter().find(|(name, _)| name.value == *from).map(|(_, edges)| edges)
}

/// Whether the first handoff of the turn succeeded.
fn hands_over(turn: &Past<'_>) -> bool {
    turn.calls()
        .into_iter()
        .any(|(_, call, outcome)| call.tool.starts_with("transfer_to_") && is_done(outcome))
}

fn follows(rules: &Transitions, after: &Name, next: &Name) -> bool {
    let (Transitions::Allowed(rows) | Transitions::Disallowed(rows)) = rules;
    let row = rows.iter().find(|(name, _)| name.value == *after).map(|(_, names)| names);
    let is_listed = row.is_some_and(|names| names.iter().any(|name| name.value == *next));
    is_listed == matches!(rules, Transitions::Allowed(_))
}

fn may_repeat(repeat: &Repeat, who: &Name) -> bool {
    match repeat {
        Repeat::Yes => true,
        Repeat::No => false,
        Repeat::Only(names) => names.contains(who),
        #[expect(unreachable_patterns, reason = "it can have more variants")]
        _ => true,
    }
}
