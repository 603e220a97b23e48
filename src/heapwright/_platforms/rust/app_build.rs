//! Compiles the heap for the target of the crate.

fn main() {
    for file in ["app_heap.c", "app_heap.h", "app_rust.c"] {
        println!("cargo:rerun-if-changed={file}");
    }
    cc::Build::new()
        .std("c11")
        .opt_level_str(&level())
        .files(["app_heap.c", "app_rust.c"])
        .compile("app_heap");
}

/// A debug build is of the program, not of its heap.
fn level() -> String {
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    if level == "0" {
        "2".into()
    } else {
        level
    }
}
