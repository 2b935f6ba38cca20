//! What is to be done about the files of a task, as it is on disk.

use minicbor::{Decode, Encode};
use shoal_model::NodeId;
use shoal_model::job::{Pattern, Staged};

/// What is to be done about the files of a task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Errand {
    /// Who has the inputs, and is to have the outputs.
    #[n(0)]
    pub owner: NodeId,
    /// What is to be here before it starts.
    #[n(1)]
    pub inputs: Vec<Staged>,
    /// What is kept of it.
    #[n(2)]
    pub outputs: Vec<Pattern>,
}

impl Errand {
    pub fn bytes(&self) -> Vec<u8> {
        minicbor::to_vec(self).expect("memory takes what is written")
    }

    pub fn read(bytes: &[u8]) -> Option<Errand> {
        minicbor::decode(bytes).ok()
    }
}
