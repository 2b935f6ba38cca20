//! What the HTTP interface says.
