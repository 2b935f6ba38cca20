//! Questions: something asked of one node and answered in parts, for logs and status through any node.
//!
//! ```text
//! asker                              responder
//!    │── Question ──────────────────────▶│  one stream for each
//!    │◀── Chunk, Chunk … ────────────────│  as fast as the asker reads
//!    │◀── End ───────────────────────────│  or Refused; without either the answer broke off
//!    ╳   dropped: the responder hears that nobody listens any more
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use iroh::endpoint::{RecvStream, SendStream, VarInt};
use shoal_model::NodeId;
use tokio::sync::mpsc;

use super::counts::add;
use super::hello::{ReadFrame, Reason, read_frame};
use super::hub::{CONNECT_WITHIN, Hub};
use super::link::Link;
use super::peer::Peer;
use crate::network::wire::words::{Chunk, End, Question, Refused, Word};

/// Bytes of a question, at most.
pub const QUESTION_MAX: usize = 1 << 20;
/// Bytes of one part of an answer, at most.
pub const CHUNK_MAX: usize = 64 << 10;
/// Questions of one peer that are answered at once, at most.
pub const QUESTIONS_MAX: usize = 16;
/// Parts of an answer that wait to be sent, at most.
const PARTS_WAITING: usize = 4;
/// What the CBOR around bytes takes, at most.
const AROUND: usize = 16;
/// How long a connection to whom is asked may take, with the search for where it is.
const REACH_WITHIN: Duration = Duration::from_secs(9);

/// Answers questions of peers.
pub trait Responder: Send + Sync {
    /// Answers through `reply`, now or later; must not wait. `from` is whoever asks, and known to be a member.
    fn answer(&self, from: NodeId, question: Vec<u8>, reply: ReplySender);
}

/// A responder that knows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAnswers;

impl Responder for NoAnswers {
    fn answer(&self, _from: NodeId, _question: Vec<u8>, reply: ReplySender) {
        reply.refuse("this node answers no questions");
    }
}

/// The way back to who asked. Dropped before its end, it tells that the answer broke off.
#[derive(Debug)]
pub struct ReplySender {
    parts: mpsc::Sender<Part>,
}

#[derive(Debug)]
enum Part {
    Chunk(Vec<u8>),
    End,
    Refused(String),
}

/// Who asked does not listen any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("who asked does not listen any more")]
pub struct Gone;

impl ReplySender {
    /// Sends a part of the answer, in pieces if it is long; waits until there is room.
    pub async fn send(&mut self, bytes: Vec<u8>) -> Result<(), Gone> {
        for piece in bytes.chunks(CHUNK_MAX) {
            self.parts.send(Part::Chunk(piece.to_vec())).await.map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// Sends a part of the answer from a thread that may wait.
    pub fn blocking_send(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        for piece in bytes.chunks(CHUNK_MAX) {
            self.parts.blocking_send(Part::Chunk(piece.to_vec())).map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// Ends the answer.
    pub async fn end(self) -> Result<(), Gone> {
        self.parts.send(Part::End).await.map_err(|_| Gone)
    }

    /// Ends the answer from a thread that may wait.
    pub fn blocking_end(self) -> Result<(), Gone> {
        self.parts.blocking_send(Part::End).map_err(|_| Gone)
    }

    /// Gives no answer, and says why.
    pub fn refuse(self, why: impl Into<String>) {
        // Nothing waits before the first part, so there is room; else it just breaks off.
        let _ = self.parts.try_send(Part::Refused(why.into()));
    }

    /// Whether nobody listens any more.
    pub fn is_gone(&self) -> bool {
        self.parts.is_closed()
    }

    /// Waits until nobody listens any more.
    pub async fn gone(&self) {
        self.parts.closed().await;
    }
}

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Too long.
    #[error("a question of {0} bytes, at most {QUESTION_MAX}")]
    TooLarge(usize),
    /// Not to be reached.
    #[error("node {node} cannot be reached: {why}")]
    Unreachable {
        /// Who.
        node: NodeId,
        /// Why.
        why: String,
    },
    /// The other side does not answer this.
    #[error("node {node} does not answer: {why}")]
    Refused {
        /// Who.
        node: NodeId,
        /// Why.
        why: String,
    },
    /// It broke off.
    #[error("the answer of node {0} broke off; ask again")]
    BrokenOff(NodeId),
    /// What came makes no sense.
    #[error("the answer of node {node} makes no sense: {what}")]
    Garbled {
        /// Who.
        node: NodeId,
        /// What came.
        what: String,
    },
}

/// An answer, part by part. Dropped, it tells the other side to stop.
pub struct Answer {
    node: NodeId,
    source: Source,
    over: bool,
}

enum Source {
    Local(mpsc::Receiver<Part>),
    Remote { stream: RecvStream, _open: Open },
}

/// A question that is open on a connection, which is not closed under it.
struct Open(Arc<Link>);

impl Open {
    fn new(link: &Arc<Link>) -> Open {
        link.questions.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(link))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.spoke();
        self.0.questions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Answer {
    /// The next part, of at most [`CHUNK_MAX`] bytes; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, AskError>> {
        if self.over {
            return None;
        }
        let part = match &mut self.source {
            Source::Local(parts) => parts.recv().await.ok_or(AskError::BrokenOff(self.node)),
            Source::Remote { stream, .. } => next_part(self.node, stream).await,
        };
        match part {
            Ok(Part::Chunk(bytes)) => Some(Ok(bytes)),
            Ok(Part::End) => {
                self.over = true;
                None
            }
            Ok(Part::Refused(why)) => {
                self.over = true;
                Some(Err(AskError::Refused { node: self.node, why }))
            }
            Err(error) => {
                self.over = true;
                Some(Err(error))
            }
        }
    }

    /// The whole answer, if it has at most so many bytes.
    pub async fn whole(mut self, most: usize) -> Result<Vec<u8>, AskError> {
        let mut whole = Vec::new();
        while let Some(part) = self.next().await {
            whole.extend(part?);
            if whole.len() > most {
                let what = format!("more than {most} bytes");
                return Err(AskError::Garbled { node: self.node, what });
            }
        }
        Ok(whole)
    }
}

async fn next_part(node: NodeId, stream: &mut RecvStream) -> Result<Part, AskError> {
    let garbled = |what: String| AskError::Garbled { node, what };
    let frame = match read_frame(stream, CHUNK_MAX + AROUND).await {
        Ok(frame) => frame,
        Err(ReadFrame::Over) => return Err(AskError::BrokenOff(node)),
        Err(ReadFrame::Garbled(what)) => return Err(garbled(what)),
    };
    let read = |what: crate::network::wire::Unread| garbled(what.to_string());
    match frame.kind {
        Chunk::KIND => Ok(Part::Chunk(Chunk::read(&frame.payload).map_err(read)?.0.into())),
        End::KIND => Ok(Part::End),
        Refused::KIND => Ok(Part::Refused(Refused::read(&frame.payload).map_err(read)?.text)),
        kind => Err(garbled(format!("a frame of kind {kind:#06x}"))),
    }
}

/// Asks a node something.
pub(super) async fn ask(hub: &Arc<Hub>, to: NodeId, question: Vec<u8>) -> Result<Answer, AskError> {
    if question.len() > QUESTION_MAX {
        return Err(AskError::TooLarge(question.len()));
    }
    add(&hub.counts.asked, 1);
    if to == hub.me {
        let (sender, parts) = mpsc::channel(PARTS_WAITING);
        hub.responder.answer(to, question, ReplySender { parts: sender });
        return Ok(Answer { node: to, source: Source::Local(parts), over: false });
    }
    let unreachable = |why: String| AskError::Unreachable { node: to, why };
    let peer = hub.peer(to).ok_or_else(|| unreachable("too many peers are spoken to".to_owned()))?;
    let link = peer.reach(REACH_WITHIN).await.map_err(unreachable)?;
    let open = Open::new(&link);
    link.spoke();
    let _ = link.waits_since.compare_exchange(0, link.age(), Ordering::Relaxed, Ordering::Relaxed);
    let asking = async {
        let (mut send, receive) =
            link.conn.open_bi().await.map_err(|error| unreachable(error.to_string()))?;
        send.write_all(&Question(question.into()).frame())
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        let _ = send.finish();
        Ok(receive)
    };
    let receive = match tokio::time::timeout(CONNECT_WITHIN, asking).await {
        Ok(asked) => asked?,
        Err(_) => return Err(unreachable("too many questions are open".to_owned())),
    };
    Ok(Answer { node: to, source: Source::Remote { stream: receive, _open: open }, over: false })
}

/// Hears the questions of a peer until the connection ends.
pub(super) async fn hear(hub: &Arc<Hub>, peer: &Arc<Peer>, link: &Arc<Link>) {
    let answering = Arc::new(AtomicUsize::new(0));
    while let Ok((send, receive)) = link.conn.accept_bi().await {
        let (hub, from, open) = (Arc::clone(hub), peer.node, Open::new(link));
        let answering = Arc::clone(&answering);
        tokio::spawn(async move {
            let number = answering.fetch_add(1, Ordering::Relaxed);
            if number < QUESTIONS_MAX {
                answer(&hub, from, send, receive).await;
            } else {
                refuse(send, &format!("{QUESTIONS_MAX} questions are open; try again later")).await;
            }
            answering.fetch_sub(1, Ordering::Relaxed);
            drop(open);
        });
    }
}

async fn answer(hub: &Arc<Hub>, from: NodeId, mut send: SendStream, mut receive: RecvStream) {
    let read = tokio::time::timeout(CONNECT_WITHIN, read_frame(&mut receive, QUESTION_MAX + AROUND)).await;
    let question = match read {
        Ok(Ok(frame)) if frame.kind == Question::KIND => Question::read(&frame.payload),
        Ok(Ok(_)) | Ok(Err(ReadFrame::Garbled(_))) => {
            return refuse(send, "not a question, or too long a one").await;
        }
        Ok(Err(ReadFrame::Over)) | Err(_) => return,
    };
    let Ok(Question(question)) = question else {
        return refuse(send, "a question that cannot be read").await;
    };
    add(&hub.counts.answered, 1);
    let (sender, mut parts) = mpsc::channel(PARTS_WAITING);
    hub.responder.answer(from, question.into(), ReplySender { parts: sender });
    let stopped = send.stopped();
    tokio::pin!(stopped);
    loop {
        let part = tokio::select! {
            part = parts.recv() => part,
            _ = &mut stopped => return,
        };
        let frame = match part {
            Some(Part::Chunk(bytes)) => Chunk(bytes.into()).frame(),
            Some(Part::End) => {
                if send.write_all(&End {}.frame()).await.is_ok() {
                    let _ = send.finish();
                }
                return;
            }
            Some(Part::Refused(why)) => return refuse(send, &why).await,
            None => {
                let _ = send.reset(VarInt::from_u32(u32::from(Reason::Other.code())));
                return;
            }
        };
        if send.write_all(&frame).await.is_err() {
            return;
        }
    }
}

async fn refuse(mut send: SendStream, why: &str) {
    let said = Refused { code: Reason::Other.code(), text: why.chars().take(1_000).collect() };
    if send.write_all(&said.frame()).await.is_ok() {
        let _ = send.finish();
    }
}
