//! The service without HTTP: several nodes of one process that answer for each other.

mod elsewhere;
