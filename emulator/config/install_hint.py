"""The command that installs an extra of koordinator where this koordinator comes from: a clone, a wheel or an index."""

from __future__ import annotations

import json


def install_hint(extra: str) -> str:
    """Return the pip command for an extra, such as `pip install 'koordinator[control]'`.

    The origin is in `direct_url.json` (PEP 610); an installation from an index has none.
    """
    from importlib import metadata  # noqa: PLC0415 - few processes need it

    try:
        text = metadata.distribution("koordinator").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        text = None
    if text is None:
        return f"pip install 'koordinator[{extra}]'"
    from urllib.parse import urlsplit  # noqa: PLC0415 - as above
    from urllib.request import url2pathname  # noqa: PLC0415 - as above

    origin = json.loads(text)
    url = origin["url"]
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return f"pip install 'koordinator[{extra}] @ {vcs['vcs']}+{url}@{vcs['commit_id']}'"
    if "dir_info" not in origin:
        return f"pip install 'koordinator[{extra}] @ {url}'"
    editable = "-e " if origin["dir_info"].get("editable") else ""
    return f"pip install {editable}'{url2pathname(urlsplit(url).path)}[{extra}]'"
