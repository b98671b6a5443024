//! A program that does nothing but parse lines of JSON, with the allocator of the system, as a plain program has it. The files are
//! named on standard input, one a line.

#[path = "../parsing.rs"]
mod parsing;

fn main() -> std::io::Result<()> {
    let files: Vec<String> = std::io::stdin().lines().collect::<Result<_, _>>()?;
    println!("{}", parsing::parse_all(files)?);
    Ok(())
}
