# Starts the server, asks it something and stops it.
pg_ctl -D data -l log -o "-k $PWD" -w start >&2
psql -h "$PWD" -d postgres -Atc 'select 6 * 7'
psql -h localhost -d postgres -c 'create table t as select generate_series(1, 10000) n' >&2
pg_ctl -D data stop >&2
