//! Bodies that come too slowly are cut.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

/// The longest that a body may pause.
pub const BODY_PAUSE_MAX: Duration = Duration::from_secs(10);
/// What is left of a body's time grows by this for each mebibyte that came, so that who drips bytes gains nothing.
const PER_MEBIBYTE: Duration = Duration::from_secs(2);

/// A body that must keep coming.
pub(super) struct Paced {
    body: Body,
    came: u64,
    began: Instant,
    pause: Pin<Box<Sleep>>,
    late: Arc<AtomicBool>,
}

/// It did not.
#[derive(Debug, thiserror::Error)]
#[error("the request's body came too slowly")]
struct TooSlow;

impl Paced {
    /// The body, and a flag that is set when it was cut.
    pub fn new(body: Body) -> (Paced, Arc<AtomicBool>) {
        let late = Arc::new(AtomicBool::new(false));
        let pause = Box::pin(tokio::time::sleep(BODY_PAUSE_MAX));
        let paced = Paced { body, came: 0, began: Instant::now(), pause, late: Arc::clone(&late) };
        (paced, late)
    }

    /// Bytes that come one by one do not put the end off for ever.
    fn deadline(&self) -> Instant {
        let mebibytes = u32::try_from(self.came >> 20).unwrap_or(u32::MAX);
        self.began + BODY_PAUSE_MAX * 2 + PER_MEBIBYTE.saturating_mul(mebibytes)
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            if let Some(Ok(frame)) = &frame {
                this.came += frame.data_ref().map_or(0, |data| data.len() as u64);
                let end = (Instant::now() + BODY_PAUSE_MAX).min(this.deadline());
                this.pause.as_mut().reset(end);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match this.pause.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                this.late.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(TooSlow.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
