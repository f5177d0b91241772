
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const STATUSES = ["", "new", "changed", "moved", "gone"];
  const FOLDED = 240;       // characters of a line that are shown at first
  const SMALLEST = 0.7;     // pixels for a pixel of the picture, at first
  const state = { step: 0, scene: "", picked: "", view: null, open: new Set(), isQuiet: false, hasFullTypes: false };
  let version = null;       // the last step that changed something
  let rows = [];            // {element, text, graph, key, values, origin, isGone, spans}
  let readers = new Map();  // key of a value -> rows with its name
  let rowsByKey = new Map();
  let derived = new Map();  // key of a node of f -> rows of df that come from it
  let marked = [];          // elements of the class near
  let boxes = new Map();    // key -> elements
  let edges = new Map();    // key of a value -> paths
  let matches = [], match = -1;

  // -- elements
  function push(map, key, item) {
    if (map.has(key)) map.get(key).push(item); else map.set(key, [item]);
  }

  // -- steps
  function showStep(step) {
    state.step = Math.max(0, Math.min(step, data.steps.length - 1));
    let last = state.step;
    while (!data.steps[last].changed) last--;
    const here = data.steps[state.step];
    $("step").value = state.step;
    $("before").disabled = state.step === 0;
    $("after").disabled = state.step === data.steps.length - 1;
    const name = here.name + (here.changed ? "" : " (changed nothing)");
    $("step").setAttribute("aria-valuetext", name);
    $("step-name").textContent = name;
    $("step-name").title = name;
    const fresh = version !== data.steps[last];
    const wasFirst = version !== null && state.scene === version.roots[0];
    version = data.steps[last];
    state.isQuiet = last !== state.step;
    drawRows();
    if (fresh) fillScenes();
    showScene(version.scenes[state.scene] !== undefined && !wasFirst ? state.scene : version.roots[0], true);
    $("nan").hidden = firstNan() === undefined;
  }
  function fillScenes() {
    const select = $("scene");
    select.replaceChildren();
    const names = version.roots.slice();
    for (const name of Object.keys(version.scenes)) if (!names.includes(name)) names.push(name);
    for (const name of names) {
      const option = make("option", "", version.roots.includes(name) ? name : "\u00a0\u00a0" + name);
      option.value = name;
      select.append(option);
    }
  }

  // -- text
  const VALUE = /%(?:[^\s,():=;%[\]{}"#]|::)+/g;
  const seen = new IntersectionObserver((entries) => {        // colours of long texts take long: lines get them when they are seen
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); fill(rows[Number(entry.target.dataset.row)]); }
  }, { root: $("text"), rootMargin: "400px" });
  function paintRow(element, text, graph) {
    const spans = paint(element, text, LANGUAGES.ir).filter((span) => span.className === "value");
    for (const span of spans) span.dataset.key = graph + " " + span.textContent;
    return spans;
  }
  function drawRows() {
    const isQuiet = state.isQuiet, pane = $("text"), top = pane.scrollTop;
    const all = document.createDocumentFragment();
    seen.disconnect();
    rows = [];
    readers = new Map();
    rowsByKey = new Map();
    derived = new Map();
    for (const [short, graph, key, status, origin, full] of version.rows) {
      const isGone = status === 4;
      if (isQuiet && isGone) continue;
      const row = { text: data.texts[state.hasFullTypes ? full : short], graph: data.texts[graph], key: data.texts[key], values: [], spans: [],
        isGone, isFolded: true, origin: data.texts[origin] };
      const isLong = row.text.length > FOLDED;
      row.element = make("div", "row " + (isQuiet ? "" : STATUSES[status]) + (isLong ? " long" : ""), row.text.slice(0, FOLDED));
      row.element.dataset.row = rows.length;
      if (!isGone) {
        if (!rowsByKey.has(row.key)) rowsByKey.set(row.key, row);
        if (row.origin) push(derived, row.origin, row);
        for (const name of new Set(row.text.slice(0, 20 * FOLDED).match(VALUE))) {
          row.values.push(row.graph + " " + name);
          push(readers, row.graph + " " + name, row);
        }
      }
      if (isLong) fill(row); else seen.observe(row.element);
      rows.push(row);
      all.append(row.element);
    }
    pane.replaceChildren(all);
    pane.scrollTop = top;
  }
  function fill(row) {
    row.element.replaceChildren();
    row.spans = paintRow(row.element, row.isFolded ? row.text.slice(0, FOLDED) : row.text, row.graph);
    if (row.text.length > FOLDED) {
      const button = make("button", "unfold", row.isFolded ? "\u2026 " + (row.text.length - FOLDED) + " more" : "less");
      button.type = "button";
      button.addEventListener("click", (event) => { event.stopPropagation(); row.isFolded = !row.isFolded; fill(row); });
      row.element.append(button);
    }
    if (state.picked) nearIn(row, state.picked);
  }

  // -- picture
  function showScene(name, isKept) {
    const isSame = state.scene === name;
    state.scene = name;
    $("scene").value = name;
    $("up").disabled = parentOf(name) === undefined;
    const pictureOf = (each) => data.pictures[version.scenes[each]];
    const svg = parsedPicture(pictureOf(name));
    openBoxes(svg, new Set([...state.open].filter((each) => pictureOf(each) !== undefined)), pictureOf);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "Graph " + name);
    boxes = new Map();
    edges = new Map();
    for (const box of svg.querySelectorAll(".box")) {
      for (const key of box.dataset.keys.split(",")) {
        push(boxes, key, box);
        if (box.classList.contains("open") && !isWhole(box, key)) continue;     // the boxes in it have these colours
        const row = rowsByKey.get(key);
        if (row) for (const each of STATUSES.slice(1, 4)) if (row.element.classList.contains(each)) box.classList.add(each);
        if ((version.values[key] || {}).nan) box.classList.add("nan");
      }
    }
    drawEdges(svg, version.captures[name] || [], (key) => (boxes.get(key) || []).findLast((box) => isWhole(box, key)));
    for (const edge of svg.querySelectorAll(".edge")) for (const key of edge.dataset.values.split(",")) push(edges, key, edge);
    $("picture").replaceChildren(svg);
    if (!isSame || !isKept || !state.view) begin(); else setView(state.view);
    mark();
  }
  function isWhole(box, key) {        // does the box show this value or node alone?
    return !box.dataset.opens || box.dataset.keys.split(",")[0] === key;
  }
  function toggle(box) {              // open or close a box, which stays where it is on the screen
    const name = box.dataset.opens, before = frameOf(box), [x, y, width, height] = state.view;
    if (!state.open.delete(name)) state.open.add(name);
    showScene(state.scene, true);
    const after = [...$("picture").querySelectorAll("[data-opens]")].find((each) => each.dataset.opens === name);
    if (after) setView([x + frameOf(after).x - before.x, y + frameOf(after).y - before.y, width, height]);
  }
  function parentOf(name) {
    if (version.parents[name] !== undefined) return version.parents[name];
    return version.roots.includes(name) || name === version.roots[0] ? undefined : version.roots[0];
  }
  function size() {
    const svg = $("picture").firstElementChild;
    return [parseFloat(svg.getAttribute("width")), parseFloat(svg.getAttribute("height"))];
  }
  function setView(view) {
    state.view = view;
    $("picture").firstElementChild.setAttribute("viewBox", view.map((each) => each.toFixed(2)).join(" "));
  }
  function fit() {                    // all of the picture
    const [width, height] = size(), pane = $("picture").getBoundingClientRect();
    if (!pane.width || !pane.height) { setView([0, 0, width, height]); return; }     // in a frame that has no size yet
    const ratio = pane.height / Math.max(pane.width, 1), wide = Math.max(width, height / ratio, pane.width);
    setView([(width - wide) / 2, 0, wide, wide * ratio]);
  }
  function begin() {                  // its top, if all of it could not be read
    const pane = $("picture").getBoundingClientRect();
    fit();
    if (pane.width && pane.width / state.view[2] < SMALLEST) {
      const wide = pane.width / SMALLEST, frame = $("picture").querySelector(".box > rect");
      const middle = frame ? frame.x.baseVal.value + frame.width.baseVal.value / 2 : size()[0] / 2;
      setView([Math.max(middle - wide / 2, Math.min(0, (size()[0] - wide) / 2)), 0, wide, pane.height / SMALLEST]);
    }
  }
  function zoom(factor, at) {
    const [x, y, width, height] = state.view, pane = $("picture").getBoundingClientRect();
    const u = at ? (at.clientX - pane.left) / pane.width : 0.5, v = at ? (at.clientY - pane.top) / pane.height : 0.5;
    setView([x + width * (1 - factor) * u, y + height * (1 - factor) * v, width * factor, height * factor]);
  }
  function reveal(box) {
    const frame = box.querySelector("rect"), [x, y, width, height] = state.view;
    const left = frame.x.baseVal.value, top = frame.y.baseVal.value;
    if (left < x || top < y || left + frame.width.baseVal.value > x + width || top + 20 > y + height) {
      setView([left + frame.width.baseVal.value / 2 - width / 2, top - height / 3, width, height]);
    }
  }

  // -- selection
  function approach(element) {
    element.classList.add("near");
    marked.push(element);
  }
  function nearIn(row, key) {
    for (const span of row.spans) if (span.dataset.key === key) approach(span);
  }
  function near(key) {
    for (const each of marked) each.classList.remove("near");
    marked = [];
    if (!key) return;
    for (const part of [...(edges.get(key) || []), ...boxesOf(key)]) approach(part);
    for (const row of readers.get(key) || []) {
      nearIn(row, key);
      for (const box of boxesOf(row.key)) approach(box);
    }
    const origin = rowsByKey.get((rowsByKey.get(key) || {}).origin);      // of a node of df, and back
    for (const row of [...(origin ? [origin] : []), ...(derived.get(key) || [])]) {
      approach(row.element);
      for (const box of boxesOf(row.key)) approach(box);
    }
  }
  function mark() {
    for (const each of document.querySelectorAll(".picked")) each.classList.remove("picked");
    for (const box of boxesOf(state.picked)) box.classList.add("picked");
    const row = rowsByKey.get(state.picked);
    if (row) row.element.classList.add("picked");
    near(state.picked);
  }
  function rowOf(key) {               // of a closed box, the row of the first node in it
    const first = () => (boxes.has(key) ? boxes.get(key)[0].dataset.keys.split(",") : []).find((each) => rowsByKey.has(each));
    return rowsByKey.get(key) || (readers.get(key) || [])[0] || rowsByKey.get(first());
  }
  function boxesOf(key) {             // without open ones around its own
    return (boxes.get(key) || []).filter((box) => !box.classList.contains("open") || isWhole(box, key));
  }
  function pick(key, from) {
    state.picked = key;
    mark();
    const row = rowOf(key);
    if (from !== "text" && row) row.element.scrollIntoView({ block: "nearest" });
    const box = [...boxesOf(key), ...(row ? boxesOf(row.key) : [])][0];
    if (from !== "picture" && box) reveal(box);
    tell(key, row);
  }
  function tell(key, row) {
    const pane = $("details");
    pane.replaceChildren();
    if (!key) return;
    const fold = (boxes.get(key) || []).find((box) => box.dataset.opens && isWhole(box, key) && !rowsByKey.has(key));
    if (fold) pane.append(make("p", "", [...fold.querySelectorAll(":scope > text:not(.sign)")].map((each) => each.textContent).join(", ")));
    else if (row) {
      const line = make("p"), code = make("code");
      const text = row.text.trim();
      paintRow(code, text.length > FOLDED * 4 ? text.slice(0, FOLDED * 4) + "\u2026" : text, row.graph);
      line.append(code);
      pane.append(line);
    }
    const facts = version.values[key];
    if (!facts) return;
    for (const text of facts.lines || []) pane.append(make("p", facts.nan && text.includes("nan") ? "trouble" : "", text));
    if (facts.bars) pane.append(histogram(facts.bars, facts.range));
  }
  function histogram(bars, range) {
    const svg = document.createElementNS(SVG, "svg"), most = Math.max(...bars, 1);
    svg.setAttribute("viewBox", "0 0 180 48");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "Histogram from " + range[0] + " to " + range[1]);
    bars.forEach((count, i) => {
      const tall = count ? Math.max(1, 46 * count / most) : 0;
      drawShape(svg, "rect", "", { x: i * 180 / bars.length, y: 48 - tall, width: 180 / bars.length - 1, height: tall });
    });
    return svg;
  }
  function firstNan() {
    return Object.keys(version.values).find((key) => version.values[key].nan);
  }
  function goToNan() {
    const key = firstNan();
    if (key !== undefined) show(key, "keys");
  }
  function show(key, from) {          // select, in the picture that shows it
    const graph = (rowOf(key) || {}).graph;
    if (!boxes.has(key) && graph) {
      const root = version.roots.find((each) => each.split(" | ").includes(graph));
      if (root !== undefined && root !== state.scene) showScene(root);
    }
    for (;;) {
      const around = (boxes.get(key) || []).findLast((box) => !box.classList.contains("open"));
      if (!around || isWhole(around, key)) break;
      state.open.add(around.dataset.opens);
      showScene(state.scene, true);
    }
    pick(key, from);
  }
  function keyOf(row) {         // a line without a box of its own selects the first value in it
    return boxes.has(row.key) || !row.values.length || row.key.includes("%") ? row.key : row.values[0];
  }
  function around() {                 // the innermost box of what is selected that opens
    return (boxes.get(state.picked) || []).findLast((each) => each.dataset.opens);
  }
  function open() {
    if (around()) toggle(around());
  }
  function alone() {
    if (around()) showScene(around().dataset.opens);
  }
  function up() {
    const parent = parentOf(state.scene);
    if (parent !== undefined) showScene(parent);
  }

  // -- find
  function find() {
    const words = $("find").value.toLowerCase();
    matches = [];
    match = -1;
    for (const row of rows) {
      const isMatch = words !== "" && row.text.toLowerCase().includes(words);
      row.element.classList.toggle("matched", isMatch);
      if (isMatch) matches.push(row);
    }
    $("found").textContent = words ? matches.length + " lines" : "";
  }
  function findNext() {
    if (!matches.length) return;
    match = (match + 1) % matches.length;
    $("found").textContent = (match + 1) + " of " + matches.length;
    matches[match].element.scrollIntoView({ block: "center" });
    show(keyOf(matches[match]), "keys");
  }
  function move(by) {
    const lines = rows.filter((row) => !row.isGone);
    const key = (rowsByKey.get(state.picked) || rowOf(state.picked) || {}).key;
    const at = lines.findIndex((row) => row.key === key || keyOf(row) === state.picked);
    const row = lines[Math.max(0, Math.min(lines.length - 1, at + by))];
    if (row) show(keyOf(row), "keys");
  }
  function types() {                  // of the text: short ones, as in the picture, or full ones
    state.hasFullTypes = !state.hasFullTypes;
    $("types").setAttribute("aria-pressed", state.hasFullTypes);
    drawRows();
    find();
    showScene(state.scene, true);
    if (state.picked) tell(state.picked, rowOf(state.picked));
  }
  function theme() {
    document.documentElement.classList.toggle("dark");
  }

  // -- events
  const actions = {
    up, before: () => showStep(state.step - 1), after: () => showStep(state.step + 1), nan: goToNan, closer: () => zoom(0.8),
    farther: () => zoom(1.25), fit, types, theme, help: () => $("keys").showModal(),
  };
  for (const id in actions) $(id).addEventListener("click", () => actions[id]());
  $("step").addEventListener("input", () => showStep(Number($("step").value)));
  $("scene").addEventListener("change", () => showScene($("scene").value));
  $("find").addEventListener("input", find);
  $("find").addEventListener("keydown", (event) => {
    if (event.key === "Enter") findNext();
    if (event.key === "Escape") { $("find").value = ""; find(); $("picture").focus(); }
  });
  const keys = {
    ArrowLeft: actions.before, ArrowRight: actions.after, j: () => move(1), k: () => move(-1), o: open, O: alone, u: up, n: goToNan, t: theme, y: types,
    "+": actions.closer, "=": actions.closer, "-": actions.farther, 0: fit, "?": actions.help, Escape: () => pick("", "keys"),
    "/": () => $("find").focus(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, dialog")) return;
    if (Object.hasOwn(keys, event.key)) { event.preventDefault(); keys[event.key](); }
  });
  $("text").addEventListener("click", (event) => {
    const span = event.target.closest(".value"), element = event.target.closest(".row");
    if (!element) return;
    show(span ? span.dataset.key : keyOf(rows[Number(element.dataset.row)]), "text");
  });
  $("text").addEventListener("mouseover", (event) => {
    const span = event.target.closest(".value");
    if (span) near(span.dataset.key);
  });
  $("text").addEventListener("mouseleave", () => near(state.picked));
  const picture = $("picture");
  let drag = null;
  picture.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.15 : 0.87, event); }, { passive: false });
  picture.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, view: state.view, moved: false }; });
  picture.addEventListener("pointermove", (event) => {
    if (!drag) {
      const edge = event.target.closest(".edge");
      if (edge) near(edge.dataset.values.split(",")[0]);
      return;
    }
    if (!event.buttons) { drag = null; return; }
    const pane = picture.getBoundingClientRect(), dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    drag.moved = drag.moved || Math.abs(dx) + Math.abs(dy) > 4;
    if (!drag.moved) return;
    picture.classList.add("dragged");
    setView([drag.view[0] - dx * drag.view[2] / pane.width, drag.view[1] - dy * drag.view[3] / pane.height, drag.view[2], drag.view[3]]);
  });
  picture.addEventListener("pointerup", (event) => {
    const moved = drag && drag.moved;
    drag = null;
    picture.classList.remove("dragged");
    if (moved) return;
    const box = event.target.closest(".box"), edge = event.target.closest(".edge");
    if (event.target.closest(".sign")) { toggle(box); return; }
    pick(box ? box.dataset.keys.split(",")[0] : edge ? edge.dataset.values.split(",")[0] : "", "picture");
  });
  function divide(part) {             // the part of the window, in percent, that the picture takes
    const percent = Math.round(Math.min(90, Math.max(10, part)));
    picture.style.flexBasis = percent + "%";
    $("divider").setAttribute("aria-valuenow", percent);
    begin();
  }
  $("divider").addEventListener("pointerdown", (event) => $("divider").setPointerCapture(event.pointerId));
  $("divider").addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    const whole = picture.parentElement.getBoundingClientRect();
    const isAbove = $("divider").offsetWidth > $("divider").offsetHeight;         // in a narrow window the picture is above the text
    divide(100 * (isAbove ? (event.clientY - whole.top) / whole.height : (event.clientX - whole.left) / whole.width));
  });
  $("divider").addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -5, ArrowUp: -5, ArrowRight: 5, ArrowDown: 5 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    divide(Number($("divider").getAttribute("aria-valuenow")) + by);
  });
  picture.addEventListener("dblclick", (event) => {
    const box = event.target.closest(".box");
    if (box && box.dataset.opens && !event.target.closest(".sign")) toggle(box);
  });
  window.addEventListener("resize", () => { if (state.view) begin(); });

  if (window.matchMedia("(prefers-color-scheme: dark)").matches) theme();
  $("step").max = data.steps.length - 1;
  $("types").hidden = data.hasOneForm;
  $("title").textContent = data.title.split(/[\\/]/).pop();
  $("title").title = data.title;
  if (window.parent !== window) for (const each of ["title", "theme"]) $(each).hidden = true;      // the page around this frame has them
  $("stepper").hidden = data.steps.length === 1;
  if (data.steps.length === 1) $("stepper").style.display = "none";
  showStep(0);
})();
