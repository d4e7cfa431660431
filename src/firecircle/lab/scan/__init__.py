"""Screening a corpus that is too large for a run: the embedded circle on every row, shard by shard.

Data flows one way: files → shards → rows in Parquet, a file a shard → a summary and the loudest rows.
A shard that is on disk is never judged again; everything else can be made anew.
"""
