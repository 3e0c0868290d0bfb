import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup_audit.collector.redaction.patterns import PATTERNS, is_card, is_national_id, scrub


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        pytest.param("write to a.b+c@mail.example.com.", "write to [email].", id="email"),
        pytest.param("Änne@bücher.example", "[email]", id="email-unicode"),
        pytest.param("pay 4111 1111 1111 1111 12", "pay [card] 12", id="card-and-more"),
        pytest.param("4111-1111-1111-1111", "[card]", id="card-dashes"),
        pytest.param("no 4111111111111112", "no 4111111111111112", id="not-luhn"),
        pytest.param("at 1796040000000 ms", "at 1796040000000 ms", id="timestamp"),
        pytest.param("身份证11010519491231002X号", "身份证[national_id]号", id="national-id"),
        pytest.param("110105 19491231 002x", "[national_id]", id="national-id-groups"),
        pytest.param("11010519491231002１", "11010519491231002１", id="wrong-check"),
        pytest.param("电话13800138000请", "电话[phone]请", id="cn-mobile"),
        pytest.param("138 0013 8000", "[phone]", id="cn-mobile-groups"),
        pytest.param("+49 (0)30 1234567 now", "[phone] now", id="de"),
        pytest.param("+1-212-555-0123", "[phone]", id="us"),
        pytest.param("(212) 555-0123", "[phone]", id="us-national"),
        pytest.param("010-12345678", "[phone]", id="cn-landline"),
        pytest.param("Authorization: Bearer abcDEF123456.ghi789", "Authorization: [token]", id="b"),
        pytest.param("sk-proj-abcdefghijklmnop1234", "[token]", id="sk"),
        pytest.param("key AKIAIOSFODNN7EXAMPLE.", "key [token].", id="aws"),
        pytest.param("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.sig", "[token]", id="jwt"),
        pytest.param("password=hunter2hunter2&x=1", "[token]&x=1", id="password"),
        pytest.param("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[token]", id="github"),
        pytest.param("-----BEGIN RSA PRIVATE KEY-----\nMII", "[token]", id="pem-cut"),
        pytest.param("basic authentication of users", "basic authentication of users", id="prose"),
        pytest.param("Password: required", "Password: required", id="prose-password"),
        pytest.param("2026-11-30 12:00:00", "2026-11-30 12:00:00", id="time"),
        pytest.param("version 10.20.30.40", "version 10.20.30.40", id="version"),
        pytest.param(
            "0f1e2d13800138000a4b5c6d7e8f9012", "0f1e2d13800138000a4b5c6d7e8f9012", id="hex"
        ),
    ],
)
def test_what_names_a_person_or_opens_a_door_is_replaced_and_nothing_else(
    text: str, scrubbed: str
) -> None:
    assert scrub(text, PATTERNS) == scrubbed


def test_only_the_patterns_asked_for_are_replaced() -> None:
    assert scrub("a@b.example 13800138000", ("phone",)) == "a@b.example [phone]"
    assert scrub("a@b.example 13800138000", ()) == "a@b.example 13800138000"


@given(st.from_regex(r"4[0-9]{14}", fullmatch=True))
def test_exactly_one_check_digit_makes_a_card(body: str) -> None:
    assert sum(is_card(body + str(digit)) for digit in range(10)) == 1


@given(st.from_regex(r"11010519[5-9][0-9]0[1-9]1[0-9][0-9]{3}", fullmatch=True))
def test_exactly_one_check_character_makes_a_national_id(body: str) -> None:
    assert sum(is_national_id(body + check) for check in "0123456789X") == 1


@given(st.uuids(), st.sampled_from(["{}", "run-{}", "{}/1", "{},{}"]))
def test_a_uuid_is_no_number_of_anything(value: uuid.UUID, form: str) -> None:
    text = form.format(value, value)
    assert scrub(text, PATTERNS) == text


@given(st.integers(0, 10**32 - 1))
def test_a_uuid_of_digits_alone_is_none_either(number: int) -> None:
    digits = f"{number:032d}"
    text = "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])
    assert scrub(f"run-{text}", PATTERNS) == f"run-{text}"


def test_a_number_beside_a_uuid_is_still_found() -> None:
    one = uuid.UUID(int=7)
    assert scrub(f"{one} 13800138000 {one}", PATTERNS) == f"{one} [phone] {one}"


@given(st.text())
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    once = scrub(text, PATTERNS)
    assert scrub(once, PATTERNS) == once


@pytest.mark.parametrize(
    "piece",
    [
        "eyJaaaaaaaa-",
        "sk-",
        "1 ",
        "12",
        "a@",
        "a.",
        "@a.",
        "(0",
        "+1 ",
        "token ",
        "password:",
        "11010519 ",
    ],
)
def test_a_text_made_to_be_slow_is_not(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    started = time.process_time()
    scrub(text, PATTERNS)
    # A quadratic expression needs minutes for this; the bound is no measurement.
    assert time.process_time() - started < 20
