//! Questions over the grid's network: asked through a node's handle, answered by its service.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use shoal_api::Ticket;
use shoal_model::units::TimeText;
use shoal_model::{Name, NodeId, Span};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::{Elsewhere, Later, PARTS_WAITING_MAX, Parts, Responder, Unreachable};
use crate::membership::Terms;
use crate::network::quic;
use crate::network::tickets::{NoTicket, Tickets};
use crate::service::{Answers, Service};

/// The most nodes that a question about a job is asked.
const MEMBERS_MAX: usize = 1_000;

/// The other nodes of a grid.
pub struct Peers(pub quic::Handle);

impl Elsewhere for Peers {
    fn members(&self) -> Vec<NodeId> {
        let mut known = self.0.known(MEMBERS_MAX);
        known.retain(|&node| node != self.0.me());
        known
    }

    fn connected(&self) -> Vec<NodeId> {
        self.0.connected()
    }

    fn counts(&self) -> quic::Counts {
        self.0.counts()
    }

    fn has_stopped(&self, node: NodeId) -> bool {
        self.0.has_stopped(node)
    }

    fn ask(&self, to: NodeId, question: Bytes) -> Later<'_, Result<Parts, Unreachable>> {
        Box::pin(async move {
            let unreachable = |error: quic::AskError| Unreachable { node: to, why: error.to_string() };
            let mut answer = self.0.ask(to, question.to_vec()).await.map_err(unreachable)?;
            let (parts, breaker, received) = Parts::breakable();
            tokio::spawn(async move {
                loop {
                    tokio::select! {
                        part = answer.next() => {
                            let bytes = match part {
                                None => return,
                                Some(Ok(bytes)) => bytes,
                                Some(Err(_)) => return breaker.break_off(),
                            };
                            if parts.send(bytes.into()).await.is_err() {
                                return;
                            }
                        }
                        () = parts.closed() => return,
                    }
                }
            });
            Ok(received)
        })
    }
}

impl Tickets for Peers {
    fn issue(&self, lasts: Span, organisation: Option<Name>, admitter: bool) -> Result<Ticket, NoTicket> {
        let own = || self.0.grid().member(self.0.now()).ok()?.organisation;
        let organisation = organisation.or_else(own);
        let terms = Terms { ticket_for: lasts, organisation, admitter, ..Terms::default() };
        let ticket = self.0.ticket(terms).map_err(|error| NoTicket(error.to_string()))?;
        Ok(Ticket { ticket: ticket.to_string(), expires: TimeText(ticket.expires) })
    }
}

/// Answers peers for a service that is made after the network.
pub struct Desk {
    runtime: Handle,
    service: OnceLock<Arc<Service>>,
}

impl Desk {
    /// A desk with nobody behind it, whose answers are made on a runtime.
    pub fn new(runtime: Handle) -> Desk {
        Desk { runtime, service: OnceLock::new() }
    }

    /// From now on this service answers.
    pub fn open(&self, service: Arc<Service>) {
        if self.service.set(service).is_err() {
            tracing::warn!("a second service for one network is not used");
        }
    }
}

impl quic::Responder for Desk {
    fn answer(&self, from: NodeId, question: Vec<u8>, mut reply: quic::ReplySender) {
        let Some(service) = self.service.get() else {
            reply.refuse("this node is about to start; ask again");
            return;
        };
        let answers = Answers(Arc::clone(service));
        self.runtime.spawn(async move {
            let (parts, mut made) = mpsc::channel::<Bytes>(PARTS_WAITING_MAX);
            let pass_on = async move {
                loop {
                    tokio::select! {
                        part = made.recv() => match part {
                            Some(bytes) if reply.send(bytes.to_vec()).await.is_ok() => {}
                            Some(_) => return,
                            None => {
                                let _ = reply.end().await;
                                return;
                            }
                        },
                        // Whoever makes the parts learns it when `made` is dropped.
                        () = reply.gone() => return,
                    }
                }
            };
            tokio::join!(answers.respond(from, question.into(), parts), pass_on);
        });
    }
}
