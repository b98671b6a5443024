//! A way to a bus that is cut off at a certain answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// See the module.
pub struct Proxy {
    pub url: String,
    cuts: Arc<Cuts>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Cuts {
    wanted: AtomicUsize,
    made: AtomicUsize,
}

impl Proxy {
    /// A way to a bus.
    pub async fn to(bus: &str) -> Self {
        let bus = bus.strip_prefix("ws://").expect("an address").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("ws://{}", listener.local_addr().expect("an address"));
        let cuts = Arc::new(Cuts::default());
        let task = tokio::spawn(take(listener, bus, Arc::clone(&cuts)));
        Self { url, cuts, task }
    }

    /// The next answers to commits are dropped, each with its connection.
    pub fn cut(&self, answers: usize) {
        self.cuts.wanted.store(answers, Ordering::SeqCst);
    }

    /// How many answers were dropped.
    pub fn has_cut(&self) -> usize {
        self.cuts.made.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(listener: TcpListener, bus: String, cuts: Arc<Cuts>) {
    while let Ok((client, _)) = listener.accept().await {
        let (bus, cuts) = (bus.clone(), Arc::clone(&cuts));
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(bus).await else { return };
            pass(client, server, &cuts).await;
        });
    }
}

/// Passes bytes on both ways until one side ends, or an answer is cut off.
async fn pass(mut client: TcpStream, mut server: TcpStream, cuts: &Cuts) {
    let (mut asked, mut answered) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => match read {
                Ok(bytes) if bytes > 0 && server.write_all(&asked[..bytes]).await.is_ok() => {}
                _ => return,
            },
            read = server.read(&mut answered) => match read {
                Ok(bytes) if bytes > 0 && !cuts.off(&answered[..bytes]) => {
                    if client.write_all(&answered[..bytes]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

impl Cuts {
    fn off(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        if !text.contains("invocationresult") || !text.contains("session::store::commit") {
            return false;
        }
        let cut =
            self.wanted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |wanted| wanted.checked_sub(1)).is_ok();
        if cut {
            self.made.fetch_add(1, Ordering::SeqCst);
        }
        cut
    }
}
