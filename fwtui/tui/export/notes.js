"use strict";
// the lecturer's notes: the card at which the room is stays in view
const cards = [...document.getElementById("stops").children], where = document.getElementById("where");
const source = new EventSource("follow");
let now = 0;
source.addEventListener("message", (event) => {
  const { position, followers, guesses, answer } = JSON.parse(event.data);
  where.textContent = `${position ? "" : "The lecture has not begun. "}Followers: ${followers}; guesses: ${guesses}${answer ? "; the answer is shown" : ""}.`;
  if (!position?.marker || position.marker === now) return; // while it plays, the last card stays
  cards[now - 1]?.classList.remove("now");
  now = position.marker;
  cards[now - 1].classList.add("now");
  cards[now - 1].scrollIntoView({ block: "start" });
});
source.addEventListener("error", () => {
  where.textContent = "The server does not answer; this page tries again.";
});
