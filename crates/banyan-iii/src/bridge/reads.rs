//! The functions that only look. A Banyan at the other end answers them itself, so that a page costs a page. For any
//! other main the session is fetched whole, and the same rules choose what is answered.

use banyan::TurnSource;
use banyan::model::*;
use banyan::rules::page::{self, Loaded, Page};
use banyan::rules::state::NodeIx;
use banyan::rules::{Limits, content};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::main_instance::{Caller, read, refusal};
use super::reference_main::{Listing, ReferenceMain};
use super::{MainKind, Serving, answer};

impl Serving<'_> {
    pub(super) async fn read(&self, id: &str, body: &[u8]) -> Result<String, Error> {
        match id {
            "session::get" => self.get(id, read_request(body)?).await,
            "session::list" => self.list(id, read_request(body)?).await,
            "session::messages" => self.messages(id, read_request(body)?).await,
            "session::messages-tail" => self.messages_tail(id, read_request(body)?).await,
            "session::messages-range" => self.messages_range(id, read_request(body)?).await,
            "session::get-message" => self.get_message(id, read_request(body)?).await,
            "session::turns" => self.turns(id, read_request(body)?).await,
            "session::search" => self.search(id, read_request(body)?).await,
            "session::tree" => self.tree(id, read_request(body)?).await,
            "session::get-attachment" => self.get_attachment(id, read_request(body)?).await,
            "session::list-attachments" => self.list_attachments(id, read_request(body)?).await,
            _ => Err(Error::storage(format!("`{id}` is not served through another instance"))),
        }
    }

    async fn get(&self, id: &str, request: GetRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => forward::<Option<GetResponse>>(&main.0, id, &request).await,
            MainKind::Reference(main) => {
                answer(&main.meta(&request.session_id).await?.map(|meta| GetResponse { meta }))
            }
        }
    }

    async fn list(&self, id: &str, mut request: ListRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => {
                request.limit = Some(self.limits().page_size(request.limit));
                forward::<ListResponse>(&main.0, id, &request).await
            }
            MainKind::Reference(main) => answer(&page::sessions(main.metas().await?, &request, &self.limits())?),
        }
    }

    async fn messages(&self, id: &str, mut request: MessagesRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => {
                request.limit = Some(self.limits().page_size(request.limit));
                forward::<MessagesResponse>(&main.0, id, &request).await
            }
            MainKind::Reference(main) => {
                let listing = listed(&main, &request.session_id).await?;
                let page = page::messages(&listing.state, &request, &self.limits())?;
                let messages = items(&listing, &page, request.include_image_data)?;
                let damaged = damaged(&listing, page.nodes.iter());
                answer(&MessagesResponse { messages, damaged, next_cursor: page.next_cursor })
            }
        }
    }

    async fn messages_range(&self, id: &str, mut request: MessagesRangeRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => {
                request.limit = Some(self.limits().page_size(request.limit));
                forward::<MessagesRangeResponse>(&main.0, id, &request).await
            }
            MainKind::Reference(main) => {
                let listing = listed(&main, &request.session_id).await?;
                let page = page::messages_range(&listing.state, &request, &self.limits())?;
                let messages = items(&listing, &page, request.include_image_data)?;
                let damaged = damaged(&listing, page.nodes.iter());
                answer(&MessagesRangeResponse { messages, damaged, next_cursor: page.next_cursor })
            }
        }
    }

    async fn messages_tail(&self, id: &str, mut request: MessagesTailRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => {
                request.limit = Some(self.limits().page_size(request.limit));
                forward::<MessagesTailResponse>(&main.0, id, &request).await
            }
            MainKind::Reference(main) => {
                let listing = listed(&main, &request.session_id).await?;
                answer(&tail(&listing, &request, &self.limits())?)
            }
        }
    }

    async fn get_message(&self, id: &str, request: GetMessageRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => forward::<Option<GetMessageResponse>>(&main.0, id, &request).await,
            MainKind::Reference(main) => {
                // Entries without a session are nobody's.
                if main.meta(&request.session_id).await?.is_none() {
                    return answer(&None::<GetMessageResponse>);
                }
                let mut entry = main.entry(&request.session_id, &request.entry_id).await?;
                if let Some(SessionEntry::Message(entry)) = &mut entry {
                    entry.message = shown(&entry.message, request.include_image_data)?;
                }
                answer(&entry.map(|entry| GetMessageResponse { entry }))
            }
        }
    }

    async fn turns(&self, id: &str, mut request: TurnsRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => {
                request.limit = Some(self.limits().page_size(request.limit));
                forward::<TurnsResponse>(&main.0, id, &request).await
            }
            MainKind::Reference(main) => {
                let listing = listed(&main, &request.session_id).await?;
                let (meta, limit) =
                    (listing.state.meta().as_ref().clone(), self.limits().page_size(request.limit));
                answer(&banyan::turns_of(&listing, meta, request.cursor.as_deref(), limit)?)
            }
        }
    }

    async fn search(&self, id: &str, request: SearchRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => forward::<SearchResponse>(&main.0, id, &request).await,
            MainKind::Reference(_) if request.query.is_none() && request.q.is_none() => {
                Err(Error::invalid_request("`query` is missing; pass the words to look for"))
            }
            MainKind::Reference(_) => Err(Error::storage("the main instance has no search; let it be a Banyan")),
        }
    }

    async fn tree(&self, id: &str, request: TreeRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => forward::<TreeResponse>(&main.0, id, &request).await,
            MainKind::Reference(main) => {
                answer(&page::tree(&listed(&main, &request.session_id).await?.state, &request)?)
            }
        }
    }

    async fn get_attachment(&self, id: &str, request: GetAttachmentRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => forward::<Option<GetAttachmentResponse>>(&main.0, id, &request).await,
            MainKind::Reference(_) => answer(&None::<GetAttachmentResponse>),
        }
    }

    async fn list_attachments(&self, id: &str, request: ListAttachmentsRequest) -> Result<String, Error> {
        match self.main().await? {
            MainKind::Banyan(main) => forward::<ListAttachmentsResponse>(&main.0, id, &request).await,
            MainKind::Reference(main) => match main.meta(&request.session_id).await? {
                Some(_) => answer(&ListAttachmentsResponse::default()),
                None => Err(Error::not_found(&request.session_id)),
            },
        }
    }
}

/// The main's own answer, as it came.
async fn forward<A: DeserializeOwned>(
    main: &Caller,
    function_id: &str,
    request: &impl Serialize,
) -> Result<String, Error> {
    let answer = main.text(function_id, request).await.map_err(|failed| refusal(function_id, failed))?;
    read::<A>(function_id, &answer)?;
    Ok(answer.get().to_owned())
}

async fn listed(main: &ReferenceMain, id: &SessionId) -> Result<Listing, Error> {
    main.listing(id).await?.ok_or_else(|| Error::not_found(id))
}

fn items(listing: &Listing, page: &Page, include_image_data: Option<bool>) -> Result<Vec<MessageItem>, Error> {
    let entries = page.nodes.iter().filter_map(|ix| listing.entry(*ix));
    entries.map(|entry| item(entry, include_image_data)).collect()
}

fn item(entry: &SessionEntry, include_image_data: Option<bool>) -> Result<MessageItem, Error> {
    let (message, custom, origin) = match entry {
        SessionEntry::Message(entry) => {
            (Some(shown(&entry.message, include_image_data)?), None, entry.origin.as_ref().map(Origin::object))
        }
        SessionEntry::Custom(entry) => {
            let payload = CustomPayload { custom_type: entry.custom_type.clone(), data: entry.data.clone() };
            (None, Some(payload), None)
        }
    };
    Ok(MessageItem { entry_id: entry.id().clone(), message, custom, origin, elided: false })
}

fn shown(message: &Raw<AgentMessage>, include_image_data: Option<bool>) -> Result<Raw<AgentMessage>, Error> {
    if include_image_data != Some(false) {
        return Ok(message.clone());
    }
    let mut parsed = message.parse()?;
    content::drop_image_data(&mut parsed);
    Raw::of(&parsed)
}

/// The entries of a page that the main did not give.
fn damaged<'n>(listing: &Listing, nodes: impl Iterator<Item = &'n NodeIx>) -> Vec<DamagedEntry> {
    let missing = nodes.filter(|ix| listing.entry(**ix).is_none());
    missing.map(|ix| page::damaged_entry(&listing.state, *ix)).collect()
}

fn tail(listing: &Listing, request: &MessagesTailRequest, limits: &Limits) -> Result<MessagesTailResponse, Error> {
    let mut load = |ix: NodeIx| match listing.entry(ix) {
        Some(SessionEntry::Message(entry)) => {
            Ok(Loaded { origin: entry.origin.as_ref().map(Origin::object), message: Some(entry.message.parse()?) })
        }
        Some(SessionEntry::Custom(entry)) => {
            Ok(Loaded { origin: entry.origin.as_ref().map(Origin::object), message: None })
        }
        None => Ok(Loaded::default()),
    };
    let page = page::messages_tail(&listing.state, request, limits, &mut load)?;
    let damaged = damaged(listing, page.items.iter().map(|item| &item.node));
    let oldest_entry_id = page.items.first().map(|item| listing.state.id(item.node));
    let mut messages = Vec::with_capacity(page.items.len());
    for shown in page.items {
        let Some(entry) = listing.entry(shown.node) else { continue };
        let mut item = item(entry, request.include_image_data)?;
        if let Some(short) = shown.elided {
            item.message = Some(short);
            item.elided = true;
        }
        messages.push(item);
    }
    Ok(MessagesTailResponse { messages, damaged, has_more: page.has_more, oldest_entry_id })
}

impl TurnSource for Listing {
    fn entry(&self, id: &EntryId) -> Result<Option<SessionEntry>, Error> {
        Ok(self.state.find(id).and_then(|ix| Self::entry(self, ix)).cloned())
    }

    fn after(&self, id: Option<EntryId>) -> Result<(Vec<SessionEntry>, Option<EntryId>), Error> {
        let path = self.state.path();
        let from = match id {
            None => 0,
            Some(id) => {
                let at = path.iter().position(|ix| self.state.id(*ix) == id);
                let missing = || Error::invalid_cursor(format!("entry `{id}` is not on the path being read"));
                at.map(|at| at + 1).ok_or_else(missing)?
            }
        };
        Ok((path[from..].iter().filter_map(|ix| Self::entry(self, *ix)).cloned().collect(), None))
    }
}
