-- The tables of a history. STRICT, so that a value has the type its column says; keyed without rowid
-- where rows are found by run and number, so that an append touches the end of one tree.
-- Rows are only ever added, except in `heads` and `chains`, which triggers move along. The events, steps
-- and head of a run are deleted once `archived` says in which file they are.

-- Which database this is. Copies keep the namespace, so that a restored file finds its old keys.
create table identity (
  one        integer primary key check (one = 1),
  namespace  text    not null,
  created_ns integer not null,
  spec       text    not null
) strict;

-- The moves that exist: one row for each row that `events` may hold, under the digest of its spec.
-- contract is '' for the run's own events; last is 1 when the open step is the plan's last one.
create table permitted (
  spec       text    not null,
  contract   text    not null,
  source     text    not null,
  event      text    not null,
  actor      text    not null,
  run_state  text    not null,
  last       integer not null,
  target     text    not null,
  coupled    text    not null,
  run_target text    not null,
  primary key (spec, contract, source, event, actor, run_state, last)
) strict, without rowid;

-- Who has written here, in the order of taking over. The row comes with the writer's first event.
create table writers (
  epoch     integer primary key,
  writer    blob    not null check (length(writer) = 16),
  spec      text    not null,
  boot_id   text    not null,
  opened_ns integer not null,
  pid       integer not null,
  host      text    not null,
  hash      blob    not null check (length(hash) = 32)
) strict;

-- A run's registration is its start. Runs are numbered without a gap, so that a deleted one shows.
create table runs (
  run          integer primary key,
  id           text    not null unique,
  plan         text    not null,
  steps        integer not null check (steps >= 1),
  attempts_max integer not null check (attempts_max >= 1),
  adapters     text    not null,
  hint         text    not null,
  epoch        integer not null,
  writer       blob    not null,
  wall_ns      integer not null,
  boot_ns      integer not null,
  hash         blob    not null check (length(hash) = 32),
  foreign key (epoch) references writers (epoch)
) strict;

-- The plan of a run, a row a step. `plan` in `runs` is the digest over these rows.
create table steps (
  run       integer not null,
  step      integer not null,
  id        text    not null,
  adapter   text    not null,
  contract  text    not null,
  arguments text    not null,
  key       text    not null,
  primary key (run, step),
  foreign key (run) references runs (run)
) strict, without rowid;

-- The history.
create table events (
  run       integer not null,
  seq       integer not null,
  event     text    not null,
  coupled   text    not null,
  actor     text    not null,
  step      integer,
  attempt   integer,
  state     text,
  run_state text    not null,
  epoch     integer not null,
  writer    blob    not null,
  wall_ns   integer not null,
  boot_ns   integer not null,
  payload   text    not null,
  hash      blob    not null check (length(hash) = 32),
  primary key (run, seq),
  foreign key (run) references runs (run),
  foreign key (epoch) references writers (epoch)
) strict, without rowid;

-- Where each run stands. Derived from its events, kept because the triggers judge an event by it.
create table heads (
  run       integer primary key,
  seq       integer not null,
  hash      blob    not null,
  run_state text    not null,
  step      integer not null,
  state     text    not null,
  attempt   integer not null,
  epoch     integer not null,
  steps     integer not null
) strict;

-- The runs that have not ended. An update of `heads` that leaves `run_state` out does not touch it.
create index heads_unfinished on heads (run) where run_state not in ('completed', 'failed', 'cancelled');

-- The runs whose rows are in an archive, in the order in which they left. `plan`, `run_state`, `seq` and
-- `head` are those of the run; `file` is a path from the database's folder, `file_digest` is SHA-256.
create table archived (
  run         integer primary key,
  number      integer not null unique,
  plan        text    not null,
  run_state   text    not null,
  seq         integer not null,
  head        blob    not null,
  file        text    not null,
  file_digest blob    not null check (length(file_digest) = 32),
  epoch       integer not null,
  writer      blob    not null,
  archived_ns integer not null,
  hash        blob    not null check (length(hash) = 32),
  foreign key (run) references runs (run),
  foreign key (epoch) references writers (epoch)
) strict;

-- Where the chains of runs, of writers and of archived runs end: how many links, and the last one.
create table chains (
  name  text primary key,
  count integer not null,
  hash  blob    not null
) strict, without rowid;
