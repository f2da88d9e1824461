-- What the database refuses, whoever writes: the runtime, a bare shell, a program with a fault.
-- A check before the insert is what stops OR REPLACE: a row that would be replaced breaks the numbering,
-- and delete triggers do not fire for it. Messages begin with the table's name.

create trigger events_are_judged before insert on events
begin
  select case
    when head.run is null
      then raise(abort, 'events: no such run')
    when new.seq is not head.seq + 1
      then raise(abort, 'events: seq must be the next one of its run')
    when exists (select 1 from events where run = new.run and seq >= new.seq)
      then raise(abort, 'events: a row beyond the head exists')
    when new.seq = 1 and not exists (select 1 from steps where run = new.run and step = head.steps)
      then raise(abort, 'events: the registration of the run is not complete')
    when writer.writer is null or new.writer is not writer.writer
      then raise(abort, 'events: another writer holds the epoch')
    when new.epoch is not head.epoch and (new.event is not 'adopt' or new.epoch < head.epoch)
      then raise(abort, 'events: the run belongs to another epoch and must be adopted first')
    when new.epoch is head.epoch and new.event is 'adopt'
      then raise(abort, 'events: the run is adopted already')
    when new.step is not null and new.step is not head.step
      then raise(abort, 'events: not the open step of the run')
    when new.attempt is not case
        when new.step is null then null
        when new.event in ('request', 'resend') then head.attempt + 1
        else head.attempt end
      then raise(abort, 'events: attempt must count on')
    when permitted.target is null
      then raise(abort, 'events: the lifecycle has no such move')
    when new.coupled is not permitted.coupled or new.run_state is not permitted.run_target
      then raise(abort, 'events: these moves of the run do not go with the move')
    when new.state is not case when new.step is null then null else permitted.target end
      then raise(abort, 'events: the move leads to another state')
  end
  from (select 1)
  left join heads as head on head.run = new.run
  left join writers as writer on writer.epoch = new.epoch
    and writer.epoch = (select max(epoch) from writers)
  left join permitted on permitted.spec = writer.spec
    and permitted.contract = case when new.step is null then ''
      else (select contract from steps where run = new.run and step = new.step) end
    and permitted.source = head.state
    and permitted.event = new.event
    and permitted.actor = new.actor
    and permitted.run_state = head.run_state
    and permitted.last = (head.step = head.steps);
end;

-- The head moves along with each event. When a step that is not the last succeeds, the next one opens.
-- The run's state moves by itself, and only if it changes, so that the index over it is left alone.
create trigger events_move_the_head after insert on events
begin
  update heads set run_state = new.run_state
  where (new.coupled <> '' or new.step is null) and run = new.run and run_state is not new.run_state;
  update heads set
    seq       = new.seq,
    hash      = new.hash,
    epoch     = new.epoch,
    step      = step + (new.state is 'succeeded' and step < steps),
    attempt   = case when new.state is 'succeeded' and step < steps then 0 else coalesce(new.attempt, attempt) end,
    state     = case when new.state is 'succeeded' and step < steps then 'planned' else coalesce(new.state, state) end
  where run = new.run;
end;

create trigger events_stay before update on events
begin select raise(abort, 'events: history is never changed'); end;

create trigger events_remain before delete on events
begin
  select raise(abort, 'events: history is never deleted unless it is archived')
  where not exists (select 1 from archived where run = old.run);
end;

-- A head is made with its run, and moves only while an event beyond it exists: inside the append.
create trigger heads_are_made_with_runs before insert on heads
begin
  select case
    when exists (select 1 from heads where run = new.run)
      or exists (select 1 from archived where run = new.run)
      or not exists (select 1 from runs where run = new.run and hash = new.hash and steps = new.steps
                     and run = (select max(run) from runs))
      or new.seq is not 0 or new.run_state is not 'running' or new.step is not 1
      or new.state is not 'planned' or new.attempt is not 0
    then raise(abort, 'heads: a head is made with its run') end;
end;

create trigger heads_move_with_events before update on heads
begin
  select raise(abort, 'heads: only an appended event moves a head')
  where new.run is not old.run or new.steps is not old.steps
    or not exists (select 1 from events where run = old.run and seq = old.seq + 1 and run_state = new.run_state
                   and case when new.run_state is old.run_state
                     then new.seq is seq and new.hash is hash and new.epoch is epoch
                     else new.seq is old.seq and new.hash is old.hash and new.epoch is old.epoch
                       and new.step is old.step and new.state is old.state and new.attempt is old.attempt end);
end;

create trigger heads_remain before delete on heads
begin
  select raise(abort, 'heads: history is never deleted unless it is archived')
  where not exists (select 1 from archived where run = old.run);
end;

create trigger runs_are_numbered before insert on runs
begin
  select case
    when new.run is not (select count + 1 from chains where name = 'runs')
      then raise(abort, 'runs: the number must be the next one')
    when exists (select 1 from runs where id = new.id)
      then raise(abort, 'runs: the id is in use')
    when new.epoch is not (select max(epoch) from writers)
      or new.writer is not (select writer from writers where epoch = new.epoch)
      then raise(abort, 'runs: another writer holds the epoch')
  end;
end;

create trigger runs_start after insert on runs
begin
  update chains set count = new.run, hash = new.hash where name = 'runs';
  insert into heads (run, seq, hash, run_state, step, state, attempt, epoch, steps)
    values (new.run, 0, new.hash, 'running', 1, 'planned', 0, new.epoch, new.steps);
end;

create trigger runs_stay before update on runs
begin select raise(abort, 'runs: a registration is never changed'); end;

create trigger runs_remain before delete on runs
begin select raise(abort, 'runs: a run is never deleted'); end;

create trigger steps_come_with_the_run before insert on steps
begin
  select case
    when new.run is not (select max(run) from runs)
      or (select seq from heads where run = new.run) is not 0
      or new.step > (select steps from heads where run = new.run)
      or new.step is not (select coalesce(max(step), 0) + 1 from steps where run = new.run)
      or not exists (select 1 from permitted where contract = new.contract and contract <> ''
                     and spec = (select spec from identity))
    then raise(abort, 'steps: a plan is written once, in order, with its run') end;
end;

create trigger steps_stay before update on steps
begin select raise(abort, 'steps: a plan is never changed'); end;

create trigger steps_remain before delete on steps
begin
  select raise(abort, 'steps: a plan is never deleted unless it is archived')
  where not exists (select 1 from archived where run = old.run);
end;

create trigger writers_follow before insert on writers
begin
  select case
    when new.epoch is not (select count + 1 from chains where name = 'writers')
      then raise(abort, 'writers: the epoch must be the next one')
    when new.spec is not (select spec from identity)
      then raise(abort, 'writers: another spec')
  end;
end;

create trigger writers_count after insert on writers
begin
  update chains set count = new.epoch, hash = new.hash where name = 'writers';
end;

create trigger writers_stay before update on writers
begin select raise(abort, 'writers: a writer is never changed'); end;

create trigger writers_remain before delete on writers
begin select raise(abort, 'writers: a writer is never deleted'); end;

-- A run leaves when it has ended, as its head says; nothing can be appended to it then or later.
create trigger archived_is_judged before insert on archived
begin
  select case
    when new.number is not (select count + 1 from chains where name = 'archived')
      then raise(abort, 'archived: the number must be the next one')
    when exists (select 1 from archived where run = new.run)
      then raise(abort, 'archived: the run is archived already')
    when new.epoch is not (select max(epoch) from writers)
      or new.writer is not (select writer from writers where epoch = new.epoch)
      then raise(abort, 'archived: another writer holds the epoch')
    when not exists (select 1 from heads join runs on runs.run = heads.run
                     where heads.run = new.run and heads.run_state in ('completed', 'failed', 'cancelled')
                     and new.run_state is heads.run_state and new.seq is heads.seq and new.head is heads.hash
                     and new.plan is runs.plan)
      then raise(abort, 'archived: the run has not ended as the row says')
  end;
end;

create trigger archived_counts after insert on archived
begin
  update chains set count = new.number, hash = new.hash where name = 'archived';
end;

create trigger archived_stays before update on archived
begin select raise(abort, 'archived: where a run is kept is never changed'); end;

create trigger archived_remains before delete on archived
begin select raise(abort, 'archived: where a run is kept is never deleted'); end;

create trigger chains_follow before update on chains
begin
  select raise(abort, 'chains: only a new row moves a chain')
  where new.name is not old.name or new.count is not old.count + 1
    or not exists (select 1 from runs where new.name = 'runs' and run = new.count and hash = new.hash
                   union all
                   select 1 from writers where new.name = 'writers' and epoch = new.count and hash = new.hash
                   union all
                   select 1 from archived where new.name = 'archived' and number = new.count and hash = new.hash);
end;

create trigger chains_are_three before insert on chains
begin select raise(abort, 'chains: there are three'); end;

create trigger chains_remain before delete on chains
begin select raise(abort, 'chains: a chain is never deleted'); end;

create trigger permitted_is_closed before insert on permitted
begin select raise(abort, 'permitted: the moves come from the spec'); end;

create trigger permitted_stays before update on permitted
begin select raise(abort, 'permitted: the moves come from the spec'); end;

create trigger permitted_remains before delete on permitted
begin select raise(abort, 'permitted: the moves come from the spec'); end;

create trigger identity_is_one before insert on identity
begin select raise(abort, 'identity: there is one'); end;

create trigger identity_stays before update on identity
begin select raise(abort, 'identity: it is never changed'); end;

create trigger identity_remains before delete on identity
begin select raise(abort, 'identity: it is never deleted'); end;
