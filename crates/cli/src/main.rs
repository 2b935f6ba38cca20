//! The program `shoal`.

fn main() {}
