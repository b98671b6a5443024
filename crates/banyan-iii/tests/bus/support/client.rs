//! A client of a bus, made with iii's own SDK.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use iii_sdk::{
    III, IIIError, InitOptions, RegisterFunction, RegisterTriggerInput, Trigger, TriggerRequest, WorkerMetadata,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

/// Only a test that fails waits for so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// See the module.
pub struct Client {
    pub iii: III,
}

/// Whoever hears the events of one binding.
pub struct Ears {
    heard: UnboundedReceiver<Value>,
    binding: Trigger,
}

static NAMES: AtomicUsize = AtomicUsize::new(0);

impl Client {
    /// A client that calls can be made with.
    pub async fn on(url: &str) -> Self {
        let otel = iii_observability::OtelConfig { enabled: Some(false), ..Default::default() };
        // One process is one worker to an engine, unless it says otherwise.
        let name = format!("client-{}-{}", std::process::id(), NAMES.fetch_add(1, Ordering::Relaxed));
        let metadata = WorkerMetadata { name, ..WorkerMetadata::default() };
        let options = InitOptions { otel: Some(otel), metadata: Some(metadata), ..InitOptions::default() };
        Self { iii: iii_sdk::register_worker(url, options) }
    }

    /// A client, once there is somebody who answers.
    pub async fn when_ready(url: &str) -> Self {
        let client = Self::on(url).await;
        eventually("session-manager answers", async || {
            client.try_call("session::get", json!({"session_id": "nobody"})).await.ok()
        })
        .await;
        client
    }

    /// Calls a function that answers well.
    pub async fn call(&self, function: &str, payload: Value) -> Value {
        self.try_call(function, payload).await.unwrap_or_else(|error| panic!("{function}: {error}"))
    }

    /// Calls a function. What it refuses is `code: message`.
    pub async fn try_call(&self, function: &str, payload: Value) -> Result<Value, String> {
        let request =
            TriggerRequest { function_id: function.to_owned(), payload, action: None, timeout_ms: Some(5_000) };
        self.iii.trigger(request).await.map_err(|error| match error {
            IIIError::Remote { code, message, .. } => format!("{code}: {message}"),
            other => other.to_string(),
        })
    }

    /// Hears what a binding is told. Bound before any call that this client makes afterwards.
    pub fn hear(&self, trigger_type: &str, config: Value) -> Ears {
        let (sender, heard) = unbounded_channel();
        let function = self.function(move |event: Value| {
            let _ = sender.send(event);
            async { Ok::<_, IIIError>(json!({"ok": true})) }
        });
        Ears { heard, binding: self.bind(trigger_type, &function, config) }
    }

    /// Offers a function, and says its name.
    pub fn function<F, R>(&self, run: F) -> String
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, IIIError>> + Send + 'static,
    {
        let name = format!("test::ears-{}-{}", std::process::id(), NAMES.fetch_add(1, Ordering::Relaxed));
        self.offer(&name, run);
        name
    }

    /// Offers a function under a name.
    pub fn offer<F, R>(&self, name: &str, run: F)
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, IIIError>> + Send + 'static,
    {
        self.iii.register_function(name.to_owned(), RegisterFunction::new_async(run));
    }

    pub fn bind(&self, trigger_type: &str, function: &str, config: Value) -> Trigger {
        let input = RegisterTriggerInput {
            trigger_type: trigger_type.to_owned(),
            function_id: function.to_owned(),
            config,
            metadata: None,
        };
        self.iii.register_trigger(input).expect("a binding")
    }

    /// Starts a session.
    pub async fn session(&self, request: Value) -> String {
        let created = self.call("session::create", request).await;
        created["session_id"].as_str().expect("an id").to_owned()
    }

    /// Appends what a user says, and says the entry's id.
    pub async fn say(&self, session: &str, text: &str) -> String {
        let appended = self.call("session::append", said(session, text)).await;
        appended["entry_id"].as_str().expect("an id").to_owned()
    }

    /// What the active path of a session says.
    pub async fn texts(&self, session: &str) -> Vec<String> {
        let mut texts = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let request = json!({"session_id": session, "limit": 500, "cursor": cursor});
            let page = self.call("session::messages", request).await;
            let messages = page["messages"].as_array().expect("messages");
            texts.extend(messages.iter().map(|it| text_of(&it["message"])));
            cursor = page["next_cursor"].clone();
            if cursor.is_null() {
                return texts;
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.iii.shutdown();
    }
}

/// The request that appends what a user says.
pub fn said(session: &str, text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    json!({"session_id": session, "message": {"role": "user", "content": content, "timestamp": 1_717_800_000_000_i64}})
}

/// The request that appends the beginning of a reply.
pub fn reply(session: &str) -> Value {
    json!({"session_id": session, "message": {
        "role": "assistant", "content": [{"type": "text", "text": ""}], "model": "m", "provider": "p",
        "stop_reason": "end", "timestamp": 1_717_800_000_000_i64
    }})
}

/// The text of a message's first block.
pub fn text_of(message: &Value) -> String {
    message["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

impl Ears {
    /// The next event.
    pub async fn next(&mut self) -> Value {
        match tokio::time::timeout(PATIENCE, self.heard.recv()).await {
            Ok(Some(event)) => event,
            other => panic!("nothing is heard: {other:?}"),
        }
    }

    /// Events up to and with the first for which `last` is true.
    pub async fn until(&mut self, mut last: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut heard = Vec::new();
        loop {
            heard.push(self.next().await);
            if heard.last().is_some_and(&mut last) {
                return heard;
            }
        }
    }

    /// What has been heard and not been asked for.
    pub fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }

    /// Wants to hear nothing more.
    pub fn unbind(&self) {
        self.binding.unregister();
    }
}

/// Waits until something is so.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not come true that {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
