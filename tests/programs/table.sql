.bail on
CREATE TABLE t(n INTEGER, x REAL, w TEXT);
WITH RECURSIVE c(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM c WHERE n < 200000)
INSERT INTO t SELECT n, (n * 7919 % 100003) / 7.0, printf('w%08d', n * 104729 % 1000003) FROM c;
SELECT count(*), sum(n), round(sum(x), 6), min(w), max(w) FROM t;
SELECT n, x, w FROM t ORDER BY w LIMIT 5;
SELECT n % 10, count(*), round(avg(x), 9) FROM t GROUP BY 1 ORDER BY 3;
CREATE INDEX i ON t(w);
SELECT count(*) FROM t a JOIN t b ON a.w = b.w AND a.n <> b.n;
SELECT length(group_concat(w)), substr(group_concat(w), 1000000, 20) FROM t;
SELECT length(hex(zeroblob(3000000))), length(replace(hex(zeroblob(400000)), '00', 'abc'));
CREATE TABLE big(b BLOB);
INSERT INTO big SELECT zeroblob(2000000 + n) FROM t WHERE n <= 8;
SELECT sum(length(b)), max(hex(substr(b, 1999990))) FROM big;
DELETE FROM t WHERE n % 2; VACUUM;
SELECT count(*), sum(n) FROM t;
SELECT nothing FROM t;
