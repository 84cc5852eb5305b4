"""What koordinator needs, a line for pip each, out of pyproject.toml; the arguments are extras that are wanted, too."""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Print the lines."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for extra in sys.argv[1:] for line in extras[extra])]
    sys.stdout.write("\n".join(wanted) + "\n")


if __name__ == "__main__":
    main()
