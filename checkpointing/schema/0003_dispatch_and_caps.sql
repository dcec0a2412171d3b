-- Runs: when somebody is to look at the run again (`null`: only when something happens), how often it was begun at one checkpoint, how many
-- supersteps its turn has taken, when the turn was admitted; and what a dead letter stands at, or who gave it up.
alter table runs add column due_ms bigint;
alter table runs add column tries bigint not null default 0;
alter table runs add column steps bigint not null default 0;
alter table runs add column admitted_ms bigint not null default 0;
alter table runs add column dead_step bigint;
alter table runs add column dead_nodes text;
alter table runs add column discarded_by text;
alter table runs add column discarded_why text;
alter table runs add column discarded_ms bigint;
update runs set admitted_ms = created_ms;
update runs set due_ms = updated_ms where state in ('admitted', 'running');
update runs set due_ms = (select min(expires_ms) from approvals where approvals.thread_id = runs.thread_id and approvals.state = 'pending')
where state = 'parked';
create index runs_dead on runs (thread_id) where state = 'dead' and discarded_ms is null;
create index runs_due on runs (graph, due_ms) where due_ms is not null;

-- Effects: what the call may use of a model's tokens, what came of it, and whether an abandoned claim does no harm.
alter table effects add column tokens bigint not null default 0;
alter table effects add column spent_money bigint;
alter table effects add column spent_tokens bigint;
alter table effects add column repeatable bigint not null default 0;
update effects set spent_money = 0 where state = 'settled' and outcome like '{"declined":%';
alter table effect_generations add column spent_money bigint not null default 0;
alter table effect_generations add column spent_tokens bigint not null default 0;

-- Effects: who claimed it, as the lease names its owner. In a journal that was restored from an older copy a fence is given out anew.
alter table effects add column claimed_by text;

-- Executions: what receivers did after the copy was made that this journal was restored from. Whoever asks for one of them first is answered
-- with it, and nothing is called. `key` and `identity` are as the receiver tells them.
create table executions (
    effect text not null,
    executed_id text not null,
    key text,
    identity text,
    outcome text not null,
    at_ms bigint not null,
    taken_back bigint not null,
    recorded_by text not null,
    recorded_ms bigint not null,
    primary key (effect, executed_id)
);
create index executions_by_key on executions (effect, key) where key is not null;
create index executions_by_identity on executions (effect, identity) where identity is not null;
