"""The contract of requests: the units that were asked, and what the system did with each."""

from __future__ import annotations

import polars as pl

from docrecall.contract.rules import Checked, Rule, fault_rules, null_rules, report, split
from docrecall.options import Options
from docrecall.sources.table import Table
from docrecall.tables import unit_key


def check_requests(table: Table, options: Options) -> Checked:
    """Read and check the requests.

    The good rows have the key (without run_id it is that of every run), `retrieved` and `answered` (null where a column
    is absent), each key once. A request that is listed twice is bad in all its rows.
    """
    key = unit_key(table.columns)
    flags = [c for c in ("retrieved", "answered") if c in table.columns]
    rows = table.read([*key, *flags])
    rules = [*fault_rules(table), *null_rules(table, *key)]
    whole = pl.all_horizontal(pl.col(key).is_not_null())
    rules.append(Rule("request_repeated", "request_id" if "request_id" in key else "query_id",
                      whole & pl.struct(key).is_duplicated()))  # fmt: skip
    rows, bad = split(rows, rules)
    rejected, found = report(bad, table, key, options)
    missing = (pl.lit(None, pl.Boolean).alias(c) for c in ("retrieved", "answered") if c not in flags)
    return Checked(rows.with_columns(missing).select(*key, "retrieved", "answered"), rejected, 0, found)
