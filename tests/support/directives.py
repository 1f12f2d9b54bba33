"""Parse #SBATCH lines as sbatch does: `get_argument` of its src/sbatch/opt.c, and getopt_long."""

from collections.abc import Iterator


def options(script: str) -> list[str]:
    """All options of a script before its first command."""
    found: list[str] = []
    for line in script.split("\n"):
        if line.startswith("#SBATCH"):
            found += arguments(line.removeprefix("#SBATCH"))
        elif line.strip() and not line.startswith("#"):
            break
    return found


def arguments(line: str) -> Iterator[str]:
    """The words of a line with sbatch's quotes and backslashes; an unquoted # ends the line."""
    place, line = 0, line + "\0"
    while True:
        while line[place].isspace():
            place += 1
        if line[place] in "#\0":
            return
        word, quote, escaped = "", "", False
        while (quote or not line[place].isspace()) and line[place] != "\0":
            each = line[place]
            if escaped:
                word, escaped = word + each, False
            elif each == "\\":
                escaped = True
            elif quote and each == quote:
                quote = ""
            elif not quote and each in "\"'":
                quote = each
            elif not quote and each == "#":
                break
            else:
                word += each
            place += 1
        yield word
