//! Functions: who has which.

use crate::wire::Message;

use super::registry::{ConnectionId, Raw, Registry};

/// A function that a worker offers.
pub(super) struct Function {
    pub(super) owner: ConnectionId,
    pub(super) description: Option<String>,
    pub(super) request_format: Raw,
    pub(super) response_format: Raw,
    pub(super) metadata: Raw,
}

impl Registry {
    /// Gives a function to the worker that offers it. Another worker that has it already keeps it, as on an engine.
    pub(super) fn register_function(
        &mut self,
        by: ConnectionId,
        id: &str,
        description: Option<String>,
        [request_format, response_format, metadata]: [Raw; 3],
    ) {
        let Some(connection) = self.connections.get(&by) else { return };
        let namespace = connection.namespace.clone();
        if let Some(function) = self.functions.get(&namespace, id)
            && function.owner != by
            && let Some(owner) = self.connections.get(&function.owner)
        {
            tracing::warn!(
                function = id,
                owner = owner.about.name.as_deref().unwrap_or(&owner.worker_id),
                refused = connection.about.name.as_deref().unwrap_or(&connection.worker_id),
                "a worker offers a function that another worker has already"
            );
            let rejected = Message::RegistrationRejected {
                code: "FUNCTION_NAMESPACE_CONFLICT".into(),
                namespace: namespace.as_str().into(),
                worker_name: None,
                function_id: Some(id.into()),
                owner_worker_id: (&*owner.worker_id).into(),
            };
            return connection.outbox.push(rejected.write());
        }
        let function = Function { owner: by, description, request_format, response_format, metadata };
        self.functions.insert(&namespace, id, function);
        self.functions_changes += 1;
    }

    /// Takes a function away from the worker that has it.
    pub(super) fn unregister_function(&mut self, by: ConnectionId, id: &str) {
        let namespace = self.namespace(by).to_owned();
        if self.functions.get(&namespace, id).is_some_and(|function| function.owner == by) {
            self.functions.remove(&namespace, id);
            self.functions_changes += 1;
        }
    }
}
