//! `GET /v1/sessions/{session_id}/messages?format=…`: a page of the path, or the whole tree, in the form of a shape.

use axum::response::Response;
use banyan::model::{Error, SessionId};
use banyan_formats::shapes::{Extent, Shape};
use hyper::header::{HeaderValue, LINK};

use super::only;
use super::read::{Reader, Turns};
use crate::calls;
use crate::history::Cursor;
use crate::path::segment;
use crate::problem::Problem;
use crate::resources::Asked;

/// The most messages of a page.
const MOST: usize = 500;

pub(crate) async fn messages(asked: Asked, shape: &dyn Shape) -> Result<Response, Problem> {
    let reader = Reader::new(asked.caller.store.clone(), SessionId::from(asked.in_path("session_id")));
    match shape.extent() {
        Extent::Tree => {
            only(&asked.query, [])?;
            Ok(calls::json(tree(&reader, shape)?))
        }
        Extent::Path => {
            let [limit, cursor] = only(&asked.query, ["limit", "cursor"])?;
            path(&reader, shape, limit.map(number).transpose()?.unwrap_or(MOST), cursor)
        }
    }
}

/// How often a tree is read again because the session changed meanwhile.
const ATTEMPTS: usize = 8;

fn tree(reader: &Reader, shape: &dyn Shape) -> Result<String, Error> {
    let mut written = String::new();
    for _ in 0..ATTEMPTS {
        let state = reader.state()?;
        let (items, leaf) = reader.tree()?;
        let mut scene = reader.scene(&state);
        scene.leaf = leaf;
        written = shape.write(&items, &scene).to_string();
        // A tree is read branch by branch. It is one tree if nothing was written between them.
        if reader.state()?.version == state.version {
            break;
        }
    }
    Ok(written)
}

fn path(reader: &Reader, shape: &dyn Shape, limit: usize, cursor: Option<&str>) -> Result<Response, Problem> {
    let state = reader.state()?;
    let after = cursor.map(Cursor::decode).transpose()?.map(Cursor::entry);
    let Turns { items, more } = reader.turns(state.leaf.as_ref(), after, limit)?;
    let mut response = calls::json(shape.write(&items, &reader.scene(&state)).to_string());
    if let Some(last) = items.last().filter(|_| more) {
        let (session, cursor) = (segment(reader.session_id.as_str()), Cursor::After(last.id().clone()).encode());
        let format = shape.name();
        let next = format!(
            "</v1/sessions/{session}/messages?format={format}&limit={limit}&cursor={cursor}>; rel=\"next\""
        );
        if let Ok(next) = HeaderValue::from_str(&next) {
            response.headers_mut().insert(LINK, next);
        }
    }
    Ok(response)
}

fn number(value: &str) -> Result<usize, Problem> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than a number holds are more than the most, too.
    match value.parse().unwrap_or(MOST) {
        number if digits && number > 0 => Ok(number.min(MOST)),
        _ => Err(Problem::invalid(format!("`limit` is a whole number from 1, not `{value}`"))),
    }
}
