"""Work on a backlog of records: share groups, which work on records in parallel, against partitions with one owner."""
