//! A page of sessions when all of them are at hand.

use std::cmp::Ordering;

use banyan_model::{Error, ListOrder, ListRequest, ListResponse, SessionId, SessionMeta};

use crate::cursor::{ListCursor, sort_key};
use crate::filter;
use crate::limits::Limits;

/// The sessions for `session::list`, of all that there are.
pub fn sessions(
    mut metas: Vec<SessionMeta>,
    request: &ListRequest,
    limits: &Limits,
) -> Result<ListResponse, Error> {
    let order = request.order.unwrap_or(ListOrder::UpdatedDesc);
    let after = request.cursor.as_deref().map(|text| ListCursor::decode(text, order)).transpose()?;
    metas.retain(|meta| {
        let at = (sort_key(order, meta), &meta.session_id);
        request.status.is_none_or(|status| status == meta.status)
            && request.metadata.as_ref().is_none_or(|it| filter::metadata_matches(it, meta.metadata.as_ref()))
            && after.as_ref().is_none_or(|cursor| compare(order, (cursor.key, &cursor.id), at).is_lt())
    });
    metas.sort_by(|a, b| compare(order, (sort_key(order, a), &a.session_id), (sort_key(order, b), &b.session_id)));
    let limit = limits.page_size(request.limit);
    let more = metas.len() > limit;
    metas.truncate(limit);
    let next_cursor = metas.last().filter(|_| more).map(|meta| ListCursor::after(order, meta).encode());
    Ok(ListResponse { sessions: metas, next_cursor })
}

fn compare(order: ListOrder, a: (i64, &SessionId), b: (i64, &SessionId)) -> Ordering {
    match order {
        ListOrder::CreatedAsc => a.cmp(&b),
        ListOrder::CreatedDesc | ListOrder::UpdatedDesc => b.cmp(&a),
    }
}
