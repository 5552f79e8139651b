//! How often each participant of a graph speaks at most.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::Name;
use polylogue::policies::graph::Join;

use super::amount::NO_LIMIT;
use crate::pattern::{Edge, Graph};

pub(super) fn sum_of(visits: &BTreeMap<&Name, u128>) -> u128 {
    visits.values().copied().fold(0, u128::saturating_add)
}

/// The most turns of a graph, if its edges limit them.
pub(super) fn most_visits(graph: &Graph, names: &[&Name]) -> Option<u128> {
    Some(sum_of(&visits(graph, names))).filter(|most| *most != NO_LIMIT)
}

/// How many edges a graph can have for its alternatives to be told apart. Each is walked around by itself, which takes long; without them, the
/// bound of a larger graph is higher.
const MOST_COMPARED: usize = 100;

/// The edges of a graph by the participants that they lead to: they are walked along many times.
struct Edges<'g> {
    graph: &'g Graph,
    /// Each with its source.
    by_target: BTreeMap<&'g Name, Vec<(&'g Name, &'g Edge)>>,
}

impl<'g> Edges<'g> {
    fn of(graph: &'g Graph) -> Self {
        let mut by_target: BTreeMap<&Name, Vec<(&Name, &Edge)>> = BTreeMap::new();
        for (from, out) in &graph.edges {
            for edge in out {
                by_target.entry(&edge.to).or_default().push((&from.value, edge));
            }
        }
        Self { graph, by_target }
    }

    fn count(&self) -> usize {
        self.graph.edges.values().map(Vec::len).sum()
    }

    fn leading_to(&self, who: &Name) -> &[(&'g Name, &'g Edge)] {
        self.by_target.get(who).map_or(&[][..], Vec::as_slice)
    }

    fn is_start(&self, who: &Name) -> bool {
        match self.graph.start.as_slice() {
            [] => self.leading_to(who).is_empty(),
            start => start.contains(who),
        }
    }
}

/// The most turns of each of `names` in a graph, without a limit where its edges set none: an edge with a limit leads to its target at most as
/// often, one that is an alternative to ways back in the turns that these leave, and any other one as often as its source speaks.
pub(super) fn visits<'c>(graph: &Graph, names: &[&'c Name]) -> BTreeMap<&'c Name, u128> {
    let edges = Edges::of(graph);
    let waves = waves(&edges, names);
    let alternatives = alternatives(&edges, names, &waves);
    let begins = |who: &Name| u128::from(edges.is_start(who));
    let leads = |(from, edge): (&Name, &Edge), times: u128| {
        let least = alternatives.get(&(from, &edge.to)).copied().unwrap_or(NO_LIMIT).min(uses(edge));
        if least == NO_LIMIT { times } else { least }
    };
    spread(&edges, (names, &waves), begins, leads)
}

fn uses(edge: &Edge) -> u128 {
    edge.max_uses.map_or(NO_LIMIT, u128::from)
}

/// The turns of each of `names`, which has as many by itself as it `begins`, and as many for each edge as that `leads` to, given those of its
/// source; none of which has more than the participant from which its `waves` come. No limit where turns lead to further ones in a circle.
fn spread<'c>(
    edges: &Edges<'_>,
    (names, waves): (&[&'c Name], &BTreeMap<&Name, &Name>),
    begins: impl Fn(&Name) -> u128,
    leads: impl Fn((&Name, &Edge), u128) -> u128,
) -> BTreeMap<&'c Name, u128> {
    let begun: BTreeMap<&'c Name, u128> = names.iter().map(|who| (*who, begins(who))).collect();
    let mut visits: BTreeMap<&'c Name, u128> = names.iter().map(|who| (*who, 0)).collect();
    let mut endless: BTreeSet<&'c Name> = BTreeSet::new();
    // Each round is one step further along the edges. What still changes after as many rounds as there are names is in a circle, or behind one,
    // and changes at least once in twice as many.
    for round in 0..=3 * names.len() {
        let of = |who: &Name| visits.get(who).copied().unwrap_or_default();
        let led = |who: &Name| {
            let first = begun.get(who).copied().unwrap_or_default();
            let into = edges.leading_to(who).iter();
            into.map(|&(from, edge)| leads((from, edge), of(from))).fold(first, u128::saturating_add)
        };
        let next = |who: &Name| waves.get(who).map_or_else(|| led(who), |from| of(from));
        let after: BTreeMap<&'c Name, u128> = names.iter().map(|who| (*who, next(who))).collect();
        if after == visits {
            break;
        }
        if round > names.len() {
            endless.extend(names.iter().copied().filter(|who| after.get(who) != visits.get(who)));
        }
        visits = after;
    }
    visits.extend(endless.into_iter().map(|who| (who, NO_LIMIT)));
    visits
}

/// How often the edges lead on, by both ends, that are the alternative to those by which their source speaks again. After each turn, either
/// edges with conditions are taken or those for `otherwise`: so where only the ones lead back to their source, the others are taken in the turns
/// that are left.
fn alternatives<'g>(
    edges: &Edges<'g>,
    names: &[&Name],
    waves: &BTreeMap<&Name, &Name>,
) -> BTreeMap<(&'g Name, &'g Name), u128> {
    let mut most = BTreeMap::new();
    if edges.count() > MOST_COMPARED {
        return most;
    }
    for (source, out) in &edges.graph.edges {
        let source = &source.value;
        if out.iter().all(|edge| !*edge.otherwise) {
            continue;
        }
        // The turns of the source, of which none leads to another one.
        let turns = |begins: &dyn Fn(&Name) -> u128| {
            let leads = |(from, edge): (&Name, &Edge), times: u128| {
                if from == source || edge.max_uses.is_some() { 0 } else { times }
            };
            spread(edges, (names, waves), begins, leads).get(source).copied().unwrap_or_default()
        };
        let first = turns(&|who| {
            let limited = edges.leading_to(who).iter().filter(|(from, _)| *from != source);
            let limited = limited.filter_map(|(_, edge)| edge.max_uses.map(u128::from));
            limited.fold(edges.is_start(who).into(), u128::saturating_add)
        });
        let again: Vec<(&Edge, u128)> = out
            .iter()
            .map(|edge| (edge, turns(&|who| (edge.to == *who).into())))
            .filter(|(_, times)| *times > 0)
            .collect();
        // Several of them can be taken after the same turn, which counts once.
        let mut times: Vec<u128> = again.iter().map(|(edge, _)| uses(edge)).collect();
        times.sort_unstable();
        times.pop();
        let rest = times.into_iter().fold(first, u128::saturating_add);
        if again.is_empty() || rest == NO_LIMIT || again.iter().any(|(_, times)| *times > 1) {
            continue;
        }
        let is_other = |edge: &&Edge| again.iter().all(|(again, _)| *again.otherwise != *edge.otherwise);
        most.extend(out.iter().filter(is_other).map(|edge| ((source, &edge.to), rest)));
    }
    most
}

/// The participants from which others have their turns, by these.
fn waves<'g>(edges: &Edges<'g>, names: &[&'g Name]) -> BTreeMap<&'g Name, &'g Name> {
    let waves = names.iter().filter_map(|who| Some((*who, wave(edges, who)?)));
    waves.filter(|(who, _)| !edges.is_start(who)).collect()
}

/// The participant from which all ways lead to `who`, if these meet nowhere else, and `who` waits for all of them: it speaks no more often.
fn wave<'g>(edges: &Edges<'g>, who: &Name) -> Option<&'g Name> {
    let graph = edges.graph;
    let is_free = |edge: &Edge| {
        edge.says.is_none() && edge.when.is_none() && !*edge.otherwise && edge.max_uses.is_none()
    };
    if graph.join.get(who) == Some(&Join::Any) {
        return None;
    }
    // Along each way back, up to the first participant that several edges lead to, or none.
    let origin = |mut from: &'g Name| {
        for _ in 0..graph.edges.len() {
            match edges.leading_to(from) {
                [(before, edge)] if is_free(edge) && !graph.start.contains(from) => from = *before,
                _ => break,
            }
        }
        from
    };
    let sources = edges.leading_to(who);
    let mut origins = sources.iter().map(|(from, _)| origin(from));
    let first = origins.next()?;
    let is_one = sources.len() > 1 && sources.iter().all(|(_, edge)| is_free(edge));
    (is_one && first != who && origins.all(|other| other == first)).then_some(first)
}
