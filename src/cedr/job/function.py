"""User functions, named as `file.py:function` or `module:function`."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from cedr.temporal.errors import CedrError, QueryError


def function_at(place: str, what: str, folder: Path | None = None) -> Callable[..., Any]:
    """`folder` is searched first for files and modules; `what` names the setting in errors."""
    where, _, name = place.rpartition(":")
    if not where or not name:
        raise QueryError(f"{what} {place!r}: write file.py:function or module:function")
    with users_code(f"{what} {place!r}"):
        module = module_at(place, where, what, folder)
    found: Any = getattr(module, name, None)
    if not callable(found):
        raise QueryError(f"{what} {place!r}: {where!r} has no function {name!r}")
    return cast(Callable[..., Any], found)


def module_at(place: str, where: str, what: str, folder: Path | None) -> ModuleType:
    if not where.endswith(".py"):
        with first_on_path(folder):
            return importlib.import_module(where)
    file = Path(where) if folder is None else folder / where
    if not file.is_file():
        raise QueryError(f"{what} {place!r}: there is no file {where!r}")
    there = getattr(sys.modules.get(file.stem), "__file__", None)
    hidden = file.stem in sys.modules and there != str(file)
    spec = importlib.util.spec_from_file_location(f"cedr_job_{file.stem}" if hidden else file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with first_on_path(folder):
        spec.loader.exec_module(module)
    return module


@contextmanager
def first_on_path(folder: Path | None) -> Iterator[None]:
    if folder is None:
        yield
        return
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextmanager
def users_code(what: str) -> Iterator[None]:
    """Turns exceptions of user code into one line with the place of the error."""
    try:
        yield
    except CedrError:
        raise
    except ImportError as e:
        raise QueryError(f"{what}: {e}") from e
    except SystemExit as e:
        raise QueryError(f"{what}: it exits the program with code {e.code!r}; it must return") from e
    except SyntaxError as e:
        raise QueryError(f"{what}: {e.msg} ({Path(e.filename or '').name}, line {e.lineno})") from e
    except Exception as e:
        last = traceback.extract_tb(e.__traceback__)[-1]
        raise QueryError(f"{what}: {type(e).__name__}: {e} ({Path(last.filename).name}, line {last.lineno})") from e
