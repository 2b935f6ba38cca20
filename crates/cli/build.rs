//! How the program is linked.

fn main() {
    // Lies where it was linked to: a program that could lie anywhere has 73,000 addresses put right at each start, half of
    // what a short command takes, and twice a megabyte of each node's memory is its own for that alone. The price: who finds
    // a way to make this program jump knows where its code is, if not its heap, its stacks and its libraries. What we write
    // forbids `unsafe`; SQLite and the ciphers are where that would have to be found.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
