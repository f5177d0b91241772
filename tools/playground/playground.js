/* The playground: an editor, and views of what it holds. Every view is a command line of irtool, run by worker.js. Texts become text nodes;
   pictures are pages in a frame of their own, without access to this one. */
(function () {
  const $ = (id) => document.getElementById(id);
  const MOST_PAINTED = 200000, MOST_SHARED = 400000, MOST_IN_LINK = 24000;
  const VIEWS = {
    picture: ["Picture of each pass", (name, passes) => [["show", name, ...passes, "-o", "page.html"]]],
    gradient: ["Gradient", (name, passes) => [["show", name, ...passes, "--passes=differentiate", "-o", "page.html"]]],
    text: ["Text after the passes", (name, passes) => name.endsWith(".py") ? [["compile", name], ["opt", "-", ...passes]] : [["opt", name, ...passes]]],
    format: ["Formatted", (name) => name.endsWith(".py") ? [["compile", name], ["fmt", "-"]] : name.startsWith("input.") ? [["fmt", name]] : [["show", name, "--types=full"]]],
    source: ["Source", (name) => name.endsWith(".py") ? [["compile", name], ["decompile"]] : [["decompile", name]]],
    inspect: ["Inspect", (name) => name.startsWith("input.") ? [["show", name], ...(name.endsWith(".py") ? [] : [["stats", name]])].slice(-1) : [["inspect", name.split(":")[0]]]],
  };
  const RUN = ["Run", (name) => [["run", name, ...$("values").value.split("\n").filter((line) => line.trim()).flatMap((line) => ["--input", line.trim()])]]];
  const state = { view: "picture", archive: null, id: 0, sent: 0, worker: null, next: null, isBusy: false };
  let examples = {}, timer = 0, busyTimer = 0;

  // -- Python
  function startWorker() {
    for (const each of [state.worker, state.next]) if (each) each.terminate();
    state.next = null;
    state.worker = newWorker("worker.js", take);
    say("Python is loading \u2026");
  }
  function newWorker(address, take) {
    const worker = new Worker(address, { type: "module" });
    worker.onmessage = ({ data }) => take(data);
    worker.onerror = (event) => say("Python does not start: " + (event.message || "see the console"));
    return worker;
  }
  // Python with NumPy starts late: meanwhile the one without answers.
  function addNumPy() {
    const next = state.next = newWorker("worker.js?numpy", (answer) => {
      if (answer.part !== "ready") return;
      state.worker.terminate();
      state.worker = next;
      next.onmessage = ({ data }) => take(data);
      document.documentElement.dataset.numpy = "yes";
      send();
    });
  }
  function say(text) { $("state").textContent = text; }
  function kindOfText(text) {
    return /^\s*(?:def|class|import|from|@)\b/m.test(text) && !/^\s*(?:#.*\n\s*)*graph\s*[(%\w]/m.test(text) ? "input.py" : "input.ir";
  }
  function request() {
    const text = $("text").value, archive = state.archive;
    const name = archive ? archive.name : kindOfText(text);
    const chosen = archive ? name + ":" + ($("method").value.trim() || "forward") : name;
    const passes = $("passes").value.trim() ? ["--passes=" + $("passes").value.trim()] : [];
    const check = archive ? [] : name === "input.py" ? [["compile", name]] : [["opt", name]];
    return { name, data: archive ? archive.data : text, check, view: VIEWS[state.view][1](chosen, passes) };
  }
  function send() {
    clearTimeout(timer);
    const message = { id: ++state.id, ...request() };
    state.sent = performance.now();
    $("words").textContent = message.view.map((words) => ["irtool", ...words].map(quoted).join(" ")).join(" | ");
    state.worker.postMessage(message);
    clearTimeout(busyTimer);
    busyTimer = setTimeout(() => { $("stop").hidden = false; }, 2000);
    remember();
  }
  function soon() { clearTimeout(timer); timer = setTimeout(send, 60); }
  function quoted(word) { return /^[\w.,:=+/@-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'"; }
  function take(answer) {
    const root = document.documentElement.dataset;
    if (answer.part === "ready") { say("Ready"); return; }
    if (answer.part === "warm") { root.warm = "yes"; return; }
    if (answer.part === "failed") { say("Python has failed"); rest(); messages(answer.err, true); return; }
    if (answer.id !== state.id) return;
    const took = Math.round(performance.now() - state.sent);
    if (answer.part === "check") {
      root.checked = took;
      root.first = root.first || Math.round(performance.now());
      root.edit = answer.id;
      messages(answer.err, answer.code !== 0);
      say(answer.code ? "Not understood" : "Read in " + took + " ms");
      $("panel").classList.toggle("stale", answer.code !== 0);
      if (answer.code) rest();
      return;
    }
    rest();
    root.viewed = took;
    root.view = answer.id;
    if (VIEWS.run && !state.next) addNumPy();
    if (state.view === "run" && state.worker !== state.next) { say("NumPy is loading \u2026"); return; }
    if (answer.code || answer.err) messages(answer.err, answer.code !== 0);
    $("panel").classList.toggle("stale", answer.code !== 0);
    if (answer.code) { say("Refused"); return; }
    say("Shown in " + took + " ms");
    if (answer.page !== null && answer.page !== undefined) showPage(answer.page); else showText(answer.out);
  }
  function rest() { clearTimeout(busyTimer); $("stop").hidden = true; }

  // -- results
  function showPage(html) {
    $("output").hidden = true;
    $("frames").hidden = false;
    const frame = make("iframe", "old");
    frame.title = VIEWS[state.view][0];
    frame.setAttribute("sandbox", "allow-scripts");
    frame.style.colorScheme = document.documentElement.classList.contains("dark") ? "dark" : "light";
    frame.addEventListener("load", () => {
      frame.className = "";
      for (const each of $("frames").querySelectorAll("iframe")) if (each !== frame) each.remove();
    });
    frame.srcdoc = html;
    $("frames").append(frame);
  }
  function showText(text) {
    const output = $("output");
    $("frames").hidden = true;
    output.hidden = false;
    const isLong = text.length > MOST_PAINTED;
    output.replaceChildren();
    paint(output, visible(text.slice(0, 5 * MOST_PAINTED)), isLong ? /(?!)/g : state.view === "source" ? LANGUAGES.python : LANGUAGES.ir);
    if (text.length > 5 * MOST_PAINTED) output.append("\u2026 (" + text.length + " characters)");
  }
  // Marks that turn the direction of a line, made visible.
  function visible(text) { return text.replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (mark) => "\\u" + mark.charCodeAt(0).toString(16)); }
  function messages(text, isError) {
    const pane = $("messages"), places = [];
    pane.replaceChildren();
    pane.classList.toggle("notes", !isError);
    pane.hidden = !text.trim();
    const lines = visible(text.slice(0, MOST_PAINTED)).split("\n");
    lines.forEach((line, i) => {
      const place = /^input\.(?:ir|py):(\d+):(\d+): (\w+): /.exec(line);
      if (place) {
        const button = make("button", "", line), under = /^\s*(\^~*)/.exec(lines[i + 2] || "");
        const mark = { line: Number(place[1]), column: Number(place[2]), width: under ? under[1].length : 1, kind: place[3] };
        button.type = "button";
        button.addEventListener("click", () => goTo(mark));
        const head = make("span", "head");
        head.append(button);
        pane.append(head, "\n");
        places.push(mark);
      } else {
        pane.append(/^\w+: /.test(line) ? make("span", "head", line) : line, "\n");
      }
    });
    mark(places);
  }
  function mark(places) {
    $("marks").replaceChildren();
    for (const each of $("numbers").querySelectorAll(".error")) each.className = "";
    for (const place of places.slice(0, 200)) {
      if (place.kind === "note") continue;
      const bar = make("i", place.kind === "error" ? "" : "warning");
      bar.style.top = 8 + 20 * (place.line - 1) + "px";
      bar.style.left = "calc(10px + " + (place.column - 1) + "ch)";
      bar.style.width = place.width + "ch";
      $("marks").append(bar);
      const number = $("numbers").children[place.line - 1];
      if (number && place.kind === "error") number.className = "error";
    }
  }
  function goTo(place) {
    const area = $("text"), lines = area.value.split("\n");
    const start = lines.slice(0, place.line - 1).reduce((sum, line) => sum + line.length + 1, 0) + place.column - 1;
    area.focus();
    area.setSelectionRange(start, start + place.width);
    area.scrollTop = Math.max(0, 20 * place.line - area.clientHeight / 2);
  }

  // -- editor
  function paintInput() {
    const text = $("text").value, isLarge = text.length > MOST_PAINTED;
    $("text").classList.toggle("plain", isLarge);
    $("paint").replaceChildren();
    if (!isLarge) paint($("paint"), text, kindOfText(text) === "input.py" ? LANGUAGES.python : LANGUAGES.ir);
    const count = Math.min(text.split("\n").length, 20000), numbers = $("numbers");
    while (numbers.children.length > count) numbers.lastChild.remove();
    while (numbers.children.length < count) numbers.append(make("b", "", String(numbers.children.length + 1)));
    $("marks").replaceChildren();
    scroll();
  }
  function scroll() {
    const area = $("text"), shift = "translate(" + -area.scrollLeft + "px, " + -area.scrollTop + "px)";
    $("paint").style.transform = $("marks").style.transform = shift;
    $("numbers").style.transform = "translateY(" + -area.scrollTop + "px)";
  }
  function setText(text) { $("text").value = text; $("text").scrollTop = $("text").scrollLeft = 0; paintInput(); }
  function indent(event) {
    if (event.key !== "Tab" || event.shiftKey || event.ctrlKey || event.altKey) return;
    if (indent.escaped) { indent.escaped = false; return; }     // Esc, then Tab: leave the editor
    event.preventDefault();
    document.execCommand("insertText", false, "  ");
  }

  // -- files
  async function take_file(file) {
    const data = new Uint8Array(await file.arrayBuffer());
    const isBinary = data.slice(0, 4).join() === "80,75,3,4" || data.includes(0);
    if (!isBinary) {
      leaveArchive();
      setText(new TextDecoder().decode(data));
    } else {
      state.archive = { name: (file.name.replace(/[^\w.-]/g, "_").replace(/^\.+/, "").slice(-60).replace(/\.\w+$/, "") || "model") + ".pt", data };
      if (state.archive.name.startsWith("input.")) state.archive.name = "model.pt";
      $("archive-name").textContent = file.name + " (" + data.length.toLocaleString("en") + " bytes)";
      $("archive").hidden = false;
      $("editor").hidden = true;
    }
    send();
  }
  function leaveArchive() { state.archive = null; $("archive").hidden = true; $("editor").hidden = false; }

  // -- links: the part behind # holds the view, the passes and the text, deflated
  const through = async (bytes, stream, most) => {
    const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader(), parts = [];
    let size = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      size += part.value.length;
      if (size > most) { reader.cancel(); throw new Error("the link holds more than " + most + " characters"); }
      parts.push(part.value);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  };
  async function link() {
    const text = $("text").value;
    if (state.archive || text.length > MOST_SHARED) return null;
    const packed = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"), MOST_SHARED);
    let letters = "";
    for (const each of packed) letters += String.fromCharCode(each);
    const words = new URLSearchParams({ view: state.view, passes: $("passes").value, text: btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "") });
    return location.href.split("#")[0] + "#" + words;
  }
  async function remember() {
    const id = state.id, address = await link();
    if (address !== null && address.length < MOST_IN_LINK && id === state.id) history.replaceState(null, "", address);
  }
  async function readLink() {
    const words = new URLSearchParams(location.hash.slice(1));
    if (!words.has("text")) return false;
    try {
      const letters = atob(words.get("text").replaceAll("-", "+").replaceAll("_", "/"));
      const packed = Uint8Array.from(letters, (each) => each.charCodeAt(0));
      setText(new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw"), MOST_SHARED)));
    } catch (error) {
      messages("error: the link is damaged: " + error.message, true);
      return false;
    }
    $("passes").value = (words.get("passes") || "").slice(0, 2000);
    if (Object.hasOwn(VIEWS, words.get("view"))) choose(words.get("view"));
    return true;
  }
  async function share() {
    const address = await link();
    if (address === null) { say("Only texts of up to " + MOST_SHARED + " characters fit into a link"); return; }
    history.replaceState(null, "", address);
    try { await navigator.clipboard.writeText(address); say("The link is copied"); } catch { say("The link is in the address bar"); }
  }

  // -- controls
  function choose(view) {
    state.view = view;
    $("inputs").hidden = view !== "run";
    $("panel").setAttribute("aria-labelledby", "tab-" + view);
    for (const tab of $("tabs").children) {
      const isChosen = tab.id === "tab-" + view;
      tab.setAttribute("aria-selected", isChosen);
      tab.tabIndex = isChosen ? 0 : -1;
    }
  }
  function makeTabs() {
    for (const [view, [title]] of Object.entries(VIEWS)) {
      const tab = make("button", "", title);
      tab.id = "tab-" + view;
      tab.type = "button";
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", "panel");
      tab.addEventListener("click", () => { choose(view); send(); });
      $("tabs").append(tab);
    }
    $("tabs").addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const tabs = [...$("tabs").children], next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
    choose(state.view);
  }
  function theme() {
    document.documentElement.classList.toggle("dark");
    const frame = $("frames").querySelector("iframe");
    if (frame) showPage(frame.srcdoc);
  }
  async function begin() {
    if (window.matchMedia("(prefers-color-scheme: dark)").matches) theme();
    startWorker();
    const folder = await (await fetch("folder.json")).json();
    if (folder.has_numpy) VIEWS.run = RUN;
    makeTabs();
    examples = folder.examples;
    for (const name of Object.keys(examples)) {
      const option = make("option", "", name);
      option.value = name;
      $("example").append(option);
    }
    if (!await readLink()) setText(Object.values(examples)[0]);
    send();
  }
  $("text").addEventListener("input", () => { paintInput(); soon(); });
  $("text").addEventListener("scroll", scroll);
  $("text").addEventListener("keydown", (event) => { if (event.key === "Escape") indent.escaped = true; else indent(event); });
  for (const id of ["passes", "method", "values"]) $(id).addEventListener("input", soon);
  $("example").addEventListener("change", () => { if ($("example").value) { leaveArchive(); setText(examples[$("example").value]); send(); } });
  $("open").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => { if ($("file").files[0]) take_file($("file").files[0]); $("file").value = ""; });
  $("close").addEventListener("click", () => { leaveArchive(); send(); });
  $("share").addEventListener("click", share);
  $("theme").addEventListener("click", theme);
  $("stop").addEventListener("click", () => { rest(); startWorker(); });
  window.addEventListener("hashchange", async () => { if (await readLink()) { leaveArchive(); send(); } });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      document.body.classList.toggle("drop", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files[0]) take_file(event.dataTransfer.files[0]);
    });
  }
  begin();
})();
