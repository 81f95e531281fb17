"use strict";
(async () => {
  const $ = (id) => document.getElementById(id);
  const JUMP = 5, PASSING = 3; // seconds: a jump by an arrow key; the time that a card stays visible while the replay plays
  const ROW = 20, LETTER = 16, LEAST = 9; // pixels: height of a row, size of its letters, minimum size of a legible letter
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  async function unpack(text) {
    if (typeof DecompressionStream === "undefined")
      throw new Error("this browser cannot decompress it; use a browser of 2023 or later");
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  let film;
  try {
    film = await unpack($("film").textContent);
  } catch (error) {
    $("message").textContent = `The replay does not play here: ${error.message}. This is its last screen; everything below is complete.`;
    return;
  }

  // expand rows and frames
  function spread(one) {
    let recorded = 0, played = 0, lines = [];
    one.rows = one.rows.map((row) => row.map((part) => one.parts[part]).join(""));
    one.frames = one.frames.map(([more, later, ...changes]) => {
      lines = [...lines];
      for (let place = 0; place < changes.length; place += 2) lines[changes[place]] = changes[place + 1];
      return [(recorded += more) / 1000, (played += later) / 1000, lines];
    });
    return one;
  }
  film.sizes.forEach(spread);

  const RECORDED = 0, PLAYED = 1, LINES = 2; // of a frame
  let size = null, rows = [], drawn = [];
  // the time in the film; the current marker, and the number of passed markers
  let now = 0, marker = 0, gone = 0;
  let playing = false, looping = false, speed = 1, last = 0, shown = null;

  // return the index of the last frame up to the limit
  function upTo(frames, kind, limit) {
    let low = 0, high = frames.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (frames[middle][kind] <= limit + 1e-6) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  function between(from, to, value) {
    const [{ frames }] = film.sizes, place = upTo(frames, from, value);
    if (place < 0) return frames[0][to];
    const here = frames[place], next = frames[place + 1];
    return next ? here[to] + ((value - here[from]) / (next[from] - here[from])) * (next[to] - here[to]) : here[to];
  }

  // choose the largest size with legible letters in this window; on paper the first one
  function fit(onPaper = false) {
    const best = film.sizes.find((one) => {
      if (onPaper) return true;
      $("player").style.setProperty("--ratio", one.width / one.height);
      return ($("stage").clientWidth * LETTER) / one.width >= LEAST;
    }) ?? film.sizes.at(-1);
    if (best === size) return;
    size = best;
    $("screen").setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    const ground = $("screen").querySelector("rect");
    for (const side of ["width", "height"]) ground.setAttribute(side, size[side]);
    rows = size.frames[0][LINES].map(() => document.createElementNS(ground.namespaceURI, "g"));
    rows.forEach((row, y) => row.setAttribute("transform", `translate(0 ${ROW * y})`));
    $("screen").replaceChildren(ground, ...rows);
    drawn = [];
    shown = null;
  }

  const clock = (seconds) => `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;
  const runAt = (time) => film.runs.findLast((run) => run[2] <= time + 1e-6);

  function draw(lines) {
    if (lines === shown) return;
    shown = lines;
    lines.forEach((line, y) => {
      if (drawn[y] === line) return;
      drawn[y] = line;
      rows[y].innerHTML = size.rows[line];
    });
  }

  function card() {
    const before = marker;
    const time = film.stops[marker - 1];
    if (marker && Math.abs(now - time) > (playing ? PASSING : 1e-3)) marker = 0;
    if (before === marker && $("card").dataset.marker === String(marker)) return;
    $("card").dataset.marker = marker;
    const said = marker ? $("stops").children[marker - 1].cloneNode(true) : null;
    said?.querySelector("details")?.removeAttribute("open");
    const field = said?.querySelector(".guess :is(input, select)");
    if (field) field.value = guesses[marker] ?? "";
    $("card").replaceChildren(...(said?.childNodes ?? contents()));
  }

  // without a current card, links to all cards
  function contents() {
    const list = document.createElement("ol");
    for (const [place, one] of [...($("stops")?.children ?? [])].entries()) {
      const link = document.createElement("a");
      link.href = `#marker=${place + 1}`;
      link.textContent = one.querySelector("h3, p").textContent;
      list.appendChild(document.createElement("li")).append(link);
    }
    return list.children.length ? [list] : [];
  }

  function show() {
    card();
    const at = marker || (film.stops[gone] === now ? gone + 1 : 0); // a lecture opens before its first card
    const [asked, answer] = at && Math.abs(film.stops[at - 1] - now) < 1e-3 ? size.stops[at] : [];
    const answered = $("card").querySelector("details")?.open && answer?.length;
    draw(answered ? answer : asked ?? size.frames[Math.max(upTo(size.frames, PLAYED, now), 0)][LINES]);
    const seconds = between(PLAYED, RECORDED, now), run = runAt(now);
    $("seek").value = now;
    $("seek").setAttribute("aria-valuetext", `${clock(seconds)}${run ? `, run ${run[0]}: ${run[1]}` : ""}`);
    $("clock").textContent = clock(seconds);
    $("speed").textContent = `${speed}×`;
    $("play").setAttribute("aria-label", playing ? "Pause" : "Play");
    $("player").classList.toggle("playing", playing);
    document.body.dataset.t = seconds.toFixed(3);
    if (!playing) $("text").textContent = shown.map((line) => size.texts[line]).join("\n").trimEnd() + "\n";
  }

  function pause() {
    playing = false;
    show();
    const link = `#${document.body.classList.contains("embedded") ? "embed&" : ""}${marker ? `marker=${marker}` : now >= film.duration ? "end" : `t=${between(PLAYED, RECORDED, now).toFixed(2)}`}`;
    try {
      history.replaceState(null, "", link);
    } catch {
      // some browsers keep the address of a file as it is
    }
  }

  function play() {
    const next = film.stops[gone];
    if (film.directed && next <= now + 1e-6) return seek(next, gone + 1); // several of one moment
    if (film.directed && marker && now >= film.duration) return seek(film.duration);
    if (now >= film.duration) now = marker = gone = 0;
    $("start").hidden = playing = true;
    last = performance.now();
    show();
    requestAnimationFrame(tick);
  }

  function tick(time) {
    if (!playing) return;
    // fewer pictures for readers who prefer less motion
    if (calm.matches && time - last < 1000) return void requestAnimationFrame(tick);
    now = Math.min(now + (Math.max(time - last, 0) / 1000) * speed, film.duration);
    last = time;
    const stops = film.directed && film.stops[gone] <= now;
    if (stops) now = film.stops[gone];
    while (film.stops[gone] <= now) {
      marker = ++gone;
      if (stops) break;
    }
    if (now >= film.duration && !stops) marker = 0;
    if (looping && !stops && now >= film.duration) now = marker = gone = 0;
    else if (stops || now >= film.duration) return pause();
    show();
    requestAnimationFrame(tick);
  }

  function seek(time, at = 0) {
    now = Math.min(Math.max(time, 0), film.duration);
    gone = at || film.stops.filter((stop) => stop <= now + 1e-6).length;
    // the end has no current marker, even if a marker is there
    marker = at || (gone && now < film.duration && Math.abs(film.stops[gone - 1] - now) < 1e-3 ? gone : 0);
    last = performance.now();
    $("start").hidden = true;
    if (playing && now < film.duration) show(); else pause();
  }

  function say(words) {
    $("message").textContent = words;
  }

  function toRun(direction) {
    const runs = direction > 0 ? film.runs.filter((run) => run[2] > now + 1e-3) : film.runs.filter((run) => run[2] < now - 1e-3).reverse();
    if (!runs.length) return say(`No run begins ${direction > 0 ? "after" : "before"} this.`);
    say(`Run ${runs[0][0]}: ${runs[0][1]}`);
    seek(runs[0][2]);
  }

  function toMarker(direction) {
    const target = direction > 0 ? gone + 1 : marker ? marker - 1 : gone;
    if (target < 1 || target > film.stops.length) return say(`There is no ${direction > 0 ? "later" : "earlier"} marker.`);
    seek(film.stops[target - 1], target);
  }

  function step(direction) {
    playing = false;
    let place = upTo(size.frames, PLAYED, now);
    const from = size.frames[place][PLAYED];
    while (size.frames[place]?.[PLAYED] === from) place += direction; // several may be of one moment
    if (!size.frames[place]) return say(`This is the ${direction > 0 ? "end" : "beginning"}.`);
    seek(size.frames[place][PLAYED]);
  }

  function hurry(direction) {
    const place = film.speeds.indexOf(speed) + direction;
    speed = film.speeds[Math.min(Math.max(place, 0), film.speeds.length - 1)];
    show();
  }

  function answer() {
    const asked = $("card").querySelector("details");
    if (asked) asked.open = !asked.open;
    else say("There is no recorded answer here.");
  }

  function full() {
    if (document.fullscreenElement) document.exitFullscreen();
    else $("player").requestFullscreen?.();
  }

  async function toClipboard(words, done, otherwise) {
    try {
      await navigator.clipboard.writeText(words);
      say(done);
    } catch {
      say(otherwise);
    }
  }

  function copy() {
    pause();
    const otherwise = `The link to this position ends in ${location.hash}: copy it from the address bar.`;
    return toClipboard(location.href, "The link to this position is on the clipboard.", otherwise);
  }

  function copyEmbed() {
    const address = location.href.split("#")[0].replaceAll("&", "&amp;").replaceAll('"', "&quot;");
    const frame = `<iframe src="${address}#embed" width="960" height="640" allow="fullscreen"></iframe>`;
    return toClipboard(frame, "The frame for another page is on the clipboard.", `Paste this frame into another page: ${frame}`);
  }

  function go() {
    const words = new URLSearchParams(location.hash.slice(1));
    const number = (name) => (words.has(name) && words.get(name).trim() !== "" ? Number(words.get(name)) : NaN);
    const run = film.runs.find((one) => one[0] === number("run"));
    if (words.has("embed")) document.body.classList.add("embedded");
    looping ||= words.has("loop");
    if (words.has("end")) seek(film.duration);
    else if (run) seek(run[2]);
    else if (film.stops[number("marker") - 1] >= 0) seek(film.stops[number("marker") - 1], number("marker"));
    else if (number("t") >= 0) seek(between(RECORDED, PLAYED, number("t")));
    else if (!words.has("play")) return false;
    if (words.has("play")) play();
    return true;
  }

  // the guess next to the answer of the recording
  const guesses = [];
  function beside() {
    const guessed = $("card").querySelector(".guessed"), words = guesses[marker]?.trim();
    if (!guessed) return;
    guessed.hidden = !words;
    guessed.textContent = `You guessed: ${words}. The recording:`;
  }

  // on paper: the last screen and every answer
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("main > section details:not([open])")];
    for (const one of unfolded) one.open = true;
    fit(true);
    draw(size.frames.at(-1)[LINES]);
  });
  addEventListener("afterprint", () => {
    for (const one of unfolded) one.open = false;
    fit();
    show();
  });

  const toggle = () => (playing ? pause() : play());
  const KEYS = {
    " ": toggle,
    ArrowRight: (event) => seek(now + (event.shiftKey ? film.duration / 10 : JUMP)),
    ArrowLeft: (event) => seek(now - (event.shiftKey ? film.duration / 10 : JUMP)),
    Home: () => seek(0),
    End: () => seek(film.duration),
    "+": () => hurry(1), "=": () => hurry(1), ">": () => hurry(1),
    "-": () => hurry(-1), "<": () => hurry(-1),
    n: () => toRun(1), "]": () => toRun(1),
    p: () => toRun(-1), "[": () => toRun(-1),
    ")": () => toMarker(1), "(": () => toMarker(-1),
    ".": () => step(1), ",": () => step(-1),
    "!": answer,
    l: () => say((looping = !looping) ? "The replay loops." : "The replay plays once."),
    f: full,
    "?": () => $("keys").showModal(),
  };

  for (let tenth = 0; tenth < 10; tenth++) KEYS[tenth] = () => seek((film.duration * tenth) / 10);

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open || !Object.hasOwn(KEYS, event.key)) return;
    if (event.target.matches?.("input:not([type=range]), select") && event.key !== "!") return; // the keys belong to the guess
    // buttons, links and tables keep their own keys
    if (event.key === " " && event.target.closest?.("button, summary, a")) return;
    if (event.key.startsWith("Arrow") && event.target.closest?.(".wide, pre")) return;
    event.preventDefault();
    if (event.key !== "!") say("");
    KEYS[event.key](event);
  });
  $("card").addEventListener("toggle", () => (beside(), show()), true);
  $("card").addEventListener("input", (event) => {
    guesses[marker] = event.target.value;
    beside();
  });
  $("seek").addEventListener("input", () => seek(Number($("seek").value)));
  $("stage").addEventListener("click", () => getSelection().isCollapsed && toggle());
  document.addEventListener("copy", (event) => {
    // complete rows: a selection would contain single words
    const selection = getSelection();
    const chosen = rows.flatMap((row, y) => (selection.containsNode(row, true) ? [size.texts[shown[y]]] : []));
    if (!chosen.length) return;
    event.clipboardData.setData("text/plain", chosen.join("\n"));
    event.preventDefault();
  });
  for (const [id, act] of Object.entries({ play: toggle, slower: () => hurry(-1), faster: () => hurry(1), copy, embed: copyEmbed, full, help: KEYS["?"] }))
    $(id).addEventListener("click", act);
  $("before").addEventListener("click", () => toRun(-1));
  $("next").addEventListener("click", () => toRun(1));
  addEventListener("hashchange", go);
  document.addEventListener("click", (event) => {
    // a link to the current position changes no address
    const link = event.target.closest?.("a[href^='#']");
    if (!link) return;
    if (link.hash === location.hash) go();
    $("player").scrollIntoView({ block: "nearest", behavior: calm.matches ? "auto" : "smooth" });
  });

  $("desk").hidden = false;
  $("card").hidden = !$("stops");
  fit();
  addEventListener("resize", () => (fit(), show()));
  if (!go()) { // a lecture opens at its first card, with links to all; any other film at its last screen
    now = film.directed ? film.stops[0] : film.duration;
    gone = film.directed ? 0 : film.stops.length;
    show();
    $("start").hidden = false;
  }
  document.body.dataset.ready = "yes";
})();
