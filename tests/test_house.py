"""Each file of the package can be read at once: few syntax nodes on a line, and constants before code."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "scalestudy"
TREES = {
    file.relative_to(PACKAGE).as_posix(): ast.parse(file.read_text())
    for file in sorted(PACKAGE.rglob("*.py"))
}
MOST_NODES = 10.0
"""Maximum mean number of syntax nodes on a line of code; readable files of other projects have 5 to 8."""
SHORT = 30
"""Lines of code below which a file is read at once, and its mean says little."""
FORMULAS = {
    # Almost every statement is a formula of arrays.
    "data/sources/micrograph.py": 12.0,
}
"""Files that may be denser, with their own maximum."""


def test_a_line_holds_few_syntax_nodes():
    dense = {}
    for name, tree in TREES.items():
        mean = nodes_per_line(tree)
        if len(lines_of_code(tree)) >= SHORT and mean > FORMULAS.get(name, MOST_NODES):
            dense[name] = mean

    assert dense == {}


def test_files_of_formulas_exist_and_are_denser_than_others_may_be():
    for name in FORMULAS:
        assert nodes_per_line(TREES[name]) > MOST_NODES


def test_constants_stand_before_the_code_that_they_do_not_need():
    late = {}
    for name, tree in TREES.items():
        if late_constants(tree):
            late[name] = late_constants(tree)

    assert late == {}


def test_a_dense_line_and_a_late_constant_are_found():
    dense = "a = [f(x) + g(x) for x in range(10) if h(x) and x % 2]"
    plain = "a = 1\nb = 2\nc = f(a)"
    late = "def f():\n    pass\n\nMOST = 3\nLAST = f()\nLINES: int = 2\nlower = 1"

    assert nodes_per_line(ast.parse(dense)) > MOST_NODES
    assert nodes_per_line(ast.parse(plain)) < MOST_NODES
    assert late_constants(ast.parse(late)) == ["MOST", "LINES"]


def nodes_per_line(tree):
    """Return the mean number of syntax nodes on a line of code."""
    return len(list(ast.walk(tree))) / len(lines_of_code(tree))


def lines_of_code(tree):
    """Return the numbers of the lines on which something begins or ends; docstrings do not count."""
    lines = {0}
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            lines.update((node.lineno, node.end_lineno))
    for node in ast.walk(tree):
        if is_text(node):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return lines


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def late_constants(tree):
    """Return the names in upper case that are assigned after a definition, and do not need one."""
    defined = set()
    late = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and defined:
            names = names_of(node, ast.Store)
            if not names_of(node, ast.Load) & defined:
                late += [name for name in names if name.isupper()]
            defined |= names
    return late


def names_of(statement, context):
    """Return the names that a statement assigns (`ast.Store`) or uses (`ast.Load`)."""
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, context):
            names.add(node.id)
    return names
