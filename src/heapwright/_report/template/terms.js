// What a term means, shown when a reader points at it or reaches it by keys: a browser shows titles to pointers alone.

// A heading that shows its meaning.
function term(words, meaning) {
  const one = Object.assign(document.createElement("abbr"), { textContent: words, title: meaning, tabIndex: 0 });
  return meaning ? one : words;
}

function tellTerms() {
  const tip = Object.assign(document.createElement("div"), { id: "tip", hidden: true });
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  let told = null;
  const hide = () => {
    if (!told) return;
    told.title = tip.textContent;
    told.removeAttribute("aria-describedby");
    told = null;
    tip.hidden = true;
  };
  const show = ({ target }) => {
    const one = target.closest?.("abbr, th button");
    if (!one?.title) return;
    hide();
    told = one;
    tip.textContent = one.title;
    one.removeAttribute("title"); // else the browser shows it, too
    one.setAttribute("aria-describedby", tip.id);
    tip.hidden = false;
    const [place, body] = [one.getBoundingClientRect(), document.body.getBoundingClientRect()];
    const left = Math.min(place.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(left, 8) - body.left}px`;
    tip.style.top = `${place.bottom - body.top}px`;
  };
  // It stays while the pointer is on it.
  const leave = ({ relatedTarget }) => told !== document.activeElement && !tip.contains(relatedTarget) && !told?.contains(relatedTarget) && hide();
  for (const moment of ["focusin", "pointerover"]) document.addEventListener(moment, show);
  document.addEventListener("focusout", hide);
  document.addEventListener("pointerout", leave);
  document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
}
