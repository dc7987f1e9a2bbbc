"""The sentence under the title of each list. A test fails if a list has none."""

from __future__ import annotations

from collections.abc import Mapping

ABOUT: Mapping[str, str] = {
    # People
    "identity.user": "The accounts with which people log in to the applications of a tenant. Each change of a user becomes an event.",
    "identity.organization": "The customers of a tenant. Each organization has members, connections and roles of its own.",
    "identity.group": "Sets of users of the tenant, an organization or a connection. All members of a group have its roles.",
    "identity.role": "Named sets of permissions. Assign them to users, to groups or to members of organizations.",
    "identity.connection": "How users log in: with a password, a code, a link, or at a provider. Each user belongs to one connection.",
    "authapi.session": "Users who are logged in, with their browsers. When a session ends, the service notifies its applications.",
    "identity.job": "Long tasks such as imports, exports and deletions, with their progress and errors.",
    "identity.linkedidentity": "Additional accounts that were linked to a user. The user can log in with each linked account.",
    "identity.groupmember": "The users in each group, and the groups that are nested in another group.",
    "identity.grouprole": "Roles that all members of a group have in the whole tenant.",
    "identity.userrole": "Roles that a user has in the whole tenant.",
    "identity.organizationmember": "The users who belong to each organization.",
    "identity.organizationmemberrole": "Roles that members have in one organization. When a membership ends, the member loses these roles.",
    "identity.organizationgrouprole": "Roles that the members of a group have in one organization.",
    "identity.organizationconnection": "Connections with which users log in to an organization.",
    "authapi.invitation": "Invitations to organizations, each for one email address. They are listed until 30 days after they expire.",
    "authapi.consent": "Permissions that users gave to applications. If you withdraw a consent, the application must ask the user again.",
    "authapi.passwordlesscode": "Codes and links that were sent for logins without a password. Their values are never shown.",
    "identity.enrolledfactor": "Second factors and passkeys of users. Codes, secrets and complete addresses are never shown.",
    "authapi.rememberedbrowser": "Browsers in which, for a limited time, a user can log in without the second factor.",
    "authapi.passkeyceremony": "Unfinished logins and sign-ups with a passkey. Challenges are never shown.",
    "authapi.factortransaction": "Logins through an application's own form for which the second factor is missing. Their tokens are never shown.", "authapi.factorchallenge": "Codes that were sent as second factors, and challenges that keys must sign. Their values are never
    shown.", "authapi.devicekey": "Public keys of devices on which users of legacy clients stay logged in.", "authapi.accountticket": "Links
    that set a password, lift a block or set up a second factor. Each link works once.", "identity.passwordcredential": "Users who have a
    password, and when it was set. Passwords are never shown.", "identity.joberror": "Rows that a job could not process, with the reason. To
    see them, search for the id of the job.", "identity.jobchunk": "The input and output of running jobs, in parts. The parts of a job are
    deleted when the job ends.",
    # Applications
    "authapi.client": "Applications that log users in or call APIs.",
    "authapi.tenantsettings": "Settings for logins, such as names on pages, lifetimes of sessions and limits of failed logins.",
    "authapi.apiresource": "APIs for which applications request tokens, with their scopes.",
    "authapi.tokenexchangeprofile": "Other issuers whose tokens applications can exchange for tokens of a user.",
    "authapi.clientgrant": "Which scopes of an API an application may request.",
    "authapi.clientcredential": "Public keys and certificates with which applications authenticate instead of a secret.",
    "authapi.organizationclientgrant": "Organizations in which a client grant is valid.",
    "authapi.permission": "The scopes of APIs that were given to a role or to a user.",
    "authapi.rolepermission": "The permissions of each role. All users with the role have these permissions.",
    "authapi.userpermission": "Permissions that are assigned to users directly, without a role.",
    "authapi.sessionclient": "Applications that received tokens in a session. The service notifies them when the session ends.",
    "authapi.logoutnotice": "Applications that the service has not yet notified of the end of a session.",
    "authapi.pushedrequest": "Authorization requests that applications sent to /oauth/par and that no login has used yet.",
    "authapi.loginticket": "Users who entered a password in a legacy client and whose browser has not reached the login pages yet.",
    "authapi.logintransaction": "Unfinished logins on the login pages.",
    "authapi.logouttransaction": "Logouts during which the browser visits applications, so that the applications end their sessions.",
    # Streams
    "events.logentry": "All events of a tenant, newest first. Clients that read /api/v2/events get the same events, oldest first.",
    "events.eventstream": "Each stream sends selected events to one destination: an action, such as SCIM provisioning, or a webhook.",
    "events.event": "All events, also those that are not in the log yet. If you choose one tenant, the list is sorted by entity.",
    "events.head": "The last position of each tenant's log, and the position up to which old events were deleted.",
    "events.outbox": "Recorded events that are not in the log yet. Normally, each event enters the log within a second.",
    "events.mark": "Changes without an event, because a program other than the service wrote to the database. Find out which program.",
    # Provisioning
    "provisioning.action": "An action processes the events of event streams. For example, it provisions users to a SCIM server.",
    "provisioning.delivery": "A delivery sends one event to the destination of a stream. If all attempts fail, a dead letter is stored.",
    "provisioning.deadletter": "Events that a destination did not accept after all attempts. Fix the cause, then redeliver them.",
    "provisioning.synchronizationrow": "The result for each user of a synchronization or a comparison. Search by the id of the job.",
    "provisioning.accountlink": "The account of each user on a SCIM server. A link is suspect if only the userName identified the account.",
    "provisioning.alert": "Messages by email or webhook, which tell administrators about failing deliveries and held streams.",
    "provisioning.lane": "A lane is the queue of one user (or other entity) in one stream. Its deliveries run one after the other.",
    "provisioning.breaker": "Streams whose destination failed, with the number of failures in a row. Too many failures hold the stream.",
    "provisioning.ignoredkind": "Kinds of failure that cause no alerts until a certain date. Their dead letters are kept.",
    "provisioning.deletionguard": "Number of users that a stream may delete within a period. More deletions need your approval.",
    "provisioning.attempt": "Each try to send a delivery to its destination. Failed attempts show the requests and the responses.",
    "provisioning.actionversion": "Versions of each action, one per deployment. Deliveries use the deployed version.",
    "provisioning.actionsecret": "Addresses and tokens that actions use. Values are encrypted and never shown again.",
    "provisioning.trial": "Connection tests, dry runs and other runs of an action that a person or a client started. No run is a delivery.",
    "provisioning.sweeper": "The process that finds waiting deliveries whose message to a worker was lost, and sends the message again.",
    # Security
    "authapi.signin": "Logins, logouts, sign-ups and password changes, with their results.",
    "identity.auditentry": "Each change by staff, by clients of the management interface and by commands, with the old and new values.",
    "authapi.loginfailures": "Users whose logins failed recently, and users who are blocked. A block expires, or you lift it.",
    "authapi.addressblock": "IP addresses that have used up their attempts to log in, to sign up or to exchange tokens. A block "
    "expires, or you lift it.",
    "authapi.knownbrowser": "Browsers in which users have logged in. Sign-in settings define whether users get an email about a login "
    "with a new browser.",
    "authapi.attacknotice": "The last email to administrators about each kind of attack, and when the next email will report new attacks.",
    "identity.staff": "Accounts that can log in to this admin, with their roles.",
    "authapi.samlkey": "Certificates that sign SAML messages. Publish the next certificate, make it current, then remove the old one.",
    "authapi.signingkey": "Keys that sign tokens. Rotation makes the next key current. Tokens of a revoked key are invalid.",
    "authapi.refreshtoken": "Tokens with which applications renew access without the user. Revoke a token to end this access.",
    "authapi.accesstoken": "Opaque access tokens, which are random values. Access tokens in the format JWT are not stored.",
    "authapi.revokedtoken": "Revoked tokens that have not expired yet. The service refuses them.",
    "authapi.idtoken": "Tokens with the profile of a user who has logged in. This service does not store them, so the list is empty.",
    "authapi.authorizationcode": "One-time codes that applications exchange for tokens after a login.",
    "authapi.cibarequest": "Requests of applications that a user approves on another device or in another browser.",
    "authapi.devicegrant": "Codes with which a device without a keyboard requests a login.",
    "authapi.usedassertion": "Signed assertions with which applications have authenticated. The service accepts each assertion once.",
    "authapi.initialaccesstoken": "Tokens with which an application registers itself. Each token is shown once, when it is created.",
    "authapi.edgekey": "Secrets with which the TLS proxies of custom domains authenticate when they forward certificates of applications.",
    # Platform
    "identity.tenant": "The customers of this platform. The data of each tenant is separate.",
    "identity.customdomain": "Hosts at which users and clients reach a tenant. A domain works after it is verified.",
    "identity.formertenant": "Tenants that were deleted. No new tenant can get the id of a former tenant.",
}
