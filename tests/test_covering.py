"""Which combinations of parameters `make test` leaves to `make test-all`."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.covering import covering_rows


def test_a_product_is_covered_by_its_longest_side() -> None:
    rows = [{"family": family, "space": space} for family, space in product(range(5), range(3))]
    chosen = [rows[place] for place in covering_rows(rows)]
    assert len(chosen) == 5
    assert {row["family"] for row in chosen} == set(range(5))
    assert {row["space"] for row in chosen} == set(range(3))


@given(st.lists(st.fixed_dictionaries({name: st.integers(0, 4) for name in "abc"}), max_size=30))
def test_every_value_of_every_parameter_stays_and_nothing_stays_in_vain(rows: list[dict[str, int]]) -> None:
    chosen = covering_rows(rows)
    assert {cell for place in chosen for cell in rows[place].items()} == {cell for row in rows for cell in row.items()}
    assert len(set(chosen)) == len(chosen) <= 15
    assert covering_rows(rows) == chosen
