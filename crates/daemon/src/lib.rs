//! Drives nodes in real time.
