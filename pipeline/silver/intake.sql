-- The queries of `intake`. {rows} are the rows of a load, {known} the events of earlier loads. In brackets are lists of
-- columns: those of rows, all or all but `part`, `reject_reason` and `detail`; and those of tables.

-- query versions: traces whose header has an unknown schema version
SELECT trace_id, min(detail) AS version FROM {rows} WHERE reject_reason = 'unknown_version' GROUP BY trace_id

-- query known_versions: the rows, with the events of such traces in quarantine
SELECT [others], CASE WHEN is_unknown THEN 'quarantine' ELSE part END AS part,
       CASE WHEN is_unknown THEN 'unknown_version' ELSE reject_reason END AS reject_reason,
       CASE WHEN is_unknown THEN version ELSE detail END AS detail
FROM (SELECT *, coalesce(part = 'event' AND version IS NOT NULL, false) AS is_unknown
      FROM {rows} LEFT JOIN {versions} USING (trace_id))

-- query survey: the rows of each file by trace and part, and of events the numbers; `mixed` changes if one is repeated
SELECT source_file, trace_id, part, max(source) AS source, count(*) AS n_rows, count_if(first) AS n_first,
       sum(n) AS n, sum(ignored) AS ignored, min(seq) AS first_seq, max(seq) AS last_seq,
       bit_xor(xxhash64(seq)) AS mixed
FROM {rows} WHERE part != 'unread' GROUP BY source_file, trace_id, part

-- query known_numbers: the same numbers of known events that new ones, with these numbers, may repeat
SELECT trace_id, count(*) AS n_rows, min(seq) AS first_seq, max(seq) AS last_seq, bit_xor(xxhash64(seq)) AS mixed
FROM {known} JOIN (SELECT trace_id, min(first_seq) AS from_seq FROM {numbers} GROUP BY trace_id) USING (trace_id)
WHERE seq >= from_seq GROUP BY trace_id

-- query keys: the keys of new events, and of known ones that may repeat them
SELECT trace_id, seq FROM {rows} WHERE part = 'event'
UNION ALL
SELECT trace_id, seq
FROM {known} JOIN (SELECT trace_id, min(seq) AS first_seq FROM {rows} WHERE part = 'event' GROUP BY trace_id)
     USING (trace_id)
WHERE seq >= first_seq

-- query repeated: the keys that occur several times
SELECT trace_id, seq, true AS is_repeated FROM {keys} GROUP BY trace_id, seq HAVING count(*) > 1

-- query judged: the rows with repeated keys, of which one is an event; others equal it, or are in conflict with it
-- `dropped` only replaces events that the emulator lost; another file may have them.
WITH candidates AS (
  SELECT [columns], false AS is_old, [digest] AS digest
  FROM {rows} JOIN {repeated} USING (trace_id, seq) WHERE part = 'event'
  UNION ALL
  SELECT [known as columns], true AS is_old, [digest] AS digest FROM {known} JOIN {repeated} USING (trace_id, seq)),
placed AS (
  SELECT *, row_number() OVER first_wins AS place, first_value(digest) OVER first_wins AS first_digest
  FROM candidates
  WINDOW first_wins AS (PARTITION BY trace_id, seq
                        ORDER BY is_old DESC, kind = 'dropped', source_file, block_start, row_id)),
named AS (
  SELECT *, CASE WHEN place = 1 THEN 'event' WHEN digest = first_digest OR kind = 'dropped' THEN 'duplicate'
                 ELSE 'quarantine' END AS judgement
  FROM placed WHERE NOT is_old)
SELECT [others], judgement AS part,
       CASE WHEN judgement = 'quarantine' THEN 'conflict' END AS reject_reason,
       CASE WHEN judgement = 'quarantine'
            THEN concat('seq ', CAST(seq AS string), ' of trace ', trace_id, ' differs from the event loaded before')
       END AS detail
FROM named
UNION ALL
SELECT [others], part, reject_reason, detail
FROM {rows} LEFT JOIN {repeated} USING (trace_id, seq) WHERE is_repeated IS NULL OR part != 'event'

-- query event: the events; requests and responses are the majority, and have files of their own
SELECT [event] FROM {rows} WHERE part = 'event' AND kind IN ('request', 'response')
UNION ALL
SELECT [event] FROM {rows} WHERE part = 'event' AND kind NOT IN ('request', 'response')

-- query header: the headers of traces, and of logs the times of the first and the last line in known layouts
SELECT [header] FROM {rows} WHERE part = 'header'
UNION ALL
SELECT [header] FROM (SELECT *, bool_or(is_known) OVER (PARTITION BY trace_id, layout) AS is_own
                      FROM {rows} WHERE part = 'watched')
WHERE is_own

-- query outcome
SELECT [outcome] FROM {rows} WHERE part = 'test'

-- query quarantine: the rejected rows with their line numbers; rows are counted per part of a file
WITH parts AS (
  SELECT source_file, block_start, min(row_id) AS first_id, sum(n) AS lines
  FROM {rows} WHERE part = 'read' GROUP BY 1, 2),
numbered AS (
  SELECT source_file, block_start, first_id,
         coalesce(sum(lines) OVER (PARTITION BY source_file ORDER BY block_start
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS earlier
  FROM parts)
SELECT raw, reject_reason, detail, source_file, ingest_id,
       row_id + 1 - CASE WHEN [is_numbered] THEN 0 ELSE first_id - earlier END AS line_no, [event]
FROM {rows} LEFT JOIN numbered USING (source_file, block_start) WHERE part = 'quarantine'

-- query unread
SELECT source_file, ingest_id, unread AS kind, text, n, example FROM {rows} WHERE part = 'unread'

-- query table_metadata: the headers and outcomes of a table with the columns of silver/event
SELECT source_file, ingest_id, coalesce(trace_id, md5(regexp_replace(source_file, '[rotated]', ''))) AS trace_id, body
FROM {rows} WHERE kind IN ('header', 'test')

-- query table_events: the other rows of such a table
WITH events AS (
  SELECT *, coalesce(source, 'koordinator') AS its_source,
         coalesce(trace_id, md5(regexp_replace(source_file, '[rotated]', ''))) AS its_trace_id,
         CASE WHEN kind IS NULL OR seq IS NULL OR wall_us IS NULL
              THEN concat_ws(', ', CASE WHEN kind IS NULL THEN 'kind' END, CASE WHEN seq IS NULL THEN 'seq' END,
                             CASE WHEN wall_us IS NULL THEN 'wall_ts' END) END AS missing
  FROM {rows} WHERE coalesce(kind, '') NOT IN ('header', 'test')),
judged AS (
  SELECT *, CASE WHEN missing IS NOT NULL THEN 'missing_key' WHEN kind NOT IN ([kinds]) THEN 'unknown_kind'
                 WHEN kind IN ('request', 'response') AND NOT coalesce(api_key BETWEEN 0 AND [api_key_max], false)
                 THEN 'unknown_api' END AS reject_reason
  FROM events)
SELECT source_file, ingest_id, its_source AS source, its_trace_id AS trace_id, [own event columns], reject_reason,
       true AS first, CASE WHEN reject_reason IS NULL THEN 'event' ELSE 'quarantine' END AS part,
       CASE reject_reason WHEN 'missing_key' THEN concat(missing, ' missing') WHEN 'unknown_kind' THEN concat('kind ', kind)
                          WHEN 'unknown_api' THEN concat('api_key ', coalesce(CAST(api_key AS string), 'none')) END
       AS detail
FROM judged

-- query table_lines: the number of rows of each file
SELECT source_file, 'read' AS part, 'koordinator' AS source, count(*) AS n, 0 AS ignored
FROM {rows} GROUP BY source_file
