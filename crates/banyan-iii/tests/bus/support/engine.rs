//! A bus on a port of its own, which can be stopped and started again.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use banyan_iii::hub::{Hub, HubOptions};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::eventually;

/// See the module.
pub struct Bus {
    pub url: String,
    port: u16,
    dir: TempDir,
    running: Option<Running>,
}

enum Running {
    Hub(JoinHandle<()>, oneshot::Sender<()>),
    Engine(Child),
}

impl Bus {
    /// A bus with nobody on it.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let dir = tempfile::tempdir().expect("a directory");
        let mut bus = Self { url: format!("ws://127.0.0.1:{port}"), port, dir, running: None };
        bus.go_on().await;
        bus
    }

    /// Starts again, at the same address and with the same configuration.
    pub async fn go_on(&mut self) {
        self.running = Some(match std::env::var_os("III_ENGINE") {
            Some(engine) => Running::Engine(self.spawn(engine.into())),
            None => self.listen().await,
        });
        let port = self.port;
        eventually("the bus takes connections", async || TcpStream::connect(("127.0.0.1", port)).await.ok()).await;
    }

    async fn listen(&self) -> Running {
        let port = self.port;
        let listener =
            eventually("the port is free again", async || TcpListener::bind(("127.0.0.1", port)).await.ok()).await;
        let configuration_dir = Some(self.dir.path().join("configuration"));
        let hub = Hub::new(HubOptions { configuration_dir, ..HubOptions::default() });
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move { hub.serve(listener, async move { drop(stopped.await) }).await });
        Running::Hub(serving, stop)
    }

    fn spawn(&self, engine: PathBuf) -> Child {
        let config = self.dir.path().join("config.yaml");
        let text = format!(
            "workers:\n  - name: iii-worker-manager\n    config:\n      host: 127.0.0.1\n      port: {}\n  - name: configuration\n    config:\n      adapter:\n        name: fs\n        config:\n          directory: {}\n",
            self.port,
            self.dir.path().join("configuration").display()
        );
        std::fs::write(&config, text).expect("a file");
        let log = std::fs::File::create(self.dir.path().join("engine.log")).expect("a file");
        Command::new(engine)
            .arg("--no-update-check")
            .arg("--config")
            .arg(config)
            .current_dir(self.dir.path())
            .env("III_TELEMETRY_ENABLED", "false")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("the engine starts")
    }

    /// The file that a real engine keeps a configuration in and watches. Banyan's own bus does not watch its files.
    pub fn watched(&self, id: &str) -> Option<PathBuf> {
        matches!(self.running, Some(Running::Engine(_)))
            .then(|| self.dir.path().join("configuration").join(format!("{id}.yaml")))
    }

    /// Forgets every configuration, while it is gone.
    pub fn forget(&self) {
        assert!(self.running.is_none());
        std::fs::remove_dir_all(self.dir.path().join("configuration")).expect("what was stored");
    }

    /// Is gone, from one moment to the next.
    pub async fn fall(&mut self) {
        match self.running.take() {
            Some(Running::Hub(serving, stop)) => {
                let _ = stop.send(());
                serving.await.expect("the bus ends");
            }
            Some(Running::Engine(mut engine)) => {
                engine.kill().expect("the engine can be killed");
                engine.wait().expect("the engine ends");
            }
            None => {}
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        if let Some(Running::Engine(engine)) = &mut self.running {
            let _ = engine.kill();
            let _ = engine.wait();
        }
    }
}
