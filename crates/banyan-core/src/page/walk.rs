//! All entries of a session, in an order that suits who tells them.

use std::collections::VecDeque;

use crate::state::{NodeIx, SessionState};

/// In which order entries are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkOrder {
    /// As they were taken: each after the one that it follows, branches mixed.
    Taken,
    /// Along the active path; other branches where they leave it, and theirs where they leave them.
    Nested,
    /// The active path first, then the other branches one by one.
    PathFirst,
}

/// One step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An entry.
    Entry(NodeIx),
    /// Another branch begins. It has so many entries, with what leaves it when branches are nested.
    BranchBegins(usize),
    /// The branch that began last has ended.
    BranchEnds,
}

/// All steps through a session.
pub fn walk(state: &SessionState, order: WalkOrder) -> Vec<Step> {
    let count = state.nodes().len() as u32;
    let tree = Tree::of(state);
    match order {
        WalkOrder::Taken => (0..count).map(NodeIx).map(Step::Entry).collect(),
        WalkOrder::Nested => tree.nested(),
        WalkOrder::PathFirst => tree.path_first(),
    }
}

struct Tree<'s> {
    state: &'s SessionState,
    roots: Vec<NodeIx>,
    children: Vec<Vec<NodeIx>>,
}

enum Task {
    Visit(NodeIx),
    Say(Step),
}

impl<'s> Tree<'s> {
    fn of(state: &'s SessionState) -> Self {
        let mut roots = Vec::new();
        let mut children = vec![Vec::new(); state.nodes().len()];
        for ix in (0..state.nodes().len() as u32).map(NodeIx) {
            match state.node(ix).parent() {
                Some(parent) => children[parent.0 as usize].push(ix),
                None => roots.push(ix),
            }
        }
        Self { state, roots, children }
    }

    fn after(&self, ix: NodeIx) -> &[NodeIx] {
        &self.children[ix.0 as usize]
    }

    /// The one that goes on where the others branch off, and the others. The active path ends at its leaf, so nothing goes
    /// on from there.
    fn main_and_others(&self, siblings: &[NodeIx]) -> (Option<NodeIx>, Vec<NodeIx>) {
        let follow_leaf = siblings
            .first()
            .and_then(|ix| self.state.node(*ix).parent())
            .is_some_and(|parent| self.state.on_path(parent));
        let last = siblings.last().copied().filter(|_| !follow_leaf);
        let main = siblings.iter().copied().find(|ix| self.state.on_path(*ix)).or(last);
        (main, siblings.iter().copied().filter(|ix| Some(*ix) != main).collect())
    }

    fn nested(&self) -> Vec<Step> {
        let sizes = self.sizes();
        let mut steps = Vec::with_capacity(self.children.len());
        let mut tasks = Vec::new();
        let push = |siblings: &[NodeIx], tasks: &mut Vec<Task>| {
            let (main, others) = self.main_and_others(siblings);
            tasks.extend(main.map(Task::Visit));
            for other in others.into_iter().rev() {
                tasks.push(Task::Say(Step::BranchEnds));
                tasks.push(Task::Visit(other));
                tasks.push(Task::Say(Step::BranchBegins(sizes[other.0 as usize])));
            }
        };
        push(&self.roots, &mut tasks);
        while let Some(task) = tasks.pop() {
            match task {
                Task::Say(step) => steps.push(step),
                Task::Visit(ix) => {
                    steps.push(Step::Entry(ix));
                    push(self.after(ix), &mut tasks);
                }
            }
        }
        steps
    }

    fn path_first(&self) -> Vec<Step> {
        let mut steps = Vec::with_capacity(self.children.len());
        let (main, others) = self.main_and_others(&self.roots);
        let mut waiting: VecDeque<NodeIx> = others.into();
        let chain = |first: Option<NodeIx>, waiting: &mut VecDeque<NodeIx>| {
            let mut chain = Vec::new();
            let mut at = first;
            while let Some(ix) = at {
                chain.push(Step::Entry(ix));
                let (main, others) = self.main_and_others(self.after(ix));
                waiting.extend(others);
                at = main;
            }
            chain
        };
        steps.extend(chain(main, &mut waiting));
        while let Some(first) = waiting.pop_front() {
            let branch = chain(Some(first), &mut waiting);
            steps.push(Step::BranchBegins(branch.len()));
            steps.extend(branch);
            steps.push(Step::BranchEnds);
        }
        steps
    }

    /// How many entries each one has from itself on.
    fn sizes(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.children.len());
        let mut tasks = self.roots.clone();
        while let Some(ix) = tasks.pop() {
            order.push(ix);
            tasks.extend_from_slice(self.after(ix));
        }
        let mut sizes = vec![1_usize; self.children.len()];
        for ix in order.into_iter().rev() {
            if let Some(parent) = self.state.node(ix).parent() {
                sizes[parent.0 as usize] += sizes[ix.0 as usize];
            }
        }
        sizes
    }
}
