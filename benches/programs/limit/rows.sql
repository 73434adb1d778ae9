-- A table of 6 million rows in memory, with an index.
create table t as with recursive n(i) as (select 1 union all select i + 1 from n where i < 6000000)
    select i, i * 7919 % 1000003 as k, printf('%050d', i) as word from n;
create index by_k on t (k);
select count(*), sum(k), max(word) from t;
select count(*), sum(a.i) from t a join t b on a.k = b.k where a.i % 1000 = 0;
select k, count(*) from t group by k order by 2 desc, 1 limit 3;
