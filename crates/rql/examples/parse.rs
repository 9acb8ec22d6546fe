//! Parses queries and prints them in canonical form, or what is wrong with them.
//!
//!     cargo run -p jackdaw-rql --example parse -- "from Users where Name = 'x'"
//!     cargo run -p jackdaw-rql --example parse < queries.txt      (separated by lines of `---`)

use std::io::Read;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        print(&arguments.join(" "));
        return Ok(());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    text.trim_end().split("\n---\n").for_each(print);
    Ok(())
}

fn print(text: &str) {
    match jackdaw_rql::parse(text) {
        Ok(query) => println!("{query}"),
        Err(error) => println!("error: {error}"),
    }
    println!("---");
}
