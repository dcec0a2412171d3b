-- Leases: who may write to a thread (or, on a raw graph, execute a slot) right now. The fence only grows and outlives the run.
create table leases (
    name text primary key,
    owner text,
    fence bigint not null,
    expires_ms bigint not null
);

-- Runs: one row a thread, from its admission on.
create table runs (
    thread_id text primary key,
    state text not null check (state in ('admitted', 'running', 'parked', 'done', 'dead')),
    reason text,
    waits_for text,
    error text,
    input_type text not null,
    input {blob} not null,
    input_digest text not null,
    submission text not null,
    turn bigint not null,
    attempts bigint not null,
    resumes bigint not null,
    head text,
    submitted_by text,
    graph text not null,
    created_ms bigint not null,
    updated_ms bigint not null
);
create index runs_by_state on runs (state, thread_id);
create index runs_waiting on runs (waits_for) where waits_for is not null;

-- Every submission a thread ever took, so that a late retry of an older one is known.
create table submissions (
    thread_id text not null,
    submission text not null,
    turn bigint not null,
    input_digest text not null,
    primary key (thread_id, submission)
);

-- Effects: one row a slot, for ever.
create table effects (
    slot text primary key,
    key text not null unique,
    effect text not null,
    thread_id text not null,
    step text not null,
    arguments text not null,
    digest text not null,
    state text not null check (state in ('claimed', 'settled', 'in_doubt', 'released')),
    outcome text,
    approval_id text unique,
    lease text not null,
    fence bigint not null,
    root text not null,
    task text not null,
    checkpoint text not null,
    calls bigint not null,
    replays bigint not null,
    cost bigint not null,
    claimed_ms bigint not null,
    called_ms bigint not null,
    settled_ms bigint
);
create index effects_by_thread on effects (thread_id, claimed_ms, slot);
create index effects_by_time on effects (claimed_ms, slot);
create index effects_by_state on effects (state, claimed_ms, slot);

-- Approvals: one row a question. `visit` counts the node's visits, `round` the payloads of one visit.
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
    state text not null check (state in ('pending', 'decided', 'superseded', 'expired')),
    decision text,
    decided_by text,
    opened_ms bigint not null,
    expires_ms bigint,
    decided_ms bigint,
    unique (thread_id, node, name, visit, round)
);
create index approvals_pending on approvals (expires_ms, opened_ms, id) where state = 'pending';
create index approvals_by_thread on approvals (thread_id, opened_ms);

-- The audit: a chain of hashes a thread, and its newest link.
create table audit (
    thread_id text not null,
    seq bigint not null,
    at_ms bigint not null,
    event text not null,
    actor text not null,
    subject text not null,
    body text not null,
    hash text not null,
    primary key (thread_id, seq)
);
create index audit_by_subject on audit (subject, event);
create table audit_heads (
    thread_id text primary key,
    seq bigint not null,
    hash text not null
);
