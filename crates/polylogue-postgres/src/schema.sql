CREATE SCHEMA IF NOT EXISTS polylogue;
-- One row: the format of these tables, and the oldest one whose readers understand them.
CREATE TABLE polylogue.format(
    format int NOT NULL, oldest_reader int NOT NULL,
    -- With it, digests of accounts are unlike those in other databases.
    salt bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
INSERT INTO polylogue.format(format, oldest_reader) VALUES(0, 0);
-- Whether these tables have the format that a process writes. Otherwise a process of another version has migrated them, and the statement
-- fails, with their format as the message.
CREATE FUNCTION polylogue.is_format(int) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    stored int;
BEGIN
    SELECT format INTO STRICT stored FROM polylogue.format;
    IF stored <> $1 THEN
        RAISE EXCEPTION '%', stored USING ERRCODE = 'PLFMT';
    END IF;
    RETURN true;
END $$;
CREATE TABLE polylogue.teams(digest bytea PRIMARY KEY, json text NOT NULL);
-- Every append updates a row in place: there is room for it in the page.
CREATE TABLE polylogue.logs(
    nr bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    id text COLLATE "C" NOT NULL,
    title text NOT NULL,                        -- a JSON string: text cannot hold NUL
    created_ms bigint NOT NULL,
    team bytea REFERENCES polylogue.teams(digest),
    parent text,                                -- JSON
    parent_id text,
    origin bytea NOT NULL,                      -- the link before the first event
    events bigint NOT NULL DEFAULT 0,           -- how many there are
    chain bytea NOT NULL,                       -- the link of the last one
    summary text NOT NULL,                      -- JSON, sealed with `chain`
    state text NOT NULL,                        -- for lists only
    fence bigint NOT NULL DEFAULT 0,            -- of the last claim
    claim_key bigint,                           -- of the call that claimed it
    holder text,                                -- the node that has claimed it
    lease timestamptz,                          -- until when
    lease_nr bigint NOT NULL DEFAULT 0,         -- its number: leases that were granted or renewed before it have lower ones
    due timestamptz,                            -- when a worker must look at it; null: no worker must
    woken boolean NOT NULL DEFAULT false,       -- it was scheduled while it was held
    unread bigint[] NOT NULL DEFAULT '{}',      -- inbox messages that came while it was held, and that no event takes
    tries int NOT NULL DEFAULT 0,               -- claims of workers since the last append or release; of a parked log, those before it was parked: negative after an append
    worker text,                                -- the node that claimed it last because it was due
    failure text,                               -- why the last try failed, a JSON string
    takeovers int NOT NULL DEFAULT 0,           -- claims after the lease of a worker had expired
    is_parked boolean NOT NULL DEFAULT false,   -- no worker claims it, after too many tries
    needs text NOT NULL DEFAULT '',             -- what a worker has to offer, sorted words
    posted bigint NOT NULL DEFAULT 0,           -- the number of the last inbox message
    lost_events bigint NOT NULL DEFAULT 0,      -- events that processes had appended, and that a failover has undone
    UNIQUE(tenant, id)
) WITH (fillfactor = 60);
CREATE INDEX logs_newest ON polylogue.logs(tenant, created_ms DESC, id DESC);
CREATE INDEX logs_due ON polylogue.logs(tenant, needs, due) WHERE due IS NOT NULL;
CREATE INDEX logs_woken ON polylogue.logs(tenant) WHERE due IS NULL AND holder IS NOT NULL AND (woken OR unread <> '{}');
CREATE INDEX logs_parked ON polylogue.logs(tenant, id) WHERE is_parked;
CREATE INDEX logs_held ON polylogue.logs(holder) WHERE holder IS NOT NULL;
CREATE INDEX logs_undone ON polylogue.logs(tenant) WHERE lost_events > 0;
CREATE INDEX logs_parent ON polylogue.logs(tenant, parent_id) WHERE parent_id IS NOT NULL;
-- Text: bytes come back as they went.
CREATE TABLE polylogue.events(
    log bigint, seq bigint, json text NOT NULL, chain bytea NOT NULL, PRIMARY KEY(log, seq));
-- Appends to logs in one commit: $5[i] events of log $1[i], claimed by $3 with the fence $2[i], after its first $4[i]; $6 and $7 are the JSON
-- and the links of all events, $8 to $10 the new ends, $11 the lease, $12[i] how many inbox messages they take, $13 the numbers of all of
-- these. For each log: 0, nothing was done, because the claim or the number of events is another one; 1, or 2 if a process follows the
-- log. What is checked is in the row that is updated: after a wait for its lock, Postgres looks at that row again, and at nothing else. A
-- function, because its statements are planned once for a session, and not once for each append, also through a pooler.
CREATE FUNCTION polylogue.append(
    bigint[], bigint[], text, bigint[], int[], text[], bytea[], bytea[], text[], text[], bigint, int[], bigint[])
RETURNS smallint[] LANGUAGE plpgsql
    -- The plans are those for large tables, also if they were made when the tables were small.
    SET enable_seqscan = off AS $$
DECLARE
    results smallint[] := '{}';
    past int := 0;
    past_messages int := 0;
    messages bigint[];
BEGIN
    FOR i IN 1 .. cardinality($1) LOOP
        messages := $13[past_messages + 1 : past_messages + $12[i]];
        UPDATE polylogue.logs SET events = events + $5[i], chain = $8[i], summary = $9[i], state = $10[i],
            tries = CASE WHEN is_parked THEN -abs(tries) ELSE 0 END,
            failure = CASE WHEN is_parked THEN failure END,
            lease = now() + $11 * interval '1 millisecond', lease_nr = nextval('polylogue.leases'),
            unread = CASE WHEN unread = '{}' THEN unread ELSE ARRAY(SELECT unnest(unread) EXCEPT SELECT unnest(messages)) END
            WHERE nr = $1[i] AND fence = $2[i] AND holder = $3 AND events = $4[i];
        results[i] := FOUND::int;
        IF FOUND THEN
            INSERT INTO polylogue.events(log, seq, json, chain)
                SELECT $1[i], $4[i] + ord - 1, j, c
                FROM unnest($6[past + 1 : past + $5[i]], $7[past + 1 : past + $5[i]]) WITH ORDINALITY AS event(j, c, ord);
            IF $12[i] > 0 THEN
                UPDATE polylogue.inbox SET taken = true WHERE inbox.log = $1[i] AND inbox.nr = ANY(messages);
            END IF;
            IF EXISTS (SELECT FROM polylogue.watched WHERE watched.log = $1[i] AND until > now()) THEN
                results[i] := 2;
            END IF;
        END IF;
        past := past + $5[i];
        past_messages := past_messages + $12[i];
    END LOOP;
    RETURN results;
END $$;
-- Removes a log that no process has claimed, with all that is stored of it. Returns one row, with its team, or none. A function, because only
-- its later statements see what was stored while it waited for the row of the log; without that row, nothing more is stored.
CREATE FUNCTION polylogue.remove(text, text) RETURNS TABLE(of_team bytea) LANGUAGE plpgsql
    SET enable_seqscan = off AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM polylogue.logs WHERE tenant = $1 AND id = $2 AND (holder IS NULL OR lease < now()) RETURNING nr, team INTO gone, of_team;
    IF gone IS NULL THEN
        RETURN;
    END IF;
    DELETE FROM polylogue.events WHERE log = gone;
    DELETE FROM polylogue.inbox WHERE log = gone;
    DELETE FROM polylogue.blobs WHERE log = gone;
    DELETE FROM polylogue.archives WHERE log = gone;
    DELETE FROM polylogue.set_aside WHERE tenant = $1 AND id = $2;
    RETURN NEXT;
END $$;
-- The first events of logs that were archived, packed: deflated lines of a link (hexadecimal), a space, and the JSON of an event.
CREATE TABLE polylogue.archives(log bigint PRIMARY KEY, bytes bytea NOT NULL);
CREATE TABLE polylogue.inbox(
    log bigint, nr bigint, key text NOT NULL, json text NOT NULL, at timestamptz NOT NULL DEFAULT now(),
    taken boolean NOT NULL DEFAULT false,       -- an event takes it
    PRIMARY KEY(log, nr), UNIQUE(key, log));
CREATE INDEX inbox_unread ON polylogue.inbox(log) WHERE NOT taken;
CREATE INDEX inbox_oldest ON polylogue.inbox(at);
-- Large results of tool calls and files of work directories, by their digests.
CREATE TABLE polylogue.blobs(
    log bigint, id text, bytes bytea NOT NULL,
    is_packed boolean NOT NULL DEFAULT false,   -- deflated, because the log was archived
    PRIMARY KEY(log, id));
-- Events behind the damage of logs that were repaired.
CREATE TABLE polylogue.set_aside(
    tenant text, id text, repaired timestamptz DEFAULT now(), seq bigint, json text, chain bytea);
CREATE TABLE polylogue.nodes(
    id text PRIMARY KEY, process text NOT NULL, version text NOT NULL, seen timestamptz NOT NULL DEFAULT now(),
    offers text,                                -- what a worker has, sorted words; null: it is no worker
    of_tenant text,                             -- whose conversations it runs
    at_once bigint,                             -- how many conversations it runs at the same time
    address text,                               -- where others reach it over HTTP
    live text, live_secret bytea);              -- where other processes follow what it runs; who knows the secret may
-- The logs whose new events are announced on the channel `polylogue_events`, because a process follows them. A crash may lose them: they are
-- renewed.
CREATE UNLOGGED TABLE polylogue.watched(log bigint PRIMARY KEY, until timestamptz NOT NULL);
-- The conversations that are not idle: what runs where, and what waits since when.
CREATE VIEW polylogue.cluster AS SELECT tenant, logs.id,
    CASE WHEN holder IS NOT NULL AND lease >= now() THEN 'held' WHEN holder IS NOT NULL THEN 'lost'
        WHEN is_parked THEN 'parked' WHEN due <= now() THEN 'ready' ELSE 'timed' END AS state,
    CASE WHEN holder IS NULL OR lease < now() THEN
        now() - coalesce(due, CASE WHEN woken OR unread <> '{}' THEN lease END) END AS overdue,
    holder, coalesce(process, holder, worker) AS process, needs, abs(tries) AS tries, takeovers, failure
    FROM polylogue.logs LEFT JOIN polylogue.nodes ON nodes.id = coalesce(holder, worker)
    WHERE due IS NOT NULL OR is_parked OR holder IS NOT NULL;
-- Keys of requests that have been reserved, and which request has each: JSON strings.
CREATE TABLE polylogue.reserved_keys(
    tenant text, key text, request text NOT NULL, until timestamptz NOT NULL, PRIMARY KEY(tenant, key));
CREATE INDEX reserved_keys_until ON polylogue.reserved_keys(until);
-- Over all logs, so that a claim on a removed log is void in the next one of that id.
CREATE SEQUENCE polylogue.fences;
-- Tells in which order leases were granted and renewed, whatever the clock says: it may jump.
CREATE SEQUENCE polylogue.leases;
-- Rates of model providers, by account (a digest of the address and the key) and model: when the next request and token may be sent,
-- if these come one after the other. What is known comes from the provider; the model is empty for all of an account.
CREATE TABLE polylogue.rate_limits(
    provider text, account text, model text,
    requests_per_second float8, requests_burst float8, requests_next timestamptz NOT NULL DEFAULT 'epoch',
    tokens_per_second float8, tokens_burst float8, tokens_next timestamptz NOT NULL DEFAULT 'epoch',
    blocked_until timestamptz NOT NULL DEFAULT 'epoch',    -- the provider has asked for it
    requests bigint NOT NULL DEFAULT 0,                    -- how many were begun
    refusals bigint NOT NULL DEFAULT 0,                    -- how often the provider has asked to wait
    PRIMARY KEY(provider, account, model)) WITH (fillfactor = 50);
-- Slots of servers that serve few calls at once.
CREATE TABLE polylogue.slots(
    provider text, account text, slot int, holder text, ticket bigint, until timestamptz NOT NULL DEFAULT 'epoch',
    PRIMARY KEY(provider, account, slot)) WITH (fillfactor = 50);
-- Budgets that many processes share: limits, what was used of them as far as it was reported, and what processes have drawn of the rest
-- (by process: how much, and until when its lease lasts). All that decides whether more can be drawn is in this one row. Money is in
-- 10^-12 dollars.
CREATE TABLE polylogue.budgets(
    name text PRIMARY KEY, max_calls numeric, max_tokens numeric, max_cost numeric,
    calls numeric NOT NULL DEFAULT 0, tokens numeric NOT NULL DEFAULT 0, cost numeric NOT NULL DEFAULT 0,
    drawn_calls numeric NOT NULL DEFAULT 0, drawn_tokens numeric NOT NULL DEFAULT 0, drawn_cost numeric NOT NULL DEFAULT 0,
    pieces jsonb NOT NULL DEFAULT '{}') WITH (fillfactor = 50);
-- The conversations that a budget pays for: what they had used before, what of their usage since is in the budget, and which process
-- runs them or ran them last without saying that it is over.
CREATE TABLE polylogue.budget_logs(
    budget text REFERENCES polylogue.budgets(name), tenant text, log text COLLATE "C",
    before_calls numeric NOT NULL, before_tokens numeric NOT NULL, before_cost numeric NOT NULL,
    calls numeric NOT NULL DEFAULT 0, tokens numeric NOT NULL DEFAULT 0, cost numeric NOT NULL DEFAULT 0,
    node text,
    until_event bigint,                         -- it pays for the events before this one, and another budget for the others
    PRIMARY KEY(tenant, log, budget)) WITH (fillfactor = 60);
CREATE INDEX budget_logs_of ON polylogue.budget_logs(budget, node);
-- Budgets in dollars, for people and for metrics.
CREATE VIEW polylogue.cluster_budgets AS
    SELECT name, trim_scale(max_cost / 1e12) AS max_dollars, trim_scale(cost / 1e12) AS dollars,
        trim_scale(drawn_cost / 1e12) AS drawn_dollars,
        max_tokens, tokens, drawn_tokens, max_calls, calls, drawn_calls,
        (SELECT count(*) FROM jsonb_each(pieces) WHERE (value ->> 'until')::float8 >= extract(epoch FROM clock_timestamp())
            OR (value ->> 'calls')::numeric > 0 OR (value ->> 'tokens')::numeric > 0 OR (value ->> 'cost')::numeric > 0) AS processes,
        (SELECT count(*) FROM polylogue.budget_logs WHERE budget = name) AS conversations
    FROM polylogue.budgets;
-- Both kinds of limits of model servers, for people and for metrics.
CREATE VIEW polylogue.cluster_limits AS
    SELECT provider, account, model, requests_per_second, tokens_per_second, requests, refusals,
        greatest(extract(epoch FROM greatest(blocked_until, requests_next, tokens_next) - now()), 0) AS wait_seconds,
        NULL::bigint AS slots, NULL::bigint AS slots_taken
    FROM polylogue.rate_limits
    UNION ALL SELECT provider, account, '', NULL, NULL, NULL, NULL, NULL, count(*), count(*) FILTER (WHERE until > now())
    FROM polylogue.slots GROUP BY provider, account;
