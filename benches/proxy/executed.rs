//! What a program executes from a start to an end, a few calls of each kind in between: functions, and the parts of functions
//! that lie apart from them, by the names that a linker has for them.
//!
//! A profile names a part by its function, so that its addresses are looked up in the table of symbols.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::process::Command;

use crate::counted::profiles;
use crate::production::Extent;
use crate::running::Files;
use crate::work::HOT;

/// Each instruction has its address, and each name and number stands in full.
const ADDRESSES: [&str; 3] = [
    "--dump-instr=yes",
    "--compress-pos=no",
    "--compress-strings=no",
];

/// Names by the address where what they name begins.
type Symbols = BTreeMap<u64, Vec<String>>;

/// Prints the names.
pub(crate) fn print(program: &Path) -> io::Result<()> {
    executed(program)?
        .iter()
        .for_each(|name| println!("{name}"));
    Ok(())
}

fn executed(program: &Path) -> io::Result<BTreeSet<String>> {
    let symbols = symbols(program)?;
    let mut names = BTreeSet::new();
    for work in HOT {
        // What it does by itself, as looking at its files, it has done when it has read them again.
        let life = (100, Files::Change);
        for profile in profiles(&ADDRESSES, program, (&work, &Extent::PRODUCTION), life)? {
            for address in addresses(&profile, program) {
                let found = symbols.range(..=address).next_back();
                names.extend(
                    found
                        .into_iter()
                        .flat_map(|(_, names)| names.iter().cloned()),
                );
            }
        }
    }
    Ok(names)
}

/// Where a profile has instructions of the program, and not of a library.
fn addresses(profile: &str, program: &Path) -> BTreeSet<u64> {
    let mut is_own = false;
    let mut addresses = BTreeSet::new();
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_own = Path::new(object).file_name() == program.file_name();
        }
        if let Some(digits) = line.strip_prefix("0x").filter(|_| is_own) {
            let digits = digits.split(' ').next().unwrap_or_default();
            addresses.extend(u64::from_str_radix(digits, 16));
        }
    }
    addresses
}

/// What is code of the program, as `nm` tells: an address, a letter for its kind, and its name.
fn symbols(program: &Path) -> io::Result<Symbols> {
    let told = Command::new("nm")
        .arg("--defined-only")
        .arg(program)
        .output()?;
    if !told.status.success() {
        let why = String::from_utf8_lossy(&told.stderr).into_owned();
        return Err(io::Error::other(format!("nm: {why}")));
    }
    let mut symbols = Symbols::new();
    for line in String::from_utf8_lossy(&told.stdout).lines() {
        let mut words = line.splitn(3, ' ');
        if let (Some(address), Some("t" | "T" | "w" | "W" | "i"), Some(name)) =
            (words.next(), words.next(), words.next())
            && let Ok(address) = u64::from_str_radix(address, 16)
        {
            symbols.entry(address).or_default().push(name.to_owned());
        }
    }
    Ok(symbols)
}
