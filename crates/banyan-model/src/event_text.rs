//! An event as text: written when it is first asked for, and then shared by everyone who is sent the event.

use std::sync::{Arc, OnceLock};

use crate::Event;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventText(OnceLock<Written>);

/// One text for every use: the payload is a part of the frame.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    frame: Arc<str>,
    after_id: usize,
    payload: usize,
}

impl EventText {
    pub(crate) fn of(&self, event: &Event) -> &Written {
        self.0.get_or_init(|| Written::of(event))
    }
}

impl PartialEq for EventText {
    /// Whether the text was asked for makes no difference.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for EventText {}

impl Written {
    fn of(event: &Event) -> Self {
        let json = serde_json::to_string(&event.payload).unwrap_or_default();
        let id = format!("id: {}\n", event.position);
        let kind = event.event_type().as_str();
        let frame: Arc<str> = format!("{id}event: {kind}\ndata: {json}\n\n").into();
        Self { payload: frame.len() - json.len() - END.len(), after_id: id.len(), frame }
    }

    pub(crate) fn frame(&self) -> &Arc<str> {
        &self.frame
    }

    pub(crate) fn frame_without_id(&self) -> &str {
        self.frame.get(self.after_id..).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> &str {
        self.frame.get(self.payload..self.frame.len() - END.len()).unwrap_or_default()
    }
}

const END: &str = "\n\n";
