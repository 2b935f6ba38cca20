//! All that a node decides.
