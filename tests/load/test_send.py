"""`python -m load` as a user types it: nonsense is refused before anything is sent."""

import sys
from types import ModuleType

import pytest
from typer.testing import CliRunner

from load.__main__ import main
from load.commands import app

NOBODY = "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    "words, said",
    [
        (["--method", "G T"], "--method: 'G T': write one word such as GET or POST"),
        (["--header", "a: b\r\nc: d"], "write 'Name: value', in one line"),
        (["--header", "a b: c"], "'a b: c': write 'Name: value'"),
        (["--header", "nothing"], "'nothing': write 'Name: value'"),
        (["--seed", "-1"], "'--seed': '-1': write a whole number between 0 and"),
        (["--rate", "0/s"], "'--rate': '0/s': write between 0.000001/s and 1000000/s"),
        (["--timeout", "0s"], "'--timeout': '0s': write between 1ms and 1d"),
        (["--for", "1e300"], "'--for': '1e300': write between 1ms and 28d"),
        (["--for", "long"], "'--for': 'long': write a time such as 250ms"),
        (["--speed", "nan"], "'--speed': 'nan': write between"),
    ],
)
def test_nonsense_names_option_value_and_remedy(words, said):
    done = CliRunner().invoke(app, ["send", NOBODY, *words], env={"COLUMNS": "300"})
    assert (done.exit_code, said in done.output) == (2, True), done.output


@pytest.mark.parametrize("url", ["http://[::1", "http://h:99999/", "http://h:x/", "ftp://h/", "here"])
def test_what_is_no_address_is_refused(url):
    done = CliRunner().invoke(app, ["send", url])
    assert (done.exit_code, f"{url!r}: write an address such as http://" in done.output) == (2, True)


def test_a_run_in_which_every_request_failed_ends_with_1():
    words = ["--rate", "1000/s", "--law", "constant", "--for", "2ms", "--json"]
    done = CliRunner().invoke(app, ["send", NOBODY, "--method", "get", *words])
    assert done.exit_code == 1
    assert '"failures": 2' in done.stdout


def test_a_trace_of_too_many_requests_is_refused(tmp_path):
    trace = tmp_path / "day.csv"
    trace.write_text("start_s,interval_s,requests\n0,60,5\n60,60,1e18\n")
    done = CliRunner().invoke(app, ["send", NOBODY, "--trace", str(trace)], env={"COLUMNS": "300"})
    assert (done.exit_code, "has 1e+18 requests, more than 50,000,000" in done.output) == (2, True)


@pytest.mark.parametrize(
    "words, said",
    [
        (["--seconds", "nan"], "'nan': write between 1 and 86,400"),
        (["--seed", "-1"], "'-1': write a whole number between 0 and"),
    ],
)
def test_the_demo_refuses_nonsense(words, said):
    done = CliRunner().invoke(app, ["demo", *words], env={"COLUMNS": "300"})
    assert (done.exit_code, said in done.output) == (2, True)


def test_ctrl_c_while_its_parts_are_imported_ends_quietly(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "load.commands", Interrupted("load.commands"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "")


class Interrupted(ModuleType):
    """A module whose import is cut short by Ctrl-C."""

    def __getattr__(self, name):
        raise KeyboardInterrupt
