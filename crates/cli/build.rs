//! Leaves debug information out of the release binary: it is eight times the rest. `KEEP_DEBUG=1 cargo build --release` keeps it, for profiles with lines.

fn main() {
    println!("cargo::rerun-if-env-changed=KEEP_DEBUG");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release && std::env::var_os("KEEP_DEBUG").is_none() {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-debug");
    }
}
