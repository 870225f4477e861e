from plait.plan.relations import operand_name
from plait.query.model import Operand, SourceExpression


def operand(sql: str, type_: str) -> Operand:
    return Operand(relation="a", expression=SourceExpression(sql=sql, columns=("m",)), type=type_)


def test_an_operand_that_is_a_column_is_kept_once() -> None:
    assert operand_name(operand("`m`", "interval day to second")) == "m"
    assert operand_name(operand("-`m`", "interval day")) == "#v interval day -`m`"


def test_a_column_of_months_is_no_operand_itself_because_no_task_can_have_it() -> None:
    assert operand_name(operand("`m`", "interval month")) == "#v interval month `m`"
