//! Workers on the SDKs that others wrote find each other on the bus, as they would on an engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]

#[path = "sdks/install.rs"]
mod install;
#[path = "sdks/quickstart.rs"]
mod quickstart;
#[path = "hub/support.rs"]
#[allow(dead_code, reason = "other tests need the rest")]
mod support;

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use banyan_iii::hub::Hub;
use serde_json::{Value, json};
use support::{PATIENCE, Worker, hub};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

const FUNCTIONS: [&str; 7] = ["bind", "call", "echo", "fail", "see", "seen", "tick"];

/// Each of them with each of them, before the bus is restarted and after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_every_sdk_find_each_other_through_a_restart() {
    let mut bus = Bus::start("127.0.0.1:0".parse().unwrap()).await;
    let mut workers = Vec::new();
    for (name, command) in [("js", install::node("worker.js")), ("py", install::python("worker.py"))] {
        match command {
            Ok(command) => workers.push((name, Program::start(command, bus.at, name))),
            Err(why) => install::skip(&format!("the SDK of `{name}`"), &why),
        }
    }
    let names: Vec<&str> = workers.iter().map(|(name, _)| *name).collect();
    if names.is_empty() {
        return;
    }
    bus.wait_for(&names).await;
    for one in &names {
        for other in &names {
            calls(&mut bus, one, other).await;
            bind_to(&mut bus, one, other).await;
        }
        configuration(&mut bus, one).await;
    }
    let expected = names.len() as u64;
    for name in &names {
        bus.ask(name, "tick", json!({"tick": 1})).await;
    }
    for name in &names {
        bus.saw(name, &json!({"tick": 1}), expected).await;
    }

    bus = bus.restarted().await;
    bus.wait_for(&names).await;
    for one in &names {
        for other in &names {
            calls(&mut bus, one, other).await;
        }
    }
    // Bindings are the same as before, and each is there once.
    bus.bindings("tick", names.len() * names.len()).await;
    for name in &names {
        bus.ask(name, "tick", json!({"tick": 2})).await;
    }
    for name in &names {
        bus.saw(name, &json!({"tick": 2}), expected).await;
    }
}

async fn calls(bus: &mut Bus, one: &str, other: &str) {
    let id = bus.worker_id(one).await;
    let echoed =
        bus.ask(one, "call", json!({"function_id": format!("{other}::echo"), "payload": {"a": ["ü", 1.5]}})).await;
    let mut input = json!({"a": ["ü", 1.5]});
    // A newer SDK calls its own functions without the bus.
    if echoed["result"]["input"].get("_caller_worker_id").is_some() || one != other {
        input["_caller_worker_id"] = json!(id);
    }
    assert_eq!(echoed, json!({"result": {"by": other, "input": input}}), "{one} calls {other}");
    let failed = bus.ask(one, "call", json!({"function_id": format!("{other}::fail"), "payload": {}})).await;
    let message = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains(&format!("{other} fails as asked")), "{one} calls {other}: {failed}");
    let missing = bus.ask(one, "call", json!({"function_id": "nobody::has-it", "payload": {}})).await;
    assert_eq!(missing["error"]["code"], "function_not_found", "{one}: {missing}");
}

/// `one` binds its function to the trigger of the other, and another that is refused.
async fn bind_to(bus: &mut Bus, one: &str, other: &str) {
    let kind = format!("{other}::tick");
    for config in [json!({"refuse": true}), json!({})] {
        let binding = json!({"type": kind, "function_id": format!("{one}::see"), "config": config});
        bus.ask(one, "bind", binding).await;
    }
    let list = json!({"trigger_type": kind, "function_id": format!("{one}::see")});
    bus.until(async |bus| {
        let bound = bus.call("engine::registered-triggers::list", list.clone()).await;
        let bound = bound["registered_triggers"].as_array().unwrap().clone();
        bound.len() == 1 && bound[0]["config"] == json!({})
    })
    .await;
}

async fn configuration(bus: &mut Bus, name: &str) {
    let id = format!("of-{name}");
    let config = json!({"configuration_id": id, "event_types": ["configuration:updated"]});
    bus.ask(
        name,
        "bind",
        json!({"type": "configuration", "function_id": format!("{name}::see"), "config": config}),
    )
    .await;
    let entry = json!({"id": id, "name": "A", "description": "B", "schema": {}, "initial_value": 1});
    for (function, payload) in [
        ("configuration::register", entry),
        ("configuration::set", json!({"id": id, "value": {"n": "${BANYAN_TEST_UNSET:2}"}})),
    ] {
        // The binding was sent before, on the same connection.
        let done = bus.ask(name, "call", json!({"function_id": function, "payload": payload})).await;
        assert!(done["error"].is_null(), "{name}: {done}");
    }
    let event = json!({"type": "configuration", "event_type": "configuration:updated", "id": id, "name": "A",
        "description": "B", "schema": {}, "old_value": 1, "new_value": {"n": 2}});
    bus.saw(name, &event, 1).await;
}

/// A bus on a port, and somebody who tells the workers what to do.
struct Bus {
    at: SocketAddr,
    master: Worker,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Bus {
    async fn start(at: SocketAddr) -> Self {
        let hub: Hub = hub();
        let master = Worker::named(&hub, "master").await;
        let listener = TcpListener::bind(at).await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move { hub.serve(listener, async { drop(stopped.await) }).await });
        Self { at, master, stop, task }
    }

    async fn restarted(self) -> Self {
        self.stop.send(()).unwrap();
        timeout(PATIENCE, self.task).await.unwrap().unwrap();
        Self::start(self.at).await
    }

    async fn call(&mut self, function: &str, data: Value) -> Value {
        self.master.call(function, data).await.unwrap_or_else(|error| panic!("{function}: {error}"))
    }

    async fn ask(&mut self, name: &str, function: &str, data: Value) -> Value {
        self.call(&format!("{name}::{function}"), data).await
    }

    async fn until(&mut self, mut fine: impl AsyncFnMut(&mut Self) -> bool) {
        let wait = async {
            while !fine(self).await {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let logs = install::log("");
        timeout(3 * PATIENCE, wait)
            .await
            .unwrap_or_else(|_| panic!("what the workers say is in {}", logs.display()));
    }

    /// All functions of the workers are there.
    async fn wait_for(&mut self, names: &[&str]) {
        self.until(async |bus| {
            let listed = bus.call("engine::functions::list", json!({"workers": names})).await;
            listed["functions"].as_array().unwrap().len() == names.len() * FUNCTIONS.len()
        })
        .await;
        self.until(async |bus| {
            let listed = bus.call("engine::triggers::list", json!({"search": "::tick"})).await;
            listed["triggers"].as_array().unwrap().len() == names.len()
        })
        .await;
    }

    async fn bindings(&mut self, kind: &str, count: usize) {
        self.until(async |bus| {
            let listed = bus.call("engine::registered-triggers::list", json!({"search": kind})).await;
            let there = listed["registered_triggers"].as_array().unwrap().iter();
            there.filter(|it| it["config"] == json!({})).count() == count
        })
        .await;
    }

    async fn worker_id(&mut self, name: &str) -> String {
        let worker = self.call("engine::workers::info", json!({"name": name})).await;
        worker["worker"]["id"].as_str().unwrap().to_owned()
    }

    /// A worker was told of an event so many times, and no more.
    async fn saw(&mut self, name: &str, event: &Value, times: u64) {
        let count = |seen: &Value| {
            let without = |it: &Value| {
                let mut it = it.clone();
                it.as_object_mut().unwrap().remove("_caller_worker_id");
                it
            };
            seen.as_array().unwrap().iter().filter(|it| without(it) == *event).count() as u64
        };
        self.until(async |bus| count(&bus.ask(name, "seen", json!({})).await) >= times).await;
        assert_eq!(count(&self.ask(name, "seen", json!({})).await), times, "{name}: {event}");
    }
}

/// A program that is ended with the test.
struct Program(Child);

impl Program {
    fn start(mut command: Command, at: SocketAddr, name: &str) -> Self {
        command.args([format!("ws://{at}"), name.to_owned()]);
        for inherited in ["III_URL", "III_NAMESPACE", "III_WORKER_NAME"] {
            command.env_remove(inherited);
        }
        // What it has to say is kept, for when the test fails.
        let log = std::fs::File::create(install::log(name)).unwrap();
        Self(command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
