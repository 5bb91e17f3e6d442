// Drawings of lines: the numbers at the place under the pointer, or at the one that the arrow keys choose.

class Plot {
  constructor(plot) {
    this.plot = plot;
    this.places = JSON.parse(plot.dataset.points); // [per cent from the left, what stands there], ascending
    this.drawing = plot.querySelector("svg");
    this.pointer = plot.querySelector(".pointer");
    this.readout = plot.parentElement.querySelector(".readout");
    this.at = null;
    plot.addEventListener("pointermove", (event) => this.follow(event));
    plot.addEventListener("pointerleave", () => this.show(null));
    plot.addEventListener("blur", () => this.show(null));
    plot.addEventListener("keydown", (event) => this.step(event));
  }

  follow(event) {
    const box = this.drawing.getBoundingClientRect();
    const place = (100 * (event.clientX - box.left)) / box.width;
    const far = this.places.map(([left]) => Math.abs(left - place));
    this.show(far.indexOf(Math.min(...far)));
  }

  step(event) {
    const last = this.places.length - 1;
    const now = this.at ?? (event.key === "ArrowLeft" ? last + 1 : -1);
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.show(Math.min(last, Math.max(0, next)));
  }

  show(at) {
    this.at = at;
    this.pointer.setAttribute("visibility", at === null ? "hidden" : "visible");
    this.readout.textContent = at === null ? "" : this.places[at][1];
    if (at === null) return;
    for (const side of ["x1", "x2"]) this.pointer.setAttribute(side, `${this.places[at][0]}%`);
  }
}

for (const plot of document.querySelectorAll("[data-points]")) new Plot(plot);
