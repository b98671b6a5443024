//! A part of a budget in use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::Notify;

use super::{Budget, Holder, Reason, Refusal, Revocable};

/// A part of a budget in use; given back when it is dropped.
pub(crate) struct Lease {
    budget: Arc<Budget>,
    holder: Holder,
    amount: u64,
    revocable: Option<(u64, Arc<Notify>)>,
}

impl Lease {
    pub(super) fn new(budget: &Arc<Budget>, holder: Holder, amount: u64) -> Self {
        Self { budget: Arc::clone(budget), holder, amount, revocable: None }
    }

    /// Takes more, waiting for room as [`Budget::take`] does. Cancel-safe.
    pub(crate) async fn grow(&mut self, more: u64) -> Result<(), Refusal> {
        self.budget.add(&self.holder, more).await?;
        self.grown(more);
        Ok(())
    }

    /// Takes more if the rule allows it now.
    pub(crate) fn try_grow(&mut self, more: u64) -> Result<(), Refusal> {
        self.budget.try_add(&self.holder, more)?;
        self.grown(more);
        Ok(())
    }

    fn grown(&mut self, more: u64) {
        self.amount += more;
        if let Some((id, _)) = &self.revocable
            && let Some(usage) = self.budget.lock().holders.get_mut(&self.holder)
            && let Some(lease) = usage.revocable.get_mut(id)
        {
            lease.amount = self.amount;
        }
    }

    /// How much it is.
    pub(crate) fn amount(&self) -> u64 {
        self.amount
    }

    /// Accounts it to another holder. On a refusal it stays where it is.
    pub(super) fn move_to(&mut self, holder: Holder) -> Result<(), Refusal> {
        let mut state = self.budget.lock();
        state.remove(&self.holder, self.amount);
        if let Err(denial) = state.allows(&holder, self.amount, self.budget.limit) {
            state.add(&self.holder, self.amount);
            return Err(self.budget.refuse(&mut state, &holder, denial));
        }
        state.add(&holder, self.amount);
        drop(state);
        self.holder = holder;
        Ok(())
    }

    /// Lets other holders revoke it from now on. The owner of the lease watches the signal, and drops the lease soon after.
    pub(crate) fn allow_revoking(&mut self) -> Arc<Notify> {
        if let Some((_, revoked)) = &self.revocable {
            return Arc::clone(revoked);
        }
        let mut state = self.budget.lock();
        let id = state.next_lease;
        state.next_lease += 1;
        let revoked = Arc::new(Notify::new());
        if let Some(usage) = state.holders.get_mut(&self.holder) {
            usage.revocable.insert(id, Revocable { amount: self.amount, revoked: Arc::clone(&revoked) });
        }
        drop(state);
        self.revocable = Some((id, Arc::clone(&revoked)));
        revoked
    }

    /// What to answer when it was revoked.
    pub(crate) fn revocation(&self) -> Refusal {
        self.budget.refusal(&self.holder, Reason::Share)
    }

    /// Keeps it from being revoked.
    pub(crate) fn forbid_revoking(&mut self) {
        if let Some((id, _)) = self.revocable.take()
            && let Some(usage) = self.budget.lock().holders.get_mut(&self.holder)
        {
            usage.revocable.remove(&id);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.forbid_revoking();
        self.budget.give_back(&self.holder, self.amount);
    }
}

/// Bytes that keep a lease until the last copy of them is dropped.
pub(crate) fn charged(bytes: Bytes, lease: Lease) -> Bytes {
    Bytes::from_owner(Charged { bytes, _lease: lease })
}

struct Charged<L> {
    bytes: Bytes,
    _lease: L,
}

impl<L> AsRef<[u8]> for Charged<L> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Leases of texts that several connections send at a time, by where the text is. One that is sent to many is held once, and
/// accounted once.
#[derive(Default)]
pub(crate) struct SharedTexts(Mutex<HashMap<(usize, usize), Weak<Lease>>>);

/// The text, accounted to its first sender. Waits for room as [`Budget::take`] does.
pub(crate) async fn shared_text(
    texts: &SharedTexts,
    budget: &Arc<Budget>,
    holder: Holder,
    bytes: Bytes,
) -> Result<Bytes, Refusal> {
    let key = (bytes.as_ptr() as usize, bytes.len());
    let known = |texts: &SharedTexts| {
        let mut all = texts.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lease = all.get(&key).and_then(Weak::upgrade);
        if lease.is_none() {
            all.retain(|_, lease| lease.strong_count() > 0);
        }
        lease
    };
    let lease = match known(texts) {
        Some(lease) => lease,
        None => {
            // Half of the limit is within everybody's share, so no text is too large to be sent at all.
            let amount = (bytes.len() as u64).min(budget.limit() / 2);
            let lease = Arc::new(budget.take(holder, amount).await?);
            let mut all = texts.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(key, Arc::downgrade(&lease));
            lease
        }
    };
    Ok(Bytes::from_owner(Charged { bytes, _lease: lease }))
}
