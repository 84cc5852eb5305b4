-- The gold tables once more, for DuckDB: from the tables of silver, by what `pipeline/schema/` says of each column.
-- `event`, `call`, `member_span`, `round`, `arrival`, `move` and `trace` are there as views.

-- What several tables need ------------------------------------------------------------------------------------

-- the changes of state: how a group was from then on
CREATE TEMP VIEW mark AS
SELECT trace_id, group_id, seq, state_to AS state_at, generation AS group_generation, group_us
FROM event WHERE kind = 'state' AND group_id IS NOT NULL;

-- what the member ids of static members are called
CREATE TEMP TABLE label AS
SELECT trace_id, group_id, member_id, any_value(instance_id) AS label FROM member_span
WHERE instance_id IS NOT NULL GROUP BY ALL;

-- when each rebalance began, to find the one in which something happened
CREATE TEMP VIEW begun AS SELECT trace_id, group_id, rebalance_no, start_seq FROM round;

-- stays of members that no other member shares its client id with: Fetch names only that
CREATE TEMP VIEW alone AS
WITH stay AS (
    SELECT *, coalesce(left_seq, 4611686018427387904) AS until,
        coalesce(joined_seq < max(coalesce(left_seq, 4611686018427387904)) OVER (
            PARTITION BY trace_id, client_id ORDER BY joined_seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), false) AS is_met
    FROM member_span WHERE client_id IS NOT NULL
)
SELECT trace_id, client_id, group_id, member, joined_seq, until FROM stay
QUALIFY NOT bool_or(is_met) OVER (PARTITION BY trace_id, client_id);

CREATE TEMP TABLE brought AS
SELECT e.trace_id, a.group_id, a.member, e.seq, e.wall_us, e.group_us, e.body
FROM event e JOIN alone a USING (trace_id, client_id)
WHERE e.api = 'Fetch' AND e.kind = 'response' AND e.error IS NULL AND e.seq > a.joined_seq AND e.seq < a.until;

-- Tables that stand for themselves ----------------------------------------------------------------------------

CREATE TEMP TABLE state_time AS
WITH ended AS (
    SELECT trace_id, group_id, max_by(group_us, seq) AS end_us FROM event
    WHERE group_id IS NOT NULL AND group_us IS NOT NULL GROUP BY ALL
), spell AS (
    SELECT *, lead(group_us) OVER (PARTITION BY trace_id, group_id ORDER BY seq) AS until FROM mark
)
SELECT trace_id, group_id, state_at AS state, sum(coalesce(until, end_us) - group_us) / 1000 AS ms, count(*) AS visits
FROM spell JOIN ended USING (trace_id, group_id) GROUP BY ALL;

CREATE TEMP TABLE commit AS
SELECT c.trace_id, c.group_id, c.seq, c.wall_us AS at, c.member_id, coalesce(c.instance_id, label, c.member_id) AS member,
    c.client_id, c.principal, c.client_software, c.client_version, c.generation, m.group_generation,
    CASE WHEN c.generation >= 0 THEN m.group_generation - c.generation END AS gen_lag, m.state_at,
    c.error_code, c.error, len(c.offsets) AS n_partitions,
    coalesce(c.generation >= 0 AND m.group_generation > c.generation, false) AS is_zombie
FROM (SELECT * FROM call WHERE api = 'OffsetCommit') c
ASOF LEFT JOIN mark m ON c.trace_id = m.trace_id AND c.group_id = m.group_id AND c.seq >= m.seq
LEFT JOIN label ON c.trace_id = label.trace_id AND c.group_id = label.group_id AND c.member_id = label.member_id;

CREATE TEMP TABLE fencing AS
WITH found AS (
    SELECT * FROM event WHERE group_id IS NOT NULL AND (
        (kind = 'member' AND change = 'replaced') OR (kind = 'response' AND error = 'FENCED_INSTANCE_ID'))
)
SELECT f.trace_id, f.group_id, f.seq, f.wall_us AS at, f.instance_id, f.member_id AS old_member,
    last_value(nullif(regexp_extract(f.reason, 'was replaced by (\S+)', 1), '') IGNORE NULLS) OVER (
        PARTITION BY f.trace_id, f.group_id, f.instance_id ORDER BY f.seq) AS new_member,
    coalesce(f.api, 'JoinGroup') AS api, m.state_at AS stage
FROM found f
ASOF LEFT JOIN mark m ON f.trace_id = m.trace_id AND f.group_id = m.group_id AND f.seq >= m.seq;

CREATE TEMP TABLE heartbeat AS
WITH beat AS (
    SELECT trace_id, group_id, member_id, error,
        (group_us - lag(group_us) OVER (PARTITION BY trace_id, group_id, member_id ORDER BY seq)) / 1000 AS gap_ms
    FROM call WHERE api = 'Heartbeat' AND member_id IS NOT NULL
), stay AS (
    SELECT trace_id, group_id, member_id, any_value(member) AS name, max_by(session_timeout_ms, joined_seq) AS session_timeout_ms
    FROM member_span GROUP BY ALL), gaps AS (
    SELECT trace_id, group_id, member_id, count(*) AS n, count(*) FILTER (error <> 'NONE') AS n_refused,
        quantile_cont(gap_ms, 0.5) AS p50_gap_ms, quantile_cont(gap_ms, 0.99) AS p99_gap_ms, max(gap_ms) AS max_gap_ms
    FROM beat GROUP BY ALL
)
SELECT gaps.*, coalesce(name, member_id) AS member, session_timeout_ms,
    CASE WHEN session_timeout_ms > 0 THEN max_gap_ms / session_timeout_ms END AS max_ratio_to_session
FROM gaps LEFT JOIN stay USING (trace_id, group_id, member_id);

CREATE TEMP TABLE avoided AS
SELECT trace_id, group_id, seq, wall_us AS at, instance_id, generation FROM event WHERE kind = 'avoided_static';

-- Rebalances --------------------------------------------------------------------------------------------------

CREATE TEMP TABLE rebalance AS
WITH ranked AS (
    SELECT *, row_number() OVER (
        PARTITION BY trace_id, group_id, rebalance_no ORDER BY last_joined_seq DESC, last_joined_us DESC, member DESC
    ) AS nth FROM arrival
), came AS (
    SELECT trace_id, group_id, rebalance_no, max(protocol) AS protocol, bool_or(owns) AS somebody_owns,
        any_value(member) FILTER (nth = 1) AS newest, any_value(last_joined_us) FILTER (nth = 1) AS newest_us,
        any_value(last_joined_us) FILTER (nth = 2) AS before_us, bool_or(nth = 2) AS has_two
    FROM ranked GROUP BY ALL
), listed AS (
    SELECT trace_id, group_id, rebalance_no, unnest(coalesce(
        arg_min(members, joined_seq) FILTER (members IS NOT NULL), list(DISTINCT member_id))) AS member_id
    FROM arrival GROUP BY trace_id, group_id, rebalance_no
), roster AS (
    SELECT trace_id, group_id, rebalance_no, coalesce(label, member_id) AS member, bool_or(label IS NOT NULL) AS is_static
    FROM listed LEFT JOIN label USING (trace_id, group_id, member_id) GROUP BY ALL
), seen AS (
    SELECT *, lag(rebalance_no) OVER (PARTITION BY trace_id, group_id, member ORDER BY rebalance_no) AS seen_in FROM roster
), counted AS (
    SELECT trace_id, group_id, rebalance_no, count(*) AS n_members, count(*) FILTER (is_static) AS n_static,
        list(seen_in) FILTER (seen_in IS NOT NULL) AS seen_in
    FROM seen GROUP BY ALL
), moves AS (
    SELECT *, coalesce(new_member IS NOT NULL AND is_life AND old_member IS NOT NULL, false) AS is_owned FROM move
), sizes AS (
    SELECT trace_id, group_id, rebalance_no, count(new_member) AS partitions_total,
        count(*) FILTER (is_owned AND old_member <> new_member) AS partitions_moved, count(*) FILTER (is_owned) AS owned,
        coalesce(list(DISTINCT old_member) FILTER (new_member IS NULL AND old_member IS NOT NULL), []) AS losers
    FROM moves GROUP BY ALL
), kept AS (
    SELECT r.trace_id, r.group_id, r.rebalance_no, k.n, s.partitions_total // count(*) OVER w AS fair,
        s.partitions_total % count(*) OVER w AS rest
    FROM roster r
    JOIN sizes s ON s.trace_id = r.trace_id AND s.group_id = r.group_id AND s.rebalance_no = r.rebalance_no
    LEFT JOIN (SELECT trace_id, group_id, rebalance_no, old_member, count(*) AS n FROM moves WHERE is_owned GROUP BY ALL) k
        ON k.trace_id = r.trace_id AND k.group_id = r.group_id AND k.rebalance_no = r.rebalance_no AND k.old_member = r.member
    WINDOW w AS (PARTITION BY r.trace_id, r.group_id, r.rebalance_no)
), keepable AS (
    SELECT trace_id, group_id, rebalance_no,
        coalesce(sum(least(n, fair)) FILTER (n IS NOT NULL), 0) + least(count(*) FILTER (n > fair), any_value(rest)) AS most
    FROM kept GROUP BY ALL
), looked AS (
    SELECT f.trace_id, f.group_id, b.rebalance_no, min({'seq': f.seq, 'wall_us': f.wall_us, 'group_us': f.group_us}) AS first_fetch
    FROM (
        SELECT trace_id, group_id, seq, wall_us, group_us FROM call WHERE api = 'OffsetFetch'
        UNION ALL SELECT trace_id, group_id, seq, wall_us, group_us FROM brought
    ) f
    ASOF JOIN begun b ON f.trace_id = b.trace_id AND f.group_id = b.group_id AND f.seq >= b.start_seq
    JOIN round r ON r.trace_id = b.trace_id AND r.group_id = b.group_id AND r.rebalance_no = b.rebalance_no
    WHERE r.outcome = 'completed' AND f.seq > r.end_seq GROUP BY ALL
), joined AS (
    SELECT *, CASE WHEN outcome = 'emptied' THEN 0 ELSE coalesce(n_members, told_members) END AS members_after
    FROM round
    LEFT JOIN came USING (trace_id, group_id, rebalance_no)
    LEFT JOIN counted USING (trace_id, group_id, rebalance_no)
    LEFT JOIN sizes USING (trace_id, group_id, rebalance_no)
    LEFT JOIN keepable USING (trace_id, group_id, rebalance_no)
    LEFT JOIN looked USING (trace_id, group_id, rebalance_no)
), beside AS (
    SELECT *,
        CASE WHEN protocol IS NULL THEN NULL
            WHEN contains(lower(protocol), 'cooperative') OR lower(protocol) IN ('compatible', 'sessioned', 'stream')
                OR somebody_owns THEN 'cooperative' ELSE 'eager' END AS mode,
        last_value(CASE WHEN members_after IS NOT NULL
                THEN {'no': rebalance_no, 'members': members_after, 'known': n_members} END IGNORE NULLS) OVER (
            PARTITION BY trace_id, group_id ORDER BY rebalance_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS base,
        lag(losers) OVER in_order AS losers_before,
        CASE WHEN coalesce(client_reason, '') = '' THEN NULL
            WHEN regexp_matches(client_reason, '(?i)poll timeout has expired|max\.?poll\.?interval') THEN 'poll_timeout'
            WHEN regexp_matches(client_reason, '(?i)revoke partitions and re-?join') THEN 'revoke_and_rejoin'
            WHEN regexp_matches(client_reason, '(?i)member.?id.?required|with the given member.?id') THEN 'member_id_required'
            WHEN regexp_matches(client_reason, '(?i)already rebalancing|rebalance in progress') THEN 'already_rebalancing'
            WHEN regexp_matches(client_reason, '(?i)rebalance failed due to|encountered .* from .* response') THEN 'failed'
            WHEN regexp_matches(client_reason, '(?i)metadata .*chang') THEN 'metadata_changed'
            WHEN regexp_matches(client_reason, '(?i)subscription .*chang') THEN 'subscription_changed'
            WHEN regexp_matches(client_reason, '(?i)unsubscribe') THEN 'unsubscribed'
            WHEN regexp_matches(client_reason, '(?i)enforce') THEN 'enforced'
            WHEN regexp_matches(client_reason, '(?i)clos|shut') THEN 'closed'
            ELSE 'other' END AS sub_cause,
        sum(CASE WHEN start_us - lag_end_us <= 1000000 THEN 0 ELSE 1 END) OVER in_order AS storm_no
    FROM (SELECT *, lag(end_us) OVER (PARTITION BY trace_id, group_id ORDER BY rebalance_no) AS lag_end_us FROM joined)
    WINDOW in_order AS (PARTITION BY trace_id, group_id ORDER BY rebalance_no)
), facts AS (
    SELECT *,
        lag(mode) OVER (PARTITION BY trace_id, group_id ORDER BY rebalance_no) AS mode_before,
        count(*) OVER storm AS n_storm, min(rebalance_no) OVER storm AS storm_first,
        coalesce(base.members, CASE WHEN gen_before = 0 THEN 0 END) AS members_before,
        least(owned - most, partitions_moved) AS moves_minimum,
        (over_us - start_us) / 1000 AS join_ms,
        coalesce(len(list_filter(seen_in, lambda no: no = base.no)), 0) AS stayed,
        CASE WHEN join_seq IS NOT NULL THEN coalesce(n_static, told_static) END AS statics,
        CASE WHEN gen_after IS NULL THEN NULL WHEN late_member IS NOT NULL THEN (over_us - newest_us) / 1000
            WHEN has_two THEN (newest_us - before_us) / 1000 END AS straggler_wait_ms,
        coalesce(first_fetch.group_us, end_us + first_fetch.wall_us - end_wall_us) AS t_first_fetch_us
    FROM beside WINDOW storm AS (PARTITION BY trace_id, group_id, storm_no)
), members AS (
    SELECT *, CASE WHEN outcome = 'emptied' THEN 0
        WHEN base.known IS NOT NULL OR members_before = 0 THEN n_members - stayed END AS n_joined
    FROM facts
)
SELECT trace_id, group_id, rebalance_no, type, start_seq, join_seq, end_seq, start_wall_us AS started_at, gen_before, gen_after,
    cause, sub_cause, reason, client_reason, trigger_member, start_us AS t_start_us, over_us AS t_join_done_us,
    CASE WHEN outcome = 'completed' THEN end_us END AS t_sync_done_us, t_first_fetch_us, join_ms,
    CASE WHEN join_seq IS NOT NULL AND outcome = 'completed' THEN (end_us - over_us) / 1000 END AS sync_ms,
    (end_us - start_us) / 1000 AS total_ms, (t_first_fetch_us - start_us) / 1000 AS resume_ms, members_before, members_after,
    n_joined, members_before - members_after + n_joined AS n_left, statics AS n_static,
    CASE WHEN statics = 0 AND members_after > 0 THEN 'dynamic' WHEN statics = members_after THEN 'static'
        WHEN statics > 0 THEN 'mixed' END AS membership,
    protocol, mode,
    CASE WHEN gen_after IS NOT NULL THEN coalesce(late_member, CASE WHEN has_two THEN newest END) END AS straggler_member,
    straggler_wait_ms, CASE WHEN join_ms > 0 THEN straggler_wait_ms / join_ms END AS straggler_share,
    coalesce(n_timed_out, 0) AS n_timed_out, partitions_total, partitions_moved, moves_minimum,
    CASE WHEN partitions_moved = 0 THEN 1 ELSE moves_minimum / partitions_moved END AS stickiness,
    coalesce(sub_cause = 'revoke_and_rejoin', false) OR coalesce(
        mode_before = 'cooperative' AND cause IN ('member_rejoin', 'leader_rejoin', 'metadata_change')
        AND list_contains(losers_before, trigger_member), false) AS followup,
    CASE WHEN n_storm > 1 THEN concat_ws('/', trace_id, group_id, storm_first) END AS storm_id, outcome
FROM members;

-- What rebalances did to members and partitions ------------------------------------------------------------------

CREATE TEMP TABLE member_downtime AS
WITH side AS (
    SELECT trace_id, group_id, rebalance_no, new_member AS member, had AND old_member IS NOT DISTINCT FROM new_member AS kept,
        false AS lost
    FROM move WHERE new_member IS NOT NULL
    UNION ALL
    SELECT trace_id, group_id, rebalance_no, old_member, false, true FROM move
    WHERE had AND old_member IS DISTINCT FROM new_member
), held AS (
    SELECT trace_id, group_id, rebalance_no, member, count(*) FILTER (kept) AS kept_n, count(*) FILTER (lost) AS revoked_n,
        count(*) FILTER (NOT kept AND NOT lost) AS assigned_n
    FROM side GROUP BY ALL
), committed AS (
    SELECT DISTINCT a.trace_id, a.group_id, a.rebalance_no, a.member_id
    FROM (SELECT * FROM call WHERE api = 'OffsetCommit' AND error = 'NONE') c
    ASOF JOIN begun b ON c.trace_id = b.trace_id AND c.group_id = b.group_id AND c.seq >= b.start_seq
    JOIN arrival a ON a.trace_id = b.trace_id AND a.group_id = b.group_id AND a.rebalance_no = b.rebalance_no
        AND a.member_id = c.member_id
    WHERE c.seq < a.joined_seq
)
SELECT a.trace_id, a.group_id, a.rebalance_no, a.member_id, a.member,
    CASE WHEN a.instance_id IS NULL THEN 'dynamic' ELSE 'static' END AS membership, r.mode,
    a.client_id, a.principal, a.client_software, a.client_version,
    CASE WHEN r.mode = 'cooperative' AND r.outcome = 'completed' AND coalesce(h.revoked_n, 0) = 0 THEN 0
        ELSE (a.synced_us - a.joined_us) / 1000 END AS stopped_ms,
    (a.synced_us - a.joined_us) / 1000 AS waited_ms,
    CASE WHEN r.outcome = 'completed' THEN coalesce(h.revoked_n, 0) END AS revoked_n,
    CASE WHEN r.outcome = 'completed' THEN coalesce(h.assigned_n, 0) END AS assigned_n,
    CASE WHEN r.outcome = 'completed' THEN coalesce(h.kept_n, 0) END AS kept_n,
    CASE WHEN r.outcome = 'completed' AND h.revoked_n > 0 AND a.joined_seq > r.start_seq
        THEN c.member_id IS NOT NULL END AS commit_before_revoke
FROM arrival a
JOIN rebalance r USING (trace_id, group_id, rebalance_no)
LEFT JOIN held h ON h.trace_id = a.trace_id AND h.group_id = a.group_id AND h.rebalance_no = a.rebalance_no
    AND h.member = a.member
LEFT JOIN committed c ON c.trace_id = a.trace_id AND c.group_id = a.group_id AND c.rebalance_no = a.rebalance_no
    AND c.member_id = a.member_id;

CREATE TEMP TABLE partition_gap AS
WITH changed AS (
    SELECT m.*, r.mode, r.end_seq FROM move m JOIN rebalance r USING (trace_id, group_id, rebalance_no)
    WHERE m.old_member IS DISTINCT FROM m.new_member OR m.old_member IS NULL
), timed AS (
    SELECT trace_id, group_id, rebalance_no, member, min(first_us) AS first_us, min(joined_us) AS joined_us,
        min(synced_us) AS synced_us
    FROM (
        SELECT a.*, first_value(joined_us) OVER (
            PARTITION BY a.trace_id, a.group_id, chain, member ORDER BY joined_seq) AS first_us
        FROM arrival a JOIN round USING (trace_id, group_id, rebalance_no)
    ) GROUP BY ALL
), gone AS (
    SELECT trace_id, group_id, member, left_seq, left_us FROM member_span WHERE left_seq IS NOT NULL
), committed AS (
    SELECT trace_id, group_id, seq, member, o.topic, o.partition, o.offset AS last_committed
    FROM (
        SELECT c.trace_id, c.group_id, c.seq, coalesce(c.instance_id, label, c.member_id) AS member, unnest(c.offsets) AS o
        FROM call c LEFT JOIN label USING (trace_id, group_id, member_id) WHERE api = 'OffsetCommit' AND error = 'NONE'
    )
), fetched AS (
    SELECT trace_id, group_id, seq, member, row ->> 0 AS topic, (row ->> 1)::INT AS partition, (row ->> 3)::BIGINT AS last_fetched
    FROM (SELECT *, unnest(json_extract(body, '$.fetched[*]')) AS row FROM brought)
)
SELECT c.trace_id, c.group_id, c.rebalance_no, c.topic, c.partition, c.old_member, c.new_member,
    (new.synced_us - coalesce(CASE WHEN c.mode = 'eager' THEN old.first_us ELSE old.joined_us END, gone.left_us)) / 1000 AS gap_ms,
    k.last_committed, f.last_fetched,
    CASE WHEN f.last_fetched < k.last_committed THEN 0 ELSE f.last_fetched - k.last_committed END AS redelivered_records
FROM changed c
LEFT JOIN timed old ON old.trace_id = c.trace_id AND old.group_id = c.group_id AND old.rebalance_no = c.rebalance_no
    AND old.member = c.old_member
LEFT JOIN timed new ON new.trace_id = c.trace_id AND new.group_id = c.group_id AND new.rebalance_no = c.rebalance_no
    AND new.member = c.new_member
ASOF LEFT JOIN gone ON gone.trace_id = c.trace_id AND gone.group_id = c.group_id AND gone.member = c.old_member
    AND c.end_seq >= gone.left_seq
ASOF LEFT JOIN committed k ON k.trace_id = c.trace_id AND k.group_id = c.group_id AND k.member = c.old_member
    AND k.topic = c.topic AND k.partition = c.partition AND c.end_seq >= k.seq
ASOF LEFT JOIN fetched f ON f.trace_id = c.trace_id AND f.group_id = c.group_id AND f.member = c.old_member
    AND f.topic = c.topic AND f.partition = c.partition AND c.end_seq >= f.seq;

-- Transactions ------------------------------------------------------------------------------------------------

CREATE TEMP TABLE transaction_change AS
WITH change AS (
    SELECT trace_id, seq, wall_us, client_id, cause, body, state_to, body ->> 'transactional_id' AS transactional_id,
        state_to LIKE 'Complete%' AS ends, state_to LIKE 'Prepare%' AS decides
    FROM event WHERE kind = 'transaction' AND state_to NOT IN ('Empty', 'Dead')
), begun AS (
    SELECT *, state_to = 'Ongoing' AND coalesce(lag(ends) OVER (
        PARTITION BY trace_id, transactional_id ORDER BY seq), true) AS begins
    FROM change
), numbered AS (
    SELECT *, sum(begins::INT) OVER (PARTITION BY trace_id, transactional_id ORDER BY seq) AS no FROM begun
)
SELECT * FROM numbered WHERE no > 0
QUALIFY seq <= coalesce(min(seq) FILTER (WHERE ends) OVER (PARTITION BY trace_id, transactional_id, no), seq);

CREATE TEMP TABLE transaction AS
WITH whole AS (
    SELECT trace_id, transactional_id, no, min(seq) AS start_seq, max(seq) FILTER (WHERE ends) AS end_seq,
        arg_min(wall_us, seq) AS t_start_us, arg_min(body, seq) AS first_body, arg_min(client_id, seq) AS client_id,
        arg_max(body, seq) FILTER (WHERE NOT ends) AS last_body,
        max(wall_us) FILTER (WHERE decides) AS decided_us, max(wall_us) FILTER (WHERE ends) AS ended_us,
        arg_max(cause, seq) FILTER (WHERE decides) AS cause, arg_max(state_to, seq) AS state
    FROM transaction_change GROUP BY ALL
), topic AS (
    SELECT trace_id, transactional_id, no, row ->> 0 AS topic, list((row ->> 1)::INT ORDER BY (row ->> 1)::INT) AS numbers
    FROM (SELECT *, unnest(json_extract(last_body, '$.partitions[*]')) AS row FROM whole)
    WHERE NOT starts_with(row ->> 0, '__') GROUP BY ALL
), written AS (
    SELECT trace_id, transactional_id, no, list({'key': topic, 'value': numbers} ORDER BY topic) AS partitions,
        sum(len(numbers)) AS n_partitions
    FROM topic GROUP BY ALL
), asked AS (
    SELECT a.trace_id, a.seq, q.body ->> 'transactional_id' AS transactional_id, q.group_id,
        coalesce(json_extract(a.body, '$.refused[*]'), []) AS refused, unnest(json_extract(q.body, '$.offsets[*]')) AS row
    FROM event a JOIN event q USING (trace_id, node, conn_id, correlation_id, api)
    WHERE a.api = 'TxnOffsetCommit' AND a.kind = 'response' AND q.kind = 'request'
), accepted AS (
    SELECT trace_id, seq, transactional_id, group_id, row ->> 0 AS topic, row ->> 1 AS partition FROM asked
    WHERE NOT list_contains([(each ->> 0, each ->> 1) FOR each IN refused], (row ->> 0, row ->> 1))
), committed AS (
    SELECT w.trace_id, w.transactional_id, w.no, list_sort(list(DISTINCT a.group_id)) AS groups,
        count(DISTINCT (a.group_id, topic, partition)) AS n_offsets
    FROM whole w JOIN accepted a ON a.trace_id = w.trace_id AND a.transactional_id = w.transactional_id
        AND a.seq > w.start_seq AND a.seq < coalesce(w.end_seq, 4611686018427387904)
    GROUP BY ALL
)
SELECT trace_id, transactional_id, start_seq, end_seq, t_start_us AS started_at, t_start_us,
    (first_body ->> 'producer_id')::BIGINT AS producer_id, (first_body ->> 'producer_epoch')::INT AS producer_epoch,
    client_id, coalesce(partitions, []) AS partitions, coalesce(n_partitions, 0) AS n_partitions,
    coalesce(groups, []) AS groups, coalesce(n_offsets, 0) AS n_offsets,
    (decided_us - t_start_us) / 1000 AS decided_ms, (ended_us - coalesce(decided_us, t_start_us)) / 1000 AS markers_ms,
    (ended_us - t_start_us) / 1000 AS total_ms,
    CASE state WHEN 'Ongoing' THEN 'open' WHEN 'PrepareCommit' THEN 'committing' WHEN 'PrepareAbort' THEN 'aborting'
        WHEN 'CompleteCommit' THEN 'committed' ELSE 'aborted' END AS outcome,
    cause
FROM whole LEFT JOIN written USING (trace_id, transactional_id, no)
LEFT JOIN committed USING (trace_id, transactional_id, no);

-- Share groups and streams groups --------------------------------------------------------------------------------
-- record by record: what happens to an offset, in order; neighbours with the same fate are one row again

CREATE TEMP TABLE share_call AS
SELECT q.trace_id, q.group_id, q.member_id, q.seq AS asked_seq, q.group_us AS asked_us, q.body AS asked,
    a.seq, a.group_us, a.error, a.body
FROM event q LEFT JOIN event a ON a.trace_id = q.trace_id AND a.node IS NOT DISTINCT FROM q.node AND a.conn_id = q.conn_id
    AND a.correlation_id = q.correlation_id AND a.kind = 'response' AND a.seq > q.seq
WHERE q.api IN ('ShareFetch', 'ShareAcknowledge') AND q.kind = 'request' AND q.group_id IS NOT NULL;

CREATE TEMP TABLE share_acquired AS
WITH row AS (
    SELECT trace_id, group_id, member_id, seq, group_us, unnest(json_extract(body, '$.acquired[*]')) AS row FROM share_call
)
SELECT trace_id, group_id, row ->> 0 AS topic, (row ->> 1)::INT AS partition, member_id, seq AS acquired_seq,
    group_us AS t_acquired_us, (row ->> 4)::INT AS delivery_count,
    unnest(range((row ->> 2)::BIGINT, (row ->> 3)::BIGINT + 1)) AS record
FROM row;

CREATE TEMP TABLE share_end AS
WITH asked AS (
    SELECT *, unnest(json_extract(asked, '$.acknowledged[*]')) AS row FROM share_call
    WHERE seq IS NOT NULL AND (error IS NULL OR len(json_extract(body, '$.refused[*]')) > 0)
), accepted AS (
    SELECT trace_id, group_id, member_id, asked_seq, asked_us, row ->> 0 AS topic, (row ->> 1)::INT AS partition,
        (row ->> 2)::BIGINT AS first, (row ->> 3)::BIGINT AS last, json_extract(row, '$[4]') AS words
    FROM asked
    WHERE NOT list_contains([(each ->> 0, each ->> 1) FOR each IN coalesce(json_extract(body, '$.refused[*]'), [])],
        (row ->> 0, row ->> 1))
), spread AS (
    SELECT *, unnest(range(first, last + 1)) AS record FROM accepted
), ended AS (
    SELECT trace_id, group_id, member_id AS holder, cause, seq, group_us, unnest(json_extract(body, '$.ended[*]')) AS row
    FROM event WHERE kind = 'locks'
)
SELECT trace_id, group_id, topic, partition, record, member_id AS holder, asked_seq AS seq, asked_us AS group_us,
    words ->> (CASE WHEN json_array_length(words) > 1 THEN record - first ELSE 0 END)::INT AS word,
    word = 'reject' AS archived
FROM spread
UNION ALL
SELECT trace_id, group_id, row ->> 0, (row ->> 1)::INT, unnest(range((row ->> 2)::BIGINT, (row ->> 3)::BIGINT + 1)), holder,
    seq, group_us, CASE cause WHEN 'lock_expired' THEN 'expired' ELSE cause END, row ->> 5 = 'archived'
FROM ended;

CREATE TEMP TABLE delivery AS
WITH held AS (
    SELECT *, lead(acquired_seq) OVER (PARTITION BY trace_id, group_id, topic, partition, record ORDER BY acquired_seq) AS next
    FROM share_acquired
), found AS (
    SELECT h.trace_id, h.group_id, h.topic, h.partition, h.member_id, h.acquired_seq, h.record,
        any_value(delivery_count) AS delivery_count,
        any_value(t_acquired_us) AS t_acquired_us, any_value(next) AS next,
        count(*) FILTER (WHERE word = 'renew') AS renewals,
        min(e.seq) FILTER (WHERE word <> 'renew') AS ended_seq,
        arg_min(e.group_us, e.seq) FILTER (WHERE word <> 'renew') AS ended_us,
        arg_min(word, e.seq) FILTER (WHERE word <> 'renew') AS word,
        coalesce(arg_min(archived, e.seq) FILTER (WHERE word <> 'renew'), false) AS archived
    FROM held h LEFT JOIN share_end e ON e.trace_id = h.trace_id AND e.group_id = h.group_id AND e.topic = h.topic
        AND e.partition = h.partition AND e.record = h.record AND e.holder = h.member_id
        AND e.seq > h.acquired_seq AND e.seq < coalesce(h.next, 4611686018427387904)
    GROUP BY ALL
), named AS (
    SELECT *, CASE word WHEN 'accept' THEN 'accepted' WHEN 'release' THEN 'released' WHEN 'reject' THEN 'rejected'
        ELSE coalesce(word, CASE WHEN next IS NULL THEN 'open' ELSE 'unknown' END) END AS outcome
    FROM found
), numbered AS (
    SELECT *, record - row_number() OVER (PARTITION BY trace_id, group_id, topic, partition, acquired_seq,
        delivery_count, ended_seq, outcome, renewals, archived ORDER BY record) AS island
    FROM named
)
SELECT n.trace_id, n.group_id, topic, partition, min(record) AS first_offset, max(record) AS last_offset,
    count(*) AS n_records, delivery_count, n.member_id, coalesce(label, n.member_id) AS member, acquired_seq, ended_seq,
    t_acquired_us, (ended_us - t_acquired_us) / 1000 AS held_ms, renewals, outcome, archived
FROM numbered n LEFT JOIN label l ON l.trace_id = n.trace_id AND l.group_id = n.group_id AND l.member_id = n.member_id
GROUP BY n.trace_id, n.group_id, topic, partition, delivery_count, n.member_id, label, acquired_seq, ended_seq,
    t_acquired_us, ended_us, renewals, outcome, archived, island;

CREATE TEMP TABLE dead_letter AS
SELECT trace_id, group_id, seq, wall_us AS at, row ->> 0 AS topic, (row ->> 1)::INT AS partition,
    (row ->> 2)::BIGINT AS first_offset, (row ->> 3)::BIGINT AS last_offset,
    (row ->> 3)::BIGINT - (row ->> 2)::BIGINT + 1 AS n_records, (row ->> 4)::INT AS delivery_count, cause,
    body ->> 'written_to' AS written_to, body ->> 'problem' AS problem
FROM (SELECT *, json_extract(body, '$.dead') AS row FROM event WHERE kind = 'dead_letters');

-- the heartbeats that assign tasks, and the ends of memberships, which leave none
CREATE TEMP TABLE task AS
WITH told AS (
    SELECT trace_id, group_id, member_id, seq, group_us, json_extract(body, '$.tasks') AS tasks FROM event
    WHERE api = 'StreamsGroupHeartbeat' AND kind = 'response' AND json_extract(body, '$.tasks') IS NOT NULL
), ended AS (
    SELECT trace_id, group_id, member_id, seq, group_us, NULL AS tasks FROM event
    WHERE kind = 'member' AND change IN ('removed', 'replaced')
    UNION ALL
    SELECT e.trace_id, e.group_id, m.member_id, e.seq, e.group_us, NULL FROM event e
    JOIN (SELECT DISTINCT trace_id, group_id, member_id FROM told) m USING (trace_id, group_id)
    WHERE e.kind = 'state' AND e.state_to IN ('Empty', 'Dead')
), step AS (
    SELECT *, row_number() OVER (PARTITION BY trace_id, group_id, member_id ORDER BY seq) AS no
    FROM (FROM told UNION ALL FROM ended)
), kind AS (
    SELECT *, unnest(json_keys(tasks)) AS type FROM step
), subtopology AS (
    SELECT *, unnest(json_keys(json_extract(tasks, '$."' || type || '"'))) AS subtopology FROM kind
), given AS (
    SELECT trace_id, group_id, member_id, no, seq, group_us, type, subtopology,
        unnest(from_json(json_extract(tasks, '$."' || type || '"."' || subtopology || '"'), '["INT"]')) AS partition
    FROM subtopology
), stay AS (
    SELECT *, no - row_number() OVER (PARTITION BY trace_id, group_id, member_id, type, subtopology, partition ORDER BY no)
        AS island
    FROM given
), whole AS (
    SELECT trace_id, group_id, member_id, type, subtopology, partition, min(seq) AS given_seq, max(no) AS last_no,
        arg_min(group_us, seq) AS t_given_us
    FROM stay GROUP BY trace_id, group_id, member_id, type, subtopology, partition, island
)
SELECT w.trace_id, w.group_id, w.member_id, coalesce(label, w.member_id) AS member, type, subtopology, partition, given_seq,
    s.seq AS ended_seq, t_given_us, (s.group_us - t_given_us) / 1000 AS kept_ms
FROM whole w LEFT JOIN step s ON s.trace_id = w.trace_id AND s.group_id = w.group_id AND s.member_id = w.member_id
    AND s.no = last_no + 1
LEFT JOIN label l ON l.trace_id = w.trace_id AND l.group_id = w.group_id AND l.member_id = w.member_id;
