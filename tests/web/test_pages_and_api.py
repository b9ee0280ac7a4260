"""What pages and JSON say of runs that are finished, running, stopped or damaged."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import SQLAlchemyError
from starlette.testclient import TestClient

from archwright.compression.run import load_run
from archwright.errors import BadInput
from archwright.statistics import hypervolume_over_time
from archwright.store import RunFolder, read_study
from archwright.store.files import read_json
from archwright.web.folder import ServedFolder, open_folder, state_of
from archwright.web.live import LiveRun
from tests.reports.conftest import synthetic, synthetic_compared
from tests.reports.pages import headline, page_data, page_text
from tests.web.served import kept_layers, tell, write_finished, write_run, write_search

ORIGIN = {"origin": "http://127.0.0.1:8321"}


def rows_of(client: TestClient) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in client.get("/api/runs").json()["runs"]}


def test_the_list_has_every_run_and_its_state(client: TestClient) -> None:
    rows = rows_of(client)
    assert len(rows) == 3
    assert rows["one"]["state"] == "finished" and rows["one"]["trials"] == 40
    assert rows["search"]["state"] == "stopped" and rows["search"]["trials"] == 12
    assert rows["search"]["resume"].startswith("archwright compress --options ")
    assert page_data(client.get("/").text)["runs"] == client.get("/api/runs").json()["runs"]


def test_a_folder_without_runs_says_what_to_do(tmp_path: Path) -> None:
    assert open_folder(tmp_path).run_names() == []
    with pytest.raises(BadInput, match="must be a folder with runs"):
        open_folder(tmp_path / "missing")


def test_the_page_of_a_run_is_its_report(client: TestClient, result: dict[str, Any]) -> None:
    page = client.get("/run/one").text
    data = page_data(page)
    assert data["result"]["front"] == json.loads(json.dumps(result["front"]))
    assert data["site"]["network"] == "/network/TRIAL/one"
    assert "no worse than the original" in headline(page)


def test_results_are_given_as_they_were_written(client: TestClient, folder: Path) -> None:
    assert client.get("/api/run/one").json() == read_json(folder / "one" / "result.json")


def test_a_search_in_the_middle_is_shown_as_far_as_it_is(client: TestClient, folder: Path) -> None:
    document = client.get("/api/run/search").json()
    assert document["schema"] == "archwright/compress/1" and len(document["trials"]) == 12
    errors = [row["validation_error"] for row in document["trials"]]
    assert min(member["validation_error"] for member in document["front"]) == min(errors)
    assert document["hypervolume_over_time"] == sorted(document["hypervolume_over_time"])
    assert 0 < document["trials"][0]["nonembedding_share"] <= 1
    tell(open_folder(folder).run("search"), 3)
    assert len(client.get("/api/run/search").json()["trials"]) == 15
    assert client.get("/run/search").status_code == 200


def test_a_search_in_the_middle_tells_what_its_networks_keep(client: TestClient, folder: Path) -> None:
    run = write_search(folder / "layers")
    tell(run, 6, kept=True)
    document = client.get("/api/run/layers").json()
    by_trial = {row["trial"]: row for row in document["trials"]}
    for member in document["front"]:
        row = by_trial[member["trial"]]
        assert member["keep"] == kept_layers(row["nonembedding_share"])
        assert row["layers"] == 5 and row["heads"] == sum(heads for heads, _ in member["keep"])
        assert "keep" not in row  # thousands of trials are told: layers only of those on the front
    page = page_data(client.get("/run/layers").text)
    assert page["result"]["front"] == document["front"] and page["result"]["heads"] == 12


def test_sizes_are_known_where_the_search_is_about_something_else(client: TestClient, folder: Path) -> None:
    run = write_search(folder / "timed")
    run.note("about", run.note("about") | {"objectives": ["validation_error", "latency_ms"]})
    tell(run, 8, cost=20.0, kept=True)
    document = client.get("/api/run/timed").json()
    for row in document["trials"]:
        assert row["values"][1] == pytest.approx(20.0 * row["nonembedding_share"])
    assert document["hypervolume"] > 0
    assert document["front"][0]["nonembedding_parameters"] == pytest.approx(
        document["front"][0]["nonembedding_share"] * document["original"]["nonembedding_parameters"]
    )


def test_news_have_layers_of_new_members_of_the_front_and_are_made_once(folder: Path) -> None:
    run = write_search(folder / "news")
    tell(run, 5, kept=True)
    live = LiveRun(run)
    live.update()
    version = live.version
    first, known = live.event_after(0)
    assert known == 5 and live.event_after(0)[0] is first  # the same bytes for all who know as much
    live.update()
    assert live.version == version and live.event_after(0)[0] is first  # nothing was told since
    tell(run, 10, kept=True)
    live.update()
    news = json.loads(live.event_after(known)[0].decode().split("data: ")[1])
    assert live.version == version + 1 and len(news["trials"]) == 10 and news["after"] == 5
    fresh = {row["trial"]: row for row in news["trials"]}
    for number in fresh:
        assert ("keep" in fresh[number]) == (number in news["front"])
    assert set(live.kept) == set(news["front"])


def test_the_list_chooses_as_select_does(client: TestClient, folder: Path) -> None:
    """By validation rows alone, whatever the test rows say."""
    for limit, share, _, trial in rows_of(client)["one"]["best_within"]:
        pick = load_run(folder / "one").select(params=f"{100 * limit + 1e-6}%")
        assert pick.entry["trial"] == trial and pick.entry["nonembedding_share"] == share


@pytest.mark.parametrize(
    "budget", [{"params": f"{share}%"} for share in (5, 20, 35, 50, 80)] + [{"max_loss": "2%"}], ids=str
)
def test_select_answers_as_the_command_does(client: TestClient, folder: Path, budget: dict[str, Any]) -> None:
    answer = client.get("/api/select/one", params=budget)
    try:
        pick = load_run(folder / "one").select(**budget)
    except BadInput as error:
        assert answer.status_code == 400 and answer.json()["error"] == str(error)
        return
    assert answer.json()["schema"] == "archwright/select/1"
    assert answer.json()["selected"]["trial"] == pick.entry["trial"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "a budget is needed"),
        ("params=lots", "--params"),
        ("latency_ms=4", "not what this front is about"),
        ("latency_ms=x", "must be a number"),
        ("max_loss=7", "--max-loss"),
    ],
)
def test_a_budget_that_cannot_be_answered_says_why(client: TestClient, query: str, words: str) -> None:
    answer = client.get(f"/api/select/one?{query}")
    assert answer.status_code == 400 and words in answer.json()["error"]


def damage(run: Path, kind: str) -> None:
    if kind == "cut result":
        text = (run / "result.json").read_text()
        (run / "result.json").write_text(text[: len(text) // 2])
    elif kind == "other result":
        (run / "result.json").write_text('{"schema": "archwright/compress/1", "front": [1, 2]}')
    elif kind == "no schema":
        (run / "result.json").write_text("[]")
    elif kind == "binary result":
        (run / "result.json").write_bytes(b"\xff\xfe\x00")
    elif kind == "cut options":
        (run / "run.json").write_text('{"id": "x", "opt')
    elif kind == "empty options":
        (run / "run.json").write_text("")
    elif kind == "odd options":
        (run / "run.json").write_text('{"id": 3, "options": [1]}')
    elif kind == "folder for result":
        (run / "result.json").unlink()
        (run / "result.json").mkdir()


@pytest.mark.parametrize(
    "kind",
    [
        *("cut result", "other result", "no schema", "binary result", "cut options", "empty options", "odd options"),
        "folder for result",
    ],
)
def test_a_damaged_run_shows_as_such_and_breaks_nothing(client: TestClient, folder: Path, kind: str) -> None:
    damage(folder / "one", kind)
    for path in ("/run/one", "/network/14/one", "/api/run/one"):
        answer = client.get(path)
        assert "Traceback" not in answer.text and str(folder) not in answer.text
    for path in ("/compare?run=one", "/", "/api/runs"):
        assert client.get(path).status_code == 200
    assert "damaged" in page_text(client.get("/run/one").text)
    assert client.get("/run/search").status_code == 200
    answer = client.post("/api/export/14/one", json={"to": "hf"}, headers=ORIGIN)
    assert answer.status_code in (400, 404, 500) and "error" in answer.json()
    assert client.get("/api/jobs").json()["jobs"] == []


@pytest.mark.parametrize("content", ["not json\n", '{"op_code": 0}\n', "\x00\x00"])
def test_a_damaged_study_gives_a_reason(client: TestClient, folder: Path, content: str) -> None:
    (folder / "search" / "study.journal").write_text(content)
    page = client.get("/run/search")
    assert page.status_code == 200
    assert "study" in page_data(page.text)["site"]["live"]["reason"] or content.startswith("\x00")


def test_a_journal_that_ends_in_the_middle_of_a_line_is_left_alone(client: TestClient, folder: Path) -> None:
    """The page never writes: what a killed search has left half-written stays for the search to mend."""
    journal = folder / "search" / "study.journal"
    journal.write_bytes(journal.read_bytes() + b'{"op_code": 4, "wor')
    before = journal.read_bytes()
    assert len(client.get("/api/run/search").json()["trials"]) == 12
    assert journal.read_bytes() == before


def test_a_study_whose_database_is_gone_gives_a_reason(client: TestClient, folder: Path, tmp_path: Path) -> None:
    database = tmp_path / "study.db"
    run = write_search(folder / "stored", store=f"sqlite:///{database}")
    tell(run, 4, f"sqlite:///{database}")
    assert len(client.get("/api/run/stored").json()["trials"]) == 4
    database.rename(tmp_path / "moved.db")
    write_search(folder / "later", store=f"sqlite:///{database}")
    reason = page_data(client.get("/run/later").text)["site"]["live"]["reason"]
    assert "cannot be read" in reason and str(tmp_path) not in reason
    assert not database.exists()  # looking makes no database


def test_looking_changes_no_file(client: TestClient, folder: Path) -> None:
    def files() -> dict[str, tuple[int, bytes]]:
        return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()}

    before = files()
    for path in ("/", "/run/one", "/run/search", "/network/14/one", "/compare?run=one", "/api/runs", "/api/run/search"):
        client.get(path)
    assert files() == before


def test_compared_runs_stand_side_by_side(client: TestClient, folder: Path, result: dict[str, Any]) -> None:
    write_finished(folder / "two", {**result, "task": "other"}, sampler="random", seed=7)
    trial = result["front"][0]["trial"]
    page = client.get(f"/compare?run=one&run=two&network={trial}:one&network={trial}:two").text
    words = page_text(page)
    assert "different models or tasks" in words
    assert "sampler nsga2 random" in words and "seed 0 7" in words
    pictures = next(block for block in page_data(page)["blocks"].values() if block["kind"] == "pictures")
    assert [picture["title"] for picture in pictures["pictures"]] == [f"one, trial {trial}", f"two, trial {trial}"]


def test_perplexities_are_not_drawn_beside_shares_of_errors(
    client: TestClient, folder: Path, result: dict[str, Any]
) -> None:
    write_finished(folder / "written", {**result, "metric": "perplexity"}, sampler="random", seed=7)
    page = client.get("/compare?run=one&run=written").text
    assert "no axis in common: written is not drawn" in page_text(page)
    assert "not drawn" not in page_text(client.get("/compare?run=written").text)


def test_a_sub_network_has_its_page(client: TestClient, result: dict[str, Any]) -> None:
    trial = result["front"][1]["trial"]
    page = client.get(f"/network/{trial}/one").text
    assert page_data(page)["member"]["keep"] == result["front"][1]["keep"]
    assert "archwright export" in json.dumps(page_data(page)["commands"])
    assert client.get("/network/99999/one").status_code == 404
    assert client.get(f"/network/{trial}/search").status_code == 404


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"to": "zip"}, "to must be one of"),
        ({"to": "hf", "out": "/tmp/x"}, "the body must be an object"),
        ({"to": 3}, "to must be str"),
        ([], "the body must be an object"),
    ],
    ids=str,
)
def test_an_export_that_makes_no_sense_is_refused(
    client: TestClient, result: dict[str, Any], body: Any, words: str
) -> None:
    trial = result["front"][1]["trial"]
    answer = client.post(f"/api/export/{trial}/one", json=body, headers=ORIGIN)
    assert answer.status_code == 400 and words in answer.json()["error"]


def test_what_is_not_json_is_refused(client: TestClient) -> None:
    answer = client.post("/api/try/1/one", content=b"\xff", headers=ORIGIN)
    assert (
        answer.status_code == 400
        and answer.json()["error"] == "the body must be JSON, and not nested a thousand times."
    )


def test_without_leave_nothing_can_be_started(client: TestClient) -> None:
    assert client.get("/start").status_code == 404
    for path in ("/api/start", "/api/command", "/api/resume/search", "/api/stop/search"):
        assert client.post(path, json={}, headers=ORIGIN).status_code in (404, 405)


def test_assets_are_ours_only(client: TestClient) -> None:
    assert client.get("/assets/x/base+blocks.js").status_code == 200
    assert client.get("/assets/x/plotly.min.js").headers["cache-control"].endswith("immutable")
    for name in ("nothing.js", "base.py", "base+../page.js", "base", "page.html", "+".join(["base"] * 30) + ".js"):
        assert client.get(f"/assets/x/{name}").status_code == 404


def test_documents_of_proxies_and_designs_are_found(client: TestClient, folder: Path) -> None:
    from tests.reports.rank_documents import rank_document

    document = rank_document(60)
    (folder / "rank.json").write_text(json.dumps(document))
    (folder / "broken.json").write_text('{"schema": "archwright/rank/1", "rows": [')
    words = page_text(client.get("/proxies").text)
    assert str(document["benchmark"]) in words and "Leaderboard" in words
    assert client.get("/proxies/rank.json").status_code == 200
    assert client.get("/proxies/one/result.json").status_code == 404


def test_a_run_that_vanishes_is_not_found(client: TestClient, folder: Path) -> None:
    shutil.rmtree(folder / "one")
    assert client.get("/run/one").status_code == 404
    assert "one" not in rows_of(client)


def test_states(folder: Path) -> None:
    served = ServedFolder(folder.resolve())
    run = served.run("search")
    assert state_of(run) == ("stopped", "")
    with run.lock():
        assert state_of(run) == ("running", "")
        with pytest.raises(BadInput), run.lock():  # asking did not take it away
            pass
    assert state_of(run) == ("stopped", "")


def test_the_live_hypervolume_is_the_exact_one(client: TestClient) -> None:
    document = client.get("/api/run/search").json()
    points = [(row["validation_error"], row["nonembedding_share"]) for row in document["trials"]]
    assert document["hypervolume_over_time"] == pytest.approx(hypervolume_over_time(points, (1.0, 1.0)))


def test_scaled_perplexities_are_shown_as_perplexities(client: TestClient, folder: Path) -> None:
    run = open_folder(folder).run("search")
    scaled = [row["validation_error"] for row in client.get("/api/run/search").json()["trials"]]
    other = write_search(folder / "decoder", trials=12)
    other.note("about", {**other.note("about"), "metric": "perplexity", "vocabulary_size": 1000})
    shown = client.get("/api/run/decoder").json()["trials"]
    assert [row["validation_error"] for row in shown] == pytest.approx([1000**share for share in scaled])
    assert run.note("about")["metric"] == "accuracy"


@pytest.mark.server
def test_a_study_in_postgresql_is_read_and_cannot_be_written(client: TestClient, folder: Path, postgres: str) -> None:
    import optuna

    run = write_search(folder / "stored", store=postgres)
    tell(run, 5, postgres)
    assert len(client.get("/api/run/stored").json()["trials"]) == 5
    study = read_study(run, postgres)
    assert study is not None
    with pytest.raises((optuna.exceptions.StorageInternalError, SQLAlchemyError)):
        study.add_trial(optuna.trial.create_trial(values=[0.1, 1.0]))


def test_a_sqlite_study_cannot_be_written_by_looking(folder: Path, tmp_path: Path) -> None:
    import optuna

    store = f"sqlite:///{tmp_path / 'study.db'}"
    run = write_search(folder / "stored", store=store)
    tell(run, 2, store)
    study = read_study(run, store)
    assert study is not None and len(study.trials) == 2
    with pytest.raises((optuna.exceptions.StorageInternalError, SQLAlchemyError)):
        study.add_trial(optuna.trial.create_trial(values=[0.1, 1.0]))


def write_other(folder: Path, result: dict[str, Any] | None, **options: Any) -> RunFolder:
    """A training, or a comparison of methods: neither notes that it finished, its result says so."""
    run = write_run(folder, **options)
    if result is not None:
        run.note("result", result)
    return run


def test_trainings_and_comparisons_are_finished_when_they_have_a_result(folder: Path, client: TestClient) -> None:
    training = {"schema": "archwright/train/1", "lesson": "mlm", "parameters": 3, "steps": 1, "environment": {}}
    write_other(folder / "trained", training, command="train", out="x")
    write_other(folder / "compared", synthetic_compared(trials=20), compare=["random", "magnitude"])
    write_other(folder / "training", None, command="train", epochs=7.0)
    write_other(folder / "comparing", None, compare=["random"])
    write_finished(folder / "comparing" / "random", synthetic(10))
    rows = {row["name"]: row for row in client.get("/api/runs").json()["runs"]}
    assert {name: rows[name]["state"] for name in ("trained", "compared", "training", "comparing")} == {
        "trained": "finished",
        "compared": "finished",
        "training": "stopped",
        "comparing": "stopped",
    }
    assert rows["training"]["resume"].startswith("archwright train --options ")
    assert rows["comparing"]["resume"].startswith("archwright compress --options ")
    assert "3 parameters" in client.get("/run/trained").text
    assert "head-pruning" in client.get("/run/compared").text
    training_page, comparing = client.get("/run/training").text, client.get("/run/comparing").text
    assert "It is not finished" in training_page and "--epochs" in training_page
    assert "/run/comparing/random" in comparing and "working.js" in comparing


def test_compared_networks_can_be_ticked_and_too_many_are_refused(client: TestClient, result: dict[str, Any]) -> None:
    trial = result["front"][0]["trial"]
    page = client.get("/compare", params={"network": f"{trial}:one"}).text
    assert f'name="network" value="{trial}:one" checked' in page and "Sub-networks of one" in page
    assert "Not below this folder, or not finished: nothing" in client.get("/compare?run=nothing").text
    many = client.get("/compare", params=[("run", str(at)) for at in range(9)])
    assert many.status_code == 400 and "at most 8 runs" in many.text
    own = client.get(f"/network/{trial}/one").text
    assert f"/compare?network={trial}%3Aone" in own
