//! The parts of an answer on their way, which may break off.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task;

use axum::body::Bytes;
use tokio::sync::mpsc;
use tokio_stream::Stream;

use super::PARTS_WAITING_MAX;

/// The parts of an answer as they come. As a stream it ends with an error if it broke off.
#[derive(Debug)]
pub struct Parts {
    coming: mpsc::Receiver<Bytes>,
    broke_off: Arc<AtomicBool>,
}

/// Says that the parts that were sent are not all.
#[derive(Clone, Debug)]
pub struct Breaker(Arc<AtomicBool>);

/// Who answered is gone, and so is the rest of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer broke off")]
pub struct BrokeOff;

impl Breaker {
    /// There is more, but it does not come; said before the sender of parts is dropped.
    pub fn break_off(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Parts {
    /// Parts that may break off, as long as they are sent.
    pub fn breakable() -> (mpsc::Sender<Bytes>, Breaker, Parts) {
        let (sender, coming) = mpsc::channel(PARTS_WAITING_MAX);
        let broke_off = Arc::new(AtomicBool::new(false));
        (sender, Breaker(Arc::clone(&broke_off)), Parts { coming, broke_off })
    }

    /// The next one; none at the end.
    pub async fn recv(&mut self) -> Option<Bytes> {
        self.coming.recv().await
    }

    /// The next one, if it is there.
    pub fn try_recv(&mut self) -> Option<Bytes> {
        self.coming.try_recv().ok()
    }

    /// After the end: whether it came too soon.
    pub fn broke_off(&self) -> bool {
        self.broke_off.load(Ordering::SeqCst)
    }
}

impl From<mpsc::Receiver<Bytes>> for Parts {
    fn from(coming: mpsc::Receiver<Bytes>) -> Parts {
        Parts { coming, broke_off: Arc::default() }
    }
}

impl Stream for Parts {
    type Item = Result<Bytes, BrokeOff>;

    fn poll_next(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> task::Poll<Option<Self::Item>> {
        let parts = self.get_mut();
        let next = task::ready!(parts.coming.poll_recv(context));
        let broke_off = next.is_none() && parts.broke_off.swap(false, Ordering::SeqCst);
        task::Poll::Ready(if broke_off { Some(Err(BrokeOff)) } else { next.map(Ok) })
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test]
    async fn answer_that_broke_off_ends_with_an_error_once() {
        for broken in [false, true] {
            let (sender, breaker, mut parts) = Parts::breakable();
            sender.send(Bytes::from_static(b"some")).await.unwrap();
            if broken {
                breaker.break_off();
            }
            drop(sender);
            assert_eq!(parts.next().await, Some(Ok(Bytes::from_static(b"some"))));
            assert_eq!(parts.broke_off(), broken);
            assert_eq!(parts.next().await, broken.then_some(Err(BrokeOff)));
            assert_eq!(parts.next().await, None);
        }
    }
}
