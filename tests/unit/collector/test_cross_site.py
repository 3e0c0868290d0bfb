import pytest

from tests.support.events import encode, make_lookup
from tests.unit.collector.running import running


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, 202, id="no-browser"),
        pytest.param({"sec-fetch-site": "none"}, 202, id="typed-by-the-user"),
        pytest.param({"sec-fetch-site": "same-origin"}, 202, id="own-page"),
        pytest.param({"sec-fetch-site": "cross-site"}, 403, id="another-site"),
        pytest.param({"origin": "https://evil.example"}, 403, id="another-origin"),
        pytest.param({"origin": "null"}, 403, id="sandboxed-page"),
        pytest.param({"host": "evil.example"}, 403, id="rebound-name"),
        pytest.param({"host": "localhost"}, 202, id="localhost"),
    ],
)
def test_only_its_own_pages_reach_a_service_on_loopback(
    headers: dict[str, str], expected: int
) -> None:
    with running() as collector:
        assert collector.post(encode(make_lookup()), headers=headers).status == expected
