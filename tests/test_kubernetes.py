"""The objects in `deploy/kubernetes`, compared with the code and with the other ways of deployment.

`tests/peers/test_deployment.py` checks the schemas of the objects.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.env import SETTINGS
from config.server.probes import LIVE, READY
from config.settings import base
from tests.kustomize import Object, apply, built, containers, pods

ROOT = Path(__file__).resolve().parents[1]
KUBERNETES = ROOT / "deploy/kubernetes"
OVERLAYS = {name: built(KUBERNETES / "overlays" / name) for name in ("small", "large")}
DOCKERFILE = (ROOT / "Dockerfile").read_text()
FIGURES = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", (ROOT / "docs/reference/metrics.md").read_text(), re.MULTILINE))

of_each_overlay = pytest.mark.parametrize("objects", OVERLAYS.values(), ids=OVERLAYS.keys())


def named(objects: list[Object], kind: str) -> dict[str, Any]:
    return {found["metadata"]["name"]: found for found in objects if found["kind"] == kind}


def selects(selector: Object, labels: dict[str, str]) -> bool:
    expressions = selector.get("matchExpressions", [])
    return selector.get("matchLabels", {}).items() <= labels.items() and all(labels.get(e["key"]) in e["values"] for e in expressions)


@of_each_overlay
def test_names_of_objects_are_unique_and_in_one_namespace(objects: list[Object]) -> None:
    names = [(found["kind"], found["metadata"]["name"]) for found in objects]
    assert len(names) == len(set(names))
    assert {found["metadata"].get("namespace", "identity") for found in objects} == {"identity"}


@of_each_overlay
def test_no_container_runs_as_root_or_writes_to_its_image(objects: list[Object]) -> None:
    user = re.search(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    assert user is not None
    for pod in pods(objects).values():
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"], context["runAsGroup"]) == (True, int(user[1]), int(user[2]))
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
    for container in containers(objects):
        context = container["securityContext"]
        assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]
        assert re.search(r":\d[\w.]*$|@sha256:", container["image"]), "the image has no version"


@of_each_overlay
def test_secrets_are_mounted_as_files_and_every_setting_exists(objects: list[Object]) -> None:
    data = named(objects, "ConfigMap")["identity-settings"]["data"]
    files = {name.removesuffix("_FILE"): path for name, path in data.items() if name.endswith("_FILE")}
    example = yaml.safe_load((KUBERNETES / "secret.example.yaml").read_text())
    assert {path.rpartition("/")[2] for path in files.values()} == files.keys() == example["stringData"].keys()
    assert {SETTINGS[name].kind for name in files} == {"secret", "keys"}
    plain = {name for name in data if name.removesuffix("_FILE") not in files}
    variables = {variable["name"] for container in containers(objects) for variable in container.get("env", [])}
    assert {SETTINGS[name].kind for name in plain | variables} <= {"text", "list", "integer", "number", "flag"}
    for pod in pods(objects).values():
        mounted = {volume["name"]: volume.get("secret", {}).get("secretName") for volume in pod["volumes"]}
        for container in pod["containers"]:
            [mount] = [mount for mount in container["volumeMounts"] if mounted[mount["name"]] == example["metadata"]["name"]]
            assert mount["readOnly"]
            assert {path.rpartition("/")[0] for path in files.values()} == {mount["mountPath"]}


@of_each_overlay
def test_web_processes_have_time_to_close_their_streams(objects: list[Object]) -> None:
    command = re.search(r'"--timeout-graceful-shutdown", "(\d+)"', DOCKERFILE)
    assert command is not None
    webs = [pod for name, pod in pods(objects).items() if name in {"identity-web", "identity-stream"}]
    assert webs
    for pod in webs:
        [container] = pod["containers"]
        sleep, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
        needed = int(seconds) + base.EVENTS_DRAIN_SECONDS + int(command[1])
        assert sleep == "sleep"
        assert pod["terminationGracePeriodSeconds"] >= needed + 5
        assert "command" not in container, "the grace period fits only the command of the image"


@of_each_overlay
def test_workers_have_the_same_shutdown_time_and_command_as_under_systemd(objects: list[Object]) -> None:
    unit = (ROOT / "deploy/systemd/identity-worker@.service").read_text()
    pod = pods(objects)["identity-worker"]
    [container] = pod["containers"]
    run = " ".join([*container["command"], *container["args"]])
    assert f"TimeoutStopSec={pod['terminationGracePeriodSeconds']}\n" in unit
    assert f"/{run}\n".replace(" worker ", " worker --hostname worker%i@%%h ") in unit.replace(".venv/bin/python", "/python")


@of_each_overlay
def test_probes_use_existing_paths(objects: list[Object]) -> None:
    for name in pods(objects).keys() & {"identity-web", "identity-stream"}:
        [container] = pods(objects)[name]["containers"]
        asked = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "readiness", "startup")}
        assert asked == {"liveness": LIVE, "readiness": READY, "startup": LIVE}
        [port] = container["ports"]
        assert f"EXPOSE {port['containerPort']}\n" in DOCKERFILE


@of_each_overlay
def test_pods_wait_for_the_migrations_of_their_version(objects: list[Object]) -> None:
    [migrate] = named(objects, "Job")["identity-migrate"]["spec"]["template"]["spec"]["containers"]
    assert migrate["command"] == ["python", "manage.py", "migrate", "--noinput"]
    for deployment in named(objects, "Deployment").values():
        pod = deployment["spec"]["template"]["spec"]
        [first] = pod["initContainers"]
        assert "manage.py migrate --check" in first["command"][-1]
        assert first["image"] == pod["containers"][0]["image"] == migrate["image"]


@of_each_overlay
def test_every_selector_matches_its_pods(objects: list[Object]) -> None:
    deployments = named(objects, "Deployment")
    labels = {name: found["spec"]["template"]["metadata"]["labels"] for name, found in deployments.items()}
    for name, found in deployments.items():
        assert [other for other in labels if selects(found["spec"]["selector"], labels[other])] == [name]
        for constraint in found["spec"]["template"]["spec"].get("topologySpreadConstraints", []):
            assert selects(constraint["labelSelector"], labels[name])
    for name, budget in named(objects, "PodDisruptionBudget").items():
        assert [other for other in labels if selects(budget["spec"]["selector"], labels[other])] == [name]
        assert budget["spec"]["maxUnavailable"] == 1
    for name, service in named(objects, "Service").items():
        assert [other for other in labels if selects({"matchLabels": service["spec"]["selector"]}, labels[other])] == [name]
    policies = named(objects, "NetworkPolicy")
    assert all(selects(policies["identity-pods"]["spec"]["podSelector"], found) for found in labels.values())
    reached = {name for name in labels if selects(policies["identity-requests"]["spec"]["podSelector"], labels[name])}
    assert reached == named(objects, "Service").keys()
    [ingress] = named(objects, "Ingress").values()
    paths = [path for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]]
    assert {path["backend"]["service"]["name"] for path in paths} == named(objects, "Service").keys()


def test_the_large_overlay_routes_streams_to_separate_processes() -> None:
    objects = OVERLAYS["large"]
    roles = {name: {each["name"]: each["value"] for each in pod["containers"][0].get("env", [])} for name, pod in pods(objects).items()}
    assert roles["identity-web"] == {"WEB_ROLE": "app"}
    assert roles["identity-stream"] == {"WEB_ROLE": "stream"}
    paths = named(objects, "Ingress")["identity"]["spec"]["rules"][0]["http"]["paths"]

    def service_of(address: str) -> str:
        return str(next(path["backend"]["service"]["name"] for path in paths if re.match(path["path"], address)))

    assert service_of("/api/v2/events") == service_of("/admin/events/live/acme/stream") == "identity-stream"
    assert service_of("/api/v2/event-streams") == service_of("/admin/events/live/acme/") == service_of("/") == "identity-web"


def test_autoscalers_use_existing_metrics_and_no_manifest_sets_a_fixed_number_of_their_pods() -> None:
    scalers = named(OVERLAYS["large"], "HorizontalPodAutoscaler")
    deployments = named(OVERLAYS["large"], "Deployment")
    assert scalers.keys() == {"identity-web", "identity-stream", "identity-worker"}
    for name, scaler in scalers.items():
        assert scaler["spec"]["scaleTargetRef"]["name"] == name
        assert "replicas" not in deployments[name]["spec"]
        for metric in scaler["spec"]["metrics"]:
            source = metric[metric["type"].lower()]
            assert source.get("name") == "cpu" or FIGURES[source["metric"]["name"]] == "gauge"


def test_a_patch_that_replaces_or_removes_a_missing_member_raises_an_error() -> None:
    with pytest.raises(KeyError):
        apply({"spec": {}}, {"op": "replace", "path": "/spec/replicas", "value": 1})
    with pytest.raises(KeyError):
        apply({"spec": {}}, {"op": "remove", "path": "/spec/replicas"})
