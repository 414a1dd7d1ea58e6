"""Prints the largest parts of a program that is not stripped: its sections, and the code and constants of each library.

    parts.py PROGRAM [NUMBER]

A generic function counts for the library that defines it, not for the one that uses it. Constants without a symbol, and the
tables for unwinding, belong to no library; the sections show them.
"""

import collections
import re
import subprocess
import sys

C_LIBRARIES = [("aws-lc", re.compile(r"^_?(aws_lc_|ecp_nistz|bn_|sha\d|rsaz|chacha|aes|curve25519|p256|p384|p521|mlkem|mldsa|bignum_)")),
               ("SQLite", re.compile(r"^(sqlite3|fts\d|rtree|pager|btree|vdbe|json)")),
               ("mimalloc", re.compile(r"^_?mi_"))]
# Some symbols have no size.
SYMBOL = re.compile(r"^(?P<address>[0-9a-f]+) (?P<size>[0-9a-f]+) (?P<kind>\S) (?P<name>.*)$")
RUST = re.compile(r"^(?:<+(?:&(?:mut )?|\*(?:const|mut) |dyn |\[)*)?([a-z_][a-z0-9_]*)::")


def lines_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout.splitlines()


def library(name):
    """Returns the library of a symbol: of Rust by its path, of C by its prefix."""
    rust = RUST.match(name)
    if rust:
        return rust.group(1)
    for library_name, prefix in C_LIBRARIES:
        if prefix.match(name):
            return library_name
    return "other C and unnamed"


def main():
    program = sys.argv[1]
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    sections = []
    for line in lines_of("size", "-A", program):
        words = line.split()
        # Sections that strip removes have the address 0.
        if len(words) == 3 and words[1].isdigit() and words[2] != "0":
            sections.append((int(words[1]), words[0]))
    print("sections")
    for size, name in sorted(sections, reverse=True)[:number]:
        print(f"{size:12,}  {name}")
    parts, seen = collections.Counter(), set()
    for line in lines_of("nm", "--print-size", "--demangle", "--defined-only", program):
        symbol = SYMBOL.match(line)
        # Symbols with one address are names of the same bytes.
        if symbol and symbol["kind"] not in "bB" and symbol["address"] not in seen:
            seen.add(symbol["address"])
            parts[library(symbol["name"])] += int(symbol["size"], 16)
    print("libraries")
    for name, size in parts.most_common(number):
        print(f"{size:12,}  {name}")


main()
