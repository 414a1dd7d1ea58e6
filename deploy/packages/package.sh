# Functions of deploy/release that write packages. They use its variables, and the tools of .ci/install-packagers.

# Prints the path of a Python tool: of the environment of .ci/install-packagers, or of this system.
python_tool() {
    if [ -x "$TARGET/packagers/bin/$1" ]; then
        echo "$TARGET/packagers/bin/$1"
    else
        command -v "$1"
    fi
}

# The wheel: `pip install dualgauge`, `uvx dualgauge`.
package_wheel() {
    local from="$WORK/python" hatchling
    hatchling="$(python_tool hatchling)"
    mkdir -p "$from"
    cp deploy/packages/python/* "$STAGE"/{dualgauge,LICENSE,THIRD-PARTY.txt,dualgauge.cdx.json} "$from/"
    # PyPI does not resolve relative links.
    sed -E "s,\]\(([A-Za-z.][^):]*)\),](https://github.com/dualgauge/dualgauge/blob/v$VERSION/\1),g" "$STAGE/README.md" >"$from/README.md"
    (
        cd "$from"
        PACKAGE_VERSION="$VERSION" PACKAGE_MACHINE="${TRIPLE%%-*}" "$hatchling" build -t wheel -d "$FOLDER"
    )
}

# The package of npm: `npm install dualgauge`, `npx dualgauge`.
package_npm() {
    local from="$WORK/npm"
    mkdir -p "$from/bin"
    cp "$STAGE"/{LICENSE,README.md,THIRD-PARTY.txt,dualgauge.cdx.json} "$from/"
    cp "$STAGE/dualgauge" "$from/bin/"
    sed "s/\"version\": \"0.0.0\"/\"version\": \"$VERSION\"/" deploy/packages/npm/package.json >"$from/package.json"
    (cd "$from" && npm pack --silent --pack-destination "$WORK")
    mv "$WORK/$NAME.tgz" "$FOLDER/$NAME-npm.tgz"
}

# The package of Debian, by the metadata of Cargo.toml. `target/release` is a folder of its own for cargo-deb.
package_debian() {
    local target="$WORK/debian" package="$WORK/debian/release/package"
    mkdir -p "$target/release"
    cp -r "$STAGE" "$package"
    cp deploy/packages/debian/lintian-overrides "$package/"
    gzip --no-name --best "$package"/man/*
    # The files are in /etc, the schemas that they name are not.
    sed -i 's|^#:schema .*/|#:schema /usr/share/dualgauge/schema/|' "$package"/config/*.toml
    gzip --no-name --best >"$package/changelog.Debian.gz" <<TEXT
dualgauge ($VERSION-1) unstable; urgency=medium

  * Release $VERSION; see CHANGELOG.md.

 -- The dualgauge project <dualgauge@users.noreply.github.com>  $(LC_ALL=C date --utc --date "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000')
TEXT
    CARGO_TARGET_DIR="$target" PATH="$TARGET/cargo-deb/bin:$PATH" cargo deb --no-build --no-strip --locked --compress-system --package dualgauge \
        --output "$FOLDER"
}

# The image, without an engine: the files and settings of deploy/Dockerfile. `podman load` and `docker load` read it.
package_image() {
    local layout="$WORK/image" root="$WORK/root" layer="$WORK/layer.tar" image="$WORK/image:$VERSION" time
    time="$(date --utc --date "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
    mkdir -p "$root/bin" "$root/etc/dualgauge" "$root/usr/share/doc/dualgauge" "$WORK/state/var/lib/dualgauge"
    cp "$STAGE/dualgauge" "$root/bin/"
    cp "$STAGE"/{LICENSE,THIRD-PARTY.txt,dualgauge.cdx.json} "$root/usr/share/doc/dualgauge/"
    printf 'dualgauge:x:65532:65532::/:/nonexistent\n' >"$root/etc/passwd"
    chmod -R u=rwX,go=rX "$root"
    chmod 700 "$WORK/state/var/lib/dualgauge"
    local tar=(tar --sort=name --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu --file "$layer")
    "${tar[@]}" --create --owner=0 --group=0 --directory "$root" bin etc usr
    "${tar[@]}" --append --owner=65532 --group=65532 --directory "$WORK/state" var/lib/dualgauge

    umoci init --layout "$layout"
    umoci new --image "$image"
    umoci raw add-layer --image "$image" --history.created "$time" --history.created_by deploy/release "$layer"
    # `HEALTHCHECK` is the only setting that this format does not have.
    umoci config --image "$image" --no-history --created "$time" --os linux --architecture "$(image_architecture)" \
        --config.user 65532:65532 --config.stopsignal SIGTERM --config.volume /var/lib/dualgauge \
        --config.exposedports 8080 --config.exposedports 9090 \
        --config.env DUALGAUGE_LISTEN__ADDRESS=0.0.0.0:8080 --config.env DUALGAUGE_ADMIN__ADDRESS=0.0.0.0:9090 \
        --config.env DUALGAUGE_ROLLOUT__STATE=/var/lib/dualgauge \
        --config.label org.opencontainers.image.title=dualgauge \
        --config.label "org.opencontainers.image.description=A migration proxy between legacy REST and JSON-RPC 2.0" \
        --config.label org.opencontainers.image.source=https://github.com/dualgauge/dualgauge \
        --config.label org.opencontainers.image.licenses=MIT \
        --config.label "org.opencontainers.image.version=$VERSION" \
        --config.label "org.opencontainers.image.revision=$(git rev-parse HEAD)" \
        --config.entrypoint /bin/dualgauge \
        --config.cmd run --config.cmd --config --config.cmd /etc/dualgauge/dualgauge.toml
    umoci gc --layout "$layout"
    python3 deploy/packages/name_image.py "$layout" "localhost/dualgauge:$VERSION"
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu \
        --file "$FOLDER/$NAME-image.tar" --directory "$layout" blobs index.json manifest.json oci-layout
}

# Prints the name that images have for the architecture.
image_architecture() {
    case "$TRIPLE" in
    x86_64-*) echo amd64 ;;
    aarch64-*) echo arm64 ;;
    *)
        echo "error: images have no name for the architecture of $TRIPLE" >&2
        return 1
        ;;
    esac
}

# The chart, with the version of the program. Helm writes the time of the build into its archive, so it is packed again.
package_chart() {
    local helm="$TARGET/linters-npm/layer/helm/helm"
    export HELM_CACHE_HOME="$WORK/helm" HELM_CONFIG_HOME="$WORK/helm" HELM_DATA_HOME="$WORK/helm"
    "$helm" package --version "$VERSION" --app-version "$VERSION" --destination "$WORK" deploy/helm/dualgauge
    mkdir -p "$WORK/chart"
    tar --extract --file "$WORK/$NAME.tgz" --directory "$WORK/chart"
    pack "$FOLDER/$NAME-chart.tgz" "$WORK/chart" dualgauge
}

# The formula with the version and the checksums of the archives.
write_formula() {
    local source program
    source="$(sha256sum "$FOLDER/$NAME-source.tar.gz" | cut -d ' ' -f 1)"
    program="$(sha256sum "$FOLDER/$NAME-$TRIPLE.tar.gz" | cut -d ' ' -f 1)"
    sed -e "1d; s/VERSION/$VERSION/g; s/SHA256_OF_SOURCE/$source/; s/SHA256_OF_PROGRAM/$program/" \
        deploy/homebrew/dualgauge.rb >"$FOLDER/dualgauge.rb"
    # Ruby is not needed to build the others.
    if command -v ruby >/dev/null; then
        ruby -wc "$FOLDER/dualgauge.rb"
    fi
}
