"""What a user can do about a call that failed for good, to be said after the provider's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firecircle.voices.chat import Setback
    from firecircle.voices.providers import Provider

NOT_PAID, UNKNOWN = 402, 404
NOT_ALLOWED = (401, 403)
ELSEWHERE = (301, 302, 307, 308)


def remedy(setback: Setback, provider: Provider, name: str) -> str:
    """What to do, in a few words; empty when only time may help."""
    if setback.kind == "connection":
        return f"is it running and reachable? its address can be set with {provider.address_variable}"
    if setback.status in NOT_ALLOWED:
        if provider.key_variable is None:
            return "it asks for a key: name a key_variable for it in firecircle.toml"
        return f"check the key in {provider.key_variable}: it may be wrong, expired or not for this model"
    if setback.status == NOT_PAID:
        return f"add credit at {provider.name}, or choose another model"
    if setback.status == UNKNOWN:
        return f"check the name of the model, {name!r} at {provider.name}"
    if setback.status in ELSEWHERE:
        return f"check the address {provider.base_url}; it can be set with {provider.address_variable}"
    return ""
