-- The tables that aggregate others, each named in the line before its query, in the SQL that DuckDB and Spark share
-- (pipeline/views.py). Columns that a query lacks are null.

-- table silver/trace
-- Headers may be repeated, and a later one may have more columns. Numbers are aggregated first: the maximum of texts
-- would sort the rows. Maps cannot be compared, their JSON can.
WITH headers AS (
  SELECT trace_id, min(wall_us) AS wall_us, max(source) AS source, max(watched_us) AS watched_us,
         max(schema_version) AS schema_version, max(seed) AS seed, max(emulator_version) AS emulator_version,
         max(python) AS python, max(os) AS os, max(cluster) AS cluster, max(run_id) AS run_id, max(test_id) AS test_id,
         max(repo) AS repo, max(commit) AS commit, max(branch) AS branch, max(ci_provider) AS ci_provider,
         max_by(libs, CAST(to_json(libs) AS string)) AS libs, max(rerun) AS rerun
  FROM silver.header GROUP BY trace_id),
sources AS (
  SELECT trace_id, source AS event_source, min(wall_us) AS first_us, count(*) AS n_events,
         max(CASE WHEN kind = 'dropped' THEN count END) AS lost
  FROM silver.event GROUP BY trace_id, source),
events AS (
  SELECT trace_id, max(event_source) AS event_source, min(first_us) AS first_us, sum(n_events) AS n_events,
         coalesce(max(lost), 0) AS lost
  FROM sources GROUP BY trace_id)
SELECT trace_id, coalesce(run_id, trace_id) AS run_id, test_id, cluster, coalesce(source, event_source) AS source,
       schema_version, seed, emulator_version, python, os, coalesce(wall_us, first_us) AS started_us, watched_us, repo,
       commit, branch, ci_provider, libs, rerun, coalesce(n_events, 0) AS n_events, coalesce(lost, 0) AS lost
FROM headers FULL JOIN events USING (trace_id)

-- table silver/test
-- Of several outcomes of one test the worst counts. The outcome is null if the trace does not contain it.
WITH outcomes AS (
  SELECT *, row_number() OVER (PARTITION BY trace_id ORDER BY CASE outcome WHEN 'error' THEN 4 WHEN 'failed' THEN 3
                               WHEN 'skipped' THEN 2 WHEN 'passed' THEN 1 ELSE 0 END DESC, duration_ms DESC) AS place
  FROM silver.outcome)
SELECT trace_id, run_id, coalesce(trace.test_id, worst.test_id) AS test_id, outcome, duration_ms,
       coalesce(worst.rerun, trace.rerun) AS rerun, coalesce(worst.seed, trace.seed) AS seed
FROM silver.trace AS trace LEFT JOIN (SELECT * FROM outcomes WHERE place = 1) AS worst USING (trace_id)
WHERE coalesce(trace.test_id, worst.test_id) IS NOT NULL

-- table silver/run
SELECT run_id, max(repo) AS repo, max(commit) AS commit, max(branch) AS branch, max(ci_provider) AS ci_provider,
       min(started_us) AS started_us, max(os) AS os, max(python) AS python,
       max_by(libs, CAST(to_json(libs) AS string)) AS libs, max(emulator_version) AS emulator_version,
       max(schema_version) AS schema_version, count(DISTINCT test_id) AS n_tests, count(*) AS n_traces,
       sum(n_events) AS n_events
FROM silver.trace GROUP BY run_id

-- table gold/heartbeat
-- One row for each member id, with the session timeout of its last stay.
WITH beats AS (
  SELECT trace_id, group_id, member_id, error,
         (group_us - lag(group_us) OVER (PARTITION BY trace_id, group_id, member_id ORDER BY seq)) / 1000 AS gap_ms
  FROM silver.call WHERE api = 'Heartbeat' AND member_id IS NOT NULL),
gaps AS (
  SELECT trace_id, group_id, member_id, count(*) AS n, count_if(error != 'NONE') AS n_refused,
         percentile(gap_ms, 0.5) AS p50_gap_ms, percentile(gap_ms, 0.99) AS p99_gap_ms, max(gap_ms) AS max_gap_ms
  FROM beats GROUP BY 1, 2, 3),
members AS (
  SELECT trace_id, group_id, member_id, max(member) AS member,
         max_by(session_timeout_ms, joined_seq) AS session_timeout_ms
  FROM silver.member_span GROUP BY 1, 2, 3)
SELECT trace_id, run_id, test_id, cluster, group_id, member_id, coalesce(member, member_id) AS member, n, n_refused,
       p50_gap_ms, p99_gap_ms, max_gap_ms, session_timeout_ms,
       CASE WHEN session_timeout_ms > 0 THEN max_gap_ms / session_timeout_ms END AS max_ratio_to_session
FROM gaps LEFT JOIN members USING (trace_id, group_id, member_id) LEFT JOIN silver.trace USING (trace_id)

-- table gold/avoided
-- The log of Kafka 2.4 does not name the group.
SELECT trace_id, run_id, test_id, trace.cluster, group_id, seq, timestamp_micros(wall_us) AS at, instance_id, generation
FROM silver.event LEFT JOIN silver.trace AS trace USING (trace_id) WHERE kind = 'avoided_static'

-- table mart/test_run
-- A client took part if one of its members sent a request. A verdict about several clients counts for each of them.
WITH counted AS (SELECT trace_id, count(*) AS n_rebalances FROM gold.rebalance GROUP BY trace_id),
members AS (
  SELECT DISTINCT trace_id, group_id, client_software, client_version
  FROM silver.member WHERE client_software IS NOT NULL),
judged AS (
  SELECT trace_id, client_software, client_version,
         CASE WHEN subject IN ('clients', concat_ws(' ', client_software, client_version)) THEN status END AS status
  FROM members LEFT JOIN (SELECT trace_id, group_id, subject, status FROM mart.verdict WHERE check_id LIKE 'C%')
               USING (trace_id, group_id)),
worst AS (
  SELECT trace_id, client_software, client_version,
         min_by(status, CASE status WHEN 'fail' THEN 1 WHEN 'inconclusive' THEN 2 WHEN 'pass' THEN 3 ELSE 4 END)
         AS status
  FROM judged GROUP BY 1, 2, 3),
clients AS (
  SELECT trace_id,
         array_sort(collect_list((client_software, client_version, coalesce(status, 'not_applicable')))) AS clients
  FROM worst GROUP BY trace_id)
SELECT trace_id, trace.run_id, test.test_id, test.rerun, trace.started_us,
       CASE WHEN outcome IN ('passed', 'failed', 'error') THEN outcome != 'passed' END AS failed,
       coalesce(n_rebalances, 0) AS n_rebalances, clients
FROM silver.trace AS trace LEFT JOIN silver.test AS test USING (trace_id) LEFT JOIN counted USING (trace_id)
     LEFT JOIN clients USING (trace_id)

-- table mart/flaky
-- Skipped runs and runs without an outcome do not count. A run of a test has a trace for each of its clusters. The
-- flake rate is the share of runs whose outcome differs from the majority.
WITH runs AS (
  SELECT run_id, test_id, rerun, max(CASE WHEN failed THEN 1 ELSE 0 END) AS failed, sum(n_rebalances) AS n
  FROM mart.test_run WHERE test_id IS NOT NULL AND failed IS NOT NULL GROUP BY 1, 2, 3)
SELECT test_id, count(*) AS runs, sum(failed) AS failed, least(avg(failed), 1 - avg(failed)) AS flake_rate,
       avg(CASE WHEN failed = 0 THEN n END) AS rebalances_passed, avg(CASE WHEN failed = 1 THEN n END)
       AS rebalances_failed, avg(n) AS rebalances
FROM runs GROUP BY test_id

-- table mart/client_matrix
WITH rows_ AS (
  SELECT test_id AS scenario, started_us, n_rebalances, CASE WHEN failed THEN 1 WHEN NOT failed THEN 0 END AS failed,
         explode(clients) AS client
  FROM mart.test_run),
clients AS (SELECT *, client.client_software, client.client_version, client.status FROM rows_)
SELECT client_software, client_version, scenario,
       min_by(status, CASE status WHEN 'fail' THEN 1 WHEN 'inconclusive' THEN 2 WHEN 'pass' THEN 3 ELSE 4 END)
       AS status,
       count(*) AS runs, coalesce(sum(failed), 0) AS failed,
       coalesce(least(avg(failed), 1 - avg(failed)), 0.0) AS flake_rate, avg(n_rebalances) AS rebalances,
       timestamp_micros(max(started_us)) AS last_run
FROM clients GROUP BY 1, 2, 3
