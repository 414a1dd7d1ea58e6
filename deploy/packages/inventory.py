"""Lists what is linked into the program: a bill of materials (CycloneDX 1.6) and the notices of third parties.

    inventory.py --triple TRIPLE --version VERSION --bill FILE --notices FILE

Crates are those that `cargo tree` names for the target: without crates of tests, of build scripts and of macros, whose code
does not reach the program. Their licences come from `cargo metadata`, and the texts from their sources. Both files depend
only on Cargo.lock, the sources, the compiler and the C library: times are those of SOURCE_DATE_EPOCH.
"""

import argparse
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

NAMED = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicen[cs]e)([-._].*)?$", re.IGNORECASE)
# Folders of sources that are not compiled, and the version of mimalloc that is not.
SKIPPED = {"tests", "test", "benches", "examples", "docs", "fuzz", "util", "v3"}
SEPARATOR = "=" * 100


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked_crates(triple):
    """Returns the packages of `cargo metadata` whose code is linked, sorted by name and version."""
    tree = run("cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--target", triple, "--package", "dualgauge",
               "--prefix", "none", "--format", "{p}")
    wanted = {tuple(line.split()[:2]) for line in tree.splitlines() if line and "(proc-macro)" not in line}
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", triple))
    found = [package for package in metadata["packages"] if (package["name"], "v" + package["version"]) in wanted]
    if len(found) != len(wanted):
        sys.exit(f"error: cargo tree names {len(wanted)} crates, cargo metadata {len(found)} of them")
    found.sort(key=lambda package: (package["name"], package["version"]))
    edges = {node["id"]: sorted(dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"]))
             for node in metadata["resolve"]["nodes"]}
    return found, edges


def texts_of(folder):
    """Returns the licence texts in the sources of a crate, by path; those of bundled C code too."""
    texts = {}
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        for name in sorted(files):
            path = Path(parent, name)
            if NAMED.match(name) and path.suffix not in {".rs", ".py", ".go", ".h", ".c"}:
                texts[str(path.relative_to(folder))] = path.read_text(encoding="utf-8", errors="replace").strip()
    return texts


def expression(package):
    """Returns the licence of a crate as an SPDX expression; some write `/` for OR."""
    return (package["license"] or "see the text").replace("/", " OR ").replace("  ", " ")


@dataclass
class Library:
    """A library that is linked and is no crate. `release` is empty if it ships inside another one."""

    name: str
    title: str
    release: str
    licence: str
    texts: list

    def component(self):
        """Returns its component in the bill of materials."""
        purl = f"pkg:generic/{self.name}" + (f"@{self.release}" if self.release else "")
        found = {"type": "library", "bom-ref": purl, "name": self.name, "purl": purl, "licenses": [{"expression": self.licence}]}
        return found | ({"version": self.release} if self.release else {})

    def label(self):
        """Returns its name above its notices."""
        return " ".join(part for part in (self.title, self.release, f"({self.licence})") if part)


def c_library(triple):
    """Returns the C library of a target, with its notices, as Debian's package has them."""
    if triple.endswith("-musl"):
        # Rust ships its own copy of musl. The package of Debian has the same notices.
        library, paths = Library("musl", "musl", "", "MIT", []), ["/usr/share/doc/musl-dev/copyright"]
    elif triple.endswith("-gnu"):
        version = run("dpkg-query", "--show", "--showformat", "${Version}", "libc6-dev")
        library = Library("glibc", "GNU C Library", version, "LGPL-2.1-or-later", [])
        paths = ["/usr/share/doc/libc6-dev/copyright", "/usr/share/common-licenses/LGPL-2.1"]
    else:
        sys.exit(f"error: the C library of {triple} is unknown; targets that end in -gnu or -musl have notices")
    library.texts = [Path(path).read_text(encoding="utf-8").strip() for path in paths]
    return library


def standard_library():
    """Returns Rust's standard library, with its notices, as the compiler has them."""
    version = re.search(r"^release: (.*)$", run("rustc", "-vV"), re.MULTILINE).group(1)
    page = Path(run("rustc", "--print", "sysroot").strip(), "share/doc/rust/COPYRIGHT-library.html").read_text(encoding="utf-8")
    body = page[page.index("<body>"):]
    plain = html.unescape(re.sub(r"<[^>]+>", "", body))
    text = re.sub(r"\n\s*\n+", "\n\n", plain).strip()
    return Library("rust-std", "Rust standard library", version, "MIT OR Apache-2.0", [text])


def bill(version, crates, edges, libraries):
    """Returns the bill of materials as a document of CycloneDX."""
    locked = {(package["name"], package["version"]): package.get("checksum")
              for package in tomllib.loads(Path("Cargo.lock").read_text(encoding="utf-8"))["package"]}
    references = {package["id"]: f"pkg:cargo/{package['name']}@{package['version']}" for package in crates}
    components, root = [], None
    for package in crates:
        component = {
            "type": "library",
            "bom-ref": references[package["id"]],
            "name": package["name"],
            "version": package["version"],
            "purl": references[package["id"]],
            "licenses": [{"expression": expression(package)}],
        }
        checksum = locked.get((package["name"], package["version"]))
        if checksum:
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if package["repository"]:
            component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        if package["name"] == "dualgauge":
            root = component | {"type": "application", "version": version}
        else:
            components.append(component)
    components.extend(library.component() for library in libraries)
    dependencies = [{"ref": references[package["id"]],
                     "dependsOn": sorted({references[target] for target in edges[package["id"]] if target in references})}
                    for package in crates]
    time = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    content = json.dumps([root, components], sort_keys=True).encode()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, hashlib.sha256(content).hexdigest())}",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": root},
        "components": components,
        "dependencies": dependencies,
    }


def notices(crates, libraries):
    """Returns the notices: each text once, after the names of what it covers."""
    covered, without = {}, []
    for package in crates:
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']} ({expression(package)})"
        texts = texts_of(Path(package["manifest_path"]).parent)
        if not texts:
            without.append(name)
        for path, text in texts.items():
            covered.setdefault(text, []).append(name if "/" not in path else f"{name}: {path}")
    for library in libraries:
        for text in library.texts:
            covered.setdefault(text, []).append(library.label())
    parts = ["dualgauge contains the software below. Each text follows the names of what it covers.",
             "These crates name their licence, and their sources have no text of it:\n" + "\n".join(without)]
    for text, names in sorted(covered.items(), key=lambda entry: entry[1]):
        parts.append("\n".join([SEPARATOR, *names, "", text]))
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Writes the bill of materials and the notices of third parties")
    for name in ("triple", "version", "bill", "notices"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    crates, edges = linked_crates(arguments.triple)
    libraries = [c_library(arguments.triple), standard_library()]
    document = bill(arguments.version, crates, edges, libraries)
    Path(arguments.bill).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    Path(arguments.notices).write_text(notices(crates, libraries), encoding="utf-8")
    print(f"{len(crates)} crates")


main()
