"""The file of tenants: what it means, and what is said of a wrong one."""

import textwrap

import pytest

from autoscaler.dispatch.tenant_limits import TenantLimits
from autoscaler.errors import SettingsError
from autoscaler.proxy.tenants.key import digest_of, new_key
from autoscaler.settings.tenants_file import load_tenants

KEY, OTHER = new_key(), new_key()


def book_of(folder, text: str):
    file = folder / "keys.yaml"
    file.write_text(textwrap.dedent(text))
    return load_tenants(file, frozenset({"chat", "embed"}))


def problems_of(folder, text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        book_of(folder, text)
    assert KEY not in str(caught.value)  # the text may be logged
    return [
        f"{problem.line}: {problem.key}: {problem.fault} {problem.remedy}"
        for problem in caught.value.problems
    ]


def test_limits_are_per_minute_as_people_write_them_and_default_where_they_are_not_written(tmp_path):
    book = book_of(
        tmp_path,
        f"""\
        default: {{requests: 60/min, in_flight: 4}}
        tenants:
          acme:
            keys: [{digest_of(KEY)}, {digest_of(OTHER)}]
            requests: 600/min
            tokens: 120000/min
            pools: [chat]
          globex: {{in_flight: none}}
        """,
    )
    acme = book.by_key(KEY)
    assert acme is not None
    assert acme is book.by_key(OTHER)
    assert (acme.name, acme.pools) == ("acme", {"chat"})
    assert acme.limits == TenantLimits(10.0, 2000.0, 4)
    assert book.by_name("globex").limits == TenantLimits(1.0, None, None)
    assert book.by_name("stranger").limits == TenantLimits(1.0, None, 4)


def test_every_problem_is_told_with_its_place(tmp_path):
    file = f"""\
        tenants:
          acme:
            keys: [{digest_of(KEY)}, {KEY}, hello]
            requests: 0/min
            pools: [chat, chess]
          globex:
            keys: [{digest_of(KEY)}]
            quota: 3
        """
    told = problems_of(tmp_path, file)
    assert [line.split(": ")[:2] for line in told] == [
        ["3", "tenants.acme.keys[1]"],
        ["3", "tenants.acme.keys[2]"],
        ["4", "tenants.acme.requests"],
        ["5", "tenants.acme.pools[1]"],
        ["7", "tenants.globex.keys[0]"],
        ["8", "tenants.globex.quota"],
    ]
    assert f"write {digest_of(KEY)} instead of the key itself" in told[0]
    assert "autoscaler key new" in told[1]
    assert "got chess, which is no pool" in told[3]


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"keys\.yaml.*no such file"):
        load_tenants(tmp_path / "keys.yaml", frozenset())
