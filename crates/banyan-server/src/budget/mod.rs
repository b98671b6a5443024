//! Whole-server budgets: how much of one resource all connections together may hold, and how it is shared.
//!
//! A budget has a limit, and every use of it is a [`Lease`] of a [`Holder`]: a key, or an address while there is no key.
//! Dropping the lease gives it back. The rule, which `docs/decisions/budgets.md` explains:
//!
//! - A holder always gets up to half of the limit, as long as there is room.
//! - Beyond half it gets more only while an eighth of the limit stays free. It is refused at once while another holder, within
//!   its half, waits or was refused during the last [`UNMET`].
//! - While a holder within its half waits for room, leases that can be revoked are taken from a holder beyond its half.

mod holder;
mod lease;
mod refusal;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) use holder::{Holder, Peer};
pub(crate) use lease::{Lease, SharedTexts, charged, shared_text};
pub(crate) use refusal::{Reason, Refusal};

/// For how long a refused request of one holder keeps others from going beyond their half.
const UNMET: Duration = Duration::from_secs(10);

/// Maximum time that a request waits for room.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of requests that wait for room in one budget. Further ones are refused at once.
const MAX_WAITING: usize = 64;

/// What a budget is of, for refusals and metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    /// The label of its metrics.
    pub(crate) label: &'static str,
    /// The name of the setting that limits it.
    pub(crate) setting: &'static str,
    /// What is counted, in the plural.
    pub(crate) what: &'static str,
    /// The code of a refusal for want of room.
    pub(crate) code: &'static str,
}

/// How often each kind of refusal happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    /// No room.
    pub(crate) full: Counter,
    /// The holder has more than half.
    pub(crate) share: Counter,
    /// A lease was revoked in favour of another holder.
    pub(crate) revoked: Counter,
}

/// See the module.
pub(crate) struct Budget {
    subject: Subject,
    limit: u64,
    state: Mutex<State>,
    /// Whether less than an eighth is free. A hint that costs one load.
    pressed: AtomicBool,
    released: Notify,
    refusals: Refusals,
}

#[derive(Default)]
struct State {
    used: u64,
    holders: HashMap<Holder, Usage>,
    /// How many wait for room within their half, and how many wait at all.
    waiting: usize,
    all_waiting: usize,
    /// The last refusal of a holder within its half.
    unmet: Option<(Holder, Instant)>,
    next_lease: u64,
}

#[derive(Default)]
struct Usage {
    used: u64,
    waiting: usize,
    /// Leases that can be revoked, the oldest first.
    revocable: BTreeMap<u64, Revocable>,
}

/// Why the rule does not allow something now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denial {
    /// The holder is within its half, and there is no room.
    NoRoom,
    /// The holder is beyond its half, and there is no room.
    Exhausted,
    /// The holder is beyond its half, and the rest is kept free for others.
    Reserved,
    /// The holder is beyond its half, and others want it.
    Wanted,
}

struct Revocable {
    amount: u64,
    revoked: Arc<Notify>,
}

impl Budget {
    pub(crate) fn new(subject: Subject, limit: u64, refusals: Refusals) -> Arc<Self> {
        Arc::new(Self {
            subject,
            limit: limit.max(1),
            state: Mutex::default(),
            pressed: AtomicBool::new(false),
            released: Notify::new(),
            refusals,
        })
    }

    /// The label of its metrics.
    pub(crate) fn label(&self) -> &'static str {
        self.subject.label
    }

    /// How much is used.
    pub(crate) fn used(&self) -> u64 {
        self.lock().used
    }

    /// How much may be used.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether less than an eighth is free.
    pub(crate) fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    /// Takes an amount if the rule allows it now.
    pub(crate) fn try_take(self: &Arc<Self>, holder: Holder, amount: u64) -> Result<Lease, Refusal> {
        self.try_add(&holder, amount)?;
        Ok(Lease::new(self, holder, amount))
    }

    /// Takes an amount, waiting up to [`PATIENCE`] for room. Cancel-safe.
    pub(crate) async fn take(self: &Arc<Self>, holder: Holder, amount: u64) -> Result<Lease, Refusal> {
        self.add(&holder, amount).await?;
        Ok(Lease::new(self, holder, amount))
    }

    /// Takes an amount, waiting for room for as long as the caller says. Cancel-safe.
    pub(crate) async fn take_within(
        self: &Arc<Self>,
        holder: Holder,
        amount: u64,
        patience: Duration,
    ) -> Result<Lease, Refusal> {
        self.add_within(&holder, amount, patience).await?;
        Ok(Lease::new(self, holder, amount))
    }

    /// Takes an amount that is in use already, also beyond the limit. Others wait until it is given back.
    pub(crate) fn take_regardless(self: &Arc<Self>, holder: Holder, amount: u64) -> Lease {
        let mut state = self.lock();
        state.add(&holder, amount);
        self.set_pressed(&state);
        drop(state);
        Lease::new(self, holder, amount)
    }

    fn try_add(&self, holder: &Holder, amount: u64) -> Result<(), Refusal> {
        let mut state = self.lock();
        let allowed = state.allows(holder, amount, self.limit);
        match allowed {
            Ok(()) => {
                state.add(holder, amount);
                self.set_pressed(&state);
                Ok(())
            }
            Err(denial) => Err(self.refuse(&mut state, holder, denial)),
        }
    }

    /// Adds to what a holder has, waiting up to [`PATIENCE`] for room.
    async fn add(&self, holder: &Holder, amount: u64) -> Result<(), Refusal> {
        self.add_within(holder, amount, PATIENCE).await
    }

    async fn add_within(&self, holder: &Holder, amount: u64, patience: Duration) -> Result<(), Refusal> {
        let deadline = Instant::now() + patience;
        let mut waiting: Option<Waiting<'_>> = None;
        loop {
            let mut released = std::pin::pin!(self.released.notified());
            // From here on a release is not missed.
            released.as_mut().enable();
            let mut began = None;
            {
                let mut state = self.lock();
                match state.allows(holder, amount, self.limit) {
                    Ok(()) => {
                        state.add(holder, amount);
                        self.set_pressed(&state);
                        return Ok(());
                    }
                    Err(denial) => {
                        let may_wait = waiting.is_some() || state.all_waiting < MAX_WAITING;
                        if denial == Denial::Wanted || !may_wait || Instant::now() >= deadline {
                            let refusal = self.refuse(&mut state, holder, denial);
                            drop(state);
                            return Err(refusal);
                        }
                        if denial == Denial::NoRoom {
                            let revoked = state.revoke_from_the_greediest(holder, amount, self.limit);
                            self.refusals.revoked.inc_by(revoked);
                        }
                        if waiting.as_ref().is_none_or(|waiting| waiting.denial != denial) {
                            state.begin_waiting(holder, denial);
                            began = Some(denial);
                        }
                    }
                }
            }
            if let Some(denial) = began {
                // Replacing ends the former wait.
                waiting = Some(Waiting { budget: self, holder: holder.clone(), denial });
            }
            let _ = tokio::time::timeout_at(deadline, released).await;
        }
    }

    fn refuse(&self, state: &mut State, holder: &Holder, denial: Denial) -> Refusal {
        let reason = match denial {
            Denial::NoRoom => {
                state.unmet = Some((holder.clone(), Instant::now()));
                self.refusals.full.inc();
                Reason::Full
            }
            Denial::Exhausted => {
                self.refusals.full.inc();
                Reason::Full
            }
            Denial::Reserved | Denial::Wanted => {
                self.refusals.share.inc();
                Reason::Share
            }
        };
        self.refusal(holder, reason)
    }

    fn refusal(&self, holder: &Holder, reason: Reason) -> Refusal {
        Refusal { subject: self.subject, reason, limit: self.limit, by_key: matches!(holder, Holder::Key(_)) }
    }

    fn give_back(&self, holder: &Holder, amount: u64) {
        let mut state = self.lock();
        state.remove(holder, amount);
        self.set_pressed(&state);
        let anyone = state.all_waiting > 0;
        drop(state);
        if anyone {
            self.released.notify_waiters();
        }
    }

    fn set_pressed(&self, state: &State) {
        self.pressed.store(state.used > self.limit - self.limit / 8, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The rule of the module.
    fn allows(&self, holder: &Holder, amount: u64, limit: u64) -> Result<(), Denial> {
        let own = self.holders.get(holder);
        let (used, waiting) = own.map_or((0, 0), |own| (own.used, own.waiting));
        let within_half = used + amount <= limit / 2;
        let fits = self.used + amount <= limit;
        // What is larger than everything that there is gets it alone.
        if (within_half && fits) || self.used == 0 {
            return Ok(());
        }
        let unmet = self.unmet.as_ref().is_some_and(|(other, at)| other != holder && at.elapsed() < UNMET);
        let others_want = self.waiting > waiting || unmet;
        match () {
            () if within_half => Err(Denial::NoRoom),
            () if others_want => Err(Denial::Wanted),
            () if !fits => Err(Denial::Exhausted),
            () if self.used + amount > limit - limit / 8 => Err(Denial::Reserved),
            () => Ok(()),
        }
    }

    fn add(&mut self, holder: &Holder, amount: u64) {
        self.used += amount;
        match self.holders.get_mut(holder) {
            Some(usage) => usage.used += amount,
            None => drop(self.holders.insert(holder.clone(), Usage { used: amount, ..Usage::default() })),
        }
    }

    fn remove(&mut self, holder: &Holder, amount: u64) {
        self.used = self.used.saturating_sub(amount);
        if let Some(usage) = self.holders.get_mut(holder) {
            usage.used = usage.used.saturating_sub(amount);
        }
        self.forget_if_idle(holder);
    }

    fn begin_waiting(&mut self, holder: &Holder, denial: Denial) {
        self.all_waiting += 1;
        if denial == Denial::NoRoom {
            self.waiting += 1;
            self.holders.entry(holder.clone()).or_default().waiting += 1;
        }
    }

    fn end_waiting(&mut self, holder: &Holder, denial: Denial) {
        self.all_waiting = self.all_waiting.saturating_sub(1);
        if denial != Denial::NoRoom {
            return;
        }
        self.waiting = self.waiting.saturating_sub(1);
        if let Some(usage) = self.holders.get_mut(holder) {
            usage.waiting = usage.waiting.saturating_sub(1);
        }
        self.forget_if_idle(holder);
    }

    fn forget_if_idle(&mut self, holder: &Holder) {
        let idle = self.holders.get(holder).is_some_and(|usage| usage.used == 0 && usage.waiting == 0);
        if idle {
            self.holders.remove(holder);
        }
    }

    /// Revokes the newest leases of the holder that has most, until enough is free for another one or it is down to its half.
    /// Returns how many were revoked.
    fn revoke_from_the_greediest(&mut self, holder: &Holder, amount: u64, limit: u64) -> u64 {
        let missing = (self.used + amount).saturating_sub(limit);
        let greediest =
            self.holders.iter_mut().filter(|(other, _)| *other != holder).max_by_key(|(_, it)| it.used);
        let Some((_, greediest)) = greediest else { return 0 };
        let (mut revoked, mut count) = (0, 0);
        while revoked < missing && (greediest.used - revoked) * 2 > limit {
            let Some((_, lease)) = greediest.revocable.pop_last() else { break };
            lease.revoked.notify_one();
            revoked += lease.amount;
            count += 1;
        }
        count
    }
}

/// A request that waits for room, until this is dropped.
struct Waiting<'a> {
    budget: &'a Budget,
    holder: Holder,
    denial: Denial,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.budget.lock().end_waiting(&self.holder, self.denial);
    }
}
