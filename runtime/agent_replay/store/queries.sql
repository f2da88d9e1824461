-- The statements of the store, by name. A block begins with "-- name: <name>".

-- name: begin
begin immediate

-- name: commit
commit

-- name: rollback
rollback

-- name: identity
select namespace, created_ns, spec, one from identity

-- name: add_identity
insert into identity (one, namespace, created_ns, spec) values (1, ?, ?, ?)

-- name: add_permitted
insert into permitted values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: permitted
select * from permitted order by spec, contract, source, event, actor, run_state, last

-- name: add_chain
insert into chains (name, count, hash) values (?, 0, ?)

-- name: chain
select count, hash from chains where name = ?

-- name: chains
select name, count, hash from chains order by name

-- name: schema
select type, name, tbl_name, sql from sqlite_schema where name not like 'sqlite\_autoindex\_%' escape '\' order by type, name

-- name: add_writer
insert into writers (epoch, writer, spec, boot_id, opened_ns, pid, host, hash) values (?, ?, ?, ?, ?, ?, ?, ?)

-- name: last_writer
select epoch, writer, spec, boot_id, opened_ns, pid, host, hash from writers order by epoch desc limit 1

-- name: writers
select epoch, writer, spec, boot_id, opened_ns, pid, host, hash from writers order by epoch

-- name: writer
select epoch, writer, spec, boot_id, opened_ns, pid, host, hash from writers where epoch = ?

-- name: boot
select boot_id from writers where epoch = ?

-- name: add_run
insert into runs (run, id, plan, steps, attempts_max, adapters, hint, epoch, writer, wall_ns, boot_ns, hash)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_step
insert into steps (run, step, id, adapter, contract, arguments, key) values (?, ?, ?, ?, ?, ?, ?)

-- name: add_event
insert into events (run, seq, event, coupled, actor, step, attempt, state, run_state, epoch, writer, wall_ns, boot_ns, payload, hash)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: run
select run, id, plan, steps, attempts_max, adapters, hint, epoch, writer, wall_ns, boot_ns, hash from runs where id = ?

-- name: run_hash
select hash from runs where run = ?

-- name: runs
select run, id, plan, steps, attempts_max, adapters, hint, epoch, writer, wall_ns, boot_ns, hash from runs order by run

-- name: run_numbers
select run from runs order by run

-- name: steps
select run, step, id, adapter, contract, arguments, key from steps where run = ? order by step

-- name: step
select run, step, id, adapter, contract, arguments, key from steps where run = ? and step = ?

-- name: events
select run, seq, event, coupled, actor, step, attempt, state, run_state, epoch, writer, wall_ns, boot_ns, payload, hash
from events where run = ? order by seq

-- name: steps_from
select run, step, id, adapter, contract, arguments, key from steps where run >= ? order by run, step limit ?

-- name: events_from
select run, seq, event, coupled, actor, step, attempt, state, run_state, epoch, writer, wall_ns, boot_ns, payload, hash
from events where run >= ? order by run, seq limit ?

-- name: event_at
select run, seq, event, coupled, actor, step, attempt, state, run_state, epoch, writer, wall_ns, boot_ns, payload, hash
from events where run = ? and seq = ?

-- name: head
select run, seq, hash, run_state, step, state, attempt, epoch, steps from heads where run = ?

-- name: summaries
select runs.run, runs.id, coalesce(heads.run_state, archived.run_state), heads.step,
  case when archived.run is null then heads.steps else runs.steps end, heads.state, heads.attempt,
  coalesce(heads.seq, archived.seq), runs.wall_ns, archived.file
from runs left join heads on heads.run = runs.run left join archived on archived.run = runs.run
where runs.run > ? order by runs.run limit ?

-- name: unfinished
select runs.run, runs.id from heads join runs on runs.run = heads.run
where heads.run_state not in ('completed', 'failed', 'cancelled') and heads.run > ? order by heads.run limit ?

-- name: headless
select runs.run, runs.id
from (select 1 where (select count(*) from heads) + (select count(*) from archived) < (select count(*) from runs)) cross join runs
where runs.run > ? and not exists (select 1 from heads where heads.run = runs.run)
  and not exists (select 1 from archived where archived.run = runs.run) order by runs.run limit ?

-- name: events_after
select run, seq, event, coupled, actor, step, attempt, state, run_state, epoch, writer, wall_ns, boot_ns, payload, hash
from events where run = ? and seq > ? order by seq limit ?

-- name: epochs
select distinct epoch from events where run = ? order by epoch

-- name: stray_steps
select run, step from steps where not exists (select 1 from runs where runs.run = steps.run) order by run, step limit 1

-- name: stray_events
select run, seq from events where not exists (select 1 from runs where runs.run = events.run) order by run, seq limit 1

-- name: stray_heads
select run from heads where not exists (select 1 from runs where runs.run = heads.run) order by run limit 1

-- name: stray_archived
select run from archived where not exists (select 1 from runs where runs.run = archived.run) order by run limit 1

-- name: add_archived
insert into archived (run, number, plan, run_state, seq, head, file, file_digest, epoch, writer, archived_ns, hash)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: delete_events
delete from events where run = ?

-- name: delete_steps
delete from steps where run = ?

-- name: delete_head
delete from heads where run = ?

-- name: archived
select run, number, plan, run_state, seq, head, file, file_digest, epoch, writer, archived_ns, hash from archived where run = ?

-- name: is_archived
select 1 from archived where run = ?

-- name: archived_by_number
select run, number, plan, run_state, seq, head, file, file_digest, epoch, writer, archived_ns, hash from archived order by number

-- name: archived_by_run
select run, number, plan, run_state, seq, head, file, file_digest, epoch, writer, archived_ns, hash from archived order by run

-- name: archived_files
select distinct file from archived

-- name: ended
select heads.run, runs.id, heads.seq from heads join runs on runs.run = heads.run
join events on events.run = heads.run and events.seq = heads.seq
where heads.run_state in ('completed', 'failed', 'cancelled') and heads.run > ? and events.wall_ns <= ?
order by heads.run limit ?

-- name: rows_left
select 'events', count(*) from events where run = ?
union all select 'steps', count(*) from steps where run = ?
union all select 'heads', count(*) from heads where run = ?

-- name: run_numbered
select run, id, plan, steps, attempts_max, adapters, hint, epoch, writer, wall_ns, boot_ns, hash from runs where run = ?
