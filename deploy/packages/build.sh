# Functions of deploy/release that build the program. They use its variables.

step() {
    printf '\n== %s\n' "$*"
}

# Prints what `--version` shows: the version, the commit and its date.
describe_version() {
    local changed=""
    if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
        changed=", changed"
    fi
    printf '%s (%s %s%s)\n' "$VERSION" "$(git rev-parse --short=12 HEAD)" "$(git log -1 --format=%cs)" "$changed"
}

# Builds the program of the sources in one folder with another as target directory. Prints no path of this machine into
# the program: the sources, the target directory, the crates and the compiler have fixed names instead.
build_program() {
    local source target cargo="${CARGO_HOME:-$HOME/.cargo}" flags pair described
    source="$(realpath "$1")"
    target="$2"
    described="$(describe_version)"
    flags="-C target-feature=+crt-static"
    if [[ "$TRIPLE" = x86_64-* ]]; then
        flags+=" -C target-cpu=${CPU:-x86-64-v3}"
    fi
    # GNU ld supports packed relocations for few processors, and musl only in late versions.
    if [ "$TRIPLE" = x86_64-unknown-linux-gnu ]; then
        flags+=" -C link-arg=-Wl,-z,pack-relative-relocs"
    fi
    local c_flags=""
    # The last name that matches applies.
    for pair in "$source=/source" "$target=/target" "$cargo=/cargo"; do
        flags+=" --remap-path-prefix=$pair"
        c_flags+=" -ffile-prefix-map=$pair"
    done
    (
        cd "$source"
        export CARGO_TARGET_DIR="$target" CARGO_INCREMENTAL=0 RUSTFLAGS="$flags" CFLAGS="$c_flags" RELEASE_VERSION="$described"
        if [ -n "$plain" ]; then
            cargo rustc --locked --profile "$profile" --target "$TRIPLE" --package dualgauge --bin dualgauge
            mkdir -p "$target/optimized"
            cp --remove-destination "$target/$TRIPLE/$(profile_folder)/dualgauge" "$target/optimized/dualgauge"
        else
            deploy/optimize --profile "$profile" ${recorded:+--recorded "$recorded"}
        fi
    )
}

profile_folder() {
    if [ "$profile" = dev ]; then
        echo debug
    else
        echo "$profile"
    fi
}

# Builds the commit in other folders, with the profile of the first build, and compares the programs.
verify_program() {
    local first="$TARGET/optimized/dualgauge" again="$WORK/again" recorded="$recorded"
    mkdir -p "$again/source" "$again/target"
    git archive HEAD | tar -x -C "$again/source"
    if [ -z "$plain" ]; then
        recorded="$TARGET/optimized/recorded"
    fi
    build_program "$again/source" "$again/target"
    if ! cmp "$first" "$again/target/optimized/dualgauge"; then
        echo "error: the second build differs; both are kept: $first, $again/target/optimized/dualgauge" >&2
        exit 1
    fi
    sha256sum "$first" "$again/target/optimized/dualgauge"
    rm -rf "$again"
}

# Packages the program again into another folder, and compares the checksums. The profile is the input of both.
verify_packages() {
    local again="$TARGET/release-again"
    # An interrupted run leaves it without checksums, and deploy/release refuses such a folder.
    rm -rf "$again"
    deploy/release --program "$program" --target "$TRIPLE" "$again"
    if ! diff <(grep -v -e -profile.tar.gz "$FOLDER/SHA256SUMS") "$again/SHA256SUMS"; then
        echo "error: packages of the same program differ; both are kept: $FOLDER, $again" >&2
        exit 1
    fi
    rm -rf "$again"
}
