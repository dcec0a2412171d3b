-- Effects: which key of the slot this is. A declined effect may be reissued, and then under a new key.
alter table effects add column generation bigint not null default 1;

-- Leases: when the holding before this one expired. Whoever had it may have been at work until then.
alter table leases add column before_ms bigint not null default 0;

-- The earlier generations of reissued effects, as they were: what a receiver declined stays on record under the key it declined.
create table effect_generations (
    slot text not null,
    generation bigint not null,
    key text not null unique,
    effect text not null,
    thread_id text not null,
    step text not null,
    arguments text not null,
    digest text not null,
    state text not null check (state in ('settled', 'released')),
    outcome text,
    approval_id text,
    calls bigint not null,
    replays bigint not null,
    cost bigint not null,
    claimed_ms bigint not null,
    settled_ms bigint,
    reissued_as text not null,
    reissued_by text not null,
    reissued_ms bigint not null,
    primary key (slot, generation)
);
create index effect_generations_by_thread on effect_generations (thread_id, claimed_ms);

-- Approvals gain a state: withdrawn. SQLite cannot change a check in place, so the table is made anew on both engines. It is renamed first,
-- which waits for every decision under way and keeps the next ones out: one that committed between the copy and the drop would be lost.
alter table approvals rename to approvals_1;
create table approvals (
    id text primary key,
    thread_id text not null,
    node text not null,
    name text not null,
    visit bigint not null,
    round bigint not null,
    interrupt_id text,
    lease text,
    fence bigint,
    root text not null,
    task text not null,
    checkpoint text not null,
    payload text not null,
    payload_hash text not null,
    allowed text not null,
    approvers text,
    edits text,
    on_expiry text not null,
    state text not null check (state in ('pending', 'decided', 'superseded', 'expired', 'withdrawn')),
    decision text,
    decided_by text,
    opened_ms bigint not null,
    expires_ms bigint,
    decided_ms bigint,
    withdrawn_by text,
    withdrawn_why text,
    withdrawn_ms bigint,
    unique (thread_id, node, name, visit, round)
);
insert into approvals (id, thread_id, node, name, visit, round, interrupt_id, lease, fence, root, task, checkpoint, payload, payload_hash,
    allowed, approvers, edits, on_expiry, state, decision, decided_by, opened_ms, expires_ms, decided_ms)
select id, thread_id, node, name, visit, round, interrupt_id, lease, fence, root, task, checkpoint, payload, payload_hash,
    allowed, approvers, edits, on_expiry, state, decision, decided_by, opened_ms, expires_ms, decided_ms
from approvals_1;
drop table approvals_1;
create index approvals_pending on approvals (expires_ms, opened_ms, id) where state = 'pending';
create index approvals_by_thread on approvals (thread_id, opened_ms);
