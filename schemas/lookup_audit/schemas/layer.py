"""Confidence layers: whether a candidate is worth the next check, never whether it is right."""

from lookup_audit.schemas.names import Layer
from lookup_audit.schemas.ruleset import Ruleset


def layer_of(similarity: float | None, source_url: str | None, ruleset: Ruleset) -> Layer | None:
    """The layer of one candidate; without a similarity score there is none.

    A high similarity without a link is an internal candidate (``middle``): it cannot support a
    claim.

    >>> layer_of(0.9, "https://kb.example/1", Ruleset())
    'high'
    >>> layer_of(0.9, None, Ruleset())
    'middle'
    """
    if similarity is None:
        return None
    if similarity >= ruleset.high_layer_similarity and source_url:
        return "high"
    return "middle" if similarity >= ruleset.middle_layer_similarity else "low"
