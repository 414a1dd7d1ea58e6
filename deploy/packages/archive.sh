# Functions of deploy/release that write archives and checksums. They use its variables.

# Puts the files that packages share into one folder.
stage_files() {
    mkdir -p "$STAGE/config/schema" "$STAGE/completions" "$STAGE/man"
    strip --strip-all -o "$STAGE/dualgauge" "$program"
    cp LICENSE README.md CHANGELOG.md deploy/dualgauge.service deploy/dualgauge.socket "$STAGE/"
    # The example and the files that it includes.
    cp config/dualgauge.toml config/sqlite.toml config/flags.toml "$STAGE/config/"
    cp config/schema/*.json "$STAGE/config/schema/"
    python3 deploy/packages/inventory.py --triple "$TRIPLE" --version "$VERSION" \
        --bill "$STAGE/dualgauge.cdx.json" --notices "$STAGE/THIRD-PARTY.txt"
    "$STAGE/dualgauge" completions bash >"$STAGE/completions/dualgauge"
    "$STAGE/dualgauge" completions zsh >"$STAGE/completions/_dualgauge"
    "$STAGE/dualgauge" completions fish >"$STAGE/completions/dualgauge.fish"
    "$STAGE/dualgauge" man --write "$STAGE/man"
    cp "$STAGE/dualgauge.cdx.json" "$FOLDER/$NAME-$TRIPLE.cdx.json"
    # Archives of other targets have theirs inside.
    if [ -z "$archive" ]; then
        cp "$STAGE/THIRD-PARTY.txt" "$FOLDER/$NAME-THIRD-PARTY.txt"
    fi
    chmod -R u=rwX,go=rX "$STAGE"
}

# Writes a tar archive of folders with fixed owners, times and order: pack FILE FOLDER NAME…
pack() {
    local file="$1" from="$2"
    shift 2
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu \
        --directory "$from" "$@" | gzip --no-name --best >"$file"
}

# The program with its notices, its configuration and its units, as `cargo binstall` and Homebrew get it.
archive_binary() {
    pack "$FOLDER/$NAME-$TRIPLE.tar.gz" "$STAGE" --transform "s,^\.,$NAME-$TRIPLE," .
}

# The sources of the commit, for builds on other systems.
archive_source() {
    git archive --prefix "$NAME/" HEAD | gzip --no-name --best >"$FOLDER/$NAME-source.tar.gz"
}

# The recorded profile: with it, everyone can build the same program.
archive_profile() {
    if [ -n "$optimized" ]; then
        pack "$FOLDER/$NAME-profile.tar.gz" "$TARGET/optimized/recorded" program.profdata order
    fi
}

write_checksums() {
    (
        cd "$FOLDER"
        find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >"$WORK/SHA256SUMS"
    )
    mv "$WORK/SHA256SUMS" "$FOLDER/SHA256SUMS"
    cat "$FOLDER/SHA256SUMS"
}
