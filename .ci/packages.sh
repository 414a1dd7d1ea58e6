# Functions of the scripts that install packages from Debian, npm and PyPI. They are sourced in the root of the repository.

readonly TARGET="${CARGO_TARGET_DIR:-target}"

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
fi
readonly as_root

# Gets the lists of Debian's packages.
update_debian() {
    "${as_root[@]}" apt-get update -qq
}

# Installs packages of Debian.
install_debian() {
    update_debian
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# Installs what the other functions need, and the packages of Debian in the arguments.
install_missing() {
    local missing=("$@")
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        missing+=(python3-venv)
    fi
    if ! command -v npm >/dev/null; then
        missing+=(npm)
    fi
    if [ "${#missing[@]}" -gt 0 ]; then
        install_debian "${missing[@]}"
    fi
}

# Installs packages of PyPI into the virtual environment NAME of the target directory. `.ci/python/NAME.txt` has the
# versions of the packages that they need.
install_python() {
    local -r name="$1" folder="$TARGET/$1"
    shift
    # The programs of one that was made in another folder, or for a Python that is gone, do not start.
    if ! "$folder/bin/pip" --version >/dev/null 2>&1; then
        python3 -m venv --clear "$folder"
    fi
    "$folder/bin/pip" install --quiet --disable-pip-version-check --constraint ".ci/python/$name.txt" "$@"
    local package
    for package in "$@"; do
        # Options of pip are no packages.
        if [[ $package == -* ]]; then
            continue
        fi
        local listed="${package%%[[=]*}"
        # pip lists a name with either sign.
        "$folder/bin/pip" list --disable-pip-version-check --format=freeze | grep -i "^${listed//[-_]/[-_]}="
    done
}

# Installs the library of A2A and what the tests with it need.
install_a2a() {
    install_python peers-a2a 'a2a-sdk[http-server]==1.3.0' httpx==0.28.1 uvicorn==0.54.0
    # The client and the server of A2A 0.3.
    install_python peers-a2a-03 'a2a-sdk[http-server]==0.3.26' httpx==0.28.1 uvicorn==0.54.0
}

# Installs the packages of a lock file into a folder of the target directory.
install_npm() {
    local -r folder="$TARGET/$1" from="$2"
    mkdir -p "$folder"
    cp "$from/package.json" "$from/package-lock.json" "$folder"
    (cd "$folder" && npm ci --silent --no-audit --no-fund --ignore-scripts && npm ls --depth=0)
}
