-- The statements of the effect store, by name. A block begins with "-- name: <name>".

-- name: begin
begin immediate

-- name: commit
commit

-- name: rollback
rollback

-- name: create_effects
create table effects ( -- What the tool did to the world. Nothing keeps a key from having two: it is counted.
  number  integer primary key, -- in the order in which they happened
  key     text not null,
  kind    text not null,
  content text not null        -- canonical JSON
)

-- name: create_receipts
create table receipts ( -- What the tool knows of a key: its first effect, and how often it was asked.
  key      text primary key not null,
  effect   integer not null unique references effects (number),
  arrivals integer not null
)

-- name: mark_as_ours
pragma application_id = 1164338770

-- name: identity
select application_id, (select count(*) from sqlite_master) from pragma_application_id

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
select number, key, kind, content from effects where :key is null or key = :key order by number

-- name: count
select count(*) from effects where :key is null or key = :key

-- name: arrivals
select arrivals from receipts where key = ?
