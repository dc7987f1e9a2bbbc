"""The models that the audit log watches: all models of the apps, except the models that this module lists with a reason."""

from __future__ import annotations

from collections.abc import Mapping

from django.apps import apps

from identity.audit import row_audit

_APPS = ("identity", "authapi", "events", "provisioning")
_IS_A_LOG = "is a log itself"
_BY_THE_SERVICE = "only the service itself writes it"
_PART_OF_A_JOB = "part of a job; the start and the end of the job have audit entries"
# There are thousands of these rows, and one statement deletes many. If the models were watched, each deleted row would get an audit entry.
# So the models are not watched. If staff delete or revoke a single row, the code of that command writes an audit entry itself.
_SHORT_LIVED = "short-lived; the command with which staff end a row writes an audit entry itself"
NOT_WATCHED: Mapping[str, str] = {
    "identity.auditentry": _IS_A_LOG,
    "identity.formertenant": _BY_THE_SERVICE,
    "identity.jobchunk": _PART_OF_A_JOB,
    "identity.joberror": _PART_OF_A_JOB,
    "identity.jobuser": _PART_OF_A_JOB,
    "identity.emailticket": _BY_THE_SERVICE,
    "identity.formerpassword": _BY_THE_SERVICE,
    "authapi.logintransaction": _SHORT_LIVED,
    "authapi.logouttransaction": _SHORT_LIVED,
    "authapi.usedassertion": _SHORT_LIVED,
    "authapi.authorizationcode": _SHORT_LIVED,
    "authapi.accesstoken": _SHORT_LIVED,
    "authapi.refreshtoken": _SHORT_LIVED,
    "authapi.idtoken": _SHORT_LIVED,
    "authapi.devicegrant": _SHORT_LIVED,
    "authapi.cibarequest": _SHORT_LIVED,
    "authapi.session": _SHORT_LIVED,
    "authapi.sessionclient": _SHORT_LIVED,
    "authapi.consent": _SHORT_LIVED,
    "authapi.loginfailures": _SHORT_LIVED,
    "authapi.addressblock": _SHORT_LIVED,
    "authapi.knownbrowser": _SHORT_LIVED,
    "authapi.attacknotice": _BY_THE_SERVICE,
    "authapi.accountticket": _SHORT_LIVED,
    "authapi.pushedrequest": _SHORT_LIVED,
    "authapi.passwordlesscode": _SHORT_LIVED,
    "authapi.factorchallenge": _SHORT_LIVED,
    "authapi.rememberedbrowser": _SHORT_LIVED,
    "authapi.loginticket": _SHORT_LIVED,
    "authapi.logoutnotice": _BY_THE_SERVICE,
    "authapi.signin": _IS_A_LOG,
    "authapi.administrativeline": _IS_A_LOG,
    "events.event": _IS_A_LOG,
    "events.outbox": _IS_A_LOG,
    "events.logentry": _IS_A_LOG,
    "events.head": _BY_THE_SERVICE,
    "events.databaseidentity": _BY_THE_SERVICE,
    "events.mark": _BY_THE_SERVICE,
    "events.tally": _BY_THE_SERVICE,
    "provisioning.delivery": _BY_THE_SERVICE,
    "provisioning.attempt": _IS_A_LOG,
    "provisioning.trial": _IS_A_LOG,
    "provisioning.alert": _BY_THE_SERVICE,
    "provisioning.lane": _BY_THE_SERVICE,
    "provisioning.accountlink": _BY_THE_SERVICE,
    "provisioning.accountlock": _BY_THE_SERVICE,
    "provisioning.nameddeletions": _BY_THE_SERVICE,
    "provisioning.breaker": _BY_THE_SERVICE,
    "provisioning.sweeper": _BY_THE_SERVICE,
    "provisioning.pace": _BY_THE_SERVICE,
    "provisioning.synchronizationrow": _IS_A_LOG,
}
# Rows of users. The audit log has no entries about changes that clients of the management interface make to these rows. There can be
# thousands of such changes, and the event of each change contains the client.
OF_PEOPLE = frozenset(
    {
        "identity.user",
        "identity.linkedidentity",
        "identity.passwordcredential",
        "identity.enrolledfactor",
        "identity.userrole",
        "identity.groupmember",
        "identity.organizationmember",
        "identity.organizationmemberrole",
        "identity.job",
        "authapi.userpermission",
    }
)


def watch_models() -> None:
    """Watch all models of the apps, except the models that this module excludes."""
    row_audit.connect()
    for label in _APPS:
        for model in apps.get_app_config(label).get_models():
            name = model._meta.label_lower
            if name not in NOT_WATCHED:
                row_audit.watch(model, of_clients=name not in OF_PEOPLE)
