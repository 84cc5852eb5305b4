-- The queries of the report, each named in the line before it, in the SQL that DuckDB and Spark share (pipeline/views.py).
--
-- A group is identified by its `scope` (the test, else the cluster) and its `group_id`: a thousand runs of a test count
-- as one group. A member is identified by its `group.instance.id`, a dynamic member by its client id, because its
-- member id changes with every run; :suffix is the pattern of the rest. Lists have the most important rows first.

-- query totals: the size of the input and the sums over all groups, in one row; times are seconds since the epoch
SELECT * FROM
  (SELECT count(*) AS traces, count(DISTINCT run_id) AS runs, count(DISTINCT test_id) AS tests,
          count(DISTINCT coalesce(test_id, cluster, trace_id)) AS scopes, sum(n_events) AS events, sum(lost) AS lost,
          CAST(floor(min(started_us) / 1000000) AS BIGINT) AS since_s,
          CAST(floor(max(coalesce(watched_us, started_us)) / 1000000) AS BIGINT) AS until_s
   FROM silver.trace),
  (SELECT min(unix_seconds(started_at)) AS first_s, max(unix_seconds(started_at)) AS last_s, count(*) AS begun,
          count_if(outcome = 'completed') AS completed, count_if(outcome = 'emptied') AS emptied,
          count_if(outcome = 'superseded') AS superseded, percentile_approx(total_ms, 0.5) AS p50,
          percentile_approx(total_ms, 0.95) AS p95, max(total_ms) AS longest_ms
   FROM gold.rebalance),
  (SELECT sum(stopped_ms) / 1000 AS stopped_s FROM gold.member_downtime),
  (SELECT sum(ms) / 3600000 AS hours FROM gold.state_time),
  (SELECT count(DISTINCT (trace_id, group_id)) AS groups FROM silver.group),
  (SELECT count(*) AS avoided FROM gold.avoided)

-- query by_time: the rebalances that began in each interval, by cause
SELECT unix_seconds(started_at) - unix_seconds(started_at) % :interval_s AS at_s, cause, count(*) AS n
FROM gold.rebalance GROUP BY ALL ORDER BY at_s, cause

-- query causes: each cause with the clients' own reasons (KIP-800), its frequency, and its durations
SELECT cause, count(*) AS begun, count_if(outcome = 'completed') AS completed,
       array_sort(collect_set(sub_cause)) AS sub_causes, count_if(followup) AS followups,
       percentile_approx(total_ms, 0.5) AS p50, percentile_approx(total_ms, 0.95) AS p95, sum(total_ms) AS sum_ms
FROM gold.rebalance GROUP BY cause ORDER BY begun DESC, cause

-- query join_times: the distribution of join barriers by cohort: `bar` n starts at 10 ** (n / PER_DECADE) ms
SELECT coalesce(CASE WHEN type = 'consumer' THEN 'consumer' WHEN mode = 'cooperative' THEN 'cooperative' END,
                membership, 'unknown') AS cohort,
       CAST(floor(log10(greatest(join_ms, 0.1)) * 4) AS BIGINT) AS bar, count(*) AS n
FROM gold.rebalance WHERE join_ms IS NOT NULL GROUP BY ALL ORDER BY bar, cohort

-- query stopped_groups: the total time for which the members of each group were stopped
SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id, count(DISTINCT (trace_id, rebalance_no)) AS rebalances,
       sum(stopped_ms) / 1000 AS stopped_s, avg(stopped_ms) AS mean_ms, max(stopped_ms) AS longest_ms
FROM gold.member_downtime GROUP BY ALL ORDER BY stopped_s DESC, scope, group_id LIMIT 20

-- query stopped_members: the total time for which each member was stopped
SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id, regexp_replace(member, :suffix, '') AS member,
       count(*) AS rebalances, max(client_software) AS client_software, max(client_version) AS client_version,
       sum(stopped_ms) / 1000 AS stopped_s, avg(stopped_ms) AS mean_ms, max(stopped_ms) AS longest_ms,
       sum(revoked_n) AS revoked, count_if(NOT commit_before_revoke) AS uncommitted
FROM gold.member_downtime GROUP BY 1, 2, 3 ORDER BY stopped_s DESC, 1, 2, 3 LIMIT 20

-- query weeks: the seven days before the end against the seven days before them, by group; the greatest changes first
-- An eager group stood still at least from its barriers to the assignments, `least_ms`, and at most for its whole
-- rebalances, `most_ms`. There is no row unless the input began before the last seven days.
WITH aged AS (
  SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id, total_ms,
         CASE WHEN coalesce(mode, 'eager') = 'eager' THEN sync_ms ELSE 0.0 END AS least_ms,
         :until_s - unix_seconds(started_at) < 604800 AS is_now,
         :until_s - unix_seconds(started_at) < 1209600 AS is_recent
  FROM gold.rebalance WHERE :since_s < :until_s - 604800)
SELECT scope, group_id, count_if(is_now) AS rebalances_now, count_if(NOT is_now) AS rebalances_before,
       coalesce(sum(CASE WHEN is_now THEN least_ms END), 0.0) AS least_ms_now,
       coalesce(sum(CASE WHEN NOT is_now THEN least_ms END), 0.0) AS least_ms_before,
       coalesce(sum(CASE WHEN is_now THEN total_ms END), 0.0) AS most_ms_now,
       coalesce(sum(CASE WHEN NOT is_now THEN total_ms END), 0.0) AS most_ms_before
FROM aged WHERE is_recent GROUP BY scope, group_id ORDER BY abs(most_ms_now - most_ms_before) DESC, scope, group_id
LIMIT 20

-- query stragglers: the members that delayed join barriers, with the delays and their shares
SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id, regexp_replace(straggler_member, :suffix, '') AS member,
       count(*) AS times, sum(straggler_wait_ms) AS wait_ms, max(straggler_wait_ms) AS longest_ms,
       avg(straggler_share) AS share, count_if(n_timed_out > 0) AS timed_out
FROM gold.rebalance WHERE straggler_member IS NOT NULL GROUP BY 1, 2, 3 ORDER BY wait_ms DESC, 1, 2, 3 LIMIT 20

-- query state_times: the time of each group in each state; groups with the longest rebalances come first
SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id,
       sum(CASE WHEN state = 'Stable' THEN ms ELSE 0.0 END) AS Stable,
       sum(CASE WHEN state = 'PreparingRebalance' THEN ms ELSE 0.0 END) AS PreparingRebalance,
       sum(CASE WHEN state = 'CompletingRebalance' THEN ms ELSE 0.0 END) AS CompletingRebalance,
       sum(CASE WHEN state = 'Empty' THEN ms ELSE 0.0 END) AS Empty,
       sum(CASE WHEN state = 'Dead' THEN ms ELSE 0.0 END) AS Dead
FROM gold.state_time GROUP BY 1, 2
ORDER BY sum(CASE WHEN state LIKE '%Rebalance' THEN ms ELSE 0.0 END) DESC, scope, group_id LIMIT 20

-- query moves: the moves of each partition in each interval, for the partitions with the most moves
WITH moved AS (
  SELECT coalesce(gap.test_id, gap.cluster, trace_id) AS scope, group_id, topic, partition,
         unix_seconds(started_at) - unix_seconds(started_at) % :interval_s AS at_s
  FROM gold.partition_gap AS gap JOIN gold.rebalance USING (trace_id, group_id, rebalance_no)
  WHERE old_member IS NOT NULL AND new_member IS NOT NULL),
busiest AS (
  SELECT scope, group_id, topic, partition, count(*) AS moves
  FROM moved GROUP BY ALL ORDER BY moves DESC, scope, group_id, topic, partition LIMIT 36)
SELECT scope, group_id, topic, partition, at_s, count(*) AS n
FROM moved JOIN busiest USING (scope, group_id, topic, partition)
GROUP BY ALL ORDER BY scope, group_id, topic, partition, at_s

-- query cohorts: the costs of rebalances, by the members of the generation that they formed
-- `hours`, `per_hour` and `avoided` describe whole groups; a group belongs to the cohort of most of its generations.
WITH completed AS (
  SELECT *, coalesce(CASE WHEN type = 'consumer' THEN 'consumer' WHEN mode = 'cooperative' THEN 'cooperative' END,
                     membership, 'unknown') AS cohort
  FROM gold.rebalance WHERE outcome = 'completed'),
stopped AS (
  SELECT trace_id, group_id, rebalance_no, sum(stopped_ms) AS stopped_ms, count(*) AS members,
         max(stopped_ms) AS worst_ms
  FROM gold.member_downtime GROUP BY 1, 2, 3),
lost AS (
  SELECT trace_id, group_id, rebalance_no, sum(redelivered_records) AS redelivered
  FROM gold.partition_gap GROUP BY 1, 2, 3),
cost AS (
  SELECT cohort, count(*) AS rebalances, count(DISTINCT (trace_id, group_id)) AS groups,
         percentile_approx(total_ms, 0.5) AS p50, percentile_approx(total_ms, 0.95) AS p95,
         sum(stopped_ms) / sum(members) AS stopped_ms, percentile_approx(worst_ms, 0.95) AS worst_ms,
         sum(partitions_total) AS partitions, sum(partitions_moved) AS moved, sum(moves_minimum) AS needed,
         sum(redelivered) AS redelivered
  FROM completed LEFT JOIN stopped USING (trace_id, group_id, rebalance_no)
       LEFT JOIN lost USING (trace_id, group_id, rebalance_no)
  GROUP BY cohort),
times AS (SELECT trace_id, group_id, cohort, count(*) AS n FROM completed GROUP BY 1, 2, 3),
most AS (SELECT trace_id, group_id, max_by(cohort, (n, cohort)) AS cohort, sum(n) AS n FROM times GROUP BY 1, 2),
whole AS (
  SELECT cohort, sum(ms) / 3600000 AS hours, sum(n) * 3600000 / nullif(sum(ms), 0) AS per_hour, sum(avoided) AS avoided
  FROM most LEFT JOIN (SELECT trace_id, group_id, sum(ms) AS ms FROM gold.state_time GROUP BY 1, 2)
                 USING (trace_id, group_id)
       LEFT JOIN (SELECT trace_id, group_id, count(*) AS avoided FROM gold.avoided GROUP BY 1, 2)
                 USING (trace_id, group_id)
  GROUP BY cohort)
SELECT * FROM cost LEFT JOIN whole USING (cohort)
ORDER BY CASE cohort WHEN 'static' THEN 1 WHEN 'dynamic' THEN 2 WHEN 'cooperative' THEN 3 WHEN 'consumer' THEN 4
                     WHEN 'mixed' THEN 5 ELSE 6 END

-- query gains: what classic groups would have gained from static membership, and from a cooperative assignor
-- In the laboratory (docs/lab.md) a rolling restart of static members costs no rebalance, and a cooperative rebalance
-- stops no member. So each dynamic member that left and returned caused at most two rebalances in vain: `static_n`,
-- with their mean duration `static_ms`. Members of eager groups that kept their partitions stopped in vain for
-- `cooperative_least_ms`; with those that lost some it is `cooperative_most_ms`. Both are null for logs of brokers.
WITH returns AS (
  SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id, count(*) AS rebalances,
         2 * least(count_if(cause = 'member_leave' AND is_dynamic), count_if(cause = 'member_join' AND is_dynamic))
         AS static_n,
         avg(CASE WHEN cause IN ('member_leave', 'member_join') AND is_dynamic THEN total_ms END) AS mean_ms
  FROM (SELECT *, coalesce(type, 'classic') = 'classic' AND membership = 'dynamic' AS is_dynamic FROM gold.rebalance)
  GROUP BY 1, 2),
stops AS (
  SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id, sum(stopped_ms) AS cooperative_most_ms,
         coalesce(sum(CASE WHEN revoked_n = 0 THEN stopped_ms END), 0.0) AS cooperative_least_ms
  FROM gold.member_downtime WHERE mode = 'eager' AND kept_n + revoked_n > 0 GROUP BY 1, 2)
SELECT scope, group_id, rebalances, static_n, cooperative_least_ms, cooperative_most_ms,
       static_n * coalesce(mean_ms, 0.0) AS static_ms
FROM returns LEFT JOIN stops USING (scope, group_id) WHERE static_n > 0 OR cooperative_most_ms > 0
ORDER BY static_n * coalesce(mean_ms, 0.0) + coalesce(cooperative_most_ms, 0.0) DESC, scope, group_id LIMIT 20

-- query commits: the results of OffsetCommits by the group's state; a null error means no response
SELECT error, state_at, count(*) AS n, count_if(is_zombie) AS zombies, max(gen_lag) AS lag
FROM gold.commit GROUP BY error, state_at ORDER BY error, state_at

-- query wasted: wasted work by group: redelivered records, time without an owner, and unnecessary moves
SELECT *
FROM (SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id,
             sum(partitions_moved - moves_minimum) AS needless, sum(partitions_moved) AS moved
      FROM gold.rebalance GROUP BY 1, 2)
     LEFT JOIN
     (SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id,
             sum(redelivered_records) AS redelivered, sum(gap_ms) / 1000 AS gap_s
      FROM gold.partition_gap GROUP BY 1, 2)
     USING (scope, group_id)
WHERE needless > 0 OR moved > 0 OR redelivered > 0 OR gap_s > 0 ORDER BY redelivered DESC, gap_s DESC, scope, group_id

-- query storms: rebalances in quick succession, such as those of a deployment, with their costs
-- `first_member` triggered the first rebalance. Its client id or `group.instance.id` may name the deployment or host.
SELECT storm_id, trace_id, coalesce(test_id, cluster, trace_id) AS scope, group_id, count(*) AS rebalances,
       min(start_seq) AS start_seq, (max(t_start_us + total_ms * 1000) - min(t_start_us)) / 1000 AS took_ms,
       sum(stopped_ms) / 1000 AS stopped_s,
       min_by(regexp_replace(trigger_member, :suffix, ''), start_seq) AS first_member,
       min_by(cause, start_seq) AS first_cause, array_sort(collect_set(cause)) AS causes
FROM gold.rebalance LEFT JOIN
     (SELECT trace_id, group_id, rebalance_no, sum(stopped_ms) AS stopped_ms FROM gold.member_downtime GROUP BY 1, 2, 3)
     USING (trace_id, group_id, rebalance_no)
WHERE storm_id IS NOT NULL GROUP BY 1, 2, 3, 4 ORDER BY stopped_s DESC, rebalances DESC, storm_id LIMIT 20

-- query longest: the longest rebalances
SELECT trace_id, coalesce(test_id, cluster, trace_id) AS scope, group_id, rebalance_no, start_seq, cause, reason,
       total_ms, outcome
FROM gold.rebalance WHERE total_ms IS NOT NULL ORDER BY total_ms DESC, trace_id, start_seq LIMIT 20

-- query checks: the number of groups for each check and status
SELECT check_id, title, max(severity) AS severity, count_if(status = 'pass') AS pass,
       count_if(status = 'fail') AS fail, count_if(status = 'inconclusive') AS inconclusive,
       count_if(status = 'not_applicable') AS not_applicable
FROM mart.verdict GROUP BY check_id, title ORDER BY substring(check_id, 1, 1) DESC, check_id

-- query failures: the failed checks, errors first
SELECT trace_id, group_id, check_id, severity, subject, title, message, n_evidence, first_seq, last_seq,
       coalesce(test_id, cluster, trace_id) AS scope
FROM mart.verdict WHERE status = 'fail' ORDER BY severity, check_id, scope, group_id, trace_id LIMIT :failures_max

-- query flaky: the tests that fail, or whose runs have different outcomes
SELECT * FROM mart.flaky WHERE flake_rate > 0 OR failed > 0 ORDER BY flake_rate DESC, failed DESC, test_id LIMIT 20

-- query rebalance_heavy: the tests with the most rebalances
SELECT * FROM mart.flaky WHERE rebalances > 0 ORDER BY rebalances DESC, test_id LIMIT 20

-- query clients: each client version, over all scenarios
SELECT client_software, client_version, count(*) AS scenarios, sum(runs) AS runs, sum(failed) AS failed,
       count_if(status = 'fail') AS broken, sum(matrix.rebalances * matrix.runs) / sum(matrix.runs) AS rebalances
FROM mart.client_matrix AS matrix GROUP BY 1, 2 ORDER BY 1, 2

-- query heartbeats: the members whose heartbeats came closest to the session timeout
SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id, regexp_replace(member, :suffix, '') AS member, n,
       n_refused, p50_gap_ms, p99_gap_ms, max_gap_ms, session_timeout_ms, max_ratio_to_session
FROM gold.heartbeat WHERE max_ratio_to_session IS NOT NULL ORDER BY max_ratio_to_session DESC, 1, 2, 3 LIMIT 20

-- query removals: the members that coordinators removed although they did not leave, by group and cause
SELECT coalesce(test_id, cluster, trace_id) AS scope, group_id, cause, count(*) AS n,
       count(DISTINCT member_id) AS members, max(wall_us) AS last_us, max_by(member_id, seq) AS last_member
FROM silver.event LEFT JOIN (SELECT trace_id, test_id, cluster FROM silver.trace) USING (trace_id)
WHERE kind = 'member' AND change = 'removed'
      AND cause IN ('session_expired', 'join_timeout', 'sync_timeout', 'revocation_timeout', 'fenced', 'over_capacity')
GROUP BY 1, 2, 3 ORDER BY n DESC, 1, 2, 3 LIMIT 20

-- query fencing: how often static members were fenced or replaced, by API and state
SELECT api, stage, count(*) AS n, count(DISTINCT instance_id) AS members
FROM gold.fencing GROUP BY api, stage ORDER BY api, stage

-- query transactions: the transactions of each test or cluster by outcome and cause: their number, duration, and size
SELECT coalesce(test_id, cluster, trace_id) AS scope, outcome, cause, count(*) AS n,
       percentile_approx(total_ms, 0.5) AS p50, percentile_approx(total_ms, 0.95) AS p95,
       max(markers_ms) AS markers_ms, sum(n_partitions) AS partitions, sum(n_offsets) AS offsets
FROM gold.transaction GROUP BY 1, 2, 3 ORDER BY n DESC, 1, 2, 3 LIMIT 20

-- query logs: the joins in client logs, by kind of log and cause
SELECT source, cause, count(*) AS joins, count(generation) AS arrived,
       percentile_approx(total_ms, 0.5) AS p50, percentile_approx(total_ms, 0.95) AS p95
FROM gold.client_join GROUP BY source, cause ORDER BY source, cause

-- query rows_read: the disposition of all rows, by kind of input
SELECT source, count(DISTINCT source_file) AS files, sum(read) AS read, sum(event) AS event, sum(header) AS header,
       sum(test) AS test, sum(ignored) AS ignored, sum(duplicate) AS duplicate, sum(quarantined) AS quarantined
FROM bronze.counts GROUP BY source ORDER BY source

-- query quarantine: the reasons for quarantine, each with its first row
SELECT reason, n, source_file, line_no, detail
FROM (SELECT *, count(*) OVER (PARTITION BY reason) AS n,
             row_number() OVER (PARTITION BY reason ORDER BY source_file, line_no, detail) AS place
      FROM bronze.quarantine)
WHERE place = 1 ORDER BY n DESC, reason

-- query unread: the lines of logs that were not understood, by file, kind and text; those of other programs come last
WITH texts AS (
  SELECT source_file, kind, text, sum(n) AS n, min(example) AS example FROM bronze.unread GROUP BY 1, 2, 3)
SELECT *, (SELECT count(DISTINCT source_file) FROM texts) AS files, (SELECT sum(n) FROM texts) AS lines
FROM texts ORDER BY kind = 'foreign', n DESC, source_file, kind, text LIMIT 50
