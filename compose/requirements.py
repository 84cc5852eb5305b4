"""Print the requirements in pyproject.toml, one per line; the arguments name extras to include."""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Print the requirements."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *(line for extra in sys.argv[1:] for line in extras[extra])]
    sys.stdout.write("\n".join(requirements) + "\n")


if __name__ == "__main__":
    main()
