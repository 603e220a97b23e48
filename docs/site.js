// What scrolls sideways can be reached and scrolled by keys.
const reach = () => {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
};
for (const moment of ["load", "resize"]) addEventListener(moment, reach);
