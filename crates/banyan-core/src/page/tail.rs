//! The newest page of the active path, an agent's activity shortened. A page counts blocks: one entry, or one run of activity.

use banyan_model::{AgentMessage, EntryId, Error, MessagesTailRequest, Raw};

use super::activity::{Load, Loaded, Part, call_ids, part_of, shortened_call, shortened_result};
use super::{Budget, endless, must_exist};
use crate::limits::Limits;
use crate::node_kind::NodeKind;
use crate::state::{NodeIx, SessionState};

/// The newest entries, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailPage {
    /// The entries.
    pub items: Vec<TailItem>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// One entry of a tail.
#[derive(Clone, Debug, PartialEq)]
pub struct TailItem {
    /// The entry.
    pub node: NodeIx,
    /// What to show instead of its message, when parts of it are left out.
    pub elided: Option<Raw<AgentMessage>>,
}

/// The entries for `session::messages-tail`. `load` reads an entry; it is asked for few besides those on the page.
pub fn messages_tail(
    state: &SessionState,
    request: &MessagesTailRequest,
    limits: &Limits,
    load: &mut dyn FnMut(NodeIx) -> Result<Loaded, Error>,
) -> Result<TailPage, Error> {
    must_exist(state)?;
    if state.is_cyclic() {
        return Err(endless(state.session_id()));
    }
    let view = View { state, with_custom: request.include_custom != Some(false) };
    let mut walk = Walk { view: &view, load, ahead: None };
    let mut end = state.path().len();
    if let Some(before) = &request.before_entry_id {
        end = walk.block_start(view.must_show(before)?)?;
    }
    let until = request.until_entry_id.as_ref().map(|id| view.must_show(id)).transpose()?;
    let mut budget = Budget::new(limits.page_size(request.limit), request.bytes);
    let mut blocks: Vec<Vec<TailItem>> = Vec::new();
    while let Some(at) = view.shown_before(end) {
        let (start, items) = walk.block_ending_at(at)?;
        let reaches_back = until.is_some_and(|until| until < end);
        let fits = budget.take(blocks.len(), view.bytes(&items));
        if !fits {
            if !reaches_back {
                break;
            }
            budget.exhaust();
        }
        blocks.push(items);
        end = start;
    }
    let has_more = view.shown_before(end).is_some();
    Ok(TailPage { items: blocks.into_iter().rev().flatten().collect(), has_more })
}

/// The active path without what the read leaves out.
struct View<'a> {
    state: &'a SessionState,
    with_custom: bool,
}

impl View<'_> {
    fn shows(&self, ix: NodeIx) -> bool {
        self.with_custom || self.state.node(ix).kind() != NodeKind::CustomEntry
    }

    /// The last entry shown before a place on the path.
    fn shown_before(&self, end: usize) -> Option<usize> {
        self.state.path()[..end].iter().rposition(|ix| self.shows(*ix))
    }

    fn must_show(&self, id: &EntryId) -> Result<usize, Error> {
        let shown = self.state.find(id).filter(|ix| self.state.on_path(*ix) && self.shows(*ix));
        shown.map(|ix| self.state.node(ix).depth() as usize).ok_or_else(|| {
            Error::invalid_cursor(format!("entry `{id}` is not on the active path; read the newest page again"))
        })
    }

    fn bytes(&self, items: &[TailItem]) -> u64 {
        let of_item = |item: &TailItem| match &item.elided {
            Some(short) => short.get().len() as u64,
            None if self.state.node(item.node).is_damaged() => 0,
            None => self.state.node(item.node).weight(),
        };
        items.iter().map(of_item).sum()
    }
}

/// Going back along the path, block by block.
struct Walk<'a, 'load> {
    view: &'a View<'a>,
    load: &'a mut Load<'load>,
    /// The entry that ended the run before, which was read to see that it does.
    ahead: Option<(usize, Part)>,
}

impl Walk<'_, '_> {
    fn part(&mut self, at: usize) -> Result<Part, Error> {
        match self.ahead.take() {
            Some((known, part)) if known == at => Ok(part),
            _ => part_of(self.view.state, self.view.state.path()[at], self.load),
        }
    }

    /// Where the block that contains a place begins.
    fn block_start(&mut self, at: usize) -> Result<usize, Error> {
        let part = self.part(at)?;
        if matches!(part, Part::Said) {
            return Ok(at);
        }
        self.ahead = Some((at, part));
        Ok(self.run_ending_at(at)?.first().map_or(at, |(start, _)| *start))
    }

    /// The block whose last entry is at a place: where it begins, and its entries.
    fn block_ending_at(&mut self, at: usize) -> Result<(usize, Vec<TailItem>), Error> {
        let node = self.view.state.path()[at];
        let part = self.part(at)?;
        if matches!(part, Part::Said) {
            return Ok((at, vec![TailItem { node, elided: None }]));
        }
        self.ahead = Some((at, part));
        let run = self.run_ending_at(at)?;
        let start = run.first().map_or(at, |(start, _)| *start);
        Ok((start, self.shortened(run)?))
    }

    /// The run whose last entry is at a place, oldest first.
    fn run_ending_at(&mut self, at: usize) -> Result<Vec<(usize, Part)>, Error> {
        let mut run = Vec::new();
        let mut next = Some(at);
        while let Some(at) = next {
            let part = self.part(at)?;
            if matches!(part, Part::Said) {
                self.ahead = Some((at, part));
                break;
            }
            run.push((at, part));
            next = self.view.shown_before(at);
        }
        run.reverse();
        Ok(run)
    }

    /// A run as it is shown: the last calls with their results and every wake whole, the rest in short.
    fn shortened(&mut self, run: Vec<(usize, Part)>) -> Result<Vec<TailItem>, Error> {
        let last_call = run.iter().rposition(|(_, part)| matches!(part, Part::Call(_)));
        let answered: Vec<String> = match last_call.map(|at| &run[at].1) {
            Some(Part::Call(message)) => call_ids(message).into_iter().map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let mut items = Vec::with_capacity(run.len());
        for (at_in_run, (at, part)) in run.into_iter().enumerate() {
            let node = self.view.state.path()[at];
            let elided = match part {
                Part::Call(message) if last_call != Some(at_in_run) => Some(shortened_call(&message)?),
                Part::Result => self.shortened_unless_answering(node, &answered)?,
                Part::Call(_) | Part::Wake | Part::Said => None,
            };
            items.push(TailItem { node, elided });
        }
        Ok(items)
    }

    fn shortened_unless_answering(
        &mut self,
        node: NodeIx,
        answered: &[String],
    ) -> Result<Option<Raw<AgentMessage>>, Error> {
        match (self.load)(node)?.message {
            Some(AgentMessage::FunctionResult(result)) if !answered.contains(&result.function_call_id) => {
                shortened_result(AgentMessage::FunctionResult(result)).map(Some)
            }
            _ => Ok(None),
        }
    }
}
