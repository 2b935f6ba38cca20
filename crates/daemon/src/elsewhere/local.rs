//! An exchange: carries questions between nodes of one process.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, Weak};

use axum::body::Bytes;
use shoal_model::NodeId;
use tokio::sync::mpsc;

use super::{Elsewhere, Later, PARTS_WAITING_MAX, Parts, Responder, Unreachable};

/// Connects the nodes of one process.
#[derive(Clone, Default)]
pub struct Exchange {
    nodes: Arc<RwLock<BTreeMap<NodeId, Weak<dyn Responder>>>>,
}

/// A node's way into an exchange.
pub struct Line {
    me: NodeId,
    exchange: Exchange,
}

impl Exchange {
    /// Has questions to a node answered; those to one that is gone are not.
    pub fn connect(&self, node: NodeId, responder: Weak<dyn Responder>) {
        self.nodes.write().expect(UNPOISONED).insert(node, responder);
    }

    /// The way of a node to the others.
    pub fn line(&self, me: NodeId) -> Line {
        Line { me, exchange: self.clone() }
    }
}

impl Elsewhere for Line {
    fn members(&self) -> Vec<NodeId> {
        let nodes = self.exchange.nodes.read().expect(UNPOISONED);
        nodes.keys().copied().filter(|node| *node != self.me).collect()
    }

    fn ask(&self, to: NodeId, question: Bytes) -> Later<'_, Result<Parts, Unreachable>> {
        let nodes = self.exchange.nodes.read().expect(UNPOISONED);
        let responder = nodes.get(&to).and_then(Weak::upgrade);
        let from = self.me;
        Box::pin(async move {
            let gone = || Unreachable { node: to, why: "it is not there".to_owned() };
            let responder = responder.ok_or_else(gone)?;
            let (answer, parts) = mpsc::channel(PARTS_WAITING_MAX);
            tokio::spawn(async move { responder.respond(from, question, answer).await });
            Ok(parts.into())
        })
    }
}

const UNPOISONED: &str = "nothing panics while it holds the nodes";
