"""How the house is laid out, and how large it is: rooms, arrows, floors, lines, functions.

Run it with ``python tests/benchmarks/house.py [folder of a package]``. A room is a folder at the
top of the package, or a module beside them; an arrow is an import from one room in another,
wherever it stands in the file; the floors are the longest chain of rooms that stand on each other.
Lines of code are those that hold more than comments, docstrings or nothing; a repeated run is six
lines of code, or more, that stand in two places to the letter.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path

_BLANK = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
_RUN = 6
_MANY_ARGUMENTS = 10
_LONG = 60


def lines_of(source):
    """Numbers of the lines of code, and of those of docstrings."""
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        holder = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, holder) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _BLANK:
            code.update(range(token.start[0], token.end[0] + 1))
    return code - docstrings, docstrings


def functions_of(source):
    """(lines, arguments) of every function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
            yield node.end_lineno - node.lineno + 1, count


def repeated_lines(sources):
    """How many lines of code belong to a run that stands in two places."""
    places = {}
    for number, source in enumerate(sources):
        code, _ = lines_of(source)
        lines = [(i, source.splitlines()[i - 1].strip()) for i in sorted(code)]
        lines = [(i, line) for i, line in lines if not line.startswith(("from ", "import "))]
        for start in range(len(lines) - _RUN + 1):
            run = lines[start : start + _RUN]
            text = "\n".join(line for _, line in run)
            if sum(map(str.isalnum, text)) > 60:
                places.setdefault(text, []).append({(number, i) for i, _ in run})
    return len(set().union(*(set().union(*at) for at in places.values() if len(at) > 1), set()))


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
    sources = [path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))]
    code, docstrings = (sum(map(len, kind)) for kind in zip(*map(lines_of, sources), strict=True))
    functions = [function for source in sources for function in functions_of(source)]
    whole = sum(len(source.splitlines()) for source in sources)
    print(f"rooms {len(rooms)}, arrows {len(arrows)}, floors {floors_of(arrows, rooms)},")
    print(f"modules at the root {len(modules)}, most in a folder {len(folders[fullest])}", end="")
    print(f" ({fullest}),")
    print(f"files {len(sources)}, lines {whole:,}, of code {code:,}, of docstrings {docstrings:,},")
    print(f"functions {len(functions):,}, with {_MANY_ARGUMENTS} arguments or more", end=" ")
    print(sum(count >= _MANY_ARGUMENTS for _, count in functions), end="")
    print(f", longer than {_LONG} lines {sum(size > _LONG for size, _ in functions)},")
    print(f"lines of code in runs of {_RUN} that stand twice {repeated_lines(sources):,}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "pgmult").resolve())
