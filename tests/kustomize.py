"""An implementation of the parts of kustomize that `deploy/kubernetes` uses.

These parts are resources, images, and JSON patches (RFC 6902) of objects with a kind and name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
_KNOWN = {"apiVersion", "kind", "resources", "images", "patches"}


def built(directory: Path) -> list[Object]:
    """Return the objects of the kustomization in `directory`. Raise `NotImplementedError` for members that are not supported."""
    plan = yaml.safe_load((directory / "kustomization.yaml").read_text())
    if unknown := set(plan) - _KNOWN:
        raise NotImplementedError(f"{directory.name}: {sorted(unknown)}")
    objects = [found for name in plan["resources"] for found in _resource(directory / name)]
    for patch in plan.get("patches", []):
        target = patch["target"]
        [patched] = [found for found in objects if (found["kind"], found["metadata"]["name"]) == (target["kind"], target["name"])]
        for operation in yaml.safe_load((directory / patch["path"]).read_text()):
            apply(patched, operation)
    for image in plan.get("images", []):
        for container in containers(objects):
            if container["image"] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
    return objects


def pods(objects: list[Object]) -> dict[str, Object]:
    """Return the specification of the pod of each workload, by the name of the workload."""
    return {found["metadata"]["name"]: found["spec"]["template"]["spec"] for found in objects if "template" in found.get("spec", {})}


def containers(objects: list[Object]) -> list[Object]:
    """Return the specifications of all containers of all workloads, including init containers."""
    return [each for pod in pods(objects).values() for each in [*pod.get("initContainers", []), *pod["containers"]]]


def apply(target: Any, operation: Object) -> None:
    """Apply one operation (add, replace or remove) of a JSON patch to `target`.

    Replacing or removing a missing member raises `KeyError` or `IndexError`. Other operations raise `NotImplementedError`.
    """
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    for part in parents:
        target = target[int(part) if isinstance(target, list) else part]
    place = (len(target) if last == "-" else int(last)) if isinstance(target, list) else last
    match operation["op"]:
        case "add" if isinstance(target, list):
            target.insert(place, operation["value"])
        case "add":
            target[place] = operation["value"]
        case "replace":
            _ = target[place]
            target[place] = operation["value"]
        case "remove":
            del target[place]
        case other:
            raise NotImplementedError(other)


def _resource(path: Path) -> list[Object]:
    return built(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
