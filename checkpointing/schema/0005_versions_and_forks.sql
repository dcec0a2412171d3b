-- Runs: the version of the state that its input was written in, the graph that last carried it on, and for a fork the thread, the checkpoint and
-- the step it was forked from, and whether its effects may be executed.
alter table runs add column schema_version bigint not null default 1;
alter table runs add column fingerprint text;
alter table runs add column forked_from text;
alter table runs add column forked_at text;
alter table runs add column forked_step bigint;
alter table runs add column live bigint not null default 1;
create index runs_forked on runs (forked_from) where forked_from is not null;
