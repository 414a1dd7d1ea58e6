"""Names the image of an OCI layout, so that `podman load` and `docker load` need no tag of the user.

    name_image.py FOLDER NAME

The annotation of containerd names the image for Podman, and for Docker with the image store of containerd. `manifest.json`
names it for the older store of Docker, which reads no layouts.
"""

import json
import sys
from pathlib import Path


def blob(descriptor):
    """Returns the path of a blob within the layout."""
    return "blobs/" + descriptor["digest"].replace(":", "/")


def main(folder, name):
    layout = Path(folder)
    index = json.loads((layout / "index.json").read_text(encoding="utf-8"))
    [image] = index["manifests"]
    image.setdefault("annotations", {})["io.containerd.image.name"] = name
    (layout / "index.json").write_text(json.dumps(index, sort_keys=True), encoding="utf-8")

    manifest = json.loads((layout / blob(image)).read_text(encoding="utf-8"))
    described = {"Config": blob(manifest["config"]), "RepoTags": [name], "Layers": [blob(layer) for layer in manifest["layers"]]}
    (layout / "manifest.json").write_text(json.dumps([described], sort_keys=True), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
