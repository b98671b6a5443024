//! Sessions in the shapes of chat front ends, by `?format=`: messages out (`get.rs`) and in (`post.rs`), and AG-UI's events live
//! (`stream.rs`). What a shape is, `banyan-formats` says. `docs/shapes.md` has the rules.

mod follow;
mod get;
mod post;
mod read;
mod resume;
mod stream;

use banyan_formats::shapes::{SHAPES, Shape, shape};

pub(crate) use get::messages;
pub(crate) use post::append;
pub(crate) use stream::open;

use crate::problem::Problem;

/// The shape that events are told in.
pub(crate) const OF_EVENTS: &str = "ag-ui";

/// The names of all shapes.
pub(crate) fn names() -> Vec<&'static str> {
    SHAPES.iter().map(|shape| shape.name()).collect()
}

/// The shape that a query asks for, if it does.
pub(crate) fn asked(query: &[(String, String)]) -> Result<Option<&'static dyn Shape>, Problem> {
    let mut formats = query.iter().filter(|(name, _)| name == "format");
    let Some((_, format)) = formats.next() else { return Ok(None) };
    if formats.next().is_some() {
        return Err(Problem::invalid("`format` is given twice in the query"));
    }
    let unknown = || {
        let names = names().join(", ");
        Problem::invalid(format!("there is no format `{format}` for messages; the formats are {names}"))
    };
    shape(format).map(Some).ok_or_else(unknown)
}

/// The values of a query that has nothing but these keys, each at most once.
fn only<'a, const N: usize>(
    query: &'a [(String, String)],
    keys: [&str; N],
) -> Result<[Option<&'a str>; N], Problem> {
    let mut values = [None; N];
    for (name, value) in query.iter().filter(|(name, _)| name != "format") {
        let place = keys.iter().position(|key| key == name);
        match place.map(|place| &mut values[place]) {
            Some(known @ None) => *known = Some(value.as_str()),
            Some(_) => return Err(Problem::invalid(format!("`{name}` is given twice in the query"))),
            None => {
                let keys = std::iter::once("format").chain(keys).collect::<Vec<_>>().join(", ");
                return Err(Problem::invalid(format!("`{name}` is not known in this format; there is {keys}")));
            }
        }
    }
    Ok(values)
}
