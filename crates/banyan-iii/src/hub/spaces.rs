//! Things with a name in a namespace, found without making a key.

use std::collections::HashMap;

/// By namespace, then by name.
pub(super) struct Spaces<T>(HashMap<String, HashMap<String, T>>);

impl<T> Default for Spaces<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Spaces<T> {
    pub(super) fn get(&self, namespace: &str, id: &str) -> Option<&T> {
        self.0.get(namespace)?.get(id)
    }

    pub(super) fn insert(&mut self, namespace: &str, id: &str, thing: T) {
        self.0.entry(namespace.to_owned()).or_default().insert(id.to_owned(), thing);
    }

    pub(super) fn remove(&mut self, namespace: &str, id: &str) {
        if let Some(space) = self.0.get_mut(namespace) {
            space.remove(id);
        }
    }

    /// Takes out what is not to stay, and says what that was: namespaces and names.
    pub(super) fn remove_where(&mut self, gone: impl Fn(&T) -> bool) -> Vec<(String, String)> {
        let mut removed = Vec::new();
        for (namespace, space) in &mut self.0 {
            space.retain(|id, thing| {
                let goes = gone(thing);
                if goes {
                    removed.push((namespace.clone(), id.clone()));
                }
                !goes
            });
        }
        self.0.retain(|_, space| !space.is_empty());
        removed
    }

    /// In no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str, &T)> {
        self.0.iter().flat_map(|(namespace, space)| {
            space.iter().map(move |(id, thing)| (namespace.as_str(), id.as_str(), thing))
        })
    }

    /// Where there is something of that name.
    pub(super) fn namespaces_of(&self, id: &str) -> Vec<&str> {
        let mut found: Vec<&str> =
            self.0.iter().filter(|(_, space)| space.contains_key(id)).map(|(namespace, _)| &**namespace).collect();
        found.sort_unstable();
        found
    }
}
