//! What holds for all agents that keep lines: read in two goes or at once, it is the same.

use std::path::Path;

use banyan_agents::{Agent, Mark, agent};

use super::{Collected, Session};

/// Reads everything in a place.
pub fn read(id: &str, place: &Path) -> Collected {
    let mut all = Collected::default();
    for source in agent(id).unwrap().sources(place).unwrap() {
        agent(id).unwrap().read(&source, None, &mut all).unwrap();
    }
    all
}

/// Reads a file, going on from a mark if there is one.
pub fn go_on(agent: &dyn Agent, file: &Path, mark: Option<&Mark>, into: &mut Collected) -> Mark {
    let sources = agent.sources(file).unwrap();
    let source = sources.iter().find(|source| source.path == file || source.key.is_some()).unwrap();
    into.begin();
    agent.read(source, mark, into).unwrap()
}

/// So many places within lines are tried.
const WITHIN: usize = 120;

/// Cuts a file after each of its lines and within many, where it looks as if a record were complete, reads the first part, then the rest, and compares with a reading at once.
pub fn same_when_cut(id: &str, file: &Path) {
    let agent = agent(id).unwrap();
    let whole = std::fs::read(file).unwrap();
    let mut at_once = Collected::default();
    go_on(agent, file, None, &mut at_once);
    let after = |wanted: u8| {
        let places = whole.iter().enumerate().filter(move |(_, byte)| **byte == wanted);
        places.map(|(place, _)| place + 1).collect::<Vec<usize>>()
    };
    let within = after(b'}');
    let step = (within.len() / WITHIN).max(1);
    for end in after(b'\n').into_iter().chain(within.into_iter().step_by(step)) {
        let mut parts = Collected::default();
        std::fs::write(file, &whole[..end]).unwrap();
        let mark = go_on(agent, file, None, &mut parts);
        std::fs::write(file, &whole).unwrap();
        let mark = go_on(agent, file, Some(&mark), &mut parts);
        assert_same(&parts, &at_once, &format!("{} cut after {end} bytes", file.display()));
        let told = parts.sessions.values().map(|session| session.entries.len()).sum::<usize>();
        go_on(agent, file, Some(&mark), &mut parts);
        assert_eq!(parts.sessions.values().map(|session| session.entries.len()).sum::<usize>(), told);
    }
}

/// Whether two readings told the same sessions.
pub fn assert_same(one: &Collected, other: &Collected, what: &str) {
    assert_eq!(one.sessions.keys().collect::<Vec<_>>(), other.sessions.keys().collect::<Vec<_>>(), "{what}");
    for (id, session) in &one.sessions {
        let expected = &other.sessions[id];
        assert_eq!(session.head, expected.head, "{what}");
        assert_eq!(session.leaf, expected.leaf, "{what}");
        let (told, wanted) = (sorted(session), sorted(expected));
        for (told, wanted) in told.iter().zip(&wanted) {
            assert_eq!(told, wanted, "{what}");
        }
        assert_eq!(told.len(), wanted.len(), "{what}");
    }
}

fn sorted(session: &Session) -> Vec<&banyan_model::SessionEntry> {
    let mut entries: Vec<_> = session.entries.iter().collect();
    entries.sort_by_key(|entry| entry.id());
    entries
}
