"""A table of 20 million rows in memory, grouped, joined and sorted by DuckDB."""
import duckdb

# DuckDB would choose its own limit by the machine, and spill by itself: the program is to need its memory.
con = duckdb.connect(":memory:", config={"memory_limit": "8GB", "threads": "2", "temp_directory": ""})
con.execute("create table t as select i, hash(i) % 1000003 as k, hash(i + 1) as v from range(20000000) as r(i)")
print(con.execute("select count(*), sum(k), max(v) from t").fetchall())
print(con.execute("select count(*), sum(n), max(m) from (select k, count(*) n, max(i) m from t group by k)").fetchall())
print(con.execute("select i, v from t order by v desc limit 3").fetchall())
