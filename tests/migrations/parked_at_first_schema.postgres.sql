-- A claim parked for its approval (tests/support/small_claim.py), written by the code of the first schema on Postgres. Never edit it.
CREATE TABLE approvals (
    id text NOT NULL,
    thread_id text NOT NULL,
    node text NOT NULL,
    name text NOT NULL,
    visit bigint NOT NULL,
    round bigint NOT NULL,
    interrupt_id text,
    lease text,
    fence bigint,
    root text NOT NULL,
    task text NOT NULL,
    checkpoint text NOT NULL,
    payload text NOT NULL,
    payload_hash text NOT NULL,
    allowed text NOT NULL,
    approvers text,
    edits text,
    on_expiry text NOT NULL,
    state text NOT NULL,
    decision text,
    decided_by text,
    opened_ms bigint NOT NULL,
    expires_ms bigint,
    decided_ms bigint,
    CONSTRAINT approvals_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'decided'::text, 'superseded'::text, 'expired'::text])))
);
CREATE TABLE audit (
    thread_id text NOT NULL,
    seq bigint NOT NULL,
    at_ms bigint NOT NULL,
    event text NOT NULL,
    actor text NOT NULL,
    subject text NOT NULL,
    body text NOT NULL,
    hash text NOT NULL
);
CREATE TABLE audit_heads (
    thread_id text NOT NULL,
    seq bigint NOT NULL,
    hash text NOT NULL
);
CREATE TABLE checkpoint_blobs (
    thread_id text NOT NULL,
    checkpoint_ns text DEFAULT ''::text NOT NULL,
    channel text NOT NULL,
    version text NOT NULL,
    type text NOT NULL,
    blob bytea
);
CREATE TABLE checkpoint_migrations (
    v integer NOT NULL
);
CREATE TABLE checkpoint_writes (
    thread_id text NOT NULL,
    checkpoint_ns text DEFAULT ''::text NOT NULL,
    checkpoint_id text NOT NULL,
    task_id text NOT NULL,
    idx integer NOT NULL,
    channel text NOT NULL,
    type text,
    blob bytea NOT NULL,
    task_path text DEFAULT ''::text NOT NULL
);
CREATE TABLE checkpoints (
    thread_id text NOT NULL,
    checkpoint_ns text DEFAULT ''::text NOT NULL,
    checkpoint_id text NOT NULL,
    parent_checkpoint_id text,
    type text,
    checkpoint jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL
);
CREATE TABLE counterfoil_schema (
    version bigint NOT NULL
);
CREATE TABLE effects (
    slot text NOT NULL,
    key text NOT NULL,
    effect text NOT NULL,
    thread_id text NOT NULL,
    step text NOT NULL,
    arguments text NOT NULL,
    digest text NOT NULL,
    state text NOT NULL,
    outcome text,
    approval_id text,
    lease text NOT NULL,
    fence bigint NOT NULL,
    root text NOT NULL,
    task text NOT NULL,
    checkpoint text NOT NULL,
    calls bigint NOT NULL,
    replays bigint NOT NULL,
    cost bigint NOT NULL,
    claimed_ms bigint NOT NULL,
    called_ms bigint NOT NULL,
    settled_ms bigint,
    CONSTRAINT effects_state_check CHECK ((state = ANY (ARRAY['claimed'::text, 'settled'::text, 'in_doubt'::text, 'released'::text])))
);
CREATE TABLE leases (
    name text NOT NULL,
    owner text,
    fence bigint NOT NULL,
    expires_ms bigint NOT NULL
);
CREATE TABLE runs (
    thread_id text NOT NULL,
    state text NOT NULL,
    reason text,
    waits_for text,
    error text,
    input_type text NOT NULL,
    input bytea NOT NULL,
    input_digest text NOT NULL,
    submission text NOT NULL,
    turn bigint NOT NULL,
    attempts bigint NOT NULL,
    resumes bigint NOT NULL,
    head text,
    submitted_by text,
    graph text NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    CONSTRAINT runs_state_check CHECK ((state = ANY (ARRAY['admitted'::text, 'running'::text, 'parked'::text, 'done'::text, 'dead'::text])))
);
CREATE TABLE submissions (
    thread_id text NOT NULL,
    submission text NOT NULL,
    turn bigint NOT NULL,
    input_digest text NOT NULL
);
INSERT INTO approvals VALUES ('apr_74071e3af07eb10a318c', 'claim-0042', 'approve', 'payout', 0, 0, NULL, 'thread:claim-0042', 1, '1f1ecda5-90f6-6a9d-8002-40fb53e23743', 'approve:9b02d067-2bbe-d7c6-214f-72aa99a0c56c', '@1f1ecda5-90f6-6a9d-8002-40fb53e23743', '{"claim_id": "0042", "amount": 184000}', '3daec53bd2bb57ac63c2bbab117f52c4f912d2b59d612d82c83d17e5d091eee0', '["approve", "reject"]', NULL, NULL, 'reject', 'pending', NULL, NULL, 1796055796645, NULL, NULL);
INSERT INTO audit VALUES ('claim-0042', 1, 1796055796537, 'run.admit', '', 'claim-0042', '{"input": "7284536725aecb0a3bd5b40c8d3f0378a5fb4059fc2d80582bfea959da5291ed", "turn": 1}', '41a5dd2f510e9ac7630660dd4f31543ffa65e6d5f5e8e5b8494119845068aa08');
INSERT INTO audit VALUES ('claim-0042', 2, 1796055796578, 'run.start', 'vm:8917:e318f9c3', 'claim-0042', '{"attempt": 1, "first": true, "head": ""}', 'e43cbef96b3a88bed45ac274816b068726a98411300cf307ed488327b745aa02');
INSERT INTO audit VALUES ('claim-0042', 3, 1796055796617, 'effect.claim', 'vm:8917:e318f9c3', 'claim-0042:assess.0:ask:3daec53bd2bb57ac', '{"approval": null, "digest": "3daec53bd2bb57ac", "effect": "ask"}', '1ee4eca72a9af609981ff6f2d92143e87ce6e9d95575789f54ec44a45497727f');
INSERT INTO audit VALUES ('claim-0042', 4, 1796055796628, 'effect.settle', 'vm:8917:e318f9c3', 'claim-0042:assess.0:ask:3daec53bd2bb57ac', '{"effect": "ask", "outcome": "f4d103666be68d1ca58529f522a4a8fef418e436b220b602bcf96cb17099582a"}', 'a48308692233765f452a13a99c640f50f6056c555f28ef31f2b7e6cdc5dc2b5c');
INSERT INTO audit VALUES ('claim-0042', 5, 1796055796646, 'approval.open', 'vm:8917:e318f9c3', 'apr_74071e3af07eb10a318c', '{"name": "payout", "payload": "3daec53bd2bb57ac63c2bbab117f52c4f912d2b59d612d82c83d17e5d091eee0", "terms": "fb6da1779aa4834621b6b8a82090fe9c8a256673faa9615f33dfaa0cebb15fde"}', 'e206b2eaec771ac4f301e178289217b6602b534cf05714f7d1ebcfbfcbc26b94');
INSERT INTO audit VALUES ('claim-0042', 6, 1796055796697, 'run.park', 'vm:8917:e318f9c3', 'claim-0042', '{"reason": "approval"}', 'c18de9225b4265e22b01cbc8c81b694eb383a2e6038f36c020691c2d93c5af21');
INSERT INTO audit_heads VALUES ('claim-0042', 6, 'c18de9225b4265e22b01cbc8c81b694eb383a2e6038f36c020691c2d93c5af21');
INSERT INTO checkpoint_blobs VALUES ('claim-0042', '', '__start__', '00000000000000000000000000000001.0.6671642746457426', 'msgpack', '\x82a8636c61696d5f6964a430303432a47475726e01');
INSERT INTO checkpoint_blobs VALUES ('claim-0042', '', 'effects', '00000000000000000000000000000004.0.9381375317109419', 'msgpack', '\x81a86173736573732e3084a36b6579d928636c61696d2d303034323a6173736573732e303a61736b3a33646165633533626432626235376163a6656666656374a361736ba46e6f6465a6617373657373a57374617465a9737563636565646564');
INSERT INTO checkpoint_blobs VALUES ('claim-0042', '', 'assessment', '00000000000000000000000000000004.0.9381375317109419', 'msgpack', '\x81a67061796f7574ce0002cec0');
INSERT INTO checkpoint_migrations VALUES (0);
INSERT INTO checkpoint_migrations VALUES (1);
INSERT INTO checkpoint_migrations VALUES (2);
INSERT INTO checkpoint_migrations VALUES (3);
INSERT INTO checkpoint_migrations VALUES (4);
INSERT INTO checkpoint_migrations VALUES (5);
INSERT INTO checkpoint_migrations VALUES (6);
INSERT INTO checkpoint_migrations VALUES (7);
INSERT INTO checkpoint_migrations VALUES (8);
INSERT INTO checkpoint_migrations VALUES (9);
INSERT INTO checkpoint_writes VALUES ('claim-0042', '', '1f1ecda5-909a-6a1e-8000-9bee4e1b41d0', 'a2ffdaef-b5da-b758-31ce-dfae440438da', 0, 'amount', 'msgpack', '\xce0002cec0', '~__pregel_pull, load');
INSERT INTO checkpoint_writes VALUES ('claim-0042', '', '1f1ecda5-909a-6a1e-8000-9bee4e1b41d0', 'a2ffdaef-b5da-b758-31ce-dfae440438da', 1, 'branch:to:assess', 'null', '\x', '~__pregel_pull, load');
INSERT INTO checkpoint_writes VALUES ('claim-0042', '', '1f1ecda5-9092-6932-bfff-9aff47261cb1', '21562c14-fcf1-ccb9-30e8-9fda5b78c45c', 0, 'claim_id', 'msgpack', '\xa430303432', '~__pregel_pull, __start__');
INSERT INTO checkpoint_writes VALUES ('claim-0042', '', '1f1ecda5-9092-6932-bfff-9aff47261cb1', '21562c14-fcf1-ccb9-30e8-9fda5b78c45c', 1, 'turn', 'msgpack', '\x01', '~__pregel_pull, __start__');
INSERT INTO checkpoint_writes VALUES ('claim-0042', '', '1f1ecda5-9092-6932-bfff-9aff47261cb1', '21562c14-fcf1-ccb9-30e8-9fda5b78c45c', 2, 'branch:to:load', 'null', '\x', '~__pregel_pull, __start__');
INSERT INTO checkpoint_writes VALUES ('claim-0042', '', '1f1ecda5-90f6-6a9d-8002-40fb53e23743', '9b02d067-2bbe-d7c6-214f-72aa99a0c56c', -3, '__interrupt__', 'msgpack', '\x91c8013e0293af6c616e6767726170682e7479706573a9496e7465727275707483a576616c756589a26964b86170725f3734303731653361663037656231306133313863a97468726561645f6964aa636c61696d2d30303432a46e616d65a67061796f7574a77061796c6f616482a8636c61696d5f6964a430303432a6616d6f756e74ce0002cec0ac7061796c6f61645f68617368d94033646165633533626432626235376163363363326262616231313766353263346639313264326235396436313264383263383364313765356430393165656530a7616c6c6f77656492a7617070726f7665a672656a656374a9617070726f76657273c0a56564697473c0aa657870697265735f6174c0a26964d9206130613835626639373665396564623762313466393639613435303437663366af726573706f6e73655f736368656d61c0', '~__pregel_pull, approve');
INSERT INTO checkpoint_writes VALUES ('claim-0042', '', '1f1ecda5-90ae-6bd3-8001-c7481a6a4074', 'e4afe86c-8ab5-8818-fc8d-514089a98a29', 0, 'effects', 'msgpack', '\x81a86173736573732e3084a36b6579d928636c61696d2d303034323a6173736573732e303a61736b3a33646165633533626432626235376163a6656666656374a361736ba46e6f6465a6617373657373a57374617465a9737563636565646564', '~__pregel_pull, assess');
INSERT INTO checkpoint_writes VALUES ('claim-0042', '', '1f1ecda5-90ae-6bd3-8001-c7481a6a4074', 'e4afe86c-8ab5-8818-fc8d-514089a98a29', 1, 'assessment', 'msgpack', '\x81a67061796f7574ce0002cec0', '~__pregel_pull, assess');
INSERT INTO checkpoint_writes VALUES ('claim-0042', '', '1f1ecda5-90ae-6bd3-8001-c7481a6a4074', 'e4afe86c-8ab5-8818-fc8d-514089a98a29', 2, 'branch:to:approve', 'null', '\x', '~__pregel_pull, assess');
INSERT INTO checkpoints VALUES ('claim-0042', '', '1f1ecda5-9092-6932-bfff-9aff47261cb1', NULL, NULL, '{"v": 4, "id": "1f1ecda5-9092-6932-bfff-9aff47261cb1", "ts": "2026-11-30T16:23:16.599419+00:00", "versions_seen": {"__input__": {}}, "channel_values": {}, "channel_versions": {"__start__": "00000000000000000000000000000001.0.6671642746457426"}, "updated_channels": ["__start__"]}', '{"step": -1, "source": "input", "parents": {}}');
INSERT INTO checkpoints VALUES ('claim-0042', '', '1f1ecda5-909a-6a1e-8000-9bee4e1b41d0', '1f1ecda5-9092-6932-bfff-9aff47261cb1', NULL, '{"v": 4, "id": "1f1ecda5-909a-6a1e-8000-9bee4e1b41d0", "ts": "2026-11-30T16:23:16.602716+00:00", "versions_seen": {"__input__": {}, "__start__": {"__start__": "00000000000000000000000000000001.0.6671642746457426"}}, "channel_values": {"turn": 1, "claim_id": "0042", "branch:to:load": null}, "channel_versions": {"turn": "00000000000000000000000000000002.0.4835539098125654", "claim_id": "00000000000000000000000000000002.0.4835539098125654", "__start__": "00000000000000000000000000000002.0.4835539098125654", "branch:to:load": "00000000000000000000000000000002.0.4835539098125654"}, "updated_channels": ["branch:to:load", "claim_id", "turn"]}', '{"step": 0, "source": "loop", "parents": {}}');
INSERT INTO checkpoints VALUES ('claim-0042', '', '1f1ecda5-90ae-6bd3-8001-c7481a6a4074', '1f1ecda5-909a-6a1e-8000-9bee4e1b41d0', NULL, '{"v": 4, "id": "1f1ecda5-90ae-6bd3-8001-c7481a6a4074", "ts": "2026-11-30T16:23:16.610950+00:00", "versions_seen": {"load": {"branch:to:load": "00000000000000000000000000000002.0.4835539098125654"}, "__input__": {}, "__start__": {"__start__": "00000000000000000000000000000001.0.6671642746457426"}}, "channel_values": {"turn": 1, "amount": 184000, "claim_id": "0042", "branch:to:assess": null}, "channel_versions": {"turn": "00000000000000000000000000000002.0.4835539098125654", "amount": "00000000000000000000000000000003.0.06828764392336717", "claim_id": "00000000000000000000000000000002.0.4835539098125654", "__start__": "00000000000000000000000000000002.0.4835539098125654", "branch:to:load": "00000000000000000000000000000003.0.06828764392336717", "branch:to:assess": "00000000000000000000000000000003.0.06828764392336717"}, "updated_channels": ["amount", "branch:to:assess"]}', '{"step": 1, "source": "loop", "parents": {}}');
INSERT INTO checkpoints VALUES ('claim-0042', '', '1f1ecda5-90f6-6a9d-8002-40fb53e23743', '1f1ecda5-90ae-6bd3-8001-c7481a6a4074', NULL, '{"v": 4, "id": "1f1ecda5-90f6-6a9d-8002-40fb53e23743", "ts": "2026-11-30T16:23:16.640404+00:00", "versions_seen": {"load": {"branch:to:load": "00000000000000000000000000000002.0.4835539098125654"}, "assess": {"branch:to:assess": "00000000000000000000000000000003.0.06828764392336717"}, "__input__": {}, "__start__": {"__start__": "00000000000000000000000000000001.0.6671642746457426"}}, "channel_values": {"turn": 1, "amount": 184000, "claim_id": "0042", "branch:to:approve": null}, "channel_versions": {"turn": "00000000000000000000000000000002.0.4835539098125654", "amount": "00000000000000000000000000000003.0.06828764392336717", "effects": "00000000000000000000000000000004.0.9381375317109419", "claim_id": "00000000000000000000000000000002.0.4835539098125654", "__start__": "00000000000000000000000000000002.0.4835539098125654", "assessment": "00000000000000000000000000000004.0.9381375317109419", "branch:to:load": "00000000000000000000000000000003.0.06828764392336717", "branch:to:assess": "00000000000000000000000000000004.0.9381375317109419", "branch:to:approve": "00000000000000000000000000000004.0.9381375317109419"}, "updated_channels": ["assessment", "branch:to:approve", "effects"]}', '{"step": 2, "source": "loop", "parents": {}}');
INSERT INTO counterfoil_schema VALUES (1);
INSERT INTO effects VALUES ('thread|claim-0042|assess.0', 'claim-0042:assess.0:ask:3daec53bd2bb57ac', 'ask', 'claim-0042', 'assess.0', '{"claim_id": "0042", "amount": 184000}', '3daec53bd2bb57ac', 'settled', '{"payout": 184000}', NULL, 'thread:claim-0042', 1, '1f1ecda5-90ae-6bd3-8001-c7481a6a4074', 'assess:e4afe86c-8ab5-8818-fc8d-514089a98a29', '@1f1ecda5-90ae-6bd3-8001-c7481a6a4074', 1, 0, 0, 1796055796616, 1796055796616, 1796055796620);
INSERT INTO leases VALUES ('thread:claim-0042', NULL, 1, 1796055826549);
INSERT INTO runs VALUES ('claim-0042', 'parked', 'approval', NULL, NULL, 'msgpack', '\x81a8636c61696d5f6964a430303432', '7284536725aecb0a3bd5b40c8d3f0378a5fb4059fc2d80582bfea959da5291ed', '', 1, 0, 0, '', NULL, '', 1796055796533, 1796055796696);
INSERT INTO submissions VALUES ('claim-0042', '', 1, '7284536725aecb0a3bd5b40c8d3f0378a5fb4059fc2d80582bfea959da5291ed');
ALTER TABLE ONLY approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY approvals
    ADD CONSTRAINT approvals_thread_id_node_name_visit_round_key UNIQUE (thread_id, node, name, visit, round);
ALTER TABLE ONLY audit_heads
    ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (thread_id);
ALTER TABLE ONLY audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (thread_id, seq);
ALTER TABLE ONLY checkpoint_blobs
    ADD CONSTRAINT checkpoint_blobs_pkey PRIMARY KEY (thread_id, checkpoint_ns, channel, version);
ALTER TABLE ONLY checkpoint_migrations
    ADD CONSTRAINT checkpoint_migrations_pkey PRIMARY KEY (v);
ALTER TABLE ONLY checkpoint_writes
    ADD CONSTRAINT checkpoint_writes_pkey PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx);
ALTER TABLE ONLY checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id);
ALTER TABLE ONLY counterfoil_schema
    ADD CONSTRAINT counterfoil_schema_pkey PRIMARY KEY (version);
ALTER TABLE ONLY effects
    ADD CONSTRAINT effects_approval_id_key UNIQUE (approval_id);
ALTER TABLE ONLY effects
    ADD CONSTRAINT effects_key_key UNIQUE (key);
ALTER TABLE ONLY effects
    ADD CONSTRAINT effects_pkey PRIMARY KEY (slot);
ALTER TABLE ONLY leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);
ALTER TABLE ONLY runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (thread_id);
ALTER TABLE ONLY submissions
    ADD CONSTRAINT submissions_pkey PRIMARY KEY (thread_id, submission);
CREATE INDEX approvals_by_thread ON approvals USING btree (thread_id, opened_ms);
CREATE INDEX approvals_pending ON approvals USING btree (expires_ms, opened_ms, id) WHERE (state = 'pending'::text);
CREATE INDEX audit_by_subject ON audit USING btree (subject, event);
CREATE INDEX checkpoint_blobs_thread_id_idx ON checkpoint_blobs USING btree (thread_id);
CREATE INDEX checkpoint_writes_thread_id_idx ON checkpoint_writes USING btree (thread_id);
CREATE INDEX checkpoints_thread_id_idx ON checkpoints USING btree (thread_id);
CREATE INDEX effects_by_state ON effects USING btree (state, claimed_ms, slot);
CREATE INDEX effects_by_thread ON effects USING btree (thread_id, claimed_ms, slot);
CREATE INDEX effects_by_time ON effects USING btree (claimed_ms, slot);
CREATE INDEX runs_by_state ON runs USING btree (state, thread_id);
CREATE INDEX runs_waiting ON runs USING btree (waits_for) WHERE (waits_for IS NOT NULL);
