CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)
;
CREATE TABLE circles (
	pk INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	mode TEXT NOT NULL, 
	status TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	heard_at DOUBLE NOT NULL, 
	held_by TEXT NOT NULL, 
	cancel_asked BOOLEAN NOT NULL, 
	duration_seconds DOUBLE, 
	label TEXT, 
	run_id TEXT, 
	title TEXT NOT NULL, 
	alarm BOOLEAN, 
	truth DOUBLE, 
	indeterminacy DOUBLE, 
	falsehood DOUBLE, 
	round1_falsehood DOUBLE, 
	decided_by TEXT, 
	decided_in_round INTEGER, 
	voices TEXT NOT NULL, 
	pattern_types TEXT NOT NULL, 
	rounds INTEGER NOT NULL, 
	failures INTEGER NOT NULL, 
	partial BOOLEAN NOT NULL, 
	tokens_in BIGINT, 
	tokens_out BIGINT, 
	cost_usd DOUBLE, arm TEXT, record_id TEXT, alarm_threshold DOUBLE, unread BOOLEAN, verdict TEXT, 
	PRIMARY KEY (pk), 
	UNIQUE (id)
)
;
CREATE INDEX circles_by_alarm ON circles (alarm, pk)
;
CREATE INDEX circles_by_label ON circles (label, pk)
;
CREATE INDEX circles_by_run ON circles (run_id, pk)
;
CREATE INDEX circles_by_status ON circles (status, pk)
;
CREATE INDEX circles_by_time ON circles (started_at, pk)
;
CREATE TABLE draws (
	pk INTEGER NOT NULL, 
	draw_id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (draw_id)
)
;
CREATE TABLE participations (
	pk INTEGER NOT NULL, 
	voice_id TEXT NOT NULL, 
	session_id TEXT NOT NULL, 
	decision_domain TEXT NOT NULL, 
	role_played TEXT NOT NULL, 
	contribution_quality DOUBLE, 
	was_empty_chair BOOLEAN NOT NULL, 
	at DOUBLE NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (session_id, voice_id)
)
;
CREATE INDEX participations_by_time ON participations (at, pk)
;
CREATE INDEX participations_by_voice ON participations (voice_id, at, pk)
;
CREATE TABLE calls (
	circle_pk INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	voice TEXT NOT NULL, 
	round_number INTEGER NOT NULL, 
	purpose TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	latency_seconds DOUBLE NOT NULL, 
	tokens_in BIGINT, 
	tokens_cached BIGINT, 
	tokens_out BIGINT, 
	cost_usd DOUBLE, 
	cached BOOLEAN NOT NULL, 
	failed TEXT, 
	PRIMARY KEY (circle_pk, seq), 
	FOREIGN KEY(circle_pk) REFERENCES circles (pk) ON DELETE CASCADE
)
;
CREATE TABLE documents (
	circle_pk INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	schema_version INTEGER NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (circle_pk), 
	FOREIGN KEY(circle_pk) REFERENCES circles (pk) ON DELETE CASCADE
)
;
CREATE TABLE evaluations (
	circle_pk INTEGER NOT NULL, 
	round_number INTEGER NOT NULL, 
	voice TEXT NOT NULL, 
	truth DOUBLE NOT NULL, 
	indeterminacy DOUBLE NOT NULL, 
	falsehood DOUBLE NOT NULL, 
	verdict TEXT, 
	read_as TEXT NOT NULL, 
	polarity TEXT NOT NULL, 
	is_chair BOOLEAN NOT NULL, 
	PRIMARY KEY (circle_pk, round_number, voice), 
	FOREIGN KEY(circle_pk) REFERENCES circles (pk) ON DELETE CASCADE
)
;
CREATE TABLE events (
	circle_pk INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	kind TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (circle_pk, seq), 
	FOREIGN KEY(circle_pk) REFERENCES circles (pk) ON DELETE CASCADE
)
;
CREATE TABLE failures (
	circle_pk INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	voice TEXT NOT NULL, 
	round_number INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	message TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	PRIMARY KEY (circle_pk, seq), 
	FOREIGN KEY(circle_pk) REFERENCES circles (pk) ON DELETE CASCADE
)
;
CREATE TABLE patterns (
	circle_pk INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	pattern_type TEXT NOT NULL, 
	description TEXT NOT NULL, 
	agreement DOUBLE NOT NULL, 
	grounded_agreement DOUBLE NOT NULL, 
	grounded BOOLEAN NOT NULL, 
	round_number INTEGER NOT NULL, 
	first_observed_by TEXT NOT NULL, 
	PRIMARY KEY (circle_pk, seq), 
	FOREIGN KEY(circle_pk) REFERENCES circles (pk) ON DELETE CASCADE
)
;
CREATE INDEX patterns_by_type ON patterns (pattern_type, circle_pk)
;
CREATE TABLE rounds (
	circle_pk INTEGER NOT NULL, 
	round_number INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	empty_chair TEXT, 
	f_mean DOUBLE, 
	f_stddev DOUBLE, 
	chair_influence DOUBLE, 
	started_at DOUBLE NOT NULL, 
	duration_seconds DOUBLE NOT NULL, 
	PRIMARY KEY (circle_pk, round_number), 
	FOREIGN KEY(circle_pk) REFERENCES circles (pk) ON DELETE CASCADE
)
;
CREATE TABLE seats (
	circle_pk INTEGER NOT NULL, 
	voice TEXT NOT NULL, 
	active BOOLEAN NOT NULL, 
	lost_in_round INTEGER, 
	contribution DOUBLE, 
	PRIMARY KEY (circle_pk, voice), 
	FOREIGN KEY(circle_pk) REFERENCES circles (pk) ON DELETE CASCADE
)
;
CREATE INDEX seats_by_voice ON seats (voice, circle_pk)
;
CREATE TABLE texts (
	circle_pk INTEGER NOT NULL, 
	prompt TEXT NOT NULL, 
	reasoning TEXT NOT NULL, 
	PRIMARY KEY (circle_pk), 
	FOREIGN KEY(circle_pk) REFERENCES circles (pk) ON DELETE CASCADE
)
;
CREATE VIRTUAL TABLE texts_index USING fts5(prompt, reasoning, content='texts', content_rowid='circle_pk', tokenize='unicode61 remove_diacritics 2')
;
CREATE TRIGGER texts_added AFTER INSERT ON texts BEGIN INSERT INTO texts_index(rowid, prompt, reasoning) VALUES (new.circle_pk, new.prompt, new.reasoning); END
;
CREATE TRIGGER texts_removed AFTER DELETE ON texts BEGIN INSERT INTO texts_index(texts_index, rowid, prompt, reasoning) VALUES ('delete', old.circle_pk, old.prompt, old.reasoning); END
;
CREATE TRIGGER texts_changed AFTER UPDATE ON texts BEGIN INSERT INTO texts_index(texts_index, rowid, prompt, reasoning) VALUES ('delete', old.circle_pk, old.prompt, old.reasoning); INSERT INTO texts_index(rowid, prompt, reasoning) VALUES (new.circle_pk, new.prompt, new.reasoning); END
;
CREATE TABLE bank_entries (
	pk INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	category TEXT NOT NULL, 
	pattern_type TEXT NOT NULL, 
	description TEXT NOT NULL, 
	sightings INTEGER NOT NULL, 
	attacks INTEGER NOT NULL, 
	highest_agreement DOUBLE NOT NULL, 
	first_seen_at DOUBLE NOT NULL, 
	last_seen_at DOUBLE NOT NULL, 
	PRIMARY KEY (pk), 
	UNIQUE (id)
)
;
CREATE INDEX bank_entries_by_type ON bank_entries (category, pattern_type)
;
CREATE INDEX bank_entries_by_sightings ON bank_entries (sightings, pk)
;
CREATE TABLE bank_sightings (
	pk INTEGER NOT NULL, 
	entry_pk INTEGER NOT NULL, 
	attack_id TEXT NOT NULL, 
	circle_id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	agreement DOUBLE NOT NULL, 
	description TEXT NOT NULL, 
	models TEXT NOT NULL, 
	layers TEXT NOT NULL, 
	examples TEXT NOT NULL, 
	words TEXT NOT NULL, 
	PRIMARY KEY (pk), 
	FOREIGN KEY(entry_pk) REFERENCES bank_entries (pk) ON DELETE CASCADE, 
	UNIQUE (entry_pk, attack_id, circle_id)
)
;
CREATE INDEX bank_sightings_by_attack ON bank_sightings (attack_id)
;
CREATE INDEX bank_sightings_by_circle ON bank_sightings (circle_id)
;
CREATE TABLE bank_tags (
	sighting_pk INTEGER NOT NULL, 
	tag TEXT NOT NULL, 
	PRIMARY KEY (sighting_pk, tag), 
	FOREIGN KEY(sighting_pk) REFERENCES bank_sightings (pk) ON DELETE CASCADE
)
;
CREATE INDEX bank_tags_by_tag ON bank_tags (tag, sighting_pk)
;
CREATE TABLE calibrated (
	circle_id TEXT NOT NULL, 
	voice TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	PRIMARY KEY (circle_id, voice)
)
;
CREATE TABLE runs (
	folder TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	arms TEXT NOT NULL, 
	judgements BIGINT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	finished_at DOUBLE, 
	PRIMARY KEY (folder)
)
;
CREATE TABLE accounts (
	name TEXT NOT NULL, 
	role TEXT NOT NULL, 
	password TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (name)
)
;
CREATE TABLE sessions (
	digest TEXT NOT NULL, 
	account TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	PRIMARY KEY (digest), 
	FOREIGN KEY(account) REFERENCES accounts (name) ON DELETE CASCADE
)
;
CREATE TABLE tokens (
	digest TEXT NOT NULL, 
	account TEXT NOT NULL, 
	note TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (digest), 
	FOREIGN KEY(account) REFERENCES accounts (name) ON DELETE CASCADE
)
;
CREATE TABLE actions (
	pk INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	"by" TEXT NOT NULL, 
	what TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	PRIMARY KEY (pk)
)
;
CREATE INDEX actions_by_subject ON actions (subject, pk)
;
CREATE INDEX circles_by_batch ON circles (record_id, pk) WHERE run_id IS NULL AND record_id IS NOT NULL
;
CREATE INDEX circles_by_falsehood ON circles (falsehood, pk)
;
CREATE TABLE verdict_calibrations (
	id TEXT NOT NULL, 
	voices TEXT NOT NULL, 
	rounds INTEGER NOT NULL, 
	fitted_at DOUBLE NOT NULL, 
	body TEXT NOT NULL, 
	circles TEXT NOT NULL, 
	PRIMARY KEY (id)
)
;
CREATE INDEX circles_by_verdict ON circles (verdict, pk)
;
INSERT INTO alembic_version VALUES ('0011')
;
