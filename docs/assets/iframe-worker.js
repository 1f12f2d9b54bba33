/* Browsers start no worker from a file, and the search is one: from a file, run it in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...scripts) =>
        scripts.reduce((before, script) => before.then(() => this.load(script)), Promise.resolve());
      this.load(address).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.deliver(data));
      });
    }
    load(address) {
      const script = this.inside.document.createElement("script");
      script.src = address;
      return new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = reject;
        this.inside.document.body.appendChild(script);
      });
    }
    postMessage(data) {
      this.waiting ? this.waiting.push(data) : this.deliver(data);
    }
    deliver(data) {
      this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
