"""The headline of a period as SQL: the sums of ``audit.ratio_sums`` added up over days.

The same intervals as ``audit.ratio_daily`` and ``processors/ratio.py`` work out, which a test
compares: Wilson's on the effective size, with sampling weights and answers as clusters.
"""

from lookup_audit.dashboards.filters import days, stratum

_SUMMED = (
    "sampled",
    "with_outcome",
    "high_score_errors",
    "judged_high",
    "low_score_refusals",
    "error",
    "refusal",
    "any",
    "error_error",
    "refusal_refusal",
    "error_any",
    "refusal_any",
    "any_any",
    "any_answers",
    "error_refusal",
    "either_answers",
)
_SUMS = ",\n    ".join(f"sum(s.{name}) AS {name}" for name in _SUMMED)

HEADLINE_SQL = f"""\
WITH
  1.959963984540054 AS z,
  [
    (any_answers, error, any, error_error, error_any, any_any),
    (any_answers, refusal, any, refusal_refusal, refusal_any, any_any),
    (either_answers, error, error + refusal, error_error, error_error + error_refusal,
      error_error + 2 * error_refusal + refusal_refusal)
  ] AS sums,
  arrayMap(s -> if(s.3 > 0, least(1., s.2 / s.3), nan), sums) AS rates,
  arrayMap((s, p) -> s.3 * s.3 * (s.1 * p * (1 - p) + 10)
    / (s.1 * greatest(0., s.4 - 2 * p * s.5 + p * p * s.6) + 10 * s.6), sums, rates) AS sizes,
  arrayMap((p, n) -> (p + z * z / (2 * n)) / (1 + z * z / n), rates, sizes) AS centres,
  arrayMap((p, n) -> z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n),
    rates, sizes) AS halves,
  arrayMap((p, c, h) -> arrayMap(x -> if(isNaN(p), NULL, x),
    [p, greatest(0., c - h), least(1., c + h)]), rates, centres, halves) AS found
SELECT model_version, mode, sampled, with_outcome, high_score_errors, judged_high,
  low_score_refusals,
  found[1][1] AS error_share, found[1][2] AS error_share_low, found[1][3] AS error_share_high,
  found[2][1] AS refusal_share, found[2][2] AS refusal_share_low,
  found[2][3] AS refusal_share_high,
  if(refusal > 0, error / refusal, NULL) AS ratio,
  if(refusal > 0, found[3][2] / (1 - found[3][2]), NULL) AS ratio_low,
  if(refusal > 0 AND found[3][3] < 1, found[3][3] / (1 - found[3][3]), NULL) AS ratio_high
FROM (
  SELECT model_version, mode,
    {_SUMS}
  FROM audit.ratio_sums AS s
  WHERE {days()}
    AND {stratum(without=("service",))}
  GROUP BY model_version, mode
)
ORDER BY model_version, mode"""
