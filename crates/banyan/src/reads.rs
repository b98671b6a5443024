//! The functions that only look.

use std::collections::HashMap;

use banyan_core::cursor::ListCursor;
use banyan_core::page::{self, Page};
use banyan_core::state::{NodeIx, SessionState, Source};
use banyan_core::{NodeKind, content};
use banyan_index::ListQuery;
use banyan_model::*;

use crate::Banyan;
use crate::access::Access;
use crate::bodies::{Body, Fetched, Wanted};
use crate::store::Store;

impl Banyan {
    /// A session's title, status and other metadata.
    pub async fn get(&self, request: GetRequest) -> Result<Option<GetResponse>, Error> {
        let meta = self.store.look(&self.access, &request.session_id, |state| state.meta().as_ref().clone())?;
        Ok(meta.map(|meta| GetResponse { meta }))
    }

    /// A page of sessions.
    pub async fn list(&self, request: ListRequest) -> Result<ListResponse, Error> {
        let order = request.order.unwrap_or(ListOrder::UpdatedDesc);
        let after = request.cursor.as_deref().map(|text| ListCursor::decode(text, order)).transpose()?;
        let Some(metadata) = self.access.scope.within(request.metadata) else {
            return Ok(ListResponse::default());
        };
        let query = ListQuery {
            order,
            after: after.as_ref().map(|cursor| (cursor.key, &cursor.id)),
            status: request.status,
            metadata: metadata.as_ref(),
            limit: self.store.settings.limits().page_size(request.limit),
        };
        let page = self.store.ask_catalogue(|catalogue| catalogue.list(&query))?;
        let last = page.sessions.last().filter(|_| page.more);
        let next_cursor = last.map(|meta| ListCursor::after(order, meta).encode());
        Ok(ListResponse { sessions: page.sessions, next_cursor })
    }

    /// A page of the active path, oldest first.
    pub async fn messages(&self, request: MessagesRequest) -> Result<MessagesResponse, Error> {
        let limits = self.store.settings.limits();
        let plan = |state: &SessionState| page::messages(state, &request, &limits);
        let planned = self.store.plan(&self.access, &request.session_id, plan)?;
        let Items { messages, damaged, next_cursor } =
            self.store.items(&self.access, planned, request.include_image_data)?;
        Ok(MessagesResponse { messages, damaged, next_cursor })
    }

    /// Named entries of the active path, or all between two of them.
    pub async fn messages_range(&self, request: MessagesRangeRequest) -> Result<MessagesRangeResponse, Error> {
        let limits = self.store.settings.limits();
        let plan = |state: &SessionState| page::messages_range(state, &request, &limits);
        let planned = self.store.plan(&self.access, &request.session_id, plan)?;
        let Items { messages, damaged, next_cursor } =
            self.store.items(&self.access, planned, request.include_image_data)?;
        Ok(MessagesRangeResponse { messages, damaged, next_cursor })
    }

    /// The newest page of the active path.
    pub async fn messages_tail(&self, request: MessagesTailRequest) -> Result<MessagesTailResponse, Error> {
        let Tail { sources, entries, elided, has_more } = self.store.tail(&self.access, &request)?;
        let damaged = self.store.describe_damaged(&sources, lost(&entries))?;
        let oldest_entry_id = entries.first().map(|(wanted, _)| wanted.entry_id.clone());
        let mut messages = shown(entries.into_iter(), request.include_image_data)?;
        for item in &mut messages {
            if let Some(message) = elided.get(&item.entry_id) {
                item.message = Some(message.clone());
                item.elided = true;
            }
        }
        Ok(MessagesTailResponse { messages, damaged, has_more, oldest_entry_id })
    }

    /// One entry of any branch.
    pub async fn get_message(&self, request: GetMessageRequest) -> Result<Option<GetMessageResponse>, Error> {
        let found = self.store.look(&self.access, &request.session_id, |state| {
            let ix = state.find(&request.entry_id)?;
            Some((state.sources().to_vec(), Wanted::of(state, ix)))
        })?;
        let Some((sources, wanted)) = found.flatten() else { return Ok(None) };
        let fetched = self.store.fetch_seen(&self.access, &sources, std::slice::from_ref(&wanted))?.pop();
        let Some(mut fetched) = fetched.flatten() else { return Ok(None) };
        if request.include_image_data == Some(false) {
            without_image_data(&mut fetched.body)?;
        }
        Ok(Some(GetMessageResponse { entry: wanted.entry(fetched) }))
    }

    /// Every entry of every branch, without content, or a page of them.
    pub async fn tree(&self, request: TreeRequest) -> Result<TreeResponse, Error> {
        let met = &self.store.damaged;
        let seen = self.store.look(&self.access, &request.session_id, |state| {
            let mut tree = page::tree(state, &request)?;
            if met.count() > 0 {
                for shown in &mut tree.entries {
                    let node = state.find(&shown.entry_id).map(|ix| state.node(ix));
                    shown.damaged |= node.is_some_and(|node| met.has(state.sources(), node.place()));
                }
            }
            Ok(tree)
        });
        seen?.unwrap_or_else(|| Err(Error::not_found(&request.session_id)))
    }
}

/// Entries to be read, once the state is let go.
struct Planned {
    sources: Vec<Source>,
    wanted: Vec<Wanted>,
    next_cursor: Option<String>,
}

impl Planned {
    fn of(state: &SessionState, nodes: &[NodeIx], next_cursor: Option<String>) -> Self {
        let wanted = nodes.iter().map(|ix| Wanted::for_page(state, *ix)).collect();
        Self { sources: state.sources().to_vec(), wanted, next_cursor }
    }
}

/// A page, read.
struct Items {
    messages: Vec<MessageItem>,
    damaged: Vec<DamagedEntry>,
    next_cursor: Option<String>,
}

/// What a tail shows instead of whole messages.
type Elided = HashMap<EntryId, Raw<AgentMessage>>;

/// The newest entries, read.
struct Tail {
    sources: Vec<Source>,
    entries: Vec<(Wanted, Option<Fetched>)>,
    elided: Elided,
    has_more: bool,
}

impl Store {
    fn plan(
        &self,
        access: &Access,
        id: &SessionId,
        page: impl FnOnce(&SessionState) -> Result<Page, Error>,
    ) -> Result<Planned, Error> {
        let planned = self.look(access, id, |state| {
            let page = page(state)?;
            Ok(Planned::of(state, &page.nodes, page.next_cursor))
        });
        planned?.unwrap_or_else(|| Err(Error::not_found(id)))
    }

    /// Plans a tail, and reads it. What its plan depends on is read between attempts, never while the state is held.
    fn tail(&self, access: &Access, request: &MessagesTailRequest) -> Result<Tail, Error> {
        let limits = self.settings.limits();
        let mut read: HashMap<NodeIx, Option<Fetched>> = HashMap::new();
        loop {
            let mut missing = Vec::new();
            let planned = self.look(access, &request.session_id, |state| {
                let mut load = |ix| match read.get(&ix) {
                    Some(fetched) => loaded(fetched.as_ref()),
                    None => {
                        missing = around(state, ix);
                        Err(Error::storage("not read yet"))
                    }
                };
                let outcome = page::messages_tail(state, request, &limits, &mut load);
                if missing.is_empty() {
                    let tail = outcome?;
                    let nodes: Vec<NodeIx> = tail.items.iter().map(|item| item.node).collect();
                    missing.clone_from(&nodes);
                    let shown = |item: &page::TailItem| Some((state.id(item.node), item.elided.clone()?));
                    let elided: Elided = tail.items.iter().filter_map(shown).collect();
                    return Ok((Planned::of(state, &nodes, None), Some((elided, tail.has_more))));
                }
                missing.retain(|ix| !read.contains_key(ix));
                Ok((Planned::of(state, &missing, None), None))
            })?;
            let (planned, done) = planned.unwrap_or_else(|| Err(Error::not_found(&request.session_id)))?;
            let unread = |(ix, _): &(&NodeIx, &Wanted)| !read.contains_key(ix);
            let (nodes, wanted): (Vec<NodeIx>, Vec<&Wanted>) =
                missing.iter().zip(&planned.wanted).filter(unread).map(|(ix, wanted)| (*ix, wanted)).unzip();
            let fetched = self.fetch_seen(access, &planned.sources, &wanted)?;
            read.extend(nodes.into_iter().zip(fetched));
            if let Some((elided, has_more)) = done {
                let bodies = missing.iter().map(|ix| read.remove(ix).flatten());
                let entries = planned.wanted.into_iter().zip(bodies).collect();
                return Ok(Tail { sources: planned.sources, entries, elided, has_more });
            }
        }
    }

    fn items(&self, access: &Access, planned: Planned, include_image_data: Option<bool>) -> Result<Items, Error> {
        let fetched = self.fetch_seen(access, &planned.sources, &planned.wanted)?;
        let entries: Vec<(Wanted, Option<Fetched>)> = planned.wanted.into_iter().zip(fetched).collect();
        let damaged = self.describe_damaged(&planned.sources, lost(&entries))?;
        let messages = shown(entries.into_iter(), include_image_data)?;
        Ok(Items { messages, damaged, next_cursor: planned.next_cursor })
    }
}

/// The entries whose content could not be read.
fn lost(entries: &[(Wanted, Option<Fetched>)]) -> impl Iterator<Item = &Wanted> {
    entries.iter().filter(|(_, fetched)| fetched.is_none()).map(|(wanted, _)| wanted)
}

/// Entries as items of a page, without those whose content is lost.
fn shown(
    entries: impl Iterator<Item = (Wanted, Option<Fetched>)>,
    include_image_data: Option<bool>,
) -> Result<Vec<MessageItem>, Error> {
    let mut items = Vec::new();
    for (wanted, fetched) in entries {
        let Some(mut fetched) = fetched else { continue };
        if include_image_data == Some(false) {
            without_image_data(&mut fetched.body)?;
        }
        items.push(wanted.item(fetched));
    }
    Ok(items)
}

/// An entry and those before it on the active path, which are likely to be asked for next.
fn around(state: &SessionState, ix: NodeIx) -> Vec<NodeIx> {
    const AHEAD: usize = 64;
    let depth = state.node(ix).depth() as usize;
    let before = state.path().get(depth.saturating_sub(AHEAD)..depth).unwrap_or_default();
    let readable =
        before.iter().filter(|ix| !state.node(**ix).is_damaged() && state.node(**ix).kind() != NodeKind::Lost);
    readable.copied().chain([ix]).collect()
}

/// What a tail must know of an entry. A message without calls need not be parsed to be told from one with calls.
fn loaded(fetched: Option<&Fetched>) -> Result<page::Loaded, Error> {
    let Some(fetched) = fetched else { return Ok(page::Loaded::default()) };
    let message = match &fetched.body {
        Body::Message(message) if may_matter(message) => Some(message.parse()?),
        Body::Message(_) | Body::Custom(_) => None,
    };
    Ok(page::Loaded { origin: fetched.origin.as_ref().map(Origin::object), message })
}

/// True unless the message certainly has no calls, is no result and has no type of its own.
fn may_matter(message: &Raw<AgentMessage>) -> bool {
    let text = message.get();
    ["function_call", "function_result", "custom_type"].iter().any(|word| text.contains(word))
}

fn without_image_data(body: &mut Body) -> Result<(), Error> {
    if let Body::Message(message) = body {
        let mut parsed = message.parse()?;
        content::drop_image_data(&mut parsed);
        *message = Raw::of(&parsed)?;
    }
    Ok(())
}
