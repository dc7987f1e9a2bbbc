"""Guided setup of a SCIM server in five pages that work without scripts. No event is delivered before the last step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.utils import quote
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator

from identity.admin.assurance import needs_proof
from identity.admin.jobs import state_text
from identity.admin.refusals import add_to_form, refusals
from identity.admin.scope import actor_of
from identity.admin.tenant_page import TenantPage
from identity.audit.entries import record
from identity.models import User
from identity.services.failures import NotFound
from provisioning.actions.setups import draft_setup
from provisioning.admin.mapping_editor import FROM_SETUP
from provisioning.admin.setup import kept_token
from provisioning.admin.setup.forms import EnableForm, PreviewForm, ServerForm
from provisioning.admin.synchronizations import DryRunForm, report_of
from provisioning.admin.trial_pages import ConnectionTestForm, report_context
from provisioning.guided_setup import setups, steps
from provisioning.guided_setup.progress import StepState, warning_of, warnings_of
from provisioning.guided_setup.setups import GuidedSetup
from provisioning.links.overlaps import overlap_warnings
from provisioning.models import Action
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.runs.failures import Misconfigured
from provisioning.scim.profiles import GENERIC, PROFILES
from provisioning.scim.settings import BEARER_TOKEN
from provisioning.services import actions
from provisioning.synchronization.plan import Plan
from provisioning.trials.connection_test import run_connection_test
from provisioning.trials.user_run import run_for_user

_FURTHER = ("provisioning.change_action", "events.add_eventstream", "events.change_eventstream")


@dataclass(frozen=True)
class Step:
    name: str
    title: str
    explanation: str
    button: str


STEPS = (
    Step(
        "server",
        "Server",
        "Enter the address and the token of the server. The token is encrypted and never shown again.",
        "Save and continue",
    ),
    Step(
        "test",
        "Test",
        "Tests whether the server accepts the token and meets the requirements of SCIM. Without the write check, the test only reads.",
        "Test connection",
    ),
    Step(
        "preview",
        "Mapping",
        "Shows the request that a delivery would send for one user, and what it would change on the server. Nothing is written.",
        "Show preview",
    ),
    Step(
        "dry-run",
        "Dry run",
        "Looks up all users on the server, and counts the accounts that the first synchronization would create, link or update. "
        "Nothing is written to the server. This step deploys the action and creates its event stream, which stays disabled.",
        "Start dry run",
    ),
    Step("enable", "Go live", "Enables the event stream, which then delivers every change of a user to the server.", "Go live"),
)


# The overview shows at most this many unfinished setups.
_DRAFTS = 10
# The name under which a token is kept for a new setup, which has no id yet.
_NEW = "new"
_STATES = {
    StepState.TO_DO: "To do",
    StepState.RUNNING: "Running",
    StepState.FAILED: "Failed",
    StepState.CHANGED: "Repeat",
    StepState.DONE: "Done",
}
_TONES = {StepState.FAILED: "warn", StepState.CHANGED: "warn", StepState.DONE: "done"}


def _user_to_preview(setup: GuidedSetup) -> str:
    """Return the email address or the id of the user to preview.

    This is the user of the last preview, whose report the page shows; otherwise the newest user.
    """
    last, users = setup.newest_trial(setups.PREVIEWS), User.objects.of(setup.action.tenant_id)
    user = users.filter(user_id=last.user_id).first() if last is not None else None
    user = user or users.order_by("-created_at", "-pk").first()
    return (user.email or user.user_id) if user is not None else ""


def _overlaps(setup: GuidedSetup) -> list[str]:
    """Return a warning for each enabled stream that writes to the same server. Empty before the dry run creates the stream."""
    return [] if setup.stream is None else overlap_warnings(setup.action.tenant_id).get(setup.stream.pk, [])


class ConnectPage(TenantPage):
    label = "provisioning.connect-page"
    title = "Connect a SCIM server"
    url_name = "provisioning_connect"
    permission = "provisioning.add_action"

    def urls(self) -> list[URLPattern]:
        place = "provisioning/connect"
        paths = [
            path(
                f"{place}/<str:action_id>/{step.name}/",
                self.for_tenant(self._guarded(step), *_FURTHER),
                name=f"{self.url_name}_{step.name}",
            )
            for step in STEPS
        ]
        return [
            path(f"{place}/", self.for_tenant(self.begin), name=self.url_name),
            path(f"{place}/new/", self.for_tenant(self.new, *_FURTHER), name=f"{self.url_name}_new"),
            *paths,
            path(f"{place}/<str:action_id>/discard/", self.for_tenant(self.discard, *_FURTHER), name=f"{self.url_name}_discard"),
        ]

    # Overview, new setups, discarding of setups

    def begin(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """List unfinished setups, with links to continue and to discard them."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        unfinished = setups.unfinished(tenant_id)
        next_steps = setups.next_steps(tenant_id, unfinished[:_DRAFTS])
        drafts = [
            {
                "setup": setup,
                "step": next(step.title for step in STEPS if step.name == next_step),
                "url": self._address(next_step, setup),
                "discard_url": self._address("discard", setup),
            }
            for setup, next_step in zip(unfinished[:_DRAFTS], next_steps, strict=True)
        ]
        further = {"older": len(unfinished) - len(drafts), "new_url": reverse(f"{self.site.name}:{self.url_name}_new")}
        return self.page(request, "admin/connect_begin.html", {"drafts": drafts, **further})

    @method_decorator(needs_proof)
    def new(self, request: HttpRequest, tenant_id: str) -> HttpResponse:
        """Create a setup from the name, the base URL and the token of a server."""
        token = kept_token.kept(request, tenant_id=tenant_id, setup=_NEW)
        entered = request.POST if request.method == "POST" else None
        form = ServerForm(entered, instance=Action(tenant_id=tenant_id), label_suffix="", kept_token=token)
        if request.method == "POST" and form.is_valid():
            try:
                action = actions.create_action(
                    tenant_id=tenant_id,
                    name=form.cleaned_data["name"],
                    template=SCIM_USER_PROVISIONING,
                    options=form.chosen_options(),
                    secrets=form.secrets(),
                )
                kept_token.forget(request)
                return self._on(request, GuidedSetup(action, None), "test")
            except refusals() as refusal:
                add_to_form(form, refusal)
        self._keep_token(request, form, tenant_id=tenant_id, setup=_NEW)
        return self._shown(request, STEPS[0], None, form)

    def _keep_token(self, request: HttpRequest, form: ServerForm, *, tenant_id: str, setup: str) -> None:
        """Keep the token of a form whose other fields have errors, so that staff need not enter the token again."""
        if request.method == "POST" and form.usable_token:
            kept_token.keep(request, form.usable_token, tenant_id=tenant_id, setup=setup)
            form.fields[BEARER_TOKEN].widget.attrs["placeholder"] = "Entered. Leave empty to use it."

    def discard(self, request: HttpRequest, tenant_id: str, action_id: str) -> HttpResponse:
        """Discard a setup after a confirmation."""
        setup = self._setup(tenant_id, action_id)
        form = forms.Form(request.POST or None)
        if request.method == "POST":
            form = forms.Form(request.POST)
            form.full_clean()
            try:
                steps.discard(setup)
            except refusals() as refusal:
                add_to_form(form, refusal)
            else:
                messages.success(request, f"The setup of {setup.action.name} was discarded.")
                return HttpResponseRedirect(self.address)
        return self.page(request, "admin/connect_discard.html", {"setup": setup, "form": form, "back_url": self.address})

    # Steps of one setup

    def _guarded(self, step: Step) -> Callable[..., HttpResponse]:
        # Only the first step changes secrets, so only this step requires a proof.
        view = self._view_of(step)
        return needs_proof(view) if step is STEPS[0] else view

    def _view_of(self, step: Step) -> Callable[..., HttpResponse]:
        act = getattr(self, f"_{step.name.replace('-', '_')}")

        def view(request: HttpRequest, tenant_id: str, action_id: str) -> HttpResponse:
            setup = self._setup(tenant_id, action_id)
            form = self._form(request, step, setup)
            if request.method == "POST" and form.is_valid():
                try:
                    answer: HttpResponse = act(request, setup, form)
                except Misconfigured as error:
                    form.add_error(None, str(error))
                except refusals() as refusal:
                    add_to_form(form, refusal)
                else:
                    return answer
            if isinstance(form, ServerForm):
                self._keep_token(request, form, tenant_id=tenant_id, setup=action_id)
            return self._shown(request, step, setup, form)

        return view

    def _form(self, request: HttpRequest, step: Step, setup: GuidedSetup) -> Any:
        data = request.POST if request.method == "POST" else None
        if step.name == "server":
            token = kept_token.kept(request, tenant_id=setup.action.tenant_id, setup=str(setup.action.pk))
            return ServerForm(data, instance=setup.action, label_suffix="", kept_token=token)
        if step.name == "preview":
            return PreviewForm(data, initial={"user": _user_to_preview(setup)}, label_suffix="")
        if step.name == "enable":
            return EnableForm(data, label_suffix="", untested=bool(warnings_of(setup.states)))
        kinds = {"test": ConnectionTestForm, "dry-run": DryRunForm}
        return kinds[step.name](data, label_suffix="")

    def _server(self, request: HttpRequest, setup: GuidedSetup, form: ServerForm) -> HttpResponse:
        action = setup.action
        profile = {"server_profile": form.cleaned_data["server_profile"]} if form.cleaned_data.get("server_profile") else {}
        options = {name: value for name, value in action.options.items() if name != "server_profile"} | profile
        changes: dict[str, Any] = {"name": form.cleaned_data["name"]} if "name" in form.changed_data else {}
        changes |= {"options": options} if options != action.options else {}
        # Even without changes, `update_action` stores a new time of change, and the last test would count as older than the configuration.
        if changes or form.secrets():
            actions.update_action(tenant_id=action.tenant_id, action_id=action.pk, changes=changes, secrets=form.secrets())
        kept_token.forget(request)
        return self._on(request, setup, "test")

    def _test(self, request: HttpRequest, setup: GuidedSetup, form: forms.Form) -> HttpResponse:
        run_connection_test(draft_setup(setup.action), actor=actor_of(request), with_write_check=form.cleaned_data["with_write_check"])
        record("Test connection", about=setup.action)
        return self._on(request, setup, "test")

    def _preview(self, request: HttpRequest, setup: GuidedSetup, form: forms.Form) -> HttpResponse:
        try:
            run_for_user(draft_setup(setup.action), user_id=form.cleaned_data["user"], actor=actor_of(request), dry_run=True)
        except NotFound as error:
            form.add_error("user", str(error))
            return self._shown(request, STEPS[2], setup, form)
        record("Run for one user", about=setup.action, is_dry_run=True)
        return self._on(request, setup, "preview")

    def _dry_run(self, request: HttpRequest, setup: GuidedSetup, form: forms.Form) -> HttpResponse:
        plan = Plan(is_dry_run=True, match=form.cleaned_data["match"], rate=form.cleaned_data["rate"])
        steps.start_dry_run(setup, plan=plan, actor=actor_of(request))
        return self._on(request, setup, "dry-run")

    def _enable(self, request: HttpRequest, setup: GuidedSetup, form: forms.Form) -> HttpResponse:
        is_synchronized = form.cleaned_data["begin"] == "synchronize"
        stream = steps.enable(setup, is_synchronized=is_synchronized, actor=actor_of(request))
        done = "The first synchronization is running. When it ends, the stream is enabled." if is_synchronized else "The stream is enabled."
        messages.success(request, f"{setup.action.name} is connected. {done}")
        return HttpResponseRedirect(reverse(f"{self.site.name}:events_eventstream_change", args=(quote(stream.pk),)))

    # Rendering

    def _shown(self, request: HttpRequest, step: Step, setup: GuidedSetup | None, form: Any) -> HttpResponse:
        place = STEPS.index(step)
        states = {STEPS[0].name: StepState.TO_DO} if setup is None else setup.states
        context: dict[str, Any] = {
            "title": f"{self.title}: {step.title}",
            "step": step,
            "number": place + 1,
            "all_steps": [
                {
                    "title": one.title,
                    "is_here": one is step,
                    "state": _STATES[states.get(one.name, StepState.TO_DO)],
                    "tone": _TONES.get(states.get(one.name, StepState.TO_DO), ""),
                    "is_done": states.get(one.name) == StepState.DONE,
                    "url": self._address(one.name, setup) if setup is not None else "",
                }
                for one in STEPS
            ],
            "setup": setup,
            "profile": PROFILES.get(setup.action.options.get("server_profile", GENERIC)) if setup is not None and place else None,
            "untested": warnings_of(states) if step.name == "enable" else [],
            "outdated": warning_of(step.name, StepState.CHANGED) if states.get(step.name) == StepState.CHANGED else "",
            # Until the test of this step has passed, the button of the step is the primary action.
            "is_next_primary": place > 0 and states.get(step.name) == StepState.DONE,
            "overlaps": _overlaps(setup) if setup is not None and step.name == "enable" else [],
            "form": form,
            "outbound_addresses": settings.OUTBOUND_ADDRESSES,
            "begin_url": self.address,
            "next_url": self._address(STEPS[place + 1].name, setup) if setup is not None and place + 1 < len(STEPS) else "",
            "next_title": STEPS[place + 1].title if place + 1 < len(STEPS) else "",
        }
        return self.page(request, "admin/connect_step.html", {**context, **({} if setup is None else self._found(request, step, setup))})

    def _found(self, request: HttpRequest, step: Step, setup: GuidedSetup) -> dict[str, Any]:
        """Return the results of the step."""
        site = self.site.name
        if step.name == "dry-run" and (job := setup.dry_run) is not None:
            return {
                "job": job,
                "job_state": state_text(job),
                "job_url": reverse(f"{site}:identity_job_change", args=(quote(job.pk),)),
                "refresh_seconds": 0 if job.is_finished else 3,
                "panels": [report_of(self.site, request, job)],
            }
        kinds = {"test": setups.TESTS, "preview": setups.PREVIEWS}.get(step.name)
        trial = setup.newest_trial(kinds) if kinds else None
        shown = {"mapping_url": f"{reverse(f'{site}:provisioning_action_mapping', args=(quote(setup.action.pk),))}?{FROM_SETUP}"}
        return shown | (report_context(trial) if trial is not None else {})

    def _setup(self, tenant_id: str, action_id: str) -> GuidedSetup:
        try:
            return setups.found(tenant_id=tenant_id, action_id=action_id)
        except NotFound as error:
            raise Http404 from error

    def _on(self, _request: HttpRequest, setup: GuidedSetup, step: str) -> HttpResponse:
        return HttpResponseRedirect(self._address(step, setup))

    def _address(self, step: str, setup: GuidedSetup) -> str:
        return reverse(f"{self.site.name}:{self.url_name}_{step}", kwargs={"action_id": setup.action.pk})
