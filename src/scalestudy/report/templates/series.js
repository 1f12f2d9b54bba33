// Which series are hidden: one choice for all figures and tables of a page, by a legend or by a table's buttons.
const series = {
  hidden: new Set(),
  toggle(name) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    document.dispatchEvent(new Event("serieschange"));
  },
  show() {
    this.hidden.clear();
    document.dispatchEvent(new Event("serieschange"));
  },
};
