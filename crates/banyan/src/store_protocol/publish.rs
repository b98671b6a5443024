//! Events of another instance's commits, told here as they are.

use banyan_model::Error;
use banyan_model::store::{EventEnvelope, PublishEventsRequest, PublishEventsResponse};

use crate::Banyan;
use crate::hub::ForeignEvent;

impl Banyan {
    /// Tells events to those who listen now. They are in no record, so nobody is told of them later.
    pub(crate) async fn store_publish_events(
        &self,
        request: PublishEventsRequest,
    ) -> Result<PublishEventsResponse, Error> {
        let mut events: Vec<ForeignEvent> = Vec::with_capacity(request.events.len());
        for envelope in request.events {
            match envelope.open() {
                Some((payload, role)) => events.push((payload, role, envelope.session_metadata)),
                None => self.store.warn(&ill_formed(&envelope)),
            }
        }
        let published = events.len();
        self.store.hub.publish_foreign(events.into_iter());
        Ok(PublishEventsResponse { published })
    }
}

fn ill_formed(envelope: &EventEnvelope) -> String {
    let start: String = envelope.trigger_type.chars().take(64).collect();
    format!("another instance published an event of type `{start}` that is not well-formed; it is dropped")
}
