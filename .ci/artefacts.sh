# Functions of .ci/artefacts.

target="$(realpath "${CARGO_TARGET_DIR:-target}")"
readonly TARGET="$target"
folder="$(realpath "${1:-$TARGET/release-artefacts}")"
# The trained program has 31.6 MB, and the aim is 25 MB. Others are larger.
largest=32500000
if [ "$TRIPLE" != x86_64-unknown-linux-gnu ]; then
    largest=40000000
fi
readonly FOLDER="$folder" LARGEST="${LARGEST:-$largest}"
version="$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | sed -n 1p)"
readonly VERSION="$version" NAME="dualgauge-$version"
readonly DEBIAN="$FOLDER/dualgauge_$VERSION-1_amd64.deb"
readonly PYTHON="$TARGET/packagers/bin/python" HELM="$TARGET/linters-npm/layer/helm/helm"
work="$(mktemp -d)"
readonly WORK="$work"
# A root that a test has extracted belongs to this user.
trap 'rm -rf "$WORK"' EXIT

# Runs a test in the folder of the artefacts.
check() {
    printf '\n== %s\n' "$1"
    shift
    (cd "$FOLDER" && "$@")
}

fail() {
    echo "error: $*" >&2
    return 1
}

# Extracts a bare Debian with Python and npm into a folder. It is made once, from the sources of packages of this system.
fresh_root() {
    local base="$TARGET/release-root.tar"
    if [ ! -f "$base" ]; then
        local sources=() file
        for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
            if [ -s "$file" ]; then
                sources+=("$file")
            fi
        done
        mmdebstrap --quiet --format=tar --variant=minbase --include=python3-venv,npm --dpkgopt='path-exclude=/usr/share/man/*' \
            "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$base.new" "${sources[@]}"
        mv "$base.new" "$base"
    fi
    mkdir -p "$1"
    tar --extract --file "$base" --directory "$1"
}

# Starts the command with options for free ports, and prints the response of a translated call. Both must come within ten
# seconds: serves COMMAND…
serves() {
    local line address out program begin="$SECONDS" response
    exec {out}< <(exec "$@" --listen 127.0.0.1:0 --admin 127.0.0.1:0 2>&1)
    program=$!
    if ! read -r -t 10 -u "$out" line || [[ "$line" != "serving http://"* ]]; then
        kill "$program"
        fail "$* does not serve within ten seconds: ${line-}"
    fi
    address="${line#serving }"
    address="${address%%, *}"
    response="$(curl --silent --show-error --max-time $((10 - (SECONDS - begin))) "$address$CALL_PATH" \
        -H 'content-type: application/json' -H 'x-client-id: mover' ${CALL_BODY:+--data "$CALL_BODY"} || true)"
    kill "$program"
    cat <&"$out" >"$WORK/last-run"
    exec {out}<&-
    if [[ "$response" != *"$CALL_EXPECTED"* ]]; then
        cat "$WORK/last-run" >&2
        fail "$* answers: $response"
    fi
    echo "serves: $*"
}

# Starts the demo, and makes the translated call that it prints.
serves_demo() {
    CALL_PATH=/mcp/v1/tools/call CALL_BODY='{"name":"query_records","arguments":{"table_name":"users"}}' \
        CALL_EXPECTED='"content"' serves "$@" demo --no-traffic
}

has_version() {
    local said
    said="$("$@" --version)"
    echo "$said"
    [[ "$said" =~ ^dualgauge\ "$VERSION"\ \([0-9a-f]{12}\ [0-9-]{10}\)$ ]] || fail "unexpected version: $said"
}

test_binary() {
    local program="$WORK/binary/$NAME-$TRIPLE/dualgauge" size path headers
    mkdir -p "$WORK/binary"
    tar --extract --file "$NAME-$TRIPLE.tar.gz" --directory "$WORK/binary"
    has_version "$program"
    size="$(stat --format %s "$program")"
    echo "$size bytes"
    if [ "$size" -gt "$LARGEST" ]; then
        fail "the program is larger than $LARGEST bytes"
    fi
    headers="$(readelf --wide --program-headers --section-headers "$program")"
    if [[ "$headers" != *" .text "* || "$headers" = *INTERP* ]]; then
        fail "the program is not static"
    fi
    if [[ "$headers" = *" .symtab "* ]]; then
        fail "the program has symbols"
    fi
    for path in "$HOME/" "$TARGET/" "$(git rev-parse --show-toplevel 2>/dev/null || pwd)/"; do
        if grep --quiet --text --fixed-strings -- "$path" "$program"; then
            fail "the program contains the path $path"
        fi
    done
    serves_demo "$program"
}

# Fills in the templates that `cargo binstall` reads, and looks for the archive and the program in it.
test_binstall() {
    python3 - "$OLDPWD/Cargo.toml" "$VERSION" "$TRIPLE" <<'PYTHON'
import sys, tarfile, tomllib
package = tomllib.load(open(sys.argv[1], "rb"))["package"]
values = {"repo": "REPO", "name": package["name"], "bin": package["name"], "version": sys.argv[2],
          "target": sys.argv[3], "binary-ext": ""}


def fill(text):
    for key, value in values.items():
        text = text.replace("{ " + key + " }", value)
    if "{" in text:
        sys.exit(f"error: {text} names a value that this test does not know")
    return text


found = package["metadata"]["binstall"]
folder, archive = fill(found["pkg-url"]).rsplit("/", 1)
if folder != f"REPO/releases/download/v{values['version']}":
    sys.exit(f"error: releases are not at {folder}")
with tarfile.open(archive) as files:
    program = files.getmember(fill(found["bin-dir"]))
if not program.isfile() or not program.mode & 0o100:
    sys.exit(f"error: {program.name} is no program")
print(archive, program.name)
PYTHON
}

test_bill() {
    "$PYTHON" - "$NAME-$TRIPLE.cdx.json" <<'PYTHON'
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = open(sys.argv[1], encoding="utf-8").read()
problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
if problem:
    sys.exit(f"error: {problem}")
bill = json.loads(text)
names = {component["name"] for component in bill["components"]}
missing = {"aws-lc-sys", "glibc", "hyper", "libmimalloc-sys", "rust-std", "tokio"} - names
if missing:
    sys.exit(f"error: the bill does not name {missing}")
if names & {"proptest", "insta", "serde_derive"}:
    sys.exit("error: the bill names crates of tests or macros")
print(f"{len(names)} components")
PYTHON
}

# Each component of the bill is in the notices.
test_notices() {
    "$PYTHON" - "$NAME-$TRIPLE.cdx.json" "$NAME-THIRD-PARTY.txt" <<'PYTHON'
import json, sys
bill = json.load(open(sys.argv[1], encoding="utf-8"))
notices = open(sys.argv[2], encoding="utf-8").read()
missing = [component["bom-ref"] for component in bill["components"]
           if component["purl"].startswith("pkg:cargo/") and not component["name"].startswith("dualgauge")
           and f"{component['name']} {component['version']} (" not in notices]
for text in ("GNU LESSER GENERAL PUBLIC LICENSE", "Copyright notices for The Rust Standard Library", "mimalloc"):
    if text not in notices:
        missing.append(text)
if missing:
    sys.exit(f"error: the notices lack {missing}")
PYTHON
}

test_wheel() {
    local root="$WORK/wheel" wheel
    wheel="$(echo "$NAME"-py3-none-*.whl)"
    "$TARGET/twine/bin/twine" check --strict "$wheel"
    python3 - "$wheel" <<'PYTHON'
import re, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
page = next(wheel.read(name).decode() for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
links = re.findall(r"\]\(([^)]*)\)", page)
relative = [link for link in links if not link.startswith(("https://", "#"))]
if relative or not links:
    sys.exit(f"error: the page of the wheel has {len(links)} links, and these are relative: {relative}")
PYTHON
    fresh_root "$root"
    cp "$wheel" "$root/tmp/"
    chroot "$root" python3 -m venv /opt/fresh
    chroot "$root" /opt/fresh/bin/pip install --quiet --no-index --disable-pip-version-check "/tmp/$wheel"
    has_version chroot "$root" /opt/fresh/bin/dualgauge
    serves_demo chroot "$root" /opt/fresh/bin/dualgauge
    chroot "$root" /opt/fresh/bin/pip uninstall --quiet --yes dualgauge
    if [ -e "$root/opt/fresh/bin/dualgauge" ]; then
        fail "the program is left after pip uninstall"
    fi
    rm -rf "$root"
}

test_npm() {
    local root="$WORK/npm"
    fresh_root "$root"
    cp "$NAME-npm.tgz" "$root/tmp/"
    chroot "$root" npm install --global --offline --silent --no-audit --no-fund "/tmp/$NAME-npm.tgz"
    has_version chroot "$root" dualgauge
    serves_demo chroot "$root" dualgauge
    chroot "$root" npm uninstall --global --silent dualgauge
    if chroot "$root" which dualgauge; then
        fail "the program is left after npm uninstall"
    fi
    rm -rf "$root"
}

# Builds the same package with a later version.
later_debian() {
    local unpacked="$WORK/later"
    dpkg-deb --raw-extract "$DEBIAN" "$unpacked"
    sed -i "s/^Version: .*/Version: $VERSION-2/" "$unpacked/DEBIAN/control"
    dpkg-deb --root-owner-group -Zgzip -z1 --build "$unpacked" "$1" >/dev/null
    rm -rf "$unpacked"
}

test_debian() {
    local root="$WORK/debian" file
    fresh_root "$root"
    cp "$DEBIAN" "$root/tmp/first.deb"
    later_debian "$root/tmp/later.deb"
    chroot "$root" dpkg --install /tmp/first.deb
    for file in usr/bin/dualgauge etc/dualgauge/dualgauge.toml usr/lib/systemd/system/dualgauge.{service,socket} \
        usr/share/bash-completion/completions/dualgauge usr/share/zsh/vendor-completions/_dualgauge \
        usr/share/fish/vendor_completions.d/dualgauge.fish usr/share/dualgauge/schema/dualgauge.schema.json; do
        if [ ! -e "$root/$file" ]; then
            fail "$file is not installed"
        fi
    done
    # The root has no manual pages.
    if ! dpkg-deb --contents "$DEBIAN" | grep '/usr/share/man/man1/dualgauge.1.gz$' >/dev/null; then
        fail "the manual pages are missing"
    fi
    has_version chroot "$root" dualgauge
    chroot "$root" dualgauge check --config /etc/dualgauge/dualgauge.toml
    serves_demo chroot "$root" dualgauge
    # As the unit starts it. No upstream of the example is there.
    mkdir "$root/var/lib/dualgauge"
    CALL_PATH=/openapi.json CALL_BODY='' CALL_EXPECTED='"openapi"' serves chroot "$root" env DUALGAUGE_ROLLOUT__STATE=/var/lib/dualgauge \
        dualgauge run --config /etc/dualgauge/dualgauge.toml
    echo "# edited" >>"$root/etc/dualgauge/dualgauge.toml"
    chroot "$root" dpkg --install /tmp/later.deb
    grep -q '^# edited$' "$root/etc/dualgauge/dualgauge.toml" || fail "the upgrade replaced the configuration"
    chroot "$root" dualgauge check --config /etc/dualgauge/dualgauge.toml
    chroot "$root" dpkg --remove dualgauge
    if [ -e "$root/usr/bin/dualgauge" ]; then
        fail "the program is left after dpkg --remove"
    fi
    chroot "$root" dpkg --purge dualgauge
    if [ -e "$root/etc/dualgauge" ]; then
        fail "the configuration is left after dpkg --purge"
    fi
    rm -rf "$root"
}

# Compares the settings of the image with those of deploy/Dockerfile, and runs it as its user.
test_image() {
    local layout="$WORK/image" bundle="$WORK/bundle" root="$WORK/bundle/rootfs"
    mkdir -p "$layout"
    tar --extract --file "$NAME-image.tar" --directory "$layout"
    # As the release workflow reads it.
    skopeo copy --quiet "oci-archive:$NAME-image.tar:$VERSION" "dir:$WORK/pushed"
    skopeo inspect --config "oci:$layout:$VERSION" >"$WORK/image.json"
    grep -q "\"io.containerd.image.name\": \"localhost/dualgauge:$VERSION\"" "$layout/index.json" || fail "the image has no name for podman load"
    # The older store of Docker finds the image by this name.
    skopeo inspect --config "docker-archive:$NAME-image.tar:localhost/dualgauge:$VERSION" | cmp - "$WORK/image.json"
    python3 - "$WORK/image.json" "$OLDPWD/deploy/Dockerfile" <<'PYTHON'
import json, re, shlex, sys
config = json.load(open(sys.argv[1], encoding="utf-8"))["config"]
text = open(sys.argv[2], encoding="utf-8").read().split("FROM scratch")[1]
lines = re.sub(r"\\\n", " ", text).splitlines()
wanted = {words[0]: words[1] for words in (line.split(maxsplit=1) for line in lines) if len(words) > 1}
pairs = lambda key: dict(item.split("=", 1) for item in shlex.split(wanted[key]))
found = {
    "USER": config["User"] == wanted["USER"],
    "ENV": pairs("ENV").items() <= dict(item.split("=", 1) for item in config["Env"]).items(),
    "LABEL": pairs("LABEL").items() <= config["Labels"].items(),
    "VOLUME": list(config["Volumes"]) == [wanted["VOLUME"]],
    "EXPOSE": sorted(port.split("/")[0] for port in config["ExposedPorts"]) == sorted(wanted["EXPOSE"].split()),
    "STOPSIGNAL": config["StopSignal"] == wanted["STOPSIGNAL"],
    "ENTRYPOINT": config["Entrypoint"] == json.loads(wanted["ENTRYPOINT"]),
    "CMD": config["Cmd"] == json.loads(wanted["CMD"]),
}
different = [key for key, same in found.items() if not same]
if different:
    sys.exit(f"error: these settings differ from deploy/Dockerfile: {different}: {config}")
PYTHON
    umoci unpack --image "$layout:$VERSION" "$bundle"
    (cd "$root" && find . -printf '%u:%g %M %P\n' | sort -k 3)
    [ "$(stat --format '%u %a' "$root/var/lib/dualgauge")" = "65532 700" ] || fail "the user cannot write its state"
    chmod 755 "$WORK" "$bundle" "$root"
    cp "$OLDPWD"/config/{dualgauge,sqlite,flags}.toml "$root/etc/dualgauge/"
    has_version chroot --userspec=65532:65532 "$root" /bin/dualgauge
    CALL_PATH=/openapi.json CALL_BODY='' CALL_EXPECTED='"openapi"' serves env DUALGAUGE_ROLLOUT__STATE=/var/lib/dualgauge \
        chroot --userspec=65532:65532 "$root" /bin/dualgauge run --config /etc/dualgauge/dualgauge.toml
}

test_chart() {
    export HELM_CACHE_HOME="$WORK/helm" HELM_CONFIG_HOME="$WORK/helm" HELM_DATA_HOME="$WORK/helm"
    local chart="$NAME-chart.tgz" values
    "$HELM" show chart "$chart" | grep -x "version: $VERSION"
    for values in "$OLDPWD"/deploy/helm/dualgauge/values.yaml "$OLDPWD"/deploy/helm/dualgauge/ci/*.yaml; do
        "$HELM" lint --strict --quiet "$chart" --values "$values"
        "$HELM" template release "$chart" --values "$values" >"$WORK/rendered.yaml"
    done
    "$HELM" template release "$chart" | grep "image: .*ghcr.io/dualgauge/dualgauge:$VERSION"
}

# Only its syntax and its checksums: Homebrew is not here.
test_formula() {
    ruby -wc dualgauge.rb
    local file
    for file in "$NAME-source.tar.gz" "$NAME-$TRIPLE.tar.gz"; do
        grep --after-context 1 "/$file\"" dualgauge.rb | grep "$(sha256sum "$file" | cut -d ' ' -f 1)" >/dev/null \
            || fail "dualgauge.rb has another checksum of $file"
    done
}
