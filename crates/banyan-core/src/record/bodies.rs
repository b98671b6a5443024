//! Moving the long strings of a record's body to blobs, and back.

use banyan_model::{AgentMessage, Error, Json, Raw};

use super::{PutBody, Record};
use crate::blobs::{self, BlobRef, Piece};

impl Record {
    /// The same record with its long strings taken out; `None` when it has none. The pieces are stored under
    /// [`Piece::blob_ref`]'s hash before the record is.
    pub fn take_out_blobs(&self, threshold: usize) -> Option<(Self, Vec<Piece>)> {
        let (short, pieces) = blobs::extract(self.body()?, threshold)?;
        let mut record = self.clone();
        record.set_body(short, pieces.iter().map(Piece::blob_ref).collect()).ok()?;
        Some((record, pieces))
    }

    /// Puts the strings back that were taken out; `fetch` reads a blob.
    pub fn put_back_blobs(
        &mut self,
        mut fetch: impl FnMut(&BlobRef) -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        let (Some(body), Some(blobs)) = (self.body(), self.blobs()) else { return Ok(()) };
        if blobs.is_empty() {
            return Ok(());
        }
        let whole = whole_body(body, blobs, &mut fetch)?;
        self.set_body(whole, Vec::new())
    }

    /// The strings of the body that are stored elsewhere; `None` for records without a body.
    pub fn blobs(&self) -> Option<&[BlobRef]> {
        match self {
            Self::Message(record) => Some(&record.blobs),
            Self::Custom(record) => Some(&record.blobs),
            Self::Updated(record) => Some(&record.blobs),
            Self::Settled(record) => Some(&record.blobs),
            Self::EntryPut(record) => Some(&record.blobs),
            _ => None,
        }
    }

    /// How many bytes its large parts have: the body, and an origin that may be as large.
    pub fn parts_len(&self) -> usize {
        let origin = match self {
            Self::EntryPut(record) => record.origin.as_ref().map_or(0, |origin| origin.text().len()),
            _ => 0,
        };
        self.body().map_or(0, str::len) + origin
    }

    fn body(&self) -> Option<&str> {
        match self {
            Self::Message(record) => Some(record.message.get()),
            Self::Custom(record) => Some(record.data.get()),
            Self::Updated(record) => Some(record.message.get()),
            Self::Settled(record) => Some(record.message.get()),
            Self::EntryPut(record) => Some(match &record.body {
                PutBody::Message { message, .. } => message.get(),
                PutBody::Custom { data, .. } => data.get(),
            }),
            _ => None,
        }
    }

    fn set_body(&mut self, text: String, blobs: Vec<BlobRef>) -> Result<(), Error> {
        let message = |text| Raw::<AgentMessage>::from_text(text);
        match self {
            Self::Message(record) => (record.message, record.blobs) = (message(text)?, blobs),
            Self::Updated(record) => (record.message, record.blobs) = (message(text)?, blobs),
            Self::Settled(record) => (record.message, record.blobs) = (message(text)?, blobs),
            Self::Custom(record) => (record.data, record.blobs) = (Json::from_text(&text)?, blobs),
            Self::EntryPut(record) => {
                match &mut record.body {
                    PutBody::Message { message: body, .. } => *body = message(text)?,
                    PutBody::Custom { data, .. } => *data = Json::from_text(&text)?,
                }
                record.blobs = blobs;
            }
            _ => {}
        }
        Ok(())
    }
}

/// A body's JSON with the strings back that were taken out; `fetch` reads a blob.
pub fn whole_body(
    body: &str,
    blobs: &[BlobRef],
    mut fetch: impl FnMut(&BlobRef) -> Result<Vec<u8>, Error>,
) -> Result<String, Error> {
    let mut pieces = Vec::with_capacity(blobs.len());
    for blob in blobs {
        pieces.push(Piece { pointer: blob.pointer.clone(), bytes: fetch(blob)?, encoding: blob.encoding });
    }
    blobs::restore(body, &pieces)
        .map_err(|fault| Error::storage(format!("a stored body cannot be made whole: {fault}")))
}
