import json
import subprocess
from pathlib import Path

import pytest

from lookup_audit.deploy.cli.main import main
from lookup_audit.deploy.ruleset_file import read_ruleset
from tests.e2e.conftest import Up, run_command
from tests.support.events import Event, encode, make_candidate, make_lookup, make_outcome

RIGHT = "doc-1#chunk-0"


def lookup_of(question: str, quality: float, **over: object) -> Event:
    candidates = [
        make_candidate(dense_distance=2.0 * (1.0 - quality)),
        make_candidate(original_rank=2, dense_distance=1.6, breadcrumb="elsewhere"),
    ]
    return make_lookup(query=question, candidates=candidates, tenant="gold", **over)


def questions() -> list[tuple[str, bool]]:
    """Chinese questions: those that the corpus answers, then those it does not."""
    return [(f"问题 {n}：默认超时？", True) for n in range(30)] + [
        (f"问题 {n}：午饭吃什么？", False) for n in range(12)
    ]


@pytest.fixture(scope="module")
def gold(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gold file whose questions two model versions were asked; the second one is worse."""
    events, answers = [], []
    for number, (question, answerable) in enumerate(questions()):
        for version in ("m@1", "m@2"):
            good = answerable and (version == "m@1" or number % 2 == 0)
            event = lookup_of(question, 0.8 if good else 0.55, model_version=version)
            event["candidates"][0]["chunk_id"] = RIGHT if good else "other"
            event["selected_chunk_ids"] = [event["candidates"][0]["chunk_id"]]
            event["occurred_at"] = f"2026-11-30T12:{number:02}:00Z"
            events.append(event)
            action = "answered" if good else "refused"
            answers.append(
                make_outcome(tenant="gold", lookup_event_ids=[event["event_id"]], action=action)
            )
    for path, batch in (("/v1/lookups", events), ("/v1/outcomes", answers)):
        up.post(path, b"\n".join(map(encode, batch)))
    up.wait_for("SELECT count() FROM lookups WHERE tenant = 'gold'", str(len(events)))
    up.wait_for("SELECT count() FROM outcomes WHERE tenant = 'gold'", str(len(answers)))
    folder = tmp_path_factory.mktemp("gold")
    (folder / "events.ndjson").write_bytes(b"\n".join(map(encode, events)))
    lines = [
        json.dumps({"question": q, "supporting_chunk_ids": [RIGHT] if ok else []})
        for q, ok in questions()
    ]
    (folder / "gold.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder / "gold.jsonl"


def calibrate(up: Up, gold: Path, *options: object) -> subprocess.CompletedProcess[str]:
    return run_command("calibrate", "--data-dir", up.data_dir, "--gold", gold, *options)


def test_each_model_version_has_its_own_figures(up: Up, gold: Path) -> None:
    done = calibrate(up, gold, "--json")
    assert done.returncode == 0, done.stderr
    strata = {s["model_version"]: s for s in json.loads(done.stdout)["strata"]}
    recall = {v: s["retrieval"]["recall"]["1"] for v, s in strata.items()}
    assert (recall["m@1"]["count"], recall["m@1"]["n"]) == (30, 30)
    assert recall["m@2"]["count"] == 15
    assert strata["m@1"]["bases"][0]["separation"]["separates"] is True
    assert strata["m@1"]["retrieval"]["refused_unanswerable"]["value"] == 1.0


def test_a_recommended_ruleset_is_written_and_compared(up: Up, gold: Path, tmp_path: Path) -> None:
    path, picture = tmp_path / "ruleset.json", tmp_path / "curve.svg"
    done = calibrate(
        up, gold, "--model-version", "m@1", "--mode", "dense", "--error-budget", "0.2",
        "--write-ruleset", path, "--picture", picture,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ruleset = read_ruleset(path)
    assert 0.55 < ruleset.highly_relevant_threshold <= 0.8
    assert ruleset.ruleset_id in done.stdout
    assert picture.read_bytes().startswith(b"<?xml")
    compared = run_command(
        "compare", "--data-dir", up.data_dir, "--gold", gold, "--json",
        "--a", "model=m@1", "--b", f"ruleset={path}",
    )  # fmt: skip
    assert compared.returncode == 0, compared.stderr
    (comparison,) = json.loads(compared.stdout)["comparisons"]
    assert comparison["a"] == comparison["b"] == ["m@1", "dense"]


def test_a_budget_out_of_reach_writes_nothing_and_exits_1(
    up: Up, gold: Path, tmp_path: Path
) -> None:
    path = tmp_path / "ruleset.json"
    done = calibrate(up, gold, "--model-version", "m@1", "--write-ruleset", path)
    assert done.returncode == 1
    assert "No threshold keeps the high-score-error rate within 0.05" in done.stdout
    assert not path.exists()


def test_a_ruleset_for_several_strata_is_refused(up: Up, gold: Path, tmp_path: Path) -> None:
    done = calibrate(up, gold, "--write-ruleset", tmp_path / "r.json")
    assert done.returncode == 2
    assert "--model-version m@2 --mode dense" in done.stderr


def test_events_of_a_file_give_the_figures_of_the_stored_ones(up: Up, gold: Path) -> None:
    stored = json.loads(calibrate(up, gold, "--json").stdout)["strata"]
    file = gold.with_name("events.ndjson")
    done = run_command("calibrate", "--gold", gold, "--events", file, "--json")
    assert done.returncode == 0, done.stderr
    emitted = json.loads(done.stdout)["strata"]
    assert [s["bases"] for s in emitted] == [s["bases"] for s in stored]
    assert emitted[0]["retrieval"]["refusals"]["value"] is None


def test_the_versions_side_by_side_name_the_questions_that_differ(up: Up, gold: Path) -> None:
    done = run_command(
        "compare", "--data-dir", up.data_dir, "--gold", gold,
        "--a", "model=m@1", "--b", "model=m@2", "--examples", "2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "15 question(s) differ; the first 2:" in done.stdout
    assert "line 2: 问题 1：默认超时？" in done.stdout
    (recall,) = [line.split() for line in done.stdout.splitlines() if line.startswith("Recall@1 ")]
    assert recall[1:4] == ["30", "1.00", "0.50"]
    assert recall[-4:-2] == ["15", "0"]


def test_fragility_needs_no_gold_set(up: Up, gold: Path) -> None:
    done = run_command("calibrate", "--data-dir", up.data_dir, "--fragility", "--tenant", "gold")
    assert done.returncode == 0, done.stderr
    assert "m@1" in done.stdout
    found = json.loads(
        run_command(
            "calibrate", "--data-dir", up.data_dir, "--fragility", "--tenant", "gold", "--json"
        ).stdout
    )
    assert [f["lookups"] for f in found] == [42, 42]
    assert found[0]["width"] == pytest.approx(0.25)


def test_what_nobody_asked_is_named_and_exits_1(up: Up, tmp_path: Path) -> None:
    file = tmp_path / "gold.jsonl"
    file.write_text('{"question": "nobody asked", "supporting_chunk_ids": []}', encoding="utf-8")
    done = calibrate(up, file)
    assert done.returncode == 1
    assert "line 1: not_asked: 'nobody asked'" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "name a gold set with --gold"),
        (("--fragility", "--picture", "a.svg"), "leave out --picture"),
        (("--gold", "no-such-file"), "cannot read the gold file"),
        (("--gold", "{gold}", "--mode", "dense,hybrid"), "modes are never pooled"),
        (("--gold", "{gold}", "--mode", "all"), "different rulers"),
        (("--gold", "{gold}", "--error-budget", "5"), "--error-budget must be a rate"),
        (("--gold", "{gold}", "--error-budget", "nan"), "--error-budget must be a rate"),
        (("--gold", "{gold}", "--days", "0"), "--days must be"),
        (("--gold", "{gold}", "--picture", "a.pdf"), "name it .svg or .png"),
        (("--gold", "{gold}", "--ruleset", "r.json"), "--ruleset goes with --events"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    options: tuple[str, ...], said: str, gold: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(gold) if option == "{gold}" else option for option in options]
    assert main(["calibrate", *given]) == 2
    assert said in capsys.readouterr().err


def test_a_wrong_gold_file_is_refused_by_line_and_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gold.jsonl"
    file.write_text('{"question": "a", "supporting_chunk_ids": "c1"}\nno\n', encoding="utf-8")
    assert main(["calibrate", "--gold", str(file)]) == 2
    said = capsys.readouterr().err
    assert "line 1, supporting_chunk_ids: must be a list" in said
    assert "line 2: is not JSON" in said


def test_refused_events_are_named_and_exit_1(
    gold: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.ndjson"
    file.write_bytes(gold.with_name("events.ndjson").read_bytes() + b'\n{"event_id": "x"}\n')
    assert main(["calibrate", "--gold", str(gold), "--events", str(file)]) == 1
    assert "event at line 85 refused: occurred_at" in capsys.readouterr().out
