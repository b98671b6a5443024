//! A worker on the SDK for Rust. Whoever is on the bus tells it what to do.
//!
//! `banyan-iii-worker <url> <name>`

#![allow(deprecated, reason = "trigger types are what this is about")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use iii_sdk::errors::Error;
use iii_sdk::protocol::{RegisterTriggerInput, TriggerRequest};
use iii_sdk::runtime::WorkerMetadata;
use iii_sdk::trigger::{TriggerConfig, TriggerHandler};
use iii_sdk::{IIIClient, InitOptions, RegisterFunction, RegisterTriggerType, TriggerAction, register_worker};
use serde_json::{Value, json};

type Bound = Arc<Mutex<BTreeMap<String, String>>>;

struct Tick(Bound);

#[async_trait::async_trait]
impl TriggerHandler for Tick {
    async fn register_trigger(&self, trigger: TriggerConfig) -> Result<(), Error> {
        if trigger.config["refuse"] == true {
            return Err(Error::Handler("refused as asked".into()));
        }
        self.0.lock().unwrap().insert(trigger.id, trigger.function_id);
        Ok(())
    }

    async fn unregister_trigger(&self, trigger: TriggerConfig) -> Result<(), Error> {
        self.0.lock().unwrap().remove(&trigger.id);
        Ok(())
    }
}

fn request(function_id: &str, payload: Value, action: Option<TriggerAction>) -> TriggerRequest {
    TriggerRequest { function_id: function_id.to_owned(), payload, action, timeout_ms: None }
}

fn text(given: &Value, name: &str) -> String {
    given[name].as_str().unwrap_or_default().to_owned()
}

/// Calls something, and answers with what became of it.
async fn call(worker: IIIClient, given: Value) -> Result<Value, Error> {
    Ok(match worker.trigger(request(&text(&given, "function_id"), given["payload"].clone(), None)).await {
        Ok(result) => json!({"result": result}),
        Err(Error::Remote { code, message, .. }) => json!({"error": {"code": code, "message": message}}),
        Err(error) => json!({"error": {"message": error.to_string()}}),
    })
}

#[tokio::main]
async fn main() {
    let (url, name) = (std::env::args().nth(1).unwrap(), std::env::args().nth(2).unwrap());
    let metadata = WorkerMetadata { name: name.clone(), ..WorkerMetadata::default() };
    let worker = register_worker(&url, InitOptions { metadata: Some(metadata), ..InitOptions::default() });
    let (bound, seen) = (Bound::default(), Arc::new(Mutex::new(Vec::<Value>::new())));
    let kind = format!("{name}::tick");
    worker.register_trigger_type(RegisterTriggerType::new(kind, "Ticks when it is told to.", Tick(bound.clone())));

    let offer = |function: &str, registration: RegisterFunction| {
        worker.register_function(format!("{name}::{function}"), registration);
    };
    let by = name.clone();
    offer("echo", RegisterFunction::new(move |input: Value| Ok(json!({"by": by, "input": input}))));
    let by = name.clone();
    offer(
        "fail",
        RegisterFunction::new(move |_: Value| Err::<Value, _>(Error::Handler(format!("{by} fails as asked")))),
    );
    let sees = seen.clone();
    offer(
        "see",
        RegisterFunction::new(move |input: Value| {
            sees.lock().unwrap().push(input);
            Ok(Value::Null)
        }),
    );
    offer("seen", RegisterFunction::new(move |_: Value| Ok(Value::Array(seen.lock().unwrap().clone()))));
    let caller = worker.clone();
    offer("call", RegisterFunction::new_async(move |given: Value| call(caller.clone(), given)));
    let binder = worker.clone();
    offer(
        "bind",
        RegisterFunction::new(move |given: Value| {
            binder.register_trigger(RegisterTriggerInput {
                trigger_type: text(&given, "type"),
                function_id: text(&given, "function_id"),
                config: given["config"].clone(),
                metadata: None,
                namespace: None,
                trigger_namespace: None,
            })?;
            Ok(Value::Null)
        }),
    );
    let ticker = worker.clone();
    offer(
        "tick",
        RegisterFunction::new_async(move |payload: Value| {
            let (worker, functions): (_, Vec<String>) =
                (ticker.clone(), bound.lock().unwrap().values().cloned().collect());
            async move {
                for function in functions {
                    worker.trigger(request(&function, payload.clone(), Some(TriggerAction::Void))).await?;
                }
                Ok::<_, Error>(Value::Null)
            }
        }),
    );
    std::future::pending::<()>().await;
}
