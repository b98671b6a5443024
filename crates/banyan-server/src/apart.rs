//! A future that is looked at only when something it waits for has happened.
//!
//! A task is woken for all of its futures together, and asks each of them how far it is. Under a request are a dozen, one
//! inside the other, and a connection is woken several times while one request waits for the disk.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// See the module.
pub(crate) struct Apart<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// What the future is woken by.
struct Bell {
    rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F: Future> Apart<F> {
    pub(crate) fn new(future: F) -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: AtomicWaker::new() });
        Self { future: Box::pin(future), waker: Waker::from(Arc::clone(&bell)), bell }
    }
}

impl<F: Future> Future for Apart<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Before the bell is looked at, so that whoever rings it meanwhile wakes the task.
        self.bell.task.register(cx.waker());
        if !self.bell.rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let Self { future, waker, .. } = &mut *self;
        future.as_mut().poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::rc::Rc;

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn a_future_is_looked_at_once_and_then_only_when_it_was_woken() {
        let looks = Rc::new(Cell::new(0));
        let (answer, mut answered) = oneshot::channel();
        let counted = Rc::clone(&looks);
        let mut apart = Apart::new(poll_fn(move |cx| {
            counted.set(counted.get() + 1);
            answered.poll_unpin(cx)
        }));
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(apart.poll_unpin(&mut cx).is_pending());
        }
        assert_eq!(looks.get(), 1);
        answer.send("done").unwrap();
        assert_eq!(apart.poll_unpin(&mut cx), Poll::Ready(Ok("done")));
        assert_eq!(looks.get(), 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_rings_while_it_is_looked_at_is_heard() {
        for _ in 0..2_000 {
            let (answer, answered) = oneshot::channel();
            let told = tokio::spawn(async move { answer.send(1).unwrap() });
            assert_eq!(Apart::new(answered).await, Ok(1));
            told.await.unwrap();
        }
    }

    #[tokio::test]
    async fn the_task_that_looked_last_is_woken() {
        let (answer, answered) = oneshot::channel();
        let mut apart = Apart::new(answered);
        assert!(apart.poll_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
        let elsewhere = tokio::spawn(apart);
        tokio::task::yield_now().await;
        answer.send(2).unwrap();
        assert_eq!(elsewhere.await.unwrap(), Ok(2));
    }
}
