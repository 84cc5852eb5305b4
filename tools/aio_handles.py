"""Makes `koordinator.aio.handles` from the handles that block: `python tools/aio_handles.py` renews it.

A method becomes a coroutine, a property one that gives a coroutine, a context manager an asynchronous one. What gives
a handle gives its twin. Signatures and the first paragraphs of docstrings are those of the handles.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import subprocess
import sys
import textwrap
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from koordinator.handles import cluster, group, nodes
from koordinator.handles import emulator as running
from koordinator.handles import faults as fault_levers
from koordinator.handles import puppets as puppet_levers

TARGET = Path(__file__).parents[1] / "facade" / "aio" / "handles.py"

ROOTS = (running.Emulator,)
"""What one begins with: made with arguments, entered for a cluster."""

HANDLES: tuple[type, ...] = (
    cluster.Cluster,
    group.Group,
    nodes.Node,
    puppet_levers.Puppet,
    fault_levers.Rule,
    fault_levers.Held,
    fault_levers.Lockstep,
)
"""What has a twin."""

ASK_NOBODY = {("Cluster", name) for name in ("bootstrap_servers", "seed", "group", "client_config")}
"""What is known without asking the cluster, and not awaited."""

NAMES = {each.__name__ for each in (*ROOTS, *HANDLES)}

HEAD = '''"""Handles that are awaited: made from those that block by tools/aio_handles.py, not by hand."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

{runtime}
from koordinator.aio.waiting import entered, in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from types import TracebackType
{types}

__all__ = {names}
'''


def source() -> str:
    """The text of the module."""
    used: set[tuple[str, str]] = set()
    classes = [_root(each, used) for each in ROOTS] + [_handle(each, used) for each in HANDLES]
    theirs = [f"from {each.__module__} import {each.__name__} as Blocking{each.__name__}" for each in ROOTS]
    at_type_checking = sorted(
        {f"    from {module} import {name}" for module, name in used}
        | {f"    from {each.__module__} import {each.__name__} as Blocking{each.__name__}" for each in HANDLES}
    )
    head = HEAD.format(runtime="\n".join(theirs), types="\n".join(at_type_checking), names=sorted(NAMES))
    return _formatted("\n\n".join([head, *classes]))


def _formatted(text: str) -> str:
    for arguments in (["check", "--quiet", "--fix", "--unsafe-fixes", "--select", "I,TC,F401,UP"], ["format"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=True).stdout
    return text


# -- classes -------------------------------------------------------------------------------------------------


def _root(kind: type, used: set[tuple[str, str]]) -> str:
    signature = _signature(kind.__init__, used)
    return f'''
class {kind.__name__}:
    {_doc(kind, f"Its cluster is for asyncio and Trio: `async with {kind.__name__}(…) as cluster:`.")}

    def __init__({signature.parameters}) -> None:
        self.blocking = Blocking{kind.__name__}({signature.passed})
        """The one that blocks."""
        self._clusters: list[Cluster] = []

    async def start(self) -> Cluster:
        """Start a cluster, which runs until its `stop`."""
        return Cluster(await in_thread(self.blocking.start))

    async def __aenter__(self) -> Cluster:
        self._clusters.append(await self.start())
        return self._clusters[-1]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self._clusters.pop().blocking.stop, whatever_happens=True)
'''


def _handle(kind: type, used: set[tuple[str, str]]) -> str:
    members = [_member(kind, name, member, used) for name, member in surface(kind).items()]
    return f'''
class {kind.__name__}:
    {_doc(kind)}

    def __init__(self, blocking: Blocking{kind.__name__}) -> None:
        self.blocking = blocking
        """The one that blocks."""

    def __repr__(self) -> str:
        return repr(self.blocking)

{textwrap.indent(chr(10).join(members), "    ")}
'''


def surface(kind: type) -> dict[str, Any]:
    """The public members of a handle; an attribute is its annotation."""
    found: dict[str, Any] = dict(_attributes(kind))
    for each in reversed(kind.__mro__[:-1]):
        # what is declared for type checkers alone is not there
        found |= {name: member for name, member in vars(each).items() if not name.startswith("_")}
    return found


def _attributes(kind: type) -> dict[str, str]:
    """What `__init__` sets from an argument of its own, with its type."""
    function = ast.parse(textwrap.dedent(inspect.getsource(kind.__init__))).body[0]
    assert isinstance(function, ast.FunctionDef)
    given = {each.arg: ast.unparse(each.annotation) for each in function.args.args if each.annotation is not None}
    found = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=value) if not name.startswith("_"):
                found[name] = given.get(ast.unparse(value), "str")
            case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation) if not name.startswith("_"):
                found[name] = ast.unparse(annotation)
    return found


# -- members -------------------------------------------------------------------------------------------------


def _member(kind: type, name: str, member: Any, used: set[tuple[str, str]]) -> str:
    asks_nobody = (kind.__name__, name) in ASK_NOBODY
    if isinstance(member, str):
        return f'@property\ndef {name}(self) -> {member}:\n    """As it was made."""\n    return self.blocking.{name}\n'
    if isinstance(member, property):
        returned = _annotation(member.fget, "return", used)
        if asks_nobody:
            return f"@property\ndef {name}(self) -> {returned}:\n    {_doc(member)}\n    return self.blocking.{name}\n"
        body = _given(f"await in_thread(lambda: self.blocking.{name})", returned)
        return (
            f"@property\ndef {name}(self) -> Awaitable[{returned}]:\n    {_doc(member)}\n\n"
            f"    async def ask() -> {returned}:\n{textwrap.indent(body, ' ' * 8)}\n\n    return ask()\n"
        )
    inner = inspect.unwrap(member)
    signature = _signature(inner, used)
    call = f"self.blocking.{name}({signature.passed})"
    returned = _annotation(inner, "return", used)
    if inspect.isgeneratorfunction(inner):
        given = re.fullmatch(r"(?:Iterator|Generator)\[(\w+)(?:, None, None)?\]", returned)
        assert given, f"{name}: {returned}"
        return _manager(name, signature.parameters, given[1], f"entered({call})", _doc(member))
    if returned in NAMES and hasattr(_named(inner, returned), "__enter__"):
        made = f"entered(await in_thread(lambda: {call}))"
        return _manager(name, signature.parameters, returned, made, _doc(member))
    head = f"def {name}({signature.parameters}) -> {returned}:\n    {_doc(member)}"
    if asks_nobody:
        body = _given(call, returned)
        return f"{head}\n{textwrap.indent(body, '    ')}\n"
    asked = f"lambda: {call}" if signature.passed else f"self.blocking.{name}"
    body = _given(f"await in_thread({asked})", returned)
    return f"async {head}\n{textwrap.indent(body, '    ')}\n"


def _manager(name: str, parameters: str, given: str, manager: str, doc: str) -> str:
    wrapped = f"{given}(given)" if given in NAMES else "given"
    inside = "with_it" if given == "None" else "given"
    return (
        f"@asynccontextmanager\nasync def {name}({parameters}) -> AsyncIterator[{given}]:\n    {doc}\n"
        + (f"    async with {manager}:\n        yield\n" if given == "None" else "")
        + (f"    async with {manager} as {inside}:\n        yield {wrapped}\n" if given != "None" else "")
    )


def _given(asked: str, returned: str) -> str:
    """The statements that give what was asked for, with the twins of handles."""
    if returned == "None":
        return asked
    if returned == "Self":
        return f"{asked}\nreturn self"
    if returned in NAMES:
        return f"return {returned}({asked})"
    if found := re.fullmatch(r"list\[(\w+)\]", returned):
        if found[1] in NAMES:
            return f"return [{found[1]}(each) for each in {asked}]"
    elif (found := re.fullmatch(r"dict\[\w+, (\w+)\]", returned)) and found[1] in NAMES:
        return f"found = {asked}\nreturn {{key: {found[1]}(each) for key, each in found.items()}}"
    elif (found := re.fullmatch(r"(\w+) \| None", returned)) and found[1] in NAMES:
        return f"found = {asked}\nreturn None if found is None else {found[1]}(found)"
    assert not set(re.findall(r"\w+", returned)) & NAMES, f"no twin is made of {returned}"
    return f"return {asked}"


# -- signatures ----------------------------------------------------------------------------------------------


class Signature:
    """The parameters of a function as they are declared, and as they are passed on."""

    def __init__(self, parameters: list[str], passed: list[str]) -> None:
        self.parameters = ", ".join(parameters)
        self.passed = ", ".join(passed)


def _signature(function: Any, used: set[tuple[str, str]]) -> Signature:
    parameters, passed, keyword_only = [], [], False
    for name, each in inspect.signature(function).parameters.items():
        if name == "self":
            parameters.append(name)
            continue
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        if each.kind is each.KEYWORD_ONLY and not keyword_only:
            parameters.append("*")
        keyword_only = keyword_only or each.kind in {each.KEYWORD_ONLY, each.VAR_POSITIONAL}
        default = "" if each.default is each.empty else f" = {each.default!r}"
        parameters.append(f"{stars}{name}: {_annotation(function, name, used)}{default}")
        passed.append(f"{name}={name}" if each.kind is each.KEYWORD_ONLY else f"{stars}{name}")
    return Signature(parameters, passed)


def _annotation(function: Any, name: str, used: set[tuple[str, str]]) -> str:
    """An annotation as it is written; the names in it are noted with their modules."""
    written = str(inspect.unwrap(function).__annotations__[name])
    module = function.__module__
    for node in ast.walk(ast.parse(written, mode="eval")):
        if isinstance(node, ast.Name) and node.id not in NAMES and not hasattr(builtins, node.id):
            used.add(_home(module, node.id))
    return written


def _named(function: Any, name: str) -> Any:
    module, original = _home(function.__module__, name)
    return getattr(sys.modules[module], original)


def _home(module: str, name: str) -> tuple[str, str]:
    """Where a name in a module comes from."""
    return _imports(module).get(name, (module, name))


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    package = module.rpartition(".")[0]
    return {
        (alias.asname or alias.name): (resolve_name("." * node.level + (node.module or ""), package), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _doc(documented: Any, more: str = "") -> str:
    """The first paragraph of a docstring, as a literal."""
    text = inspect.cleandoc(documented.__doc__ or "").split("\n\n")[0]
    lines = [line for line in (text.replace("\n", "\n    "), more) if line]
    whole = "\n\n    ".join(lines)
    return f'"""{whole}{chr(10) + "    " if chr(10) in whole else ""}"""'


if __name__ == "__main__":
    TARGET.write_text(source(), encoding="utf-8")
