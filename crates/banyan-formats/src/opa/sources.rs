//! Which attachments a message names, found without keeping anything else of it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::error::{Error, Why};

/// Tells of the attachments that a message names. A text that is no JSON refuses the archive; a message that only cannot be
/// understood (half a surrogate pair, say) names none, and is kept as it is.
pub(crate) fn collect(message: &str, found: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let mut reader = serde_json::Deserializer::from_str(message);
    let read = Look { level: Level::Message, found }.deserialize(&mut reader);
    if read.is_ok() && reader.end().is_ok() {
        return Ok(());
    }
    serde_json::from_str::<IgnoredAny>(message)
        .map(|_| ())
        .map_err(|error| Error::refused(Why::Malformed, format!("a message of the history is not JSON: {error}")))
}

/// Whether a block of this type names an attachment.
pub(crate) fn has_source(kind: &str) -> bool {
    matches!(kind, "image" | "file")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Message,
    /// A list of blocks, or one block in its place.
    Content,
    Block,
}

struct Look<'a> {
    level: Level,
    found: &'a mut dyn FnMut(&str),
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(Any(self))
    }
}

/// A string, or nothing when it is something else.
struct Text<'de>(Option<Cow<'de, str>>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(AsText)).map(Self)
    }
}

/// What is made of the values that matter; everything else is passed over.
trait Taker<'de>: Sized {
    type Out: Default;
    /// Whether strings matter. Those that do not are not copied.
    const TEXT: bool = false;

    fn text(self, _: Cow<'de, str>) -> Self::Out {
        Self::Out::default()
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Out, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::Out::default())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Out, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::Out::default())
    }
}

struct AsText;

impl<'de> Taker<'de> for AsText {
    type Out = Option<Cow<'de, str>>;
    const TEXT: bool = true;

    fn text(self, text: Cow<'de, str>) -> Self::Out {
        Some(text)
    }
}

/// A source: its type and its path.
struct AsSource;

impl<'de> Taker<'de> for AsSource {
    type Out = Option<Cow<'de, str>>;

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Out, A::Error> {
        let (mut kind, mut path) = (None, None);
        while let Some(key) = object.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "type" => kind = object.next_value::<Text<'de>>()?.0,
                "path" => path = object.next_value::<Text<'de>>()?.0,
                _ => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(path.filter(|_| kind.is_none_or(|kind| kind == "attachment")))
    }
}

struct Source<'de>(Option<Cow<'de, str>>);

impl<'de> Deserialize<'de> for Source<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(AsSource)).map(Self)
    }
}

impl<'de> Taker<'de> for Look<'_> {
    type Out = ();

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.level != Level::Content {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        while list.next_element_seed(Look { level: Level::Block, found: &mut *self.found })?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let is_block = self.level != Level::Message;
        let (mut kind, mut path, mut source) = (None, None, None);
        while let Some(key) = object.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "content" => object.next_value_seed(Look { level: Level::Content, found: &mut *self.found })?,
                "type" if is_block => kind = object.next_value::<Text<'de>>()?.0,
                // opa-archive has the path in the block itself.
                "path" if is_block => path = object.next_value::<Text<'de>>()?.0,
                "source" if is_block => source = object.next_value::<Source<'de>>()?.0,
                _ => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        if kind.is_some_and(|kind| has_source(&kind)) {
            source.iter().chain(&path).for_each(|path| (self.found)(path));
        }
        Ok(())
    }
}

struct Any<T>(T);

impl<'de, T: Taker<'de>> Visitor<'de> for Any<T> {
    type Value = T::Out;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T::Out, E> {
        Ok(self.0.text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T::Out, E> {
        Ok(if T::TEXT { self.0.text(Cow::Owned(text.to_owned())) } else { T::Out::default() })
    }

    fn visit_bool<E>(self, _: bool) -> Result<T::Out, E> {
        Ok(T::Out::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<T::Out, E> {
        Ok(T::Out::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T::Out, E> {
        Ok(T::Out::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T::Out, E> {
        Ok(T::Out::default())
    }

    fn visit_unit<E>(self) -> Result<T::Out, E> {
        Ok(T::Out::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T::Out, A::Error> {
        self.0.list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T::Out, A::Error> {
        self.0.object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(message: &str) -> Vec<String> {
        let mut paths = Vec::new();
        collect(message, &mut |path| paths.push(path.to_owned())).unwrap();
        paths
    }

    #[test]
    fn given_messages_when_their_sources_are_collected_then_all_dialects_are_seen() {
        let message = r#"{"role":"user","content":[{"type":"text","text":"t"},
            {"source":{"type":"attachment","path":"a"},"type":"image"},
            {"type":"file","path":"b","media_type":"x"},
            {"type":"tool_result","content":[{"type":"image","source":{"path":"c"}}]},
            {"type":"image","source":{"type":"url","path":"not this"}},
            {"type":"tool_use","path":"nor this","input":{"path":"nor this","source":{"path":"nor this"}}}]}"#;
        assert_eq!(paths(message), ["a", "b", "c"]);
        assert_eq!(paths(r#"{"content":{"type":"image","path":"d"}}"#), ["d"]);
        assert!(paths(r#"{"content":"text","path":"not a block"}"#).is_empty());
        for odd in ["3", "null", "[]", "\"s\"", r#"{"content":[1,[2],{"path":3}]}"#, r#"{"content":"\ud800"}"#] {
            assert!(paths(odd).is_empty(), "{odd}");
        }
        assert!(collect("{", &mut |_| {}).is_err());
        assert!(collect(r#"{"a":1}{}"#, &mut |_| {}).is_err());
    }
}
