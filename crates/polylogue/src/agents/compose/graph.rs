//! A graph of agents without loops.

use polylogue_core::{Act, Agent, AgentCall, Error, Layer, Message, Name, Result, Turn};

use super::{joined, labelled, named};

/// Agents as the nodes of a graph without loops. Each node is called once, when all its predecessors have replied, with
/// their replies in the order of the edges. Nodes that are ready together run at the same time. Nodes without
/// predecessors receive the input of the graph; the replies of nodes without successors are its output, in their order.
#[derive(Debug, Clone)]
pub struct Graph {
    name: Name,
    nodes: Vec<Layer>,
    /// The predecessors of each node.
    before: Vec<Vec<usize>>,
}

/// A graph under construction.
#[derive(Debug, Clone)]
pub struct GraphBuilder {
    name: String,
    nodes: Vec<Layer>,
    edges: Vec<(String, String)>,
}

impl Graph {
    /// Starts a graph.
    #[must_use]
    pub fn named(name: &str) -> GraphBuilder {
        GraphBuilder { name: name.to_owned(), nodes: Vec::new(), edges: Vec::new() }
    }

    /// The reply of each node.
    async fn walk(&self, turn: &mut Turn<'_>) -> Result<Vec<Message>> {
        let first = turn.message();
        let mut said: Vec<Option<Message>> = vec![None; self.nodes.len()];
        while said.iter().any(Option::is_none) {
            let due = self.due(&said);
            let asks: Vec<_> = due.iter().filter_map(|&node| self.asking(node, &first, &said)).collect();
            // A checked graph has no loops.
            if asks.is_empty() {
                return Err(Error::Bug(format!("the graph `{}` stands still", self.name)));
            }
            for (node, reply) in due.into_iter().zip(turn.ask_all(asks).await) {
                if let Some(slot) = said.get_mut(node) {
                    *slot = Some(reply?);
                }
            }
        }
        Ok(said.into_iter().flatten().collect())
    }

    /// The nodes without a reply whose predecessors have all replied.
    fn due(&self, said: &[Option<Message>]) -> Vec<usize> {
        let has = |node: &usize| said.get(*node).is_some_and(Option::is_some);
        let due =
            |(node, before): (usize, &Vec<usize>)| (!has(&node) && before.iter().all(has)).then_some(node);
        self.before.iter().enumerate().filter_map(due).collect()
    }

    fn asking(&self, node: usize, first: &Message, said: &[Option<Message>]) -> Option<AgentCall> {
        let (layer, before) = (self.nodes.get(node)?, self.before.get(node)?);
        let heard: Vec<Message> = before.iter().filter_map(|&node| said.get(node)?.clone()).collect();
        let message = match &*heard {
            [] => first.clone(),
            [one] => one.clone(),
            _ => joined(&self.name, heard),
        };
        Some(AgentCall::labelled(std::sync::Arc::clone(&layer.label), &layer.agent, message))
    }
}

impl Agent for Graph {
    fn name(&self) -> &Name {
        &self.name
    }

    fn layers(&self) -> Vec<Layer> {
        self.nodes.clone()
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let said = self.walk(turn).await?;
        let leads = |node: usize| self.before.iter().any(|before| before.contains(&node));
        let last = said.into_iter().enumerate().filter(|(node, _)| !leads(*node)).map(|(_, said)| said);
        Ok(Act::Say(joined(&self.name, last.collect()).parts))
    }
}

impl GraphBuilder {
    /// Adds a node.
    #[must_use]
    pub fn node(mut self, agent: impl Agent) -> Self {
        self.nodes.push(named(agent));
        self
    }

    /// Adds a node with a label.
    #[must_use]
    pub fn node_as(mut self, label: &str, agent: impl Agent) -> Self {
        self.nodes.push(labelled(label, agent));
        self
    }

    /// Adds an edge from one node to another, by their labels.
    #[must_use]
    pub fn edge(mut self, from: &str, to: &str) -> Self {
        self.edges.push((from.to_owned(), to.to_owned()));
        self
    }

    /// Checks and returns the graph.
    ///
    /// # Errors
    /// When the name is illegal, there is no node, two nodes have the same label, an edge names an unknown node or is
    /// listed twice, or there is a loop.
    pub fn build(self) -> Result<Graph> {
        let name = Name::new(&self.name)?;
        let wrong = |what: String| Error::Config(format!("the graph `{name}` {what}"));
        if self.nodes.is_empty() {
            return Err(wrong("has no nodes".into()));
        }
        let find = |label: &str| self.nodes.iter().position(|node| *node.label == *label);
        if let Some(twice) = self.nodes.iter().enumerate().find(|(at, node)| find(&node.label) != Some(*at)) {
            return Err(wrong(format!("has two nodes `{}`", twice.1.label)));
        }
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (from, to) in &self.edges {
            let stranger = |label: &str| wrong(format!("has no node `{label}`"));
            let at = find(from).ok_or_else(|| stranger(from))?;
            let slot = find(to).and_then(|to| before.get_mut(to)).ok_or_else(|| stranger(to))?;
            if slot.contains(&at) {
                return Err(wrong(format!("leads from `{from}` to `{to}` twice")));
            }
            slot.push(at);
        }
        if let Some(node) = looping(&before).and_then(|node| self.nodes.get(node)) {
            return Err(wrong(format!("has a loop that `{}` is in, or waits for", node.label)));
        }
        Ok(Graph { name, nodes: self.nodes, before })
    }
}

/// A node in or behind a loop.
fn looping(before: &[Vec<usize>]) -> Option<usize> {
    let mut done = vec![false; before.len()];
    for _ in before {
        for (node, before) in before.iter().enumerate() {
            if before.iter().all(|other| done.get(*other).copied().unwrap_or(false))
                && let Some(slot) = done.get_mut(node)
            {
                *slot = true;
            }
        }
    }
    done.iter().position(|done| !done)
}
