-- Approvals: what is asked about in money (minor units, and the payload's key it stands under), what is shown beside the payload, which question this
-- one takes the place of; the ladder of tiers, the one it stands with and its terms; when a reminder is due, and when the last one was given.
alter table approvals add column amount bigint;
alter table approvals add column amount_in text;
alter table approvals add column about text;
alter table approvals add column replaces text;
alter table approvals add column tiers text;
alter table approvals add column tier bigint not null default 0;
alter table approvals add column quorum bigint not null default 1;
alter table approvals add column four_eyes bigint not null default 0;
alter table approvals add column remind_ms bigint;
alter table approvals add column reminded_ms bigint;
create index approvals_queue on approvals (coalesce(expires_ms, 9223372036854775807), id) where state = 'pending';
create index approvals_decided on approvals (name, decided_ms, id) where state = 'decided';
create index approvals_listed on approvals (state, opened_ms, id) where state <> 'pending';

-- Runs are listed newest first: all of them, those in one state, or those somebody submitted.
create index runs_listed on runs (created_ms, thread_id);
create index runs_listed_by_state on runs (state, created_ms, thread_id);
create index runs_listed_by_submitter on runs (submitted_by, created_ms, thread_id);

-- Votes: what each of several has said of a question that takes more than one person. `approved` is the hash of what they would have done.
create table approval_votes (
    approval_id text not null,
    principal text not null,
    tier bigint not null,
    decision text not null,
    approved text not null,
    voted_ms bigint not null,
    primary key (approval_id, principal)
);

-- Notices: what people are to be told and have not been yet. A row goes when the run that tells them is admitted.
create table notices (
    id text primary key,
    thread_id text not null,
    event text not null,
    subject text not null,
    body text not null,
    at_ms bigint not null
);
create index notices_by_time on notices (at_ms, id);

-- Tokens: who may come in by a bearer token, of which only the digest is kept.
create table tokens (
    digest text primary key,
    id text not null unique,
    principal text not null,
    roles text not null,
    groups text not null,
    spend_limit bigint,
    note text not null,
    created_by text not null,
    created_ms bigint not null,
    expires_ms bigint,
    revoked_by text,
    revoked_ms bigint
);

-- Sessions: who is logged in to the pages, by the digest of the cookie.
create table sessions (
    digest text primary key,
    principal text not null,
    roles text not null,
    groups text not null,
    spend_limit bigint,
    token_digest text,
    created_ms bigint not null,
    expires_ms bigint not null
);
create index sessions_by_end on sessions (expires_ms);

-- Failed logins: how many in a row from one place, and until when it has to wait.
create table login_failures (
    place text primary key,
    failures bigint not null,
    until_ms bigint not null
);

-- Idempotency keys of the HTTP API: which request was made under one, and what it was answered; null while it is being answered.
create table idempotency_keys (
    principal text not null,
    key text not null,
    fingerprint text not null,
    status bigint,
    answer text,
    started_ms bigint not null,
    primary key (principal, key)
);
create index idempotency_keys_by_time on idempotency_keys (started_ms);
