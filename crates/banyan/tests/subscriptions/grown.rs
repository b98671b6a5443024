//! Coming back to a message that grew: the cost is counted, in bytes read and in bytes of events.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use banyan::model::{EventFilter, EventPayload, EventType, MessageUpdatedEvent, Position, SessionId};
use banyan::{Banyan, Delivery, Durability, Options, ReplayCost, Start, Subscribe, Subscription};
use banyan_log::disk::{Disk, DiskFile, Listed, LockOutcome, OsDisk};
use serde_json::{Value, json};

use crate::support::*;

const GROWTHS: usize = 3000;
const TOKEN: &str = "token";

fn options() -> Options {
    Options { durability: Durability::Buffered, ..Options::default() }
}

fn of_session(id: &str) -> Vec<EventFilter> {
    let id = Some(SessionId::from(id));
    everything().into_iter().map(|filter| EventFilter { session_id: id.clone(), ..filter }).collect()
}

/// A session with a message that grew; where the growth began, and the entry.
fn grown(store: &Banyan, between: impl Fn(usize)) -> (Position, Value) {
    let door = door(store);
    door.ok("ensure", json!({"session_id": "s"}));
    let entry = door.append(&json!("s"), json!({"message": assistant("")}));
    let began = Position::new(store.head(), 0);
    for number in 0..GROWTHS {
        door.ok("extend-message", json!({"session_id": "s", "entry_id": entry, "text": TOKEN}));
        between(number);
    }
    (began, entry)
}

/// The updates that a subscription delivers, and what they cost.
fn updates(store: &Banyan, mut subscription: Subscription) -> (Vec<MessageUpdatedEvent>, ReplayCost) {
    let before = store.replay_cost();
    let mut updates = Vec::new();
    while let Some(delivery) = subscription.try_next().unwrap() {
        let Delivery::Event(event) = delivery else { panic!("only events are delivered, not {delivery:?}") };
        if let EventPayload::MessageUpdated(updated) = &event.payload {
            updates.push(updated.clone());
        }
    }
    let after = store.replay_cost();
    let cost = ReplayCost {
        bytes_read: after.bytes_read - before.bytes_read,
        bytes_of_events: after.bytes_of_events - before.bytes_of_events,
    };
    (updates, cost)
}

fn subscribe(store: &Banyan, filters: Vec<EventFilter>, after: Position) -> Subscription {
    store.subscribe(Subscribe { filters, start: Start::After(after) }).unwrap()
}

fn is_whole(update: &MessageUpdatedEvent) -> bool {
    update.revision.0 == GROWTHS as u64 && update.message.get().contains(&TOKEN.repeat(GROWTHS))
}

fn file_len(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("s.jsonl")).unwrap().len()
}

#[test]
fn coming_back_reads_a_line_once_and_makes_few_events_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), options()).unwrap();
    let (began, _) = grown(&store, |_| ());
    let message = (TOKEN.len() * GROWTHS) as u64;
    // While the line is open, when it is closed, and when the order over all sessions is gone.
    for stage in ["open", "closed", "own"] {
        let store = match stage {
            "open" => store.clone(),
            _ => {
                store.close().unwrap();
                if stage == "own" {
                    std::fs::remove_dir_all(dir.path().join(".banyan/journal")).unwrap();
                }
                Banyan::open(dir.path(), options()).unwrap()
            }
        };
        let filters = if stage == "own" { of_session("s") } else { everything() };
        if stage == "own" {
            // Only a commit after it makes the gap known.
            door(&store).ok("ensure", json!({"session_id": "other"}));
        }
        for (after, commits) in [(began, GROWTHS), (Position::new(began.commit.next(), 0), GROWTHS - 1)] {
            let line = (commits * 32) as u64 + message;
            let joined = subscribe(&store, filters.clone(), after).with_joined_additions();
            let (told, cost) = updates(&store, joined);
            assert!(told.len() <= 2 && told.last().is_some_and(is_whole), "{stage}: {} updates", told.len());
            assert!(cost.bytes_of_events <= 3 * message, "{stage}: {cost:?} for {message} bytes");
            assert!(cost.bytes_read <= 3 * line, "{stage}: {cost:?} for a line of {line} bytes");
            let (told, cost) = updates(&store, subscribe(&store, filters.clone(), after));
            assert!(told.last().is_some_and(is_whole), "{stage}: {} updates", told.len());
            assert!(told.is_sorted_by_key(|update| update.revision));
            let most = (12 << 20) + 33 * line;
            assert!(cost.bytes_of_events <= most, "{stage}: {cost:?}, and each revision would be more");
            assert!(cost.bytes_read <= 3 * line, "{stage}: {cost:?} for a line of {line} bytes");
        }
        if stage == "closed" {
            store.close().unwrap();
        }
    }
}

#[test]
fn a_message_that_grew_over_many_lines_is_read_once_though_each_line_is_one_addition() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), options()).unwrap();
    let statuses = ["working", "idle"];
    let set = |number: usize| {
        door(&store).ok("set-status", json!({"session_id": "s", "status": statuses[number % 2]}));
    };
    let long = "x".repeat(100_000);
    let door = door(&store);
    door.ok("ensure", json!({"session_id": "s"}));
    let entry = door.append(&json!("s"), json!({"message": assistant(&long)}));
    let began = Position::new(store.head(), 0);
    for number in 0..400 {
        // Two blocks in turn would do the same: a line is about one block.
        door.ok("extend-message", json!({"session_id": "s", "entry_id": entry, "text": TOKEN}));
        if number % 4 == 3 {
            set(number / 4);
        }
    }
    let joined = subscribe(&store, everything(), began).with_joined_additions();
    let (told, cost) = updates(&store, joined);
    assert_eq!(told.last().unwrap().revision.0, 400);
    let message = told.last().unwrap().message.get().len() as u64;
    let file = {
        store.close().unwrap();
        file_len(dir.path())
    };
    assert!(cost.bytes_read <= 4 * file + message, "{cost:?} of a file of {file} bytes");
    assert!(cost.bytes_of_events <= 4 * message, "{cost:?} for a message of {message} bytes");
}

#[test]
fn growth_of_many_sessions_at_once_is_told_in_order_and_at_the_same_cost() {
    let store = Banyan::in_memory(options()).unwrap();
    let door = door(&store);
    let names: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    let entries: Vec<Value> = names
        .iter()
        .map(|id| {
            door.ok("ensure", json!({"session_id": id}));
            door.append(&json!(id), json!({"message": assistant(&"x".repeat(2000))}))
        })
        .collect();
    let began = Position::new(store.head(), 0);
    for _ in 0..50 {
        for (id, entry) in names.iter().zip(&entries) {
            door.ok("extend-message", json!({"session_id": id, "entry_id": entry, "text": TOKEN}));
        }
    }
    let mut positions = Vec::new();
    let mut subscription = subscribe(&store, everything(), began).with_joined_additions();
    let before = store.replay_cost();
    while let Some(Delivery::Event(event)) = subscription.try_next().unwrap() {
        positions.push((event.position, event.session_id().clone()));
    }
    assert!(positions.is_sorted());
    assert_eq!(positions.len(), 2 * names.len(), "the first addition, and the rest as one");
    let read = store.replay_cost().bytes_read - before.bytes_read;
    let lines = 50 * 40 * 40 + 40 * 2500;
    assert!(read <= 3 * lines, "{read} bytes were read of {lines}");
}

#[test]
fn what_was_added_says_to_which_revision() {
    let store = Banyan::in_memory(options()).unwrap();
    let (began, _) = grown(&store, |_| ());
    let mut subscription = subscribe(&store, everything(), began).with_joined_additions();
    let mut known: Option<u64> = None;
    let mut text = String::new();
    while let Some(Delivery::Event(event)) = subscription.try_next().unwrap() {
        let (EventPayload::MessageUpdated(updated), Some(added)) = (&event.payload, &event.added) else {
            continue;
        };
        // What comes first may be the newest line's, and carries the whole message as each event does.
        match known.replace(updated.revision.0) {
            Some(known) => assert_eq!(added.after.0, known, "each event adds to the one before"),
            None => text = TOKEN.repeat(added.after.0 as usize),
        }
        text.push_str(&added.text);
        assert_eq!(text, TOKEN.repeat(updated.revision.0 as usize));
        assert!(updated.message.get().contains(&format!("\"{text}\"")));
    }
    assert_eq!(known, Some(GROWTHS as u64));
}

/// A disk that lets somebody else work on the store in the middle of each read of a session's file, as far as the reading
/// thread asks for that.
struct Interrupting {
    disk: OsDisk,
    visit: Arc<Visit>,
}

struct Visit {
    ask: Mutex<Sender<()>>,
    done: Mutex<Receiver<()>>,
}

struct InterruptingFile(Arc<dyn DiskFile>, Arc<Visit>);

thread_local! {
    /// How many reads of this thread were interrupted; none when it is not to be.
    static INTERRUPTED: Cell<Option<usize>> = const { Cell::new(None) };
}

impl Disk for Interrupting {
    fn open(&self, path: &str) -> io::Result<Option<Arc<dyn DiskFile>>> {
        let file = self.disk.open(path)?;
        Ok(match path.ends_with(".jsonl") {
            true => {
                file.map(|file| Arc::new(InterruptingFile(file, Arc::clone(&self.visit))) as Arc<dyn DiskFile>)
            }
            false => file,
        })
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path)
    }

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<Listed>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.disk.sync_all()
    }

    fn lock(&self, path: &str, owner: &str) -> io::Result<LockOutcome> {
        self.disk.lock(path, owner)
    }

    fn lock_unchanged(&self, path: &str) -> io::Result<LockOutcome> {
        self.disk.lock_unchanged(path)
    }
}

impl DiskFile for InterruptingFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn modified(&self) -> io::Result<u64> {
        self.0.modified()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(count) = INTERRUPTED.get() {
            INTERRUPTED.set(Some(count + 1));
            self.1.ask.lock().unwrap().send(()).unwrap();
            let done = self.1.done.lock().unwrap().recv_timeout(Duration::from_secs(30));
            done.expect("a writer goes on while the past is read");
        }
        self.0.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

#[test]
fn a_session_is_written_to_while_its_past_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = Banyan::open(dir.path(), options()).unwrap();
    let session = door(&store);
    session.ok("ensure", json!({"session_id": "s", "title": "one"}));
    let entry = session.append(&json!("s"), json!({"message": assistant("it")}));
    let began = Position::new(store.head(), 0);
    session.ok("set-meta", json!({"session_id": "s", "title": "two", "metadata": {"owner": "u"}}));
    for _ in 0..50 {
        session.ok("extend-message", json!({"session_id": "s", "entry_id": entry, "text": TOKEN}));
    }
    session.say(&json!("s"), "after");
    store.close().unwrap();

    let ((ask, asked), (finish, done)) = (channel(), channel());
    let visit = Arc::new(Visit { ask: Mutex::new(ask), done: Mutex::new(done) });
    let disk = Interrupting { disk: OsDisk::new(dir.path().to_owned()), visit };
    let store = Banyan::open_on(Arc::new(disk), None, options()).unwrap();
    door(&store).ok("get", json!({"session_id": "s"}));
    let writer = {
        let store = store.clone();
        std::thread::spawn(move || {
            for () in asked {
                door(&store).say(&json!("s"), "meanwhile");
                finish.send(()).unwrap();
            }
        })
    };
    for own in [false, true] {
        let filters = if own { of_session("s") } else { everything() };
        let mut subscription = subscribe(&store, filters, began);
        INTERRUPTED.set(Some(0));
        let mut told = Vec::new();
        while let Some(Delivery::Event(event)) = subscription.try_next().unwrap() {
            told.push(event.event_type());
        }
        let interrupted = INTERRUPTED.take().unwrap();
        // The line, the message that it adds to, and what the session was known by.
        assert!(interrupted >= 3, "{interrupted} reads");
        assert_eq!(told.iter().filter(|kind| **kind == EventType::MessageUpdated).count(), 50);
    }
    drop(store);
    // The disk, and the sender with it, goes with the store.
    drop(writer);
}
