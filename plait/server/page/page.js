"use strict";
// What a running engine tells, drawn. Everything comes from the service that served this file, and nothing from elsewhere.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const PER_PAGE = 25, POINTS = 60, MOST_WHOLE = 40, MOST_ENDS = 60;
const seen = { events: [], results: new Map(), queries: [], status: null, plan: null, epochs: [], first: 0, fresh: 0 };

// -- small things -----------------------------------------------------------------------------------------------------
function el(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...inside.filter((each) => each !== null));
  return made;
}
function svg(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const count = (number) => number === null || number === undefined ? "–" : number < 10000 ? whole.format(number) : short.format(number);
const rate = (number) => number === null ? "–" : number >= 100 ? count(number) : number.toPrecision(2).replace(/\.?0+$/, "");
const seconds = (number) => number === null || number === undefined ? "–" : `${number < 10 ? number.toFixed(2) : number.toFixed(0)} s`;
const moment = (us) => us === null || us === undefined ? "–" : new Date(us / 1000).toISOString().slice(0, 19).replace("T", " ");
const bytes = (number) => {
  if (number === null || number === undefined) return "–";
  let unit = 0;
  while (number >= 1024 && unit < 4) { number /= 1024; unit += 1; }
  return `${unit && number < 100 ? number.toPrecision(2) : Math.round(number)} ${["B", "KB", "MB", "GB", "TB"][unit]}`;
};
const span = (us) => us === null ? "unbounded" : us % 60e6 === 0 && us ? `${us / 60e6} min` : `${us / 1e6} s`;
const few = (names, most = 3) => names.length <= most ? names.join(", ") : `${names.slice(0, most).join(", ")} and ${names.length - most} more`;

// -- asking -----------------------------------------------------------------------------------------------------------
function headers(more = {}) {
  const token = sessionStorage.getItem("token");
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}
async function ask(path, options = {}) {
  const reply = await fetch(path, { ...options, headers: headers(options.headers) });
  if (reply.status === 401) { login(); throw new Error("the service wants a token"); }
  const json = (reply.headers.get("content-type") || "").includes("json");
  const told = json ? await reply.json() : await reply.text();
  if (!reply.ok) throw Object.assign(new Error(told.error || reply.statusText), { place: told });
  return told;
}
const post = (path, sql) => ask(path, { method: "POST", body: sql, headers: { "Content-Type": "application/sql" } });
function login() { if (!$("login").open) { $("login").showModal(); $("token").focus(); } }

// -- events -----------------------------------------------------------------------------------------------------------
async function listen() {
  for (;;) {
    try {
      const reply = await fetch("/events", { headers: headers() });
      if (reply.status === 401) login();
      if (!reply.ok) throw new Error(reply.statusText);
      await read(reply.body.getReader());
    } catch { /* told below: what is old is marked as such, and it is tried again */ }
    say("not connected; the engine may have ended. Trying again", true);
    await new Promise((done) => setTimeout(done, 2000));
  }
}
async function read(reader) {
  const text = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + text.decode(value, { stream: true })).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "));
      if (data) heard(JSON.parse(data.slice(6)));
    }
  }
}
function heard(event) {
  if (event.event !== "batch") { soon(); return; }
  if (seen.events.some((known) => known.batch === event.batch)) return;
  seen.events.push(event);
  if (seen.events.length > POINTS) seen.events.shift();
  for (const [query, rows] of Object.entries(event.results)) {
    const points = seen.results.get(query) || [];
    points.push(rows);
    seen.results.set(query, points.slice(-POINTS));
  }
  soon();
}
let waiting = null;
function soon() {
  if (waiting === null) waiting = setTimeout(() => { waiting = null; refresh(); }, 1000);
}
let isUnderWay = false;
async function refresh() {
  if (isUnderWay || document.hidden) return;
  isUnderWay = true;
  try {
    [seen.status, seen.queries, seen.epochs] = await Promise.all([
      ask("/status"), ask("/queries").then((told) => told.queries), ask("/plan/history").then((told) => told.epochs)]);
    drawFigures(); drawTroubles(); drawStreams(); drawQueries(); drawEpochs();
    await refreshPlan();
  } catch (error) { say(error.message, true); } finally { isUnderWay = false; }
}
async function refreshPlan() {
  const names = seen.queries.length <= MOST_WHOLE ? [] : chosen().map((query) => query.name);
  if (!seen.queries.length) { $("plan").replaceChildren(); return; }
  seen.plan = await ask(`/plan?format=json${names.map((name) => `&query=${encodeURIComponent(name)}`).join("")}`);
  $("plan-hint").textContent = names.length
    ? `Of ${count(seen.queries.length)} queries, what the ${names.length} in the list below need; find others there.`
    : "From streams along the steps that look up stores to the queries. Wider: more probe tuples; coloured: the most of all.";
  drawPlan(); drawStores();
}

// -- figures, troubles, streams, epochs -------------------------------------------------------------------------------
function say(text, isBad) {
  if ($("state").textContent !== text) $("state").textContent = text;
  $("state").className = isBad ? "failing" : "";
}
function perSecond(of) {
  const last = seen.events.slice(-10);
  if (last.length < 2) return null;
  const time = (last[last.length - 1].published_ms - last[0].published_ms) / 1000;
  return time > 0 ? last.slice(1).reduce((sum, event) => sum + of(event), 0) / time : null;
}
function drawFigures() {
  const last = seen.status.last_batch, latency = (last && last.latency) || {};
  say(seen.status.running ? last ? `running, batch ${count(last.batch)}, epoch ${last.epoch}` : "running, no batch yet"
    : `ended${seen.status.failure ? `: ${seen.status.failure}` : ""}`, !seen.status.running);
  const told = [
    [rate(perSecond((event) => event.rows_in)), "rows/s in"],
    [rate(perSecond((event) => Object.values(event.results).reduce((sum, rows) => sum + rows, 0))), "results/s"],
    [seconds(latency.p50_seconds), "latency, half of the rows"],
    [seconds(latency.p99_seconds), "latency, 99 of 100"],
    [last ? seconds(last.seconds) : "–", "last batch"],
    [last ? count(last.stored_tuples) : "–", "rows kept"],
    [last ? bytes(last.stored_bytes) : "–", "kept"],
    [count(seen.queries.length), "queries"],
  ];
  $("figures").replaceChildren(...told.map(([value, name]) => el("div", { class: "figure" }, el("b", {}, value), el("span", {}, name))));
}
function drawTroubles() {
  const status = seen.status, found = [];
  if (status.failure) found.push(["bad", status.failure]);
  for (const [query, reason] of Object.entries(status.set_aside)) found.push(["bad", `query ${query} is set aside: ${reason}`]);
  for (const [query, reason] of Object.entries((status.last_batch || {}).failing || {})) found.push(["bad", `query ${query}: ${reason}`]);
  for (const [stream, of] of Object.entries(status.totals.sources)) {
    for (const bad of of.bad) found.push(["", `stream ${stream}: ${count(bad.rows)} bad rows, ${bad.reason}${bad.hint ? `. ${bad.hint}` : ""}`]);
  }
  for (const warning of status.totals.warnings) found.push(["", warning.text]);
  $("troubles-part").hidden = !found.length;
  $("troubles").replaceChildren(...found.slice(0, 30).map(([kind, text]) => el("li", { class: kind }, text)));
}
function cell(text, isNumber) { return el("td", isNumber ? { class: "n" } : {}, text); }
function drawStreams() {
  const { streams, totals, lag, marks, last_batch: last } = seen.status;
  $("streams").tBodies[0].replaceChildren(...streams.map((name) => {
    const of = totals.sources[name] || { rows: 0, late: 0, bad: [], outside_selections: 0 };
    const behind = lag[name] ? Object.values(lag[name]).reduce((sum, rows) => sum + rows, 0) : null;
    const holds = last && last.laggard === name && streams.length > 1;
    return el("tr", {}, el("th", { scope: "row" }, name), cell(count(of.rows), true), cell(count(of.late), true),
      cell(count(of.bad.reduce((sum, bad) => sum + bad.rows, 0)), true), cell(count(of.outside_selections), true), cell(count(behind), true),
      el("td", holds ? { class: "holds" } : {}, moment((marks || {})[name]), holds ? " holds all others back" : ""));
  }));
}
const WHY = { cheaper: "forecast to be cheaper", "turned out worse": "back, as the change turned out worse", filled: "stores are filled", indexed: "indexes are built" };
function drawEpochs() {
  $("epochs").replaceChildren(...seen.epochs.slice(-40).reverse().map((epoch) => {
    const change = epoch.change, brought = epoch.outcome;
    const why = change ? WHY[change.reason] || change.reason : "a run began";
    const gain = change && change.gain !== null && change.gain !== undefined ? `, to save ${Math.round(change.gain * 100)} %` : "";
    const came = brought && brought.gain !== null ? `; measured ${Math.round(brought.gain * 100)} %${brought.taken_back ? ", taken back" : ""}` : "";
    return el("li", { value: epoch.epoch }, `from batch ${count(epoch.batch)}, ${moment(epoch.clock_ms * 1000)}, ${epoch.strategy}: ${why}${gain}${came}`);
  }));
}

// -- queries ----------------------------------------------------------------------------------------------------------
function found() {
  const wanted = $("search").value.trim().toLowerCase();
  return seen.queries.filter((query) => !wanted || query.name.toLowerCase().includes(wanted) || query.sql.toLowerCase().includes(wanted)
    || query.state.includes(wanted));
}
const chosen = () => found().slice(seen.first, seen.first + PER_PAGE);
function drawQueries() {
  const all = found();
  if (seen.first >= all.length) seen.first = 0;
  const shown = chosen();
  $("shown").textContent = all.length ? `${seen.first + 1} to ${seen.first + shown.length} of ${count(all.length)}` : "none";
  $("fewer").disabled = seen.first === 0;
  $("more").disabled = seen.first + PER_PAGE >= all.length;
  const held = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
  $("queries").replaceChildren(...shown.map(lane));
  if (held) document.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus();
}
function lane(query) {
  const reads = [...new Set(query.relations.map((relation) => relation.source))];
  const { format, options } = query.sink, place = options.path || options.topic;
  const button = (text, does) => el("button", { type: "button", "data-key": `${text} ${query.name}`, "aria-label": `${text} ${query.name}`, onclick: does }, text);
  return el("li", {},
    el("div", { class: "name" }, query.name, " ", el("span", { class: `badge ${query.state.replace(" ", "-")}` }, query.state)),
    el("div", { class: "lane" }, el("b", {}, reads.join(" ⋈ ")), " → ", el("b", {}, place ? `${format} ${place}` : format), query.reason ? ` (${query.reason})` : ""),
    spark(seen.results.get(query.name) || [], query.name),
    el("div", { class: "n" }, `${count(query.rows_out)} results`),
    el("div", { class: "actions" }, button("Look", () => look(query)), button("Why", () => why(query)), button("Drop", () => drop(query))));
}
function spark(points, name) {
  const drawn = svg("svg", { class: "spark", viewBox: "0 0 120 26", role: "img", "aria-label": `results of ${name} in the last batches` });
  const most = Math.max(1, ...points), step = 120 / (POINTS - 1), from = POINTS - points.length;
  if (points.length > 1) drawn.append(svg("path", { d: points.map((rows, at) => `${at ? "L" : "M"}${((from + at) * step).toFixed(1)} ${(24 - 22 * rows / most).toFixed(1)}`).join("") }));
  return drawn;
}
function show(title, text, isAsked) {
  $("detail-title").textContent = title;
  $("detail-text").textContent = text;
  $("ask").hidden = !isAsked;
  if (!$("detail").open) $("detail").showModal();
}
async function look(query) {
  show(query.name, "…", false);
  const parts = [query.sql];
  const path = `/queries/${encodeURIComponent(query.name)}`;
  for (const [title, get] of [["Last rows", () => ask(`${path}/rows`).then(rowsText)], ["Plan", () => ask(`${path}?plan=true`).then((told) => told.plan)]]) {
    parts.push(`${title}\n${await get().catch((error) => error.message)}`);
    show(query.name, parts.join("\n\n"), false);
  }
}
function rowsText(told) {
  if (!told.rows.length) return told.note || "there are none yet";
  const lines = [told.columns, ...told.rows.map((row) => row.map((value) => value === null ? "NULL" : String(value)))];
  const widths = told.columns.map((_, at) => Math.max(...lines.map((line) => line[at].length)));
  return lines.map((line) => line.map((value, at) => value.padEnd(widths[at])).join("  ").trimEnd()).join("\n");
}
function why(query) {
  $("ask").dataset.query = query.name;
  $("row").placeholder = `${query.relations[0].alias}.id = 17`;
  show(`Why has a row no result of ${query.name}?`, "", true);
  $("row").focus();
}
async function drop(query) {
  if (!confirm(`Drop query ${query.name}? What it has written stays.`)) return;
  try { await ask(`/queries/${encodeURIComponent(query.name)}`, { method: "DELETE" }); } catch (error) { show(query.name, error.message, false); }
  refresh();
}

// -- the plan ---------------------------------------------------------------------------------------------------------
function drawPlan() {
  const measured = (seen.plan.measured || {}).edges || {}, ends = [];
  const flow = (step) => (measured[step.edge] || {}).probe_tuples_per_s ?? step.estimate.probe_tuples_per_s ?? 0;
  const queriesOf = (outputs) => outputs.map((output) => output.query);
  const node = (step, depth) => {
    const below = step.steps.map((each) => node(each, depth + 1)), out = queriesOf(step.outputs || []), fills = step.fills || [];
    if (out.length) below.push({ text: few([...new Set(out)]), kind: "query", depth: depth + 1, below: [], flow: 0 });
    if (fills.length) below.push({ text: `fills ${few(fills)}`, kind: "store", depth: depth + 1, below: [], flow: 0 });
    const taken = step.member.selection;
    return { text: step.member.store, more: taken && taken !== "TRUE" ? ` where ${taken}` : "", kind: "store", depth, below, flow: flow(step) };
  };
  const trees = seen.plan.trees.map((tree) => {
    const whole = node({ member: tree.start, edge: "", estimate: {}, steps: tree.steps, outputs: tree.outputs }, 0);
    return { ...whole, kind: "stream" };
  });
  const place = (each) => {
    each.below.forEach(place);
    each.y = each.below.length ? each.below.reduce((sum, one) => sum + one.y, 0) / each.below.length : ends.push(each) - 1;
  };
  trees.forEach(place);
  const all = [], gather = (each) => { all.push(each); each.below.forEach(gather); };
  trees.forEach(gather);
  const kept = all.filter((each) => each.y < MOST_ENDS), most = Math.max(1, ...all.map((each) => each.flow));
  const wide = 210, high = 34, box = 168, columns = Math.max(0, ...all.map((each) => each.depth)) + 1;
  const width = columns * wide, height = Math.min(ends.length, MOST_ENDS) * high + 10, drawn = $("plan");
  drawn.setAttribute("viewBox", `0 0 ${width} ${height}`);
  drawn.setAttribute("width", width); drawn.setAttribute("height", height);
  const boxes = [], edges = [];
  for (const each of kept) {
    const x = each.depth * wide, y = each.y * high + 5;
    for (const one of each.below.filter((below) => below.y < MOST_ENDS)) {
      const from = x + box, to = one.depth * wide, end = one.y * high + 18, share = one.flow / most;
      const path = svg("path", { class: "edge", d: `M${from} ${y + 13}C${from + 20} ${y + 13} ${to - 20} ${end} ${to} ${end}`, "stroke-width": (1 + 7 * Math.sqrt(share)).toFixed(1) });
      if (share > 0.5) path.style.stroke = "var(--hot)";
      path.append(svg("title", {}, one.flow ? `${rate(one.flow)} probe tuples/s` : "results"));
      edges.push(path);
    }
    const group = svg("g", { class: each.kind });
    group.append(svg("title", {}, each.text + (each.more || "")), svg("rect", { class: "box", x, y, width: box, height: 26, rx: each.kind === "query" ? 13 : 3 }),
      svg("text", { x: x + 9, y: y + 17 }, each.text.length > 24 ? `${each.text.slice(0, 23)}…` : each.text));
    boxes.push(group);
  }
  drawn.replaceChildren(...edges, ...boxes);
  if (ends.length > MOST_ENDS) $("plan-hint").textContent += ` Drawn are the first ${MOST_ENDS} of ${count(ends.length)} ends.`;
}
function drawStores() {
  const measured = (seen.plan.measured || {}).stores || {};
  $("stores").tBodies[0].replaceChildren(...seen.plan.stores.map((store) => {
    const held = measured[store.id] || {};
    return el("tr", {}, el("th", { scope: "row" }, store.id), cell(store.kind + (store.coming ? ", comes" : "")), cell(count(held.rows), true),
      cell(bytes(held.bytes), true), cell(span(store.window_us)), cell(store.used_by.length ? count(store.used_by.length) : "–", true));
  }));
}

// -- what one does ----------------------------------------------------------------------------------------------------
let checking = null, asked = 0;
function check() {
  clearTimeout(checking);
  checking = setTimeout(async () => {
    const sql = $("sql").value, number = asked += 1;
    if (!sql.trim()) { mistake("", false); return; }
    const told = await post("/check", sql).catch((error) => ({ error: error.message }));
    if (number !== asked) return;
    if (told.error) misplaced(told, sql); else mistake("no mistake found", true);
  }, 300);
}
function mistake(text, isWell, where = null) {
  $("mistake").replaceChildren(text, ...(where ? [el("pre", { tabindex: 0 }, where)] : []));
  $("mistake").className = isWell ? "well" : "";
  $("sql").setAttribute("aria-invalid", String(!isWell && !!text));
}
function misplaced({ error, line, column }, sql) {
  if (!line) { mistake(error, false); return; }
  const text = sql.split("\n")[line - 1] || "", at = Math.max(0, (column || 1) - 1);
  mistake(`line ${line}, column ${column}: ${error}`, false, `${text}\n${" ".repeat(at)}^`);
}
$("sql").addEventListener("input", check);
$("sql").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("add").requestSubmit(); });
$("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const sql = $("sql").value;
  clearTimeout(checking);
  asked += 1;
  try {
    const told = await post("/queries", sql);
    $("sql").value = "";
    mistake(`${told.name} takes part from the next batch on`, true);
    refresh();
  } catch (error) { misplaced(error.place || { error: error.message }, sql); }
});
$("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("detail-text").textContent = "The sources are read once more …";
  try {
    const told = await ask(`/queries/${encodeURIComponent($("ask").dataset.query)}/why?row=${encodeURIComponent($("row").value)}`);
    $("detail-text").textContent = told.findings.map((finding) => finding.text).join("\n");
  } catch (error) { $("detail-text").textContent = error.message; }
});
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  $("login").close();
  refresh();
});
$("search").addEventListener("input", () => { seen.first = 0; drawQueries(); soon(); });
$("fewer").addEventListener("click", () => { seen.first = Math.max(0, seen.first - PER_PAGE); drawQueries(); soon(); });
$("more").addEventListener("click", () => { seen.first += PER_PAGE; drawQueries(); soon(); });
function theme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
}
theme(localStorage.getItem("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
$("theme").addEventListener("click", () => {
  const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", name);
  theme(name);
});
setInterval(refresh, 5000);
refresh();
listen();
