"""How the house is laid out: rooms, arrows between them, floors, and modules in a room.

Run it with ``python tests/benchmarks/house.py [folder of a package]``. A room is a folder at the
top of the package, or a module beside them; an arrow is an import from one room in another,
wherever it stands in the file; the floors are the longest chain of rooms that stand on each other.
"""

import ast
import sys
from pathlib import Path


def rooms_of(package):
    """The Python files of each room, by the room's name."""
    rooms = {}
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package).parts
        if place != ("__init__.py",):
            rooms.setdefault(place[0].removesuffix(".py"), []).append(path)
    return rooms


def targets(path, package):
    """Rooms that a file imports from, relative imports included."""
    inside = (package.name, *path.relative_to(package).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else ()
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{origin}.{alias.name}" for alias in node.names]
        for name in names:
            first, _, rest = name.partition(".")
            if first == package.name and rest:
                yield rest.split(".")[0]


def floors_of(arrows, rooms):
    """The longest chain of rooms, or None where they stand on each other in a circle."""
    heights = {}
    while len(heights) < len(rooms):
        ready = {
            room: 1 + max((heights[below] for above, below in arrows if above == room), default=0)
            for room in rooms
            if room not in heights
            and all(below in heights for above, below in arrows if above == room)
        }
        if not ready:
            return None
        heights |= ready
    return max(heights.values())


def main(package):
    """Print the counts."""
    rooms = rooms_of(package)
    arrows = {
        (room, target)
        for room, paths in rooms.items()
        for path in paths
        for target in targets(path, package)
        if target != room and target in rooms
    }
    folders = {}
    for path in package.rglob("*.py"):
        folders.setdefault(path.parent.relative_to(package), []).append(path)
    fullest = max(folders, key=lambda folder: len(folders[folder]))
    modules = [room for room in rooms if (package / f"{room}.py").exists()]
    lines = sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in package.rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    )
    print(f"rooms {len(rooms)}, arrows {len(arrows)}, floors {floors_of(arrows, rooms)},")
    print(f"modules at the root {len(modules)}, most in a folder {len(folders[fullest])}", end="")
    print(f" ({fullest}), lines {lines:,}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "pgmult").resolve())
