"""The document model."""

from scalestudy.report.document import Cell, Table


def test_columns_with_remarks_are_looked_for_once_however_many_cells_ask() -> None:
    table = Table(("name", "value"), (("a", Cell("1", remark="why")), ("b", "2")))
    assert table.remarked == {1}
    assert table.remarked is table.remarked
