-- A year of flights out of New York (2013), replayed as four streams, and nine questions of an operations desk.
-- All times are UTC. Paths are relative to this file: copy it, change it, run it again with `plait run flights.sql`.

-- What happened: one row when an aircraft leaves the gate, one when it reaches the gate at its destination, one at
-- the planned hour of a flight that was cancelled, one for each hourly weather observation at EWR, JFK and LGA.
-- WINDOW: how much older than the newest member of a result a row may be. DELAY: how late a row may come in.
-- `rate` (rows a second) and `distinct.column` are guesses to plan with; better ones come from the first batches.

CREATE STREAM departures USING parquet OPTIONS (path 'in/departures', maxFilesPerTrigger '1', rate '0.01',
    distinct.tailnum '3000', distinct.origin '3', distinct.carrier '16', distinct.flight '1600')
  TIMESTAMP BY departed WINDOW INTERVAL 16 HOURS DELAY INTERVAL 5 MINUTES;

CREATE STREAM arrivals USING parquet OPTIONS (path 'in/arrivals', maxFilesPerTrigger '1', rate '0.01',
    distinct.tailnum '3000', distinct.origin '3', distinct.carrier '16', distinct.flight '1600', distinct.dest '90')
  TIMESTAMP BY arrived WINDOW INTERVAL 8 HOURS DELAY INTERVAL 5 MINUTES;

CREATE STREAM cancellations USING parquet OPTIONS (path 'in/cancellations', maxFilesPerTrigger '1', rate '0.0003',
    distinct.origin '3', distinct.carrier '16')
  TIMESTAMP BY planned WINDOW INTERVAL 1 HOUR DELAY INTERVAL 5 MINUTES;

CREATE STREAM weather USING parquet OPTIONS (path 'in/weather', maxFilesPerTrigger '1', rate '0.0008', distinct.origin '3')
  TIMESTAMP BY observed WINDOW INTERVAL 1 HOUR DELAY INTERVAL 5 MINUTES;

CREATE TABLE planes USING parquet OPTIONS (path 'in/planes.parquet');
CREATE TABLE airlines USING parquet OPTIONS (path 'in/airlines.parquet');
CREATE TABLE airports USING parquet OPTIONS (path 'in/airports.parquet');

-- Which flights left at least half an hour late within an hour of a strong gust at their airport, and how old was
-- the aircraft? (Two streams, two tables. Before or after the gust: each window is one hour.)
CREATE QUERY gusty_departures INTO parquet OPTIONS (path 'out/gusty_departures')
  WINDOW (d INTERVAL 1 HOUR, w INTERVAL 1 HOUR)
  AS SELECT d.departed, d.origin, d.dest, l.name AS airline, d.flight, d.dep_delay, w.observed, w.wind_gust,
            p.manufacturer, p.model, year(d.departed) - p.built AS age
     FROM departures d
     JOIN weather w ON w.origin = d.origin
     JOIN planes p ON p.tailnum = d.tailnum
     JOIN airlines l ON l.carrier = d.carrier
     WHERE d.dep_delay >= 30 AND w.wind_gust >= 35;

-- Which aircraft left New York, landed three quarters of an hour late, and later left New York as late again?
-- (A self-join on the tail number. `n` has a window of one second: it must be the newest of the three.)
CREATE QUERY knock_on INTO parquet OPTIONS (path 'out/knock_on')
  WINDOW (d INTERVAL 16 HOURS, a INTERVAL 8 HOURS, n INTERVAL 1 SECOND)
  AS SELECT d.tailnum, d.carrier, d.flight, d.origin, d.dest, a.arrived, a.arr_delay,
            n.flight AS next_flight, n.departed AS next_departed, n.origin AS next_origin, n.dest AS next_dest,
            n.dep_delay AS next_delay
     FROM departures d
     JOIN arrivals a ON a.tailnum = d.tailnum AND a.flight_date = d.flight_date
                    AND a.carrier = d.carrier AND a.flight = d.flight AND a.origin = d.origin
     JOIN departures n ON n.tailnum = a.tailnum
     WHERE a.arr_delay >= 45 AND n.dep_delay >= 45;

-- How was the weather at take-off of the flights that landed three quarters of an hour late?
-- (The key of the weather is an expression: the hour of the departure. Departure and arrival of a flight are found
-- exactly as in the query before, so this is done once for both.)
CREATE QUERY late_landings INTO parquet OPTIONS (path 'out/late_landings')
  WINDOW (w INTERVAL 18 HOURS)
  AS SELECT d.departed, d.carrier, d.flight, d.origin, d.dest, d.dep_delay, a.arr_delay, a.air_time,
            w.visib, w.wind_speed, w.wind_gust, w.precip
     FROM departures d, arrivals a, weather w
     WHERE a.tailnum = d.tailnum AND a.flight_date = d.flight_date
       AND a.carrier = d.carrier AND a.flight = d.flight AND a.origin = d.origin
       AND w.origin = d.origin AND w.observed = date_trunc('HOUR', d.departed)
       AND a.arr_delay >= 45;

-- Which cancellations came within an hour of poor visibility at their own airport and, in the same hour, at the
-- airport next door, so that there was nowhere near to go instead? (A self-join on the weather; a key that is a CASE.)
CREATE QUERY grounded INTO parquet OPTIONS (path 'out/grounded')
  AS SELECT c.planned, c.origin, c.dest, l.name AS airline, c.flight, here.visib, here.wind_gust,
            other.origin AS other_origin, other.visib AS other_visib
     FROM cancellations c
     JOIN weather here ON here.origin = c.origin
     JOIN weather other ON other.observed = here.observed
                       AND other.origin = CASE c.origin WHEN 'LGA' THEN 'JFK' ELSE 'LGA' END
     JOIN airlines l ON l.carrier = c.carrier
     WHERE here.visib <= 1 AND other.visib <= 1;

-- Where did two aircraft of one airline, one from Newark or La Guardia and one from Kennedy, land within 20 minutes of
-- each other, both at least 45 minutes late: who had no gate? (A self-join on the arrivals.)
CREATE QUERY gate_crunch INTO parquet OPTIONS (path 'out/gate_crunch')
  WINDOW (x INTERVAL 20 MINUTES, y INTERVAL 20 MINUTES)
  AS SELECT t.name AS airport, l.name AS airline, x.arrived, x.flight, x.origin, x.arr_delay,
            y.arrived AS other_arrived, y.flight AS other_flight, y.arr_delay AS other_delay
     FROM arrivals x
     JOIN arrivals y ON y.dest = x.dest AND y.carrier = x.carrier
     JOIN airports t ON t.faa = x.dest
     JOIN airlines l ON l.carrier = x.carrier
     WHERE x.origin <> 'JFK' AND y.origin = 'JFK' AND x.arr_delay >= 45 AND y.arr_delay >= 45;

-- Which departures had no complete weather report, one with an air pressure, of their airport for the hour they left in?
-- (An anti join: a departure is an answer once the watermark has passed its window, so that no report that fits can come
-- any more.)
CREATE QUERY unobserved INTO parquet OPTIONS (path 'out/unobserved')
  WINDOW (d INTERVAL 1 HOUR, w INTERVAL 1 HOUR)
  AS SELECT d.departed, d.origin, d.dest, l.name AS airline, d.flight, d.dep_delay
     FROM departures d
     JOIN airlines l ON l.carrier = d.carrier
     LEFT ANTI JOIN weather w ON w.origin = d.origin AND w.observed = date_trunc('HOUR', d.departed)
                          AND w.pressure IS NOT NULL;

-- How late did aircraft leave, airport by airport and hour by hour? (Groups of windows of time: those of an hour are
-- written once it is over.)
CREATE QUERY delays INTO parquet OPTIONS (path 'out/delays')
  AS SELECT window.start AS hour, window.end AS until, d.origin, count(*) AS flights,
            avg(d.dep_delay) AS mean_delay, max(d.dep_delay) AS worst_delay
     FROM departures d
     GROUP BY window(d.departed, '1 hour'), d.origin;

-- In how many hours of each day were departures of an airport half an hour late on average, and how late in the worst
-- one? (Groups of the groups above, whose time is the end of their hour: a day's hours end from 01:00 on.)
CREATE QUERY bad_days INTO parquet OPTIONS (path 'out/bad_days')
  AS SELECT window.start - INTERVAL 1 HOUR AS day, h.origin, count(*) AS hours, max(h.mean_delay) AS worst_mean
     FROM delays h
     WHERE h.mean_delay >= 30
     GROUP BY window(h.until, '1 day', '1 day', '1 hour'), h.origin;

-- Which aircraft left for a place less than 300 miles away and did not leave New York again within 12 hours?
-- (NOT EXISTS over the same stream. `n` has a window of one second: it must be the newer of the two.)
CREATE QUERY stayed_away INTO parquet OPTIONS (path 'out/stayed_away')
  WINDOW (d INTERVAL 12 HOURS, n INTERVAL 1 SECOND)
  AS SELECT d.tailnum, d.carrier, d.flight, d.origin, d.dest, d.departed, d.distance
     FROM departures d
     WHERE d.tailnum IS NOT NULL AND d.distance < 300
       AND NOT EXISTS (SELECT 1 FROM departures n WHERE n.tailnum = d.tailnum AND n.departed > d.departed);
