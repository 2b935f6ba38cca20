//! How the program is linked.

fn main() {
    // Lies where it was linked to: a program that could lie anywhere has tens of thousands of addresses put right at each
    // start, which a short command feels, and what holds them is each node's own memory instead of what all share. The
    // price: who finds a way to make this program jump knows where its code is, if not its heap, its stacks and its
    // libraries. What we write forbids `unsafe`; SQLite and the ciphers are where that would have to be found.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
