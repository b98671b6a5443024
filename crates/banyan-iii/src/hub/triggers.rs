//! Kinds of triggers and bindings to them. A binding is at whoever offers its kind, or waits until somebody does.

use serde_json::value::RawValue;

use crate::wire::{ErrorBody, Message, RegisterTrigger};

use super::builtins::Failure;
use super::calls::blank_namespace;
use super::configuration;
use super::registry::{ConnectionId, Raw, Registry};
use super::{DEFAULT_NAMESPACE, builtins, relay};

/// Fires when functions come or go.
pub(super) const FUNCTIONS_AVAILABLE: &str = "engine::functions-available";
/// Fires when workers come or go.
pub(super) const WORKERS_AVAILABLE: &str = "engine::workers-available";

/// The kinds that the bus itself offers, in the default namespace, unless a worker does.
pub(super) const OWN_TYPES: [(&str, &str); 3] = [
    (configuration::TRIGGER_TYPE, "A configuration was registered, changed or deleted."),
    (FUNCTIONS_AVAILABLE, "Functions came or went."),
    (WORKERS_AVAILABLE, "A worker came or went."),
];

/// A kind of trigger that a worker offers.
pub(super) struct TriggerType {
    pub(super) owner: ConnectionId,
    pub(super) description: String,
    pub(super) trigger_request_format: Raw,
    pub(super) call_request_format: Raw,
}

/// A function that is to be called when something happens.
pub(super) struct Binding {
    owner: ConnectionId,
    pub(super) trigger_type: String,
    pub(super) function_id: String,
    pub(super) config: Box<RawValue>,
    pub(super) metadata: Raw,
    /// Where the function is.
    pub(super) namespace: String,
    /// Where the kind is, when the worker says so; otherwise in the worker's namespace or in the default one.
    trigger_namespace: Option<String>,
    home: String,
    /// The namespace of the kind that it is bound to now.
    pub(super) at: Option<String>,
    /// Where it was refused. It is tried again when the kind is offered anew.
    refused_at: Option<String>,
}

impl Registry {
    /// A worker offers a kind. Whoever offered it before in that namespace does not any more. All bindings to it are told anew.
    pub(super) fn register_type(
        &mut self,
        by: ConnectionId,
        id: &str,
        description: String,
        [trigger_request_format, call_request_format]: [Raw; 2],
    ) {
        if !self.connections.contains_key(&by) {
            return;
        }
        let namespace = self.namespace(by).to_owned();
        let kind = TriggerType { owner: by, description, trigger_request_format, call_request_format };
        self.types.insert(&namespace, id, kind);
        self.loosen(&namespace, id);
        self.settle_all(id);
    }

    pub(super) fn unregister_type(&mut self, by: ConnectionId, id: &str) {
        let namespace = self.namespace(by).to_owned();
        if self.types.get(&namespace, id).is_some_and(|kind| kind.owner == by) {
            self.types.remove(&namespace, id);
            self.loosen(&namespace, id);
            self.settle_all(id);
        }
    }

    pub(super) fn forget_types(&mut self, gone: ConnectionId) {
        for (namespace, id) in self.types.remove_where(|kind| kind.owner == gone) {
            self.loosen(&namespace, &id);
            self.settle_all(&id);
        }
    }

    /// A worker binds a function. A binding of the same id is replaced.
    pub(super) fn bind(&mut self, by: ConnectionId, trigger: &RegisterTrigger<'_>) {
        let Some(connection) = self.connections.get(&by) else { return };
        let named = [("namespace", &trigger.namespace), ("trigger_namespace", &trigger.trigger_namespace)];
        if let Some((field, _)) =
            named.iter().find(|(_, value)| value.as_ref().is_some_and(|it| it.trim().is_empty()))
        {
            let Failure { code, message } = blank_namespace(field);
            let error = ErrorBody { code: code.into(), message: message.into(), stacktrace: None };
            let result = Message::TriggerRegistrationResult {
                id: trigger.id.as_ref().into(),
                trigger_type: trigger.trigger_type.as_ref().into(),
                function_id: trigger.function_id.as_ref().into(),
                error: Some(error),
            };
            return connection.outbox.push(result.write());
        }
        let binding = Binding {
            owner: by,
            trigger_type: trigger.trigger_type.as_ref().to_owned(),
            function_id: trigger.function_id.as_ref().to_owned(),
            config: trigger.config.clone().into_owned(),
            metadata: trigger.metadata.clone().map(|raw| raw.into_owned()),
            namespace: trigger.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE).to_owned(),
            trigger_namespace: trigger.trigger_namespace.as_deref().map(str::to_owned),
            home: connection.namespace.clone(),
            at: None,
            refused_at: None,
        };
        let id = trigger.id.as_ref();
        let place = self.place(&binding);
        match self.bindings.insert(id.to_owned(), binding) {
            // Told again, it is replaced there.
            Some(old) if old.at == place && old.trigger_type == trigger.trigger_type => {}
            Some(old) => self.tell_gone(id, &old),
            None => {}
        }
        if place.is_none() {
            builtins::warn_of_waiting(id, &trigger.trigger_type, &trigger.function_id);
        }
        self.settle(id);
    }

    pub(super) fn unbind(&mut self, id: &str) {
        if let Some(binding) = self.bindings.remove(id) {
            self.tell_gone(id, &binding);
        }
    }

    pub(super) fn forget_bindings(&mut self, gone: ConnectionId) {
        let ids: Vec<String> =
            self.bindings.iter().filter(|(_, binding)| binding.owner == gone).map(|(id, _)| id.clone()).collect();
        ids.iter().for_each(|id| self.unbind(id));
    }

    /// Whoever offers the kind took a binding, or says why not. An engine passes on refusals only; SDKs ignore the rest.
    pub(super) fn trigger_result(&mut self, from: ConnectionId, id: &str, error: Option<ErrorBody<'_>>) {
        let Some(binding) = self.bindings.get_mut(id) else { return };
        let Some(at) = &binding.at else { return };
        if self.types.get(at, &binding.trigger_type).is_none_or(|kind| kind.owner != from) {
            return;
        }
        if error.is_some() {
            binding.refused_at = binding.at.take();
        }
        self.tell_result(id, error);
    }

    /// Whether the bus itself has to tell somebody of something.
    pub(super) fn has_own_bindings(&self, kind: &str) -> bool {
        self.bindings.values().any(|binding| binding.trigger_type == kind && self.is_own(binding))
    }

    /// Calls the functions that are bound to a kind that the bus itself offers, and whose config fits.
    pub(super) fn fire(&self, kind: &str, data: &str, fits: impl Fn(&RawValue) -> bool) {
        let bound = self.bindings.values().filter(|binding| binding.trigger_type == kind && self.is_own(binding));
        for binding in bound.filter(|binding| fits(&binding.config)) {
            match self.functions.get(&binding.namespace, &binding.function_id).map(|function| function.owner) {
                Some(owner) => {
                    let metadata = binding.metadata.as_ref().map(|raw| raw.get());
                    let text = relay::own_call(&binding.function_id, data, metadata);
                    self.outbox(owner).inspect(|outbox| outbox.push(text));
                }
                None => {
                    tracing::warn!(function = binding.function_id, kind, "a trigger's function is not on the bus");
                }
            }
        }
    }

    fn is_own(&self, binding: &Binding) -> bool {
        binding.at.as_deref() == Some(DEFAULT_NAMESPACE)
            && self.types.get(DEFAULT_NAMESPACE, &binding.trigger_type).is_none()
    }

    /// The namespace of the kind that a binding belongs to now.
    fn place(&self, binding: &Binding) -> Option<String> {
        let offered = |namespace: &str| {
            let own = || OWN_TYPES.iter().any(|(id, _)| *id == binding.trigger_type);
            self.types.get(namespace, &binding.trigger_type).is_some() || (namespace == DEFAULT_NAMESPACE && own())
        };
        match &binding.trigger_namespace {
            Some(named) => Some(named).filter(|named| offered(named)).cloned(),
            None => [&*binding.home, DEFAULT_NAMESPACE].into_iter().find(|it| offered(it)).map(str::to_owned),
        }
    }

    /// Bindings at a kind are nowhere until they are settled again.
    fn loosen(&mut self, namespace: &str, kind: &str) {
        for binding in self.bindings.values_mut().filter(|binding| binding.trigger_type == kind) {
            for place in [&mut binding.at, &mut binding.refused_at] {
                if place.as_deref() == Some(namespace) {
                    *place = None;
                }
            }
        }
    }

    fn settle_all(&mut self, kind: &str) {
        let ids: Vec<String> = self
            .bindings
            .iter()
            .filter(|(_, binding)| binding.trigger_type == kind)
            .map(|(id, _)| id.clone())
            .collect();
        ids.iter().for_each(|id| self.settle(id));
    }

    /// Brings a binding to where it belongs now.
    fn settle(&mut self, id: &str) {
        let Some(binding) = self.bindings.get(id) else { return };
        let place = self.place(binding);
        if binding.at == place || (place.is_some() && binding.refused_at == place) {
            return;
        }
        self.tell_gone(id, binding);
        if let Some(binding) = self.bindings.get_mut(id) {
            binding.at = place;
            binding.refused_at = None;
        }
        self.tell_bound(id);
    }

    /// Tells whoever offers the kind of a binding.
    fn tell_bound(&mut self, id: &str) {
        let Some(binding) = self.bindings.get_mut(id) else { return };
        let Some(at) = &binding.at else { return };
        if let Some(kind) = self.types.get(at, &binding.trigger_type) {
            let elsewhere =
                |namespace: &String| (namespace != DEFAULT_NAMESPACE).then(|| namespace.clone().into());
            let message = Message::RegisterTrigger(RegisterTrigger {
                id: id.into(),
                trigger_type: binding.trigger_type.as_str().into(),
                function_id: binding.function_id.as_str().into(),
                config: std::borrow::Cow::Borrowed(&binding.config),
                metadata: binding.metadata.as_deref().map(std::borrow::Cow::Borrowed),
                namespace: elsewhere(&binding.namespace),
                trigger_namespace: elsewhere(at),
            });
            if let Some(connection) = self.connections.get(&kind.owner) {
                connection.outbox.push(message.write());
            }
            return;
        }
        let checked = if binding.trigger_type == configuration::TRIGGER_TYPE {
            configuration::check_binding(&binding.config)
        } else {
            Ok(())
        };
        if checked.is_err() {
            binding.refused_at = binding.at.take();
        }
        let error = checked.err().map(|why| ErrorBody {
            code: "trigger_registration_failed".into(),
            message: why.into(),
            stacktrace: None,
        });
        self.tell_result(id, error);
    }

    /// Tells whoever offers the kind that a binding is gone.
    fn tell_gone(&self, id: &str, binding: &Binding) {
        let Some(at) = &binding.at else { return };
        if let Some(kind) = self.types.get(at, &binding.trigger_type)
            && let Some(outbox) = self.outbox(kind.owner)
        {
            let message =
                Message::UnregisterTrigger { id: id.into(), trigger_type: binding.trigger_type.as_str().into() };
            outbox.push(message.write());
        }
    }

    /// Tells whoever bound what became of it.
    fn tell_result(&self, id: &str, error: Option<ErrorBody<'_>>) {
        let Some(binding) = self.bindings.get(id) else { return };
        let message = Message::TriggerRegistrationResult {
            id: id.into(),
            trigger_type: binding.trigger_type.as_str().into(),
            function_id: binding.function_id.as_str().into(),
            error,
        };
        if let Some(outbox) = self.outbox(binding.owner) {
            outbox.push(message.write());
        }
    }
}
