"""From a file to settings, or to everything that is wrong with it."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from autoscaler.errors import Problem, SettingsError
from autoscaler.settings.build import settings_of
from autoscaler.settings.complaints import note_all
from autoscaler.settings.contradictions import note_contradictions
from autoscaler.settings.for_command import Command, note_for_command
from autoscaler.settings.kinds import settle_kinds
from autoscaler.settings.schema import FileSection
from autoscaler.settings.settings import Settings
from autoscaler.settings.yaml_source import read


def load(
    path: Path, environment: Mapping[str, str] | None = None, command: Command | None = None
) -> Settings:
    """Read the configuration file at `path`.

    Parameters
    ----------
    path : Path
        A YAML file; `deploy/examples/reference.yaml` shows every key.
    environment : Mapping, optional
        Where `${NAME}` is looked up; the environment of this process unless given.
    command : str, optional
        Which of the ways to run it is for; of any unless given.

    Raises
    ------
    SettingsError
        With every problem of the file, in the order of their places.
    """
    document = read(path, os.environ if environment is None else environment)
    settle_kinds(FileSection, document)
    note_contradictions(document)
    if command is not None:
        note_for_command(document, command)
    try:
        file = FileSection.model_validate(document.data)
    except ValidationError as error:
        note_all(error, FileSection, document)
    if document.problems:
        raise SettingsError(sorted(document.problems, key=lambda problem: (problem.line, problem.column)))
    try:
        return settings_of(file)
    except ValueError as error:  # of the options themselves, which no rule foresaw
        raise SettingsError([Problem(document.file, 0, 0, "", str(error))]) from error
