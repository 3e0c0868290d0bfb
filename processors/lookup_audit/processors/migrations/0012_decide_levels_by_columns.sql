-- The candidate that decides a lookup's level, in narrow columns: a replay under other thresholds
-- reads these few numbers and not eight candidates a lookup. Rows stored before are worked out as
-- they are read, and for good when their part is next merged.
-- The kept candidate with the smallest rank, the first of equals; of several candidates, one
-- without a rank could be any (0).
ALTER TABLE audit_store.lookups
    ADD COLUMN IF NOT EXISTS kept_count UInt32 MATERIALIZED countEqual(candidates.kept, true),
    ADD COLUMN IF NOT EXISTS candidate_count UInt32 MATERIALIZED length(candidates.kept),
    ADD COLUMN IF NOT EXISTS best_place UInt32 MATERIALIZED multiIf(
        countEqual(candidates.kept, true) = 1, indexOf(candidates.kept, true),
        arrayExists((kept, rank) -> kept AND isNull(rank), candidates.kept, candidates.original_rank), 0,
        countEqual(candidates.kept, true) = 0, 0,
        indexOf(
            arrayMap((kept, rank) -> if(kept, rank, NULL), candidates.kept, candidates.original_rank),
            arrayMin(arrayFilter((rank, kept) -> kept, candidates.original_rank, candidates.kept))
        )
    ),
    ADD COLUMN IF NOT EXISTS best_distance Nullable(Float64)
        MATERIALIZED candidates.dense_distance[best_place],
    ADD COLUMN IF NOT EXISTS best_similarity Nullable(Float64)
        MATERIALIZED candidates.similarity_score[best_place],
    ADD COLUMN IF NOT EXISTS best_rank Nullable(UInt32)
        MATERIALIZED candidates.original_rank[best_place],
    ADD COLUMN IF NOT EXISTS best_l0_hit Bool MATERIALIZED candidates.l0_hit[best_place];
