"""Options of social strategies, and of providers that a tenant configures itself. Pure."""

from __future__ import annotations

from identity.options.schemas.nodes import ADDRESS, READABLE, SECRET, Each, Members, Node, readable
from identity.options.schemas.shared import ATTRIBUTE_MAP, METADATA, schema

_CLIENT = "client_id scope freeform_scopes email profile"
_OIDC_ADDRESSES = """
issuer discovery_url domain authorization_endpoint token_endpoint userinfo_endpoint jwks_uri end_session_endpoint
token_endpoint_auth_method type
"""
_PROVIDER = """
authorizationURL logoutUrl pkce_enabled useOauthSpecScope token_endpoint_auth_method baseUrl postal_code address phone
"""
_PROVIDER_NODES: dict[str, Node] = {
    "fieldsMap": Each(READABLE),
    "tokenURL": ADDRESS,
    "userInfoURL": ADDRESS,
    # Headers and scripts are secret: some providers receive their credentials in headers, and scripts often contain credentials.
    "customHeaders": Each(SECRET),
    "scripts": Each(SECRET),
    "oidc_metadata": METADATA,
    "connection_settings": Members(readable("pkce")),
}
# Switches, each of which requests a scope.
_GOOGLE = """
adsense_management allowed_audiences analytics blogger calendar calendar_addons_execute calendar_events calendar_events_readonly
calendar_settings_readonly chrome_web_store contacts contacts_new contacts_other_readonly contacts_readonly
content_api_for_shopping coordinate coordinate_readonly directory_readonly document_list drive drive_activity
drive_activity_readonly drive_appdata drive_apps_readonly drive_file drive_metadata drive_metadata_readonly
drive_photos_readonly drive_readonly drive_scripts gmail gmail_compose gmail_insert gmail_labels gmail_metadata gmail_modify
gmail_new gmail_readonly gmail_send gmail_settings_basic gmail_settings_sharing google_affiliate_network google_books
google_cloud_storage google_drive google_drive_files google_plus latitude_best latitude_city moderator offline_access orkut
picasa_web sites spreadsheets tasks tasks_readonly url_shortener webmaster_tools youtube youtube_channelmemberships_creator
youtube_new youtube_readonly youtube_upload youtubepartner
"""
_FACEBOOK = """
ads_management ads_read allow_context_profile_field business_management groups_access_member_info leads_retrieval
manage_notifications manage_pages pages_manage_cta pages_manage_instant_articles pages_messaging pages_messaging_phone_number
pages_messaging_subscriptions pages_show_list public_profile publish_actions publish_pages publish_to_groups publish_video
read_audience_network_insights read_insights read_mailbox read_page_mailboxes read_stream user_age_range user_birthday
user_events user_friends user_gender user_groups user_hometown user_likes user_link user_location user_managed_groups
user_photos user_posts user_status user_tagged_places user_videos
"""
_GITHUB = """
admin_org admin_public_key admin_repo_hook delete_repo follow gist notifications public_repo read_org read_public_key
read_repo_hook read_user repo repo_deployment repo_status write_org write_public_key write_repo_hook
"""
_WINDOWS_LIVE = """
applications applications_create basic birthday calendars calendars_update contacts_birthday contacts_calendars contacts_create
contacts_photos contacts_skydrive directory_accessasuser_all directory_read_all directory_readwrite_all emails events_create
graph_calendars graph_calendars_update graph_contacts graph_contacts_update graph_device graph_device_command graph_emails
graph_emails_update graph_files graph_files_all graph_files_all_update graph_files_update graph_notes graph_notes_create
graph_notes_update graph_tasks graph_tasks_update graph_user graph_user_activity graph_user_update group_read_all
group_readwrite_all mail_readwrite_all mail_send messenger offline_access phone_numbers photos postal_addresses
rolemanagement_read_all rolemanagement_readwrite_directory share signin sites_read_all sites_readwrite_all skydrive
skydrive_update team_readbasic_all team_readwrite_all user_read_all user_readbasic_all work_profile
"""

# Any provider with OAuth 2.0 or OpenID Connect and without its own schema.
OAUTH2 = schema(_CLIENT, _OIDC_ADDRESSES, _PROVIDER, **_PROVIDER_NODES)
OAUTH1 = schema(
    "client_id consumer_key userAuthorizationURL signatureMethod sessionKey scope",
    requestTokenURL=ADDRESS,
    accessTokenURL=ADDRESS,
    consumer_secret=SECRET,
    customHeaders=Each(SECRET),
    scripts=Each(SECRET),
)
GOOGLE = schema(
    _CLIENT, _OIDC_ADDRESSES, _GOOGLE, "hosted_domains", attribute_map=ATTRIBUTE_MAP, connection_settings=Members(readable("pkce"))
)
APPLE = schema(_CLIENT, "team_id kid", app_secret=SECRET)
FACEBOOK = schema(_CLIENT, _FACEBOOK, "graph_version")
GITHUB = schema(_CLIENT, _GITHUB)
LINKEDIN = schema(_CLIENT, "basic_profile full_profile network openid")
TWITTER = schema(_CLIENT, "protocol offline_access tweet_read users_read")
WINDOWS_LIVE = schema(_CLIENT, _WINDOWS_LIVE)
SALESFORCE = schema(_CLIENT, "community_base_url")
