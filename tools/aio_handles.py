"""Write `facade/aio/handles.pyi`, the types of the asynchronous handles, from the blocking handles.

Run `python tools/aio_handles.py` after a change of a handle's signature; a test compares.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from koordinator.aio.handles import TWINS, WITHOUT_REQUEST, is_manager, members_of, opens_handle
from koordinator.emulator.control.results import Member
from koordinator.handles.emulator import Emulator
from koordinator.handles.renames import Renamed

TARGET = Path(__file__).parents[1] / "facade" / "aio" / "handles.pyi"

ROOTS = (Emulator,)
"""Classes that start a cluster."""

HANDLES: tuple[type, ...] = tuple(TWINS)

NAMES = {each.__name__ for each in (*ROOTS, *HANDLES)}

LIKE = {
    "GroupLike": "str | Group",
    "MemberLike": "str | Member | Puppet",
    "NodeLike": "int | Node",
    "TopicLike": "str | Topic",
}
"""The unions with handles, here with the asynchronous ones."""

HEAD = """from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TypeAlias, TypeVar
{imports}
from .pending import PendingHandle

__all__ = {names}

{unions}
TopicKey = TypeVar("TopicKey", bound=TopicLike)  # noqa: PYI001 - as in handles.names
"""

Used = set[tuple[str, str]]
"""The module and the name of each imported annotation."""


def source() -> str:
    """Return the text of the stub."""
    used: Used = set()
    classes = [_root(each, used) for each in ROOTS] + [_handle(each, used) for each in HANDLES]
    imports = {f"from {module} import {name}" for module, name in used}
    imports |= {
        f"from {kind.__module__} import {kind.__name__} as Blocking{kind.__name__}" for kind in (*ROOTS, *HANDLES)
    }
    imports.add(f"from {Member.__module__} import {Member.__name__}")
    unions = "\n".join(f"{name}: TypeAlias = {union}" for name, union in LIKE.items())
    head = HEAD.format(imports="\n".join(sorted(imports)), names=sorted(NAMES), unions=unions)
    return _formatted("\n".join([head, *classes]))


def _formatted(text: str) -> str:
    # relative imports across the folders of the package, as in its other modules
    text = re.sub(r"^from koordinator\.(?!emulator|wire)", "from ..", text, flags=re.MULTILINE)
    for arguments in (["check", "--quiet", "--fix", "--unsafe-fixes", "--select", "I,F401"], ["format"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=True).stdout
    return text


def _root(kind: type, used: Used) -> str:
    return f"""
class {kind.__name__}:
    blocking: Blocking{kind.__name__}
    def __init__({_parameters(vars(kind)["__init__"], used)}) -> None: ...
    async def start(self) -> Cluster: ...
    async def __aenter__(self) -> Cluster: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
"""


def _handle(kind: type, used: Used) -> str:
    members = [_member(kind, name, member, used) for name, member in members_of(kind).items()]
    lines = [
        f"blocking: Blocking{kind.__name__}",
        f"def __init__(self, blocking: Blocking{kind.__name__}) -> None: ...",
    ]
    return f"class {kind.__name__}:\n" + "".join(f"    {line}\n" for line in [*lines, *members])


def _member(kind: type, name: str, member: Any, used: Used) -> str:
    if isinstance(member, Renamed):
        return _member(kind, name, members_of(kind)[member.new], used)
    is_plain = (kind.__name__, name) in WITHOUT_REQUEST
    if isinstance(member, str):
        return f"@property\n    def {name}(self) -> {member}: ..."
    if isinstance(member, property):
        result = _annotation(member.fget, "return", used)
        return f"@property\n    def {name}(self) -> {result if is_plain else f'Awaitable[{result}]'}: ..."
    function = inspect.unwrap(member)
    parameters, result = _parameters(function, used), _annotation(function, "return", used)
    if is_manager(member):
        entered = re.fullmatch(r"Iterator\[(\w+)\]", result)
        return f"def {name}({parameters}) -> AbstractAsyncContextManager[{entered[1] if entered else result}]: ..."
    if opens_handle(member):
        return f"def {name}({parameters}) -> PendingHandle[{result}]: ..."
    return f"{'' if is_plain else 'async '}def {name}({parameters}) -> {result}: ..."


def _parameters(function: Any, used: Used) -> str:
    parameters, is_keyword_only = [], False
    for name, each in inspect.signature(function).parameters.items():
        if name == "self":
            parameters.append(name)
            continue
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        if each.kind is each.KEYWORD_ONLY and not is_keyword_only:
            parameters.append("*")
        is_keyword_only = is_keyword_only or each.kind in {each.KEYWORD_ONLY, each.VAR_POSITIONAL}
        default = "" if each.default is each.empty else f" = {each.default!r}"
        parameters.append(f"{stars}{name}: {_annotation(function, name, used)}{default}")
    return ", ".join(parameters)


def _annotation(function: Any, name: str, used: Used) -> str:
    """Return an annotation as written, and add its names to `used`."""
    text = str(inspect.unwrap(function).__annotations__[name])
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Name) and node.id not in {*NAMES, *LIKE, "TopicKey"} and not hasattr(builtins, node.id):
            used.add(_imports(function.__module__).get(node.id, (function.__module__, node.id)))
    return text


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Return the module and the name of each import of a module, with absolute module names."""
    return {
        (alias.asname or alias.name): (_absolute(node, module), alias.name)
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module])))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _absolute(node: ast.ImportFrom, module: str) -> str:
    return f"{module.rsplit('.', node.level)[0]}.{node.module}" if node.level else node.module or ""


if __name__ == "__main__":
    TARGET.write_text(source(), encoding="utf-8")
