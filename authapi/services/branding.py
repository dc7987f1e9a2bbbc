"""Changes the looks of a tenant: its theme, its pictures and its branding settings. Also restores the default looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from authapi.looks.addresses import digest_in, is_font, is_own_picture, is_picture, picture_path
from authapi.looks.colors import is_color, readable_on
from authapi.looks.contrast import findings
from authapi.looks.current import remembered_themes
from authapi.looks.pictures import KINDS, PictureRefused, picture_of
from authapi.looks.theme import GROUPS, Member, Theme, default_theme, members, value_at, with_value
from authapi.models import BrandingPicture, BrandingTheme, TenantSettings
from authapi.services.tenant_settings import update_branding
from authapi.tenant_settings import BRANDING_DEFAULTS, settings_values
from foundation.acting import said
from foundation.database.transactions import after_commit, lock_rows, unit_of_work
from identity.models import Tenant
from identity.services.failures import Conflict, Invalid, NotFound
from identity.services.saving import validated_save

NO_THEME = "There was an error retrieving branding settings: invalid theme ID"
LONGEST_NAME = 2048
# The setting that has the URL of an uploaded picture, by kind of picture.
_PLACES: Mapping[str, str] = {"logo": "logo_url", "favicon": "favicon_url"}
_BACKGROUND = ("page_background", "background_image_url")
_THEME_LOGO = ("widget", "logo_url")


@dataclass(frozen=True)
class Stored:
    """An uploaded picture as it is stored: its path and its size in pixels."""

    path: str
    width: int
    height: int


@unit_of_work
def create_theme(*, tenant_id: str, values: Theme, display_name: str = "") -> BrandingTheme:
    """Create the theme of a tenant. Raises `Conflict` if the tenant already has a theme, and `Invalid` for invalid values."""
    lock_rows(Tenant, [tenant_id])
    if BrandingTheme.objects.of(tenant_id).exists():
        raise Conflict("A theme already exists. Update it, or delete it first.")
    return _written(BrandingTheme(tenant_id=tenant_id), values, display_name)


@unit_of_work
def update_theme(*, tenant_id: str, theme_id: str, groups: Theme, display_name: str | None = None) -> BrandingTheme:
    """Replace the named groups of a theme. Raises `NotFound` and `Invalid`."""
    row = _locked_theme(tenant_id, theme_id)
    return _written(row, {**row.values, **groups}, row.display_name if display_name is None else display_name)


@unit_of_work
def delete_theme(*, tenant_id: str, theme_id: str) -> None:
    """Delete a theme. The pages then have the default looks. Raises `NotFound`."""
    row = _locked_theme(tenant_id, theme_id)
    row.delete()
    _forget(tenant_id)
    _drop_unused_pictures(tenant_id)


@unit_of_work
def change_branding(*, tenant_id: str, changes: dict[str, str | None]) -> dict[str, str]:
    """Replace the given branding settings, by the names in `BRANDING_DEFAULTS`, and return all of them. Raises `Invalid`."""
    _check_pictures(tenant_id, changes)
    update_branding(tenant_id=tenant_id, changes=changes)
    _drop_unused_pictures(tenant_id)
    return branding_of(tenant_id)


@unit_of_work
def save_looks(*, tenant_id: str, branding: dict[str, str | None], theme: Theme) -> BrandingTheme:
    """Save the form of the admin: branding settings and theme. Creates the theme if there is none. Raises `Invalid`."""
    lock_rows(Tenant, [tenant_id])
    row = BrandingTheme.objects.of(tenant_id).first() or BrandingTheme(tenant_id=tenant_id)
    with said("Save branding"):
        _check_pictures(tenant_id, branding)
        saved = _written(row, theme, row.display_name)
        update_branding(tenant_id=tenant_id, changes=branding)
    _drop_unused_pictures(tenant_id)
    return saved


@unit_of_work
def reset_looks(*, tenant_id: str) -> None:
    """Restore the default looks: delete the theme and the pictures, and clear the logo, the colors and the font."""
    lock_rows(Tenant, [tenant_id])
    with said("Reset branding"):
        for row in BrandingTheme.objects.of(tenant_id):
            row.delete()
        update_branding(tenant_id=tenant_id, changes=dict.fromkeys(BRANDING_DEFAULTS))
    _forget(tenant_id)
    _drop_unused_pictures(tenant_id)


def upload_picture(*, tenant_id: str, kind: str, sent: bytes) -> Stored:
    """Check and store a picture, and make the pages show it. Raises `PictureRefused`.

    The picture is decoded before the transaction begins, because decoding is slow.
    """
    found = KINDS.get(kind)
    if found is None:
        raise PictureRefused("There is no picture of this kind.")
    picture = picture_of(sent, found)
    return _stored(tenant_id=tenant_id, kind=kind, picture=picture)


def theme_of(tenant_id: str) -> BrandingTheme | None:
    """Return the theme of a tenant from the database; None if the tenant has no theme."""
    return BrandingTheme.objects.of(tenant_id).first()


def branding_of(tenant_id: str) -> dict[str, str]:
    """Return the branding settings of a tenant from the database, by the names in `BRANDING_DEFAULTS`."""
    row = TenantSettings.objects.of(tenant_id).first()
    return {**BRANDING_DEFAULTS, **settings_values(row).get("branding", {})}


def problems_of(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the errors of a theme, by the dotted path of each member. The errors include color pairs that are hard to read."""
    problems = {name: ["Unknown group."] for name in values if name not in GROUPS}
    for path, member in members():
        value = value_at(values, path)
        if member.is_required or value != member.default:
            problem = _problem(member, value)
            if problem:
                problems[".".join(path)] = [problem]
    if problems:
        return problems
    return {".".join(found.path): [found.sentence] for found in findings(values) if found.is_refused}


@unit_of_work
def _stored(*, tenant_id: str, kind: str, picture: Any) -> Stored:
    lock_rows(Tenant, [tenant_id])
    path = picture_path(picture.digest, picture.ending)
    with said(f"Upload a {kind}"):
        if not BrandingPicture.objects.of(tenant_id).filter(digest=picture.digest).exists():
            BrandingPicture(
                tenant_id=tenant_id,
                kind=kind,
                digest=picture.digest,
                ending=picture.ending,
                media_type=picture.media_type,
                width=picture.width,
                height=picture.height,
                data=picture.data,
            ).save()
        _show(tenant_id, kind, path)
    _drop_unused_pictures(tenant_id)
    return Stored(path, picture.width, picture.height)


def _show(tenant_id: str, kind: str, path: str) -> None:
    """Set the path of a picture in the settings that the pages read, in place of any other picture of its kind."""
    row = theme_of(tenant_id)
    if kind == "background":
        values = row.values if row is not None else default_theme_of(tenant_id)
        if row is not None or path:
            _written(row or BrandingTheme(tenant_id=tenant_id), with_value(values, _BACKGROUND, path), row.display_name if row else "")
        return
    update_branding(tenant_id=tenant_id, changes={_PLACES[kind]: path})
    if kind == "logo" and row is not None and value_at(row.values, _THEME_LOGO):
        # Remove the logo of the theme. Otherwise the pages would show it instead of the new logo.
        _written(row, with_value(row.values, _THEME_LOGO, ""), row.display_name)


def default_theme_of(tenant_id: str) -> Theme:
    """Return a theme that gives the pages the same design that they have without a theme.

    The theme includes the primary color and the page background, if the tenant has set them.
    """
    looks = branding_of(tenant_id)
    theme = default_theme()
    if primary := looks.get("primary_color"):
        theme = _with_button(theme, primary)
    if background := looks.get("page_background"):
        theme = with_value(theme, ("page_background", "background_color"), background)
    return theme


def _with_button(theme: Theme, color: str) -> Theme:
    theme = with_value(theme, ("colors", "primary_button"), color)
    return with_value(theme, ("colors", "primary_button_label"), readable_on(color))


def _locked_theme(tenant_id: str, theme_id: str) -> BrandingTheme:
    lock_rows(Tenant, [tenant_id])
    row = BrandingTheme.objects.of(tenant_id).filter(pk=theme_id).first()
    if row is None:
        raise NotFound(NO_THEME)
    return row


def _written(row: BrandingTheme, values: Theme, display_name: str) -> BrandingTheme:
    problems = problems_of(values) | _missing_pictures(row.tenant_id, values)
    if len(display_name) > LONGEST_NAME or set(display_name) & set("<>"):
        problems["displayName"] = [f"At most {LONGEST_NAME} characters, without < and >."]
    if problems:
        raise Invalid(problems)
    row.values, row.display_name = values, display_name
    validated_save(row, fields=None if row._state.adding else ["values", "display_name"])
    _forget(row.tenant_id)
    _drop_unused_pictures(row.tenant_id)
    return row


def _problem(member: Member, value: Any) -> str:
    """Return why a value is invalid for its member; empty if it is valid."""
    if member.kind == "color":
        return "" if isinstance(value, str) and is_color(value) else "A color is # and 3, 4, 6 or 8 hexadecimal digits."
    if member.kind == "number":
        fits = isinstance(value, int | float) and not isinstance(value, bool) and member.least <= value <= member.most
        return "" if fits else f"A number from {member.least:g} to {member.most:g}."
    if member.kind == "switch":
        return "" if isinstance(value, bool) else "true or false."
    if member.kind == "choice":
        return "" if value in member.choices else f"One of {', '.join(member.choices)}."
    if value == "":
        return ""
    if member.kind == "font":
        return "" if isinstance(value, str) and is_font(value) else "The https address of a font file: .woff2, .woff, .ttf or .otf."
    return "" if isinstance(value, str) and is_picture(value) else "An https address without quotation marks and spaces."


def _missing_pictures(tenant_id: str, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the members that contain the path of a picture, if the tenant has not uploaded this picture."""
    named = {path: str(value_at(values, path)) for path in (_BACKGROUND, _THEME_LOGO)}
    return {
        ".".join(path): ["There is no such picture."]
        for path, value in named.items()
        if is_own_picture(value) and not has_picture(tenant_id, value)
    }


def _check_pictures(tenant_id: str, changes: Mapping[str, str | None]) -> None:
    paths = {name: value for name, value in changes.items() if value and is_own_picture(value)}
    missing = {name: ["There is no such picture."] for name, path in paths.items() if not has_picture(tenant_id, path)}
    if missing:
        raise Invalid(missing)


def has_picture(tenant_id: str, path: str) -> bool:
    """Tell whether a tenant has uploaded the picture at `path`."""
    return BrandingPicture.objects.of(tenant_id).filter(digest=digest_in(path)).exists()


def _drop_unused_pictures(tenant_id: str) -> None:
    """Delete the pictures that no setting names. Their URLs then answer with 404."""
    looks = branding_of(tenant_id)
    row = theme_of(tenant_id)
    values = row.values if row is not None else {}
    named = [*looks.values(), *(str(value_at(values, path)) for path in (_BACKGROUND, _THEME_LOGO))]
    for picture in BrandingPicture.objects.of(tenant_id).exclude(digest__in=[digest_in(str(value)) for value in named]).defer("data"):
        picture.delete()


def _forget(tenant_id: str) -> None:
    after_commit(remembered_themes.forget, tenant_id)
