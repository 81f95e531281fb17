"use strict";
// a talk that is served: this page follows the lecturer's, or is the lecturer's, by `window.replay` of page.js
document.addEventListener("replay", () => {
  const drives = document.body.dataset.drives === "True";
  const LATE = 1.5, TOUCH = 400; // seconds beside the film that are a jump; ms in which a change is the visitor's doing
  const made = (tag, words = "", name = "") => Object.assign(document.createElement(tag), { textContent: words, className: name });
  const room = made("section"), said = made("p"), asked = made("form"), bars = made("ol");
  const back = made("button", "Back to the lecturer");
  room.id = "room";
  room.setAttribute("aria-label", "The room");
  said.setAttribute("role", "status");
  back.type = "button";
  room.append(said, back, asked, bars);
  document.body.append(room);
  // the player leaves room for it
  new ResizeObserver(() => {
    document.body.style.setProperty("--room", `${room.offsetHeight}px`);
    dispatchEvent(new Event("resize"));
  }).observe(room);

  let before = window.replay.at(), seen = performance.now(), touched = -Infinity;
  let news = null, heard = 0, wanders = false, lost = "", question = 0, reply = "";
  let taken = 0, taking = false; // pieces of the film, which the lecturer's page has from the beginning
  const guessed = new Map();

  // whether the page is elsewhere than playing alone would have brought it
  function moved(at) {
    const time = before.time + (before.playing ? ((performance.now() - seen) / 1000) * before.speed : 0);
    const jumped = Math.abs(at.time - time) > (at.playing || before.playing ? LATE * Math.max(at.speed, 1) : 1e-3);
    return jumped || ["marker", "playing", "speed", "answered"].some((name) => at[name] !== before[name]);
  }

  let sending = false, unsent = null;
  async function send(at) {
    unsent = at;
    if (sending) return;
    sending = true;
    while (unsent) {
      const body = JSON.stringify(unsent);
      unsent = null;
      try {
        const answer = await fetch("drive", { method: "POST", body });
        lost = answer.ok ? "" : await answer.text();
      } catch {
        lost = "The server does not answer; the room stays where it is.";
      }
    }
    sending = false;
    tell();
  }

  function follow() {
    wanders = false;
    touched = -Infinity; // what changes now is the lecturer's doing
    if (!news?.position || (!drives && taken < news.shown)) return;
    const { position, age } = news;
    const passed = position.playing ? (age + (performance.now() - heard) / 1000) * position.speed : 0;
    window.replay.go({ ...position, time: position.time + passed });
  }

  // what has been shown comes here piece by piece, answers too
  async function take() {
    if (taking || taken >= news.shown) return;
    taking = true;
    try {
      for (; taken < news.shown; taken++) {
        const piece = await fetch(`shown/${taken}`);
        if (!piece.ok) break;
        window.replay.take(await piece.json());
      }
      if (!wanders) follow();
    } catch {
      // the next message tries again
    }
    taking = false;
  }

  async function guess(words) {
    try {
      const answer = await fetch("guess", { method: "POST", body: JSON.stringify({ marker: question, guess: words }) });
      if (answer.ok) guessed.set(question, words);
      reply = answer.ok ? "" : await answer.text();
    } catch {
      reply = "The server does not answer; try again.";
    }
    ask();
  }

  // the question that is open now, to be answered by a click or a number
  function ask() {
    const at = news?.position;
    const open = news?.question && !at.answered && !drives ? at.marker : 0;
    if (open !== question) reply = "";
    question = open;
    asked.hidden = !open;
    if (!open) return asked.replaceChildren();
    const { words, choices, hint } = news.question, mine = guessed.get(open);
    const parts = choices.map((choice, place) => {
      const button = made("button", choice);
      button.type = "button";
      button.setAttribute("aria-pressed", String(mine === String(place + 1)));
      button.addEventListener("click", () => guess(String(place + 1)));
      return button;
    });
    if (!choices.length) {
      const field = Object.assign(made("input"), { name: "guess", maxLength: 20, autocomplete: "off", value: mine ?? "" });
      field.setAttribute("aria-label", `Your guess: ${hint}`);
      field.placeholder = hint;
      parts.push(field, made("button", mine ? "Change" : "Guess"));
    }
    const told = reply || (mine ? "Your guess is in; you may change it until the answer is shown." : "");
    asked.replaceChildren(made("p", words, "asked"), ...parts, made("p", told, reply ? "problem" : ""));
  }
  asked.addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = new FormData(asked).get("guess");
    if (typed) guess(typed);
  });

  function tell() {
    document.body.classList.toggle("follows", !drives && !wanders);
    const at = news?.position;
    const count = (number, one) => `${number} ${one}${number === 1 ? "" : one.endsWith("s") ? "es" : "s"}`;
    const guesses = news?.question ? `; ${count(news.guesses, "guess")}` : "";
    const answer = news?.answer ? ` The answer: ${news.answer}.` : "";
    said.textContent = lost || (drives ? `You lead; ${count(news?.followers ?? 0, "follower")}${guesses}.${answer}`
      : !at ? "The lecture has not begun; it will be followed here."
        : wanders ? "You look around by yourself." : `You follow the lecturer${guesses}.${answer}`);
    back.hidden = drives || !wanders;
    const most = Math.max(1, ...(news?.bars ?? []).map(([, number]) => number));
    bars.hidden = !news?.bars;
    bars.replaceChildren(...(news?.bars ?? []).map(([title, number, right]) => {
      const row = made("li", "", right ? "right" : ""), bar = made("span", "", "guesses");
      bar.style.width = `${(60 * number) / most}%`;
      row.append(made("span", right ? `${title}: the answer` : title), bar, made("span", String(number)));
      return row;
    }));
  }

  const source = new EventSource("follow");
  source.addEventListener("message", (event) => {
    const first = !news, old = JSON.stringify(news?.position), open = question;
    news = JSON.parse(event.data);
    heard = performance.now();
    lost = "";
    if (drives ? first : !wanders && (first || JSON.stringify(news.position) !== old)) follow();
    if (first || JSON.stringify(news.position) !== old || open !== question) ask();
    tell();
    if (!drives) take();
  });
  source.addEventListener("replaced", () => {
    source.close();
    lost = "Newer pages of this browser follow; reload this one to follow here.";
    tell();
  });
  source.addEventListener("error", () => {
    lost = source.readyState === EventSource.CLOSED
      ? "The server does not let this page follow: all places are taken, or this browser keeps no cookie. Reload it later."
      : "The server does not answer; this page tries again.";
    tell();
  });

  back.addEventListener("click", () => {
    follow();
    tell();
  });
  for (const name of ["keydown", "pointerdown", "click", "input", "hashchange"])
    addEventListener(name, (event) => {
      if (!event.target.closest?.("#room")) touched = performance.now();
    }, true);
  document.addEventListener("replay", () => {
    const at = window.replay.at();
    if (moved(at)) {
      if (drives) send(at);
      else if (news?.position && performance.now() - touched < TOUCH) {
        wanders = true;
        tell();
      }
    }
    before = at;
    seen = performance.now();
  });
  ask();
  tell();
}, { once: true });
