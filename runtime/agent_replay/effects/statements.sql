-- The statements of the effect store, by name. A block begins with "-- name: <name>".

-- name: begin
begin immediate

-- name: commit
commit

-- name: rollback
rollback

-- An effect is what the tool did to the world. Nothing keeps a key from having two: whether it has is
-- what is counted here.

-- name: create_effects
create table effects (
  number  integer primary key, -- in the order in which they happened
  key     text not null,
  kind    text not null,
  content text not null        -- canonical JSON
)

-- A receipt is what the tool knows of a key: which effect it had first, and how often it was asked.

-- name: create_receipts
create table receipts (
  key      text primary key not null,
  effect   integer not null unique references effects (number),
  arrivals integer not null
)

-- name: mark_as_ours
pragma application_id = 1164328530

-- name: mark
pragma application_id

-- name: objects
select count(*) from sqlite_master

-- name: use_rollback_journal
pragma journal_mode = delete

-- name: sync_folder_too
pragma synchronous = extra

-- name: synchronous
pragma synchronous

-- name: sync_drive_cache
pragma fullfsync = on

-- name: add_effect
insert into effects (key, kind, content) values (?, ?, ?)

-- name: add_arrival
insert into receipts (key, effect, arrivals) values (?, ?, 1)
on conflict (key) do update set arrivals = arrivals + 1

-- name: known
select effects.number, effects.key, effects.kind, effects.content
from receipts join effects on effects.number = receipts.effect
where receipts.key = ?

-- name: effects
select number, key, kind, content from effects where ?1 is null or key = ?1 order by number

-- name: count
select count(*) from effects where ?1 is null or key = ?1

-- name: arrivals
select arrivals from receipts where key = ?
